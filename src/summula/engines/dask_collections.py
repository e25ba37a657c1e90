"""Dask arrays and dataframes as input: `LinearRegression().fit(X, y)` with Dask collections, and lazy `predict(X)`.

The rows are split on the same grid as those of an array; unknown lengths of blocks (dataframes, filtered arrays) are
first counted in one pass. So the sums are bit-identical to those of the array.

The parts are computed where the blocks are: on the cluster of `summula.engine(client)` or of Dask's current client, or
in the threads of this process if there is none.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.frames import opened, pop_columns
from summula.core.data.sources import MemorySource
from summula.core.engine.engine import Engine, chosen_engine, current_engine, engine, local_engine
from summula.core.errors import DataError
from summula.core.estimator.input import validation
from summula.core.estimator.input.given import Given
from summula.core.estimator.input.scan_columns import is_list_of_names
from summula.engines.dask_blocks import Blocks, Elsewhere, Recipe, Size, Values, active_client, measure
from summula.engines.dask_holdings import Holdings

__all__ = ["DaskSource", "batches", "collection_source", "lazily"]

Array = NDArray[Any]

_MOST_STEPS = 8  # maximum number of grid steps per part


class DaskSource(Elsewhere):
    """Dask collections of features, targets and weights."""

    def __init__(self, recipe: Recipe, columns: Sequence[Blocks | Values], where: Engine) -> None:
        super().__init__(recipe, 0, float(recipe.n_features))
        assert isinstance(columns[0], Blocks)
        self.columns, self._features = list(columns), columns[0]
        self._where = where
        self._holdings: Holdings | None = None

    def count(self) -> None:
        """Count the rows if their number is unknown, and the stored values of sparse blocks."""
        for j, column in enumerate(self.columns):
            if isinstance(column, Blocks) and not (column.counted and (j or not self.is_sparse)):
                column.count(sizes := self._sizes(j))
                if not j and self.is_sparse:
                    self._width = sum(size.stored for size in sizes) / max(column.n_rows, 1)
        self.n_rows = self._features.n_rows

    def _sizes(self, j: int) -> list[Size]:
        measured = getattr(self._where, "measured", None)
        if measured is not None:
            return list(measured(self, j))
        column = self.columns[j]
        assert isinstance(column, Blocks)
        narrow = column.narrow()
        return list(local_engine().map_ordered(functools.partial(_size, narrow), range(len(narrow.keys))))

    def n_blocks(self, j: int) -> int:
        """Return the number of blocks of column j."""
        column = self.columns[j]
        return len(column.keys) if isinstance(column, Blocks) else 0

    def engine(self) -> Engine:
        """Return the engine of the cluster that has the blocks, or the current engine."""
        return self._where

    def holdings(self, where: Any) -> Holdings:
        """Return the futures of these rows on the cluster of an engine."""
        if self._holdings is None or self._holdings.client is not where.client:
            self._holdings = Holdings(where.client, self.columns, self.recipe, where.retries)
        # A sparse value is stored with its column index.
        n_more = self.n_targets + self.weighted + self.labelled + self.shifted
        self._holdings.row_bytes = (12 if self.is_sparse else 8) * self.width + 8 * n_more
        return self._holdings

    def elsewhere(self) -> Elsewhere:
        """Return the placeholder that is sent with a task instead of this source."""
        return Elsewhere(self.recipe, self.n_rows, self.width)

    def release(self) -> None:
        """Release the blocks on the cluster, and those cached in this process."""
        if self._holdings is not None:
            self._holdings.clear()
        for column in self.columns:
            column.forget()

    def reopened(self) -> DaskSource:
        """Return the same collections, computed by the cluster that is in use now."""
        copied = copy.copy(self)
        copied._where, copied._holdings = _engine(), None
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_where": None, "_holdings": None}  # clusters are not pickled

    def _lines(self, step: int) -> list[int]:
        """Return the starts of parts: on the grid, and if possible at the first grid line in a block."""
        lines = [0]
        for start in self._features.offsets[1:]:
            line = min(-(-start // step) * step, self.n_rows)
            while line - lines[-1] > _MOST_STEPS * step:
                lines.append(lines[-1] + _MOST_STEPS * step)
            if lines[-1] < line < self.n_rows:
                lines.append(line)
        return lines

    def only(self, start: int, stop: int) -> MemorySource:
        """Return these rows in memory."""
        return self.recipe.make(start, stop, [column.read(start, stop) for column in self.columns])

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` up to `stop`, fetched from the cluster if necessary."""
        fetch = getattr(self._where, "fetch", None)
        rows: MemorySource = self.only(start, stop) if fetch is None else fetch(self, start, stop)
        return rows.chunk(start, stop)

    def chunks(self, start: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        """Iterate over the chunks of rows from `start` up to `stop`, computed in this thread."""
        return self.only(start, stop).chunks(start, stop, chunk_rows)


def _size(blocks: Blocks, k: int) -> Size:
    return measure(blocks.compute(k))


def _engine() -> Engine:
    """Return the selected engine, else the cluster of Dask's current client, else threads."""
    client = active_client()
    if chosen_engine() is not None or client is None:
        return current_engine()
    from summula.engines.dask import DaskEngine

    return DaskEngine(client)


# --------------------------------------------------------------------------------------------------- input validation


def collection_source(given: Given) -> DaskSource:
    """Validate Dask collections and return them as a source; labels and categories are codes already."""
    estimator, X, y, sample_weight, offset = given[:5]
    name, labelled = type(estimator).__name__, given.labels is not None
    X = _table(X, name)
    if y is None and given.needs_y:
        raise DataError(f"{name} requires y to be passed, but the target y is None.")
    target, weight = _target(y, name), _weight(sample_weight, name)
    taken = [*target.named, *weight.named, *([] if offset is None else [offset])]
    if taken and not _is_frame(X):
        what = f"y={y!r}" if target.named else f"sample_weight={sample_weight!r}"
        raise DataError(f"{what} is a column name, but X is a Dask array without names: pass a frame or the values.")
    example = _example(X, name)
    example = pop_columns(example, taken)[0] if taken else example
    rows = validation.feature_rows(estimator, example, reset=given.reset, accept_sparse=given.accept_sparse)
    recipe = Recipe(
        estimator=name,
        n_features=len(rows) if isinstance(rows, tuple) else int(rows.shape[1]),
        n_targets=0 if labelled else target.n,
        one_target=target.one,
        names=validation.feature_names(estimator),
        target_names=target.names,
        dtype=validation.dtype_of(rows),
        is_sparse=hasattr(rows, "indptr"),
        weighted=sample_weight is not None,
        targets=target.named,
        weight=weight.named[0] if weight.named else None,
        offset=offset,
        labelled=labelled,
    )
    columns = [column for column in (Blocks(X), target.column, weight.column) if column is not None]
    source = DaskSource(recipe, columns, _engine())
    try:
        source.count()
        _check_lengths(source, target.column, weight.column, name)
    except BaseException:
        source.release()
        raise
    return source


class _Given(NamedTuple):
    """Targets or weights: named columns of X, or a separate column."""

    named: tuple[str, ...] = ()
    column: Blocks | Values | None = None
    n: int = 0
    one: bool = True
    names: tuple[str, ...] | None = None


def _target(y: Any, name: str) -> _Given:
    if y is None:
        return _Given()
    if isinstance(y, str):
        return _Given((y,), None, 1, True, (y,))
    if is_list_of_names(y):
        return _Given(tuple(y), None, len(y), False, tuple(y))
    if not _is_collection(y):
        values = validation.as_targets(y, np.shape(y)[0] if np.ndim(y) else 0, name)
        width = 1 if values.ndim == 1 else values.shape[1]
        return _Given((), Values(values), width, values.ndim == 1, validation.names_of(y))
    y = _one_column_chunk(y)
    if y.ndim not in (1, 2):
        raise DataError(f"y should be a 1d array, or 2d for several targets; got {y.ndim} dimensions.")
    return _Given((), Blocks(y), 1 if y.ndim == 1 else int(y.shape[1]), y.ndim == 1, _names(y))


def _names(y: Any) -> tuple[str, ...] | None:
    """Return the column names of a frame or the name of a series."""
    if not _is_frame(y):
        return None
    if y.ndim == 2:
        return tuple(str(column) for column in y.columns)
    return (y.name,) if isinstance(y.name, str) else None


def _weight(weight: Any, name: str) -> _Given:
    if weight is None:
        return _Given()
    if isinstance(weight, str):
        return _Given((weight,))
    if not _is_collection(weight):
        one = np.ndim(weight) == 0
        values = validation.as_weights(weight, 1 if one else np.shape(weight)[0], name)
        return _Given((), Values(np.asarray(values), repeated=one))
    if weight.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar; sample_weight has {weight.ndim} dimensions.")
    return _Given((), Blocks(weight))


def _check_lengths(source: DaskSource, target: Any, weight: Any, name: str) -> None:
    n = source.n_rows
    if not n:
        raise DataError(f"The collection has no rows; {name} needs at least one.")
    if target is not None and target.n_rows != n:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {n} rows and y has {target.n_rows}; "
            "y must have one value per row."
        )
    if weight is not None and weight.n_rows not in (n, None):
        raise DataError(f"sample_weight.shape == {(weight.n_rows,)}, expected {(n,)}: one weight per row of X.")


