"""A filter that selects the k features with the largest mutual information with the target.

    I(X_j; Y) = sum over bins a and values b of p(a, b) log(p(a, b) / (p(a) p(b)))                               (1)

from a table of counts per feature: a sum over rows, in a second pass after the one for the bins. A feature with few
distinct values has one bin for each; others are discretised at their quantiles, and so is a numeric target with many
values. Categories have one bin each, and a further one for missing values. The filter scores features individually: it
is fast, but does not detect features that are only jointly informative. With m bins and K target values an irrelevant
feature has about (m - 1)(K - 1) / (2 n) nats by chance.

Reference: Cover and Thomas, Elements of Information Theory, chapter 2; Guyon and Elisseeff (2003), JMLR 3.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from summula.core.data.chunks import Chunk, Part
from summula.core.data.frames import is_frame, opened, pop_columns
from summula.core.data.scan import Scan
from summula.core.data.sources import Source
from summula.core.engine.random import choice, stream_key
from summula.core.errors import DataError
from summula.core.estimator.parameters import Allowed, boolean, integer, one_of
from summula.core.estimator.run import Run
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.sums import Sum
from summula.stats.information import mutual_information
from summula.tree.columns.categories import Categories, check_kinds

__all__ = ["MutualInformationFilter"]

Array = NDArray[Any]

_SAMPLED = 200_000  # maximum number of rows used for the bins
_MOST_CLASSES = 1_000  # maximum number of integers treated as classes in a target,
_MISSING = -(2.0**500)  # code of missing categories: below all others, and sums of it are finite
_ROWS_PER_CLASS = 20  # if each has at least this number of rows on average, or there are no more values than bins


class _Bins(NamedTuple):
    """Inner edges of the bins of every feature, and of the target."""

    features: list[Array]
    target: Array


class _Levels(Categories):
    """Encoder of categorical columns in which missing values are a category."""

    def codes(self, name: str, values: Any, start: int = 0) -> Array:
        """Return the codes of some values of a column."""
        codes = super().codes(name, values, start)
        return np.where(np.isnan(codes), _MISSING, codes)

    def known(self) -> Categories:
        """Return an encoder with these texts that learns no others."""
        return _Levels(self.estimator, self.texts)


@dataclass(frozen=True)
class _Counts(Sum):
    """Weight of every bin of each feature and value of the target; `check` is NaN if rows are not finite."""

    count: int
    tables: Array
    check: Array

    @classmethod
    def map(cls, chunk: Chunk, params: _Bins) -> Self:
        """Return the counts of one chunk."""
        assert chunk.y is not None
        X, codes = chunk.block(np.float64), np.searchsorted(params.target, chunk.y[:, 0], side="right")
        n_values, most = len(params.target) + 1, max(len(edges) for edges in params.features) + 1
        tables = np.zeros((chunk.n_features, most, n_values))
        for j, edges in enumerate(params.features):
            places = np.searchsorted(edges, X[:, j], side="right") * n_values + codes
            counted = np.bincount(places, weights=chunk.weight, minlength=most * n_values)
            tables[j] = counted.reshape(most, n_values)
        return cls(len(X), tables, X.sum(axis=0) * 0.0)


def _support_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: at least one feature is selected, and columns of categories have names."""
    if getattr(model, "is_categorical_", model.support_[:0]).any() and not hasattr(model, "feature_names_in_"):
        return "is_categorical_ needs feature_names_in_"
    return None if model.support_.any() else "support_ keeps no feature"


