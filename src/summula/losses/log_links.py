"""Losses of positive targets with the log link: Poisson, gamma, inverse Gaussian, Tweedie, negative binomial.

Equation (5) of `likelihoods.py`: with V = mu^p (p = 1 Poisson, 2 gamma, 3 inverse Gaussian)

    l' = e^((2-p) eta) - y e^((1-p) eta),      E l'' = e^((2-p) eta)                                            (5)

Half a deviance is 0 at mu = y because of its terms in y alone. `relative` leaves them out, for boosting: they change
neither the minimum nor comparisons between models, and cost a logarithm per row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.model_files import schema
from summula.core.numerics.exponentials import FAR, exponential, sigmoid
from summula.losses.loss import Derivatives, Loss, Relative
from summula.stats import families

__all__ = ["GammaLog", "InverseGaussianLog", "NegativeBinomialLog", "PoissonLog", "TweedieLog"]

Array = NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny


def _log(y: Array) -> Array:
    """Return log y, but finite at 0, so that 0 log 0 = 0."""
    x = np.maximum(y, _TINY)
    return np.log(x, out=x)


@schema.saved()
@dataclass(frozen=True)
class PoissonLog(Loss):
    """Half the deviance of the Poisson family with its log link: mu - y - y log(mu / y)."""

    self_concordant = True

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        mu = exponential(eta)
        slope = mu - y
        value = _log(y)
        value -= eta
        value *= y
        value += slope
        return Derivatives(np.maximum(value, 0.0, out=value), slope, mu)

    def curvature(self, y: Array, eta: Array) -> Array:
        return exponential(eta)

    def relative(self, y: Array, eta: Array) -> Relative:
        """Compute mu - y eta, the value without y log y - y, with slope and curvature."""
        mu = exponential(eta)
        return Relative(mu - y * eta, mu - y, mu)


@schema.saved()
@dataclass(frozen=True)
class GammaLog(Loss):
    """Half the deviance of the gamma family with the log link: y / mu - 1 - log(y / mu)."""

    self_concordant = True

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        ratio = self.curvature(y, eta)
        value = eta - _log(y)
        value += ratio
        value -= 1.0
        slope = np.subtract(1.0, ratio, out=ratio)
        return Derivatives(np.maximum(value, 0.0, out=value), slope, np.ones_like(value))

    def curvature(self, y: Array, eta: Array) -> Array:
        return y * exponential(eta, -1.0)

    def relative(self, y: Array, eta: Array) -> Relative:
        """Compute eta + y / mu, the value without -1 - log y, with slope and curvature."""
        ratio = self.curvature(y, eta)
        return Relative(eta + ratio, 1.0 - ratio, ratio)


@schema.saved()
@dataclass(frozen=True)
class InverseGaussianLog(Loss):
    """Half the deviance of the inverse Gaussian family with the log link: (y / mu - 1)^2 / (2 y). Not convex."""

    convex = False

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        v = exponential(eta, -1.0, FAR / 2.0)
        r = y * v - 1.0
        return Derivatives(r * r / (2.0 * y), -v * r, v)

    def curvature(self, y: Array, eta: Array) -> Array:
        v = exponential(eta, -1.0, FAR / 2.0)
        return v * (2.0 * y * v - 1.0)


@schema.saved(power=schema.Real())
@dataclass(frozen=True)
class TweedieLog(Loss):
    """Half the deviance of a Tweedie family with the log link, for powers other than 0, 1 and 2."""

    power: float = 1.5

    def __post_init__(self) -> None:
        families.Tweedie(self.power)
        if self.power in (0.0, 1.0, 2.0):
            raise ParameterError(
                f"TweedieLog has no power {self.power!r}; use loss_of(Tweedie({self.power!r}), 'log')."
            )

    @property
    def convex(self) -> bool:
        return 1.0 < self.power < 2.0

    @property
    def self_concordant(self) -> bool:
        return self.convex

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        p = self.power
        fisher, pull = self._terms(y, eta)
        value = np.maximum(y, 0.0) ** (2.0 - p) / ((1.0 - p) * (2.0 - p)) - pull / (1.0 - p) + fisher / (2.0 - p)
        return Derivatives(np.maximum(value, 0.0, out=value), fisher - pull, fisher)

    def curvature(self, y: Array, eta: Array) -> Array:
        fisher, pull = self._terms(y, eta)
        return (2.0 - self.power) * fisher - (1.0 - self.power) * pull

    def _terms(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The two terms of (5)."""
        p = self.power
        bound = FAR / max(1.0, abs(1.0 - p), abs(2.0 - p))  # so that both are clipped at the same eta
        return exponential(eta, 2.0 - p, bound), y * exponential(eta, 1.0 - p, bound)


@schema.saved(alpha=schema.Real(0.0))
@dataclass(frozen=True)
class NegativeBinomialLog(Loss):
    """Half the deviance of the negative binomial family with the log link.

    With u = eta + log(alpha) and s = 1 / (1 + e^-u) it is a logistic loss: (y + 1/alpha) log(1 + e^u) - y u + const.
    """

    alpha: float = 1.0
    self_concordant = True

    def __post_init__(self) -> None:
        families.NegativeBinomial(self.alpha)

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        r = 1.0 / self.alpha
        u = eta + np.log(self.alpha)
        s, _, value = sigmoid(u)
        value += np.maximum(u, 0.0)
        value -= np.log1p(self.alpha * y)
        value *= y + r
        value += y * (_log(y) - eta)
        fisher = r * s
        return Derivatives(np.maximum(value, 0.0, out=value), fisher - y * (1.0 - s), fisher)

    def curvature(self, y: Array, eta: Array) -> Array:
        return (y + 1.0 / self.alpha) * sigmoid(eta + np.log(self.alpha)).spread
