"""Naive Bayes for columns of different kinds in one model, with missing values.

Given the class, columns are independent, so each has a separate distribution:

    gaussian       normal with mean and variance by class, the variance increased as in `GaussianNB`            (1)
    bernoulli      whether the value is above 0                                                                 (2)
    categorical    one of m categories, P(c | k) = (N_kc + alpha) / (W_k + alpha m)                             (3)

    log P(x, k) = log pi_k + sum over the columns that are not missing of log P(x_j | k)                        (4)

(2) is (3) with two categories. A missing value is excluded from the sums of its column, and from (4), which
marginalises over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.labels import Labels
from summula.core.data.sources import Source
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.additive import AdditiveClassifier, sums_by_class
from summula.core.estimator.certificates import StatisticCertificate
from summula.core.estimator.classifier import GenerativeClassifier, class_priors
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.parameters import Allowed, array_like, mapping, none, one_of, real
from summula.core.estimator.run import Run, Unnamed
from summula.core.model_files import schema
from summula.core.numerics.priors import Priors
from summula.naive_bayes.count_fits import log_shares, objective_of_tables, tables_rule
from summula.naive_bayes.mixed_sums import FAMILIES, Mixed, MixedSums, split_columns
from summula.naive_bayes.normal_columns import NormalColumns
from summula.tree.columns.categories import Categories, check_kinds, coded_array

__all__ = ["MixedCertificate", "MixedFit", "MixedNB"]

Array = NDArray[np.float64]


def _fit_rule(fit: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: the columns match the families."""
    if fit.columns.theta.shape[1] != fit.families.count(0):
        return "columns must have as many columns as families are 0"
    if len(fit.tables) != len(fit.families) - fit.families.count(0):
        return "there must be one table per categorical column"
    return tables_rule(fit, sizes)


