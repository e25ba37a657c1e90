"""Complement naive Bayes: each class is scored by the counts of all other classes, which suits imbalanced classes.

With N_j the sum of column j over all rows and N_kj that of class k,

    c_kj = log (N_j - N_kj + alpha_j) / sum_j (N_j - N_kj + alpha_j),     score of k = - sum_j x_j c_kj

or, with `norm`, the weights c_kj / sum_j c_kj. The score of a class is large if its complement makes a row unlikely.
A missing count (NaN) is excluded from the sums of its column, and from the score.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import Allowed, boolean
from summula.core.model_files import schema
from summula.naive_bayes.class_totals import ClassTotals, Counts
from summula.naive_bayes.count_fits import ComplementFit, sums_of_others
from summula.naive_bayes.discrete_nb import PARAMETERS, CountNB

__all__ = ["ComplementNB"]

Array = NDArray[np.float64]


@inherit_docs()
@schema.saved(feature_all_=schema.Array("float64", "n_features"))
class ComplementNB(CountNB):
    """Complement naive Bayes for counts; missing values are ignored.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count added to every column.
    fit_prior : bool, default=True
        Used only if there is a single class.
    class_prior : array-like of shape (n_classes,), optional
        Ignored, as in scikit-learn.
    norm : bool, default=False
        Whether to divide the weights of a class by their sum.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Sums of columns, and weights of the score, by class.
    feature_all_ : ndarray of shape (n_features,)
        Sums of columns over all rows.

    References
    ----------
    Rennie, Shih, Teevan, Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers.

    Examples
    --------
    >>> from summula.naive_bayes import ComplementNB
    >>> words = [[2, 1, 0], [3, 0, 0], [0, 1, 4]]
    >>> ComplementNB().fit(words, ["spam", "spam", "ham"]).predict([[1, 0, 0], [0, 1, 1]])
    array(['spam', 'ham'], dtype='<U4')
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {**PARAMETERS, "norm": (boolean,)}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ) -> None:
        self.alpha, self.force_alpha, self.fit_prior, self.class_prior = alpha, force_alpha, fit_prior, class_prior
        self.norm = norm

    def _counted(self) -> Counts:
        return Counts(type(self).__name__)

    def _solve(self, sums: ClassTotals) -> None:
        self._check_range(sums)
        self._name_priors(sums.weight)
        self.feature_count_, self.feature_all_ = sums.total, sums.total.sum(axis=0)
        alpha = self._smoothing()
        others = sums_of_others(sums.total) + alpha
        with np.errstate(divide="ignore", invalid="ignore"):
            c = np.log(others / others.sum(axis=1, keepdims=True))
            self.feature_log_prob_ = c / c.sum(axis=1, keepdims=True) if self.norm else -c
        self._certify(ComplementFit(c, self._by_column(alpha), self._fitted_priors()), sums)

    def _log_joint(self, chunk: Chunk) -> Array:
        scores = self._linear(chunk, self.feature_log_prob_)
        if len(self.classes_) == 1:
            return scores + self.class_log_prior_
        scores[:, self.class_count_ == 0] = -np.inf  # a class without rows is never predicted
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
