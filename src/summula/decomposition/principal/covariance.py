"""Principal axes from the sums of products of columns: one pass, and d x d numbers for any number of rows.

The scatter matrix of `axes.py` is that of the sums about an origin o near the mean, re-centred (G, s, W of `Gram`):

    S = D^-1 (G - s s' / W) D^-1                                                                                (1)

Its eigenvalues have absolute errors of a few roundings of the largest one. If a requested one is too small for this,
rows are read again and factored (`gathered.py`), which does not square the condition number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.engine.threads import solving
from summula.core.estimator.input.finiteness import raise_if_products_overflow
from summula.core.numerics.statistics import Gram
from summula.decomposition.principal.axes import Axes, Problem, column_scale, frobenius_norm, oriented, rounded_mean

__all__ = ["from_gram", "leading_eigenvectors", "scatter"]

Array = NDArray[np.float64]

_SMALL = 64  # number of columns up to which all eigenvectors are computed, since some would take as long
_FEW = 4  # only some eigenvectors are computed if at most one in this many is requested


def scatter(gram: Gram, problem: Problem) -> Array:
    """Return the products about the mean, or about 0."""
    return gram.centred() if problem.center else gram.recentre(np.zeros(len(gram.origin))).products


def from_gram(gram: Gram, problem: Problem, wanted: int | None, unit: float) -> Axes:
    """Return the axes from the sums; `wanted` of them, or all."""
    with np.errstate(over="ignore", invalid="ignore"):
        raw = scatter(gram, problem)
    raise_if_products_overflow(raw)
    mean, drift = np.zeros(len(raw)), None
    if problem.center:
        mean, drift = rounded_mean(gram.origin, gram.total / gram.weight)
    scale = column_scale(problem, np.diag(raw) / gram.weight, mean, unit)
    S = raw / scale / scale[:, None]
    with solving(len(S)):
        values, vectors = leading_eigenvectors(S, None if wanted is None else wanted + 1)
        values = np.maximum(values, 0.0)
        kept = len(values) if wanted is None else min(wanted, len(values))
        V = oriented(vectors[:kept])
        residual = _residual(S, V)
    following = float(values[kept]) if kept < len(values) else 0.0
    solved = gram.count, gram.weight, float(np.trace(S)), values, V, "covariance", following, residual
    return Axes(mean, scale, *solved, drift=drift)


def leading_eigenvectors(S: Array, wanted: int | None) -> tuple[Array, Array]:
    """Return the largest eigenvalues, descending, and their eigenvectors as rows."""
    d = len(S)
    if wanted is None or d <= _SMALL or wanted > d // _FEW:
        values, vectors = np.linalg.eigh(S)
    else:
        values, vectors = linalg.eigh(S, subset_by_index=[d - wanted, d - 1], check_finite=False)
    return values[::-1], vectors[:, ::-1].T


def _residual(S: Array, V: Array) -> float:
    product = V @ S
    return frobenius_norm(product - (product @ V.T) @ V)