def _families_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: the tables match the columns of each family."""
    gaussian = sum(family == "gaussian" for family in model.families_)
    shape, K = (sizes["n_classes"], gaussian), sizes["n_classes"]
    if model.theta_.shape != shape or model.var_.shape != shape:
        return f"theta_ and var_ must have the shape {shape}"
    if len(model.category_log_prob_) != len(model.families_) - gaussian:
        return "category_log_prob_ must have one table for each categorical column"
    if any(table.ndim != 2 or len(table) != K or not table.shape[1] for table in model.category_log_prob_):
        return "category_log_prob_ must have one row for each class"
    return None


@schema.saved(
    _fit_rule,
    columns=schema.Object(NormalColumns, n_classes="n_classes"),
    tables=schema.Items(schema.Array("float64", "...", finite=False)),
    alpha=schema.Real(0.0),
    families=schema.Items(schema.Integer(0, len(FAMILIES) - 1), "n_features"),
    priors=schema.Object(Priors, n_classes="n_classes"),
)
@dataclass(frozen=True)
class MixedFit:
    """The parameters of a model: means and variances, tables of log probabilities, pseudo-count, families, priors."""

    columns: NormalColumns
    tables: tuple[Array, ...]
    alpha: float
    families: tuple[int, ...]
    priors: Priors

    @property
    def statistic(self) -> Mixed:
        """Return the statistic that is summed."""
        return Mixed(self.families)

    def objective(self, sums: MixedSums) -> tuple[float, float]:
        """Return the negative log-likelihood of rows and classes, including the pseudo-counts, and its gap."""
        value, gap = self.columns.objective(sums.moments)
        alpha = np.full(len(self.tables), self.alpha)
        more, further = objective_of_tables(sums.counts.total, self.tables, alpha)
        return self.priors.added((value + more, gap + further), sums.weight)


@schema.saved(
    fit=schema.Object(MixedFit, n_classes="n_classes", n_features="n_features"),
    levels=schema.Dict(schema.Text(), schema.Items(schema.Text(), low=1)),
)
@dataclass(frozen=True)
class MixedCertificate(StatisticCertificate):
    """The certificate of a model whose text columns are encoded by `levels`."""

    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        categories = Categories("the certificate", self.levels)
        labels = Labels("the certificate", self.classes)
        X = coded_array(X, categories)
        return as_source(Unnamed(), X, y, sample_weight, needs_y=True, labels=labels, factors=categories)


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
    certificate_=schema.Object(MixedCertificate, n_classes="n_classes", n_features="n_features"),
)
class MixedNB(AdditiveClassifier, GenerativeClassifier):
    """Naive Bayes for tables of numbers, flags and categories; missing values are ignored.

    Parameters
    ----------
    families : "auto", str, dict or sequence, default="auto"
        The distribution of each column: "gaussian", "bernoulli" or "categorical". A single name applies to all columns,
        a dict maps names or indices of columns to families (the other columns are "auto"). "auto" treats text and
        categorical columns as categorical, and others as gaussian, also columns of booleans: files do not tell these
        from integers, and every container gives the same model. Name them, as in {"member": "bernoulli"}.
    alpha : float, default=1.0
        Pseudo-count of every category (Laplace smoothing).
    var_smoothing : float, default=1e-9
        Fraction of the largest variance of a column that is added to all variances.
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default the class proportions.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
    families_ : tuple of str
        The distribution of each column.
    theta_, var_ : ndarray of shape (n_classes, number of gaussian columns)
    category_log_prob_ : list of ndarray of shape (n_classes, n_categories of the column)
        One table per bernoulli or categorical column; unknown categories are ignored.
    category_levels_ : dict
        Levels of text columns, in the order of their codes.
    certificate_ : MixedCertificate
        The negative log-likelihood of rows and classes, including the pseudo-counts, and its suboptimality.

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
    _factored = True  # text is categorical
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

    def _codes(self) -> tuple[int, ...]:
        return tuple(FAMILIES.index(family) for family in self.families_)

    def _sums_of(self, run: Run) -> MixedSums:
        sums: MixedSums = sums_by_class(run, Mixed(self._codes()), len(self.classes_))
        return sums

    def _solve(self, sums: MixedSums) -> None:
        self.class_count_ = np.array(sums.weight)
        self.class_prior_ = np.array(class_priors(self, sums.weight))
        columns = NormalColumns.of(sums.moments, self.var_smoothing)
        self.theta_, self.var_, self.epsilon_ = columns.theta, columns.var, columns.eps
        self.category_log_prob_ = []
        kinds = [family for family in self.families_ if family != "gaussian"]
        for kind, counts in zip(kinds, np.moveaxis(sums.counts.total, 1, 0), strict=True):
            there = np.flatnonzero(counts.sum(axis=0))
            m = 2 if kind == "bernoulli" else int(there[-1]) + 1 if len(there) else 1
            table = np.zeros((len(counts), m))
            table[:, : min(m, counts.shape[1])] = counts[:, :m]
            self.category_log_prob_.append(log_shares(table + self.alpha))
        priors = Priors(self.class_prior_, self.priors is None)
        fit = MixedFit(columns, tuple(self.category_log_prob_), float(self.alpha), self._codes(), priors)
        stated = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)
        self.certificate_ = MixedCertificate(**vars(stated), levels=self.category_levels_)

    def _log_joint(self, chunk: Chunk) -> Array:
        numbers, categories = split_columns(chunk.block(np.float64), self._codes())
        joint = np.full((len(chunk), len(self.classes_)), -np.inf)
        columns = NormalColumns(self.theta_, self.var_, self.epsilon_)
        for k in np.flatnonzero(self.class_count_):
            joint[:, k] = np.log(self.class_prior_[k]) + columns.log_density(numbers, k)
        for j, table in enumerate(self.category_log_prob_):
            x = categories[:, j]
            if np.isinf(x).any():
                joint[np.isinf(x)] = np.nan  # located by the caller
            known = np.isfinite(x) & (x >= 0) & (x == np.floor(x)) & (x < table.shape[1])
            joint[known] += table.T[x[known].astype(np.intp)]
        return joint


def _families(given: Any, names: tuple[str, ...], categorical: set[str]) -> tuple[str, ...]:
    """Return the family of each column."""
    auto = ["categorical" if name in categorical else "gaussian" for name in names]
    if isinstance(given, str):
        chosen = auto if given == "auto" else [given] * len(names)
    elif isinstance(given, Mapping):
        chosen, places = auto, {name: j for j, name in enumerate(names)}
        for key, family in given.items():
            place = places.get(key, key)
            if not isinstance(place, int | np.integer) or not 0 <= place < len(names):
                raise ParameterError(
                    f"families contains {key!r}, which is not a column; the columns are {list(names)[:10]}."
                )
            chosen[place] = family
    else:
        chosen = list(given)
        if len(chosen) != len(names):
            raise ParameterError(
                f"families has {len(chosen)} entries, but there are {len(names)} columns; pass one per column."
            )
        chosen = [a if family == "auto" else family for a, family in zip(auto, chosen, strict=True)]
    for name, family in zip(names, chosen, strict=True):
        if family not in FAMILIES:
            raise ParameterError(f"The family of column {name!r} must be one of {', '.join(FAMILIES)}; got {family!r}.")
        if family != "categorical" and name in categorical:
            raise DataError(
                f"Column {name!r} is categorical, but its family is {family!r}; use 'categorical' or 'auto'."
            )
    return tuple(chosen)
