"""The compiled steps of stochastic gradient descent on one linear score.

The score of a row is p = w'x + b, its loss l(y, p) with slope l'(y, p). With the step size eta of step t and the
penalty l2 |w|^2 / 2 + l1 |w|_1, a step over a batch B of rows with weights c_i is

    w <- (1 - eta l2) w - eta / |B| sum_i c_i l'_i x_i,      b <- b - eta / |B| sum_i c_i l'_i                     (1)
    u <- u + eta l1;   w_j > 0: w_j <- max(0, w_j - (u + q_j)),   w_j < 0: w_j <- min(0, w_j + (u - q_j))          (2)

where u is the cumulative L1 penalty and q_j the part of it that has been applied to w_j (Tsuruoka, Tsujii and
Ananiadou 2009). Three devices make the cost of a step proportional to the stored values of its rows:

    w = s v           a shrinkage by L2 is one product, s <- (1 - eta l2) s                                        (3)
    lazy updates      (2) is applied to a column when a row next uses it: without L2, one update by the sum of several
                      penalties equals the several updates
    sum of s v        = S v + a, where S is the sum of s so far and a <- a - S delta when v <- v + delta           (4)

A buffer of rows is dense (`indices` None: d values per row) or CSR. The branches on None are decided by the compiler.
(There are no calls of `min` and `max`, which Numba compiles once for every place where they are called.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import (
    internal_kernel,
    internal_summing_kernel,
    kernel,
    non_allocating_kernel,
    row_dtypes,
)
from summula.core.compilation.intrinsics import prefetch
from summula.core.engine.random_kernels import shuffle
from summula.losses.kernels import loss_of_score, slope_of_score
from summula.optimize.solvers.stochastic_descent.rows import Buffer
from summula.optimize.solvers.stochastic_descent.rule import (
    AVERAGED,
    ETA,
    INTERCEPT,
    INTERCEPTS,
    L1_SUM,
    LOSS,
    ONE_BUFFER,
    PENALTY,
    SCALE,
    SCALES,
    STEPS,
    UPDATES,
    Epochs,
    Rule,
    State,
)

__all__ = [
    "add_products",
    "add_squares",
    "apply_pending_updates",
    "descend",
    "warmup",
]

Array = NDArray[Any]

_STEEPEST = 1e12  # slopes are clipped here, so that descent can recover from a first step that is too long
_SMALLEST_SCALE = 1e-9
_AHEAD = 8  # number of rows to prefetch


class _Rows(NamedTuple):
    """A buffer without the columns of its values, and scratch for the steps of a batch."""

    data: Array
    starts: Any  # None for dense rows
    width: int
    y: Array
    weight: Array
    order: Array
    steps: Array


@internal_kernel
def _prefetch_row(data: Array, first: int, last: int) -> None:
    """Request the cache lines (of 64 bytes) of a row."""
    for k in range(first, last, 64 // data.itemsize):
        prefetch(data, k)


# Loops over a row may add in any order (the same one in every call), which allows vector instructions; NaN and
# infinities are handled as usual. Dense rows are slices. CSR rows, which are often shorter, are not: a slice is a
# reference, and counting two references per row costs as much as a dozen entries.


@internal_summing_kernel
def _dot(data: Array, v: Array) -> float:
    total = 0.0
    for k in range(len(data)):
        total += v[k] * data[k]
    return total


@internal_summing_kernel
def _sparse_dot(data: Array, indices: Array, first: int, last: int, v: Array) -> float:
    total = 0.0
    for k in range(np.uint64(first), np.uint64(last)):
        total += v[np.uint64(indices[k])] * data[k]
    return total


@internal_summing_kernel
def _sparse_add(data: Array, indices: Array, first: int, last: int, step: float, v: Array) -> None:
    """v += step x, without averages."""
    for k in range(np.uint64(first), np.uint64(last)):
        v[np.uint64(indices[k])] += step * data[k]


@internal_summing_kernel
def _square(data: Array) -> float:
    total = 0.0
    for k in range(len(data)):
        total += data[k] * data[k]
    return total


@internal_summing_kernel
def _add(data: Array, indices: Array | None, step: float, before: float, v: Array, a: Any, judged: int) -> float:
    """v += step x, and (4) if there are averages; returns the increase of |v|^2, if `judged`."""
    grown = 0.0
    if indices is None:
        if judged:
            for k in range(len(data)):
                old = v[k]
                v[k] = old + step * data[k]
                grown += step * data[k] * (v[k] + old)
        else:
            for k in range(len(data)):
                v[k] += step * data[k]
        if a is not None:
            for k in range(len(data)):
                a[k] -= step * before * data[k]
        return grown
    for k in range(len(data)):
        j = np.uint64(indices[k])
        old = v[j]
        new = old + step * data[k]
        v[j] = new
        grown += (new - old) * (new + old)
    if a is not None:
        for k in range(len(data)):
            a[np.uint64(indices[k])] -= step * before * data[k]
    return grown


@internal_kernel
def _apply_l1(
    count: int, indices: Array | None, u: float, scale: float, before: float, v: Array, a: Any, q: Array
) -> float:
    """Apply the cumulative penalty (2) to the columns of a row; returns the increase of |v|^2."""
    grown = 0.0
    for k in range(count):
        j = np.uint64(k) if indices is None else np.uint64(indices[k])
        old = v[j]
        if old > 0.0:
            new = old - (u + q[j]) / scale
            new = new if new > 0.0 else 0.0
        elif old < 0.0:
            new = old + (u - q[j]) / scale
            new = new if new < 0.0 else 0.0
        else:
            continue
        q[j] += scale * (new - old)
        v[j] = new
        grown += (new - old) * (new + old)
        if a is not None:
            a[j] -= before * (new - old)
    return grown


@internal_kernel
def _learning_rate(rule: Rule, t: float, eta: float) -> Any:
    """Return the step size of step t; `eta` if it does not depend on t."""
    if rule.schedule == 1:
        return 1.0 / (rule.alpha * (rule.early + t - 1.0))
    if rule.schedule == 2:
        return rule.eta0 / t**rule.power
    return eta


@internal_kernel
def _passive_aggressive(rule: Rule, value: float, slope: float, norm: float) -> Any:
    """Return the step that makes the loss of the row zero, limited by eta0."""
    if rule.schedule == 3:
        step = value / norm if norm > 0.0 else 0.0
        step = step if step < rule.eta0 else rule.eta0
    else:
        step = value / (norm + 0.5 / rule.eta0)
    return -np.sign(slope) * step


@internal_kernel
def _prefetch_later(data: Array, indices: Any, starts: Any, width: int, row: int) -> None:
    """Prefetch a row that comes later in the order."""
    if indices is None:
        _prefetch_row(data, row * width, (row + 1) * width)
    else:
        _prefetch_row(data, starts[row], starts[row + 1])
        _prefetch_row(indices, starts[row], starts[row + 1])


@internal_kernel
def _fold_scale(scale: float, scales: float, v: Array, a: Any) -> Any:
    """Multiply v by its scale, reset the scale to 1, and update (4); returns |v|^2."""
    if a is not None:
        for k in range(len(a)):
            a[k] += scales * v[k]
    for k in range(len(v)):
        v[k] *= scale
    return _square(v)


@kernel
def add_squares(starts: Array, data: Array, out: Array) -> None:
    """out += |x|^2 of every CSR row."""
    for i in range(len(out)):
        for k in range(starts[i], starts[i + 1]):
            out[i] += data[k] * data[k]


@kernel
def add_products(starts: Array, indices: Array, data: Array, theta: Array, out: Array) -> None:
    """out[c] += X'theta[:, c], over CSR rows."""
    for i in range(len(theta)):
        for c in range(theta.shape[1]):
            if theta[i, c] != 0.0:
                for k in range(starts[i], starts[i + 1]):
                    out[c, np.uint64(indices[k])] += data[k] * theta[i, c]


