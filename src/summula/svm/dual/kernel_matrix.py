"""Rows of an implicit kernel matrix: blocks computed on the threads of the engine, and a cache of rows.

The solver needs the kernel among the rows of a working set, and g += K[:, W] change. The latter is computed in blocks
of columns of K, each on one thread: cached rows are summed from the cache, others are computed, summed, and cached.
Blocks do not depend on the number of threads, so results do not either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import empty_block
from summula.core.engine.engine import local_engine
from summula.core.engine.threads import one_blas_thread
from summula.kernels.kernel import Kernel
from summula.kernels.rows import Rows

__all__ = ["CachedKernel", "KernelMatrix", "PrecomputedKernel"]

Array = NDArray[Any]
Index = NDArray[np.intp]

_COLUMNS = 2_048  # columns per block
_ROWS = 256  # rows per block
_FLOPS = 16.0  # number of columns that a matrix product processes in the time of one addition
_FEW = 2**19  # number of kernel values that one thread computes in the time it takes to wake another


def _for_each(task: Callable[[int], None], parts: range, values: int) -> None:
    """Run the parts of a task on the threads of the engine, or inline if there are too few values."""
    if values <= _FEW:
        with one_blas_thread():
            for part in parts:
                task(part)
        return
    for _ in local_engine().map_ordered(task, parts):
        pass


class KernelMatrix(ABC):
    """A symmetric matrix K of shape (n, n)."""

    n: int

    @abstractmethod
    def among(self, rows: Index, size: int) -> Array:
        """Return K among some rows as a new array, zero-padded to shape (size, size)."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal of K."""

    @abstractmethod
    def column(self, row: int) -> Array:
        """Return K[:, row] of the whole matrix in double precision."""

    @property
    @abstractmethod
    def price(self) -> float:
        """Return the cost of computing a value of K, in units of an addition."""

    @abstractmethod
    def add_products(self, rows: Index, change: Array, g: Array) -> None:
        """g += K[:, rows] change."""

    @abstractmethod
    def products(self, rows: Index, change: Array, columns: Index) -> Array:
        """Return K[columns, rows] change of the whole matrix, regardless of restrictions and without caching."""

    @abstractmethod
    def restrict(self, rows: Index) -> None:
        """Restrict the matrix to some rows."""

    @abstractmethod
    def expand(self) -> None:
        """Undo `restrict`."""


