"""Scores over a parameter, or over the number of training rows.

    validation curve    training and test score of cross-validation for every value of a parameter
    learning curve      the same for growing numbers of training rows

The test score of a validation curve rises and falls with the flexibility of the model; the training score only rises.
The one-standard-error rule selects the simplest value with   score >= best score - its standard error           (1)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import learning_curve as _learning_curve
from sklearn.model_selection import validation_curve as _refit_each_value

from summula import plotting
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.splits import splits_of
from summula.model_selection.cross_validation import Options, may_merge, scores_from_groups
from summula.model_selection.row_selection import check_rows_in_memory, indexable
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

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]

    @property
    def best_index(self) -> int:
        """Index of the best mean test score; ties go to the first. Values with failed fits (NaN) are ignored."""
        mean = self.test_scores.mean(axis=1)
        if np.isnan(mean).all():
            raise DataError(
                f"No value of {self.param_name!r} has a test score on every split: all fits failed, or the score is "
                "undefined for the splits; pass error_score='raise' for the error."
            )
        return int(np.nanargmax(mean))

    @property
    def best(self) -> Any:
        """Value of the parameter with the best mean test score."""
        return self.param_range[self.best_index]

    def one_standard_error(self, simplest: str = "first") -> Any:
        """Return the simplest value within one standard error of the best (1).

        Parameters
        ----------
        simplest : {"first", "last"}, default="first"
            The end of `param_range` with the simplest model: "last" for increasing numbers of neighbours.

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
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    param_name: str,
    param_range: Any,
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    error_score: Any = np.nan,
    params: dict[str, Any] | None = None,
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
    groups : array-like of shape (n_samples,), optional
        Group of each row, for splitters that use it.
    cv : int, splitter or iterable, optional
        As in `cross_validate`; all values are scored on the same splits.
    scoring : str or callable, optional
        One scorer; by default the estimator's `score`.
    n_jobs, pre_dispatch, verbose, error_score, params
        As in `cross_validate`.

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
        raise ParameterError("param_range is empty: pass the values of the parameter.")
    if isinstance(scoring, list | tuple | set | dict):
        raise ParameterError("A validation curve has one score: pass scoring as a name or a callable.")
    check_rows_in_memory(X, y)
    options: dict[str, Any] = {
        "groups": groups, "scoring": scoring, "n_jobs": n_jobs, "pre_dispatch": pre_dispatch, "verbose": verbose,
        "error_score": error_score, "params": params,
    }  # fmt: skip
    if not may_merge(estimator, params):
        scores = _refit_each_value(estimator, X, y, param_name=param_name, param_range=values, cv=cv, **options)
        return ValidationCurve(param_name, values, *scores)
    X, y = indexable(X), None if y is None else indexable(y, "y")
    options["cv"] = list(splits_of(cv, X, y, classifier=is_classifier(estimator), groups=groups))
    train, test = [], []
    for value in values:
        model = clone(estimator).set_params(**{param_name: value})
        found = scores_from_groups(model, X, y, options["cv"], params or {}, Options(scoring, True, False, False))
        if found is None:
            scores = _refit_each_value(estimator, X, y, param_name=param_name, param_range=[value], **options)
            found = {"train_score": scores[0][0], "test_score": scores[1][0]}
        train.append(found["train_score"])
        test.append(found["test_score"])
    return ValidationCurve(param_name, values, np.array(train), np.array(test))


@dataclass(frozen=True)
class LearningCurve:
    """Scores for growing numbers of training rows; unpacks into `train_sizes, train_scores, test_scores`.

    With `return_times=True` it unpacks into these and `fit_times, score_times`.

    Attributes
    ----------
    train_sizes : ndarray of shape (n_sizes,)
    train_scores, test_scores : ndarray of shape (n_sizes, n_splits)
    fit_times, score_times : ndarray of shape (n_sizes, n_splits), or None
        Seconds, if requested.
    """

    train_sizes: NDArray[np.int64]
    train_scores: Array
    test_scores: Array
    fit_times: Array | None = None
    score_times: Array | None = None

    def __iter__(self) -> Iterator[Any]:
        scores = (self.train_sizes, self.train_scores, self.test_scores)
        return iter(scores if self.fit_times is None else (*scores, self.fit_times, self.score_times))

    def __len__(self) -> int:
        return 3 if self.fit_times is None else 5

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]

    @inherit_docs(AXES)
    def plot(self, ax: Any = None) -> Any:
        """Draw mean scores with bands of one standard deviation over the folds."""
        return plotting.learning_curve(self.train_sizes, self.train_scores, self.test_scores, ax=ax)


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    train_sizes: Any = (0.1, 0.325, 0.55, 0.775, 1.0),
    cv: Any = None,
    scoring: Any = None,
    exploit_incremental_learning: bool = False,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    shuffle: bool = False,
    random_state: Any = None,
    error_score: Any = np.nan,
    return_times: bool = False,
    params: dict[str, Any] | None = None,
) -> LearningCurve:
    """Compute training and test scores for growing numbers of training rows.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    y : array-like, optional
    groups, cv, scoring, n_jobs, pre_dispatch, verbose, error_score, params
        As in `validation_curve`.
    train_sizes : array-like, default=(0.1, 0.325, 0.55, 0.775, 1.0)
        Numbers of training rows, or shares of the largest possible number.
    exploit_incremental_learning : bool, default=False
        Whether to add the rows of each size to the model of the size before, by `partial_fit`.
    shuffle : bool, default=False
        Whether to shuffle the training rows before the leading ones are taken.
    random_state : int, RandomState or None
        Seed of the shuffle.
    return_times : bool, default=False
        Whether to return the times of fits and scores.

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
    check_rows_in_memory(X, y)
    found = _learning_curve(
        estimator, X, y, groups=groups, train_sizes=train_sizes, cv=cv, scoring=scoring,
        exploit_incremental_learning=exploit_incremental_learning, n_jobs=n_jobs, pre_dispatch=pre_dispatch,
        verbose=verbose, shuffle=shuffle, random_state=random_state, error_score=error_score,
        return_times=return_times, params=params,
    )  # fmt: skip
    return LearningCurve(*found)
