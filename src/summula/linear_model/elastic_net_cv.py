"""Lasso and elastic net with alpha selected by cross-validation along warm-started paths.

    alpha_ = argmin over alphas of the mean, over splits, of the mean squared error on the test rows

If Gram matrices are used (files, clusters, more rows than columns), one pass sums the products of each fold
(`folds.py`); training sums are the total minus those of a fold, and test errors are computed from the sums of the fold:
about an origin (o, p), with u = (-v, 1), P the products and t the totals of the fold, and beta = b - p + o'v,

    sum w (y - x'v - b)^2 = u'P u - 2 beta u't + beta^2 W                                                       (1)

Otherwise each split solves its path on its rows, several splits in parallel.

The one-standard-error rule selects the largest alpha whose mean error is within one standard error of the smallest:
se = std of the errors of the splits / sqrt(number of splits).                                                  (2)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.callback import with_callbacks

from summula.core.data.layout.blocks import aligned, product
from summula.core.docstrings import inherit_docs
from summula.core.engine.engine import local_engine
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_number, list_in
from summula.core.estimator.input.splits import splits_of
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.regressor import check_one_target
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram
from summula.linear_model.cross_validation.folds import batches_of, combined, grams_of, most_groups
from summula.linear_model.elastic_net import L1Model
from summula.linear_model.l1.column_quadratic import ColumnQuadratic
from summula.linear_model.l1.paths import alpha_grid, enet_path, largest_alpha, lasso_path
from summula.linear_model.l1.problem import (
    Centred,
    columns_of,
    gram_quadratic,
    quadratics_of,
    raise_if_sums_overflow,
    use_gram,
)
from summula.linear_model.ridge_cv import CV
from summula.optimize.solvers.l1_path import l1_path
from summula.penalties import Penalty

__all__ = ["ElasticNetCV", "LassoCV"]

Array = NDArray[Any]


class Job(NamedTuple):
    """One path: a split and an l1_ratio."""

    split: int
    ratio: float
    alphas: Array


class _Folds:
    """The splits of a fit: compute the path on the training rows and evaluate it on the test rows."""

    def __init__(self, run: Run, fit_intercept: bool, splits: Iterable[tuple[Any, Any]]) -> None:
        self.fit_intercept, source = fit_intercept, run.source
        self.splits = [(np.asarray(train), np.asarray(test)) for train, test in splits]
        if not self.splits:
            raise DataError("The splitter returns no splits; cross-validation needs at least one.")
        self.d = source.n_features
        self.grams: list[tuple[Gram, Gram]] | None = None
        if use_gram(source):
            origin = run.origin()
            batches = batches_of(self.splits, source.n_rows, most_groups(self.d + 1))
            sums, total = grams_of(run, batches, origin)
            raise_if_sums_overflow(total, source)
            self.whole = gram_quadratic(total if fit_intercept else _about_zero(total), self.d, fit_intercept)
            self.grams = [
                (combined(groups, batch.train[k], total), combined(groups, batch.test[k], total))
                for batch, groups in sums
                for k in range(len(batch.train))
            ]
        else:
            self.whole = quadratics_of(run, fit_intercept)
            chunk = source.chunk(0, source.n_rows)
            assert chunk.y is not None
            self.X = columns_of(source, fit_intercept)[0]
            self.y, self.weight = chunk.y[:, 0], chunk.weight

    def errors(self, job: Job, positive: bool, tolerance: float, max_sweeps: int) -> Array:
        """Return the mean squared error of each alpha on the test rows of a split."""
        self._raise_if_no_weight(job.split)
        one, test = self._train(job.split)
        penalties = [Penalty.of_ratio(alpha, job.ratio, positive) for alpha in job.alphas]
        path = l1_path(one.quadratic, penalties, tolerance=tolerance, max_sweeps=max_sweeps)
        V = np.stack([solution.v for solution in path], axis=1)
        lead = one.lead(V) if self.fit_intercept else np.zeros(V.shape[1])
        if isinstance(test, Gram):
            around = test if self.fit_intercept else _about_zero(test)
            return _errors_from_sums(around, V, lead)
        residual = self.y[test][:, None] - (self._predicted(test, V) + lead)
        w = np.ones(len(test)) if self.weight is None else self.weight[test]
        return np.asarray(w @ residual**2 / w.sum())

    def _raise_if_no_weight(self, split: int) -> None:
        """Raise DataError if all training rows, or all test rows, of a split have weight 0."""
        if self.grams is not None:
            weights = [gram.weight for gram in self.grams[split]]
        elif self.weight is not None:
            weights = [float(self.weight[rows].max(initial=0.0)) for rows in self.splits[split]]
        else:
            return
        for kind, weight in zip(("training", "test"), weights, strict=True):
            if not weight > 0:
                raise DataError(f"In split {split} every {kind} row has weight 0; pass splits with positive weights.")

    def _predicted(self, rows: Any, V: Array) -> Array:
        """Return X V for some rows."""
        return product(aligned(self.X[rows]) if isinstance(self.X, np.ndarray) else self.X[rows], V)

    def _train(self, split: int) -> tuple[Centred, Any]:
        if self.grams is not None:
            train, test = self.grams[split]
            train = train if self.fit_intercept else _about_zero(train)
            return gram_quadratic(train, self.d, self.fit_intercept)[0], test
        rows, left_out = self.splits[split]
        X = self.X[rows]
        weight = None if self.weight is None else self.weight[rows]
        quadratic = ColumnQuadratic(X.tocsc() if hasattr(X, "indptr") else X, self.y[rows], weight, self.fit_intercept)
        return Centred(quadratic, np.zeros(self.d), quadratic.mean, 0.0, quadratic.mean_y, np.zeros(0)), left_out


def _about_zero(gram: Gram) -> Gram:
    return gram.recentre(np.zeros(len(gram.origin)))


def _errors_from_sums(test: Gram, V: Array, lead: Array) -> Array:
    """Compute (1), divided by the sum of weights; intercepts are about the origin of the sums."""
    U = np.vstack([-V, np.ones((1, V.shape[1]))])
    squares = (U * (test.products @ U)).sum(axis=0) - 2 * lead * (test.total @ U) + lead**2 * test.weight
    return np.asarray(np.maximum(squares, 0.0) / test.weight)


@inherit_docs()
@schema.saved(
    alpha_=schema.Real(0.0),
    l1_ratio_=schema.Real(0.0, 1.0),
    alphas_=schema.Array("float64", "n_alphas") | schema.Array("float64", "n_ratios", "n_alphas"),
    mse_path_=schema.Array("float64", "...", finite=False),
    standard_errors_=schema.Array("float64", "n_alphas", finite=False),
)
class ElasticNetCV(L1Model):
    """Elastic net with alpha (and l1_ratio) selected by cross-validation.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        Weights of the L1 penalty to try; positive unless alphas are given.
    eps : float, default=1e-3
        Ratio of the smallest to the largest alpha.
    alphas : int or array-like, default=100
        Number of alphas to try, or the alphas.
    precompute, copy_X, selection, random_state, verbose
        For compatibility with scikit-learn; they do not affect the result.
    max_iter : int, default=1000
        Maximum number of sweeps of coordinate descent per alpha.
    tol : float, default=1e-4
        Tolerance: the duality gap is at most tol ||y||^2 / n for the paths of the splits, and 1e-6 times that for the
        final model.
    cv : int, splitter or iterable of (train, test), default=None
        Cross-validation splits; by default 5 folds of consecutive rows.
    select : {"min", "1se"}, default="min"
        Select the alpha with the smallest mean error, or the largest one within one standard error of it.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        Selected values.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratio, n_alphas)
        Alphas tried.
    mse_path_ : ndarray of shape (n_alphas, n_splits) or (n_l1_ratio, n_alphas, n_splits)
        Mean squared errors on the test rows.
    coef_, intercept_, dual_gap_, n_iter_, certificate_
        Of the final model, fitted on all rows, as in `ElasticNet`.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import ElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10))
    >>> model = ElasticNetCV(cv=5).fit(X, X[:, 0] + rng.normal(size=100))
    >>> bool(abs(model.coef_[0]) > 0.5)
    True
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "l1_ratio": (real(0.0, 1.0), array_like),
        "eps": (real(0.0, open_low=True),),
        "alphas": (integer(1), array_like),
        "fit_intercept": (boolean,),
        "precompute": (one_of("auto"), boolean, array_like),
        "max_iter": (integer(1),),
        "tol": (real(0.0),),
        "cv": CV,
        "copy_X": (boolean,),
        "verbose": (integer(0), boolean),
        "n_jobs": (none, integer()),
        "positive": (boolean,),
        "random_state": (random_state,),
        "selection": (one_of("cyclic", "random"),),
        "select": (one_of("min", "1se"),),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        *,
        l1_ratio: float | ArrayLike = 0.5,
        eps: float = 1e-3,
        alphas: int | ArrayLike = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        select: str = "min",
        max_time: float | None = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.select = select
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Select alpha and fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Target values.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; only their ratios matter. They are also used for the errors.
        groups : array-like of shape (n_samples,), optional
            Groups, for splitters that use them.

        Returns
        -------
        self
        """
        with self._fitting(X, y, sample_weight) as run, one_blas_thread():
            if run.source.n_targets != 1:
                raise DataError(f"For multi-task outputs, use MultiTask models: {type(self).__name__} has one target.")
            check_one_target(run, y)
            folds = _Folds(run, self.fit_intercept, self._splits(run, X, groups))
            ratios = [float(ratio) for ratio in np.atleast_1d(self._ratio())]
            grids = [self._grid(folds.whole, ratio) for ratio in ratios]
            jobs = [
                Job(k, ratio, grid) for ratio, grid in zip(ratios, grids, strict=True) for k in range(len(folds.splits))
            ]
            engine = local_engine()
            errors = []
            for one in engine.map_ordered(
                lambda job: folds.errors(job, self.positive, 2 * self.tol, self.max_iter), jobs, n_jobs=self.n_jobs
            ):
                errors.append(one)
                run.step()
            self._choose(ratios, grids, np.reshape(errors, (len(ratios), len(folds.splits), -1)))
            self._solved(run, folds.whole, self.alpha_, self.l1_ratio_)
            if np.ndim(self.intercept_):
                self.intercept_ = self.intercept_[0]  # a number also for y of shape (n, 1)
        return self

    def _ratio(self) -> Any:
        return self.l1_ratio

    def _grid(self, whole: list[Centred], ratio: float) -> Array:
        alphas: Any = self.alphas
        if integer(1).accepts(alphas):
            return alpha_grid(largest_alpha(whole, ratio, self.positive), self.eps, int(alphas))
        for place, alpha in enumerate(list_in("alphas", alphas)):
            if not is_number(alpha):
                raise ParameterError(f"alphas[{place}] must be an instance of float, not {type(alpha).__name__}.")
        grid = np.asarray(alphas, np.float64)
        if grid.ndim != 1 or not len(grid):
            raise ParameterError(f"alphas must be a non-empty list of numbers; got {alphas!r}.")
        for place, alpha in enumerate(grid):
            if not alpha >= 0:
                raise ParameterError(f"alphas[{place}] == {alpha:g}, must be >= 0.0.")
        return np.sort(grid)[::-1]

    def _splits(self, run: Run, X: Any, groups: Any) -> Iterable[tuple[Any, Any]]:
        n = run.source.n_rows
        y = None if run.source.streams else run.source.chunk(0, n).y
        rows: Any = np.empty((n, 0)) if run.source.streams or not hasattr(X, "shape") else X
        return splits_of(self.cv, rows, None if y is None else y[:, 0], groups=groups)

    def _choose(self, ratios: list[float], grids: list[Array], errors: Array) -> None:
        """Select alpha and l1_ratio by their mean errors; `errors` has shape (ratios, splits, alphas)."""
        means = errors.mean(axis=1)
        best = int(means.min(axis=1).argmin())
        place = int(means[best].argmin())
        m = errors.shape[1]
        spread = errors[best].std(axis=0, ddof=1) / np.sqrt(m) if m > 1 else np.zeros(errors.shape[2])
        if self.select == "1se":
            place = int(np.flatnonzero(means[best] <= means[best, place] + spread[place])[0])
        self.l1_ratio_, self.alpha_ = ratios[best], float(grids[best][place])
        alphas = np.asarray(grids)
        self.alphas_ = alphas[0] if len(ratios) == 1 or np.ndim(self.alphas) != 0 else alphas
        self.mse_path_ = np.squeeze(np.moveaxis(errors, 2, 1))
        self.standard_errors_ = spread

    path = staticmethod(lambda *given, **options: enet_path(*given, **options))


@inherit_docs()
@schema.saved()
class LassoCV(ElasticNetCV):
    """Lasso with alpha selected by cross-validation.

    Parameters
    ----------
    eps, alphas, fit_intercept, precompute, max_iter, tol, copy_X, cv, verbose, n_jobs, positive
    random_state, selection, select, max_time
        As in `ElasticNetCV`.

    Attributes
    ----------
    alpha_, alphas_, mse_path_, coef_, intercept_, dual_gap_, n_iter_, certificate_
        As in `ElasticNetCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import LassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> np.flatnonzero(LassoCV(cv=5, select="1se").fit(X, y).coef_).tolist()
    [0]
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        name: allowed for name, allowed in ElasticNetCV._parameters.items() if name != "l1_ratio"
    }

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: int | ArrayLike = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        select: str = "min",
        max_time: float | None = None,
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.select = select
        self.max_time = max_time

    def _ratio(self) -> Any:
        return 1.0

    path = staticmethod(lambda *given, **options: lasso_path(*given, **options))
