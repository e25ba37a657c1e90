"""What models with a linear prediction share: X v + b for every row of a chunk."""

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
    """The linear function of every row of a chunk."""
    return np.asarray(chunk.times(coef) + intercept)


def dense(coef: Any) -> Array:
    """Coefficients as an array."""
    return np.asarray(coef.toarray() if sparse.issparse(coef) else coef)


def one_row_one_target(model: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: coefficients without a second dimension are those of one target."""
    if len(model.coef_.shape) == 1 and sizes.get("n_targets", 1) != 1:
        return f"coef_ is that of one target, and there are {sizes['n_targets']}"
    return None


class LinearScores(RowwiseEstimator):
    """Functions of linear scores, by `coef_` and `intercept_`."""

    coef_: Any
    intercept_: Any

    def _score_function(self) -> RowFunction:
        """What gives the scores (n, K) of a chunk: with a copy of the coefficients, not of the estimator."""
        return functools.partial(linear_values, *self._linear())

    def _linear(self) -> tuple[Array, Array]:
        """Slopes (d, K) and intercepts in the numbers of the fit: float32 rows keep the digits of a float64 model."""
        return np.atleast_2d(dense(self.coef_)).T, np.atleast_1d(self.intercept_)


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


class LinearPredictor(Regressor):
    """Prediction by `coef_` and `intercept_`."""

    coef_: Any
    intercept_: Any

    def _row_function(self) -> RowFunction:
        return functools.partial(linear_values, np.asarray(self.coef_).T, self.intercept_)

    def _n_outputs(self) -> int:
        return 1 if np.ndim(self.coef_) == 1 else len(self.coef_)
