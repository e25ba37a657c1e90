"""Compiled loops over the rows of `interior_point.py`: what a step needs besides products with the rows.

`values` are s, xi, u and t along the first axis, for each side of the loss and each row; `sign` and h are those of the
sides. The inverse of D, `rest` (mu - u s and mu - t xi, divided by u and t) and g are written by one kernel and read by
the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, non_allocating_kernel

__all__ = ["correct", "move", "predict", "step_few_rows", "warmup"]

Array = NDArray[Any]

_RANK = 1e-11  # pivot of the scaled matrix below which it counts as singular


@internal_kernel
def predict(
    values: Array, sign: Array, h: Array, scores: Array, D: Array, rest: Array, g: Array, weight: Array, theta: Array
) -> None:
    """Prepare a predictor, mu = 0: the weights of the Gram matrix, and those of its right side."""
    for i in range(len(scores)):
        weight[i] = theta[i] = 0.0
    for side in range(len(h)):
        for i in range(len(scores)):
            s, xi = values[0, side, i], values[1, side, i]
            inverse = 1.0 / (s / values[2, side, i] + xi / values[3, side, i])
            missing = h[side, i] - sign[side, i] * scores[i]
            rest[0, side, i], rest[1, side, i] = -s, -xi
            D[side, i], g[side, i] = inverse, missing
            weight[i] += inverse
            theta[i] += sign[side, i] * missing * inverse


@internal_kernel
def _change(values: Array, rest: Array, du: float, side: int, i: int) -> tuple[float, float]:
    """The steps of s and xi for a step of u, which is that of -t."""
    ds = rest[0, side, i] - values[0, side, i] / values[2, side, i] * du
    return ds, rest[1, side, i] + values[1, side, i] / values[3, side, i] * du


@internal_kernel
def _longest(values: Array, sign: Array, D: Array, rest: Array, g: Array, more: Array) -> float:
    """The longest step before a variable becomes 0, at most 1; g becomes the step of u."""
    most = 1.0
    for side in range(len(g)):
        for i in range(len(more)):
            du = (g[side, i] - sign[side, i] * more[i]) * D[side, i]
            g[side, i] = du
            ds, dxi = _change(values, rest, du, side, i)
            share = -ds / values[0, side, i]
            most = share if share > most else most
            share = -dxi / values[1, side, i]
            most = share if share > most else most
            share = -du / values[2, side, i] if du < 0.0 else du / values[3, side, i]
            most = share if share > most else most
    return 1.0 / most


@internal_kernel
def correct(
    values: Array, sign: Array, h: Array, scores: Array, D: Array, rest: Array, g: Array, more: Array, theta: Array
) -> None:
    """Turn a predictor, which adds `more` to the scores, into the right side of the corrector."""
    length = _longest(values, sign, D, rest, g, more)
    before = after = 0.0
    for side in range(len(g)):
        for i in range(len(more)):
            s, xi, u, t = values[0, side, i], values[1, side, i], values[2, side, i], values[3, side, i]
            du = g[side, i]
            ds, dxi = _change(values, rest, du, side, i)
            before += u * s + t * xi
            after += (u + length * du) * (s + length * ds) + (t - length * du) * (xi + length * dxi)
    share = after / before
    mu = before / (2 * len(g) * len(more)) * share * share * share
    for i in range(len(more)):
        theta[i] = 0.0
    for side in range(len(g)):
        for i in range(len(more)):
            s, xi, du = values[0, side, i], values[1, side, i], g[side, i]
            ds, dxi = _change(values, rest, du, side, i)
            first = (mu - du * ds) / values[2, side, i] - s
            second = (mu + du * dxi) / values[3, side, i] - xi
            missing = h[side, i] + s - xi - sign[side, i] * scores[i] + first - second
            rest[0, side, i], rest[1, side, i], g[side, i] = first, second, missing
            theta[i] += sign[side, i] * missing * D[side, i]


@internal_kernel
def move(
    values: Array, sign: Array, D: Array, rest: Array, g: Array, more: Array, back: float, after: Array
) -> tuple[float, float]:
    """Write the values after a corrector, `back` of the way to the boundary; returns that length, and u's + t'xi."""
    length = back * _longest(values, sign, D, rest, g, more)
    gap = 0.0
    for side in range(len(g)):
        for i in range(len(more)):
            du = g[side, i]
            ds, dxi = _change(values, rest, du, side, i)
            s, xi = values[0, side, i] + length * ds, values[1, side, i] + length * dxi
            u, t = values[2, side, i] + length * du, values[3, side, i] - length * du
            after[0, side, i], after[1, side, i], after[2, side, i], after[3, side, i] = s, xi, u, t
            gap += u * s + t * xi
    return length, gap


@internal_kernel
def _factor(Z: Array, weight: Array, penalised: Array, L: Array, scale: Array) -> bool:
    """Cholesky's factor of the matrix of (3), scaled to a unit diagonal; False where it is singular."""
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
            total = L[a, b] / (scale[a] * scale[b])
            for k in range(b):
                total -= L[a, k] * L[b, k]
            if a > b:
                L[a, b] = total / L[b, b]
            elif total > _RANK:
                L[a, a] = np.sqrt(total)
            else:
                return False
    return True


@internal_kernel
def _solve(Z: Array, theta: Array, slope: Array, L: Array, scale: Array, x: Array, more: Array) -> None:
    """The solution x of (3) with the right side slope + Z'theta, and Z x."""
    p = len(scale)
    for a in range(p):
        x[a] = slope[a]
    for i in range(len(Z)):
        for a in range(p):
            x[a] += theta[i] * Z[i, a]
    for a in range(p):
        total = x[a] / scale[a]
        for k in range(a):
            total -= L[a, k] * x[k]
        x[a] = total / L[a, a]
    for a in range(p - 1, -1, -1):
        total = x[a]
        for k in range(a + 1, p):
            total -= L[k, a] * x[k]
        x[a] = total / L[a, a]
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
    penalised: Array,
    slope: Array,
    values: Array,
    sides: tuple[Array, Array],
    scores: Array,
    work: tuple[Array, ...],
    back: float,
    step: tuple[Array, Array, Array],
) -> tuple[float, float]:
    """One step of `interior_point.py` on dense rows; a length of 0 where (3) is singular.

    The same as `predict`, `correct` and `move` with the products between them, in one call. `step` receives the step of
    v, what it adds to the scores, and the values after it.
    """
    (sign, h), (D, rest, g, weight, theta, L, scale), (x, more, after) = sides, work, step
    predict(values, sign, h, scores, D, rest, g, weight, theta)
    if not _factor(Z, weight, penalised, L, scale):
        return 0.0, 0.0
    _solve(Z, theta, slope, L, scale, x, more)
    correct(values, sign, h, scores, D, rest, g, more, theta)
    _solve(Z, theta, slope, L, scale, x, more)
    length, gap = move(values, sign, D, rest, g, more, back, after)
    return length, gap


def warmup() -> None:
    """Compile for the usual types."""
    values, rest, one, row = np.ones((4, 1, 1)), np.ones((2, 1, 1)), np.ones((1, 1)), np.ones(1)
    D, g, weight, theta = one.copy(), one.copy(), row.copy(), row.copy()
    predict(values, one, one, row, D, rest, g, weight, theta)
    correct(values, one, one, row, D, rest, g, row, theta)
    move(values, one, D, rest, g, row, 0.5, values.copy())
    work = (D, rest, g, weight, theta, one.copy(), row.copy())
    step = (row.copy(), row.copy(), values.copy())
    step_few_rows(one, row, row, values, (one, one), row, work, 0.5, step)
