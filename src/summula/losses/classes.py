"""Losses of classes and proportions: logit, probit and cloglog links, and softmax.

Equation (6) of `likelihoods.py`: for 0 <= y <= 1 and h1 = d log mu / d eta, h0 = d log(1 - mu) / d eta (up to constants
in y)

    l = -y log mu - (1 - y) log(1 - mu),       l' = -y h1 - (1 - y) h0,       E l'' = -h1 h0                    (6)
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.model_files import schema
from summula.core.numerics.exponentials import FAR, exponential, sigmoid
from summula.losses.loss import Derivatives, Loss
from summula.stats import families

__all__ = ["BinaryCLogLog", "BinaryProbit", "Logistic", "Multinomial"]

Array = NDArray[np.float64]


def _entropy(y: Array) -> Array | float:
    """Return y log y + (1 - y) log(1 - y), the term that makes (6) zero at mu = y; it is 0 if y is 0 or 1."""
    if np.vdot(y, 1.0 - y) == 0.0:
        return 0.0
    entropy: Array = special.xlogy(y, y) + special.xlogy(1.0 - y, 1.0 - y)
    return entropy


@schema.saved()
@dataclass(frozen=True)
class Logistic(Loss):
    """Half the deviance of the Bernoulli family with the logit link; y may be a proportion."""

    self_concordant = True

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        p, spread, value = sigmoid(eta)
        value += np.maximum(eta, 0.0) - y * eta  # log(1 + e^eta) = max(eta, 0) + tail
        value += _entropy(y)
        p -= y
        return Derivatives(value, p, spread)

    def curvature(self, y: Array, eta: Array) -> Array:
        return sigmoid(eta).spread


class _LogProbabilities(NamedTuple):
    log1: Array  # log mu
    log0: Array  # log(1 - mu)
    h1: Array  # their derivatives in eta
    h0: Array


class _Binary(Loss):
    """Equation (6) for links with accurate formulas for log mu and log(1 - mu)."""

    @abstractmethod
    def _log_probabilities(self, eta: Array) -> _LogProbabilities: ...

    @abstractmethod
    def _bends(self, eta: Array, h1: Array, h0: Array) -> tuple[Array, Array]:
        """Return -d h1 / d eta and -d h0 / d eta."""

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        log1, log0, h1, h0 = self._log_probabilities(eta)
        not_y = 1.0 - y
        value = _entropy(y) - y * log1 - not_y * log0
        return Derivatives(np.maximum(value, 0.0, out=value), -y * h1 - not_y * h0, -h1 * h0)

    def curvature(self, y: Array, eta: Array) -> Array:
        _, _, h1, h0 = self._log_probabilities(eta)
        bend1, bend0 = self._bends(eta, h1, h0)
        return y * bend1 + (1.0 - y) * bend0


@schema.saved()
@dataclass(frozen=True)
class BinaryProbit(_Binary):
    """Half the deviance of the Bernoulli family with the probit link, P(1) = Phi(eta).

    With a = |eta|, E(a) = e^(a^2/2) Phi(-a) does not underflow, and gives the logarithms and slopes of both tails.
    """

    def _log_probabilities(self, eta: Array) -> _LogProbabilities:
        a = np.minimum(np.abs(eta), 1e100)
        half_square = 0.5 * a * a
        E = 0.5 * special.erfcx(np.sqrt(0.5) * a)
        phi = np.exp(-np.minimum(half_square, FAR))  # times sqrt(2 pi)
        tail = phi * E  # Phi(-a)
        far, near = np.log(E) - half_square, np.log1p(-tail)
        h_far, h_near = np.sqrt(0.5 / np.pi) / E, np.sqrt(0.5 / np.pi) * phi / (1.0 - tail)
        right = eta >= 0.0
        log1, log0 = np.where(right, near, far), np.where(right, far, near)
        return _LogProbabilities(log1, log0, np.where(right, h_near, h_far), -np.where(right, h_far, h_near))

    def _bends(self, eta: Array, h1: Array, h0: Array) -> tuple[Array, Array]:
        return _bend(eta, h1), _bend(-eta, -h0)


def _bend(x: Array, h: Array) -> Array:
    """Return -dh/dx = h (h + x) for h = phi / Phi; for very negative x, where h + x cancels, by a series in 1/x."""
    z = np.square(1.0 / np.minimum(x, -200.0))
    return np.where(x < -200.0, 1.0 - z + 6.0 * z * z, h * np.maximum(h + x, 0.0))


@schema.saved()
@dataclass(frozen=True)
class BinaryCLogLog(_Binary):
    """Half the deviance of the Bernoulli family with the cloglog link, P(0) = e^-t, t = e^eta."""

    def _log_probabilities(self, eta: Array) -> _LogProbabilities:
        t = exponential(eta)
        near = np.minimum(t, 700.0)  # e^-t underflows for larger t
        log1 = np.where(eta < -40.0, eta, np.log(-np.expm1(-near)))
        return _LogProbabilities(log1, -t, near / np.expm1(near), -t)

    def _bends(self, eta: Array, h1: Array, h0: Array) -> tuple[Array, Array]:
        return h1 * np.maximum(h1 + np.minimum(-h0, 700.0) - 1.0, 0.0), -h0


@schema.saved(k=schema.Integer(2))
@dataclass(frozen=True)
class Multinomial(Loss):
    """-log softmax(eta)[y]: y contains class codes (n,), eta and the derivatives have shape (n, k).

    The Hessian of a row is diag(p) - p p': `fisher` and `curvature` are its diagonal, `block` any entry. Along a
    direction v of eta the third derivative, a third central moment of v under p, is at most max v - min v times the
    second: self-concordant up to a factor of sqrt(2) ||v||.
    """

    k: int
    self_concordant = True

    def __post_init__(self) -> None:
        families.Multinomial(self.k)

    def derivatives(self, y: Array | NDArray[np.integer[Any]], eta: Array) -> Derivatives:
        value, slope, p = self.slopes_and_probabilities(y, eta)
        return Derivatives(value, slope, p * (1.0 - p))

    def slopes_and_probabilities(self, y: Array | NDArray[np.integer[Any]], eta: Array) -> tuple[Array, Array, Array]:
        """Return the value, the slopes p - [y = k], and p of every row."""
        rows, code = np.arange(len(eta)), np.asarray(y).astype(np.intp, copy=False)
        p, top, total = self._softmax(eta)
        value = np.log(total) + (top - eta[rows, code])
        slope = p.copy()
        slope[rows, code] -= 1.0
        return value, slope, p

    def curvature(self, y: Array | NDArray[np.integer[Any]], eta: Array) -> Array:
        p = self.probabilities(eta)
        return p * (1.0 - p)

    def probabilities(self, eta: Array) -> Array:
        """Return softmax(eta), row by row."""
        return self._softmax(eta)[0]

    def _softmax(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return p, max eta and sum e^(eta - max), computed class by class so that the inner loops are long."""
        x = np.array(eta.T, dtype=np.float64, order="C")
        top = x.max(axis=0)
        x -= top
        e = exponential(x.ravel()).reshape(x.shape)
        total = e.sum(axis=0)
        e /= total
        return e.T, top, total

    def block(self, probabilities: Array, i: int, j: int) -> Array:
        """Return d2 value / d eta_i d eta_j of each row: the row weights w in the block X' diag(w) X of a Hessian."""
        p, q = probabilities[:, i], probabilities[:, j]
        return p * (1.0 - p) if i == j else -p * q
