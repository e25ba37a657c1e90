"""Losses of a score p, by name: value, slope and curvature in p, elementwise.

With z = y p for y = -1 or 1, and r = p - y for numeric targets,

    hinge                         max(0, bend - z)           (bend 1; the perceptron has 0)
    squared_hinge                 max(0, 1 - z)^2
    log_loss                      log(1 + e^-z)
    modified_huber                max(0, 1 - z)^2 if z >= -1, else -4 z
    exponential                   e^-z
    squared_error                 r^2 / 2
    huber                         r^2 / 2 if |r| <= bend, else bend |r| - bend^2 / 2
    epsilon_insensitive           max(0, |r| - bend)
    squared_epsilon_insensitive   max(0, |r| - bend)^2
    quantile                      (1 - bend) r if r > 0, else -bend r        (minimised by the quantile of level bend)

At a kink the slope is a subgradient, and the curvature one-sided. `kernels.py` has the same losses compiled, by the
numbers in `TAGS`, since kernels that take functions as arguments cannot be cached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["TAGS", "ScoreLosses", "score_curvature", "score_losses"]

Array = NDArray[np.float64]

TAGS = {
    "hinge": 0,
    "perceptron": 0,
    "squared_hinge": 1,
    "log_loss": 2,
    "modified_huber": 3,
    "squared_error": 4,
    "huber": 5,
    "epsilon_insensitive": 6,
    "squared_epsilon_insensitive": 7,
    "exponential": 8,
    "quantile": 9,
}


class ScoreLosses(NamedTuple):
    """Elementwise values and derivatives in the score."""

    value: Array
    slope: Array


def score_losses(loss: str, bend: float, y: Array, p: Array) -> ScoreLosses:
    """Compute the losses of scores p, and their derivatives.

    Parameters
    ----------
    loss : str
        One of `TAGS`.
    bend : float
        Margin of the hinge loss, threshold of the Huber loss, epsilon, or level of the quantile; ignored by the other
        losses.
    y, p : ndarray
        Targets (-1 or 1 for margin losses) and scores.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.losses import score_losses
    >>> score_losses("squared_hinge", 1.0, np.array([1.0, -1.0]), np.array([0.5, -2.0]))
    ScoreLosses(value=array([0.25, 0.  ]), slope=array([-1.,  0.]))
    """
    bend = 0.0 if loss == "perceptron" else bend
    if loss in _OF_MARGIN:
        value, slope = _OF_MARGIN[loss](y * p, bend)
        return ScoreLosses(value, y * slope + 0.0)
    return ScoreLosses(*_OF_RESIDUAL[loss](p - y, bend))


def score_curvature(loss: str, bend: float, y: Array, p: Array) -> Array:
    """Compute the second derivatives of the losses of scores p; parameters as in `score_losses`."""
    z, size = y * p, np.abs(p - y)
    if loss == "log_loss":
        return np.asarray(special.expit(z) * special.expit(-z))
    if loss == "exponential":
        return np.exp(-z)
    where = {
        "squared_hinge": z < 1.0,
        "modified_huber": (z > -1.0) & (z < 1.0),
        "squared_error": np.full(z.shape, True),
        "huber": size < bend,
        "squared_epsilon_insensitive": size > bend,
    }
    return np.where(where.get(loss, False), 1.0 if loss in ("squared_error", "huber") else 2.0, np.zeros_like(z))


Parts = tuple[Any, Any]


def _hinge(z: Array, bend: float) -> Parts:
    return np.maximum(bend - z, 0.0), np.where(z <= bend, -1.0, 0.0)


def _squared_hinge(z: Array, _: float) -> Parts:
    short = np.maximum(1.0 - z, 0.0)
    return short**2, -2.0 * short


def _log_loss(z: Array, _: float) -> Parts:
    return -special.log_expit(z), -special.expit(-z)


def _modified_huber(z: Array, _: float) -> Parts:
    short = np.clip(1.0 - z, 0.0, 2.0)
    return np.where(z < -1.0, -4.0 * z, short**2), -2.0 * short


def _exponential(z: Array, _: float) -> Parts:
    value = np.exp(-z)
    return value, -value


def _squared_error(r: Array, _: float) -> Parts:
    return r**2 / 2, r


def _huber(r: Array, bend: float) -> Parts:
    cut = np.clip(r, -bend, bend)
    return cut * r - cut**2 / 2, cut


def _epsilon_insensitive(r: Array, bend: float) -> Parts:
    over = np.maximum(np.abs(r) - bend, 0.0)
    return over, np.where(over > 0.0, np.sign(r), 0.0)


def _squared_epsilon_insensitive(r: Array, bend: float) -> Parts:
    over = np.maximum(np.abs(r) - bend, 0.0)
    return over**2, 2.0 * over * np.sign(r)


def _quantile(r: Array, level: float) -> Parts:
    slope = np.where(r > 0.0, 1.0 - level, -level)
    return slope * r, slope


_OF_MARGIN: dict[str, Callable[[Array, float], Parts]] = {
    "hinge": _hinge,
    "perceptron": _hinge,
    "squared_hinge": _squared_hinge,
    "log_loss": _log_loss,
    "modified_huber": _modified_huber,
    "exponential": _exponential,
}
_OF_RESIDUAL: dict[str, Callable[[Array, float], Parts]] = {
    "squared_error": _squared_error,
    "huber": _huber,
    "epsilon_insensitive": _epsilon_insensitive,
    "squared_epsilon_insensitive": _squared_epsilon_insensitive,
    "quantile": _quantile,
}
