"""Naive Bayes for columns of different kinds in one model, with missing values.

Given the class, columns are independent, so each has a distribution of its own:

    gaussian       normal with mean and variance by class, the variance widened as in `GaussianNB`              (1)
    bernoulli      whether the value is above 0                                                                 (2)
    categorical    one of m categories, P(c | k) = (N_kc + alpha) / (W_k + alpha m)                             (3)

    log P(x, k) = log pi_k + sum over the columns that are not missing of log P(x_j | k)                        (4)

(2) is (3) with two categories. A missing value is left out of the sums of its column, and of (4): integrating a column
out of a product of independent ones leaves the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.blocks import aligned
from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.classifier import GenerativeClassifier, class_priors
from summula.core.estimator.parameters import Allowed, array_like, mapping, none, one_of, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import Grouped, group_totals, memberships
from summula.core.numerics.statistics import Moments
from summula.core.numerics.sums import Sum
from summula.naive_bayes.category_counts import CategoryCounts, check_categories
from summula.tree.categories import Categories, check_kinds, coded_array

__all__ = ["MixedNB", "MixedSums"]

Array = NDArray[np.float64]

FAMILIES = ("gaussian", "bernoulli", "categorical")
_TINY = np.finfo(np.float64).tiny


@schema.saved(
    moments=schema.Object(Moments, n_features="n_gaussian", n_groups="n_groups"),
    counts=schema.Object(CategoryCounts, n_groups="n_groups"),
)
@dataclass(frozen=True)
class MixedSums(Sum):
    """Moments of the columns of numbers and counts of those of categories, by class."""

    moments: Moments
    counts: CategoryCounts

    def merge(self, other: Self) -> Self:
        """The sums of both sets of rows together."""
        return type(self)(self.moments.merge(other.moments), self.counts.merge(other.counts))

    def unmerge(self, other: Self) -> Self:
        """The sums of these rows without those of `other`."""
        return type(self)(self.moments.unmerge(other.moments), self.counts.unmerge(other.counts))

    @property
    def count(self) -> NDArray[np.int64]:
        """Number of rows by class."""
        return self.counts.count

    @property
    def weight(self) -> Array:
        """Weight of the rows by class."""
        return self.counts.weight

    @property
    def n_rows(self) -> int:
        """Number of rows, of all classes together."""
        return self.counts.n_rows


@dataclass(frozen=True)
class _Mixed:
    """The statistic; `families` has the number of a family for each column."""

    families: tuple[int, ...]

    def map_groups(self, chunk: Chunk, codes: NDArray[Any], n_groups: int, params: Array) -> MixedSums:
        """The sums of one chunk; `params` are origins of the columns of numbers."""
        numbers, categories = split_columns(chunk.block(np.float64), self.families)
        weight = chunk.weight
        if np.isinf(numbers).any() or np.isinf(categories).any():  # shown in the sums, and located there
            categories, weight = np.full(categories.shape, np.nan), np.full(len(chunk), np.nan)
        check_categories(categories, chunk.start, lambda j: f"column {self._place(j)}", n_groups, "MixedNB")
        counts = CategoryCounts.of(categories, codes, weight, n_groups)
        seen = ~np.isnan(numbers)
        origin = np.ascontiguousarray(np.broadcast_to(params, (n_groups, numbers.shape[1])))
        filled = np.where(seen, numbers, origin[np.maximum(codes, 0)])
        total, square = group_totals(np.ascontiguousarray(filled), codes, chunk.weight, origin)
        known = aligned(seen, np.float64)
        of_rows = np.asarray(memberships(codes, None, n_groups) @ known).astype(np.int64)
        weights = np.asarray(memberships(codes, chunk.weight, n_groups) @ known)
        return MixedSums(Moments(of_rows, weights, origin, total, square), counts)

    def _place(self, j: int) -> int:
        return int(np.flatnonzero(np.asarray(self.families) > 0)[j])


def split_columns(X: Array, families: Any) -> tuple[Array, Array]:
    """Columns of numbers, and columns of categories with flags as 0 and 1."""
    kinds = np.asarray(families)
    categories = X[:, kinds > 0]
    flags = kinds[kinds > 0] == FAMILIES.index("bernoulli")
    if flags.any():
        some = categories[:, flags]
        categories[:, flags] = np.where(np.isfinite(some), some > 0, some)
    return X[:, kinds == 0], categories


def _families_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: tables as wide as the columns of each family are many."""
    gaussian = sum(family == "gaussian" for family in model.families_)
    shape, K = (sizes["n_classes"], gaussian), sizes["n_classes"]
    if model.theta_.shape != shape or model.var_.shape != shape:
        return f"theta_ and var_ must have the shape {shape}"
    if len(model.category_log_prob_) != len(model.families_) - gaussian:
        return "category_log_prob_ must have one table for each column of categories"
    if any(table.ndim != 2 or len(table) != K or not table.shape[1] for table in model.category_log_prob_):
        return "category_log_prob_ must have one row for each class"
    return None


