"""Bernoulli naive Bayes: columns are binary flags, and absent ones count as evidence, too.

With N_kj the weight of the rows of class k in which flag j is set, W_kj that of the rows in which it is not missing,
and pseudo-counts alpha_j for set and unset flags,

    p_kj = (N_kj + alpha_j) / (W_kj + 2 alpha_j)                                                                (1)
    log P(x, k) = log pi_k + sum_j log(1 - p_kj) + sum_j x_j log p_kj / (1 - p_kj)                              (2)

A missing flag (NaN) is excluded from N and W of its column, and from both sums of (2), which marginalises over it.
Without any rows or pseudo-counts for a flag, p_kj is 1/2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.core.estimator.parameters import Allowed, none, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.naive_bayes.class_totals import ClassTotals, Flags, FlagTotals, as_flags, split_missing
from summula.naive_bayes.count_fits import BernoulliFit
from summula.naive_bayes.discrete_nb import PARAMETERS, CountNB, log_products

__all__ = ["BernoulliNB"]

Array = NDArray[np.float64]


@inherit_docs()
@schema.saved()
class BernoulliNB(CountNB):
    """Naive Bayes for binary flags; missing values are ignored.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of set flags, and of unset ones (Laplace smoothing).
    binarize : float or None, default=0.0
        Threshold above which flags are set; None expects columns of 0 and 1.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Weighted count and log probability of each flag being set, in each class.

    References
    ----------
    Manning, Raghavan, Schuetze, Introduction to Information Retrieval, section 13.3.

    Examples
    --------
    >>> from summula.naive_bayes import BernoulliNB
    >>> BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"]).predict([[1, 0], [0, 1]])
    array(['a', 'b'], dtype='<U1')
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {**PARAMETERS, "binarize": (none, real())}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.alpha, self.force_alpha, self.fit_prior, self.class_prior = alpha, force_alpha, fit_prior, class_prior
        self.binarize = binarize

    def _counted(self) -> Flags:
        return Flags(None if self.binarize is None else float(self.binarize))

    def _sums_of(self, run: Run) -> Any:
        self._check_threshold(run.source.is_sparse)
        return super()._sums_of(run)

    def _check_threshold(self, is_sparse: bool) -> None:
        if is_sparse and self.binarize is not None and self.binarize < 0:
            raise DataError("Cannot binarize a sparse matrix with a threshold below 0: every zero would be a set flag.")

    def _solve(self, sums: ClassTotals) -> None:
        sums = FlagTotals.of(sums)
        self._name_priors(sums.weight)
        self.feature_count_, alpha = sums.total, self._smoothing()
        set_, all_ = sums.total + alpha, sums.known + 2 * alpha
        set_, all_ = np.where(all_ > 0, set_, 0.5), np.where(all_ > 0, all_, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.feature_log_prob_ = np.log(set_) - np.log(all_)  # (1)
            log_odds = np.log(set_) - np.log(all_ - set_)
        threshold = self._counted().threshold
        self._certify(BernoulliFit(log_odds, self._by_column(alpha), self._fitted_priors(), threshold), sums)

    def _log_joint(self, chunk: Chunk) -> Array:
        self._check_threshold(chunk.is_sparse)
        with np.errstate(divide="ignore", invalid="ignore"):
            unset = np.log1p(-np.exp(self.feature_log_prob_))
            odds = np.ascontiguousarray((self.feature_log_prob_ - unset).T)
        flags = as_flags(chunk, self.binarize)
        linear = flags @ odds if chunk.is_sparse else product(aligned(flags), odds)
        if np.isfinite(linear).all() and np.isfinite(unset).all():
            return np.asarray(linear + self.class_log_prior_ + unset.sum(axis=1))
        return self._skipping_missing(flags, unset)

    def _skipping_missing(self, flags: Any, unset: Array) -> Array:
        """Return (2) over the flags that are not missing, also for probabilities of 0."""
        known, missing = split_missing(flags.toarray() if hasattr(flags, "indptr") else flags)
        others = aligned(1.0 - known - missing)
        evidence = log_products(known, self.feature_log_prob_.T) + log_products(others, unset.T)
        return np.asarray(evidence + self.class_log_prior_)
