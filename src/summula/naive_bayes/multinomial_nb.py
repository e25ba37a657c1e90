"""Multinomial naive Bayes: rows are counts of events, such as words of a text.

With N_kj the weighted sum of column j in class k and pseudo-counts alpha_j,

    P(event j | k) = (N_kj + alpha_j) / (N_k + sum_j alpha_j),     log P(x, k) = log pi_k + sum_j x_j log P(j | k)

(up to the multinomial coefficient, which is the same for all classes).

A missing count (NaN) is excluded from N_kj and from the sum over j. A column that is missing in many rows is thus
treated as a rare event; if that is not intended, impute the counts, or drop the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.model_files import schema
from summula.naive_bayes.class_totals import ClassTotals, Counts
from summula.naive_bayes.count_fits import MultinomialFit, log_shares
from summula.naive_bayes.discrete_nb import CountNB

__all__ = ["MultinomialNB"]

Array = NDArray[np.float64]


@inherit_docs()
@schema.saved()
class MultinomialNB(CountNB):
    """Naive Bayes for counts; missing values are ignored.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count added to every column (Laplace smoothing).

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarray of shape (n_classes,)
        Label, weight of the rows and log probability of each class.
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Sum of each column, and log probability of its event, in each class.

    References
    ----------
    Manning, Raghavan, Schuetze, Introduction to Information Retrieval, section 13.2.

    Examples
    --------
    >>> from summula.naive_bayes import MultinomialNB
    >>> words = [[2, 1, 0], [3, 0, 0], [0, 1, 4]]  # cheap, meeting, agenda
    >>> MultinomialNB().fit(words, ["spam", "spam", "ham"]).predict([[1, 0, 0], [0, 1, 1]])
    array(['spam', 'ham'], dtype='<U4')
    """

    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha, self.force_alpha, self.fit_prior, self.class_prior = alpha, force_alpha, fit_prior, class_prior

    def _counted(self) -> Counts:
        return Counts(type(self).__name__)

    def _solve(self, sums: ClassTotals) -> None:
        self._check_range(sums)
        self._name_priors(sums.weight)
        self.feature_count_ = sums.total
        alpha = self._smoothing()
        self.feature_log_prob_ = log_shares(sums.total + alpha)
        self._certify(MultinomialFit(self.feature_log_prob_, self._by_column(alpha), self._fitted_priors()), sums)

    def _log_joint(self, chunk: Chunk) -> Array:
        return self._linear(chunk, self.feature_log_prob_) + self.class_log_prior_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
