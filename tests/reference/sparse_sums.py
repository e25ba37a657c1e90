"""The kernels of `summula.linear_model.least_squares.sparse_kernels`, on dense rows."""

from __future__ import annotations

import numpy as np


def normal_product(X, w, v):
    """X'W X v."""
    return X.T @ (w * (X @ v))


def column_sums(X, w, Y):
    """For each column j: sum w x_j, sum w x_j^2, and sum w x_j y for every target."""
    return np.column_stack([X.T @ w, (X * X).T @ w, X.T @ (w[:, None] * Y)])


def residual_sums(X, w, Y, V):
    """Y - X V, and X'W (Y - X V)."""
    R = Y - X @ V
    return R, X.T @ (w[:, None] * R)
