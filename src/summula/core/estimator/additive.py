"""Models whose fit is one sum: rows can be added to them and taken away, and models added to each other.

    sums of A and B together = sums of A + sums of B,          sums of A without B = sums of A - sums of B

so the model of the union, or of the difference, follows from the sums alone, to rounding. What the subtraction of
nearly everything, or columns that nearly depend on each other, cost in digits is counted and said.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.run import Run

__all__ = ["AdditiveEstimator", "combine"]

# Parameters that say how to compute, not what: models may differ in them and still be added.
_HINTS = {"copy", "copy_X", "max_iter", "max_time", "n_jobs", "random_state", "solver", "tol"}


class AdditiveEstimator(Estimator):
    """An estimator that keeps the sums of its rows."""

    _needs_y = True

    @abstractmethod
    def _kept_sums(self) -> Any:
        """The sums of all rows so far; None when they were not kept."""

    @abstractmethod
    def _sums_of(self, run: Run) -> Any:
        """The sums of the rows of a run, comparable with those kept."""

    @abstractmethod
    def _use_sums(self, sums: Any, weighted: bool) -> None:
        """Become the model of these sums."""

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those seen so far; the model becomes that of one fit to all of them, to rounding.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)  # type: ignore[no-any-return]
        before = self._sums_or_error("partial_fit")
        with self._fitting(X, y if self._needs_y else None, sample_weight, needs_y=self._needs_y, reset=False) as run:
            self._use_sums(before.merge(self._sums_of(run)), run.source.weighted)
        return self

    @with_callbacks
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows away that the model has seen; it becomes that of a fit to the others, to rounding.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were given to `fit` or `partial_fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        before = self._sums_or_error("forget")
        with self._fitting(X, y if self._needs_y else None, sample_weight, needs_y=self._needs_y, reset=False) as run:
            gone = self._sums_of(run)
            left = before.unmerge(gone)
            # (Columns are counted one by one where values may be missing; those of one may all be.)
            if np.min(left.count) < 0 or np.max(left.count) == 0 or np.max(left.weight) <= 0:
                raise DataError(
                    f"{type(self).__name__} has seen {np.max(before.count)} rows and cannot forget "
                    f"{np.max(gone.count)}: at least one has to stay."
                )
            self._use_sums(left, run.source.weighted)
        return self

    def merge(self, other: Any) -> Self:
        """Add the rows another model has seen; this one becomes the model of all of them, to rounding.

        Parameters
        ----------
        other : estimator of the same class
            Fitted with the same parameters on other rows of the same columns.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        _check_alike(self, other)
        sums = self._sums_or_error("merge").merge(self._translated(other))
        self._use_sums(sums, getattr(other, "_weighted", False))
        return self

    def _translated(self, other: Any) -> Any:
        """The sums of another model in the terms of this one."""
        return other._sums_or_error("merge")

    def _sums_or_error(self, what: str) -> Any:
        sums = self._kept_sums()
        if sums is None:
            raise ParameterError(
                f"{what} needs the sums of all pairs of columns, which {type(self).__name__} does not keep for "
                f"{self.n_features_in_} columns of such values; fit again on all rows, or on fewer columns."
            )
        return sums

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_") and hasattr(self, self._fitted_mark)

    _fitted_mark = "coef_"


def _check_alike(one: Any, other: Any) -> None:
    """Raise a sentence when two models are not of the same kind and columns."""
    if type(one) is not type(other):
        raise ParameterError(
            f"Only models of one class can be merged: {type(one).__name__} and {type(other).__name__}."
        )
    check_is_fitted(other)
    mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
    for name in mine.keys() - _HINTS:
        if not _same(mine[name], theirs[name]):
            raise ParameterError(
                f"Models to merge must have the same {name}: one has {mine[name]!r}, the other {theirs[name]!r}."
            )
    names, others = (list(getattr(m, "feature_names_in_", range(m.n_features_in_))) for m in (one, other))
    if names != others:
        raise DataError(f"Models to merge must have the same columns: one has {names}, the other {others}.")


def _same(one: Any, other: Any) -> bool:
    numbers = (int, float, list, tuple, np.ndarray)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return np.array_equal(one, other)
    return repr(one) == repr(other)


def combine(models: Iterable[Any]) -> Any:
    """One model from several, fitted on different rows: that of all their rows, to rounding.

    Parameters
    ----------
    models : iterable of fitted estimators
        Of one class, with the same parameters and columns; they are left as they are.

    Returns
    -------
    estimator

    Examples
    --------
    >>> import numpy as np, summula
    >>> from summula.linear_model import LinearRegression
    >>> X, y = np.arange(12.0).reshape(6, 2) ** 2, np.array([0.0, 1.0, 4.0, 2.0, 7.0, 5.0])
    >>> half, rest = LinearRegression().fit(X[:3], y[:3]), LinearRegression().fit(X[3:], y[3:])
    >>> whole = summula.combine([half, rest])
    >>> bool(np.allclose(whole.coef_, LinearRegression().fit(X, y).coef_))
    True
    """
    from summula.core.engine.engine import TreeSum

    if not isinstance(models, Iterable):
        raise ParameterError(f"combine takes a list of models, not one {type(models).__name__}.")
    models = list(models)
    if not models:
        raise ParameterError("The list of models is empty; combine needs at least one.")
    tree: TreeSum[Any] = TreeSum(lambda a, b: a.merge(b))
    for model in models:
        if not hasattr(model, "merge"):
            raise ParameterError(f"{type(model).__name__} is not a model whose fits add up.")
        check_is_fitted(model)
        tree.push(copy.deepcopy(model))
    return tree.result()
