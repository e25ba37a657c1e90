"""Compiled loops over the rows of `interior_point.py`, for the parts of a step other than products with the rows.

`values` are s, xi, u and t, each for the rows of the first side of the loss, then of the second; `sign` and h are those
of the sides. The inverse of D, `rest` (residuals mu - u s and mu - t xi, divided by u and t) and g are written by one
kernel and read by the next. (Vectors compile in half the time of arrays with an axis for the sides.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, non_allocating_kernel
from summula.core.numerics.cholesky_kernels import cholesky, cholesky_solve

__all__ = ["correct", "move", "predict", "step_few_rows", "warmup"]

Array = NDArray[Any]

_RANK = 1e-11  # pivot of the scaled matrix below which it counts as singular


@internal_kernel
def predict(
    values: Any, sign: Array, h: Array, scores: Array, D: Array, rest: Any, g: Array, weight: Array, theta: Array
) -> None:
    """Prepare a predictor, mu = 0: the weights of the Gram matrix, and those of the right-hand side."""
    (s, xi, u, t), (first, second), n = values, rest, len(scores)
    for i in range(n):
        weight[i] = theta[i] = 0.0
    for k in range(len(h)):
        i = k if k < n else k - n
        inverse = 1.0 / (s[k] / u[k] + xi[k] / t[k])
        missing = h[k] - sign[k] * scores[i]
        first[k], second[k] = -s[k], -xi[k]
        D[k], g[k] = inverse, missing
        weight[i] += inverse
        theta[i] += sign[k] * missing * inverse


@internal_kernel
def _longest(values: Any, sign: Array, D: Array, rest: Any, g: Array, more: Array) -> float:
    """Return the longest step before a variable becomes 0, at most 1; g is set to the step of u, rest to s, xi."""
    (s, xi, u, t), (first, second), n, most = values, rest, len(more), 1.0
    for k in range(len(g)):
        i = k if k < n else k - n
        du = (g[k] - sign[k] * more[i]) * D[k]
        ds, dxi = first[k] - s[k] / u[k] * du, second[k] + xi[k] / t[k] * du
        g[k], first[k], second[k] = du, ds, dxi
        share = -ds / s[k]
        most = share if share > most else most
        share = -dxi / xi[k]
        most = share if share > most else most
        share = -du / u[k] if du < 0.0 else du / t[k]
        most = share if share > most else most
    return 1.0 / most


@internal_kernel
def correct(
    values: Any, sign: Array, h: Array, scores: Array, D: Array, rest: Any, g: Array, more: Array, theta: Array
) -> None:
    """Convert a predictor, which adds `more` to the scores, to the right-hand side of the corrector."""
    (s, xi, u, t), (first, second), n = values, rest, len(scores)
    length = _longest(values, sign, D, rest, g, more)
    before = after = 0.0
    for k in range(len(g)):
        before += u[k] * s[k] + t[k] * xi[k]
        after += (u[k] + length * g[k]) * (s[k] + length * first[k])
        after += (t[k] - length * g[k]) * (xi[k] + length * second[k])
    share = after / before
    mu = before / (2 * len(g)) * share * share * share
    for i in range(n):
        theta[i] = 0.0
    for k in range(len(g)):
        i = k if k < n else k - n
        first[k] = (mu - g[k] * first[k]) / u[k] - s[k]
        second[k] = (mu + g[k] * second[k]) / t[k] - xi[k]
        g[k] = h[k] + s[k] - xi[k] - sign[k] * scores[i] + first[k] - second[k]
        theta[i] += sign[k] * g[k] * D[k]


@internal_kernel
def move(
    values: Any, sign: Array, D: Array, rest: Any, g: Array, more: Array, back: float, after: Any
) -> tuple[float, float]:
    """Apply a corrector, the fraction `back` of the way to the boundary; return its length, and u's + t'xi."""
    (s, xi, u, t), (first, second), (s_after, xi_after, u_after, t_after), gap = values, rest, after, 0.0
    length = back * _longest(values, sign, D, rest, g, more)
    for k in range(len(g)):
        s_after[k], xi_after[k] = s[k] + length * first[k], xi[k] + length * second[k]
        u_after[k], t_after[k] = u[k] + length * g[k], t[k] - length * g[k]
        gap += u_after[k] * s_after[k] + t_after[k] * xi_after[k]
    return length, gap


@internal_kernel
def _factor(Z: Array, weight: Array, penalised: Array, L: Array, scale: Array) -> bool:
    """Compute the Cholesky factor of the matrix of (3), scaled to unit diagonal; return False if it is singular."""
    p = len(scale)
    for a in range(p):
        for b in range(p):
            L[a, b] = 0.0
    for i in range(len(Z)):
        for a in range(p):
            share = weight[i] * Z[i, a]
            for b in range(a + 1):
                L[a, b] += share * Z[i, b]
    for a in range(p):
        L[a, a] += penalised[a]
        scale[a] = np.sqrt(L[a, a]) if L[a, a] > 0.0 else 1.0
    for a in range(p):
        for b in range(a + 1):
            L[a, b] /= scale[a] * scale[b]
    columns: int = cholesky(L, p, _RANK)
    return columns == p


@internal_kernel
def _solve(Z: Array, theta: Array, slope: Array, L: Array, scale: Array, x: Array, more: Array) -> None:
    """Compute the solution x of (3) with the right-hand side slope + Z'theta, and Z x."""
    p = len(scale)
    for a in range(p):
        x[a] = slope[a]
    for i in range(len(Z)):
        for a in range(p):
            x[a] += theta[i] * Z[i, a]
    for a in range(p):
        x[a] /= scale[a]
    cholesky_solve(L, p, x)
    for a in range(p):
        x[a] /= scale[a]
    for i in range(len(Z)):
        total = 0.0
        for a in range(p):
            total += Z[i, a] * x[a]
        more[i] = total


