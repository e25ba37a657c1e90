"""Generalised linear models: y given x has an exponential family distribution with a linear predictor b + v'x.

    min  1/(2 W) sum_i w_i d(y_i, mu_i) + alpha rho |v|_1 + alpha (1 - rho)/2 ||v||^2                           (1)

with link(mu_i) = b + v'x_i + offset_i, W = sum_i w_i, and rho = `l1_ratio`. d is the unit deviance of the family, so
without a penalty this is maximum likelihood. Solved, times W, in `glm/solver.py`; with an L1 penalty, in
`l1/likelihood.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import (
    Allowed,
    array_like,
    boolean,
    check_parameters,
    integer,
    none,
    one_of,
    real,
)
from summula.core.estimator.regressor import Regressor, check_one_target
from summula.core.estimator.rows import RowFunction, composed
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.linear_model.base.factor_columns import FactorTerms
from summula.linear_model.base.formula import TEXT, FormulaModel
from summula.linear_model.glm.model import relative_gap
from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.glm.offsets import rows_and_offset
from summula.linear_model.glm.statistics.diagnostics import DiagnosedGlm
from summula.linear_model.glm.statistics.quality import Quality, d2_of, quality_of
from summula.linear_model.glm.sums import WeightTotal
from summula.losses import loss_of
from summula.penalties import Penalty
from summula.stats.exponential_family import Family
from summula.stats.families import Gamma, Poisson, Tweedie, family_named
from summula.stats.links import Link, link_named

__all__ = ["GammaRegressor", "GeneralizedLinearRegressor", "PoissonRegressor", "TweedieRegressor"]

Array = NDArray[Any]

_SOLVERS = ("auto", "lbfgs", "newton-cholesky")
_FAMILIES = ["normal", "bernoulli", "binomial", "poisson", "gamma", "inverse_gaussian", "tweedie", "negative_binomial"]
_LINKS = ["identity", "log", "logit", "probit", "cloglog", "inverse", "inverse_squared"]


def _one_score(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_scores"] == 1 else f"coef_ belongs to one score, but there are {sizes['n_scores']}"


@schema.state(
    _one_score,
    coef_=schema.Array("float", "n_terms"),
    intercept_=schema.Real(),
    n_iter_=schema.Integer(0),
    _shifted=schema.Maybe(schema.Flag()),
)
class _GlmRegressor(FormulaModel, FactorTerms, DiagnosedGlm, Regressor):
    """Base class of generalised linear regressors with a family and a link."""

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "alpha": (real(0.0),),
        "fit_intercept": (boolean,),
        "solver": (one_of(*_SOLVERS),),
        "max_iter": (integer(1),),
        "tol": (real(0.0, open_low=True),),
        "warm_start": (boolean,),
        "verbose": (boolean, integer(0)),
        "max_time": (none, real(0.0)),
        "formula": (none, TEXT),
    }

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets, in the support of the family; omitted if the formula names the target.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        offset : array-like of shape (n_samples,), float, or name of a column of X, optional
            Offset, added to the linear predictor.
        exposure : array-like of shape (n_samples,), float, or name of a column of X, optional
            Exposure (time, area, number of policies) to which the mean is proportional, for a log link; equivalent to
            the offset log(exposure).

        Returns
        -------
        self
        """
        check_parameters(self, self._parameters)
        family, link = self._family_and_link()
        if exposure is not None and link.name != "log":
            raise ParameterError(
                f"An exposure multiplies the mean, which needs the log link, not {link.name!r}; pass an offset instead."
            )
        named = (X, y, sample_weight, offset, exposure)
        design, X, y, sample_weight, offset, exposure = self._learn_formula(*named)
        rows, total = rows_and_offset(X, offset, exposure)
        with self._fitting(rows, y, sample_weight, offset=total) as run:
            self._keep_formula(design)
            check_one_target(run, y)
            self._note_shift(*named[3:])
            self._name_terms(run)
            problem = self._problem(run, family, link)
            self._solved(run, problem, (X, y, sample_weight, offset, exposure))
            self._quality = quality_of(run, self._fit, problem, family, link)
        return self

    def _problem(self, run: Run, family: Family, link: Link) -> GlmProblem:
        source = run.source
        weight = run.sum(WeightTotal, None, "weights").weight if source.weighted else float(source.n_rows)
        low, high = self._limits(source.n_features)
        ratio = float(getattr(self, "l1_ratio", 0.0))
        if low is not None and ratio > 0 and self.alpha > 0:
            raise ParameterError("Bounds cannot be combined with an L1 penalty; use l1_ratio=0, or no bounds.")
        return GlmProblem(
            loss_of(family, link),
            Penalty.of_ratio(self.alpha * weight, ratio),
            self.fit_intercept,
            low=low,
            high=high,
            tolerance=relative_gap(self.tol),
            max_steps=self.max_iter,
            link=link,
            family=family,
        )

    def _limits(self, d: int) -> tuple[Array | None, Array | None]:
        return None, None

    def _name(self, fit: GlmFit, dtype: str) -> None:
        self.coef_ = fit.coef[0].astype(dtype)
        self.intercept_ = fit.intercept.astype(dtype)[0] if self.fit_intercept else 0.0
        self.n_iter_ = fit.n_iter
        # Placeholder for an interrupted fit.
        unknown = float("nan")
        self._quality = Quality(2 * fit.loss, unknown, unknown, unknown, unknown, 0, fit.weight, unknown)

    # ------------------------------------------------------------------------------------------------------ predicting

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """Predict the mean.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Rows to predict for.
        offset, exposure : optional
            As in `fit`; arrays and frames only.

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_is_fitted(self)
        if offset is None and exposure is None:
            return self._by_row(X, *self._predictor_and_mean(None))
        rows, shift = rows_and_offset(X, offset, exposure)
        if not isinstance(shift, np.ndarray):
            raise DataError("Predictions with an offset need the rows in memory; apply the offset afterwards.")
        return self._by_row(rows, *self._predictor_and_mean(shift))

    def _predictor_and_mean(self, shift: Array | None) -> tuple[RowFunction, Callable[[Array], Array]]:
        """Return the functions that compute the linear predictors of a chunk, and the means from them."""
        predictor = functools.partial(_predictors, self._score_function(), shift)
        return predictor, functools.partial(_means, self._family_and_link()[1])

    def _row_function(self) -> RowFunction:
        predictor, mean = self._predictor_and_mean(None)
        return composed(mean, predictor)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> float:
        """Return D2, the fraction of the null deviance explained by the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
        sample_weight, offset, exposure : as in `fit`

        Returns
        -------
        float
        """
        check_is_fitted(self)
        family, link = self._family_and_link()
        X, total = rows_and_offset(X, offset, exposure)
        source = self._source(X, y, sample_weight, offset=total)
        run = Run(self, source, quiet=True)
        return d2_of(run, self._at(loss_of(family, link)), family, link)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = _support(self._family_or_none()) > 0
        return tags

    def _family_or_none(self) -> Family | None:
        try:
            return self._family_and_link()[0]
        except ValueError:
            return None


def _predictors(score: RowFunction, shift: Array | None, chunk: Chunk) -> Array:
    """Return the linear predictors of the rows of a chunk plus their entries of `shift`."""
    eta = score(chunk)[:, 0]
    return eta if shift is None else eta + shift[chunk.start : chunk.stop].astype(eta.dtype, copy=False)


def _means(link: Link, eta: Array) -> Array:
    """Return the means for linear predictors."""
    return np.asarray(link.inverse(eta)).astype(eta.dtype, copy=False)


def _support(family: Family | None) -> int:
    """Return 1 if targets must be positive (scikit-learn's checks then generate such targets)."""
    return int(family is not None and family.mean_range[0] >= 0 and family.mean_range[1] > 1)


@schema.saved()
class GeneralizedLinearRegressor(_GlmRegressor):
    """Generalised linear model with any family and link, offsets, sample weights, penalties and bounds.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the target: "normal", "binomial" (targets between 0 and 1), "poisson", "gamma",
        "inverse_gaussian", "tweedie", "negative_binomial", or an object of `summula.stats`, such as
        `Tweedie(power=1.7)`.
    link : str or Link, default="auto"
        Link function: "identity", "log", "logit", "probit", "cloglog", "inverse", "inverse_squared". "auto" is identity
        for normal, logit for binomial, log for the others (identity for Tweedie powers <= 0).
    alpha : float, default=0.0
        Strength of the penalty, relative to the mean of half the deviance; the intercept is not penalised.
    l1_ratio : float, default=0.0
        Weight of the L1 penalty, which gives sparse coefficients: 1 is alpha |v|_1, 0 is alpha ||v||^2 / 2. Cannot be
        combined with bounds.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    lower, upper : float or array-like of shape (n_features,), optional
        Bounds on the coefficients; `lower=0` constrains them to be non-negative.
    solver : {"auto", "lbfgs", "newton-cholesky"}, default="auto"
        For compatibility with scikit-learn; it does not affect the result.
    max_iter : int, default=100
        Maximum number of steps of the solver.
    tol : float, default=1e-6
        Tolerance: the relative suboptimality of the objective is at most about tol^2 / 100.
    warm_start : bool, default=False
        Whether to start from the solution of the previous fit.
    verbose : int, default=0
        Ignored; use scikit-learn's callbacks for progress reports.
    max_time : float, optional
        Time limit in seconds, after which the best model so far is kept.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Number of steps over all rows.
    deviance_, null_deviance_, pearson_chi2_, dispersion_, log_likelihood_ : float
        Statistics of the fit.
    certificate_ : GlmCertificate
        Half the deviance plus the penalty, summed over rows, and a bound on its suboptimality.
    factor_levels_ : dict of str to tuple
        Levels of each categorical column; the first is the reference.
    coef_names_ : tuple of str
        Names of the coefficients: numeric columns, then "column[level]" for the levels of factors.
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models (1989).

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import GeneralizedLinearRegressor
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> claims, years = [1, 1, 6, 12], [2.0, 1.0, 2.0, 2.0]
    >>> model = GeneralizedLinearRegressor(family="poisson").fit(X, claims, exposure=years)
    >>> model.predict(X, exposure=years).round(1)
    array([ 1.1,  1.2,  5.4, 12.3])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **_GlmRegressor._parameters,
        "family": (one_of(*_FAMILIES), Allowed(lambda value: isinstance(value, Family), "a Family of summula.stats")),
        "link": (one_of("auto", *_LINKS), Allowed(lambda value: isinstance(value, Link), "a Link of summula.stats")),
        "l1_ratio": (real(0.0, 1.0),),
        "lower": (none, real(), array_like),
        "upper": (none, real(), array_like),
    }

    def __init__(
        self,
        family: Any = "normal",
        link: Any = "auto",
        *,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        lower: Any = None,
        upper: Any = None,
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
        max_time: float | None = None,
        formula: str | None = None,
    ) -> None:
        self.family = family
        self.link = link
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.lower = lower
        self.upper = upper
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time
        self.formula = formula

    def _family_and_link(self) -> tuple[Family, Link]:
        family = family_named(self.family)
        if family.name == "multinomial":
            raise ParameterError("The multinomial family is not supported: use LogisticRegression.")
        automatic = isinstance(self.link, str) and self.link == "auto"
        return family, link_named(family.default_link if automatic else self.link)

    def _limits(self, d: int) -> tuple[Array | None, Array | None]:
        if self.lower is None and self.upper is None:
            return None, None
        low, high = (_bound(name, value, d) for name, value in (("lower", self.lower), ("upper", self.upper)))
        wrong = np.flatnonzero(low > high)
        if len(wrong):
            j = int(wrong[0])
            raise ParameterError(f"The bounds of column {j} conflict: lower is {low[j]:g} and upper is {high[j]:g}.")
        return low, high


def _bound(name: str, value: Any, d: int) -> Array:
    if value is None:
        return np.full(d, -np.inf if name == "lower" else np.inf)
    bound = np.asarray(value, dtype=np.float64)
    if bound.ndim and bound.shape != (d,):
        raise ParameterError(f"{name} has shape {bound.shape} but X has {d} columns; pass a number or one per column.")
    if np.isnan(bound).any():
        raise ParameterError(f"{name} contains NaN; use -inf or inf for no bound.")
    return np.broadcast_to(bound, (d,)).copy()


@schema.saved()
class PoissonRegressor(_GlmRegressor):
    """Poisson regression with a log link, as in scikit-learn.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty alpha ||v||^2 / 2, relative to the mean of half the deviance; the intercept is not
        penalised.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"auto", "lbfgs", "newton-cholesky"}, default="auto"
        For compatibility with scikit-learn; it does not affect the result.
    max_iter : int, default=100
        Maximum number of steps of the solver.
    tol : float, default=1e-4
        Tolerance: the relative suboptimality of the objective is at most about tol^2 / 100.
    warm_start : bool, default=False
        Whether to start from the solution of the previous fit.
    verbose : int, default=0
        Ignored; use scikit-learn's callbacks for progress reports.
    max_time : float, optional
        Time limit in seconds, after which the best model so far is kept.

    Attributes
    ----------
    coef_, intercept_, n_iter_, certificate_, deviance_, null_deviance_, pearson_chi2_, dispersion_, log_likelihood_
        As in `GeneralizedLinearRegressor`.

    Examples
    --------
    >>> from summula.linear_model import PoissonRegressor
    >>> model = PoissonRegressor(alpha=0).fit([[0.0], [1.0], [2.0]], [1, 2, 4])
    >>> model.predict([[3.0]]).round(6)
    array([8.])
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        verbose: int = 0,
        max_time: float | None = None,
        formula: str | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time
        self.formula = formula

    def _family_and_link(self) -> tuple[Family, Link]:
        return Poisson(), link_named("log")


