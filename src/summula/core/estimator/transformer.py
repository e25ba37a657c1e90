"""Base class of transformers: public methods derived from a method that transforms a chunk of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from summula.core.data.chunks import Chunk
from summula.core.data.scan import Scan
from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.estimator.input.finiteness import has_bad_values, raise_if_not_finite
from summula.core.estimator.input.transformed_scan import TransformedScan
from summula.core.estimator.rows import ROWS, RowwiseEstimator

__all__ = ["Transformer"]

Array = NDArray[Any]


class Transformer(TransformerMixin, RowwiseEstimator):
    """Base class of estimators that transform rows.

    Subclasses implement `_write_rows`, `_n_outputs` if the number of columns changes, and `_transform_sparse` if they
    accept sparse matrices.
    """

    def _n_outputs(self) -> int:
        """Return the number of columns of the transformed rows."""
        return int(self.n_features_in_)

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        """Write the transformed rows of a chunk into `out`."""
        raise NotImplementedError

    def _transform_sparse(self, X: Any) -> Any:
        """Return the transformed rows of a CSR matrix."""
        raise NotImplementedError

    @inherit_docs(ROWS)
    def transform(self, X: Any) -> Any:
        """Transform rows.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_outputs); for a scan an iterator of such blocks, which estimators
        take as X; a Dask array, not yet computed, for a Dask collection
        """
        source = self._reading(X)
        if source.is_sparse:
            return self._transform_sparse(source.chunk(0, source.n_rows).X)
        return self._for_next_step(X, self._filled(self._write_rows, source))

    def _for_next_step(self, X: Any, rows: Any) -> Any:
        """Return transformed rows; those of files in a form that the next step of a pipeline can read repeatedly."""
        return TransformedScan(X, self, rows) if isinstance(X, Scan | TransformedScan) else rows

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then transform the same rows.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like, or name of a column of a scan, optional
            A named column is not a feature; it remains available to the next step of a pipeline.
        **fit_params : dict
            Passed to `fit`.

        Returns
        -------
        As from `transform`
        """
        if not isinstance(X, Scan) or not isinstance(y, str) or y not in X.columns:
            return super().fit_transform(X, y, **fit_params)
        self.fit(X.select([name for name in X.columns if name != y]), **fit_params)
        return self.transform(X)

    def _filled(self, write: Callable[[Chunk, Array], None], source: Source, out: Array | None = None) -> Any:
        """Fill `out` or a new array with the rows written by `write`; for files yield them block by block."""
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
