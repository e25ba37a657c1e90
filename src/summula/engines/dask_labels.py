"""Encoding of labels and categories of Dask collections: found in one pass, encoded block by block."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from summula.core.data.factors import Factors, several_kinds
from summula.core.data.frames import is_category, no_such_column, opened
from summula.core.data.labels import Labels, distinct, merged
from summula.core.errors import DataError
from summula.engines.dask_collections import batches

__all__ = ["with_codes", "with_factors"]

Array = NDArray[Any]


def with_codes(X: Any, y: Any, labels: Labels) -> tuple[Any, Any]:
    """Return X and y with labels (a collection, an array, or a named column of X) lazily replaced by codes."""
    if isinstance(y, str):
        if not hasattr(X, "columns") or y not in X.columns:
            columns = list(getattr(X, "columns", ()))
            raise DataError(no_such_column(y, columns) if columns else f"y={y!r} is a column name, but X has no names.")
        codes = _codes(X[y], labels)
        return X.assign(**{y: codes}), y
    if y is None:
        raise DataError(f"{labels.estimator} requires y to be passed, but the target y is None.")
    if type(y).__module__.partition(".")[0] != "dask":
        return X, labels.codes(y)
    return X, _codes(y, labels)


def with_factors(X: Any, factors: Factors, others: Sequence[Any]) -> Any:
    """Return a frame with its categorical columns, except `others`, encoded; levels are found in a first pass."""
    if not _is_series(X):
        return X
    for name, dtype in opened(X._meta).schema.items():
        if name in others or not is_category(dtype):
            continue
        if factors.learning:
            blocks = batches(X[name].map_partitions(_levels, name, factors.known(), meta=(name, "object")))
            called = str(dtype).startswith(("Categorical", "Enum"))  # else text, or objects of any kind
            factors.learn(name, _in_order(name, blocks, factors.estimator), called=called)
        known = factors.known()
        codes = X[name].map_partitions(_level_codes, name, known, meta=(name, "float64"))
        X = X.assign(**{name: codes})
    return X


def _levels(block: Any, name: str, factors: Factors) -> Any:
    """Return the distinct values of a partition as a series."""
    found = factors.distinct(name, _values(block)) if len(block) else []
    return pd.Series(found, dtype=object, name=name)


def _in_order(name: str, blocks: Iterable[Any], estimator: str) -> list[Any]:
    """Return the distinct values of all partitions, sorted."""
    try:
        return sorted({level for block in blocks for level in block})
    except TypeError:
        raise DataError(several_kinds(name, estimator)) from None


def _level_codes(block: Any, name: str, factors: Factors) -> Any:
    codes = factors.codes(name, _values(block)) if len(block) else np.empty(0)
    return pd.Series(codes, index=block.index, name=name)


def _values(block: Any) -> Any:
    return pa.array(block, from_pandas=True)


def _codes(y: Any, labels: Labels) -> Any:
    """Return the codes of a Dask array or series."""
    if y.ndim != 1 and not (y.ndim == 2 and y.shape[1] == 1):
        raise DataError(f"y should be a 1d array of labels; got {y.ndim} dimensions.")
    if labels.classes is None:
        labels.learn(_distinct(y, labels.estimator))
    encode = functools.partial(_encode, labels)
    if _is_series(y):
        return y.map_partitions(encode, meta=(y.name, "int32"))
    return y.map_blocks(encode, dtype=np.int32)


def _encode(labels: Labels, block: Any) -> Any:
    codes = labels.codes(np.asarray(block))
    if hasattr(block, "index"):
        return block.__class__(codes, index=block.index, name=block.name)
    return codes.reshape(np.shape(block))


def _distinct(y: Any, estimator: str) -> Array:
    """Return the distinct labels of all blocks, computed where the fit runs."""
    find = functools.partial(_of_block, estimator)
    if _is_series(y):
        found = y.map_partitions(find, meta=y._meta, enforce_metadata=False)
    else:
        y = y if y.ndim == 1 else y[:, 0]
        found = y.map_blocks(find, dtype=y.dtype, meta=y._meta, chunks=((np.nan,) * y.numblocks[0],))
    labels = list(batches(found))
    if not labels:
        raise DataError(f"The collection has no rows; {estimator} needs at least one.")
    return functools.reduce(merged, labels)


def _of_block(estimator: str, block: Any) -> Array:
    values = np.ravel(np.asarray(block))
    return distinct(values, 0, estimator) if len(values) else values


def _is_series(y: Any) -> bool:
    return hasattr(y, "npartitions") and not hasattr(y, "chunks")
