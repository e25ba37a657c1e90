"""What models with a linear prediction share: X v + b for every row, in memory, batch by batch, or into a file."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.chunks import Chunk
from summula.core.estimator import Estimator
from summula.core.output import write_batches
from summula.core.scoring import R2Score, RowFunction
from summula.core.validation import collection_reader

__all__ = ["LinearPredictor", "linear_values"]

Array = NDArray[Any]


def linear_values(coef: Array, intercept: Any, chunk: Chunk) -> Array:
    """The linear function of every row of a chunk."""
    return np.asarray(chunk.X @ coef + intercept)


class LinearPredictor(R2Score, Estimator):
    """Prediction by `coef_` and `intercept_`."""

    coef_: Any
    intercept_: Any

    def _named_targets(self) -> tuple[str, ...] | None:
        """What the targets are called; None when they have no names."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Rows to predict for.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); an iterator of such batches for a scan; a Dask array,
        not yet computed, for a Dask collection
        """
        source = self._reading(X)
        return self._map_rows(self._row_function(), source)

    def _row_function(self) -> RowFunction:
        return functools.partial(linear_values, np.asarray(self.coef_).T, self.intercept_)

    def predict_to(self, X: Any, path: str | os.PathLike[str]) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : scan, or anything `predict` takes
        path : path
            Ends in .parquet or .csv. Columns are called after the targets ("prediction" when they have no names).

        Returns
        -------
        int
            Rows written.
        """
        t = 1 if np.ndim(self.coef_) == 1 else len(self.coef_)
        default = ("prediction",) if t == 1 else tuple(f"prediction{j}" for j in range(t))
        batches = self.predict(X)
        if (reader := collection_reader(batches)) is not None:
            batches = reader.batches(batches)
        return write_batches(
            [batches] if isinstance(batches, np.ndarray) else batches, self._named_targets() or default, path
        )
