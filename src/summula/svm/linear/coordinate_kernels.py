"""Compiled loops of `coordinates.py`: epochs of coordinate descent over rows (dual) or columns (L1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel
from summula.core.engine.random_kernels import integer
from summula.penalties.kernels import proximal_step

__all__ = ["dual_epoch", "l1_epoch", "warmup"]

Array = NDArray[Any]
Entries = tuple[Array, Array, Array]  # indptr, indices and data of CSR rows or CSC columns

_SHRUNK, _VIOLATION = range(2)  # indices into `state`


@kernel
def _dot(data: Array, indices: Array, a: int, b: int, w: Array) -> float:
    total = 0.0
    for t in range(a, b):
        total += data[t] * w[indices[t]]
    return total


@kernel
def dual_epoch(
    rows: Entries, y: Array, box: Array, square: Array, w: Array, beta: Array, order: Array, state: Array
) -> int:
    """Perform one pass over the rows in `order`, which is shuffled and shortened; return the number of active rows.

    `box` contains low, high, D and epsilon of every row; `square` is ||z_i||^2. state[0] is the slope above which a
    variable at its bound is excluded, state[1] is set to the largest violation; state[2] and state[3] are the key and
    the counter of the first random number.
    """
    indptr, indices, data = rows
    active, key, draw = len(order), int(state[2]), int(state[3])
    for k in range(active - 1, 0, -1):
        other = integer(key, draw, k + 1)
        draw += 1
        order[k], order[other] = order[other], order[k]
    state[3] = draw
    limit, worst, k = state[_SHRUNK], 0.0, 0
    while k < active:
        i = order[k]
        low, high, D, epsilon = box[i, 0], box[i, 1], box[i, 2], box[i, 3]
        a, b = indptr[i], indptr[i + 1]
        H, old = square[i] + D, beta[i]
        G = _dot(data, indices, a, b, w) - y[i] + D * old
        if (old == low and G - epsilon > limit and low == 0.0) or (
            old == high and G + epsilon < -limit and high == 0.0
        ):
            active -= 1
            order[k], order[active] = order[active], order[k]
            continue
        if (old == high and high > 0.0 and G + epsilon < -limit) or (old == low and low < 0.0 and G - epsilon > limit):
            active -= 1
            order[k], order[active] = order[active], order[k]
            continue
        k += 1
        if H <= 0.0:
            continue
        target = old - G / H
        new = target - epsilon / H if target > epsilon / H else target + epsilon / H if target < -epsilon / H else 0.0
        new = min(max(new, low), high)
        change = new - old
        if change != 0.0:
            worst = max(worst, abs(change) * H)
            beta[i] = new
            for t in range(a, b):
                w[indices[t]] += change * data[t]
    state[_VIOLATION] = worst
    return active


@kernel
def l1_epoch(
    columns: Entries, weight: Array, penalised: Array, w: Array, short: Array, order: Array, sign: Array
) -> float:
    """Perform one pass over the columns for the L1 penalty and a squared loss; return the largest violation.

    `weight` is C c_i; `short` contains 1 - y f (classes, sign = y).
    """
    indptr, indices, data = columns
    worst = 0.0
    for k in range(len(order)):
        j = order[k]
        slope, curvature = 0.0, 1e-12
        for t in range(indptr[j], indptr[j + 1]):
            i = indices[t]
            if short[i] > 0.0:
                slope -= 2.0 * weight[i] * short[i] * sign[i] * data[t]
                curvature += 2.0 * weight[i] * data[t] * data[t]
        penalty = penalised[j]
        new = proximal_step(curvature * w[j] - slope, penalty, curvature, False)
        step = new - w[j]
        violation = slope + penalty if w[j] > 0 else slope - penalty if w[j] < 0 else max(abs(slope) - penalty, 0.0)
        worst = max(worst, abs(violation))
        if abs(step) < 1e-300:
            continue
        # Armijo's rule; the curvature grows where rows enter the margin.
        expected = slope * step + penalty * (abs(new) - abs(w[j]))
        for _ in range(30):
            change = penalty * (abs(w[j] + step) - abs(w[j]))
            for t in range(indptr[j], indptr[j + 1]):
                i = indices[t]
                before, after = max(short[i], 0.0), max(short[i] - sign[i] * data[t] * step, 0.0)
                change += weight[i] * (after * after - before * before)
            if change <= 0.01 * expected:
                for t in range(indptr[j], indptr[j + 1]):
                    short[indices[t]] -= sign[indices[t]] * data[t] * step
                w[j] += step
                break
            step *= 0.5
            expected *= 0.5
    return worst


def warmup() -> None:
    """Compile for the usual types."""
    one = (np.array([0, 1], np.int32), np.zeros(1, np.int32), np.ones(1))
    zero, order = np.zeros(1), np.zeros(1, np.int64)
    dual_epoch(one, np.ones(1), np.zeros((1, 4)), np.ones(1), zero, zero.copy(), order, np.zeros(4))
    l1_epoch(one, np.ones(1), np.ones(1), zero, np.ones(1), order, np.ones(1))
