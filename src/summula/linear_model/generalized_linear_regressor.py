"""Generalised linear models: y given x has an exponential family distribution with a linear predictor b + v'x.

    min  1/(2 W) sum_i w_i d(y_i, mu_i) + alpha rho |v|_1 + alpha (1 - rho)/2 ||v||^2                           (1)

with link(mu_i) = b + v'x_i + offset_i, W = sum_i w_i, and rho = `l1_ratio`. d is the unit deviance of the family, so
without a penalty this is maximum likelihood. Solved, times W, in `glm/solver.py`; with an L1 penalty, in
`l1/likelihood.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, none, one_of, real
from summula.core.model_files import schema
from summula.linear_model.glm.regressor import GlmRegressor
from summula.stats.families import Gamma, Poisson, Tweedie, family_named
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link, link_named

__all__ = ["GammaRegressor", "GeneralizedLinearRegressor", "PoissonRegressor", "TweedieRegressor"]

Array = NDArray[Any]

_FAMILIES = ["normal", "bernoulli", "binomial", "poisson", "gamma", "inverse_gaussian", "tweedie", "negative_binomial"]
_LINKS = ["identity", "log", "logit", "probit", "cloglog", "loglog", "cauchit", "inverse", "inverse_squared", "sqrt"]


@inherit_docs()
@schema.saved()
class GeneralizedLinearRegressor(GlmRegressor):
    """Generalised linear model with any family and link, offsets, sample weights, penalties and bounds.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the target: "normal", "binomial" (targets between 0 and 1), "poisson", "gamma",
        "inverse_gaussian", "tweedie", "negative_binomial", or an object of `summula.stats`, such as
        `Tweedie(power=1.7)`.
    link : str or Link, default="auto"
        Link function: "identity", "log", "logit", "probit", "cloglog", "loglog", "cauchit", "inverse",
        "inverse_squared", "sqrt". "auto" is identity for normal, logit for binomial, log for the others (identity for
        Tweedie powers <= 0).
    alpha : float, default=0.0
        Strength of the penalty, relative to the mean of half the deviance; the intercept is not penalised.
    l1_ratio : float, default=0.0
        Weight of the L1 penalty, which gives sparse coefficients: 1 is alpha |v|_1, 0 is alpha ||v||^2 / 2. Cannot be
        combined with bounds.
    lower, upper : float or array-like of shape (n_features,), optional
        Bounds on the coefficients; `lower=0` constrains them to be non-negative.
    tol : float, default=1e-6
        Tolerance: the relative suboptimality of the objective is at most about tol^2 / 100.

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
        **GlmRegressor._parameters,
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
    bound = numbers_in(name, value)
    if bound.ndim and bound.shape != (d,):
        raise ParameterError(f"{name} has shape {bound.shape} but X has {d} columns; pass a number or one per column.")
    if np.isnan(bound).any():
        raise ParameterError(f"{name} contains NaN; use -inf or inf for no bound.")
    return np.broadcast_to(bound, (d,)).copy()


@inherit_docs()
@schema.saved()
class PoissonRegressor(GlmRegressor):
    """Poisson regression with a log link, as in scikit-learn.

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


@inherit_docs()
@schema.saved()
class GammaRegressor(PoissonRegressor):
    """Gamma regression with a log link, as in scikit-learn, for positive targets with constant relative variance.

    Examples
    --------
    >>> from summula.linear_model import GammaRegressor
    >>> model = GammaRegressor(alpha=0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6)
    array([8.])
    """

    def _family_and_link(self) -> tuple[Family, Link]:
        return Gamma(), link_named("log")


@inherit_docs()
@schema.saved()
class TweedieRegressor(GlmRegressor):
    """Regression with a Tweedie family, variance mu^power, as in scikit-learn.

    Parameters
    ----------
    power : float, default=0.0
        Power of the variance function: 0 normal, 1 Poisson, between 1 and 2 compound Poisson-gamma (with a mass at
        zero), 2 gamma, 3 inverse Gaussian.
    link : {"auto", "identity", "log"}, default="auto"
        Link function; "auto" is identity for powers <= 0, else log.

    Examples
    --------
    >>> from summula.linear_model import TweedieRegressor
    >>> model = TweedieRegressor(power=1.5, alpha=0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6)
    array([8.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **GlmRegressor._parameters,
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
