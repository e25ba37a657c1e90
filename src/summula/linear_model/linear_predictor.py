"""What models with a linear prediction share: X v + b for every row, in memory, batch by batch, or into a file."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from summula.core.data.blocks import product
from summula.core.data.chunks import Chunk
from summula.core.data.output import write_batches
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.scoring import R2Score, RowFunction
from summula.core.estimator.validation import collection_reader

__all__ = ["LinearPredictor", "LinearScores", "SparseCoefficients", "dense", "linear_values"]

Array = NDArray[Any]


def linear_values(coef: Array, intercept: Any, chunk: Chunk) -> Array:
    """The linear function of every row of a chunk."""
    if chunk.is_sparse:
        return np.asarray(chunk.X @ coef + intercept)
    return np.asarray(product(chunk.block(np.result_type(chunk.dtype, coef)), coef) + intercept)


def dense(coef: Any) -> Array:
    """Coefficients as an array."""
    return np.asarray(coef.toarray() if sparse.issparse(coef) else coef)


class LinearScores(Estimator):
    """Functions of linear scores, by `coef_` and `intercept_`."""

    coef_: Any
    intercept_: Any

    def predict_to(self, X: Any, path: str | os.PathLike[str], *, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : scan, or anything `predict` takes
        path : path
            Ends in .parquet or .csv. The column is called "prediction".
        raw_text : bool, default=False
            Whether to write text to CSV unchanged. By default text that a spreadsheet would take for a formula (it
            begins with =, +, -, @, a tab or a line break, and is no number) gets an apostrophe before it.

        Returns
        -------
        int
            Rows written.
        """
        return self._write(self.predict(X), ("prediction",), path, raw_text)

    def _scores(self, X: Any, finish: Callable[[Array], Array]) -> Any:
        """A function of the scores (n, K) of the rows, stacked or batch by batch."""
        source = self._reading(X)
        scores = self._map_rows(self._score_function(), source)
        return finish(scores) if isinstance(scores, np.ndarray) else (finish(batch) for batch in scores)

    def _score_function(self) -> RowFunction:
        """What gives the scores of a chunk; it can be sent to another process."""
        return functools.partial(linear_values, *self._linear())

    def _linear(self) -> tuple[Array, Array]:
        """Slopes (d, K) and intercepts in the numbers of the fit: float32 rows keep the digits of a float64 model."""
        return np.atleast_2d(dense(self.coef_)).T, np.atleast_1d(self.intercept_)

    def _write(self, results: Any, names: tuple[str, ...], path: str | os.PathLike[str], raw_text: bool) -> int:
        """Write what a prediction gave, batch by batch, and say how many rows there were."""
        if (reader := collection_reader(results)) is not None:
            results = reader.batches(results)
        batches = [results] if isinstance(results, np.ndarray) else results
        return write_batches(batches, names, path, raw_text=raw_text)


class SparseCoefficients:
    """scikit-learn's way to hold many zero coefficients in little memory."""

    coef_: Any

    def densify(self) -> Self:
        """Hold `coef_` as an array again.

        Returns
        -------
        self
        """
        check_is_fitted(self, msg="Estimator, %(name)s, must be fitted before densifying.")
        self.coef_ = dense(self.coef_)
        return self

    def sparsify(self) -> Self:
        """Hold `coef_` as a sparse matrix, which is smaller when more than half of it is zero.

        Returns
        -------
        self
        """
        check_is_fitted(self, msg="Estimator, %(name)s, must be fitted before sparsifying.")
        self.coef_ = sparse.csr_array(self.coef_)
        return self


class LinearPredictor(R2Score, LinearScores):
    """Prediction by `coef_` and `intercept_`."""

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

    def predict_to(self, X: Any, path: str | os.PathLike[str], *, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : scan, or anything `predict` takes
        path : path
            Ends in .parquet or .csv. Columns are called after the targets ("prediction" when they have no names).
        raw_text : bool, default=False
            Whether to write names to CSV unchanged. By default one that a spreadsheet would take for a formula (it
            begins with =, +, -, @, a tab or a line break, and is no number) gets an apostrophe before it.

        Returns
        -------
        int
            Rows written.
        """
        t = 1 if np.ndim(self.coef_) == 1 else len(self.coef_)
        default = ("prediction",) if t == 1 else tuple(f"prediction{j}" for j in range(t))
        return self._write(self.predict(X), self._named_targets() or default, path, raw_text)
