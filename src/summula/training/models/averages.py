"""Weighted averages of the predictions of several models, each with its range of columns.

    P(class k | x) = sum over m of w_m P_m(class k | x_m),        f(x) = sum over m of w_m f_m(x_m)               (1)

with weights w_m > 0 that sum to 1, and x_m the columns from `starts[m]` up to `stops[m]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.estimator import Estimator
from summula.core.model_files import schema
from summula.training.models.base import ArrayClassifier, ArrayModel, rows_as_array

__all__ = ["AveragedClassifier", "AveragedRegressor"]

Array = NDArray[Any]


def _members_agree(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: each member has a weight and a range of columns that it accepts."""
    if not model.__sklearn_is_fitted__():
        return None
    fault = _fault(model.models, model.weights, model.starts, model.stops)
    if fault is not None:
        return fault
    for member, start, stop in zip(model.models, model.starts, model.stops, strict=True):
        if member.n_features_in_ != stop - start:
            return f"a model takes {member.n_features_in_} columns, but is given {stop - start}"
        if hasattr(member, "factor_levels_") and member.factor_levels_:
            return "a model has text columns, but rows are numbers"
        if hasattr(member, "category_levels_") and member.category_levels_:
            return "a model has text columns, but rows are numbers"
    return None


def _classes_agree(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: all members are classifiers with probabilities of the same classes."""
    for member in model.models:
        if not hasattr(member, "predict_proba"):
            return "a model has no probabilities"
        own = getattr(member, "classes_", None)
        first = getattr(model.models[0], "classes_", None)
        if own is not None and not (first is not None and np.array_equal(own, first)):
            return "models are not of the same classes"
    return None


def _no_classes(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: no member is a classifier."""
    return "a model predicts classes" if any(hasattr(one, "classes_") for one in model.models) else None


def _fault(models: Sequence[Any], weights: Sequence[float], starts: Sequence[int], stops: Sequence[int]) -> str | None:
    n = len(models)
    if not n or not n == len(weights) == len(starts) == len(stops):
        return f"there are {n} models for {len(weights)} weights and {len(starts)} ranges of columns"
    if min(weights) <= 0.0 or abs(sum(weights) - 1.0) > 1e-9:
        return "weights have to be positive and add up to 1"
    if any(not 0 <= start < stop for start, stop in zip(starts, stops, strict=True)):
        return "a range of columns is empty"
    return None


# All state is in the parameters.
_FIELDS: dict[str, schema.Field] = {
    "models": schema.Items(schema.Object(Estimator), low=1),
    "weights": schema.Items(schema.Real(0.0, 1.0), low=1),
    "starts": schema.Items(schema.Integer(0), low=1),
    "stops": schema.Items(schema.Integer(1), low=1),
}


@inherit_docs()
class _Average(ArrayModel):
    """Base class of averages of classifiers and regressors.

    Parameters
    ----------
    weights : list of float
        Positive, with sum 1.
    starts, stops : list of int
        Range of columns of each model.
    """

    def __init__(
        self, models: Sequence[Any], weights: Sequence[float], starts: Sequence[int], stops: Sequence[int]
    ) -> None:
        self.models = models
        self.weights = weights
        self.starts = starts
        self.stops = stops

    def fit(self, X: Any, y: Any) -> Self:
        """Fit clones of all models, each to its columns."""
        if (fault := _fault(self.models, self.weights, self.starts, self.stops)) is not None:
            raise ParameterError(f"{type(self).__name__} cannot be fitted: {fault}.")
        X = rows_as_array(self, X)
        ranges = zip(self.models, self.starts, self.stops, strict=True)
        self.models = [clone(one).fit(X[:, start:stop], y) for one, start, stop in ranges]
        return self

    @property
    def n_features_in_(self) -> int:
        """Minimum number of columns."""
        return max(self.stops)

    def _averaged(self, X: Any, method: str) -> Array:
        """Equation (1)."""
        check_is_fitted(self)
        X = rows_as_array(self, X)
        total: Any = 0.0
        for member, weight, start, stop in zip(self.models, self.weights, self.starts, self.stops, strict=True):
            rows = np.ascontiguousarray(X[:, start:stop])
            total = total + weight * np.asarray(getattr(member, method)(rows), np.float64)
        return np.asarray(total)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            for one in self.models:
                check_is_fitted(one)
        except ValueError:
            return False
        return True


@inherit_docs()
@schema.saved(_members_agree, _classes_agree, **_FIELDS)
class AveragedClassifier(ArrayClassifier, _Average):
    """The weighted average of the probabilities of several classifiers.

    Parameters
    ----------
    models : list of classifiers
        Classifiers with `predict_proba`, fitted to the same classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.linear_model import LogisticRegression
    >>> from summula.naive_bayes import GaussianNB
    >>> from summula.training.models import AveragedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> both = AveragedClassifier([LogisticRegression(), GaussianNB()], [0.75, 0.25], [0, 0], [4, 4]).fit(X, y)
    >>> both.predict(X[:2])
    array([0, 0])
    """

    @property
    def classes_(self) -> Any:
        """The classes of all models."""
        return self.models[0].classes_

    def predict_proba(self, X: Any) -> Array:
        """Predict the probability of each class, by (1)."""
        return self._averaged(X, "predict_proba")


@inherit_docs()
@schema.saved(_members_agree, _no_classes, **_FIELDS)
class AveragedRegressor(RegressorMixin, _Average):
    """The weighted average of the predictions of several regressors.

    Parameters
    ----------
    models : list of regressors

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import LinearRegression, Ridge
    >>> from summula.training.models import AveragedRegressor
    >>> X = np.arange(8.0).reshape(4, 2) ** 2
    >>> both = AveragedRegressor([LinearRegression(), Ridge()], [0.5, 0.5], [0, 1], [2, 2]).fit(X, X[:, 1])
    >>> both.predict(X).shape
    (4,)
    """

    def predict(self, X: Any) -> Array:
        """Predict the target, by (1)."""
        return self._averaged(X, "predict")
