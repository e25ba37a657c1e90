"""Encoding of Dask dataframes and arrays of mixed columns, computed where the partitions are.

The rows are first counted in one pass. Blocks are then on the same grid as those of a frame in memory, each assembled
from partitions; the sums are merged in the same order, so they are bit-identical.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import no_such_column
from summula.core.engine.engine import TreeSum, current_engine, engine
from summula.core.errors import DataError
from summula.core.estimator.input.validation import as_weights, collection_reader
from summula.preprocessing.table_encoder import merged, weight_of
from summula.preprocessing.table_encoder_blocks import BLOCK_ROWS, Columns, table_blocks
from summula.preprocessing.table_encoder_sums import ColumnSums

__all__ = ["dask_sums", "lazily", "named_like"]

Array = NDArray[Any]


def named_like(X: Any, sample_weight: Any) -> Any:
    """Return an object in memory with the columns of a collection, except that of weights."""
    if not hasattr(X, "columns"):
        return np.empty((1, X.shape[1]))
    if isinstance(sample_weight, str) and sample_weight not in X.columns:
        raise DataError(no_such_column(sample_weight, X.columns))
    return X._meta[[name for name in X.columns if not (isinstance(sample_weight, str) and name == sample_weight)]]


def dask_sums(X: Any, sample_weight: Any, estimator: str) -> dict[str, ColumnSums]:
    """Compute the sums of each column of a collection."""
    import dask

    parts = _partitions(X)
    lengths = _computed([dask.delayed(len)(part) for part in parts])
    ends = list(accumulate(lengths))
    n = ends[-1] if ends else 0
    if not n:
        raise DataError("The table has no rows; TableEncoder needs at least one.")
    if collection_reader(sample_weight) is not None:
        (sample_weight,) = _computed([sample_weight])
    weight = sample_weight if isinstance(sample_weight, str) else as_weights(sample_weight, n, estimator)
    tasks = []
    for start in range(0, n, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n)
        first, last = bisect_right(ends, start), bisect_right(ends, stop - 1)
        cuts = [(max(start - a, 0), min(stop, b) - a) for a, b in zip([0, *ends], ends, strict=False)][first : last + 1]
        part = weight if weight is None or isinstance(weight, str) else weight[start:stop]
        tasks.append(dask.delayed(_sums_of)(parts[first : last + 1], cuts, start, part))
    tree: TreeSum[dict[str, ColumnSums]] = TreeSum(merged)
    for found in _computed(tasks):
        tree.push(found)
    total = tree.result()
    if isinstance(weight, str) and not next(iter(total.values())).rows:
        raise DataError(f"All weights in {weight!r} are zero: at least one row needs a positive weight.")
    return total


def _computed(tasks: list[Any]) -> Any:
    """Compute tasks on the cluster of the current engine, or with Dask's current scheduler."""
    import dask

    client = getattr(current_engine(), "client", None)
    return dask.compute(*tasks) if client is None else client.gather(client.compute(tasks))


def _partitions(X: Any) -> list[Any]:
    """Return the blocks of rows as delayed objects."""
    if hasattr(X, "columns"):
        return list(X.to_delayed())
    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimensions; a 2d array is needed.")
    return [row[0] for row in X.rechunk({1: -1}).to_delayed()]


def _sums_of(parts: list[Any], cuts: list[tuple[int, int]], start: int, weight: Any) -> dict[str, ColumnSums]:
    pieces = [table_blocks(part).read(a, b) for part, (a, b) in zip(parts, cuts, strict=True) if b > a]
    columns: Columns = {name: _joined([piece[name] for piece in pieces]) for name in pieces[0]}
    if isinstance(weight, str):
        rows = len(next(iter(columns.values())))
        weight = weight_of(columns, weight, start, start + rows)
    with np.errstate(over="ignore", invalid="ignore"):
        return {name: ColumnSums.of(values, name, start, weight) for name, values in columns.items()}


def _joined(pieces: list[Any]) -> Any:
    """Concatenate parts of a column; a part with only missing values may have another type than the others."""
    import pyarrow as pa

    if all(isinstance(piece, np.ndarray) and piece.dtype == pieces[0].dtype for piece in pieces):
        return np.concatenate(pieces)
    kind = next((piece for piece in pieces if not (isinstance(piece, np.ndarray) and _is_nothing(piece))), pieces[0])
    if isinstance(kind, np.ndarray):
        return np.concatenate([np.full(len(p), "NaT", kind.dtype) if _is_nothing(p) else p for p in pieces])
    texts = [pa.nulls(len(p), kind.type) if isinstance(p, np.ndarray) else p for p in pieces]
    return pa.concat_arrays(texts)


def _is_nothing(values: Any) -> bool:
    return bool(isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isnan(values).all())


def lazily(encoder: Any, X: Any, work: Callable[[Array], Array] | None) -> Any:
    """Return the encoded rows of a collection, or a function of them, as a lazy Dask array."""
    import dask.array as da

    rows: Array = np.zeros((1, len(encoder.get_feature_names_out())))
    with engine("serial"):
        like = (rows if work is None else np.asarray(work(rows)))[:0]
    call = {"encoder": encoder, "work": work, "like": like}
    if hasattr(X, "columns"):
        encoder._checked(X._meta_nonempty, fitting=False)
        return X.map_partitions(_encoded, meta=like, **call)
    X = X.rechunk({1: -1})
    if like.ndim == 1:
        return da.map_blocks(_encoded, X, dtype=like.dtype, meta=like, drop_axis=1, **call)
    return da.map_blocks(_encoded, X, dtype=like.dtype, meta=like, chunks=(X.chunks[0], (like.shape[1],)), **call)


def _encoded(rows: Any, encoder: Any, work: Callable[[Array], Array] | None, like: Array) -> Array:
    if not len(rows):
        return like
    with engine("serial"):
        return np.asarray(encoder.then(rows, work))
