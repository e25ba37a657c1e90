"""Base class of transformers: everything that follows from writing the transformed rows of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source
from summula.core.estimator.rows import RowwiseEstimator
from summula.core.estimator.validation import has_bad_values, raise_if_not_finite

__all__ = ["Transformer"]

Array = NDArray[Any]


class Transformer(TransformerMixin, RowwiseEstimator):
    """Rows turned into other rows.

    An author writes `_write_rows`, a method of a chunk, says how wide the result is, and, if sparse matrices are
    accepted, what becomes of one.
    """

    def _n_outputs(self) -> int:
        """How many columns the transformed rows have."""
        return int(self.n_features_in_)

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        """Write the transformed rows of a chunk into `out`."""
        raise NotImplementedError

    def _transform_sparse(self, X: Any) -> Any:
        """The transformed rows of a CSR matrix."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """Transform rows.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_outputs); an iterator of such blocks for a scan; a Dask array, not
        yet computed, for a Dask collection
        """
        source = self._reading(X)
        if source.is_sparse:
            return self._transform_sparse(source.chunk(0, source.n_rows).X)
        return self._filled(self._write_rows, source)

    def _filled(self, write: Callable[[Chunk, Array], None], source: Source, out: Array | None = None) -> Any:
        """What a function writes for every row: into `out` or a new array, or block by block for files."""
        is_refused = np.isinf if self._allows_nan else _not_finite

        def fill(chunk: Chunk, rows: Array) -> None:
            write(chunk, rows)
            if is_refused(rows).any() and has_bad_values(chunk, allow_nan=self._allows_nan):
                raise_if_not_finite(source, type(self).__name__, allow_nan=self._allows_nan)

        if source.streams:
            return self._fill_batches(fill, source, self._n_outputs())
        rows = np.empty((source.n_rows, self._n_outputs()), source.dtype) if out is None else out
        return self._fill_rows(fill, source, rows)


def _not_finite(block: Array) -> Array:
    return ~np.isfinite(block)
