"""Sums over rows for generalised linear models: loss, gradient and Hessian at a point.

Row x_i has the linear predictors eta_i = b + V'(x_i - o) + offset_i, one for each of K outputs (K > 1 for softmax);
o is an origin near the mean, which makes the sums accurate and intercept and slopes nearly independent. With
z_i = (1, x_i - o), theta = (b; V) and the loss l of `summula.losses`,

    L(theta)  = sum_i w_i l(y_i, eta_i)                                                                        (1)
    dL/dtheta = sum_i w_i z_i s_i',       s_i = dl/deta                                                        (2)
    H         = sum_i w_i C_i (x) z_i z_i',   C_i = d2l/deta2 (K x K), or its expectation over y                (3)

All three are computed in one pass over a block of rows while it is in cache. H is ordered output by output.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, inner, product, scratch_block
from summula.core.errors import DataError
from summula.core.numerics.sums import Sum, merged_by
from summula.linear_model.glm.softmax_hessian import SoftmaxCurvature, softmax_hessian
from summula.losses import Logistic, Loss, Multinomial, PoissonLog, Squared

__all__ = [
    "CANONICAL",
    "At",
    "Diagonal",
    "Slopes",
    "WeightTotal",
    "block_of",
    "dense_sums",
    "derivatives_at",
    "inner_of",
    "linear_predictor",
    "moved_to_origin",
    "row_weights",
    "weighted_rows",
]

Array = NDArray[Any]


class At(NamedTuple):
    """Point of evaluation and options of a pass.

    theta has shape (1 + d, K) with an intercept, else (d, K). `order` 1 requests (1) and (2), 2 also (3).
    `expected` uses the expectation of C (Fisher information), which is non-negative and used for inference.
    `class_weight` multiplies the weight of a row by that of its class; `support` is a family that checks y;
    `extent` requests the largest absolute values of the columns.
    """

    loss: Loss
    origin: Array
    theta: Array
    intercept: bool
    order: int
    expected: bool = False
    class_weight: Array | None = None
    support: Any = None
    extent: bool = False


def row_weights(chunk: Chunk, class_weight: Array | None) -> Array | None:
    """Return the weights of the rows times those of their classes; None if all are 1."""
    if class_weight is None:
        return chunk.weight
    assert chunk.codes is not None
    mine: Array = class_weight[chunk.codes]
    return mine if chunk.weight is None else mine * chunk.weight


def weighted_rows(chunk: Chunk, class_weight: Array | None) -> tuple[Chunk, Array | None]:
    """Return the rows with positive weight and their weights; at others an infinite loss times 0 would be NaN."""
    if class_weight is None:
        return chunk.positive, chunk.positive.weight
    w = row_weights(chunk, class_weight)
    if w is None or w.all():
        return chunk, w
    kept = np.flatnonzero(w)
    return chunk.take(kept), w[kept]


def block_of(chunk: Chunk, origin: Array, intercept: bool, use: str | None = None) -> Array:
    """Return the dense rows z_i, without the indicators of factors; `use` is the name of a scratch block."""
    first = int(intercept)
    if chunk.has_factors:
        chunk = replace(chunk, rows=chunk.rows.dense)
    d = chunk.n_features
    block = chunk.blank(first + d) if use is None else scratch_block(use, len(chunk), first + d, chunk.dtype)
    chunk.write(block[:, first:], origin[:d].astype(chunk.dtype))
    if intercept:
        block[:, 0] = 1.0
    return block


def _sparse_predictor(chunk: Chunk, point: At) -> Array:
    from summula.linear_model.glm.kernels import add_products

    V = np.ascontiguousarray(point.theta[int(point.intercept) :])
    eta = np.tile(point.theta[0] if point.intercept else np.zeros(V.shape[1]), (len(chunk), 1))
    rows = chunk.rows.about(point.origin)
    add_products(rows.indptr, rows.indices, rows.data, V, eta)
    return eta


def moved_to_origin(chunk: Chunk, point: At) -> tuple[Chunk, At]:
    """Return sparse rows about the origin, computed once for all sums of a pass."""
    if not chunk.is_sparse or not point.origin.any():
        return chunk, point
    return replace(chunk, rows=chunk.rows.about(point.origin)), point._replace(origin=np.zeros_like(point.origin))


def _with_levels(chunk: Chunk, point: At, eta: Array) -> Array:
    from summula.linear_model.glm.kernels import add_levels

    first, rows = int(point.intercept), chunk.rows
    out = np.ascontiguousarray(eta)
    for k in range(eta.shape[1]):
        column = np.ascontiguousarray(out[:, k])
        add_levels(rows.codes, rows.starts, np.ascontiguousarray(point.theta[first:, k]), column)
        out[:, k] = column
    return out


def linear_predictor(chunk: Chunk, point: At, block: Array | None = None) -> Array:
    """Return eta, of shape (n, K), in float64."""
    if chunk.is_sparse:
        eta = _sparse_predictor(chunk, point)
    else:
        block = block_of(chunk, point.origin, point.intercept) if block is None else block
        theta = point.theta[: block.shape[1]].astype(block.dtype)
        eta = product(block, theta).astype(np.float64, copy=False)
        if chunk.has_factors:
            eta = _with_levels(chunk, point, eta)
    return eta if chunk.offset is None else eta + chunk.offset[:, None]


@dataclass(frozen=True)
class Slopes(Sum):
    """The sums (1) to (3) at a point.

    Attributes
    ----------
    value : float
    slope : ndarray of shape (p, K)
    hessian : ndarray of shape (p K, p K), or None
    inner : ndarray of shape (K, K)
        Block of H of the intercepts: sum of w C.
    largest : ndarray of shape (d,)
        Largest |x_j - o_j|; empty unless requested.
    weight : float
    """

    value: float
    slope: Array
    hessian: Array | None
    inner: Array
    largest: Array = field(metadata=merged_by(np.maximum))
    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """The sums of one chunk."""
        point = params
        if point.support is not None:
            _check_support(chunk, point.support)
        chunk, w = weighted_rows(chunk, point.class_weight)
        chunk, point = moved_to_origin(chunk, point)
        block = None if chunk.is_sparse else _rows_of_pass(chunk, point)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = linear_predictor(chunk, point, block)
            value, slope, curvature = derivatives_at(point, chunk.target, eta, w)
            if block is None:
                gradient, hessian, largest = _sparse_sums(chunk, slope, curvature, point)
            elif chunk.has_factors:
                gradient, hessian, largest = _factor_sums(chunk, block, slope, curvature, point)
            else:
                gradient, hessian, largest = dense_sums(block, slope, curvature, point, keep=chunk.is_small)
            if hessian is not None and block is not None and _has_inner_blocks(block, slope, point):
                inner = _inner_blocks(hessian, slope.shape[1])
            else:
                inner = inner_of(curvature)
        return cls(value, gradient, hessian, inner, largest, float(len(chunk) if w is None else w.sum()))


def _rows_of_pass(chunk: Chunk, point: At) -> Array:
    """Return the dense rows z_i; those of a small chunk are kept for later passes, others are in scratch memory."""
    if not chunk.is_small or chunk.has_factors:
        return block_of(chunk, point.origin, point.intercept, "likelihood")
    rows: Array = chunk.kept(
        ("likelihood", point.intercept, point.origin.tobytes()),
        lambda: block_of(chunk, point.origin, point.intercept),
    )
    return rows


def _check_support(chunk: Chunk, family: Any) -> None:
    """Raise for the first target with positive weight outside the support; missing targets are reported elsewhere."""
    assert chunk.y is not None
    checked = np.isfinite(chunk.y[:, 0])
    if chunk.weight is not None:
        checked &= chunk.weight > 0
    rows = np.flatnonzero(checked)
    bad = family.find_unsupported(chunk.y[rows, 0])
    if bad is not None:
        row, words = int(rows[bad[0]]), bad[1]
        raise DataError(
            "Some value(s) of y are out of the valid range of the loss: "
            f"y is {chunk.y[row, 0]:g} at row {chunk.start + row}, but {words}."
        )


# Losses whose curvature does not depend on y, so that observed and expected curvature agree.
CANONICAL = (Squared, Logistic, PoissonLog, Multinomial)


def derivatives_at(point: At, y: Array, eta: Array, w: Array | None) -> tuple[float, Array, Any]:
    """Return the weighted value, and the weighted slope (n, K) and curvature of each row.

    The curvature has shape (n,), or is a `SoftmaxCurvature` if K > 1.
    """
    loss = point.loss
    if isinstance(loss, Multinomial):
        value, slope, p = loss.slopes_and_probabilities(y, eta)
        if w is not None:
            slope *= w[:, None]
        return _total(value, w), slope, SoftmaxCurvature(np.ones(len(y)) if w is None else w, p)
    value, s, c = loss.derivatives(y, eta[:, 0])
    if not point.expected and not isinstance(loss, CANONICAL):
        c = loss.curvature(y, eta[:, 0])
    if w is not None:
        s, c = s * w, c * w
    return _total(value, w), s[:, None], c


def _total(value: Array, w: Array | None) -> float:
    if w is None:
        return float(value.sum())
    return inner(value, w)


def inner_of(curvature: Any) -> Array:
    """Return the block of H of the intercepts."""
    if isinstance(curvature, SoftmaxCurvature):
        weighted = curvature.p * curvature.weight[:, None]
        return np.diag(weighted.sum(axis=0)) - product(aligned(weighted).T, curvature.p)
    return np.array([[curvature.sum()]])


def _has_inner_blocks(block: Array, slope: Array, point: At) -> bool:
    """Whether a Hessian of softmax contains the sums of `inner_of` in double precision."""
    return point.intercept and slope.shape[1] > 1 and block.dtype == np.float64


def _inner_blocks(hessian: Array, outputs: int) -> Array:
    """Return the same blocks, extracted from a Hessian that includes the intercepts."""
    p = len(hessian) // outputs
    return hessian.reshape(outputs, p, outputs, p)[:, 0, :, 0].copy()


def _pairs(curvature: Any, outputs: int) -> Any:
    """Yield the weights of z z' in each block (k, l), k <= l, of H."""
    if not isinstance(curvature, SoftmaxCurvature):
        yield 0, 0, curvature
        return
    w, p = curvature
    for k in range(outputs):
        for m in range(k, outputs):
            yield k, m, w * p[:, k] * (float(k == m) - p[:, m])


