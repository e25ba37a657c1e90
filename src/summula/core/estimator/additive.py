"""Models whose fit is one sum: rows can be added and removed, and models merged.

    sums of A and B together = sums of A + sums of B,          sums of A without B = sums of A - sums of B

so the model of the union, or of the difference, is computed from the sums alone, up to rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.labels import union_of_labels
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.classifier import Classifier, classes_of_parts
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.input.finiteness import raise_if_overflowing, raise_if_underflowing
from summula.core.estimator.input.tracked_rows import RowHashes, label_keys, without_rows
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import Grouped, regrouped
from summula.core.numerics.origins import pilot_origins
from summula.core.numerics.subtraction import impossible
from summula.core.numerics.sums import Sum

__all__ = ["SAVED_SUMS", "AdditiveClassifier", "AdditiveEstimator", "combine", "sums_by_class", "sums_by_class_rule"]

# Parameters that affect how a model is computed but not the result: models that differ in them can be merged.
_HINTS = {"copy", "copy_X", "max_iter", "max_time", "n_jobs", "random_state", "solver", "tol"}


# Fields these models save in addition to their results: `@schema.saved(sums_by_class_rule, **SAVED_SUMS, mean_=...)`.
SAVED_SUMS: dict[str, schema.Field] = {
    "n_features_in_": schema.Integer(1, size="n_features"),
    "_sums": schema.Object(Sum, n_features="n_features", n_groups="n_groups"),
    "_weighted": schema.Flag(),
    "_dtype": schema.Text("float64", "float32"),
}


def sums_by_class_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: classifiers have one sum per class, other models one sum over all rows."""
    groups, classes = sizes.get("n_groups"), sizes.get("n_classes")
    if groups != classes:
        return f"_sums has {groups or 'no'} groups of rows, but there are {classes or 'no'} classes"
    return None


