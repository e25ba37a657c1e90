"""Leading principal axes of many columns by a block Krylov method, which uses the rows only in sums.

No d x d matrix is formed. One pass over the rows multiplies the scatter matrix by a block B of b columns,

    S B = D^-1 (X'W X - W m m') D^-1 B     (sparse rows: centred implicitly),     sum w a (a'B)    (dense rows)  (1)

From a random block, each pass extends an orthonormal basis Q by the residuals of the current approximations (Ritz
pairs)

    Q'S Q y = t y,      u = Q y,      r = S u - t u                                                             (2)

until ||r_j|| <= tol t_j for every requested pair. The basis then spans the block Krylov space of the start; if it
becomes too large it is replaced by its best directions (a thick restart). Converged pairs are not refined further, so
passes become cheaper. References: Golub and Van Loan, Matrix Computations, section 10.3; Musco and Musco
(2015), Randomized block Krylov methods for stronger and faster approximate singular value decomposition.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.chunks import Chunk, chunk_rows_for
from summula.core.data.layout.blocks import empty_block, product
from summula.core.engine.random import normal, stream_key
from summula.core.errors import warn
from summula.core.estimator.run import Run
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.statistics import Moments
from summula.decomposition.principal.axes import Axes, Problem, column_scale, frobenius_norm, oriented

__all__ = ["KrylovOptions", "Units", "leading_axes", "scatter_product", "widen_chunks"]

Array = NDArray[np.float64]

_BLOCKS = 8  # number of blocks of the basis before a restart,
_KEPT = 2  # and after it
_BASIS_VALUES = 2**25  # maximum number of values of the basis, which has fewer blocks for very many columns
_PER_COLUMN = (
    32  # minimum number of stored values per column and chunk of sparse rows, so that adding d x b results is cheap
)
_ROUNDING = 1e-14  # residual, relative to the largest eigenvalue, below which it is rounding
_INDEPENDENT = 1e-12  # eigenvalue of products of directions, relative to the largest, above which they are independent
_RANK = 1e-10  # relative size of the component of a direction outside of the basis below which it is not new


class Units(NamedTuple):
    """Shift and scale of rows: a = (x - mean) / scale; sparse rows are stored about `origin`."""

    mean: Array
    scale: Array
    origin: Array


def _scatter_of_rows(units: Units, B: Array, chunk: Chunk) -> Array:
    """The terms of (1): X'W X B of sparse rows about their origin, or the whole of (1) for dense rows."""
    if not chunk.is_sparse:
        block = chunk.block(np.float64, units.mean)
        inside = product(block, B)
        inside = inside if chunk.weight is None else inside * np.asarray(chunk.weight, np.float64)[:, None]
        return product(block.T, inside)
    from summula.decomposition.principal.krylov_kernels import normal_products

    rows, out = chunk.rows.about(units.origin), np.zeros(B.shape)
    w = np.empty(0) if chunk.weight is None else np.asarray(chunk.weight, np.float64)
    normal_products(rows.indptr, rows.indices, rows.data, w, B, out)
    return out


def scatter_product(run: Run, units: Units, B: Array) -> tuple[Array, int]:
    """Compute S B in one pass by (1), and the number of rows with a positive weight."""
    d, width = B.shape
    inside = empty_block(d, _full_vectors(width) if run.source.is_sparse else width)
    inside[:, :width], inside[:, width:] = B / units.scale[:, None], 0.0
    sums = run.sum(FunctionSum, functools.partial(_scatter_of_rows, units, inside), "block product", by_chunk=True)
    value = sums.value[:, :width]
    if run.source.is_sparse:
        drift = units.mean - units.origin
        value = value - sums.weight * np.outer(drift, (drift @ inside)[:width])
    return np.asarray(value / units.scale[:, None]), sums.count


def _pursued(run: Run, count: int) -> int:
    """Return how many leading residuals extend the basis: for sparse rows a multiple of the vector length."""
    if not run.source.is_sparse:
        return count
    from summula.decomposition.principal.krylov_kernels import LANES

    return count // LANES * LANES or count


