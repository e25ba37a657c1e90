"""Ridge regression with alpha selected by cross-validation, computed from sums.

    alpha_ = argmax over alphas of the mean score on the test rows

`cv=None` is leave-one-out (`leave_one_out.py`): one pass for the model, and one for the errors of all alphas. Otherwise
the splits of a splitter are used (`folds.py`, `ridge_errors.py`): one pass computes the sums of each fold, from which
all models and squared errors follow. The final fit is that of Ridge (`least_squares/solver.py`).

The one-standard-error rule selects the largest alpha whose mean score is within one standard error of the best:

    score(alpha) >= score(best) - s / sqrt(m),      s the standard deviation over the m folds (or rows) at the best
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.input.argument_values import is_number, list_in
from summula.core.estimator.input.splits import splits_of
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram
from summula.linear_model.cross_validation.leave_one_out import LeftOutPath, leave_one_out_path
from summula.linear_model.cross_validation.ridge_errors import FROM_SUMS, Predicted, Scoring, cross_validate
from summula.linear_model.least_squares.model import Given, LeastSquaresModel
from summula.linear_model.least_squares.problem import Fit, Problem
from summula.linear_model.least_squares.solver import solve

__all__ = ["CV", "RidgeCV", "callable_value", "scorer_name", "takes_weights", "warn_unweighted"]

Array = NDArray[Any]


def _is_scorer_name(value: Any) -> bool:
    from sklearn.metrics import get_scorer_names

    return isinstance(value, str) and value in get_scorer_names()


scorer_name = Allowed(_is_scorer_name, "the name of a scorer (see sklearn.metrics.get_scorer_names())")
callable_value = Allowed(callable, "a callable")
_splitter = Allowed(
    lambda value: hasattr(value, "split") and hasattr(value, "get_n_splits") and not isinstance(value, str),
    "an object implementing 'split' and 'get_n_splits'",
)
_iterable = Allowed(lambda value: isinstance(value, Iterable) and not isinstance(value, str), "an iterable")
CV = (integer(2), _splitter, _iterable, none)  # allowed values of `cv`


class Choice(NamedTuple):
    """Result of cross-validation.

    `place` is the index of the selected alpha, one number or one per target; `scores` and `errors` (standard errors)
    have shape (n_alphas,) or (n_alphas, n_targets).
    """

    place: NDArray[np.intp]
    scores: Array
    errors: Array
    results: Array | None
    gram: Gram | None


_SCORES = schema.Array("float64", "n_alphas", finite=False) | schema.Array(
    "float64", "n_alphas", "n_targets", finite=False
)


@inherit_docs()
@schema.saved(
    alpha_=schema.Real(0.0) | schema.Array("float64", "n_targets", low=0.0),
    best_score_=schema.Real(finite=False) | schema.Array("float64", "n_targets", finite=False),
    scores_=schema.Maybe(_SCORES),
    standard_errors_=schema.Maybe(_SCORES),
    cv_results_=schema.Maybe(schema.Array("float", "...", finite=False)),
)
class RidgeCV(LeastSquaresModel):
    """Ridge regression with alpha selected by cross-validation, in one or two passes over the rows.

    Parameters
    ----------
    alphas : float or array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        Penalties to try; positive, or non-negative if `cv` is given.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    scoring : str, callable, default=None
        Scorer used for the selection. None is the squared error for `cv=None`, else R2. These two, "r2",
        "neg_mean_squared_error" and "neg_root_mean_squared_error" are computed from sums; any other scikit-learn scorer
        uses predictions for the test rows.
    cv : int, splitter or iterable of (train, test), default=None
        Cross-validation splits; None is leave-one-out, an int the number of folds of consecutive rows. Any scikit-learn
        splitter or list of splits is supported; test sets may overlap or omit rows.
    gcv_mode : {"auto", "svd", "eigen"}, default=None
        For compatibility with scikit-learn; it does not affect the result ("svd" warns for sparse X).
    store_cv_results : bool, default=False
        Whether to store the errors of each row in `cv_results_` (`cv=None` only).
    alpha_per_target : bool, default=False
        Whether to select alpha separately for each target (`cv=None` only).
    select : {"min", "1se"}, default="min"
        Select the alpha with the best mean score, or the largest one within one standard error of it.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        Selected alpha.
    best_score_ : float or ndarray of shape (n_targets,)
        Mean score of the selected alpha.
    scores_, standard_errors_ : ndarray of shape (n_alphas,) or (n_alphas, n_targets)
        Mean score of each alpha and its standard error (NaN if undefined: for a scorer of all rows at once, or a single
        split).
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        With `store_cv_results`: weighted squared leave-one-out errors of the rows, or their predictions if `scoring` is
        given.
    certificate_ : LeastSquaresCertificate
        Penalised sum of squares at `alpha_` and a bound on its suboptimality.

    Notes
    -----
    A row is left out entirely, regardless of its weight, and errors are weighted by the sample weights.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, sections 3.4.1, 7.10.1 and 7.10.2.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import RidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 8))
    >>> y = X[:, 0] + rng.normal(size=60)
    >>> RidgeCV(alphas=[1.0, 3.0, 10.0, 30.0, 100.0], cv=5).fit(X, y).alpha_
    10.0
    >>> RidgeCV(alphas=[1.0, 3.0, 10.0, 30.0, 100.0], cv=5, select="1se").fit(X, y).alpha_
    30.0
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "alphas": (array_like, real(0.0, open_low=True)),
        "fit_intercept": (boolean,),
        "scoring": (none, callable_value, scorer_name),
        "cv": CV,
        "gcv_mode": (one_of("auto", "svd", "eigen"), none),
        "store_cv_results": (boolean,),
        "alpha_per_target": (boolean,),
        "select": (one_of("min", "1se"),),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        select: str = "min",
        max_time: float | None = None,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.select = select
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeCV:
        """Select alpha and fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of the frame X
            Target values.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of the frame X, optional
            Sample weights.
        **params
            `groups`, for splitters that use them. With scikit-learn's metadata routing enabled, the metadata requested
            by scorer and splitter.
        """
        with self._fitting(X, y, sample_weight) as run:
            alphas = self._checked_alphas()
            to_scorer, to_splitter = self._routed(sample_weight, params)
            if "sample_weight" in to_scorer and not run.source.streams:
                to_scorer = {**to_scorer, "sample_weight": run.source.chunk(0, run.source.n_rows).weight}
            try:
                if self.cv is None:
                    self._warn_of_svd(run)
                    choice = self._leave_one_out(run, alphas, to_scorer)
                else:
                    choice = self._cross_validated(run, X, alphas, to_scorer, to_splitter)
                self._solved_at(run, alphas, choice)
            except np.linalg.LinAlgError:
                run.raise_if_not_finite()
                raise DataError(
                    "Some values are so large that their squares overflow; rescale the columns first."
                ) from None
        return self

    # ---------------------------------------------------------------------------------------------------- parameters

    def _warn_of_svd(self, run: Run) -> None:
        """Issue scikit-learn's warning for an option that it will not support for sparse X."""
        if self.gcv_mode == "svd" and run.source.is_sparse:
            warn(
                "The 'svd' mode is not supported for sparse X, we fallback to `gcv_mode='eigen'`. Passing "
                "`gcv_mode='svd'` on sparse X will raise an error in 1.11, use the default or pass `gcv_mode='eigen'` "
                "to suppress this warning.",
                FutureWarning,
            )

    def _checked_alphas(self) -> Array:
        """Return the alphas as floats; error messages are those of scikit-learn."""
        given = list_in("alphas", self.alphas) or np.asarray(self.alphas).ravel().tolist()
        if not given or any(np.ndim(alpha) for alpha in given):
            raise ParameterError(f"alphas must be a non-empty list of numbers; got {self.alphas!r}.")
        for place, alpha in enumerate(given):
            name = f"alphas[{place}]" if len(given) > 1 else "alphas"
            if not is_number(alpha):
                raise ParameterError(f"{name} must be an instance of float, not {type(alpha).__name__}.")
            value = float(alpha)
            if self.cv is None and not value > 0:
                raise ParameterError(f"{name} == {alpha}, must be > 0.0.")
            if not (np.isfinite(value) and value >= 0):
                raise ParameterError(f"{name} == {alpha}, must be >= 0.0{' and finite' if value > 0 else ''}.")
        return np.array(given, dtype=np.float64)

    def _scorer(self) -> Any:
        """Return the scorer, with its metadata requests."""
        from sklearn.metrics import check_scoring, get_scorer

        if self.scoring is None and sklearn.get_config()["enable_metadata_routing"]:
            return get_scorer("r2").set_score_request(sample_weight=True)
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of `fit`, as in scikit-learn."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def _routed(self, sample_weight: Any, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the metadata for the scorer and for the splitter."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **weights, **params)
            return routed.scorer.score, routed.splitter.split
        for name in params.keys() - {"groups"}:
            raise ParameterError(
                f"RidgeCV.fit() supports {name}= only if scikit-learn's metadata routing is enabled: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        if weights and self.cv is not None and not takes_weights(self.scoring, self._scorer()):
            warn_unweighted(self.scoring)
            weights = {}
        return weights, params

    # ------------------------------------------------------------------------------------------------------ choosing

    def _cross_validated(
        self, run: Run, X: Any, alphas: Array, to_scorer: Mapping[str, Any], to_splitter: Mapping[str, Any]
    ) -> Choice:
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ParameterError(f"cv!=None and {name}=True are incompatible; use cv=None or {name}=False.")
        name = "r2" if self.scoring is None else self.scoring
        named = isinstance(name, str) and name in FROM_SUMS and not to_scorer.keys() - {"sample_weight"}
        scorer = None if named else self._scorer()
        scoring = Scoring(name if named else None, scorer, to_scorer)
        curve = cross_validate(run, self._splits(run, X, to_splitter), alphas, self.fit_intercept, scoring)
        m = len(curve.scores)
        scores = curve.scores.mean(axis=0)
        errors = curve.scores.std(axis=0, ddof=1) / np.sqrt(m) if m > 1 else np.full(len(alphas), np.nan)
        return Choice(self._place(alphas, scores, errors), scores, errors, None, curve.gram)

    def _splits(self, run: Run, X: Any, to_splitter: Mapping[str, Any]) -> Iterable[tuple[Any, Any]]:
        """Return the splits as row numbers."""
        source = run.source
        n = source.n_rows
        if source.streams:  # splitters by row number do not need the rows
            rows, y = np.broadcast_to(np.zeros(1), (n, 1)), None
        else:
            y = source.chunk(0, n).y
            assert y is not None
            rows, y = X, y[:, 0] if source.one_target else y
        return splits_of(self.cv, rows, y, **to_splitter)

    def _leave_one_out(self, run: Run, alphas: Array, to_scorer: Mapping[str, Any]) -> Choice:
        name = self.scoring
        from_sums = name is None or (isinstance(name, str) and name in FROM_SUMS)
        from_sums = from_sums and not to_scorer.keys() - {"sample_weight"}
        if self.select == "1se" and not from_sums:
            raise ParameterError(
                f"select='1se' needs scores of rows or folds, but scoring={name!r} scores all rows at once with "
                "cv=None; pass cv, or use the squared error (scoring=None)."
            )
        apart = self.alpha_per_target and run.source.n_targets > 1
        # Errors of rows are needed if the score of several targets is not a multiple of their squared errors.
        mixed = name not in (None, "neg_mean_squared_error") and run.source.n_targets > 1 and not apart
        by_row = self.store_cv_results or mixed or not from_sums
        path = leave_one_out_path(run, alphas, self.fit_intercept, by_row)
        if from_sums:
            scores, errors = path.scores(name, apart), path.standard_errors(name, apart)
        else:
            scores = self._scored(run, path, to_scorer, apart)
            errors = np.full_like(scores, np.nan)
        results = self._kept(run, path) if self.store_cv_results else None
        return Choice(self._place(alphas, scores, errors), scores, errors, results, path.gram)

    def _scored(self, run: Run, path: LeftOutPath, to_scorer: Mapping[str, Any], apart: bool) -> Array:
        """Return the scores of leave-one-out predictions."""
        assert path.errors is not None
        assert path.y is not None
        if "sample_weight" in to_scorer:
            to_scorer = {**to_scorer, "sample_weight": path.weight}
        scorer, y = self._scorer(), path.y
        predicted = y[:, :, None] - path.errors
        n_alphas, given = predicted.shape[2], Predicted()
        if apart:
            columns = range(y.shape[1])
            judged = [
                [scorer(given, predicted[:, j, a], y[:, j], **to_scorer) for j in columns] for a in range(n_alphas)
            ]
        elif run.source.one_target:
            judged = [scorer(given, predicted[:, 0, a], y[:, 0], **to_scorer) for a in range(n_alphas)]
        else:
            judged = [scorer(given, predicted[:, :, a], y, **to_scorer) for a in range(n_alphas)]
        return np.array(judged, dtype=np.float64)

    def _kept(self, run: Run, path: LeftOutPath) -> Array:
        """Return errors or predictions of each row, in scikit-learn's shape and dtype."""
        assert path.errors is not None
        assert path.y is not None
        if self.scoring is None:
            w = 1.0 if path.weight is None else path.weight[:, None, None]
            kept = w * path.errors**2
        else:
            kept = path.y[:, :, None] - path.errors
        return (kept[:, 0] if run.source.one_target else kept).astype(run.source.dtype)

    def _place(self, alphas: Array, scores: Array, errors: Array) -> NDArray[np.intp]:
        """Return the index of the selected alpha, by the scores of all targets or of each."""
        if np.isnan(scores).all():
            warn(
                "All mean scores are NaN, so the first alpha was selected; R2 needs two rows in every test set: use "
                "larger ones, or scoring='neg_mean_squared_error'.",
                UndefinedMetricWarning,
            )
            return np.zeros(scores.shape[1:], np.intp)
        best = np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=0)
        if self.select == "min":
            return np.asarray(best)
        if np.isnan(errors).all():
            raise ParameterError("select='1se' needs at least two splits, to estimate the standard error.")
        if scores.ndim == 2:
            each = [self._place(alphas, column, error) for column, error in zip(scores.T, errors.T, strict=True)]
            return np.array(each)
        near = np.flatnonzero(scores >= scores[best] - errors[best])
        return np.asarray(near[np.argmax(alphas[near])])

    # ------------------------------------------------------------------------------------------------------- naming

    def _solved_at(self, run: Run, alphas: Array, choice: Choice) -> None:
        """Fit with the selected alphas and set the fitted attributes."""
        source = run.source
        given = Given(source.dtype.name, source.one_target, source.weighted, source.target_names)
        chosen = alphas[choice.place]
        alpha = np.broadcast_to(chosen, (source.n_targets,)).copy()
        problem = Problem(self.fit_intercept, alpha, False, self._returned_in(source.dtype))

        def name(fit: Fit) -> None:
            self._name_results(given, problem, replace(fit, sums=None))
            if source.n_targets == 1:
                self.coef_ = self.coef_.ravel()  # also for a column vector y, as in scikit-learn
            self.alpha_ = chosen if chosen.ndim else float(chosen)
            score = np.take_along_axis(choice.scores, choice.place[None, ...], axis=0)[0]
            column = self.alpha_per_target and not source.one_target  # one target of two dimensions, as in scikit-learn
            self.best_score_ = np.atleast_1d(score) if chosen.ndim or column else float(score)
            self.scores_, self.standard_errors_ = choice.scores, choice.errors
            self.__dict__.pop("cv_results_", None)
            if choice.results is not None:
                self.cv_results_ = choice.results

        fit = solve(run, problem, lambda fit: run.offer(lambda: name(fit)), choice.gram)
        self._check_finite(run, fit)
        name(fit)

    def _check_summary_applies(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        raise ParameterError(
            f"summary() needs an unpenalised fit: RidgeCV selected alpha={self.alpha_} on the same rows, so the usual "
            "standard errors are not valid; use LinearRegression, or bootstrap."
        )

    def _not_a_sum(self) -> Any:
        raise AttributeError("RidgeCV selects alpha in another pass over all rows, so it cannot be updated or merged.")

    partial_fit = property(_not_a_sum)
    forget = property(_not_a_sum)
    merge = property(_not_a_sum)


def warn_unweighted(scoring: Any) -> None:
    """Warn that a scorer ignores the sample weights."""
    warn(
        f"scoring={scoring!r} does not support sample_weight, so test rows are not weighted; "
        "use a scorer with a sample_weight argument to weight them.",
        UserWarning,
    )


def takes_weights(scoring: Any, scorer: Any) -> bool:
    """Whether a scorer supports sample weights, determined as in scikit-learn's grid search."""
    if scoring is None:
        return True
    accepts = getattr(scorer, "_accept_sample_weight", None)
    return bool(accepts()) if accepts is not None else "sample_weight" in inspect.signature(scorer).parameters