def descend(buffer: Buffer, rule: Rule, state: State, epochs: Epochs = ONE_BUFFER) -> int:
    """Take the steps (1) to (4) over the rows of a buffer in its order, changing `state`; return the number of epochs.

    With several `epochs`, the order is scratch.
    """
    data, indices, starts, width, y, weight, order = buffer
    rows = _Rows(data, starts, width, y, weight, order, np.empty(rule.batch))
    return int(descend_rows(rows, indices, rule, state.v, state.numbers, _given(state.a), _given(state.q), epochs))


def _given(values: Array) -> Array | None:
    return values if len(values) else None


@internal_kernel
def _order_rows(order: Array, epochs: Epochs, number: int) -> None:
    """Write the order of an epoch over all rows; a single buffer already has its order."""
    if len(epochs.trace) > 0:
        for i in range(len(order)):
            order[i] = i
        if epochs.shuffle:
            shuffle(epochs.seed, epochs.first + number, 1, order)


@internal_kernel
def _apply_l1_to_row(indices: Array, first: int, last: int, numbers: Array, v: Array, a: Any, q: Array) -> Any:
    """Apply (2) to the columns of a CSR row; returns the increase of |v|^2."""
    return _apply_l1(last - first, indices[first:last], numbers[L1_SUM], numbers[SCALE], numbers[SCALES], v, a, q)