@schema.saved(
    _families_rule,
    families_=schema.Items(schema.Text(*FAMILIES), "n_features"),
    category_levels_=schema.Dict(schema.Text(), schema.Items(schema.Text(), low=1)),
    class_count_=schema.Array("float64", "n_classes"),
    class_prior_=schema.Array("float64", "n_classes", low=0.0),
    theta_=schema.Array("float64", "..."),
    var_=schema.Array("float64", "...", low=0.0),
    epsilon_=schema.Real(0.0),
    category_log_prob_=schema.Items(schema.Array("float64", "...", finite=False)),
)
class MixedNB(AdditiveClassifier, GenerativeClassifier):
    """Naive Bayes for tables: numbers, flags and categories in one model; missing values are passed over.

    Parameters
    ----------
    families : "auto", str, dict or sequence, default="auto"
        The distribution of each column: "gaussian", "bernoulli" or "categorical". A single name is for all columns, a
        dict is from names or places of columns to families, the others being "auto". "auto" makes columns of text, or
        of a categorical dtype, categorical, and numbers gaussian.
    alpha : float, default=1.0
        Pseudo-count of every category (Laplace smoothing).
    var_smoothing : float, default=1e-9
        Share of the largest variance of a column that is added to all variances.
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes; by default their shares of the rows.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
    families_ : tuple of str
        The distribution of each column.
    theta_, var_ : ndarray of shape (n_classes, number of gaussian columns)
    category_log_prob_ : list of ndarray of shape (n_classes, n_categories of the column)
        One table per bernoulli or categorical column; categories not seen in the fit are passed over.
    category_levels_ : dict
        The texts of columns of text, in the order of their codes.

    Examples
    --------
    >>> import pandas as pd
    >>> from summula.naive_bayes import MixedNB
    >>> table = pd.DataFrame({"age": [22.0, 25.0, None, 61.0], "town": ["Bonn", "Bonn", "Ulm", "Ulm"]})
    >>> model = MixedNB().fit(table, ["student", "student", "teacher", "teacher"])
    >>> model.families_
    ('gaussian', 'categorical')
    >>> model.predict(pd.DataFrame({"age": [None, 24.0], "town": ["Ulm", None]}))
    array(['teacher', 'student'], dtype='<U7')
    """

    _accepts_sparse = False
    _allows_nan = True
    _factored = True  # text is categories
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "families": (one_of("auto", *FAMILIES), mapping, array_like),
        "alpha": (real(0.0),),
        "var_smoothing": (real(0.0),),
        "priors": (none, array_like),
    }
    category_levels_: dict[str, tuple[str, ...]]
    families_: tuple[str, ...]

    def __init__(
        self, families: Any = "auto", *, alpha: float = 1.0, var_smoothing: float = 1e-9, priors: Any = None
    ) -> None:
        self.families, self.alpha, self.var_smoothing, self.priors = families, alpha, var_smoothing, priors

    def _open_factors(self, X: Any, others: list[str], reset: bool) -> tuple[Any, Categories]:
        fresh = reset or not hasattr(self, "category_levels_")
        categories = Categories(type(self).__name__, None if fresh else self.category_levels_)
        return coded_array(X, categories), categories

    def _close_factors(self, X: Any, source: Source, factors: Any, reset: bool) -> None:
        if not reset:
            check_kinds(X, source, factors)
            return
        self.category_levels_ = dict(factors.texts)
        found = {*factors.found, *getattr(X, "categories", ())}
        names = source.names if source.names is not None else tuple(f"x{j}" for j in range(source.n_features))
        self.families_ = _families(self.families, names, found)

    def _sums_of(self, run: Run) -> MixedSums:
        statistic = _Mixed(tuple(FAMILIES.index(family) for family in self.families_))
        first = run.first_chunk()
        rows = first.block(np.float64)
        numbers, _ = split_columns(rows if first.weight is None else rows[first.weight > 0], statistic.families)
        with np.errstate(invalid="ignore", over="ignore"):
            seen = np.isfinite(numbers)
            origin = np.where(seen, numbers, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        sums: MixedSums = run.sum(Grouped(statistic, len(self.classes_)), origin)
        return sums

    def _solve(self, sums: MixedSums) -> None:
        self.class_count_ = np.array(sums.weight)
        self.class_prior_ = np.array(class_priors(self, sums.weight))
        moments, W = sums.moments, sums.moments.weight
        self.theta_, variance = np.nan_to_num(moments.mean), np.nan_to_num(moments.variance)
        column = np.maximum(W.sum(axis=0), _TINY)
        overall = (W * self.theta_).sum(axis=0) / column
        spread = (W * (variance + (self.theta_ - overall) ** 2)).sum(axis=0) / column
        self.epsilon_ = float(self.var_smoothing * spread.max(initial=0.0))
        self.var_ = variance + self.epsilon_
        self.category_log_prob_ = []
        kinds = [family for family in self.families_ if family != "gaussian"]
        with np.errstate(divide="ignore", invalid="ignore"):
            for kind, counts in zip(kinds, np.moveaxis(sums.counts.total, 1, 0), strict=True):
                there = np.flatnonzero(counts.sum(axis=0))
                m = 2 if kind == "bernoulli" else int(there[-1]) + 1 if len(there) else 1
                table = np.zeros((len(counts), m))
                table[:, : min(m, counts.shape[1])] = counts[:, :m]
                smoothed = table + self.alpha
                log_p = np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))
                self.category_log_prob_.append(np.where(np.isnan(log_p), -np.inf, log_p))

    def _log_joint(self, chunk: Chunk) -> Array:
        numbers, categories = split_columns(
            chunk.block(np.float64), [FAMILIES.index(family) for family in self.families_]
        )
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(self.class_prior_), (len(chunk), 1))
        seen = ~np.isnan(numbers)
        for k in np.flatnonzero(self.class_count_):
            v = np.maximum(self.var_[k], _TINY)
            away = np.where(seen, (numbers - self.theta_[k]) ** 2 / v + np.log(2 * np.pi * v), 0.0)
            joint[:, k] -= 0.5 * away.sum(axis=1)
        for j, table in enumerate(self.category_log_prob_):
            x = categories[:, j]
            if np.isinf(x).any():
                joint[np.isinf(x)] = np.nan  # located by the caller
            known = np.isfinite(x) & (x >= 0) & (x == np.floor(x)) & (x < table.shape[1])
            joint[known] += table.T[x[known].astype(np.intp)]
        return joint


