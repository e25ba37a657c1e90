"""Scores over a parameter, or over the number of training rows.

    validation curve    training and test score of cross-validation for every value of a parameter
    learning curve      the same for growing numbers of training rows

The test score of a validation curve rises and falls with the flexibility of the model, the training score only rises.
The one-standard-error rule chooses the simplest value with   score >= best score - its standard error           (1)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection import learning_curve as _learning_curve

from summula import plotting
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.model_selection.cross_validation import cross_validate
from summula.model_selection.row_selection import indexable
from summula.plotting.style import AXES

__all__ = ["LearningCurve", "ValidationCurve", "learning_curve", "validation_curve"]

Array = NDArray[np.float64]


def _standard_errors(scores: Array) -> Array:
    n = scores.shape[1]
    return np.asarray(scores.std(axis=1, ddof=1)) / math.sqrt(n) if n > 1 else np.zeros(len(scores))


@dataclass(frozen=True)
class ValidationCurve:
    """Scores for every value of a parameter; unpacks into `train_scores, test_scores`.

    Attributes
    ----------
    param_name : str
    param_range : list
    train_scores, test_scores : ndarray of shape (n_values, n_splits)
    """

    param_name: str
    param_range: list[Any]
    train_scores: Array
    test_scores: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.train_scores, self.test_scores))

    @property
    def best_index(self) -> int:
        """Place of the best mean test score; of equal ones the first."""
        return int(np.nanargmax(self.test_scores.mean(axis=1)))

    @property
    def best(self) -> Any:
        """Value of the parameter with the best mean test score."""
        return self.param_range[self.best_index]

    def one_standard_error(self, simplest: str = "first") -> Any:
        """Return the simplest value within one standard error of the best (1).

        Parameters
        ----------
        simplest : {"first", "last"}, default="first"
            Which end of `param_range` makes the simplest model: "last" for growing numbers of neighbours.

        Returns
        -------
        value of `param_range`
        """
        if simplest not in ("first", "last"):
            raise ParameterError(f"simplest must be 'first' or 'last'; got {simplest!r}.")
        mean = self.test_scores.mean(axis=1)
        near = np.flatnonzero(mean >= mean[self.best_index] - _standard_errors(self.test_scores)[self.best_index])
        return self.param_range[int(near[0] if simplest == "first" else near[-1])]

    @inherit_docs(AXES)
    def plot(self, ax: Any = None) -> Any:
        """Draw mean scores with bands of one standard deviation over the folds, and mark the best value."""
        numbers = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in self.param_range)
        places = list(self.param_range) if numbers else list(range(len(self.param_range)))
        best = places[self.best_index] if numbers else None
        scores = self.train_scores, self.test_scores
        ax = plotting.validation_curve(places, *scores, parameter=self.param_name, chosen=best, ax=ax)
        if not numbers:
            ax.set_xticks(places, [str(value) for value in self.param_range])
        return ax


def validation_curve(
    estimator: Any, X: Any, y: Any = None, *, param_name: str, param_range: Any, cv: Any = None, **options: Any
) -> ValidationCurve:
    """Compute training and test scores for every value of a parameter.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    y : array-like, optional
    param_name : str
        Name of the parameter, as in `set_params`.
    param_range : array-like
        Its values.
    cv : int, splitter or iterable, optional
        As in `cross_validate`; all values are scored on the same splits.
    **options
        `scoring` (one scorer), `groups`, `params`, `n_jobs` and `error_score` of `cross_validate`.

    Returns
    -------
    ValidationCurve
        Unpacks into `train_scores, test_scores`, as in scikit-learn; has `best`, `one_standard_error()` and `plot()`.

    Examples
    --------
    The number of neighbours of a classifier:

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from summula.model_selection import validation_curve
    >>> from summula.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), KNeighborsClassifier())
    >>> curve = validation_curve(
    ...     model, X, y, param_name="kneighborsclassifier__n_neighbors", param_range=[1, 5, 15, 45, 101]
    ... )
    >>> curve.best, curve.train_scores.mean(axis=1).round(2).tolist()
    (45, [1.0, 0.97, 0.97, 0.96, 0.75])
    """
    values = list(param_range)
    if not values:
        raise ParameterError("param_range is empty: give the values of the parameter.")
    X, y = indexable(X), None if y is None else indexable(y, "y")
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, options.get("groups")))
    results = []
    for value in values:
        model = clone(estimator).set_params(**{param_name: value})
        results.append(cross_validate(model, X, y, cv=splits, return_train_score=True, **options))
    if "test_score" not in results[0]:
        raise ParameterError("A validation curve has one score: give scoring as a name or a callable.")
    train, test = (np.array([one[name] for one in results]) for name in ("train_score", "test_score"))
    return ValidationCurve(param_name, values, train, test)


@dataclass(frozen=True)
class LearningCurve:
    """Scores for growing numbers of training rows; unpacks into `train_sizes, train_scores, test_scores`.

    Attributes
    ----------
    train_sizes : ndarray of shape (n_sizes,)
    train_scores, test_scores : ndarray of shape (n_sizes, n_splits)
    """

    train_sizes: NDArray[np.int64]
    train_scores: Array
    test_scores: Array

    def __iter__(self) -> Iterator[Any]:
        return iter((self.train_sizes, self.train_scores, self.test_scores))

    @inherit_docs(AXES)
    def plot(self, ax: Any = None) -> Any:
        """Draw mean scores with bands of one standard deviation over the folds."""
        return plotting.learning_curve(self.train_sizes, self.train_scores, self.test_scores, ax=ax)


def learning_curve(estimator: Any, X: Any, y: Any = None, **options: Any) -> LearningCurve:
    """Compute training and test scores for growing numbers of training rows.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    y : array-like, optional
    **options
        `train_sizes`, `cv`, `scoring`, `groups`, `shuffle`, `random_state`, `n_jobs` and others of
        `sklearn.model_selection.learning_curve`, except `return_times`.

    Returns
    -------
    LearningCurve
        Unpacks into `train_sizes, train_scores, test_scores`, as in scikit-learn; has `plot()`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.linear_model import LinearRegression
    >>> from summula.model_selection import learning_curve
    >>> sizes, train, test = learning_curve(LinearRegression(), *load_diabetes(return_X_y=True), train_sizes=[50, 350])
    >>> sizes.tolist(), bool(test.mean(axis=1)[1] > test.mean(axis=1)[0])
    ([50, 350], True)
    """
    if "return_times" in options:
        raise ParameterError("return_times is not supported: use sklearn.model_selection.learning_curve for times.")
    X, y = indexable(X), None if y is None else indexable(y, "y")
    return LearningCurve(*_learning_curve(estimator, X, y, **options))
