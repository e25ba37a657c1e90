"""Likelihood losses as functions of the linear predictor eta, with the derivatives that solvers need.

For a family with unit deviance d and unit variance V, and a link with mu = mu(eta), the loss of a row is half its
deviance, and (McCullagh and Nelder 1989, section 2.5)

    value      l   = d(y, mu) / 2 >= 0                                                                          (1)
    slope      l'  = (mu - y) mu' / V(mu)                                                                       (2)
    fisher     E l'' = mu'^2 / V(mu) >= 0                                                                       (3)
    curvature  l'' = mu'^2 / V + (mu - y) (mu'' - mu'^2 V'(mu) / V) / V                                         (4)

`FamilyLoss` implements these equations. The most common pairs have their own classes, which are faster and accurate for
any eta. With the log link and V = mu^p (p = 1 Poisson, 2 gamma, 3 inverse Gaussian)

    l' = e^((2-p) eta) - y e^((1-p) eta),      E l'' = e^((2-p) eta)                                            (5)

For 0 <= y <= 1 and h1 = d log mu / d eta, h0 = d log(1 - mu) / d eta (up to constants in y)

    l = -y log mu - (1 - y) log(1 - mu),       l' = -y h1 - (1 - y) h0,       E l'' = -h1 h0                    (6)

All methods are elementwise over rows and return new float64 arrays; they have no state, so threads can share a loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.data.sparse_format import check_sparse
from summula.core.errors import ParameterError
from summula.core.model_files import schema
from summula.core.numerics.exponentials import FAR, exponential, sigmoid
from summula.stats import families
from summula.stats.exponential_family import Family
from summula.stats.families import family_named
from summula.stats.links import Link, link_named

__all__ = [
    "BinaryCLogLog",
    "BinaryProbit",
    "Derivatives",
    "FamilyLoss",
    "GammaLog",
    "Huber",
    "InverseGaussianLog",
    "Logistic",
    "Loss",
    "Multinomial",
    "NegativeBinomialLog",
    "PoissonLog",
    "Squared",
    "TweedieLog",
    "loss_of",
    "perceptron_risk",
]

Array = NDArray[np.float64]
Interval = tuple[float, float]

_TINY = np.finfo(np.float64).tiny


class Derivatives(NamedTuple):
    """Value, slope and expected curvature of a loss, row by row."""

    value: Array
    slope: Array
    fisher: Array


@schema.state()
class Loss(ABC):
    """A loss of (y, eta): `value`, its derivatives `slope` and `curvature` in eta, `fisher`, the expected curvature.

    Attributes
    ----------
    convex : bool
        Whether the curvature is non-negative for any y in the support.
    self_concordant : bool
        Whether the absolute third derivative is known to be at most the curvature (see `Multinomial` for classes).
    eta_range : tuple of float
        Open interval in which the loss is defined; outside it the value is infinite and the derivatives are finite.
    """

    @property
    def convex(self) -> bool:
        return True

    @property
    def self_concordant(self) -> bool:
        return False

    @property
    def eta_range(self) -> Interval:
        return (-np.inf, np.inf)

    @abstractmethod
    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        """Compute value, slope and fisher together, sharing common terms."""

    @abstractmethod
    def curvature(self, y: Array, eta: Array) -> Array:
        """d2 value / d eta2."""

    def value(self, y: Array, eta: Array) -> Array:
        return self.derivatives(y, eta).value

    def slope(self, y: Array, eta: Array) -> Array:
        return self.derivatives(y, eta).slope

    def fisher(self, y: Array, eta: Array) -> Array:
        return self.derivatives(y, eta).fisher


# --------------------------------------------------------------------------------------------------- squares and Huber


@schema.saved()
@dataclass(frozen=True)
class Squared(Loss):
    """(eta - y)^2 / 2: the normal family with the identity link."""

    self_concordant = True

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        r = eta - y
        with np.errstate(over="ignore"):
            value = 0.5 * r * r
        return Derivatives(value, r, np.ones_like(r))

    def curvature(self, y: Array, eta: Array) -> Array:
        return np.ones_like(eta)


@schema.saved(threshold=schema.Real(0.0))
@dataclass(frozen=True)
class Huber(Loss):
    """(eta - y)^2 / 2 for residuals up to `threshold`, linear beyond; `fisher` is the curvature, 1 or 0."""

    threshold: float = 1.35

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < np.inf:
            raise ParameterError(f"The 'threshold' of Huber must be a number > 0. Got {self.threshold!r} instead.")

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        slope = eta - y
        size = np.abs(slope)
        inner = np.minimum(size, self.threshold)
        np.clip(slope, -self.threshold, self.threshold, out=slope)
        return Derivatives(inner * (size - 0.5 * inner), slope, (size <= self.threshold).astype(np.float64))

    def curvature(self, y: Array, eta: Array) -> Array:
        return self.fisher(y, eta)


# ------------------------------------------------------------------------------------------------- classes, proportions


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
        """-d h1 / d eta and -d h0 / d eta."""

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
        rows, code = np.arange(len(eta)), np.asarray(y).astype(np.intp, copy=False)
        p, top, total = self._softmax(eta)
        value = np.log(total) + (top - eta[rows, code])
        fisher = p * (1.0 - p)
        p[rows, code] -= 1.0
        return Derivatives(value, p, fisher)

    def curvature(self, y: Array | NDArray[np.integer[Any]], eta: Array) -> Array:
        p = self.probabilities(eta)
        return p * (1.0 - p)

    def probabilities(self, eta: Array) -> Array:
        """softmax(eta), row by row."""
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
        """d2 value / d eta_i d eta_j of each row: the row weights w in the block X' diag(w) X of a Hessian."""
        p, q = probabilities[:, i], probabilities[:, j]
        return p * (1.0 - p) if i == j else -p * q