@internal_kernel
def _apply_l1_to_all(numbers: Array, v: Array, a: Any, q: Array) -> Any:
    """Apply (2) to all columns; returns the increase of |v|^2."""
    return _apply_l1(len(v), None, numbers[L1_SUM], numbers[SCALE], numbers[SCALES], v, a, q)


@internal_kernel
def _coded_target(rule: Rule, y: Array, weight: Array, i: int) -> Any:
    """Return the target of a row, 1 or -1 for classes, and its weight."""
    target, share = y[i], 1.0
    if rule.positive >= 0.0:
        inside = target == rule.positive
        target, share = (1.0, rule.inside) if inside else (-1.0, rule.outside)
    if len(weight) > 0:
        share *= weight[i]
    return target, share


@internal_kernel
def _step_of_row(
    rule: Rule, target: float, p: float, eta: float, data: Array, first: int, last: int, numbers: Array
) -> Any:
    """Return the step of a row with score p, and add its loss to the sum of losses."""
    slope = slope_of_score(rule.loss, rule.bend, target, p)
    if rule.judged or rule.schedule >= 3:
        value = loss_of_score(rule.loss, rule.bend, target, p)
        numbers[LOSS] += value
        if rule.schedule >= 3:
            return _passive_aggressive(rule, value, slope, _square(data[first:last]))
    slope = -_STEEPEST if slope < -_STEEPEST else slope
    return -eta * (_STEEPEST if slope > _STEEPEST else slope)


@internal_kernel
def _shrink(rule: Rule, size: int, square: float, numbers: Array, v: Array, a: Any) -> Any:
    """Apply (3) with the penalty of the batch; returns |v|^2."""
    if rule.l2 > 0.0:
        scale = numbers[SCALE]
        if rule.judged and rule.schedule < 3:
            numbers[PENALTY] += size * 0.5 * rule.l2 * scale * scale * square
        shrinkage = 1.0 - numbers[ETA] * rule.l2
        scale *= shrinkage if shrinkage > 0.0 else 0.0
        if scale < _SMALLEST_SCALE:
            square = _fold_scale(scale, numbers[SCALES], v, a)
            scale, numbers[SCALES] = 1.0, 0.0
        numbers[SCALE] = scale
    return square


@internal_kernel
def _end_epoch(rule: Rule, epochs: Epochs, done: int, n: int, numbers: Array, v: Array, a: Any, q: Any) -> bool:
    """Update the penalties and the trace of an epoch; return whether it had no updates."""
    clean = False
    if q is not None and rule.schedule < 3:
        # Apply the pending penalty to columns that no row used, so that the final coefficients are penalised.
        _apply_l1_to_all(numbers, v, a, q)
        for k in range(len(v)):
            numbers[PENALTY] += n * rule.l1 * numbers[SCALE] * abs(v[k])
    if len(epochs.trace) > 0:
        epochs.trace[done, 0], epochs.trace[done, 1] = numbers[LOSS] + numbers[PENALTY], numbers[UPDATES]
        clean = numbers[UPDATES] == 0.0 and epochs.clean > 0
        numbers[LOSS] = numbers[PENALTY] = numbers[UPDATES] = 0.0
        if q is not None:
            _apply_l1_to_all(numbers, v, a, q)
        _fold_scale(numbers[SCALE], numbers[SCALES], v, a)
        numbers[SCALE], numbers[SCALES] = 1.0, 0.0
    return clean


@internal_kernel
def _add_to_averages(numbers: Array) -> None:
    """Add the parameters to the sums of (4): those of v by their scales."""
    numbers[SCALES] += numbers[SCALE]
    numbers[INTERCEPTS] += numbers[INTERCEPT]
    numbers[AVERAGED] += 1.0


@internal_kernel
def _apply_l1_to_batch(
    indices: Any, starts: Any, batch: Array, square: float, numbers: Array, v: Array, a: Any, q: Array
) -> Any:
    """Apply the cumulative penalty (2) to the columns of some rows; returns |v|^2 afterwards."""
    if indices is None:  # one row updates every column
        return square + _apply_l1_to_all(numbers, v, a, q)
    for i in batch:
        square += _apply_l1_to_row(indices, starts[i], starts[i + 1], numbers, v, a, q)
    return square


