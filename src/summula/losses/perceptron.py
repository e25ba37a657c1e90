"""The perceptron risk of given weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.data.sparse_format import check_sparse
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import numbers_in

__all__ = ["perceptron_risk"]


def perceptron_risk(w: Any, X: Any, y: Any, *, gradient: bool = False) -> Any:
    """Compute the perceptron risk, sum_i max(0, -y_i w'x_i): distances of misclassified rows, times |w|.

    Parameters
    ----------
    w : array-like of shape (n_features,)
        Weights.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, with a column of ones for an intercept.
    y : array-like of shape (n_samples,)
        Labels -1 and 1.
    gradient : bool, default=False
        Whether to also return a subgradient: minus the sum of y x over rows with y w'x <= 0.

    Returns
    -------
    float, or (float, ndarray of shape (n_features,)) with `gradient`
    """
    w, y = numbers_in("w", w), numbers_in("y", y)
    check_sparse(X)
    X = X if hasattr(X, "indptr") else np.asarray(X, np.float64)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ParameterError("perceptron_risk needs labels -1 and 1; pass y as 2 * (y == second_class) - 1.")
    if w.shape != X.shape[1:]:
        raise ParameterError(f"perceptron_risk needs one weight per column: w has shape {w.shape}, X {X.shape}.")
    if y.shape != X.shape[:1]:
        raise ParameterError(f"perceptron_risk needs one label per row: y has shape {y.shape}, X {X.shape}.")
    margins = y * (X @ w)
    value = float(np.maximum(-margins, 0.0).sum())
    return (value, -np.asarray(X.T @ (y * (margins <= 0)))) if gradient else value