@schema.saved()
class GammaRegressor(PoissonRegressor):
    """Gamma regression with a log link, as in scikit-learn, for positive targets with constant relative variance.

    Parameters and attributes are those of `PoissonRegressor`.

    Examples
    --------
    >>> from summula.linear_model import GammaRegressor
    >>> model = GammaRegressor(alpha=0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6)
    array([8.])
    """

    def _family_and_link(self) -> tuple[Family, Link]:
        return Gamma(), link_named("log")


@schema.saved()
class TweedieRegressor(_GlmRegressor):
    """Regression with a Tweedie family, variance mu^power, as in scikit-learn.

    Parameters
    ----------
    power : float, default=0.0
        Power of the variance function: 0 normal, 1 Poisson, between 1 and 2 compound Poisson-gamma (with a mass at
        zero), 2 gamma, 3 inverse Gaussian.
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose, max_time
        As in `PoissonRegressor`.
    link : {"auto", "identity", "log"}, default="auto"
        Link function; "auto" is identity for powers <= 0, else log.

    Attributes
    ----------
    coef_, intercept_, n_iter_, certificate_, deviance_, null_deviance_, pearson_chi2_, dispersion_, log_likelihood_
        As in `GeneralizedLinearRegressor`.

    Examples
    --------
    >>> from summula.linear_model import TweedieRegressor
    >>> model = TweedieRegressor(power=1.5, alpha=0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6)
    array([8.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **_GlmRegressor._parameters,
        "power": (real(),),
        "link": (one_of("auto", "identity", "log"),),
    }

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        link: str = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        verbose: int = 0,
        max_time: float | None = None,
        formula: str | None = None,
    ) -> None:
        self.power = power
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.link = link
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time
        self.formula = formula

    def _family_and_link(self) -> tuple[Family, Link]:
        family = Tweedie(float(self.power))
        return family, link_named(family.default_link if self.link == "auto" else self.link)
