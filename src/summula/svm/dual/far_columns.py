"""Linear kernels of columns far from 0: rows about their mean, and the weights of the columns.

With sum_i beta_i = 0 the dual of `solver.py` is the same for the rows x_i - o as for x_i: beta'K beta does not change,
and all slopes f_i change by one constant, which the intercept makes up for. If columns are far from 0, the values
x_i'x_j no longer tell rows apart; those of (x_i - o)'(x_j - o) do. The fit is then about the mean o, and keeps

    w = sum_i beta_i (x_i - o),     b = b_o - w'o                                                               (1)

beside beta. Its objective is that of w and b, as they are rounded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.kernels.kernel import Kernel
from summula.kernels.standard import Linear
from summula.svm.dual.certificate import MachineTask
from summula.svm.dual.solver import (
    DualPoint,
    DualProblem,
    LinearWeights,
    intercept_of,
    linear_objectives,
    weighted_sum,
)

__all__ = ["far_origin", "with_weights"]

Array = NDArray[Any]

_FAR = 1e3  # lengths of the mean of the rows, in units of their spread, from which rounding of x_i'x_j matters


def far_origin(kernel: Kernel | None, task: MachineTask, X: Any, weight: Array) -> Array | None:
    """Return the mean of dense rows with a weight if they are far from 0 and the dual does not mind; else None."""
    if not isinstance(kernel, Linear) or not task.intercept or task.kind == "one class" or hasattr(X, "indptr"):
        return None
    rows = X if weight.all() else X[weight > 0]
    with np.errstate(over="ignore"):
        mean = rows.mean(axis=0)
        is_far = float(mean @ mean) > _FAR**2 * float(np.square(rows - mean).sum()) / len(rows)
    return mean if is_far else None


def with_weights(point: DualPoint, problem: DualProblem, X: Array, origin: Array) -> DualPoint:
    """Return a point of the dual of rows about an origin with the weights (1); X are the rows themselves."""
    coef, about = point.weights and point.weights.coef, point.weights and point.weights.intercept
    if coef is None or about is None:
        coef = weighted_sum(X, np.bincount(problem.row, point.beta, len(X)), origin)
        about = intercept_of(problem, point.beta, point.f) if point.intercept is None else point.intercept
    b = float(about - (coef.astype(np.longdouble) * origin).sum())
    return replace(point, weights=LinearWeights(coef, b, *linear_objectives(problem, X, point.beta, coef, b)))
