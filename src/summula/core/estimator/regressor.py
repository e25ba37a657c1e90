"""Base class of regressors: public methods derived from the predictions for a chunk of rows."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, warn
from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.rows import ROWS, PredictionWriter, RowFunction, RowwiseEstimator
from summula.core.estimator.run import Run
from summula.core.estimator.scoring import r2

__all__ = ["Regressor", "check_one_target"]

Array = NDArray[Any]


class Regressor(RegressorMixin, PredictionWriter, RowwiseEstimator):
    """Base class of estimators that predict numbers.

    Subclasses implement `_predicted`, which takes a chunk. They may override `_row_function` to return a function that
    is smaller to pickle than the estimator.
    """

    def _predicted(self, chunk: Chunk) -> Array:
        """Return the predictions for the rows of a chunk, of shape (n,) or (n, n_targets)."""
        raise NotImplementedError

    def _row_function(self) -> RowFunction:
        """Return a picklable function that predicts the rows of a chunk."""
        return self._predicted

    @inherit_docs(ROWS)
    def predict(self, X: Any) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Rows to predict for.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); an iterator of such batches for a scan; a Dask array,
        not yet computed, for a Dask collection
        """
        check_fitted(self)
        return self._by_row(X, self._row_function())

    @inherit_docs(ROWS)
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R2: the proportion of the variance of y explained by the predictions.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or names of columns of X
            The true targets.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        float
            The mean over the targets.
        """
        return r2(self, X, y, sample_weight)

    def _n_outputs(self) -> int:
        """Return the number of targets."""
        return 1

    def _named_targets(self) -> tuple[str, ...] | None:
        """Return the names of the targets, or None if they have no names."""
        return None

    def _output_names(self) -> tuple[str, ...]:
        t = self._n_outputs()
        default = ("prediction",) if t == 1 else tuple(f"prediction{j}" for j in range(t))
        return self._named_targets() or default


def check_one_target(run: Run, y: Any) -> None:
    """Raise for several targets, and warn for a column vector; class labels are checked elsewhere."""
    name, source = type(run.estimator).__name__, run.source
    if run.estimator._labelled:
        return
    if source.n_targets != 1:
        raise DataError(f"y should be a 1d array: {name} has one target, not {source.n_targets}.")
    if not source.one_target and getattr(y, "ndim", 1) == 2:
        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
        )
