"""The kernels of `summula.linear_model.sparse_kernels`, on dense rows."""

from __future__ import annotations


def normal_product(X, w, v):
    """X'W X v."""
    return X.T @ (w * (X @ v))


def column_sums(X, w, Y):
    """X'w, (X * X)'w and X'W Y."""
    return X.T @ w, (X * X).T @ w, X.T @ (w[:, None] * Y)
