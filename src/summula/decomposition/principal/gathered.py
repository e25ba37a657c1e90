"""Principal axes from the rows themselves, for more columns than rows, and for ill-conditioned columns.

More columns than rows: all rows a of `axes.py` are gathered into A, shape (n, d). The eigenvectors of A A', n x n, give
those of S = A'A, d x d,

    A A' u = s u    =>    S v = s v    for    v = A'u / sqrt(s)                                                (1)

Ill-conditioned columns: the singular values of A are the square roots of the eigenvalues of S, and lose half as many
digits if they are computed without squaring. With at least as many rows as columns A is first reduced, chunk by
chunk, to a triangle R with R'R = A'A (`TriangularFactor`), which has the same singular values and right vectors.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Part
from summula.core.data.layout.blocks import aligned, empty_block, product
from summula.core.engine.threads import solving
from summula.core.estimator.run import Run
from summula.core.numerics.statistics import TriangularFactor, triangle
from summula.decomposition.principal.axes import Axes, Problem, column_scale, frobenius_norm, oriented, rounded_mean

__all__ = ["from_factor", "from_rows", "gather"]

Array = NDArray[np.float64]

_SMALL = 10_000_000  # n^2 d up to which the time of a singular value decomposition is negligible
_SQUARED = float(np.sqrt(np.finfo(np.float64).eps))  # relative size of an eigenvalue below which (1) loses digits


def gather(run: Run, origin: Array) -> tuple[Array, Array]:
    """Return all rows with a positive weight, minus an origin, as one block, and their weights."""
    blocks, weights = [], []
    for found in run.each(functools.partial(_rows_of_part, origin), "rows"):
        for block, weight in found:
            blocks.append(block)
            weights.append(weight)
    rows = empty_block(sum(map(len, blocks)), run.source.n_features)
    np.concatenate(blocks, out=rows)
    return rows, np.concatenate(weights)


def _rows_of_part(origin: Array, part: Part) -> list[tuple[Array, Array]]:
    found = []
    for chunk in part.chunks():
        block = chunk.block(np.float64, origin)
        if chunk.weight is None:
            found.append((block, np.ones(len(chunk))))
        else:
            there = chunk.weight > 0
            found.append((block[there], np.asarray(chunk.weight[there], np.float64)))
    return found


def from_rows(rows: Array, weight: Array, origin: Array, problem: Problem, wanted: int | None, unit: float) -> Axes:
    """Return the axes of gathered rows (about an origin) by (1), or by singular values if (1) loses digits."""
    n, d = rows.shape
    W = float(weight.sum())
    drift = product(rows.T, weight[:, None])[:, 0] / W if problem.center else -origin
    A = aligned(rows - drift)
    scale = column_scale(problem, (weight[:, None] * A**2).sum(axis=0) / W, origin + drift, unit)
    A *= np.sqrt(weight)[:, None] / scale
    most = min(n, d)
    with solving(n):
        found = None if n * n * d <= _SMALL else _by_products(A, most if wanted is None else min(wanted, most))
        values, V = _by_singular_values(A) if found is None else found
    kept = len(V) if wanted is None else min(wanted, len(V))
    mean, rounding = rounded_mean(origin, drift) if problem.center else (np.zeros(d), None)
    solver = "svd" if found is None else "gram"
    total = float(np.square(A).sum())
    return _finish(Axes(mean, scale, n, W, total, values, V, solver, drift=rounding), kept, A)


def _by_products(A: Array, wanted: int) -> tuple[Array, Array] | None:
    """Return the axes by (1); None if a requested eigenvalue is too small for it."""
    values, U = np.linalg.eigh(product(A, aligned(A.T)))
    values, U = values[::-1], U[:, ::-1]
    if values[wanted - 1] <= _SQUARED * values[0]:
        return None
    kept = U[:, :wanted]
    V = product(A.T, aligned(kept)).T / np.sqrt(values[:wanted, None])
    return np.maximum(values, 0.0), V


def _by_singular_values(A: Array) -> tuple[Array, Array]:
    _, singular, Vt = np.linalg.svd(A, full_matrices=False)
    return singular**2, Vt


def from_factor(run: Run, problem: Problem, near: Axes, wanted: int | None) -> Axes:
    """Return the axes by singular values of the triangular factor, with mean and scale of the axes `near`."""
    factor = run.sum(TriangularFactor, (near.mean, problem.center), "triangular factor")
    first, d = int(problem.center), len(near.mean)
    with solving(d):
        R = triangle(factor.R)
        A = aligned(R[first:, first:] / near.scale)
        values, V = _by_singular_values(A)
    mean, drift = rounded_mean(near.mean, R[0, 1:] / R[0, 0]) if problem.center else (near.mean, None)
    axes = Axes(mean, near.scale, factor.count, factor.weight, float(values.sum()), values, V, "qr", drift=drift)
    return _finish(axes, len(V) if wanted is None else min(wanted, len(V)), A)


def _finish(axes: Axes, kept: int, A: Array) -> Axes:
    """Return the leading axes of the rows A, with the residual of S on their span."""
    V = oriented(axes.vectors[:kept])
    image = product(A.T, product(A, aligned(V.T))).T
    residual = frobenius_norm(image - (image @ V.T) @ V)
    following = float(axes.values[kept]) if kept < len(axes.values) else 0.0
    return replace(axes, vectors=V, following=following, residual=residual)