def _families(given: Any, names: tuple[str, ...], categorical: set[str]) -> tuple[str, ...]:
    """The family of each column."""
    auto = ["categorical" if name in categorical else "gaussian" for name in names]
    if isinstance(given, str):
        chosen = auto if given == "auto" else [given] * len(names)
    elif isinstance(given, Mapping):
        chosen = auto
        for key, family in given.items():
            place = names.index(key) if key in names else key
            if not isinstance(place, int | np.integer) or not 0 <= place < len(names):
                raise ParameterError(f"families names {key!r}, which is no column; the columns are {list(names)[:10]}.")
            chosen[place] = family
    else:
        chosen = list(given)
        if len(chosen) != len(names):
            raise ParameterError(
                f"families has {len(chosen)} entries, and there are {len(names)} columns; give one each."
            )
        chosen = [a if family == "auto" else family for a, family in zip(auto, chosen, strict=True)]
    for name, family in zip(names, chosen, strict=True):
        if family not in FAMILIES:
            raise ParameterError(f"The family of column {name!r} must be one of {', '.join(FAMILIES)}; got {family!r}.")
        if family != "categorical" and name in categorical:
            raise DataError(
                f"Column {name!r} holds categories, and its family is {family!r}; make it 'categorical' or 'auto'."
            )
    return tuple(chosen)
