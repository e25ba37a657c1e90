"""The problem of principal axes and its solution, shared by all solvers.

Rows x with weights w become a = D^-1 (x - m), with m the mean (0 without centring) and D the diagonal of the standard
deviations (the identity without scaling). With the scatter matrix and an orthonormal basis V of r rows,

    S = sum w a a',            distortion(V) = sum w ||a - V'V a||^2 = tr S - tr V S V'                         (1)

is minimised, and the explained variance tr V S V' maximised, if the rows of V are the leading eigenvectors of S:

    S v_j = s_j v_j,  s_1 >= s_2 >= ...,      min distortion = s_(r+1) + ... + s_d = W (l_(r+1) + ... + l_d)    (2)

with l_j = s_j / W the eigenvalues of the covariance matrix with divisor W, the sum of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axes", "Problem", "column_scale", "frobenius_norm", "oriented", "rounded_mean", "shortened"]

Array = NDArray[np.float64]

_TIE = 1e-8  # entries this close to the largest count as equal to it


def frobenius_norm(A: Array) -> float:
    """Return the root of the sum of squares, also if the squares overflow.

    The scale is a power of two: if nothing overflows, the result has the same bits without it.
    """
    largest = float(np.abs(A).max(initial=0.0))
    unit = 2.0 ** int(np.frexp(largest)[1] - 1) if 0.0 < largest < np.inf else 1.0
    return unit * float(np.linalg.norm(A / unit))


class Problem(NamedTuple):
    """The rows a of (1) whose principal axes are computed."""

    center: bool
    scale: bool


@dataclass(frozen=True)
class Axes:
    """Leading eigenvectors of the scatter matrix S.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
        m and the diagonal of D.
    count : int
        Rows with a positive weight.
    weight : float
        W.
    total : float
        Trace of S.
    values : ndarray of shape (m,)
        The largest eigenvalues of S, descending; at least as many as there are vectors.
    vectors : ndarray of shape (r, n_features)
        Their eigenvectors, as rows.
    solver : str
        How they were computed.
    following : float
        The largest eigenvalue of S without these axes; an estimate if `solver` is "krylov".
    residual : float
        Frobenius norm of S V' - V' (V S V').
    n_iter : int
        Passes of an iterative solver; 1 for others.
    drift : ndarray of shape (n_features,), optional
        The mean of the rows minus m, its rounding error. S is about the mean if this is given, about m if it is None.
    """

    mean: Array
    scale: Array
    count: int
    weight: float
    total: float
    values: Array
    vectors: Array
    solver: str
    following: float = 0.0
    residual: float = 0.0
    n_iter: int = 1
    drift: Array | None = None

    def of_rounding(self) -> float:
        """Contribution of the rounding of m to the distortion: W ||(I - V'V) D^-1 drift||^2."""
        if self.drift is None:
            return 0.0
        a = self.drift / self.scale
        return self.weight * float(np.square(a - (self.vectors @ a) @ self.vectors).sum())

    def distortion(self, kept: int) -> float:
        """Return the distortion if only some axes are kept: the sum of the other eigenvalues."""
        if len(self.values) >= min(self.count, len(self.mean)):
            return float(self.values[kept:].sum())
        return max(self.total - float(self.values[:kept].sum()), 0.0)


def rounded_mean(origin: Array, total: Array) -> tuple[Array, Array]:
    """Return the sum of an origin and a small offset, and its rounding error."""
    mean = origin + total
    return mean, (origin - mean) + total


def shortened(axes: Axes, kept: int) -> Axes:
    """Return the leading axes only. Their residual is bounded by that of all axes."""
    following = float(axes.values[kept]) if kept < len(axes.values) else 0.0
    return replace(axes, vectors=axes.vectors[:kept], following=following)


def oriented(vectors: Array) -> Array:
    """Return rows with signs such that the largest entry (the first in case of ties) is positive, as in `svd_flip`."""
    if not vectors.size:
        return vectors
    size = np.abs(vectors)
    first = (size >= (1 - _TIE) * size.max(axis=1, keepdims=True)).argmax(axis=1)
    signs = np.where(vectors[np.arange(len(vectors)), first] < 0, -1.0, 1.0)
    return np.ascontiguousarray(vectors * signs[:, None])


def column_scale(problem: Problem, variance: Array, mean: Array, unit: float) -> Array:
    """Return the diagonal of D: standard deviations about m, and 1 for constant columns or without scaling.

    `unit` is the rounding error of the values: smaller deviations count as zero.
    """
    if not problem.scale:
        return np.ones(len(variance))
    deviation = np.sqrt(np.maximum(variance, 0.0))
    constant = (deviation <= 4 * unit * np.abs(mean)) | (deviation == 0)
    return np.where(constant, 1.0, deviation)