@non_allocating_kernel
def step_few_rows(
    Z: Array,
    v: Array,
    slope: Array,
    scores: Array,
    penalised: Array,
    c: Array,
    sides: Array,
    values: Array,
    wide: Array,
    rows: Array,
    columns: Array,
    L: Array,
    back: float,
    v_after: Array,
    after: Array,
) -> tuple[float, float, float]:
    """Perform one step of `interior_point.py` on dense rows; return its length, and gap and objective after it.

    The same as `predict`, `correct` and `move` with the products between them, in one call. `scores` and `slope` are
    updated, unless (3) is singular: then the length is 0. Arrays of vectors, which are cheaper to pass than tuples, are
    `sides` (sign and h), `wide` (D, rest and g), `rows` (weight, theta and the change of the scores) and `columns` (the
    scale of the factor, and the step of v).
    """
    now, then = (values[0], values[1], values[2], values[3]), (after[0], after[1], after[2], after[3])
    sign, h, D, rest, g = sides[0], sides[1], wide[0], (wide[1], wide[2]), wide[3]
    weight, theta, more, scale, x = rows[0], rows[1], rows[2], columns[0], columns[1]
    predict(now, sign, h, scores, D, rest, g, weight, theta)
    if not _factor(Z, weight, penalised, L, scale):
        return 0.0, 0.0, 0.0
    _solve(Z, theta, slope, L, scale, x, more)
    correct(now, sign, h, scores, D, rest, g, more, theta)
    _solve(Z, theta, slope, L, scale, x, more)
    length, gap = move(now, sign, D, rest, g, more, back, then)
    objective = 0.0
    for a in range(len(v)):
        v_after[a] = v[a] + length * x[a]
        slope[a] *= 1.0 - length  # the residuals of the two linear equations of (2) decrease by this fraction
        objective += 0.5 * penalised[a] * v_after[a] * v_after[a]
    n = len(scores)
    for i in range(n):
        scores[i] += length * more[i]
    for k in range(len(h)):
        objective += c[k if k < n else k - n] * then[1][k]
    return length, gap, objective


def warmup() -> None:
    """Compile for the usual types."""
    one, row = np.ones((1, 1)), np.ones(1)
    values, rest, D, g, weight, theta = (row, row, row, row), (row, row), row, row, row, row
    predict(values, row, row, row, D, rest, g, weight, theta)
    correct(values, row, row, row, D, rest, g, row, theta)
    move(values, row, D, rest, g, row, 0.5, values)
    two, three, four = np.ones((2, 1)), np.ones((3, 1)), np.ones((4, 1))
    step_few_rows(one, row, row, row, row, row, two, four, four, three, two, one, 0.5, row, four)