@schema.state(_row_hashes=schema.Maybe(schema.Array("uint64", "n_tracked_rows")))
class AdditiveEstimator(Estimator):
    """An estimator that stores the sums over its training rows.

    Subclasses define `_statistic` and implement `_solve`; those that need more than one pass over the rows override
    `_kept_sums`, `_sums_of` and `_use_sums` instead.
    """

    _needs_y = True
    _statistic: ClassVar[Any] = None  # statistic summed over the rows, about an origin near the mean of the features
    _weighted: bool  # whether sample weights were given for any rows
    _row_hashes: Any  # hashes of all rows, if they are tracked

    def _solve(self, sums: Any) -> None:
        """Set the fitted attributes from the sums."""
        raise NotImplementedError

    def _kept_sums(self) -> Any:
        """Return the sums over all rows so far, or None if they were not stored."""
        return self._sums

    def _sums_of(self, run: Run) -> Any:
        """Return the sums over the rows of a run, which can be merged with the stored ones."""
        return run.sum(self._statistic, run.origin()[: run.source.n_features])

    def _use_sums(self, sums: Any, weighted: bool) -> None:
        """Store the sums and set the fitted attributes; `weighted` is whether the rows just added had weights."""
        self._keep_sums(sums, weighted)
        self._solve(sums)

    def _keep_sums(self, sums: Any, weighted: bool) -> None:
        """Store the sums without solving for the fitted attributes, which `_use_sums` then does."""
        self._sums, self._weighted = sums, self._weighted or weighted

    def _add_sums(self, other: Any) -> None:
        """Add the sums of another model of the same class and parameters, without solving."""
        mine, theirs = self._paired(other)
        self._keep_sums(mine.merge(theirs), bool(other._weighted))

    def track_rows(self) -> Self:
        """Store a hash of every row from the next fit on, so that `forget` rejects rows that were not fitted.

        Hashes take 8 bytes per row and a pass over the rows; they are saved with the model, and lost by `clone`.

        Returns
        -------
        self

        Examples
        --------
        >>> from summula.linear_model import LinearRegression
        >>> model = LinearRegression().track_rows().fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
        >>> model.forget([[2.0]], [1.5])
        Traceback (most recent call last):
        ...
        summula.core.errors.DataError: LinearRegression was not fitted to 1 of these rows (the first is row 0), ...
        """
        if self.__sklearn_is_fitted__() and not hasattr(self, "_row_hashes"):
            raise ParameterError(
                f"This {type(self).__name__} is fitted to rows whose hashes are not known: call track_rows before fit."
            )
        if not hasattr(self, "_row_hashes"):
            self._row_hashes = np.empty(0, np.uint64)
        return self

    def _fitting(  # type: ignore[override]
        self, *rows: Any, reset: bool = True, removes: bool = False, **options: Any
    ) -> AbstractContextManager[Run]:
        """Validate, run the body, and leave a complete model or the previous state; see `Estimator`.

        If rows are tracked, their hashes are added, or with `removes` removed, after checking that they are present.
        """
        fitting = super()._fitting(*rows, reset=reset, **options)
        return self._tracking(fitting, reset, removes) if hasattr(self, "_row_hashes") else fitting

    @contextmanager
    def _tracking(self, fitting: AbstractContextManager[Run], reset: bool, removes: bool) -> Iterator[Run]:
        """Run a fit that updates the hashes of the rows."""
        with fitting as run:
            keys = label_keys(self.classes_) if self._labelled else None
            hashes = run.sum(RowHashes, keys).values
            before = np.empty(0, np.uint64) if reset else self._row_hashes
            name = type(self).__name__
            after = without_rows(before, hashes, name) if removes else np.concatenate([before, hashes])
            yield run
            self._row_hashes = after

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Target; ignored by unsupervised estimators.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, y if self._needs_y else None, sample_weight, needs_y=self._needs_y) as run:
            self._begin(run)
            self._use_sums(self._sums_of(run), run.source.weighted)
        return self

    def _begin(self, run: Run) -> None:
        """Initialise the state that depends on the first rows."""
        self._weighted, self._dtype = False, run.source.dtype.name

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows; the result is that of a single fit to all rows so far, up to rounding.

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
        """Remove rows the model was fitted to; the result is that of a fit to the remaining rows, up to rounding.

        Parameters
        ----------
        X, y, sample_weight
            The rows to remove, as they were passed to `fit` or `partial_fit`.

        Returns
        -------
        self

        Notes
        -----
        Sums do not record their rows. Rows that were not fitted raise an error after `track_rows`;
        without it they raise an error if they would leave impossible sums (negative counts, weights or
        variances), and otherwise change the model.
        """
        check_is_fitted(self)
        before = self._sums_or_error("forget")
        target = y if self._needs_y else None
        with self._fitting(X, target, sample_weight, needs_y=self._needs_y, reset=False, removes=True) as run:
            removed = self._sums_of(run)
            left = before.unmerge(removed)
            if np.min(left.count) < 0 or left.n_rows == 0 or np.max(left.weight) <= 0:
                raise DataError(
                    f"{type(self).__name__} was fitted to {before.n_rows} rows and cannot forget "
                    f"{removed.n_rows}: at least one must remain."
                )
            if (words := impossible(left, before)) is not None:
                raise DataError(
                    f"Without these rows {type(self).__name__} would have {words}, so it was not fitted to all of "
                    "them; pass rows as they were passed to fit."
                )
            self._use_sums(left, run.source.weighted)
        return self

    def merge(self, other: Any) -> Self:
        """Merge another model into this one; the result is that of a fit to the rows of both, up to rounding.

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
        tracked = hasattr(self, "_row_hashes")
        if tracked != hasattr(other, "_row_hashes"):
            raise ParameterError(
                "Only one of the two models tracks its rows; call track_rows before fit on both, or on neither."
            )
        before = dict(vars(self))
        try:
            mine, theirs = self._paired(other)
            self._use_sums(mine.merge(theirs), bool(other._weighted))
            if tracked:
                self._row_hashes = np.concatenate([self._row_hashes, other._row_hashes])
        except BaseException:  # never leave a partial merge
            self._restore(before, {})
            raise
        return self

    def _paired(self, other: Any) -> tuple[Any, Any]:
        """Return the sums of both models in a form that can be merged."""
        return self._sums_or_error("merge"), other._sums_or_error("merge")

    def _sums_or_error(self, what: str) -> Any:
        sums = self._kept_sums()
        if sums is None:
            raise ParameterError(f"{what} needs {self._sums_not_kept()}; fit again on all rows, or on fewer columns.")
        return sums

    def _sums_not_kept(self) -> str:
        """Return a description of the sums, for errors raised when they were not stored."""
        return f"the sums over the rows so far, which {type(self).__name__} has not stored"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sums")


@schema.state(sums_by_class_rule, classes_=schema.Labels("n_classes"), **SAVED_SUMS)
class AdditiveClassifier(AdditiveEstimator, Classifier):
    """A classifier that stores sums per class: `_solve` receives the sum of `Grouped(self._statistic, n_classes)`."""

    _fewest_classes = 1  # later calls may add classes
    _standardises: ClassVar[bool] = False  # whether it puts every column in units of its own

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows; the result is that of a single fit to all rows so far, up to rounding.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
            Labels.
        classes : array-like of shape (n_classes,), optional
            All classes that can occur in y. Required in the first call; later calls may omit it or repeat it.
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
        return sums_by_class(run, self._statistic, len(self.classes_), each=self._standardises)

    def _paired(self, other: Any) -> tuple[Any, Any]:
        """Return the sums of both models for the union of their classes."""
        mine, theirs = super()._paired(other)
        classes = union_of_labels(self.classes_, other.classes_)
        places = np.searchsorted(classes, self.classes_), np.searchsorted(classes, other.classes_)
        self.classes_ = classes
        return regrouped(mine, places[0], len(classes)), regrouped(theirs, places[1], len(classes))


def sums_by_class(run: Run, statistic: Any, n_classes: int, *, each: bool = False) -> Any:
    """Return the statistic of each class, about origins near the class means.

    `each` tells whether the model puts every column in units of its own (see `raise_if_underflowing`).
    """
    chunk = run.first_chunk()
    if hasattr(statistic, "map_groups") and chunk.dtype != np.float64:  # these sums are always in double precision
        chunk = replace(chunk, dtype=np.dtype(np.float64))
    sums = run.sum(Grouped(statistic, n_classes), pilot_origins(chunk, n_classes))
    if sums.column_squares is not None and sums.column_squares.shape[-1] == run.source.n_features:
        squares = sums.column_squares.max(axis=0)
        raise_if_overflowing(run.source, squares)
        raise_if_underflowing(run.source, squares, np.abs(sums.column_totals).max(axis=0), each=each)
    return sums


def _check_alike(one: Any, other: Any) -> None:
    """Raise if two models cannot be merged: different classes, parameters or columns."""
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
    """Combine models fitted on different rows into the model of all rows, up to rounding.

    Parameters
    ----------
    models : iterable of fitted estimators
        Models of the same class, with the same parameters and columns; they are not modified.

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
            raise ParameterError(f"{type(model).__name__} does not support merging: its fit is not a sum over rows.")
        check_is_fitted(model)
        tree.push(copy.deepcopy(model))
    return tree.result()
