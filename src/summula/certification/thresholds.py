"""Neyman-Pearson thresholds: keep one type of error below a level with high probability.

Use the k-th smallest of n scores of the class to protect as threshold t, and predict the other class only above it. The
error P(score > t) of that class exceeds alpha with probability at most

    P(Binomial(n, 1 - alpha) >= k)                                                                             (1)

for any distribution of scores; k is the smallest with (1) <= delta. It exists only if (1 - alpha)^n <= delta: 59 rows
for alpha = delta = 5 %. Reference: Tong, Feng and Li (2018), the umbrella algorithm.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import model_hash
from summula.certification.rows import check_fitted, of_blocks
from summula.core.errors import DataError, ParameterError
from summula.stats.bounds import check_delta, order_statistic

__all__ = ["NPThreshold", "np_threshold"]


@dataclass(frozen=True)
class NPThreshold:
    """A threshold on the scores of a binary classifier.

    Attributes
    ----------
    value : float
        The second class is predicted if the score is above this value.
    score : {"decision_function", "predict_proba"}
        Method that computes the score; for probabilities that of the second class.
    rank, n : int
        The threshold is the rank-th smallest of n scores of the first class.
    alpha, delta : float
        The error rate of the first class is at most alpha, except with probability delta.
    model_hash : str
    """

    value: float
    score: str
    rank: int
    n: int
    alpha: float
    delta: float
    model_hash: str
    _model: Any = field(default=None, repr=False, compare=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row with this threshold.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if model_hash(self._model) != self.model_hash:
            raise DataError("The model was refitted or changed after the threshold was computed: recompute it.")
        above = _scores(self._model, self.score, X) > self.value
        return np.asarray(np.asarray(self._model.classes_)[above.astype(np.intp)])


def np_threshold(model: Any, X: Any, y: Any = None, *, alpha: float = 0.05, delta: float = 0.05) -> NPThreshold:
    """Find the threshold at which the error rate of a classifier on its first class is at most alpha.

    Parameters
    ----------
    model : estimator
        A fitted binary classifier with `decision_function` or `predict_proba`.
    X : {array-like, frame, sparse matrix, scan, Dask collection}
        Held-out rows.
    y : array-like of shape (n_samples,), or name of a column of X, optional
        Their true classes: rows of the first class, `model.classes_[0]`, are used. Without it, all rows must be of
        that class.
    alpha : float
        Largest acceptable error rate of the first class.
    delta : float
        Probability that the error rate is larger than alpha.

    Returns
    -------
    NPThreshold
        Has `value` and `predict(X)`.

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2_000, 2)), np.repeat([0, 1], 1_000)
    >>> X[y == 1] += 1.0
    >>> model = LogisticRegression().fit(X[::2], y[::2])
    >>> careful = summula.np_threshold(model, X[1::2], y[1::2], alpha=0.05)
    >>> fresh = rng.normal(size=(10_000, 2))
    >>> bool(np.mean(careful.predict(fresh) == 1) < 0.05)
    True
    """
    alpha, delta = check_delta(alpha, "alpha"), check_delta(delta)
    check_fitted(model)
    if len(getattr(model, "classes_", ())) != 2:
        raise ParameterError(
            f"A threshold needs two classes, but {type(model).__name__} has {len(getattr(model, 'classes_', ()))}: "
            "fit a binary classifier."
        )
    score = next((name for name in ("decision_function", "predict_proba") if hasattr(model, name)), None)
    if score is None:
        raise ParameterError(
            f"{type(model).__name__} has neither decision_function nor predict_proba: use a classifier with one of "
            "them."
        )
    needed = math.ceil(math.log(delta) / math.log1p(-alpha))
    scores = np.sort(np.concatenate(of_blocks(functools.partial(_first_scores, model, score), X, y, model)))
    if not len(scores):
        raise DataError(
            f"There are no rows of the first class; {needed} are needed for alpha={alpha:g}, delta={delta:g}."
        )
    if np.isnan(scores).any():
        raise DataError("Some scores are NaN; a threshold needs a score for every row: check the features.")
    n = len(scores)
    rank = order_statistic(max(n, 1), alpha, delta)
    if rank > n:
        raise DataError(
            f"{n} rows of the first class are too few: alpha={alpha:g} and delta={delta:g} need at least {needed}."
        )
    return NPThreshold(float(scores[rank - 1]), score, rank, n, alpha, delta, model_hash(model), model)


def _first_scores(model: Any, score: str, X: Any, y: Any) -> NDArray[np.float64]:
    """Return the scores of the rows of the first class according to y, or of all rows."""
    if (X.shape[0] if hasattr(X, "shape") else len(X)) == 0:
        return np.empty(0)
    scores = _scores(model, score, X)
    if y is None:
        return scores
    truth = np.asarray(y)
    if truth.shape != scores.shape:
        raise DataError(f"y has shape {truth.shape} and X has {len(scores)} rows; give the class of each row.")
    return np.asarray(scores[truth == model.classes_[0]])


def _scores(model: Any, score: str, X: Any) -> NDArray[np.float64]:
    values = np.asarray(getattr(model, score)(X), np.float64)
    return values[:, 1] if values.ndim == 2 else values
