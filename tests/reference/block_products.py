"""The kernels of `summula.decomposition.principal.krylov_kernels`, on dense rows."""

from __future__ import annotations


def normal_products(X, w, B):
    """X'W X B."""
    return X.T @ (w[:, None] * (X @ B))
