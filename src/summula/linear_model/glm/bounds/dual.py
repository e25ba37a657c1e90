"""Duality gap of an L1-penalised likelihood, with a dual point constructed from the slopes of the rows.

    P(b, V) = sum_i w_i l(y_i, eta_i) + a |V|_1 + lambda/2 ||V||^2,      eta_i = offset_i + b + V'x_i            (1)

The Fenchel dual has one vector theta_i per row. At the slopes s_i = dl/deta the conjugate is l*(s_i) = s_i'eta_i - l_i;
for smaller multiples of s_i it is given by its excess over the tangent,

    e_i(tau) = l*(tau s_i) - l*(s_i) + (1 - tau) s_i'eta_i >= 0                                                 (2)

The infimum of a loss is 0, so l*(0) = 0 and e_i(0) = l_i. For classes e_i(tau) is the relative entropy of
y + tau (p - y) to p, and it has a closed form for the Poisson and squared losses, too. By convexity, for tau <= t <= 1,
e_i(t) <= (1 - t) / (1 - tau) e_i(tau), so sums for a few fixed tau give bounds for any t.

An unpenalised intercept requires sum_i w_i theta_i = 0. So rows are grouped by class, or by the sign of their slope,
and each group g has its own t_g: with R_gk the sum of w_i s_ik over the group,

    sum_g t_g R_gk = 0  for all outputs k                                                                       (3)

For classes R is the generator of a Markov chain (rows sum to 0, only the diagonal is negative) and t its stationary
distribution; it is nearly constant if the intercepts are nearly optimal. With g = -sum_i t_i w_i x_i s_i',

    P - min P <= sum_i w_i e_i(t_i) + sum_jk [ a |v| + lambda/2 v^2 + p*(g) - g v ]_jk                          (4)
    p*(g) = max(|g| - a, 0)^2 / (2 lambda),   infinite for |g| > a when lambda = 0

where a common factor of all t makes g feasible. No term is negative, so there is no cancellation.

A coefficient is certified to be zero if it is zero in every minimiser: for a loss with l'' <= c the dual is strongly
concave, and

    |g_j| + sqrt(2 gap (c sum_i w_i x_ij^2 + lambda)) < a       implies  v_j = 0         (gap-safe screening)    (5)

Reference: Fercoq, Gramfort, Salmon (2015), Mind the duality gap; Ndiaye et al. (2017), Gap safe screening rules.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.numerics.exponentials import exponential, sigmoid
from summula.core.numerics.sums import Sum
from summula.linear_model.glm.sums import At, block_of, linear_predictor, moved_to_origin, weighted_rows
from summula.losses import Logistic, Loss, Multinomial, PoissonLog, Squared
from summula.penalties import Penalty

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["Balanced", "Bound", "bound_of"]

Array = NDArray[Any]

TAU = (0.0, 0.9, 0.999, 1 - 1e-5, 1 - 1e-7)  # of (2)
_STEEPEST = {Logistic: 0.25, Multinomial: 0.5, Squared: 1.0}  # c of (5)


@dataclass(frozen=True)
class Balanced(Sum):
    """The sums of (3) and (4) by group of rows.

    Attributes
    ----------
    value : ndarray of shape (len(TAU), G)
        Weighted e(tau); the first are the losses.
    total : ndarray of shape (G, K)
        R: weighted slopes.
    slope : ndarray of shape (d, G, K)
        Sums of w x s' about the origin.
    squares : ndarray of shape (d,)
        Sums of w x^2 about the origin.
    weight : float
    """

    value: Array
    total: Array
    slope: Array
    squares: Array
    weight: float

    def is_finite(self) -> bool:
        """Return True: losses without a closed form of (2) have infinite values for finite rows."""
        return True

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """The sums of one chunk."""
        point = params
        chunk, weight = weighted_rows(chunk, point.class_weight)
        chunk, point = moved_to_origin(chunk, point)
        w = np.ones(len(chunk)) if weight is None else weight
        outputs = point.theta.shape[1]
        dense = None
        if not chunk.is_sparse:
            dense = block_of(replace(chunk, rows=chunk.dense(chunk.dtype)), point.origin, point.intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = linear_predictor(chunk, point, None if chunk.has_factors else dense)
            by_class = isinstance(point.loss, Multinomial)
            y = chunk.target
            value, slope, _ = point.loss.derivatives(y, eta if by_class else eta[:, 0])
            slope = slope.reshape(len(y), outputs) * w[:, None]
            group = y.astype(np.intp) if by_class else (slope[:, 0] < 0).astype(np.intp)
            groups = outputs if by_class else 2
            by_group = np.zeros((len(y), groups, outputs))
            by_group[np.arange(len(y)), group] = slope
            S: Array = by_group.reshape(len(y), groups * outputs)
            if dense is None:
                sums, squares = _sparse(chunk, S, w)
            else:
                sums, squares = _dense(dense, S, w, point.intercept)
        return cls(
            np.stack([np.bincount(group, e * w, groups) for e in _above_tangent(point.loss, y, eta, value)]),
            S.sum(axis=0).reshape(groups, outputs),
            sums.reshape(-1, groups, outputs),
            squares,
            float(w.sum()),
        )


def _above_tangent(loss: Loss, y: Array, eta: Array, value: Array) -> Iterator[Array]:
    """Yield e(tau) of (2) of the rows for each tau; infinite if it has no closed form."""
    yield value
    if isinstance(loss, Multinomial):
        p = loss.probabilities(eta)
        target = np.zeros_like(p)
        target[np.arange(len(y)), y.astype(np.intp)] = 1.0
    elif isinstance(loss, Logistic):
        mean = sigmoid(eta[:, 0]).p
        p, target = np.column_stack([1 - mean, mean]), np.column_stack([1 - y, y])
    elif isinstance(loss, PoissonLog):
        p, target = exponential(eta[:, 0])[:, None], y[:, None]
    for tau in TAU[1:]:
        share = 1 - tau
        if isinstance(loss, Squared):
            yield share**2 * value
        elif isinstance(loss, Logistic | Multinomial | PoissonLog):
            moved = share * (target - p)
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(p + moved > 0, (p + moved) * np.log1p(moved / p), 0.0) - moved
            above = np.maximum(terms.sum(axis=1), 0.0)
            # The convexity bound is used where a probability is too small for its logarithm.
            yield np.where(np.isfinite(above), np.minimum(above, share * value), share * value)
        else:
            yield np.full(len(y), np.inf)


def _dense(block: Array, S: Array, w: Array, intercept: bool) -> tuple[Array, Array]:
    X = block[:, int(intercept) :]
    sums = product(X.T, S.astype(X.dtype)).astype(np.float64, copy=False)
    np.multiply(block, block, out=block)
    return sums, product(X.T, w.astype(X.dtype)[:, None])[:, 0].astype(np.float64, copy=False)


def _sparse(chunk: Chunk, S: Array, w: Array) -> tuple[Array, Array]:
    from summula.linear_model.glm.kernels import add_squares, add_transposed

    rows, d = chunk.rows, chunk.n_features
    sums, squares = np.zeros((d, S.shape[1])), np.zeros((d, 1))
    add_transposed(rows.indptr, rows.indices, rows.data, np.ascontiguousarray(S), sums)
    add_squares(rows.indptr, rows.indices, rows.data, np.ascontiguousarray(w[:, None]), squares)
    # Sums of squares about 0 are upper bounds on those about the mean, as needed in (5).
    return sums, squares[:, 0]


class Bound(NamedTuple):
    """The objective (1), the bound (4) on its suboptimality, and the zeros certified by (5)."""

    value: float
    loss: float
    gap: float
    zeros: NDArray[np.bool_]
    weight: float


def bound_of(run: Run, at: At, penalty: Penalty) -> Bound:
    """Compute objective, gap and certified zeros of a point in one pass."""
    sums = run.sum(Balanced, at._replace(support=None), "duality gap")
    V = at.theta[int(at.intercept) :]
    t = _shares(sums.total) if at.intercept else np.ones(sums.value.shape[1])
    loss = float(sums.value[0].sum())
    value = loss + penalty.value(V)
    g = -np.einsum("g,jgk->jk", t, sums.slope)
    rest, share = penalty.gap(V.ravel(), g.ravel(), functools.partial(_shrunk, sums.value, t))
    gap = rest if at.loss.convex else np.inf
    return Bound(value, loss, gap, _zeros(at.loss, V, share * g, gap, sums.squares, penalty), sums.weight)


def _shares(R: Array) -> Array:
    """Solve (3) for t, scaled to maximum 1; groups without slopes have t = 1."""
    t = np.ones(len(R))
    used = np.flatnonzero(np.abs(R).sum(axis=1) > 0)
    if len(used) < 2:
        return t
    if R.shape[1] == 1:
        t[0], t[1] = abs(R[1, 0]), abs(R[0, 0])
        return np.asarray(t / t.max())
    # Refined once, so that the residual of (3) is rounding.
    A = R[used].T
    u = np.ones(len(used))
    for _ in range(2):
        u = u - np.linalg.lstsq(A, A @ u, rcond=1e-10)[0]
    t[used] = np.maximum(u, 0.0)
    return np.asarray(np.minimum(t / max(float(t[used].max()), 1e-300), 1.0))


def _shrunk(value: Array, t: Array, share: float) -> float:
    """Return the contribution of the losses to (4) if all t are multiplied by `share`."""
    total = 0.0
    for mine, least in zip(value.T, t * share, strict=True):
        known = [(1 - least) / (1 - tau) * e for tau, e in zip(TAU, mine, strict=True) if tau <= least and e < np.inf]
        total += float(min(known, default=np.inf)) if least < 1 else 0.0
    return total


def _zeros(loss: Loss, V: Array, g: Array, gap: float, squares: Array, penalty: Penalty) -> NDArray[np.bool_]:
    """Apply rule (5), with a result of shape (K, d); all False for losses with unbounded curvature."""
    curvature = _STEEPEST.get(type(loss))
    if curvature is None or not np.isfinite(gap):
        return np.zeros(V.T.shape, dtype=bool)
    reach = np.sqrt(2 * gap * (curvature * squares + penalty.l2))
    return penalty.certified_zero(V, g, reach[:, None]).T