def dense_sums(
    block: Array, slope: Array, curvature: Any, point: At, *, keep: bool = False
) -> tuple[Array, Array | None, Array]:
    """Return gradient, Hessian and largest absolute values of a block of rows.

    For order 2 the block is scaled in place, unless it is to be kept.
    """
    outputs = slope.shape[1]
    gradient = product(block.T, slope.astype(block.dtype)).astype(np.float64, copy=False)
    largest = np.zeros(0)
    if point.extent:
        first = int(point.intercept)
        largest = np.maximum(block.max(axis=0, initial=0.0), -block.min(axis=0, initial=0.0))[first:].astype(np.float64)
    if point.order < 2:
        return gradient, None, largest
    if outputs == 1 and not isinstance(curvature, SoftmaxCurvature):
        # NumPy recognises a matrix times its own transpose and computes one triangle (syrk), without the GIL.
        scaled = scratch_block("scaled rows", len(block), block.shape[1], block.dtype) if keep else block
        np.multiply(block, np.sqrt(np.maximum(curvature, 0.0)).astype(block.dtype)[:, None], out=scaled)
        return gradient, (scaled.T @ scaled).astype(np.float64, copy=False), largest
    return gradient, softmax_hessian(block, curvature), largest


def _factor_sums(
    chunk: Chunk, block: Array, slope: Array, curvature: Any, point: At
) -> tuple[Array, Array | None, Array]:
    """Compute the sums of dense columns by products, and those of factors by their codes."""
    from summula.linear_model.glm.kernels import add_by_level, add_level_products

    rows, first, width, outputs = chunk.rows, int(point.intercept), block.shape[1], slope.shape[1]
    if outputs > 1:  # softmax: as dense rows, a few at a time
        plain = replace(chunk, rows=chunk.dense(chunk.dtype))
        return dense_sums(block_of(plain, point.origin, point.intercept), slope, curvature, point)
    p = first + chunk.n_features
    gradient = np.zeros((p, 1))
    gradient[:width] = product(block.T, slope.astype(block.dtype))
    s = np.ascontiguousarray(slope[:, 0])
    by_level = np.zeros(p - first)
    add_by_level(rows.codes, rows.starts, s, by_level)
    gradient[width:, 0] = by_level[width - first :]
    largest = np.zeros(0)
    if point.extent:
        size = np.maximum(block.max(axis=0), -block.min(axis=0))[first:].astype(np.float64)
        largest = np.concatenate([size, np.ones(p - width)])
    if point.order < 2:
        return gradient, None, largest
    c = np.maximum(curvature, 0.0)
    H = np.zeros((p, p))
    add_level_products(rows.codes, rows.starts, block, c, first, H)
    block *= np.sqrt(c).astype(block.dtype)[:, None]
    H[:width, :width] = block.T @ block
    H[:width, width:] = H[width:, :width].T
    return gradient, H, largest


