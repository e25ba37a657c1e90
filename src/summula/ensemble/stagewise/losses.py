"""Losses L(y, f) of gradient boosting: values, negative gradients, and line searches.

    negative gradient   g_i = -dL(y_i, f) / df  at  f = f(x_i)                                                      (1)
    line search         gamma_j = argmin over gamma of  sum_{i in leaf j} w_i L(y_i, f(x_i) + gamma)                (2)

(2) is the mean of the residuals for the squared error, their median for the absolute error, their quantile for the
quantile loss. For the Huber loss it is the median of the residuals plus the mean of their clipped deviations from it.
For the others it is one Newton step from 0, with the second derivatives h_i of the loss:

    gamma_j = sum w_i g_i / sum w_i h_i          (times (K - 1) / K for K > 2 classes, after Friedman 2001).        (3)

Values and derivatives come from `summula.losses`; scores f have the shape (n_scores, n).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.ensemble.histogram.boosting_losses import weighted_quantile
from summula.losses import Multinomial, score_curvature, score_losses

__all__ = ["ClassScores", "MarginLoss", "ResidualLoss", "StageLoss"]

Array = NDArray[Any]

_TINY = 1e-150  # smaller sums of second derivatives count as 0: the leaf cannot be improved
_EPSILON = float(np.finfo(np.float64).eps)


class StageLoss(ABC):
    """A loss of targets and scores.

    Attributes
    ----------
    n_scores : int
    factor : float
        Factor by which scikit-learn multiplies the mean loss in `train_score_`.
    is_smooth : bool
    """

    n_scores = 1
    factor = 1.0
    is_smooth = True

    def at(self, y: Array, f: Array, w: Array) -> StageLoss:
        """Return the loss of a stage, which may depend on the residuals."""
        return self

    @abstractmethod
    def values(self, y: Array, f: Array) -> Array:
        """Return the loss of each row."""

    @abstractmethod
    def negative_gradient(self, y: Array, f: Array) -> Array:
        """Return (1), shape (n_scores, n)."""

    @abstractmethod
    def leaf_values(self, y: Array, f: Array, k: int, g: Array, w: Array, leaf: Array) -> Array:
        """Solve (2) for all leaves.

        Parameters
        ----------
        y, w : ndarray of shape (n,)
        f : ndarray of shape (n_scores, n)
        k : int
            The score that the tree is added to.
        g : ndarray of shape (n,)
            Negative gradients in this score.
        leaf : ndarray of shape (n,)
            Number of the leaf of each row, from 0 on.
        """

    @abstractmethod
    def scores(self, predictions: Array) -> Array:
        """Return the scores, shape (n_scores, n), for predictions of the initial estimator."""

    def mean(self, y: Array, f: Array, w: Array | None) -> float:
        """Return the mean loss, times `factor`."""
        values = self.values(y, f)
        return self.factor * float(values.mean() if w is None else (w * values).sum() / w.sum())


def _newton(g: Array, h: Array, w: Array, leaf: Array) -> Array:
    """Return the steps (3)."""
    top, bottom = np.bincount(leaf, w * g), np.bincount(leaf, w * h)
    return np.divide(top, bottom, out=np.zeros_like(top), where=np.abs(bottom) > _TINY)


@dataclass(frozen=True)
class ResidualLoss(StageLoss):
    """Losses of the residual y - f of a regression.

    Attributes
    ----------
    name : str
        "squared_error", "absolute_error", "huber" or "quantile".
    alpha : float
        Quantile level, or that of the absolute residuals above which the Huber loss is linear.
    bend : float
        The level, or the threshold of the Huber loss computed from it.
    """

    name: str
    alpha: float = 0.9
    bend: float = 0.0

    @property
    def factor(self) -> float:  # type: ignore[override]
        return 2.0 if self.name == "squared_error" else 1.0

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        return self.name in ("squared_error", "huber")

    def at(self, y: Array, f: Array, w: Array) -> StageLoss:
        if self.name != "huber":
            return self
        return replace(self, bend=weighted_quantile(np.abs(y - f[0]), w, self.alpha))

    def _parts(self, y: Array, f: Array) -> tuple[Array, Array]:
        """Return values and slopes; the absolute error is twice the quantile loss of the median."""
        if self.name == "absolute_error":
            value, slope = score_losses("quantile", 0.5, y, f[0])
            return 2.0 * value, 2.0 * slope
        value, slope = score_losses(self.name, self.alpha if self.name == "quantile" else self.bend, y, f[0])
        return value, slope

    def values(self, y: Array, f: Array) -> Array:
        return self._parts(y, f)[0]

    def negative_gradient(self, y: Array, f: Array) -> Array:
        return -self._parts(y, f)[1][None]

    def leaf_values(self, y: Array, f: Array, k: int, g: Array, w: Array, leaf: Array) -> Array:
        r = y - f[0]
        if self.name == "squared_error":
            return np.bincount(leaf, w * r) / np.bincount(leaf, w)
        level = self.alpha if self.name == "quantile" else 0.5
        order = np.argsort(leaf, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(leaf))[:-1])
        values = np.array([weighted_quantile(r[rows], w[rows], level) for rows in groups])
        if self.name == "huber":
            far = np.clip(r - values[leaf], -self.bend, self.bend)
            values += np.bincount(leaf, w * far) / np.bincount(leaf, w)
        return values

    def scores(self, predictions: Array) -> Array:
        return np.asarray(predictions, np.float64)[None]


@dataclass(frozen=True)
class MarginLoss(StageLoss):
    """Losses of two classes; y is -1 or 1.

    Attributes
    ----------
    name : str
        "log_loss", for which f is the log-odds, or "exponential", for which it is half the log-odds.
    """

    name: str

    @property
    def factor(self) -> float:  # type: ignore[override]
        return 2.0 if self.name == "log_loss" else 1.0

    def values(self, y: Array, f: Array) -> Array:
        return np.asarray(score_losses(self.name, 1.0, y, f[0]).value)

    def negative_gradient(self, y: Array, f: Array) -> Array:
        return -np.asarray(score_losses(self.name, 1.0, y, f[0]).slope)[None]

    def leaf_values(self, y: Array, f: Array, k: int, g: Array, w: Array, leaf: Array) -> Array:
        return _newton(g, score_curvature(self.name, 1.0, y, f[0]), w, leaf)

    def scores(self, predictions: Array) -> Array:
        share = np.clip(np.asarray(predictions, np.float64)[:, 1], _EPSILON, 1.0 - _EPSILON)
        odds = special.logit(share)
        return np.asarray(odds if self.name == "log_loss" else odds / 2)[None]


class ClassScores(StageLoss):
    """The log-loss of K > 2 classes, one score each; y is the code of the class."""

    def __init__(self, n_classes: int) -> None:
        self.n_scores = n_classes
        self._loss = Multinomial(n_classes)

    def values(self, y: Array, f: Array) -> Array:
        return np.asarray(self._loss.value(y, f.T))

    def negative_gradient(self, y: Array, f: Array) -> Array:
        return -np.ascontiguousarray(self._loss.slope(y, f.T).T)

    def leaf_values(self, y: Array, f: Array, k: int, g: Array, w: Array, leaf: Array) -> Array:
        p = (y == k) - g
        return _newton(g, p * (1.0 - p), w, leaf) * (self.n_scores - 1) / self.n_scores

    def scores(self, predictions: Array) -> Array:
        logs = np.log(np.clip(np.asarray(predictions, np.float64), _EPSILON, 1.0 - _EPSILON))
        return np.ascontiguousarray((logs - logs.mean(axis=1, keepdims=True)).T)
