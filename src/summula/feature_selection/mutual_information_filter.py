"""A filter that selects the k features with the largest mutual information with the target.

    I(X_j; Y) = sum over bins a and values b of p(a, b) log(p(a, b) / (p(a) p(b)))                               (1)

from a table of counts per feature: a sum over rows, in a second pass after the one for the bins. A feature with few
distinct values has one bin for each; others are discretised at their quantiles, and so is a numeric target with many
values. The filter scores features individually: it is fast, but does not detect features that are only jointly
informative. With m bins and K target values an irrelevant feature has about (m - 1)(K - 1) / (2 n) nats by chance.

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
from summula.core.engine.random import choice, stream_key
from summula.core.errors import DataError
from summula.core.estimator.parameters import Allowed, boolean, integer, one_of
from summula.core.estimator.run import Run
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.sums import Sum
from summula.stats.information import mutual_information

__all__ = ["MutualInformationFilter"]

Array = NDArray[Any]

_SAMPLED = 200_000  # maximum number of rows used for the bins
_MOST_CLASSES = 1_000  # maximum number of integers treated as classes in a target,
_ROWS_PER_CLASS = 20  # if each has at least this number of rows on average, or there are no more values than bins


class _Bins(NamedTuple):
    """Inner edges of the bins of every feature, and of the target."""

    features: list[Array]
    target: Array


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
    """Validation rule of saved models: at least one feature is selected."""
    return None if model.support_.any() else "support_ keeps no feature"


@schema.saved(
    _support_rule,
    mutual_information_=schema.Array("float64", "n_features", low=0.0),
    support_=schema.Array("bool", "n_features"),
)
class MutualInformationFilter(Transformer, SelectorMixin):
    """Select the features with the largest mutual information with the target.

    Parameters
    ----------
    k : int or "all", default=10
        Number of features to select; all, if there are fewer.
    n_bins : int, default=10
        Number of bins of features with more distinct values than that, and of a numeric target.
    discrete_target : bool or "auto", default="auto"
        Whether every value of the target is a class; otherwise it is discretised. "auto" is True for text, and for
        integers with at most `n_bins` values, or at least 20 rows per value.

    Attributes
    ----------
    mutual_information_ : ndarray of shape (n_features,)
        Mutual information of each feature with the target, in nats.
    support_ : ndarray of shape (n_features,), bool
        The selected features; ties go to the first.
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
        numbers = _as_numbers(y)
        with self._fitting(X, numbers, sample_weight) as run:
            if run.source.n_targets != 1:
                raise DataError(f"MutualInformationFilter takes one target; y has {run.source.n_targets} columns.")
            sums = run.sum(_Counts, self._bins(run, is_text=numbers is not y))
            found = [mutual_information(table / table.sum()) for table in sums.tables]
            self.mutual_information_ = np.array(found)
            d = len(found)
            order = np.argsort(-self.mutual_information_.round(12), kind="stable")
            self.support_ = np.zeros(d, bool)
            self.support_[order[: d if self.k == "all" else self.k]] = True
        return self

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
        return _Bins([_cuts(column, self.n_bins) for column in X.T], target)

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


def _as_numbers(y: Any) -> Any:
    """Return labels as numbers; numbers and column names unchanged."""
    if y is None or isinstance(y, str) or not (hasattr(y, "__len__") or hasattr(y, "__array__")):
        return y
    values = np.asarray(y)
    if values.dtype.kind not in "OUSb":
        return y
    values = column_or_1d(values, warn=True)
    try:
        return np.unique(values, return_inverse=True)[1].astype(np.float64)
    except TypeError:
        raise DataError("y mixes labels that cannot be ordered, such as text and numbers: use one type.") from None