@schema.saved(
    _support_rule,
    mutual_information_=schema.Array("float64", "n_features", low=0.0),
    support_=schema.Array("bool", "n_features"),
    is_categorical_=schema.Maybe(schema.Array("bool", "n_features")),
    category_levels_=schema.Maybe(schema.Dict(schema.Text(), schema.Items(schema.Text(), low=1))),
)
class MutualInformationFilter(Transformer, SelectorMixin):
    """Select the features with the largest mutual information with the target.

    Parameters
    ----------
    k : int or "all", default=10
        Number of features to select; all, if there are fewer.
    n_bins : int, default=10
        Number of bins of numeric features with more distinct values than that, and of a numeric target. Columns of text
        or categories have one bin per category, of which there should be far fewer than rows (no identifiers), and one
        for missing values; numeric columns must be complete.
    discrete_target : bool or "auto", default="auto"
        Whether every value of the target is a class; otherwise it is discretised. "auto" is True for text, and for
        integers with at most `n_bins` values, or at least 20 rows per value.

    Attributes
    ----------
    mutual_information_ : ndarray of shape (n_features,)
        Mutual information of each feature with the target, in nats.
    support_ : ndarray of shape (n_features,), bool
        The selected features; ties go to the first.
    is_categorical_ : ndarray of shape (n_features,), bool
        The columns of text or categories.
    category_levels_ : dict
        Sorted levels of each text column, by name.
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Guyon and Elisseeff (2003), "An introduction to variable and feature selection", JMLR 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.feature_selection import MutualInformationFilter
    >>> frame, species = load_iris(return_X_y=True, as_frame=True)
    >>> kept = MutualInformationFilter(k=2).fit(frame, species)
    >>> kept.mutual_information_.round(2), kept.get_feature_names_out().tolist()
    (array([0.52, 0.3 , 0.9 , 0.91]), ['petal length (cm)', 'petal width (cm)'])
    """

    _accepts_sparse = False
    _factored = True  # text is categorical
    category_levels_: dict[str, tuple[str, ...]]
    is_categorical_: Array
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "k": (integer(1), one_of("all")),
        "n_bins": (integer(2),),
        "discrete_target": (boolean, one_of("auto")),
    }

    def __init__(self, k: Any = 10, *, n_bins: int = 10, discrete_target: Any = "auto") -> None:
        self.k, self.n_bins, self.discrete_target = k, n_bins, discrete_target

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
            Labels or numbers.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, y, sample_weight) as run:
            if run.source.n_targets != 1:
                raise DataError(f"MutualInformationFilter takes one target; y has {run.source.n_targets} columns.")
            sums = run.sum(_Counts, self._bins(run, is_text=_labels_of(X, y) is not None))
            found = [mutual_information(table / table.sum()) for table in sums.tables]
            self.mutual_information_ = np.array(found)
            d = len(found)
            order = np.argsort(-self.mutual_information_.round(12), kind="stable")
            self.support_ = np.zeros(d, bool)
            self.support_[order[: d if self.k == "all" else self.k]] = True
        return self

    def _source(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Source:
        if (labels := _labels_of(X, y)) is not None:
            X = pop_columns(X, [y])[0] if isinstance(y, str) else X
            y = _as_numbers(labels)
        return super()._source(X, y, sample_weight, **options)

    def _open_factors(self, X: Any, others: list[str], reset: bool) -> tuple[Any, Categories]:
        return X, _Levels(type(self).__name__, None if reset else getattr(self, "category_levels_", {}))

    def _close_factors(self, X: Any, source: Source, factors: Any, reset: bool) -> None:
        if not reset:
            check_kinds(X, source, factors)
            return
        self.category_levels_ = dict(factors.texts)
        found = {*factors.found, *getattr(X, "categories", ())}  # the latter of files
        self.is_categorical_ = np.array([name in found for name in source.names or [None] * source.n_features])

    @property
    def _example_levels(self) -> dict[str, tuple[Any, ...]]:
        """Return example levels of categorical columns, to try a method before it is applied to a Dask frame."""
        names = map(str, getattr(self, "feature_names_in_", ()))
        numbers = {name: (1.0,) for name, there in zip(names, self.is_categorical_, strict=False) if there}
        return numbers | self.category_levels_

    def transform(self, X: Any) -> Any:
        """Select columns.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_selected); for a scan an iterator of such blocks, which estimators take as X; a
        Dask array, not yet computed, for a Dask collection. If the filter was fitted to columns of text or categories,
        the selected columns in the container given: a frame, a scan or a Dask frame.
        """
        check_is_fitted(self)
        has_categories = getattr(self, "is_categorical_", self.support_[:0]).any()  # (models saved before lack it)
        if not has_categories or not (is_frame(X) or hasattr(X, "columns")):
            return super().transform(X)
        self._reading(X).release()
        names = self.get_feature_names_out().tolist()
        if is_frame(X):
            return opened(X).select(names).to_native()
        return X.select(names) if isinstance(X, Scan) else X[names]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then select columns of the same rows.

        Parameters
        ----------
        X, y
            As in `fit`.
        **fit_params : dict
            Passed to `fit`.

        Returns
        -------
        As from `transform`
        """
        return self.fit(X, y, **fit_params).transform(X)

    def _bins(self, run: Run, is_text: bool) -> _Bins:
        """Return the bins, from all rows or a sample that depends only on the number of rows."""
        run.sum(FunctionSum, _zero_if_finite)
        n = run.source.n_rows
        chosen = np.sort(choice(stream_key(0), n, _SAMPLED)) if n > _SAMPLED else None
        parts = list(run.each(functools.partial(_taken, chosen)))
        X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        distinct = np.unique(y)
        classes = self.discrete_target
        if classes == "auto":
            most = min(max(self.n_bins, len(y) // _ROWS_PER_CLASS), _MOST_CLASSES)
            classes = is_text or (len(distinct) <= most and bool((distinct == np.floor(distinct)).all()))
        target = _between(distinct) if classes else _cuts(y, self.n_bins)
        names = run.source.names or [""] * X.shape[1]
        return _Bins([self._edges(*column) for column in zip(X.T, names, self.is_categorical_, strict=True)], target)

    def _edges(self, values: Array, name: str, is_categorical: bool) -> Array:
        """Return the inner edges of the bins of a column."""
        if name in self.category_levels_:
            return np.arange(len(self.category_levels_[name])) - 0.5  # missing values are below
        return _between(np.unique(values)) if is_categorical else _cuts(values, self.n_bins)

    def _n_outputs(self) -> int:
        return int(self.support_.sum())

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        out[...] = chunk.block()[:, self.support_]

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(self.support_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _zero_if_finite(chunk: Chunk) -> Array:
    """Return 0 for finite rows, else a non-finite value."""
    assert chunk.y is not None
    rows = np.hstack([chunk.block(np.float64), chunk.y])
    return np.asarray((rows * 0.0).sum(axis=0))


def _taken(chosen: Array | None, part: Part) -> tuple[Array, Array]:
    """Return the sampled rows and targets of a part, with positive weight."""
    rows, targets = [], []
    for chunk in part.chunks():
        assert chunk.y is not None
        keep = np.ones(len(chunk), bool) if chunk.weight is None else chunk.weight > 0
        if chosen is not None:
            here = chosen[np.searchsorted(chosen, chunk.start) : np.searchsorted(chosen, chunk.stop)] - chunk.start
            mask = np.zeros(len(chunk), bool)
            mask[here] = True
            keep &= mask
        rows.append(chunk.block(np.float64)[keep])
        targets.append(chunk.y[keep, 0].astype(np.float64))
    return np.concatenate(rows), np.concatenate(targets)


def _between(distinct: Array) -> Array:
    """Return edges between distinct values."""
    return np.asarray(distinct[:-1] + (distinct[1:] - distinct[:-1]) / 2)


def _cuts(values: Array, n_bins: int) -> Array:
    """Return inner edges: between the values if they are few, else at quantiles."""
    distinct = np.unique(values)
    if len(distinct) <= n_bins:
        return _between(distinct)
    inner = np.arange(1, n_bins) / n_bins
    return np.unique(np.quantile(values, inner, method="inverted_cdf"))


def _labels_of(X: Any, y: Any) -> Any:
    """Return y if it is text or booleans, from the frame if it is the name of a column; None otherwise."""
    if isinstance(y, str):
        if not is_frame(X) or y not in (frame := opened(X)).columns or frame[y].dtype.is_numeric():
            return None
        return frame[y].to_numpy()
    if y is None or not (hasattr(y, "__len__") or hasattr(y, "__array__")):
        return None
    values = np.asarray(y)
    return values if values.dtype.kind in "OUSb" else None


def _as_numbers(labels: Any) -> Array:
    """Return labels as numbers."""
    try:
        return np.unique(column_or_1d(labels, warn=True), return_inverse=True)[1].astype(np.float64)
    except TypeError:
        raise DataError("y mixes labels that cannot be ordered, such as text and numbers: use one type.") from None
