"""Projected gradient ascent on the SVM dual.

Without an intercept the dual of the soft-margin SVM is

    maximise   g(l) = sum_i l_i - 1/2 sum_ij l_i l_j y_i y_j k(x_i, x_j)    subject to   0 <= l_i <= C           (1)
    dg / dl_i  = 1 - y_i sum_j l_j y_j k(x_i, x_j)                                                               (2)

(The gradient has no factor one half: l_i occurs in the double sum twice.) Projected gradient ascent with step 1/L, L
the largest eigenvalue of the matrix of (1), never decreases g; the primal objective at w = sum l_i y_i phi(x_i) is an
upper bound on the optimal value, so their difference bounds the suboptimality.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan, numbers_in
from summula.core.numerics.solution import Solution
from summula.svm.dual.definiteness import negative_eigenvalue
from summula.svm.margin_geometry import class_signs

__all__ = ["dual_ascent"]

Array = NDArray[Any]


def dual_ascent(
    K: ArrayLike, y: ArrayLike, C: float = 1.0, *, step: float | None = None, tol: float = 1e-6, max_iter: int = 100_000
) -> Solution:
    """Maximise the dual (1) of an SVM without intercept by projected gradient ascent.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The kernel matrix, symmetric and positive semidefinite.
    y : array-like of shape (n,)
        Two labels; the second is the positive class.
    C : float, default=1.0
    step : float, optional
        Step size; 1 / L by default.
    tol : float, default=1e-6
        Tolerance for primal minus dual, relative to the dual.
    max_iter : int, default=100000

    Returns
    -------
    Solution
        `x` contains the multipliers l, `value` is g, `gap` primal minus dual, `trace` the values of g.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.svm import dual_ascent
    >>> X = np.array([[1.0], [-1.0]])
    >>> found = dual_ascent(X @ X.T, [1, -1], C=10.0)
    >>> found.x.round(3).tolist(), round(found.value, 3)
    ([0.5, 0.5], 0.5)
    """
    values, sign = numbers_in("K", K), class_signs(y)
    if values.shape != (len(sign), len(sign)):
        raise DataError(
            f"K has shape {values.shape} and y has {len(sign)} rows; K must be square, one row per row of y."
        )
    if not number_or_nan(C) > 0:
        raise ParameterError(f"C must be positive, got {C!r}.")
    if not np.isfinite(values).all():
        raise DataError("K has values that are not finite.")
    eigenvalue = negative_eigenvalue(values, "pass (K + K.T) / 2")
    if eigenvalue is not None:
        raise DataError(
            f"K has the negative eigenvalue {eigenvalue:.3g}, so it is not a kernel matrix and the dual is not "
            "concave; pass a positive semidefinite K, or use SVC, which finds a stationary point."
        )
    if step is not None and not number_or_nan(step) > 0:
        raise ParameterError(f"step must be positive, got {step!r}.")
    Q = sign[:, None] * values * sign
    largest = float(np.linalg.eigvalsh(Q)[-1])
    rate = 1.0 / max(largest, np.finfo(float).tiny) if step is None else float(step)
    multipliers, trace, gap = np.zeros(len(sign)), [], np.inf
    for n_steps in range(max_iter + 1):
        slope = 1.0 - Q @ multipliers
        square = float(multipliers @ (1.0 - slope))
        dual = float(multipliers.sum()) - 0.5 * square
        gap = _primal(square, slope, C) - dual
        trace.append(dual)
        if gap <= tol * max(abs(dual), np.finfo(float).tiny) or n_steps == max_iter:
            break
        multipliers = np.clip(multipliers + rate * slope, 0.0, C)
    converged = bool(gap <= tol * abs(dual))
    status = "converged" if converged else "max_iter"
    return Solution(multipliers, dual, gap, status, converged, n_steps, tuple(trace))


def _primal(square: float, slope: Array, C: float) -> float:
    """Return the primal objective at w with ||w||^2 = square; for a hard margin w is first scaled up to satisfy it."""
    if np.isfinite(C):
        return 0.5 * square + C * float(np.maximum(slope, 0.0).sum())
    margin = float((1.0 - slope).min())
    return 0.5 * square / margin**2 if margin > 0 else np.inf
