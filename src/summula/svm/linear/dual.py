"""A dual point from the slopes of the losses, and the value of the dual there.

For any beta that satisfies its bounds, the positive and the negative part are scaled to sum to 0 (if an intercept is
unpenalised), then both by the factor that maximises the dual of `problem.py` (or, with an L1 penalty, makes it finite).
Scaling down keeps beta within its bounds. Only sums over rows are needed, one for each sign.

At the kink of a loss beta is not determined by the slope; typically there are as many such rows as columns. `DualRows`
stores beta of these rows only: elsewhere it is the slope at v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files import schema
from summula.svm.linear.problem import LinearProblem

__all__ = ["DualRows", "DualSides", "dual_sides", "penalty_of"]

Array = NDArray[Any]


_ON_KINK = 1e-8  # distance within which a row counts as being on the kink, where its slope may depend on rounding


@schema.saved(
    rows=schema.Array("int64", "n_kept", low=0),
    beta=schema.Array("float64", "n_kept"),
)
class DualRows(NamedTuple):
    """Rows whose beta is not determined by the slope at v, and their beta."""

    rows: Array
    beta: Array

    @classmethod
    def none(cls) -> DualRows:
        return cls(np.zeros(0, np.int64), np.zeros(0))

    @classmethod
    def of(cls, problem: LinearProblem, y: Array, f: Array, from_slopes: Array, beta: Array) -> DualRows:
        """Return the entries of beta that differ from those given by the slopes, and those next to a kink."""
        away = 1.0 - y * f if problem.positive >= 0 else np.abs(y - f) - problem.epsilon
        near = np.abs(away) <= _ON_KINK * (1.0 + np.abs(f))
        rows = np.flatnonzero((beta != from_slopes) | (near & (not problem.is_squared)))
        return cls(rows.astype(np.int64), beta[rows])

    def numbered(self, numbers: Array) -> DualRows:
        """Return the same rows, by their numbers in a larger table."""
        return DualRows(numbers[self.rows].astype(np.int64), self.beta)

    def applied(self, from_slopes: Array) -> Array:
        """Return beta of all rows."""
        beta = from_slopes.copy()
        beta[self.rows] = self.beta
        return beta


class DualSides(NamedTuple):
    """Sums for the negative and the positive part of beta: beta, y beta - eps |beta|, D beta^2, and Z'beta."""

    total: Array  # (2,)
    linear: Array  # (2,)
    square: Array  # (2,)
    products: Array  # (2, p)

    def dual(self, problem: LinearProblem) -> float:
        """Return the largest value of the dual over scalings of beta, at least 0, since losses and penalties are."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._largest(problem)

    def _largest(self, problem: LinearProblem) -> float:
        scale = np.ones(2)
        if problem.is_free:
            sizes = np.abs(self.total)
            scale = np.minimum(1.0, sizes[::-1] / np.where(sizes > 0, sizes, 1.0))
        linear, square = float(scale @ self.linear), float(scale**2 @ self.square)
        inner = scale @ self.products
        if problem.is_free:
            inner = inner[:-1]
        if problem.penalty == "l2":
            square, most = square + float(inner @ inner), 1.0
        else:
            largest = float(np.abs(inner).max(initial=0.0))
            most = min(1.0, 1.0 / largest) if largest > 0 else 1.0
        best = max(min(linear / square, most), 0.0) if square > 0 else most
        value = best * linear - 0.5 * best**2 * square
        return value if value > 0.0 else 0.0  # also if squares overflow


def dual_sides(
    problem: LinearProblem, y: Array, weight: Array, beta: Array, times: Callable[[Array], Array]
) -> DualSides:
    """Return the sums of some rows; `times` multiplies their transpose by a vector."""
    sides = (np.minimum(beta, 0.0), np.maximum(beta, 0.0))
    total, square = np.array([side.sum() for side in sides]), np.zeros(2)
    if problem.is_squared:
        D = 0.5 / np.where(weight > 0, weight, 1.0)
        square = np.array([(D * side) @ side for side in sides])
    linear = np.array([y @ side for side in sides]) - problem.epsilon * np.abs(total)
    return DualSides(total, linear, square, np.array([times(side) for side in sides]))


def penalty_of(problem: LinearProblem, v: Array) -> float:
    """Return R(v)."""
    penalised = v[:-1] if problem.is_free else v
    return problem.regulariser.value(penalised)
