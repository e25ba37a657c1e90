"""Logistic and softmax regression with the penalty selected by cross-validation along warm-started paths.

    (C_, l1_ratio_) = argmax over the grid of the mean, over splits, of the score on the test rows              (1)

Each split fits its path of penalties (`likelihood_folds.py`), several splits in parallel; the model is then refitted on
all rows. The one-standard-error rule selects the smallest C (the strongest penalty) whose mean score
is within one standard error of the best: se = std of the scores of the splits / sqrt(number of splits).        (2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing

from summula.core.docstrings import inherit_docs
from summula.core.engine.engine import SerialEngine, local_engine
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.splits import splits_of
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.estimator.scoring import values_in_memory
from summula.core.model_files import schema
from summula.linear_model.cross_validation.folds import batches_of, most_groups
from summula.linear_model.cross_validation.likelihood_folds import (
    Codes,
    ScoredModels,
    Scores,
    Split,
    path_of,
    train_of,
    with_labels,
)
from summula.linear_model.cross_validation.likelihood_grid import Grid, grid_of, has_legacy_attributes
from summula.linear_model.cross_validation.likelihood_paths import Path, path_attributes
from summula.linear_model.glm.objective import GlmFit
from summula.linear_model.glm.statistics.quality import quality_of_classes
from summula.linear_model.logistic_regression import LogisticRegression
from summula.linear_model.ridge_cv import CV, callable_value, scorer_name, takes_weights, warn_unweighted

__all__ = ["LogisticRegressionCV"]

Array = NDArray[Any]


_FEW_VALUES = 100_000  # of the rows, below which splits are fitted on one thread
_NOT_HERE = ("C", "l1_ratio", "warm_start", "formula")
_BY_CLASS = schema.Dict(schema.Plain(), schema.Array("float64", "...", finite=False))
_FITTED = schema.schema_of(LogisticRegression).fields


@inherit_docs()
@schema.saved(
    # Without `refit` the model is an average, without a certificate.
    certificate_=schema.Maybe(_FITTED["certificate_"]),
    _fit=schema.Maybe(_FITTED["_fit"]),
    _weighted=schema.Maybe(_FITTED["_weighted"]),
    n_iter_=schema.Maybe(schema.Array("int32", "...", low=0)),
    # An interrupted fit is a model without cross-validation results.
    Cs_=schema.Maybe(schema.Array("float64", "n_Cs", low=0.0, finite=False)),
    l1_ratios_=schema.Maybe(schema.Plain()),
    C_=schema.Maybe(schema.Real(0.0, finite=False) | schema.Array("float64", "n_scores", low=0.0, finite=False)),
    l1_ratio_=schema.Maybe(schema.Plain()),
    coefs_paths_=schema.Maybe(schema.Array("float64", "...") | _BY_CLASS),
    scores_=schema.Maybe(schema.Array("float64", "...", finite=False) | _BY_CLASS),
)
class LogisticRegressionCV(LogisticRegression):
    """Logistic regression with C and l1_ratio selected by cross-validation.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Number of values of C to try, logarithmically spaced from 1e-4 to 1e4, or the values.
    l1_ratios : array-like, default="warn"
        Weights of the L1 penalty to try. The default tries 0 and warns, as in scikit-learn.
    cv : int, splitter or iterable of (train, test), default=None
        Cross-validation splits; by default 5 stratified folds.
    dual, intercept_scaling, random_state, verbose
        For compatibility with scikit-learn; they do not affect the result.
    penalty : {"l1", "l2", "elasticnet"}, default="deprecated"
        For compatibility with scikit-learn; use `l1_ratios`.
    scoring : str or callable, default="warn"
        Scorer used for the selection; None is the accuracy. The default is None and warns, as in scikit-learn.
    tol : float, default=1e-4
        Tolerance, as in `LogisticRegression`.
    max_iter : int, default=100
        Maximum number of steps of the solver per fit.
    class_weight : dict of label to weight, "balanced" or None, default=None
        Weights of the classes; "balanced" gives every class the same total weight over all rows.
    refit : bool, default=True
        Whether to fit the model on all rows with the selected values; else the best models of the splits are averaged.
    use_legacy_attributes : bool, default="warn"
        Whether attributes have scikit-learn's older shapes. The default is True and warns, as in scikit-learn.
    select : {"min", "1se"}, default="min"
        Select the C with the best mean score, or the smallest one within one standard error of it.

    Attributes
    ----------
    C_, l1_ratio_ : float, or ndarray with one value per class
        Selected values.
    Cs_, l1_ratios_ : ndarray
        Values tried.
    scores_ : ndarray of shape (n_splits, n_l1_ratios, n_cs)
        Scores on the test rows; with older shapes a dict of labels to arrays.
    coefs_paths_ : ndarray of shape (n_splits, n_l1_ratios, n_cs, n_classes or 1, n_features + 1)
        Coefficients of the models of the splits, the intercept last; with older shapes a dict of labels to arrays.
    n_iter_ : ndarray of shape (n_splits, n_l1_ratios, n_cs)
        Number of steps of each fit.
    classes_, coef_, intercept_, certificate_
        Of the final model, as in `LogisticRegression`; averages of models have no certificate.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, sections 4.4 and 7.10.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import LogisticRegressionCV
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 8))
    >>> y = X[:, 0] + rng.logistic(size=200) > 0
    >>> options = {"l1_ratios": (1.0,), "scoring": "neg_log_loss", "use_legacy_attributes": False}
    >>> model = LogisticRegressionCV(Cs=np.geomspace(0.01, 1.0, 20), select="1se", **options).fit(X, y)
    >>> np.flatnonzero(model.coef_).tolist()
    [0]
    """

    # Sample weights for `score` are requested by the scorer.
    __metadata_request__score: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}
    C_: Any
    l1_ratio_: Any
    scores_: Any
    coefs_paths_: Any
    _factored = False
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **{k: v for k, v in LogisticRegression._parameters.items() if k not in _NOT_HERE},
        "penalty": (one_of("l1", "l2", "elasticnet", "deprecated"),),
        "Cs": (integer(1), array_like),
        "l1_ratios": (none, one_of("warn"), array_like),
        "cv": CV,
        "scoring": (none, callable_value, scorer_name, one_of("warn")),
        "refit": (boolean,),
        "random_state": (random_state,),
        "use_legacy_attributes": (boolean, one_of("warn")),
        "select": (one_of("min", "1se"),),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        l1_ratios: ArrayLike | None = "warn",
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: Any = "deprecated",
        scoring: str | Callable[..., float] | None = "warn",
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        use_legacy_attributes: Any = "warn",
        select: str = "min",
        max_time: float | None = None,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes
        self.select = select
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LogisticRegressionCV:
        """Select the penalty and fit the model.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights, of training and test rows.
        **params
            `groups`, for splitters that use them. With scikit-learn's metadata routing enabled, the metadata requested
            by scorer and splitter.
        """
        with self._fitting(X, y, sample_weight) as run:
            grid = grid_of(self)
            legacy, scoring = has_legacy_attributes(self), self._get_scorer()
            to_scorer, to_splitter = self._routed(sample_weight, params)
            run.keep_rows()
            weights = self._class_weights(run)
            splits = self._splits(run, X, to_splitter)
            try:
                paths = self._paths(run, grid, splits, weights, scoring, to_scorer)
            except DataError:
                run.raise_if_not_finite()  # with the row number in the whole table, not in a fold
                raise
            scores = np.array([[path.scores for path in of_ratio] for of_ratio in paths])  # (ratios, splits, Cs)
            if self.refit:
                place, ratio = self._chosen(grid, scores)
                best = paths[ratio]
                start = (
                    np.mean([path.intercept[place] for path in best], axis=0),
                    np.mean([path.coef[place] for path in best], axis=0),
                )
                C = float(grid.Cs[place])
                problem = self._problem_at(0.0 if np.isinf(C) else 1.0 / C, grid.ratios[ratio], weights)
                self._solved(run, problem, (X, y, sample_weight), self.classes_, start)
                if not problem.penalised:
                    self._quality = quality_of_classes(run, self._fit, problem)
                chosen = C, grid.ratios[ratio]
            else:
                chosen = self._averaged(grid, scores, paths, run.source.dtype.name)
            self.__dict__.update(path_attributes(self, grid, scores, paths, chosen, legacy))
        return self

    # ---------------------------------------------------------------------------------------------------- parameters

    @property
    def _scores_accuracy(self) -> bool:
        return self.scoring is None or (isinstance(self.scoring, str) and self.scoring in ("warn", "accuracy"))

    def _get_scorer(self) -> Any:
        from sklearn.metrics import get_scorer

        unset = self.scoring is None or (isinstance(self.scoring, str) and self.scoring == "warn")
        if unset and sklearn.get_config()["enable_metadata_routing"]:
            return get_scorer("accuracy").set_score_request(sample_weight=True)
        return get_scorer("accuracy" if unset else self.scoring)

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of `fit` and `score`, as in scikit-learn."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(
                scorer=self._get_scorer(),
                method_mapping=MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score"),
            )
        )

    def _routed(self, sample_weight: Any, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the metadata for the scorer and for the splitter."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **weights, **params)
            return routed.scorer.score, routed.splitter.split
        if unknown := sorted(params.keys() - {"groups"}):
            raise self._unrouted("fit", unknown)
        if weights and not takes_weights(self.scoring, self._get_scorer()):
            warn_unweighted(self.scoring)
            weights = {}
        return weights, params

    def _class_weights(self, run: Run) -> Array | None:
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.classes_.tolist()]
            if unknown:
                raise ParameterError(
                    "The given class_weight dict must have the class labels as keys; "
                    f"classes={self.classes_} but key={self.class_weight.keys()}"
                )
        return super()._class_weights(run)

    # ------------------------------------------------------------------------------------------------------ the paths

    def _splits(self, run: Run, X: Any, to_splitter: Mapping[str, Any]) -> list[Split]:
        source = run.source
        n = source.n_rows
        if source.streams:
            codes = np.concatenate(run.sum(Codes, None, "labels").pieces)
        else:
            codes = np.asarray(source.chunk(0, n).codes)
        labels = self.classes_[codes]
        rows = np.broadcast_to(np.zeros(1), (n, 1)) if source.streams or not hasattr(X, "shape") else X
        given = splits_of(self.cv, rows, labels, classifier=True, **to_splitter)
        found = [(np.arange(n)[np.asarray(train)], np.arange(n)[np.asarray(test)]) for train, test in given]
        if not found:
            raise DataError("The splitter returns no splits; cross-validation needs at least one.")
        batches = batches_of(found, n, most_groups(1))
        numbered = [(batch, k) for batch in batches for k in range(len(batch.train))]
        return [Split(*rows, batch, k) for rows, (batch, k) in zip(found, numbered, strict=True)]

    def _paths(
        self,
        run: Run,
        grid: Grid,
        splits: list[Split],
        weights: Array | None,
        scorer: Any,
        to_scorer: Mapping[str, Any],
    ) -> list[list[Path]]:
        """Compute the path of each L1 ratio and split."""
        jobs = [(ratio, k) for ratio in range(len(grid.ratios)) for k in range(len(splits))]
        known = with_labels(scorer, self.classes_)
        if "sample_weight" in to_scorer and not run.source.streams:
            to_scorer = {**to_scorer, "sample_weight": run.source.chunk(0, run.source.n_rows).weight}
        order = np.argsort(grid.Cs, kind="stable")
        strengths = np.where(np.isinf(grid.Cs[order]), 0.0, 1.0 / grid.Cs[order])

        def one(job: tuple[int, int]) -> Path:
            ratio, k = job
            problems = [self._problem_at(strength, grid.ratios[ratio], weights) for strength in strengths]
            fits = path_of(train_of(run, splits[k], problems[0]), problems, k)
            ranked: list[GlmFit] = [fits[place] for place in np.argsort(order)]
            coef, intercept = np.array([fit.coef for fit in ranked]), np.array([fit.intercept for fit in ranked])
            steps = np.array([fit.n_iter for fit in ranked], np.int32)
            return Path(coef, intercept, steps, self._scored(run, splits[k], coef, intercept, known, to_scorer))

        # Sums over files use all threads; splits of rows in memory use one thread each, unless the rows are so few that
        # threads would mostly wait for the interpreter.
        few = run.source.n_rows * run.source.n_features <= _FEW_VALUES
        engine = SerialEngine() if few else local_engine()
        results = map(one, jobs) if run.source.streams else engine.map_ordered(one, jobs, n_jobs=self.n_jobs)
        paths: list[list[Path]] = [[] for _ in grid.ratios]
        for (ratio, _), path in zip(jobs, results, strict=True):
            paths[ratio].append(path)
            run.step()
        return paths

    def _scored(
        self, run: Run, split: Split, coef: Array, intercept: Array, scorer: Any, to_scorer: Mapping[str, Any]
    ) -> Array:
        """Return the score of each model on the test rows of a split."""
        n, named = run.source.n_rows, self.scoring is None or isinstance(self.scoring, str)
        if not run.source.streams and (not named or set(to_scorer) - {"sample_weight"}):  # may use the rows
            chunk = run.source.chunk(0, n).take(split.test)
            X, y = chunk.X, self.classes_[chunk.codes]
            params = {name: _of_rows(value, split.test, n) for name, value in to_scorer.items()}
            models = [self._model(v, b) for v, b in zip(coef, intercept, strict=True)]
            return np.array([float(scorer(model, X, y, **params)) for model in models])
        if set(to_scorer) - {"sample_weight"}:
            raise DataError("The rows are read from files, so scorers support no metadata except sample_weight.")
        m, K, d = coef.shape
        judged = ScoredModels(split.batch, split.number, coef.reshape(m * K, d).T, intercept.ravel())
        pieces = run.sum(Scores, judged, "scores").pieces
        scores = np.concatenate([piece[0] for piece in pieces]).reshape(-1, m, K)
        codes = np.concatenate([piece[1] for piece in pieces])
        params = {"sample_weight": np.concatenate([piece[2] for piece in pieces])} if to_scorer else {}
        plain = self._model(np.eye(K), np.zeros(K))
        if self._scores_accuracy:  # scikit-learn's scorer takes longer than a fit to few rows
            weight = params.get("sample_weight")
            return np.array([np.average(plain._winners(scores[:, k]) == codes, weights=weight) for k in range(m)])
        # The scorer gets precomputed scores as the features of an identity model.
        y = self.classes_[codes]
        return np.array([float(scorer(plain, scores[:, k], y, **params)) for k in range(m)])

    def _model(self, coef: Array, intercept: Array) -> LogisticRegression:
        """Return the model of a split, as passed to scorers."""
        model = LogisticRegression(fit_intercept=self.fit_intercept)
        model.classes_, model.coef_, model.intercept_ = self.classes_, coef, intercept
        model.n_features_in_ = coef.shape[1]
        return model

    # ------------------------------------------------------------------------------------------------------- choosing

    def _chosen(self, grid: Grid, scores: Array) -> tuple[int, int]:
        """Return the indices of the selected C and L1 ratio; `scores` has shape (ratios, splits, Cs)."""
        means = scores.mean(axis=1)
        # Ties go to the first C, then to the first ratio, as in scikit-learn.
        place, ratio = np.unravel_index(int(means.T.argmax()), means.T.shape)
        m = scores.shape[1]
        if self.select == "1se" and m > 1:
            error = scores[ratio, :, place].std(ddof=1) / np.sqrt(m)
            near = np.flatnonzero(means[ratio] >= means[ratio, place] - error)
            place = near[grid.Cs[near].argmin()]
        return int(place), int(ratio)

    def _averaged(self, grid: Grid, scores: Array, paths: list[list[Path]], dtype: str) -> tuple[float, float]:
        """Average the best models of the splits, and their parameters."""
        coef, intercept, Cs, ratios = [], [], [], []
        for k in range(scores.shape[1]):
            mine = scores[:, k].T
            place, ratio = np.unravel_index(int(mine.argmax()), mine.shape)
            coef.append(paths[ratio][k].coef[place])
            intercept.append(paths[ratio][k].intercept[place])
            Cs.append(grid.Cs[place])
            ratios.append(grid.ratios[ratio])
        for name in ("certificate_", "_fit", "_quality", "_training"):
            self.__dict__.pop(name, None)
        self.coef_ = np.mean(coef, axis=0).astype(dtype)
        self.intercept_ = np.mean(intercept, axis=0).astype(dtype)
        return float(np.mean(Cs)), float(np.mean(ratios))

    def score(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, **params: Any
    ) -> float:
        """Return the score according to `scoring`, by default the accuracy.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
            The true labels.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
        **params
            With scikit-learn's metadata routing enabled, the metadata requested by the scorer.

        Returns
        -------
        float
        """
        given = dict(params) if sample_weight is None else {**params, "sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            given = dict(process_routing(self, "score", **given).scorer.score)
        elif params:
            raise self._unrouted("score", params)
        if self._scores_accuracy and not given.keys() - {"sample_weight"}:
            return float(super().score(X, y, **given))
        X, y, weight = values_in_memory(X, y, given.pop("sample_weight", None), self.scoring)
        given |= {} if weight is None else {"sample_weight": weight}
        return float(self._get_scorer()(self, X, y, **given))

    def _unrouted(self, method: str, params: Iterable[str]) -> ParameterError:
        return ParameterError(
            f"Passing {', '.join(params)} to {type(self).__name__}.{method} is only supported if "
            "enable_metadata_routing=True: call sklearn.set_config(enable_metadata_routing=True)."
        )


def _of_rows(value: Any, rows: NDArray[np.intp], n_rows: int) -> Any:
    """Return the values of some rows, if the scorer's parameter has one value per row."""
    is_per_row = hasattr(value, "__len__") and len(value) == n_rows
    return np.asarray(value)[rows] if is_per_row else value
