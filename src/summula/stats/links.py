"""Link functions between the mean mu of a generalised linear model and the linear predictor eta.

A link g is monotone and g(mu) = eta. Solvers use its inverse with two derivatives in eta (McCullagh and Nelder
1989, section 2.2.3 and chapter 4):

    identity           mu = eta                     mu' = 1                       mu'' = 0                       (1)
    log                mu = exp(eta)                mu' = mu                      mu'' = mu                      (2)
    logit              mu = 1 / (1 + exp(-eta))     mu' = mu (1 - mu)             mu'' = mu' (1 - 2 mu)          (3)
    probit             mu = Phi(eta)                mu' = phi(eta)                mu'' = -eta phi(eta)           (4)
    cloglog            mu = 1 - exp(-exp(eta))      mu' = exp(eta - exp(eta))     mu'' = mu' (1 - exp(eta))      (5)
    inverse            mu = 1 / eta                 mu' = -mu^2                   mu'' = 2 mu^3                  (6)
    inverse_squared    mu = 1 / sqrt(eta)           mu' = -mu^3 / 2               mu'' = 3 mu^5 / 4              (7)
    sqrt               mu = eta^2                   mu' = 2 eta                   mu'' = 2                       (8)
    loglog             mu = exp(-exp(-eta))         mu' = exp(-eta - exp(-eta))   mu'' = mu' (exp(-eta) - 1)     (9)
    cauchit            mu = 1/2 + atan(eta) / pi    mu' = 1 / (pi (1 + eta^2))    mu'' = -2 pi eta mu'^2         (10)

An eta for which mu, mu' or mu'' would overflow or underflow (or eta <= 0 in (6) to (8)) is clipped to the nearest
valid one: mu stays strictly inside its range, without warnings, overflow or NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.estimator.parameters import object_named
from summula.core.model_files import schema

__all__ = [
    "CLogLog",
    "Cauchit",
    "Identity",
    "Inverse",
    "InverseSquared",
    "Link",
    "Log",
    "LogLog",
    "Logit",
    "Probit",
    "Sqrt",
    "link_named",
]

Array = NDArray[np.float64]
Interval = tuple[float, float]

_BELOW_ONE = 1.0 - 2.0**-53  # the largest float64 below 1


@schema.state()
class Link(ABC):
    """A link function: `link(mu)` is eta, `inverse(eta)` is mu, `slope` and `curvature` are its derivatives in eta.

    Attributes
    ----------
    name : str
        Name of the link in parameters.
    eta_range, mu_range : tuple of float
        Open intervals that the inverse maps onto each other.
    """

    name: str
    eta_range: Interval = (-np.inf, np.inf)
    mu_range: Interval = (0.0, np.inf)
    _safe: Interval = (-np.inf, np.inf)  # interval of eta in which mu, mu' and mu'' are normal floats

    def link(self, mu: Array) -> Array:
        """eta = g(mu): infinite at the ends of the range of mu, NaN outside it."""
        with np.errstate(all="ignore"):
            return self._link(np.asarray(mu, dtype=np.float64))

    def interval(self, low: float, high: float) -> Interval:
        """Return the open interval of eta whose mean is between `low` and `high`."""
        low, high = max(low, self.mu_range[0]), min(high, self.mu_range[1])
        ends = self.link(np.array([low, high]))
        return float(ends.min()), float(ends.max())

    @abstractmethod
    def _link(self, mu: Array) -> Array: ...

    @abstractmethod
    def inverse(self, eta: Array) -> Array:
        """mu."""

    @abstractmethod
    def slope(self, eta: Array) -> Array:
        """d mu / d eta."""

    @abstractmethod
    def curvature(self, eta: Array) -> Array:
        """d2 mu / d eta2."""

    def _clip(self, eta: Array) -> Array:
        clipped: Array = np.clip(np.asarray(eta, dtype=np.float64), *self._safe)
        return clipped


@schema.saved("stats.links.Identity")
@dataclass(frozen=True)
class Identity(Link):
    """mu = eta, equation (1)."""

    name = "identity"
    mu_range = (-np.inf, np.inf)

    def _link(self, mu: Array) -> Array:
        return mu.copy()

    def inverse(self, eta: Array) -> Array:
        return np.array(eta, dtype=np.float64)

    def slope(self, eta: Array) -> Array:
        return np.ones_like(eta, dtype=np.float64)

    def curvature(self, eta: Array) -> Array:
        return np.zeros_like(eta, dtype=np.float64)


@schema.saved("stats.links.Log")
@dataclass(frozen=True)
class Log(Link):
    """mu = exp(eta), equation (2)."""

    name = "log"
    _safe = (-700.0, 700.0)

    def _link(self, mu: Array) -> Array:
        return np.log(mu)

    def inverse(self, eta: Array) -> Array:
        return np.exp(self._clip(eta))

    slope = inverse
    curvature = inverse


@dataclass(frozen=True)
class _DistributionLink(Link):
    """mu = F(eta) with a distribution function F, less than 1 in floating point."""

    mu_range = (0.0, 1.0)
    _distribution: ClassVar[Any]  # F
    _quantile: ClassVar[Any]  # its inverse

    def _link(self, mu: Array) -> Array:
        eta: Array = self._quantile(mu)
        return eta

    def inverse(self, eta: Array) -> Array:
        mu: Array = np.minimum(self._distribution(self._clip(eta)), _BELOW_ONE)
        return mu


@schema.saved("stats.links.Logit")
@dataclass(frozen=True)
class Logit(_DistributionLink):
    """mu = 1 / (1 + exp(-eta)), equation (3)."""

    name = "logit"
    _safe = (-700.0, 700.0)
    _distribution = special.expit
    _quantile = special.logit

    def slope(self, eta: Array) -> Array:
        eta = self._clip(eta)
        slope: Array = special.expit(eta) * special.expit(-eta)
        return slope

    def curvature(self, eta: Array) -> Array:
        return -self.slope(eta) * np.tanh(0.5 * self._clip(eta))  # 1 - 2 mu = -tanh(eta / 2)


@schema.saved("stats.links.Probit")
@dataclass(frozen=True)
class Probit(_DistributionLink):
    """mu = Phi(eta), the normal distribution function, equation (4)."""

    name = "probit"
    _safe = (-37.0, 37.0)
    _distribution = special.ndtr
    _quantile = special.ndtri

    def slope(self, eta: Array) -> Array:
        density: Array = np.exp(-0.5 * np.square(self._clip(eta))) / np.sqrt(2 * np.pi)
        return density

    def curvature(self, eta: Array) -> Array:
        return -self._clip(eta) * self.slope(eta)


@schema.saved("stats.links.CLogLog")
@dataclass(frozen=True)
class CLogLog(_DistributionLink):
    """mu = 1 - exp(-exp(eta)), equation (5)."""

    name = "cloglog"
    _safe = (-700.0, 6.5)
    _distribution = staticmethod(lambda eta: -np.expm1(-np.exp(eta)))
    _quantile = staticmethod(lambda mu: np.log(-np.log1p(-mu)))

    def slope(self, eta: Array) -> Array:
        eta = self._clip(eta)
        return np.exp(eta - np.exp(eta))

    def curvature(self, eta: Array) -> Array:
        return -self.slope(eta) * np.expm1(self._clip(eta))


@schema.saved("stats.links.LogLog")
@dataclass(frozen=True)
class LogLog(_DistributionLink):
    """mu = exp(-exp(-eta)), equation (9): cloglog of 1 - mu, with the opposite sign."""

    name = "loglog"
    _safe = (-6.5, 700.0)
    _distribution = staticmethod(lambda eta: np.exp(-np.exp(-eta)))
    _quantile = staticmethod(lambda mu: -np.log(-np.log(mu)))

    def slope(self, eta: Array) -> Array:
        eta = self._clip(eta)
        return np.exp(-eta - np.exp(-eta))

    def curvature(self, eta: Array) -> Array:
        return self.slope(eta) * np.expm1(-self._clip(eta))


@schema.saved("stats.links.Cauchit")
@dataclass(frozen=True)
class Cauchit(_DistributionLink):
    """mu = 1/2 + atan(eta) / pi, the Cauchy distribution function, equation (10)."""

    name = "cauchit"
    _safe = (-1e60, 1e60)
    _distribution = staticmethod(lambda eta: np.arctan2(1.0, -eta) / np.pi)  # without cancellation for eta < 0
    _quantile = staticmethod(lambda mu: np.where(mu < 0.5, -1.0 / np.tan(np.pi * mu), 1.0 / np.tan(np.pi * (1.0 - mu))))

    def _link(self, mu: Array) -> Array:
        return np.where((mu >= 0.0) & (mu <= 1.0), super()._link(mu), np.nan)

    def slope(self, eta: Array) -> Array:
        return 1.0 / (np.pi * (1.0 + np.square(self._clip(eta))))

    def curvature(self, eta: Array) -> Array:
        return -2.0 * np.pi * self._clip(eta) * np.square(self.slope(eta))


@schema.saved("stats.links.Sqrt")
@dataclass(frozen=True)
class Sqrt(Link):
    """mu = eta^2 for eta > 0, equation (8)."""

    name = "sqrt"
    eta_range = (0.0, np.inf)
    _safe = (1e-100, 1e100)

    def _link(self, mu: Array) -> Array:
        return np.sqrt(mu)

    def inverse(self, eta: Array) -> Array:
        return np.square(self._clip(eta))

    def slope(self, eta: Array) -> Array:
        return 2.0 * self._clip(eta)

    def curvature(self, eta: Array) -> Array:
        return np.full_like(eta, 2.0, dtype=np.float64)


@schema.saved("stats.links.Inverse")
@dataclass(frozen=True)
class Inverse(Link):
    """mu = 1 / eta for eta > 0, equation (6)."""

    name = "inverse"
    eta_range = (0.0, np.inf)
    _safe = (1e-100, 1e100)

    def _link(self, mu: Array) -> Array:
        return 1.0 / mu

    def inverse(self, eta: Array) -> Array:
        return 1.0 / self._clip(eta)

    def slope(self, eta: Array) -> Array:
        return -(self.inverse(eta) ** 2)

    def curvature(self, eta: Array) -> Array:
        mu = self.inverse(eta)
        return 2.0 * mu * mu * mu


@schema.saved("stats.links.InverseSquared")
@dataclass(frozen=True)
class InverseSquared(Link):
    """mu = 1 / sqrt(eta) for eta > 0, equation (7)."""

    name = "inverse_squared"
    eta_range = (0.0, np.inf)
    _safe = (1e-120, 1e120)

    def _link(self, mu: Array) -> Array:
        return 1.0 / (mu * mu)

    def inverse(self, eta: Array) -> Array:
        return 1.0 / np.sqrt(self._clip(eta))

    def slope(self, eta: Array) -> Array:
        mu = self.inverse(eta)
        return -0.5 * mu * mu * mu

    def curvature(self, eta: Array) -> Array:
        mu = self.inverse(eta)
        return 0.75 * mu * mu * mu * mu * mu


_LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Identity(),
        Log(),
        Logit(),
        Probit(),
        CLogLog(),
        LogLog(),
        Cauchit(),
        Inverse(),
        InverseSquared(),
        Sqrt(),
    )
}


def link_named(value: Any) -> Link:
    """Return the link specified by a parameter: a name or a Link object.

    >>> link_named("logit").inverse(0.0)
    np.float64(0.5)
    """
    return object_named("link", value, Link, _LINKS)  # type: ignore[type-abstract]