def _full_vectors(width: int) -> int:
    """Return the block width for the sparse kernel, a multiple of the vector length."""
    from summula.decomposition.principal.krylov_kernels import LANES

    return -(-width // LANES) * LANES


class KrylovOptions(NamedTuple):
    """Oversampling, seed of the first block, and stopping criteria."""

    oversamples: int
    seed: int
    tol: float
    max_passes: int


def widen_chunks(run: Run) -> None:
    """Read sparse rows in chunks so large that adding d x b results is cheap relative to computing them."""
    width = max(run.source.width, 1.0)
    if run.source.is_sparse and run.engine.chunk_rows is None:
        wanted = _PER_COLUMN * run.source.n_features / width
        rows = max(chunk_rows_for(width), int(2 ** np.ceil(np.log2(max(wanted, 1.0)))))
        run.parts = run.source.plan(rows)


class RitzPairs(NamedTuple):
    """Ritz values, descending, and the coordinates of all their vectors; vectors and residuals of some, as rows."""

    values: Array
    coordinates: Array
    vectors: Array
    residuals: Array


def _orthonormal(rows: Array) -> Array:
    """Return orthonormal rows that span the given ones; fewer if these are dependent.

    Uses the Cholesky factor of their products, applied twice, which is as accurate as a QR factorisation for rows that
    are not nearly dependent, and takes a tenth of the time.
    """
    G = rows @ rows.T
    if len(G) and np.linalg.eigvalsh(G)[0] > _INDEPENDENT * G.max():
        return np.asarray(solve_triangular(np.linalg.cholesky(G), rows, lower=True, check_finite=False))
    columns, triangle = np.linalg.qr(rows.T)
    return np.ascontiguousarray(columns[:, np.abs(np.diag(triangle)) > _RANK].T)


class _Basis:
    """An orthonormal basis Q of up to `most` directions (as rows), its image S Q, and Q S Q'."""

    def __init__(self, most: int, d: int) -> None:
        self._Q, self._image, self.T, self.size = np.empty((most, d)), np.empty((most, d)), np.empty((0, 0)), 0

    @property
    def Q(self) -> Array:
        """Return the directions."""
        return self._Q[: self.size]

    @property
    def image(self) -> Array:
        """Return their images."""
        return self._image[: self.size]

    def new_directions(self, R: Array) -> Array:
        """Return orthonormal columns that span the components of the rows R outside of the basis."""
        lengths = np.linalg.norm(R, axis=1)
        rows = R[lengths > 0] / lengths[lengths > 0, None]
        for _ in range(2):  # twice is enough for orthogonality to rounding
            rows = _orthonormal(rows - (rows @ self.Q.T) @ self.Q)
        return np.ascontiguousarray(rows.T)

    def add(self, directions: Array, image: Array) -> None:
        """Extend the basis by columns and their images."""
        cross, corner = self.Q @ image, directions.T @ image
        self.T = np.block([[self.T, cross], [cross.T, (corner + corner.T) / 2]])
        end = self.size + directions.shape[1]
        self._Q[self.size : end], self._image[self.size : end] = directions.T, image.T
        self.size = end

    def pairs(self, wanted: int) -> RitzPairs:
        """Return approximations (2), with vectors and residuals of the requested ones."""
        values, Y = np.linalg.eigh(self.T)
        values, Y = values[::-1], Y[:, ::-1]
        near = np.ascontiguousarray(Y[:, :wanted].T)
        U = near @ self.Q
        return RitzPairs(values, Y, U, near @ self.image - values[:wanted, None] * U)

    def restart(self, values: Array, Y: Array) -> None:
        """Replace the basis by the directions Y'Q, of Ritz values `values`."""
        kept = len(values)
        self._Q[:kept], self._image[:kept] = Y.T @ self.Q, Y.T @ self.image
        self.T, self.size = np.diag(values), kept


def leading_axes(
    run: Run, problem: Problem, wanted: int, options: KrylovOptions, offer: Callable[[Axes], None]
) -> Axes | None:
    """Iterate (2) until the residuals are small; None if values are missing."""
    run.keep_rows(passes=options.max_passes)
    widen_chunks(run)
    first = _first_axes(run, problem)
    if first is None:
        return None
    axes, units = first
    d, block = len(axes.mean), min(wanted + options.oversamples, len(axes.mean))
    most = min(max(_BLOCKS * block, 2 * wanted), d, max(_BASIS_VALUES // d, (_KEPT + 1) * block))
    basis = _Basis(most + block, d)
    start = np.stack([normal(stream_key(options.seed, (7, t)), d) for t in range(block)])
    directions, passes, worst = basis.new_directions(start), 0, np.inf
    while directions.shape[1] and passes < options.max_passes:
        image, count = scatter_product(run, units, directions)
        basis.add(directions, image)
        values, Y, U, R = basis.pairs(wanted)
        lengths, passes = np.linalg.norm(R, axis=1), passes + 1
        enough = np.maximum(options.tol * values[: len(R)], _ROUNDING * np.abs(values[0]))
        if len(R) == wanted:
            worst = float((lengths / np.maximum(enough, 1e-300)).max()) * options.tol
            axes = _found(axes, values, U)
            axes = replace(axes, residual=frobenius_norm(R), n_iter=passes, count=count)
            offer(axes)
            if run.step("block product") or (lengths <= enough).all():
                break
        if basis.size + wanted > most:
            basis.restart(values[: _KEPT * block], Y[:, : _KEPT * block])
        open_pairs = np.flatnonzero(lengths > enough)
        directions = basis.new_directions(R[open_pairs[: _pursued(run, len(open_pairs))]])
    if worst > 1e3 * options.tol and passes == options.max_passes:
        warn(
            f"{type(run.estimator).__name__} stopped after {passes} passes with a relative residual of {worst:.1e} "
            f"(tolerance {options.tol:.1e}); increase max_iter ({options.max_passes}) or tol.",
            ConvergenceWarning,
        )
    return axes


def _first_axes(run: Run, problem: Problem) -> tuple[Axes, Units] | None:
    """Return means, scales and the trace of S, without axes; None if values are missing."""
    d = run.source.n_features
    origin = run.origin()[:d] if problem.center else np.zeros(d)
    sums = run.sum(Moments, origin, "means")
    weight = float(sums.weight.max())
    if (sums.weight < weight).any() or not np.isfinite(sums.square).all():
        return None
    mean = sums.mean if problem.center else np.zeros(d)
    squares = sums.variance * weight if problem.center else sums.square
    unit = float(np.finfo(run.source.dtype).eps)
    scale = column_scale(problem, squares / weight, mean, unit)
    total = float((squares / scale**2).sum())
    nothing = np.empty(0), np.empty((0, d))
    axes = Axes(mean, scale, int(sums.count.max()), weight, total, *nothing, "krylov")
    return axes, Units(mean, scale, origin if run.source.is_sparse else mean)


def _found(axes: Axes, values: Array, U: Array) -> Axes:
    wanted = len(U)
    following = float(max(values[wanted], 0.0)) if wanted < len(values) else 0.0
    kept = np.maximum(values[: wanted + 1], 0.0)
    return replace(axes, values=kept, vectors=oriented(U), following=following)
