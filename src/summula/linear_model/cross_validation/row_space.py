"""Leave-one-out errors of ridge in the dual (row) space, for data with no more rows than columns.

With centred rows Xc, weights W, K = W^(1/2) Xc Xc' W^(1/2) and G = K + alpha I, both in the space orthogonal to
W^(1/2) 1 when there is an intercept, the model fitted without row i has at that row the error e_i with

    sqrt(w_i) e_i = (G^-1 W^(1/2) yc)_i / (G^-1)_ii                                                              (1)

which is r_i / (1 - h_i) without its cancellation: every leverage is near 1 here. G^-1 comes from the singular values
of the rows; K is formed for wide sparse data only.

Reference: Rifkin and Lippert, Notes on Regularized Least Squares (MIT-CSAIL-TR-2007-025).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from summula.core.data.chunks import Chunk
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.numerics.sums import Sum
from summula.linear_model.least_squares.solver import SPARSE_GRAM_COLUMNS

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["AllRows", "RowSpace", "all_rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AllRows(Sum):
    """Chunks of rows, in order."""

    chunks: tuple[Chunk, ...]

    @classmethod
    def map(cls, chunk: Chunk, params: None) -> Self:
        """The rows of one chunk, in double precision."""
        whole = replace(chunk, dtype=np.dtype(np.float64))
        return cls((whole if whole.is_sparse else replace(whole, rows=whole.block()),))


def all_rows(run: Run) -> Chunk:
    """Return all rows as one chunk, loaded into memory if necessary."""
    if not run.source.streams:
        return replace(run.source.chunk(0, run.source.n_rows), dtype=np.dtype(np.float64))
    chunks = run.sum(AllRows, None, "rows").chunks
    first = chunks[0]
    if first.is_sparse:
        X = sparse.vstack([chunk.X for chunk in chunks], format="csr")
        rows: Any = SparseRows(X, 0, X.shape[0])
    else:
        rows = np.concatenate([chunk.rows for chunk in chunks])
    y = np.concatenate([chunk.y for chunk in chunks if chunk.y is not None])
    weight = np.concatenate([chunk.weight for chunk in chunks if chunk.weight is not None] or [np.empty(0)])
    weights = None if first.weight is None else weight
    return replace(first, rows=rows, y=y, weight=weights, start=0, stop=run.source.n_rows)


class RowSpace(NamedTuple):
    """G^-1 of (1) for any alpha, U diag(1 / (lambda + alpha)) U', without rows of weight 0."""

    U: Array
    values: Array
    has_weight: NDArray[np.bool_]
    root: Array  # of the weights
    Xc: Any  # centred rows, or None if only K is available
    K: Array | None  # products of unweighted centred rows
    Yc: Array

    @classmethod
    def of(cls, chunk: Chunk, fit_intercept: bool) -> Self:
        """Decompose the row space of a chunk."""
        w = chunk.weights
        has_weight = w > 0
        assert chunk.y is not None
        X: Any = chunk.X if chunk.is_sparse else chunk.block()
        mean, y_mean = np.zeros(chunk.n_features), np.zeros(chunk.y.shape[1])
        if fit_intercept:
            mean, y_mean = np.asarray(X.T @ w).ravel() / w.sum(), w @ chunk.y / w.sum()
        root = np.sqrt(w[has_weight])
        basis = linalg.qr(root[:, None])[0][:, 1:] if fit_intercept else np.eye(len(root))
        if chunk.is_sparse and chunk.n_features > SPARSE_GRAM_COLUMNS:
            along = X @ mean
            K = (X @ X.T).toarray() - along[:, None] - along + mean @ mean
            inner = basis.T @ (K[np.ix_(has_weight, has_weight)] * np.outer(root, root)) @ basis
            values, V = np.linalg.eigh(inner)
            return cls(basis @ V, np.maximum(values, 0.0), has_weight, root, None, K, chunk.y - y_mean)
        Xc = chunk.block(origin=mean)
        V, sigma, _ = np.linalg.svd(basis.T @ (root[:, None] * Xc[has_weight]), full_matrices=False)
        return cls(basis @ V, sigma**2, has_weight, root, Xc, None, chunk.y - y_mean)

    @property
    def regular(self) -> bool:
        """Whether G has an inverse without a penalty."""
        return bool((self.values > 1e-10 * self.values.max(initial=0.0)).all())

    @np.errstate(invalid="ignore", divide="ignore")
    def errors(self, alphas: Array) -> Array:
        """Return e of (1), shape (n, n_targets, n_alphas)."""
        D = 1.0 / (self.values[:, None] + alphas)
        b = self.U.T @ (self.root[:, None] * self.Yc[self.has_weight])
        c = (self.U @ (b[:, :, None] * D[:, None, :]).reshape(len(D), -1)).reshape(len(self.U), b.shape[1], -1)
        errors = np.empty((len(self.Yc), *c.shape[1:]))
        errors[self.has_weight] = c / ((self.U * self.U) @ D)[:, None, :] / self.root[:, None, None]
        if not self.has_weight.all():  # they do not affect the fit, so their errors are residuals
            inner = (self.root[:, None, None] * c).reshape(len(c), -1)
            unseen = ~self.has_weight
            if self.K is None:
                fitted = self.Xc[unseen] @ (self.Xc[self.has_weight].T @ inner)
            else:
                fitted = self.K[np.ix_(unseen, self.has_weight)] @ inner
            errors[unseen] = self.Yc[unseen][:, :, None] - fitted.reshape(-1, *c.shape[1:])
        return errors