# ---------------------------------------------------------------------------------------------------- log links: (5)


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


# ------------------------------------------------------------------------------------------------------ everything else

# Pairs with non-negative curvature (4): the canonical ones, and others by differentiation.
_CONVEX = frozenset(
    {
        ("normal", "identity"),
        ("poisson", "identity"),
        ("poisson", "log"),
        ("gamma", "log"),
        ("gamma", "inverse"),
        ("inverse_gaussian", "inverse"),
        ("inverse_gaussian", "inverse_squared"),
        ("negative_binomial", "log"),
        *product(("bernoulli", "binomial"), ("identity", "log", "logit", "probit", "cloglog")),
    }
)


class _Domain(NamedTuple):
    low: float  # the range of eta
    high: float
    first: float  # interval in which the derivatives are computed: inside the range, and without overflow
    last: float


@lru_cache(maxsize=64)
def _domain(family: Family, link: Link) -> _Domain:
    low, high = family.mean_range
    inner = link.interval(1e-45 if low == 0.0 else -1e45, 1.0 - 2.0**-53 if high == 1.0 else 1e45)
    return _Domain(*link.interval(low, high), *inner)


@schema.saved(family=schema.Object(Family), link=schema.Object(Link))
@dataclass(frozen=True)
class FamilyLoss(Loss):
    """Equations (1) to (4) for any family with a scalar mean and any link.

    Parameters
    ----------
    family : Family
    link : Link
    """

    family: Family
    link: Link

    @property
    def convex(self) -> bool:
        return (self.family.name, self.link.name) in _CONVEX

    @property
    def eta_range(self) -> Interval:
        domain = _domain(self.family, self.link)
        return domain.low, domain.high

    def value(self, y: Array, eta: Array) -> Array:
        low, high, _, _ = _domain(self.family, self.link)
        with np.errstate(all="ignore"):
            value = 0.5 * self.family.unit_deviance(y, self.link.inverse(eta))
        np.maximum(value, 0.0, out=value)
        # Outside the range the loss is undefined; inside it, NaN is a difference of infinities.
        value[(eta <= low) | (eta >= high) | np.isnan(value)] = np.inf
        return value

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        eta_in, mu, V = self._inside(eta)
        with np.errstate(all="ignore"):
            weight = self.link.slope(eta_in) / V
            slope = (mu - y) * weight
            fisher = self.link.slope(eta_in) * weight
        return Derivatives(self.value(y, eta), np.nan_to_num(slope, copy=False), np.nan_to_num(fisher, copy=False))

    def curvature(self, y: Array, eta: Array) -> Array:
        eta_in, mu, V = self._inside(eta)
        with np.errstate(all="ignore"):
            square = self.link.slope(eta_in) ** 2
            bend = self.link.curvature(eta_in) - square * self.family.unit_variance_slope(mu) / V
            return np.nan_to_num((square + (mu - y) * bend) / V, copy=False)

    def _inside(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return eta clipped to where (2) to (4) are finite, and mu and V there."""
        domain = _domain(self.family, self.link)
        eta = np.clip(eta, domain.first, domain.last)
        mu = self.link.inverse(eta)
        with np.errstate(all="ignore"):
            return eta, mu, self.family.unit_variance(mu)


def loss_of(family: Any, link: Any = None) -> Loss:
    """Return the loss of a family and a link: a specialised class if there is one, else `FamilyLoss`.

    Parameters
    ----------
    family : str or Family
    link : str or Link, optional
        By default the default link of the family.

    Returns
    -------
    Loss

    Examples
    --------
    >>> from summula.losses import loss_of
    >>> loss_of("poisson")
    PoissonLog()
    >>> loss_of("gamma", "inverse")
    FamilyLoss(family=Gamma(), link=Inverse())
    """
    family = family_named(family)
    link = link_named(family.default_link if link is None else link)
    if isinstance(family, families.Multinomial):
        if link.name != "logit":
            raise ParameterError(f"The multinomial family supports only the 'logit' link. Got {link.name!r} instead.")
        return Multinomial(family.k)
    if isinstance(family, families.Tweedie):
        if family.twin is None and link.name == "log":
            return TweedieLog(family.power)
        family = family.twin or family
    if isinstance(family, families.NegativeBinomial) and link.name == "log":
        return NegativeBinomialLog(family.alpha)
    written: dict[tuple[str, str], Loss] = {
        ("normal", "identity"): Squared(),
        ("bernoulli", "logit"): Logistic(),
        ("bernoulli", "probit"): BinaryProbit(),
        ("bernoulli", "cloglog"): BinaryCLogLog(),
        ("poisson", "log"): PoissonLog(),
        ("gamma", "log"): GammaLog(),
        ("inverse_gaussian", "log"): InverseGaussianLog(),
    }
    name = "bernoulli" if family.name == "binomial" else family.name
    return written.get((name, link.name)) or FamilyLoss(family, link)


def perceptron_risk(w: Any, X: Any, y: Any, *, gradient: bool = False) -> Any:
    """Compute the perceptron risk, sum_i max(0, -y_i w'x_i): distances of misclassified rows, times |w|.

    Parameters
    ----------
    w : array-like of shape (n_features,)
        Weights.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, with a column of ones for an intercept.
    y : array-like of shape (n_samples,)
        Labels -1 and 1.
    gradient : bool, default=False
        Whether to also return a subgradient: minus the sum of y x over rows with y w'x <= 0.

    Returns
    -------
    float, or (float, ndarray of shape (n_features,)) with `gradient`
    """
    w, y = np.asarray(w, np.float64), np.asarray(y, np.float64)
    check_sparse(X)
    X = X if hasattr(X, "indptr") else np.asarray(X, np.float64)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ParameterError("perceptron_risk needs labels -1 and 1; pass y as 2 * (y == second_class) - 1.")
    if w.shape != X.shape[1:]:
        raise ParameterError(f"perceptron_risk needs one weight per column: w has shape {w.shape}, X {X.shape}.")
    margins = y * (X @ w)
    value = float(np.maximum(-margins, 0.0).sum())
    return (value, -np.asarray(X.T @ (y * (margins <= 0)))) if gradient else value
