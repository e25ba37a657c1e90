"""Loss functions of gradient boosting: value, gradient g and hessian h in the raw score z, for blocks of rows.

    squared_error     (y - z)^2 / 2             g = z - y                      h = 1
    absolute_error    |y - z|                   g = sign(z - y)                h = 1
    quantile          q (y - z)_+ + (1 - q) (z - y)_+       g = [z > y] - q    h = 1
    poisson           e^z - y z                 g = e^z - y                    h = e^z
    gamma             z + y e^-z                g = 1 - y e^-z                 h = y e^-z
    binary log-loss   log(1 + e^z) - y z        g = p - y                      h = p (1 - p),  p = 1 / (1 + e^-z)
    multiclass        log sum_k e^z_k - z_y     g_k = p_k - [y = k]            h_k = p_k (1 - p_k)
    a single class    0                         g = 0                          h = 1

Values and derivatives come from `summula.losses`; the values of poisson and gamma are without the terms in y alone, as
scikit-learn reports them. Sample weights multiply all three. The second and third loss have no curvature: splits are
searched with h = 1, and the value of a leaf is the median, or quantile, of the residuals of its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula import losses
from summula.core.numerics.exponentials import exponential, sigmoid
from summula.ensemble.histogram.boosting_kernels import binary_slopes, softmax_slopes
from summula.losses import Logistic, Multinomial, score_losses

__all__ = ["LOSSES", "Binary", "Loss", "Multiclass", "Pinball", "SingleClass", "weighted_quantile"]

Array = NDArray[Any]

_NONE = np.empty(0)  # no weights


class Block(NamedTuple):
    """Losses of some rows, and derivatives of shape (scores, rows); `curvature` is None if it is 1."""

    values: Array
    gradient: Array
    curvature: Array | None


class Loss(ABC):
    """A loss of targets and raw scores."""

    scores = 1  # number of raw scores per row
    level: float | None = None  # quantile used as leaf value instead of a Newton step

    @abstractmethod
    def block(self, y: Array, z: Array) -> Block:
        """Compute values and derivatives for some rows; z has shape (scores, rows)."""

    def slopes(self, rows: Any, g: Array, h: Array, start: int, stop: int) -> tuple[float, Array]:
        """Write the weighted derivatives of the rows from `start` up to `stop` into g and h.

        Returns the sum of the losses, and the largest |g| and h. If all curvatures are 1, h is not written.
        """
        b = slice(start, stop)
        values, gradient, curvature = self.block(rows.y[b], rows.z[:, b])
        if rows.weight is not None:
            w = rows.weight[b]
            values, gradient = values * w, gradient * w
            curvature = np.broadcast_to(w, gradient.shape) if curvature is None else curvature * w
        tops = np.zeros((2, len(g)))
        g[:, b] = gradient
        tops[0] = np.abs(g[:, b]).max(axis=1)
        if curvature is not None:
            h[:, b] = curvature
            tops[1] = h[:, b].max(axis=1)
        return float(values.sum()), tops

    @abstractmethod
    def start(self, y: Array, weight: Array | None) -> Array:
        """Return the optimal constant scores."""

    def mean(self, z: Array) -> Array:
        """Return the predictions for raw scores."""
        return z

    def refusal(self, y: Array) -> str | None:
        """Return an error message for invalid targets, or None."""
        return None


class Squared(Loss):
    """Half the squared error."""

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        value, slope, _ = losses.Squared().derivatives(y, z[0])
        return Block(value, slope[None], None)

    def start(self, y: Array, weight: Array | None) -> Array:
        """Return the mean."""
        return np.array([_mean(y, weight)])


class Pinball(Loss):
    """The pinball loss of quantile regression."""

    def __init__(self, level: float) -> None:
        self.level = level

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        assert self.level is not None
        value, slope = score_losses("quantile", self.level, y, z[0])
        return Block(value, slope[None], None)

    def start(self, y: Array, weight: Array | None) -> Array:
        """Return the quantile."""
        assert self.level is not None
        return np.array([weighted_quantile(y, weight, self.level)])


class Absolute(Pinball):
    """The absolute error: twice the pinball loss of the median."""

    def __init__(self) -> None:
        super().__init__(0.5)

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        half = super().block(y, z)
        return Block(2.0 * half.values, 2.0 * half.gradient, None)


class _Log(Loss):
    def mean(self, z: Array) -> Array:
        return np.asarray(exponential(z.ravel()).reshape(z.shape))

    def start(self, y: Array, weight: Array | None) -> Array:
        return np.asarray(np.log([_mean(y, weight)]))


class Poisson(_Log):
    """The Poisson loss with a log link, for counts."""

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        value, slope, curvature = losses.PoissonLog().relative(y, z[0])
        return Block(value, slope[None], curvature[None])

    def refusal(self, y: Array) -> str | None:
        """Require non-negative targets that are not all 0."""
        if (y >= 0).all() and y.any():
            return None
        return "loss='poisson' requires non-negative y and sum(y) > 0."


class Gamma(_Log):
    """The gamma loss with a log link, for positive targets."""

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        value, slope, curvature = losses.GammaLog().relative(y, z[0])
        return Block(value, slope[None], curvature[None])

    def refusal(self, y: Array) -> str | None:
        """Require positive targets."""
        return None if (y > 0).all() else "loss='gamma' requires strictly positive y."


class Binary(Loss):
    """The log-loss of two classes; y is 0 or 1."""

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        value, slope, spread = Logistic().derivatives(y.astype(np.float64), np.ascontiguousarray(z[0], np.float64))
        return Block(value, slope[None], spread[None])

    def slopes(self, rows: Any, g: Array, h: Array, start: int, stop: int) -> tuple[float, Array]:
        """See `boosting_kernels`."""
        b, w = slice(start, stop), _NONE if rows.weight is None else rows.weight
        loss, most, widest = binary_slopes(rows.y[b], rows.z[0, b], w[b], g[0, b], h[0, b])
        return loss, np.array([[most], [widest]])

    def start(self, y: Array, weight: Array | None) -> Array:
        """Return the logit of the frequency of the second class."""
        share = _mean(y, weight)
        least = np.finfo(np.float64).eps  # if all weight is on one class
        return np.array([special.logit(min(max(share, least), 1.0 - least))])

    def mean(self, z: Array) -> Array:
        """Return the probabilities of both classes."""
        p = sigmoid(np.ascontiguousarray(z[0], np.float64)).p
        return np.stack([1.0 - p, p])


class Multiclass(Loss):
    """The log-loss of several classes; y is the index of the class."""

    def __init__(self, classes: int) -> None:
        self.scores = classes

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        value, slope, spread = Multinomial(self.scores).derivatives(y, z.T)
        return Block(value, slope.T, spread.T)

    def slopes(self, rows: Any, g: Array, h: Array, start: int, stop: int) -> tuple[float, Array]:
        """See `boosting_kernels`."""
        tops, w = np.empty((2, self.scores)), _NONE if rows.weight is None else rows.weight
        return softmax_slopes(rows.y, rows.z, w, g, h, start, stop, tops), tops

    def start(self, y: Array, weight: Array | None) -> Array:
        """Return the log class frequencies minus their mean."""
        shares = np.bincount(y.astype(np.intp), weight, self.scores)
        logs = np.log(np.maximum(shares / shares.sum(), np.finfo(np.float64).eps))
        return np.asarray(logs - logs.mean())

    def mean(self, z: Array) -> Array:
        """Return the probabilities."""
        return np.asarray(special.softmax(z, axis=0))


class SingleClass(Loss):
    """The log-loss of a single class, whose probability is 1: no tree has a split."""

    def block(self, y: Array, z: Array) -> Block:
        """See the table in the module docstring."""
        return Block(np.zeros(len(y)), np.zeros((1, len(y))), None)

    def start(self, y: Array, weight: Array | None) -> Array:
        """Return a score of 0."""
        return np.zeros(1)

    def mean(self, z: Array) -> Array:
        """Return the probability, 1."""
        return np.ones(z.shape)


# Regression losses by name; "quantile" also has a level.
LOSSES: dict[str, type[Loss]] = {
    "squared_error": Squared,
    "absolute_error": Absolute,
    "poisson": Poisson,
    "gamma": Gamma,
}


def _mean(y: Array, weight: Array | None) -> float:
    if weight is None:
        return float(y.mean(dtype=np.float64))
    return float(np.dot(y.astype(np.float64), weight) / weight.sum())


def weighted_quantile(values: Array, weight: Array | None, level: float) -> float:
    """Return a quantile: without weights as NumPy does, with weights as if rows were repeated."""
    if weight is None:
        return float(np.quantile(values, level)) if level != 0.5 else float(np.median(values))
    used = weight > 0
    if not used.any():
        return 0.0
    values, weight = values[used], weight[used]
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    target = level * total[-1]
    near = 1e-12 * total[-1]
    below = int(min(np.searchsorted(total, target - near), len(values) - 1))
    above = min(below + 1, len(values) - 1) if abs(total[below] - target) <= near else below
    return float(values[order[below]] + values[order[above]]) / 2
