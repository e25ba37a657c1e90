"""Models whose fit is one sum: rows can be added to them and taken away, and models added to each other.

    sums of A and B together = sums of A + sums of B,          sums of A without B = sums of A - sums of B

so the model of the union, or of the difference, follows from the sums alone, to rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.labels import union_of_labels
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.classifier import Classifier, classes_of_parts
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import Grouped, regrouped
from summula.core.numerics.statistics import pilot_origins
from summula.core.numerics.sums import Sum

__all__ = ["SAVED_SUMS", "AdditiveClassifier", "AdditiveEstimator", "combine", "sums_by_class", "sums_by_class_rule"]

# Parameters that say how to compute, not what: models may differ in them and still be added.
_HINTS = {"copy", "copy_X", "max_iter", "max_time", "n_jobs", "random_state", "solver", "tol"}


# What these models save beside their results: `@schema.saved(sums_by_class_rule, **SAVED_SUMS, mean_=...)`.
SAVED_SUMS: dict[str, schema.Field] = {
    "n_features_in_": schema.Integer(1, size="n_features"),
    "_sums": schema.Object(Sum, n_features="n_features", n_groups="n_groups"),
    "_weighted": schema.Flag(),
    "_dtype": schema.Text("float64", "float32"),
}


def sums_by_class_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: the sums are by class where there are classes, and else of all rows together."""
    groups, classes = sizes.get("n_groups"), sizes.get("n_classes")
    if groups != classes:
        return f"_sums are those of {groups or 'no'} groups of rows, and there are {classes or 'no'} classes"
    return None


class AdditiveEstimator(Estimator):
    """An estimator that keeps the sums of its rows.

    An author names a `_statistic` and writes `_solve`; a fit that looks at the rows more than once overrides the hooks
    `_kept_sums`, `_sums_of` and `_use_sums` instead.
    """

    _needs_y = True
    _statistic: ClassVar[Any] = None  # what is summed over the rows about an origin near the mean of the features
    _weighted: bool  # whether any rows had weights

    def _solve(self, sums: Any) -> None:
        """Become the model of these sums."""
        raise NotImplementedError

    def _kept_sums(self) -> Any:
        """The sums of all rows so far; None when they were not kept."""
        return self._sums

    def _sums_of(self, run: Run) -> Any:
        """The sums of the rows of a run, comparable with those kept."""
        return run.sum(self._statistic, run.origin()[: run.source.n_features])

    def _use_sums(self, sums: Any, weighted: bool) -> None:
        """Keep these sums and become their model; `weighted` says whether the rows added last had weights."""
        self._sums, self._weighted = sums, self._weighted or weighted
        self._solve(sums)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            The target, where there is one.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Weights; a weight of 3 counts as the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, y if self._needs_y else None, sample_weight, needs_y=self._needs_y) as run:
            self._begin(run)
            self._use_sums(self._sums_of(run), run.source.weighted)
        return self

    def _begin(self, run: Run) -> None:
        """Note what the first rows are like."""
        self._weighted, self._dtype = False, run.source.dtype.name

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
            if np.min(left.count) < 0 or left.n_rows == 0 or np.max(left.weight) <= 0:
                raise DataError(
                    f"{type(self).__name__} has seen {before.n_rows} rows and cannot forget "
                    f"{gone.n_rows}: at least one has to stay."
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
        before = dict(vars(self))
        try:
            mine, theirs = self._paired(other)
            self._use_sums(mine.merge(theirs), bool(other._weighted))
        except BaseException:  # nothing is half-merged
            self._restore(before, {})
            raise
        return self

    def _paired(self, other: Any) -> tuple[Any, Any]:
        """The sums of both models in common terms."""
        return self._sums_or_error("merge"), other._sums_or_error("merge")

    def _sums_or_error(self, what: str) -> Any:
        sums = self._kept_sums()
        if sums is None:
            raise ParameterError(f"{what} needs {self._sums_not_kept()}; fit again on all rows, or on fewer columns.")
        return sums

    def _sums_not_kept(self) -> str:
        """Words for sums that were not kept."""
        return f"the sums of the rows seen so far, which {type(self).__name__} has not kept"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sums")


@schema.state(sums_by_class_rule, classes_=schema.Labels("n_classes"), **SAVED_SUMS)
class AdditiveClassifier(AdditiveEstimator, Classifier):
    """A classifier that keeps the sums of its rows by class: `_solve` gets `Grouped(self._statistic, n_classes)`."""

    _fewest_classes = 1  # others may come with more rows

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those seen so far; the model becomes that of one fit to all of them, to rounding.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
            Labels.
        classes : array-like of shape (n_classes,), optional
            All classes there will ever be; needed in the first call, and the same in later ones.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        known = classes_of_parts(self, classes, least=self._fewest_classes)
        before = None if first else self._sums_or_error("partial_fit")
        with self._fitting(X, y, sample_weight, reset=first, classes=known) as run:
            if first:
                self._begin(run)
            sums = self._sums_of(run)
            self._use_sums(sums if before is None else before.merge(sums), run.source.weighted)
        return self

    def _sums_of(self, run: Run) -> Any:
        return sums_by_class(run, self._statistic, len(self.classes_))

    def _paired(self, other: Any) -> tuple[Any, Any]:
        """The sums of both models for the classes of either."""
        mine, theirs = super()._paired(other)
        classes = union_of_labels(self.classes_, other.classes_)
        places = np.searchsorted(classes, self.classes_), np.searchsorted(classes, other.classes_)
        self.classes_ = classes
        return regrouped(mine, places[0], len(classes)), regrouped(theirs, places[1], len(classes))


def sums_by_class(run: Run, statistic: Any, n_classes: int) -> Any:
    """The statistic of every class, about origins near the means of the classes."""
    chunk = run.first_chunk()
    if hasattr(statistic, "map_groups"):  # sums are in double precision, whatever the rows are
        chunk = replace(chunk, dtype=np.dtype(np.float64))
    return run.sum(Grouped(statistic, n_classes), pilot_origins(chunk, n_classes))


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
