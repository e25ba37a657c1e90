"""Categorical naive Bayes: columns are categories, numbered from 0.

With N_kjc the weight of the rows of class k whose column j holds category c, W_kj its sum over c, and m_j categories of
column j,

    P(x_j = c | k) = (N_kjc + alpha) / (W_kj + alpha m_j),     log P(x, k) = log pi_k + sum_j log P(x_j | k)

A missing value (NaN) is excluded from the counts of its column, and from the sum over j. Without any rows or
pseudo-counts for a column, its categories are equally likely.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError, RowError
from summula.core.estimator.parameters import Allowed, array_like, integer, none
from summula.core.model_files import schema
from summula.naive_bayes.category_counts import MAX_VALUES, Categorical, CategoryCounts, check_categories
from summula.naive_bayes.count_fits import CategoricalFit, log_shares
from summula.naive_bayes.discrete_nb import PARAMETERS, DiscreteNB

__all__ = ["CategoricalNB"]

Array = NDArray[np.float64]


def _tables_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: there is a table for each column, as wide as its number of categories."""
    widths = model.n_categories_.tolist()
    for name in ("category_count_", "feature_log_prob_"):
        for j, (table, m) in enumerate(zip(getattr(model, name), widths, strict=True)):
            if table.shape != (sizes["n_classes"], m):
                return f"{name}[{j}] has shape {table.shape}, not {(sizes['n_classes'], m)}"
    return None


@inherit_docs()
@schema.saved(
    _tables_rule,
    n_categories_=schema.Array("int64", "n_features", low=1),
    category_count_=schema.Items(schema.Array("float64", "..."), "n_features"),
    feature_log_prob_=schema.Items(schema.Array("float64", "...", finite=False), "n_features"),
)
class CategoricalNB(DiscreteNB):
    """Naive Bayes for categories; missing values are ignored.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of every category (Laplace smoothing).
    min_categories : int or array-like of shape (n_features,), optional
        Minimum number of categories per column; those that do not occur in the fit have pseudo-counts only.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    category_count_, feature_log_prob_ : list of ndarray of shape (n_classes, n_categories of the column)
        Weighted count and log probability of each category in each class; one table per column.
    n_categories_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from summula.naive_bayes import CategoricalNB
    >>> weather = [[0, 1], [0, 0], [2, 1], [2, 0]]  # sunny, cloudy, rain; calm, windy
    >>> CategoricalNB().fit(weather, ["out", "out", "in", "in"]).predict([[0, 0], [2, 1]])
    array(['out', 'in'], dtype='<U3')
    """

    _accepts_sparse, _allows_nan = False, True
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PARAMETERS,
        "min_categories": (none, integer(1), array_like),
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ) -> None:
        self.alpha, self.force_alpha, self.fit_prior, self.class_prior = alpha, force_alpha, fit_prior, class_prior
        self.min_categories = min_categories

    def _counted(self) -> Categorical:
        return Categorical()

    def _solve(self, sums: CategoryCounts) -> None:
        self._name_priors(sums.weight)
        widths = np.array(
            [int(np.flatnonzero(column)[-1]) + 1 if column.any() else 1 for column in sums.total.sum(axis=0)]
        )
        self.n_categories_ = np.maximum(widths, self._least(len(sums.total))).astype(np.int64)
        alpha = np.broadcast_to(self._smoothing(), self.n_categories_.shape)
        self.category_count_ = [_of_width(sums.total[:, j], m) for j, m in enumerate(self.n_categories_.tolist())]
        pairs = zip(self.category_count_, alpha, strict=True)
        self.feature_log_prob_ = [log_shares(counts + a) for counts, a in pairs]
        self._certify(CategoricalFit(tuple(self.feature_log_prob_), np.array(alpha), self._fitted_priors()), sums)

    def _least(self, n_classes: int) -> Any:
        if self.min_categories is None:
            return 1
        least = np.asarray(self.min_categories)
        if least.dtype.kind not in "iu":
            raise ParameterError(
                f"'min_categories' should have integral type. Got {least.dtype} instead; pass integers."
            )
        if least.ndim and least.shape != (self.n_features_in_,):
            raise ParameterError(
                f"'min_categories' should have shape ({self.n_features_in_},) when an array-like is provided. Got "
                f"{least.shape} instead."
            )
        # (As Python integers: their sum may overflow.)
        values = n_classes * sum(np.broadcast_to(np.maximum(least, 0), self.n_features_in_).tolist())
        if values > MAX_VALUES:
            raise ParameterError(
                f"'min_categories' asks for {values:,} counts of categories; the maximum is {MAX_VALUES:,}: pass the "
                "number of categories of each column."
            )
        return least

    def _log_joint(self, chunk: Chunk) -> Array:
        values = chunk.block(np.float64)
        joint = np.tile(self.class_log_prior_, (len(chunk), 1))
        if np.isinf(values).any():
            return joint * np.nan  # located by the caller
        check_categories(values, chunk.start, lambda j: f"column {j}", len(self.classes_), "CategoricalNB")
        unseen = values >= self.n_categories_
        if unseen.any():
            row, j = (int(place) for place in np.argwhere(unseen)[0])
            raise RowError(
                f"Column {j} contains the category {int(values[row, j])}",
                chunk.start + row,
                f", but the fit has {self.n_categories_[j]} categories, from 0 on: set min_categories, or use MixedNB, "
                "which ignores unknown categories.",
            )
        present = ~np.isnan(values)
        places = np.where(present, values, 0.0).astype(np.intp)
        for j, table in enumerate(self.feature_log_prob_):
            joint += np.where(present[:, j, None], table.T[places[:, j]], 0.0)
        return joint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags


def _of_width(counts: Array, width: int) -> Array:
    """Return the counts of the first `width` categories of a column, 0 for those that do not occur."""
    out = np.zeros((len(counts), width))
    out[:, : counts.shape[1]] = counts[:, :width]
    return out
