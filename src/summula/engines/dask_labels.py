"""Class labels of Dask collections as codes: classes are found in one pass, codes are computed block by block."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError
from summula.core.frames import no_such_column
from summula.core.labels import Labels, distinct, merged

__all__ = ["with_codes"]

Array = NDArray[Any]


def with_codes(X: Any, y: Any, labels: Labels) -> tuple[Any, Any]:
    """X and y with the labels (a collection, an array, a named column of X) replaced by codes, computed when needed."""
    if isinstance(y, str):
        if not hasattr(X, "columns") or y not in X.columns:
            columns = list(getattr(X, "columns", ()))
            raise DataError(no_such_column(y, columns) if columns else f"y={y!r} names a column, but X has none.")
        codes = _codes(X[y], labels)
        return X.assign(**{y: codes}), y
    if y is None:
        raise DataError(f"{labels.estimator} requires y to be passed, but the target y is None.")
    if type(y).__module__.partition(".")[0] != "dask":
        return X, labels.codes(y)
    return X, _codes(y, labels)


def _codes(y: Any, labels: Labels) -> Any:
    """The codes of a Dask array or series."""
    if y.ndim != 1 and not (y.ndim == 2 and y.shape[1] == 1):
        raise DataError(f"y should be a 1d array of labels; it has {y.ndim} dimensions.")
    if labels.classes is None:
        labels.learn(_distinct(y, labels.estimator))
    encode = functools.partial(_encode, labels)
    if hasattr(y, "npartitions") and not hasattr(y, "chunks"):
        return y.map_partitions(encode, meta=(y.name, "float64"))
    return y.map_blocks(encode, dtype=np.float64)


def _encode(labels: Labels, block: Any) -> Any:
    codes = labels.codes(np.asarray(block)) if len(block) else np.empty(0)
    if hasattr(block, "index"):
        return block.__class__(codes, index=block.index, name=block.name)
    return codes.reshape(np.shape(block))


def _distinct(y: Any, estimator: str) -> Array:
    """The different labels of all blocks."""
    import dask

    blocks = y.to_delayed()
    look = dask.delayed(functools.partial(_of_block, estimator), pure=False)
    found = [labels for labels in dask.compute(*(look(block) for block in np.ravel(blocks))) if labels is not None]
    if not found:
        raise DataError(f"The collection has no rows; {estimator} needs at least one.")
    return functools.reduce(merged, found)


def _of_block(estimator: str, block: Any) -> Array | None:
    values = np.ravel(np.asarray(block))
    return distinct(values, 0, estimator) if len(values) else None