@non_allocating_kernel
def descend_rows(
    rows: _Rows, indices: Any, rule: Rule, v: Array, numbers: Array, a: Any, q: Any, epochs: Epochs
) -> int:
    """As `descend`: `indices` is None for dense rows, a without averages, q without an L1 penalty.

    The compiler omits the code for what is None, which it only does for separate arguments.
    """
    data, starts, width, y, weight, order, steps = rows
    n, done, clean = len(order), 0, False
    while True:
        _order_rows(order, epochs, done)
        square = _square(v)
        for at in range(0, n, rule.batch):
            size = rule.batch if rule.batch < n - at else n - at
            part = 1.0 / size if size > 1 else 1.0
            eta = numbers[ETA] = _learning_rate(rule, numbers[STEPS], numbers[ETA])
            for r in range(size):
                i = order[at + r]
                if at + r + _AHEAD < n:
                    _prefetch_later(data, indices, starts, width, order[at + r + _AHEAD])
                if indices is None:
                    first, last = i * width, (i + 1) * width
                    p = numbers[SCALE] * _dot(data[first:last], v) + numbers[INTERCEPT]
                else:
                    first, last = starts[i], starts[i + 1]
                    if q is not None:
                        square += _apply_l1_to_row(indices, first, last, numbers, v, a, q)
                    p = numbers[SCALE] * _sparse_dot(data, indices, first, last, v) + numbers[INTERCEPT]
                target, share = _coded_target(rule, y, weight, i)
                steps[r] = share * _step_of_row(rule, target, p, eta, data, first, last, numbers) * part
            square = _shrink(rule, size, square, numbers, v, a)
            for r in range(size):
                i, step, scales = order[at + r], steps[r] / numbers[SCALE], numbers[SCALES]
                if steps[r] == 0.0:
                    continue
                numbers[UPDATES] += 1.0
                if indices is None:
                    square += _add(data[i * width : (i + 1) * width], None, step, scales, v, a, rule.judged)
                elif rule.judged or a is not None:
                    x, columns = data[starts[i] : starts[i + 1]], indices[starts[i] : starts[i + 1]]
                    square += _add(x, columns, step, scales, v, a, rule.judged)
                else:
                    _sparse_add(data, indices, starts[i], starts[i + 1], step, v)
                if rule.intercept:
                    numbers[INTERCEPT] += steps[r]
            if a is not None and numbers[STEPS] >= rule.average:
                _add_to_averages(numbers)
            if q is not None:
                numbers[L1_SUM] += eta * rule.l1
                square = _apply_l1_to_batch(indices, starts, order[at : at + size], square, numbers, v, a, q)
            numbers[STEPS] += 1.0
        clean = _end_epoch(rule, epochs, done, n, numbers, v, a, q)
        done += 1
        if done >= len(epochs.trace) or clean or not _is_finite(numbers[INTERCEPT], v):
            return done


@internal_kernel
def _is_finite(b: float, v: Array) -> bool:
    finite = np.isfinite(b)
    for k in range(len(v)):
        finite = finite and np.isfinite(v[k])
    return bool(finite)


def apply_pending_updates(state: State) -> None:
    """Apply the pending penalty (2) to every column, and update the sum of (4)."""
    v, a, q, numbers = state
    if len(q):
        _apply_l1(len(v), None, numbers[L1_SUM], numbers[SCALE], numbers[SCALES], v, _given(a), q)
    if len(a):
        a += numbers[SCALES] * v
        numbers[SCALES] = 0.0


def warmup() -> None:
    """Compile the kernels for the usual types; averages and L1 penalties are separate specialisations."""
    rule = Rule(0, 1.0, 1.0, 1.0, 1.0, 1, 0.1, 0.0, 0, 0.1, 0.5, 0.1, 1.0, 0.0, 1, 1)
    one, order = np.ones(1), np.zeros(1, np.int64)
    for dtype in row_dtypes():
        state = State.at(np.zeros(1), 0.0, 1.0, 0.1, averages=False, l1=False)
        x, at = np.ones(1, dtype), np.zeros(1, np.int32)
        descend(Buffer(x, None, None, 1, one, one, order), rule, state)
        descend(Buffer(x, at, np.array([0, 1]), 1, one, one, order), rule, state)
        ends = np.array([0, 1], np.int32)
        add_squares(ends, x, np.zeros(1))
        add_products(ends, at, x, np.ones((1, 1)), np.zeros((1, 1)))
