"""Linear predictions X v + b for the rows of a chunk."""

from __future__ import annotations

import functools
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowFunction, RowwiseEstimator
from summula.core.model_files import schema

__all__ = ["LinearPredictor", "LinearScores", "SparseCoefficients", "dense", "linear_values", "one_row_one_target"]

Array = NDArray[Any]


def linear_values(coef: Array, intercept: Any, chunk: Chunk) -> Array:
    """Return the linear function of the rows of a chunk."""
    return np.asarray(chunk.times(coef) + intercept)


def dense(coef: Any) -> Array:
    """Return coefficients as a dense array."""
    return np.asarray(coef.toarray() if sparse.issparse(coef) else coef)


def one_row_one_target(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: one-dimensional coefficients require a single target."""
    if len(model.coef_.shape) == 1 and sizes.get("n_targets", 1) != 1:
        return f"coef_ is one-dimensional, but there are {sizes['n_targets']} targets"
    return None


class LinearScores(RowwiseEstimator):
    """Base class of models with linear scores."""

    coef_: Any
    intercept_: Any

    def _score_function(self) -> RowFunction:
        """Return the function that computes the scores (n, K) of a chunk; it contains only the coefficients."""
        return functools.partial(linear_values, *self._linear())

    def _linear(self) -> tuple[Array, Array]:
        """Return slopes (d, K) and intercepts in the dtype of the fit, also for float32 rows."""
        slopes = np.atleast_2d(dense(self.coef_)).T
        return slopes, np.atleast_1d(self.intercept_).astype(slopes.dtype, copy=False)  # 0.0 without an intercept


class SparseCoefficients:
    """Mixin with scikit-learn's methods to store sparse coefficients."""

    coef_: Any

    def densify(self) -> Self:
        """Convert `coef_` to a dense array.

        Returns
        -------
        self
        """
        check_is_fitted(self, msg="Estimator, %(name)s, must be fitted before densifying.")
        self.coef_ = dense(self.coef_)
        return self

    def sparsify(self) -> Self:
        """Convert `coef_` to a sparse matrix, which is smaller if more than half of it is zero.

        Returns
        -------
        self
        """
        check_is_fitted(self, msg="Estimator, %(name)s, must be fitted before sparsifying.")
        self.coef_ = sparse.csr_array(self.coef_)
        return self


class LinearPredictor(Regressor):
    """Base class of linear regressors."""

    coef_: Any
    intercept_: Any

    def _row_function(self) -> RowFunction:
        return functools.partial(linear_values, np.asarray(self.coef_).T, self.intercept_)

    def _n_outputs(self) -> int:
        return 1 if np.ndim(self.coef_) == 1 else len(self.coef_)