class _RowCache:
    """Rows of length n in slots of one array; if it is full, the least recently used rows are evicted."""

    def __init__(self, n: int, dtype: Any, size: float) -> None:
        self.n, self.dtype, self.size = n, np.dtype(dtype), size
        slots = int(min(size // max(n * self.dtype.itemsize, 1), n))
        self.store = empty_block(slots, n, dtype)
        self.slot_of = np.full(n, -1, np.int64)
        self.row_in = np.full(slots, -1, np.int64)
        self.used = np.zeros(slots, np.int64)
        self.clock = 0

    def reserve(self, rows: Index, cached: Index) -> Index:
        """Return slots for new rows, -1 if there are none left; slots of `cached` rows are preserved."""
        self.clock += 1
        self.used[self.slot_of[cached]] = self.clock
        order = np.argsort(self.used, kind="stable")[: len(rows)]
        order = order[self.used[order] < self.clock]
        slots = np.full(len(rows), -1, np.int64)
        slots[: len(order)] = order
        evicted = self.row_in[order]
        self.slot_of[evicted[evicted >= 0]] = -1
        self.row_in[order], self.used[order] = rows[: len(order)], self.clock
        self.slot_of[rows[: len(order)]] = order
        return slots

    def restrict(self, rows: Index) -> None:
        """Keep only some columns (and the rows with the same numbers), in place, row by row."""
        flat, m = self.store.reshape(-1), len(rows)
        place = np.full(self.n, -1, np.int64)
        place[rows] = np.arange(m)
        kept = np.flatnonzero(self.row_in >= 0)
        kept = kept[place[self.row_in[kept]] >= 0]
        for new, old in enumerate(kept):
            flat[new * m : (new + 1) * m] = self.store[old, rows]
        row_in, used = place[self.row_in[kept]], self.used[kept]
        slots = int(min(flat.size // max(m, 1), m))
        self.n, self.store = m, flat[: slots * m].reshape(slots, m)
        self.slot_of, self.row_in = np.full(m, -1, np.int64), np.full(slots, -1, np.int64)
        self.used = np.zeros(slots, np.int64)
        self.row_in[: len(kept)], self.used[: len(kept)] = row_in, used
        self.slot_of[row_in] = np.arange(len(kept))


class CachedKernel(KernelMatrix):
    """Kernel matrix K_ij = k(x_i, x_j) of some rows, with a cache of at most `cache_bytes`."""

    def __init__(self, kernel: Kernel, rows: Rows, cache_bytes: float) -> None:
        self.kernel, self.rows, self.n, self._whole = kernel, rows, len(rows), rows
        self._cache_bytes = cache_bytes
        self._cache = _RowCache(self.n, rows.dtype, cache_bytes)
        self._cut()

    def _cut(self) -> None:
        starts = range(0, self.n, _COLUMNS)
        self._blocks = [(a, min(a + _COLUMNS, self.n)) for a in starts]
        self._columns = [self.rows.take(slice(a, b)) for a, b in self._blocks]

    def among(self, rows: Index, size: int) -> Array:
        n = len(rows)
        some = self.rows if n == self.n and (rows[0], rows[-1]) == (0, n - 1) else self.rows.take(rows)
        K = np.zeros((size, size), some.dtype)

        def fill(a: int) -> None:
            # (A copy of the rows: for a product with itself NumPy would compute one half and copy it slowly.)
            b = min(a + _ROWS, n)
            K[a:b, :n] = self.kernel.evaluate(some.take(np.arange(a, b)), some)

        _for_each(fill, range(0, n, _ROWS), K.size)
        each = np.arange(n)
        K[each, each] = self.kernel.diagonal(some)
        return K

    def diagonal(self) -> Array:
        return np.asarray(self.kernel.diagonal(self.rows), np.float64)

    def column(self, row: int) -> Array:
        values = self.kernel.evaluate(self._whole.take(np.array([row])), self._whole)[0]
        return np.asarray(values, np.float64)

    @property
    def price(self) -> float:
        X: Any = self._whole.X
        columns = X.nnz / max(len(self._whole), 1) if hasattr(X, "indptr") else X.shape[1]
        return 1.0 + float(columns) / _FLOPS

    def add_products(self, rows: Index, change: Array, g: Array) -> None:
        from summula.svm.dual.smo_kernels import accumulate, accumulate_cached

        cache, slots = self._cache, self._cache.slot_of[rows]
        known = slots >= 0
        cached, fresh = slots[known], rows[~known]
        old_change, new_change = change[known], change[~known]
        free = cache.reserve(fresh, rows[known])
        pieces = [slice(r, r + _ROWS) for r in range(0, len(fresh), _ROWS)]
        some = [self.rows.take(fresh[piece]) for piece in pieces]

        def add(block: int) -> None:
            a, b = self._blocks[block]
            out = g[a:b]
            accumulate_cached(cache.store, cached, a, old_change, out)
            for piece, mine in zip(pieces, some, strict=True):
                values = self.kernel.evaluate(mine, self._columns[block])
                accumulate(values, new_change[piece], out)
                kept = free[piece]
                if kept[-1] >= 0:
                    cache.store[kept, a:b] = values
                elif kept[0] >= 0:
                    kept = kept[kept >= 0]
                    cache.store[kept, a:b] = values[: len(kept)]

        _for_each(add, range(len(self._blocks)), len(rows) * self.n)

    def products(self, rows: Index, change: Array, columns: Index) -> Array:
        from summula.svm.dual.smo_kernels import accumulate

        out = np.zeros(len(columns))
        some = [self._whole.take(rows[a : a + _ROWS]) for a in range(0, len(rows), _ROWS)]

        def add(a: int) -> None:
            mine = self._whole.take(columns[a : a + _COLUMNS])
            for k, part in enumerate(some):
                accumulate(self.kernel.evaluate(part, mine), change[k * _ROWS : (k + 1) * _ROWS], out[a : a + _COLUMNS])

        _for_each(add, range(0, len(columns), _COLUMNS), len(rows) * len(columns))
        return out

    def restrict(self, rows: Index) -> None:
        self.rows, self.n = self.rows.take(rows), len(rows)
        self._cache.restrict(rows)
        self._cut()

    def expand(self) -> None:
        self.rows, self.n = self._whole, len(self._whole)
        del self._cache  # free its memory before allocating the next
        self._cache = _RowCache(self.n, self.rows.dtype, self._cache_bytes)
        self._cut()


class PrecomputedKernel(KernelMatrix):
    """A precomputed matrix whose upper and lower triangles agree up to rounding."""

    def __init__(self, K: Array) -> None:
        self.K, self._rows, self.n = K, np.arange(len(K)), len(K)

    def among(self, rows: Index, size: int) -> Array:
        mine, n = self._rows[rows], len(rows)
        K = np.zeros((size, size))
        K[:n, :n] = self.K[np.ix_(mine, mine)]
        return K

    def diagonal(self) -> Array:
        return np.asarray(self.K[self._rows, self._rows], np.float64)

    def column(self, row: int) -> Array:
        return np.asarray(self.K[row], np.float64)

    @property
    def price(self) -> float:
        return 1.0

    def add_products(self, rows: Index, change: Array, g: Array) -> None:
        from summula.svm.dual.smo_kernels import accumulate

        for a in range(0, len(rows), _ROWS):
            some = self.K[self._rows[rows[a : a + _ROWS]]]
            if self.n < self.K.shape[1]:
                some = some[:, self._rows]
            accumulate(np.ascontiguousarray(some), change[a : a + _ROWS], g)

    def products(self, rows: Index, change: Array, columns: Index) -> Array:
        g = np.zeros(len(self.K))
        for a in range(0, len(rows), _ROWS):
            g += change[a : a + _ROWS] @ self.K[rows[a : a + _ROWS]]
        return np.asarray(g[columns])

    def restrict(self, rows: Index) -> None:
        self._rows, self.n = self._rows[rows], len(rows)

    def expand(self) -> None:
        self._rows, self.n = np.arange(len(self.K)), len(self.K)
