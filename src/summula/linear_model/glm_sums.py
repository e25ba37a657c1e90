"""What a generalised linear fit adds up over the rows: loss, slope and curvature at a point.

Row x_i has the linear predictors eta_i = b + V'(x_i - o) + offset_i, one for each of K outputs (K = 1 but for softmax);
o is an origin near the mean, which makes the sums accurate and intercept and slopes nearly independent. With
z_i = (1, x_i - o), theta = (b; V) and the loss l of `summula.losses`,

    L(theta)  = sum_i w_i l(y_i, eta_i)                                                                        (1)
    dL/dtheta = sum_i w_i z_i s_i',       s_i = dl/deta                                                        (2)
    H         = sum_i w_i C_i (x) z_i z_i',   C_i = d2l/deta2 (K x K), or its expectation over y                (3)

All three come from one pass over a block of rows while it is in cache. H is laid out output by output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.chunks import Chunk
from summula.core.errors import DataError
from summula.core.statistics import product
from summula.losses import Logistic, Loss, Multinomial, PoissonLog, Squared

__all__ = ["At", "ClassTotals", "Diagonal", "Slopes", "WeightTotal", "linear_predictor", "row_weights"]

Array = NDArray[Any]


class At(NamedTuple):
    """The point where a pass sums, and how.

    theta has shape (1 + d, K) with an intercept, else (d, K). `order` 1 asks for (1) and (2), 2 also for (3).
    `expected` takes the expectation of C (Fisher's information), which is never negative and what inference uses.
    `class_weight` multiplies the weight of a row by that of its class; `support` is a family that checks y on the way.
    """

    loss: Loss
    origin: Array
    theta: Array
    intercept: bool
    order: int
    expected: bool = False
    class_weight: Array | None = None
    support: Any = None


def row_weights(chunk: Chunk, class_weight: Array | None) -> Array | None:
    """Weights of the rows, times those of their classes; None when all are 1."""
    if class_weight is None:
        return chunk.weight
    assert chunk.y is not None
    mine: Array = class_weight[chunk.y[:, 0].astype(np.intp)]
    return mine if chunk.weight is None else mine * chunk.weight


def _block(chunk: Chunk, origin: Array, intercept: bool) -> Array:
    """The rows z_i, dense."""
    first = int(intercept)
    block = chunk.blank(first + chunk.n_features)
    chunk.write(block[:, first:], origin.astype(chunk.dtype))
    if intercept:
        block[:, 0] = 1.0
    return block


def _sparse_predictor(chunk: Chunk, point: At) -> Array:
    from summula.linear_model.glm_kernels import add_products

    V = np.ascontiguousarray(point.theta[int(point.intercept) :])
    start = -(point.origin @ V)
    if point.intercept:
        start = start + point.theta[0]
    eta = np.tile(start, (len(chunk), 1))
    add_products(chunk.rows.indptr, chunk.rows.indices, chunk.rows.data, V, eta)
    return eta


def linear_predictor(chunk: Chunk, point: At, block: Array | None = None) -> Array:
    """eta, of shape (n, K), in float64; a second column of y is the offset."""
    if chunk.is_sparse:
        eta = _sparse_predictor(chunk, point)
    else:
        block = _block(chunk, point.origin, point.intercept) if block is None else block
        eta = product(block, point.theta.astype(block.dtype)).astype(np.float64, copy=False)
    if chunk.y is not None and chunk.y.shape[1] > 1:
        eta = eta + chunk.y[:, 1:2]
    return eta


@dataclass(frozen=True)
class Slopes:
    """The sums (1) to (3) at a point.

    Attributes
    ----------
    value : float
    slope : ndarray of shape (p, K)
    hessian : ndarray of shape (p K, p K), or None
    inner : ndarray of shape (K, K)
        The block of H that belongs to the intercepts: sum of w C.
    largest : ndarray of shape (d,)
        The largest |x_j - o_j|; zeros unless order is 2.
    weight : float
    """

    value: float
    slope: Array
    hessian: Array | None
    inner: Array
    largest: Array
    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """The sums of one chunk."""
        point = params
        assert chunk.y is not None
        if point.support is not None:
            _check_support(chunk, point.support)
        w = row_weights(chunk, point.class_weight)
        block = None if chunk.is_sparse else _block(chunk, point.origin, point.intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = linear_predictor(chunk, point, block)
            value, slope, curvature = _derivatives(point, chunk.y[:, 0], eta, w)
            sums = _sparse_sums if chunk.is_sparse else _dense_sums
            gradient, hessian, largest = sums(chunk, block, slope, curvature, point)
        return cls(value, gradient, hessian, _inner(curvature), largest, float(len(chunk) if w is None else w.sum()))

    def merge(self, other: Self) -> Self:
        """The sums of both sets of rows."""
        both = self.hessian is not None and other.hessian is not None
        return replace(
            self,
            value=self.value + other.value,
            slope=self.slope + other.slope,
            hessian=self.hessian + other.hessian if both else None,  # type: ignore[operator]
            inner=self.inner + other.inner,
            largest=np.maximum(self.largest, other.largest),
            weight=self.weight + other.weight,
        )


def _check_support(chunk: Chunk, family: Any) -> None:
    assert chunk.y is not None
    bad = family.complain(chunk.y[:, 0])
    if bad is not None:
        row, words = bad
        raise DataError(f"The target y is {chunk.y[row, 0]:g} at row {chunk.start + row}: {words}.")


class _Softmax(NamedTuple):
    """Curvature of softmax: w and the probabilities, from which C = w (diag(p) - p p')."""

    weight: Array
    p: Array


# Losses whose curvature does not depend on y, so that it is its own expectation.
_CANONICAL = (Squared, Logistic, PoissonLog, Multinomial)


def _derivatives(point: At, y: Array, eta: Array, w: Array | None) -> tuple[float, Array, Any]:
    """The weighted value, and the weighted slope (n, K) and curvature (n,) of each row (`_Softmax` for K > 1)."""
    loss = point.loss
    if isinstance(loss, Multinomial):
        value, slope, _ = loss.derivatives(y, eta)
        p = slope.copy()
        p[np.arange(len(y)), y.astype(np.intp)] += 1.0
        if w is not None:
            slope *= w[:, None]
        return _total(value, w), slope, _Softmax(np.ones(len(y)) if w is None else w, p)
    value, s, c = loss.derivatives(y, eta[:, 0])
    if not point.expected and not isinstance(loss, _CANONICAL):
        c = loss.curvature(y, eta[:, 0])
    if w is not None:
        s, c = s * w, c * w
    return _total(value, w), s[:, None], c


def _total(value: Array, w: Array | None) -> float:
    if w is None:
        return float(value.sum())
    return float(value @ w) if w.all() else float(value[w > 0] @ w[w > 0])  # 0 times infinity is nothing


def _inner(curvature: Any) -> Array:
    if isinstance(curvature, _Softmax):
        weighted = curvature.p * curvature.weight[:, None]
        return np.asarray(np.diag(weighted.sum(axis=0)) - weighted.T @ curvature.p)
    return np.array([[curvature.sum()]])


def _pairs(curvature: Any, outputs: int) -> Any:
    """The weights of z z' in each block (k, l), k <= l, of H."""
    if not isinstance(curvature, _Softmax):
        yield 0, 0, curvature
        return
    w, p = curvature
    for k in range(outputs):
        for m in range(k, outputs):
            yield k, m, w * p[:, k] * (float(k == m) - p[:, m])


def _dense_sums(
    chunk: Chunk, block: Array | None, slope: Array, curvature: Any, point: At
) -> tuple[Array, Array | None, Array]:
    assert block is not None
    p, outputs = block.shape[1], slope.shape[1]
    gradient = product(block.T, slope.astype(block.dtype)).astype(np.float64, copy=False)
    if point.order < 2:
        return gradient, None, np.zeros(0)
    first = int(point.intercept)
    largest = np.maximum(block.max(axis=0), -block.min(axis=0))[first:].astype(np.float64)
    if outputs == 1 and not isinstance(curvature, _Softmax):
        # NumPy sees a matrix times its own transpose and computes one half (syrk), outside the GIL.
        block *= np.sqrt(np.maximum(curvature, 0.0)).astype(block.dtype)[:, None]
        return gradient, (block.T @ block).astype(np.float64, copy=False), largest
    H = np.empty((outputs, p, outputs, p))
    for k, m, c in _pairs(curvature, outputs):
        H[k, :, m] = H[m, :, k] = block.T @ (block * c.astype(block.dtype)[:, None])
    return gradient, H.reshape(outputs * p, outputs * p), largest


def _sparse_sums(
    chunk: Chunk, block: Array | None, slope: Array, curvature: Any, point: At
) -> tuple[Array, Array | None, Array]:
    from summula.linear_model.glm_kernels import add_transposed

    rows, first, outputs = chunk.rows, int(point.intercept), slope.shape[1]
    d = chunk.n_features
    gradient = np.zeros((first + d, outputs))
    # (a view of whole rows: contiguous)
    add_transposed(rows.indptr, rows.indices, rows.data, np.ascontiguousarray(slope), gradient[first:])
    total = slope.sum(axis=0)
    if point.origin.any():
        gradient[first:] -= np.outer(point.origin, total)
    if first:
        gradient[0] = total
    if point.order < 2:
        return gradient, None, np.zeros(0)
    X = chunk.X.astype(np.float64, copy=False)
    H = np.zeros((outputs, first + d, outputs, first + d))
    for k, m, c in _pairs(curvature, outputs):
        scaled = type(X)((X.data * np.repeat(c, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)
        Hkm = H[k, :, m]
        Hkm[first:, first:] = (scaled.T @ X).toarray()
        if first:
            Hkm[0, 0] = c.sum()
            Hkm[0, 1:] = Hkm[1:, 0] = X.T @ c
        if m > k:
            H[m, :, k] = Hkm
    largest = np.zeros(d)
    if X.nnz:
        top = abs(X).max(axis=0)
        largest = np.asarray(top.toarray()).ravel()
    return gradient, H.reshape(outputs * (first + d), -1), largest


@dataclass(frozen=True)
class Diagonal:
    """The diagonal of H, of shape (p, K): how a solver scales its variables when H itself is too large."""

    diagonal: Array

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """The diagonal of one chunk."""
        from summula.linear_model.glm_kernels import add_squares

        point, first = params, int(params.intercept)
        assert chunk.y is not None
        block = None if chunk.is_sparse else _block(chunk, point.origin, point.intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = linear_predictor(chunk, point, block)
            _, _, c = _derivatives(point, chunk.y[:, 0], eta, row_weights(chunk, point.class_weight))
        C = c.weight[:, None] * c.p * (1 - c.p) if isinstance(c, _Softmax) else c[:, None]
        out = np.zeros(point.theta.shape)
        if chunk.is_sparse:
            add_squares(chunk.rows.indptr, chunk.rows.indices, chunk.rows.data, np.ascontiguousarray(C), out[first:])
        else:
            assert block is not None
            out[first:] = product(np.square(block[:, first:]).T, C.astype(block.dtype))
        if first:
            out[0] = C.sum(axis=0)
        return cls(out)

    def merge(self, other: Self) -> Self:
        """The sums of both sets of rows."""
        return replace(self, diagonal=self.diagonal + other.diagonal)


@dataclass(frozen=True)
class ClassTotals:
    """The weight of each class; `params` is how many classes there are."""

    totals: Array

    @classmethod
    def map(cls, chunk: Chunk, params: int) -> Self:
        """The totals of one chunk."""
        assert chunk.y is not None
        return cls(np.bincount(chunk.y[:, 0].astype(np.intp), weights=chunk.weight, minlength=params).astype(float))

    def merge(self, other: Self) -> Self:
        """The totals of both sets of rows."""
        return replace(self, totals=self.totals + other.totals)


@dataclass(frozen=True)
class WeightTotal:
    """The sum of weights."""

    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: None) -> Self:
        """The weight of one chunk."""
        return cls(float(len(chunk) if chunk.weight is None else chunk.weight.sum()))

    def merge(self, other: Self) -> Self:
        """The weight of both sets of rows."""
        return replace(self, weight=self.weight + other.weight)
