"""Compiled loops of `l1_quadratic.py`: sweeps of coordinate descent (2), Newton steps (3), and the bound (4)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, kernel, non_allocating_kernel
from summula.core.numerics.cholesky_kernels import cholesky, cholesky_solve
from summula.penalties.kernels import proximal_step

__all__ = [
    "FaceScratch",
    "SparseColumns",
    "compile_dense",
    "face_steps",
    "sparse_sweep",
    "survey",
    "sweep",
    "warmup",
]

Array = NDArray[Any]


class FaceScratch(NamedTuple):
    """Scratch memory of `face_steps` for n columns: the support (n,), a factor (n, n) and a step (n,)."""

    support: Array
    factor: Array
    step: Array

    @classmethod
    def of(cls, n: int) -> FaceScratch:
        """Allocate memory for up to n columns."""
        return cls(np.empty(n, np.int64), np.empty((n, n)), np.empty(n))


class SparseColumns(NamedTuple):
    """Columns of a CSC matrix, their means, and their variances; weights of the rows sum to 1."""

    indptr: Array
    indices: Array
    data: Array
    mean: Array
    variance: Array


@kernel
def sweep(G: Array, g: Array, v: Array, a: float, b: float, positive: bool, times: int, least: float) -> float:
    """Perform up to `times` sweeps in place; return the largest change in the last one, in units of the slope."""
    n = len(v)
    largest = 0.0
    for _ in range(times):
        largest = 0.0
        for j in range(n):
            curve = G[j, j] + b
            if curve <= 0.0:
                continue
            old = v[j]
            new = proximal_step(g[j] + G[j, j] * old, a, curve, positive)
            change = new - old
            if change != 0.0:
                v[j] = new
                for k in range(n):
                    g[k] -= G[j, k] * change
                largest = max(largest, abs(change) * curve)
        if largest <= least:
            return 0.0
    return largest


@kernel
def survey(
    v: Array, g: Array, q: Array, c: float, a: float, b: float, positive: bool, wrong: Array
) -> tuple[float, float]:
    """Return P(v) and the bound (4); write the violation of each column's optimality condition to `wrong`."""
    fit, size, square, largest, steepness, start = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(v)):
        x = v[j]
        slope = g[j] - b * x
        steep = slope if positive else abs(slope)
        largest, start = max(largest, steep), max(start, abs(q[j]))
        if steep > 0.0 or x != 0.0:
            steepness += slope * slope
        if x == 0.0:
            wrong[j] = max(steep - a, 0.0)
        else:
            fit += (q[j] + g[j]) * x
            size += abs(x)
            square += x * x
            wrong[j] = abs(slope - a) if x > 0.0 else abs(slope + a)
    residual = max(c - fit, 0.0)
    t = 1.0 if largest <= a else a / largest
    value = residual / 2 + a * size + b / 2 * square
    if a == 0.0:  # no L1 penalty: by strong convexity; without any penalty by the slope alone
        if b > 0.0:
            return value, steepness / (2 * b)
        return value, 0.0 if largest <= 1e-11 * start else value
    gap = (1 - t) ** 2 / 2 * (residual + b * square)
    for j in range(len(v)):
        if v[j] != 0.0:
            gap += max(a * abs(v[j]) - t * (g[j] - b * v[j]) * v[j], 0.0)
    return value, gap


@internal_kernel
def _dependent_direction(G: Array, v: Array, whole: int, n: int, scratch: FaceScratch) -> None:
    """Write the combination of columns that is 0, the first `whole` + 1 of the support, and does not raise a |v|."""
    S, L, x = scratch
    for k in range(whole):
        x[k] = -G[S[whole], S[k]]
    cholesky_solve(L, whole, x)
    x[whole] = 1.0
    for k in range(whole + 1, n):
        x[k] = 0.0
    ascent = 0.0
    for k in range(whole + 1):
        ascent += x[k] if v[S[k]] > 0.0 else -x[k]
    if ascent > 0.0:
        for k in range(whole + 1):
            x[k] = -x[k]


@non_allocating_kernel
def face_steps(
    G: Array, q: Array, v: Array, a: float, b: float, crossings: int, dependent: float, scratch: FaceScratch
) -> bool:
    """Take steps (3) in place until no sign changes; return whether the minimiser on the face was reached.

    As `newton_on_face`, for few columns.
    """
    S, L, x = scratch
    for _ in range(crossings):
        n = 0
        for j in range(len(v)):
            if v[j] != 0.0:
                S[n] = j
                n += 1
        for k in range(n):
            for j in range(k + 1):
                L[k, j] = G[S[k], S[j]]
            L[k, k] += b
        whole = cholesky(L, n, dependent)
        if whole == n:
            for k in range(n):
                x[k] = q[S[k]] - (a if v[S[k]] > 0.0 else -a)
            cholesky_solve(L, n, x)
            for k in range(n):
                x[k] -= v[S[k]]
        else:  # column `whole` is a combination of those before it
            _dependent_direction(G, v, whole, n, scratch)
        t = np.inf
        for k in range(n):
            if x[k] * v[S[k]] < 0.0:
                t = min(t, -v[S[k]] / x[k])
        if whole == n and t >= 1.0:
            for k in range(n):
                v[S[k]] += x[k]
            return True
        if t == np.inf:
            return False
        for k in range(n):
            here = v[S[k]]
            v[S[k]] = 0.0 if x[k] * here < 0.0 and -here / x[k] <= t else here + t * x[k]
    return False


@kernel
def sparse_sweep(
    columns: SparseColumns,
    weight: Array,
    residual: Array,
    shift: float,
    v: Array,
    a: float,
    b: float,
    positive: bool,
    times: int,
) -> float:
    """Perform sweeps over sparse columns in place; weights sum to 1, and the residual is `residual` + shift.

    Columns are centred implicitly: a step updates the residual where a column has nonzeros, and the shift for all rows.
    Returns the new shift.
    """
    indptr, indices, data, mean, variance = columns
    for _ in range(times):
        for j in range(len(v)):
            curve = variance[j] + b
            if curve <= 0.0:
                continue
            slope = shift * mean[j]
            for k in range(indptr[j], indptr[j + 1]):
                slope += data[k] * weight[indices[k]] * residual[indices[k]]
            old = v[j]
            new = proximal_step(slope + variance[j] * old, a, curve, positive)
            change = new - old
            if change != 0.0:
                v[j] = new
                shift += mean[j] * change
                for k in range(indptr[j], indptr[j + 1]):
                    residual[indices[k]] -= data[k] * change
    return shift


def compile_dense() -> None:
    """Compile what solves problems given by the products of pairs of columns."""
    one = np.ones(1)
    survey(one, one, one, 1.0, 0.5, 0.0, False, one.copy())
    sweep(np.eye(1), np.ones(1), np.zeros(1), 0.5, 0.0, False, 1, 0.0)
    face_steps(np.eye(1), one, one.copy(), 0.5, 0.0, 1, 0.0, FaceScratch.of(1))


def warmup() -> None:
    """Compile the kernels."""
    compile_dense()
    one, ends, at = np.ones(1), np.array([0, 1], np.int32), np.zeros(1, np.int32)
    sparse_sweep(SparseColumns(ends, at, one, one, one), one, one.copy(), 0.0, one.copy(), 0.5, 0.0, False, 1)
