"""Certificates of naive Bayes models of discrete columns: the objective of their probabilities.

With counts T_kc of the events c in class k, pseudo-counts included, the probabilities p_kc = T_kc / sum_c T_kc minimise

    J = - sum_kc T_kc log p_kc                                                                                  (1)

and others are above the minimum by sum_kc T_kc log (T_kc / sum_c T_kc / p_kc), a Kullback-Leibler divergence. J is the
negative log posterior under the Dirichlet prior given by the pseudo-counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.model_files import schema
from summula.core.numerics.priors import Priors
from summula.naive_bayes.category_counts import Categorical, CategoryCounts
from summula.naive_bayes.class_totals import ClassTotals, Counts, Flags, FlagTotals

__all__ = [
    "BernoulliFit",
    "CategoricalFit",
    "ComplementFit",
    "MultinomialFit",
    "log_shares",
    "objective_of_tables",
    "sums_of_others",
    "tables_rule",
]

Array = NDArray[np.float64]

_PRIORS = schema.Object(Priors, n_classes="n_classes")
_TABLE = schema.Array("float64", "n_classes", "n_features", finite=False)
_ALPHA = schema.Array("float64", "n_features", low=0.0)


def log_shares(counts: Array) -> Array:
    """Return the logarithms of the normalised counts of each row; uniform for rows without counts."""
    counts = np.where(counts.any(axis=1, keepdims=True), counts, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(counts) - np.log(counts.sum(axis=1, keepdims=True)))


def objective_of_counts(T: Array, log_p: Array) -> tuple[float, float]:
    """Return (1) for counts of shape (n_distributions, n_events), and its suboptimality.

    Probabilities are normalised first, since the bound assumes that they sum to one.
    """
    some = T > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = log_p - special.logsumexp(log_p, axis=1, keepdims=True)
        best = np.log(T) - np.log(T.sum(axis=1, keepdims=True))
        return -float(T[some] @ log_p[some]), float(T[some] @ (best[some] - log_p[some]))


def objective_of_tables(counts: Array, tables: Any, alpha: Array) -> tuple[float, float]:
    """Return (1) summed over categorical columns; `counts` has shape (n_classes, n_columns, n_categories)."""
    value, gap = 0.0, 0.0
    widths = np.array([table.shape[1] for table in tables], np.intp)
    for m in np.unique(widths).tolist():  # columns with the same number of categories at once
        chosen = np.flatnonzero(widths == m)
        some = counts[:, chosen]
        if some[:, :, m:].any():  # categories without a probability in the model
            return np.inf, np.inf
        T = np.repeat(np.asarray(alpha, np.float64)[chosen], m).reshape(1, -1, m).repeat(len(counts), axis=0)
        T[:, :, : counts.shape[2]] += some[:, :, :m]
        log_p = np.stack([tables[j] for j in chosen], axis=1)
        one = objective_of_counts(T.reshape(-1, m), log_p.reshape(-1, m))
        value, gap = value + one[0], gap + one[1]
    return value, gap


@schema.saved(log_p=_TABLE, alpha=_ALPHA, priors=_PRIORS)
@dataclass(frozen=True)
class MultinomialFit:
    """Log probabilities of events by class, and pseudo-counts."""

    log_p: Array
    alpha: Array
    priors: Priors
    statistic: ClassVar = Counts("the certificate")

    def objective(self, sums: ClassTotals) -> tuple[float, float]:
        """Return the objective and its suboptimality."""
        return self.priors.added(objective_of_counts(sums.total + self.alpha, self.log_p), sums.weight)


@schema.saved(log_p=_TABLE, alpha=_ALPHA, priors=_PRIORS)
@dataclass(frozen=True)
class ComplementFit(MultinomialFit):
    """Log probabilities of events in all classes but one, and pseudo-counts."""

    def objective(self, sums: ClassTotals) -> tuple[float, float]:
        """Return the objective and its suboptimality."""
        others = sums_of_others(sums.total) + self.alpha
        return self.priors.added(objective_of_counts(others, self.log_p), sums.weight)


def sums_of_others(total: Array) -> Array:
    """Return for each row the sum of all other rows, without subtracting: a row may be much larger than the others."""
    nothing = np.zeros((1, total.shape[1]))
    before = np.vstack([nothing, np.cumsum(total[:-1], axis=0)])
    after = np.vstack([np.cumsum(total[:0:-1], axis=0)[::-1], nothing])
    return np.asarray(before + after)


@schema.saved(log_odds=_TABLE, alpha=_ALPHA, priors=_PRIORS, threshold=schema.Real() | None)
@dataclass(frozen=True)
class BernoulliFit:
    """Log odds of flags by class, and pseudo-counts; flags are set for values above the threshold."""

    log_odds: Array
    alpha: Array
    priors: Priors
    threshold: float | None

    @property
    def statistic(self) -> Flags:
        """Return the statistic that is summed."""
        return Flags(self.threshold)

    def objective(self, sums: FlagTotals) -> tuple[float, float]:
        """Return the objective and its suboptimality."""
        set_, all_ = sums.total + self.alpha, sums.known + 2 * self.alpha
        T = np.stack([set_, all_ - set_], axis=-1).reshape(-1, 2)
        log_p = np.stack([special.log_expit(self.log_odds), special.log_expit(-self.log_odds)], axis=-1).reshape(-1, 2)
        return self.priors.added(objective_of_counts(T, log_p), sums.weight)


def tables_rule(fit: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: tables have a row for each class, and at least one category."""
    if any(table.ndim != 2 or len(table) != sizes.get("n_classes") or not table.shape[1] for table in fit.tables):
        return "a table of categories must have one row for each class"
    return None


@schema.saved(
    tables_rule,
    tables=schema.Items(schema.Array("float64", "...", finite=False), "n_features"),
    alpha=_ALPHA,
    priors=_PRIORS,
)
@dataclass(frozen=True)
class CategoricalFit:
    """Log probabilities of categories by class, one table per column, and pseudo-counts."""

    tables: tuple[Array, ...]
    alpha: Array
    priors: Priors
    statistic: ClassVar = Categorical()

    def objective(self, sums: CategoryCounts) -> tuple[float, float]:
        """Return the objective and its suboptimality."""
        return self.priors.added(objective_of_tables(sums.total, self.tables, self.alpha), sums.weight)