def _sparse_sums(chunk: Chunk, slope: Array, curvature: Any, point: At) -> tuple[Array, Array | None, Array]:
    from summula.linear_model.glm.kernels import add_transposed

    rows, first, outputs = chunk.rows, int(point.intercept), slope.shape[1]
    d = chunk.n_features
    gradient = np.zeros((first + d, outputs))
    # (a view of whole rows: contiguous)
    add_transposed(rows.indptr, rows.indices, rows.data, np.ascontiguousarray(slope), gradient[first:])
    if first:
        gradient[0] = slope.sum(axis=0)
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
    largest = np.zeros(d if point.extent else 0)
    if point.extent:
        if not X.has_canonical_format:  # duplicate entries are added
            X = X.copy()
            X.sum_duplicates()
        np.maximum.at(largest, X.indices, np.abs(X.data))
    return gradient, H.reshape(outputs * (first + d), -1), largest


@dataclass(frozen=True)
class Diagonal(Sum):
    """The diagonal of H, of shape (p, K), used to scale variables if H itself is too large."""

    diagonal: Array

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """The diagonal of one chunk."""
        from summula.linear_model.glm.kernels import add_squares

        point, first = params, int(params.intercept)
        chunk, w = weighted_rows(chunk, point.class_weight)
        chunk, point = moved_to_origin(chunk, point)
        block = None if chunk.is_sparse else block_of(chunk, point.origin, point.intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = linear_predictor(chunk, point, block)
            _, _, c = derivatives_at(point, chunk.target, eta, w)
        C = c.weight[:, None] * c.p * (1 - c.p) if isinstance(c, SoftmaxCurvature) else c[:, None]
        out = np.zeros(point.theta.shape)
        if chunk.is_sparse:
            add_squares(chunk.rows.indptr, chunk.rows.indices, chunk.rows.data, np.ascontiguousarray(C), out[first:])
        else:
            full = block_of(replace(chunk, rows=chunk.dense(chunk.dtype)), point.origin, point.intercept)
            out[first:] = product(np.square(full[:, first:]).T, C.astype(full.dtype))
        if first:
            out[0] = C.sum(axis=0)
        return cls(out)


@dataclass(frozen=True)
class WeightTotal(Sum):
    """The sum of weights."""

    weight: float

    @classmethod
    def map(cls, chunk: Chunk, params: None) -> Self:
        """The weight of one chunk."""
        return cls(float(len(chunk) if chunk.weight is None else chunk.weight.sum()))
