"""Linear kernels of columns far from 0: rows about their mean, and the weights of the columns.

With sum_i beta_i = 0 the dual of `solver.py` is the same for the rows x_i - o as for x_i: beta'K beta does not change,
and all slopes f_i change by one constant, which the intercept absorbs. If columns are far from 0, the products x_i'x_j
are nearly equal and lose their digits, unlike (x_i - o)'(x_j - o). The fit is then about the mean o, and stores

    w = sum_i beta_i (x_i - o),     b = b_o - w'o                                                               (1)

as well as beta. Its objective is that of the rounded w and b.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.exact import dot
from summula.kernels.kernel import Kernel
from summula.kernels.rows import far_columns_of, rows_of
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

_FAR = 1e3  # norm of the mean of the rows, relative to their spread, above which rounding of x_i'x_j matters


def far_origin(kernel: Kernel | None, task: MachineTask, X: Any, weight: Array) -> Array | None:
    """Return the mean of the weighted rows if they are far from 0 and the dual is shift-invariant, else None.

    For sparse rows it is 0 except for columns without zeros that are far from 0.
    """
    if not isinstance(kernel, Linear) or not task.intercept or task.kind == "one class":
        return None
    rows = X if weight.all() else X[weight > 0]
    with np.errstate(over="ignore"):
        mean = far_columns_of(rows) if hasattr(X, "indptr") else rows.mean(axis=0)
        if mean is None:
            return None
        spread = float(rows_of(rows, mean).squares.sum()) if hasattr(X, "indptr") else np.square(rows - mean).sum()
        is_far = float(mean @ mean) > _FAR**2 * float(spread) / rows.shape[0]
    return mean if is_far else None


def with_weights(point: DualPoint, problem: DualProblem, X: Any, origin: Array) -> DualPoint:
    """Return a dual point of rows about an origin with the weights (1) added; X contains the original rows."""
    coef, about = point.weights and point.weights.coef, point.weights and point.weights.intercept
    if coef is None or about is None:
        coef = weighted_sum(X, np.bincount(problem.row, point.beta, X.shape[0]), origin)
        about = intercept_of(problem, point.beta, point.f) if point.intercept is None else point.intercept
    b = dot(-origin, coef, float(about))
    return replace(point, weights=LinearWeights(coef, b, *linear_objectives(problem, X, point.beta, coef, b)))