def _is_collection(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "dask"


def _is_frame(collection: Any) -> bool:
    return hasattr(collection, "npartitions") and not hasattr(collection, "chunks")


def _one_column_chunk(collection: Any) -> Any:
    """Return the collection in blocks that have all columns."""
    if _is_frame(collection) or collection.ndim != 2 or collection.numblocks[1] == 1:
        return collection
    return collection.rechunk({1: -1}, method="tasks")


def _table(X: Any, name: str) -> Any:
    """Return a two-dimensional Dask array or frame in blocks of complete rows."""
    if not type(X).__module__.startswith(("dask.array", "dask.dataframe")) or X.ndim != 2:
        raise DataError(
            f"X is a Dask {type(X).__name__}; {name} needs a two-dimensional array (Reshape your data with X[:, None] "
            "if it has a single feature) or a dataframe."
        )
    if not _is_frame(X) and np.isnan(X.shape[1]):
        raise DataError(f"The Dask array X has an unknown number of columns; {name} needs to know it.")
    return _one_column_chunk(X)


def _example(X: Any, name: str, levels: Mapping[str, Any] | None = None) -> Any:
    """Return an example row or two, to check types and names; `levels` are those of categorical columns."""
    levels = levels or {}
    if not _is_frame(X):
        if hasattr(X._meta, "indptr"):
            from scipy import sparse

            return sparse.csr_array(np.ones((1, X.shape[1])), dtype=X.dtype)
        return np.ones((1, int(X.shape[1])), X.dtype)
    from dask.dataframe.dispatch import meta_nonempty

    for column, dtype in opened(X._meta).schema.items():
        if str(dtype).startswith(("String", "Categorical", "Enum")) and column not in levels:
            raise DataError(
                f"Column {column!r} contains text; {name} needs numbers: "
                "encode the column (for example with OneHotEncoder) or drop it."
            )
    example = meta_nonempty(X._meta)
    for column in example.columns[example.dtypes == "object"]:
        example[column] = 1.0  # may be numbers, which is checked when the blocks are read
    for column in levels:
        if column in example.columns:
            example[column] = levels[column][0]
    return example


# ------------------------------------------------------------------------------------------------------- predictions


def lazily(model: Any, method: str, X: Any, *args: Any, **options: Any) -> Any:
    """Return the results of a method for each block of X as a lazy Dask array."""
    import dask.array as da
    from dask.delayed import delayed

    X = model._drop_non_features(_table(X, type(model).__name__), ())
    with engine("serial"):
        levels = getattr(model, "_example_levels", None) or getattr(model, "factor_levels_", {})
        example = getattr(model._example_model(), method)(_example(X, type(model).__name__, levels), *args, **options)
    if isinstance(example, list):
        raise DataError(f"{method} of several targets needs rows in memory: pass an array, or use predict.")
    like = example[:0]
    # A copy, so that refitting does not change the result; it is sent once, not with every block.
    kept = delayed(copy.copy(model), name=f"{type(model).__name__}-{uuid4().hex}")
    call: dict[str, Any] = {"model": kept, "method": method, "args": args, "options": options, "like": like}
    if _is_frame(X):
        return X.map_partitions(_of_partition, meta=like, **call)
    if like.ndim == 1:
        return da.map_blocks(_of_block, X, dtype=like.dtype, meta=like, drop_axis=1, **call)
    chunks = (X.chunks[0], (like.shape[1],))
    return da.map_blocks(_of_block, X, dtype=like.dtype, meta=like, chunks=chunks, **call)


def batches(collection: Any) -> Iterator[Any]:
    """Yield the blocks of a Dask array, computed in order, a few at a time."""
    blocks, where = Blocks(collection), _engine()
    computed = getattr(where, "computed", None)
    numbers = range(len(blocks.keys))
    values = local_engine().map_ordered(blocks.compute, numbers) if computed is None else computed(blocks)
    with closing(values):
        yield from (block for block in values if len(block))


def _of_partition(frame: Any, partition_info: Any = None, **call: Any) -> Any:
    return _apply(frame, partition_info["number"] if partition_info else None, **call)


def _of_block(block: Any, block_id: tuple[int, ...] | None = None, **call: Any) -> Any:
    return _apply(block, block_id[0] if block_id else None, **call)


def _apply(block: Any, number: int | None, model: Any, method: str, args: Any, options: Any, like: Any) -> Any:
    if not block.shape[0]:
        return like
    try:
        with engine("serial"):
            return getattr(model, method)(block, *args, **options)
    except DataError as error:
        raise DataError(f"{error} (Rows counted within block {number}.)") from None
