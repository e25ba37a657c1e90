"""Base classes of the models that only training runs use: rows are numeric arrays in memory."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_array

from summula.core.docstrings import inherit_docs
from summula.core.estimator.estimator import Estimator

__all__ = ["ArrayClassifier", "ArrayModel", "rows_as_array"]

Array = NDArray[Any]


def rows_as_array(model: Any, X: Any) -> Array:
    """Return rows as an array of double precision; sparse matrices and text raise scikit-learn's errors."""
    return np.asarray(check_array(X, dtype=np.float64, ensure_all_finite=False, estimator=model, input_name="X"))


class ArrayModel(Estimator):
    """Base class of models of arrays."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Columns without missing values.
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        raise NotImplementedError

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raise NotImplementedError


class ArrayClassifier(ClassifierMixin, ArrayModel):
    """Base class of classifiers with probabilities."""

    @inherit_docs(ArrayModel.predict)
    def predict_proba(self, X: Any) -> Array:
        """Predict the probability of each class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        raise NotImplementedError

    @inherit_docs(ArrayModel.predict)
    def predict(self, X: Any) -> Array:
        """Predict the most probable class."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(np.asarray(self.classes_)[likeliest])
