"""A threshold on scores that keeps one kind of error below a level, with a known probability (Neyman-Pearson).

Of n rows of the class that must not be mistaken, take the k-th smallest score as threshold t and call the other class
only above it. The error P(score > t) of that class exceeds alpha with probability at most

    P(Binomial(n, 1 - alpha) >= k)                                                                             (1)

whatever the scores are; k is the smallest with (1) <= delta. There is none unless (1 - alpha)^n <= delta: 59 rows at
alpha = delta = 5 %. Reference: Tong, Feng and Li (2018), the umbrella algorithm.
"""

from __future__ import annotations

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
    """A threshold on the scores of a classifier of two classes.

    Attributes
    ----------
    value : float
        Call the second class where the score lies above.
    score : {"decision_function", "predict_proba"}
        Which score it is about; of probabilities, that of the second class.
    rank, n : int
        It is the rank-th smallest of n scores of the first class.
    alpha, delta : float
        The first class is mistaken with probability at most alpha; this is false with probability at most delta.
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
        """The class of each row by this threshold.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if model_hash(self._model) != self.model_hash:
            raise DataError("The model was fitted or changed after the threshold was found: find it anew.")
        above = _scores(self._model, self.score, X) > self.value
        return np.asarray(np.asarray(self._model.classes_)[above.astype(np.intp)])


def np_threshold(model: Any, X0: Any, alpha: float = 0.05, delta: float = 0.05) -> NPThreshold:
    """Find the threshold at which a classifier mistakes its first class with probability at most alpha.

    Parameters
    ----------
    model : estimator
        A fitted classifier of two classes with `decision_function` or `predict_proba`.
    X0 : {array-like, frame, sparse matrix, scan, Dask collection}
        Rows of the first class, `model.classes_[0]`, that were not used in the fit.
    alpha : float
        The largest error of the first class that is in order.
    delta : float
        The chance that the error is larger than that.

    Returns
    -------
    NPThreshold
        With `value` and `predict(X)`.

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2_000, 2)), np.repeat([0, 1], 1_000)
    >>> X[y == 1] += 1.0
    >>> model = LogisticRegression().fit(X[::2], y[::2])
    >>> careful = summula.np_threshold(model, X[1::2][y[1::2] == 0], alpha=0.05)
    >>> fresh = rng.normal(size=(10_000, 2))
    >>> bool(np.mean(careful.predict(fresh) == 1) < 0.05)
    True
    """
    alpha, delta = check_delta(alpha, "alpha"), check_delta(delta)
    check_fitted(model)
    if len(getattr(model, "classes_", ())) != 2:
        raise ParameterError(
            f"A threshold is for two classes, and {type(model).__name__} has {len(getattr(model, 'classes_', ()))}: "
            "fit a classifier of two classes."
        )
    score = next((name for name in ("decision_function", "predict_proba") if hasattr(model, name)), None)
    if score is None:
        raise ParameterError(
            f"{type(model).__name__} has neither decision_function nor predict_proba, so it gives no score to cut: "
            "use a classifier that has one."
        )
    needed = math.ceil(math.log(delta) / math.log1p(-alpha))
    n = X0.shape[0] if hasattr(X0, "shape") else len(X0)
    if isinstance(n, int | np.integer) and n == 0:
        raise DataError(
            f"There are no rows of the first class; {needed} are needed for alpha={alpha:g}, delta={delta:g}."
        )
    found = of_blocks(lambda block, _: _scores(model, score, block), X0, None, model)
    scores = np.sort(np.concatenate(found))
    if np.isnan(scores).any():
        raise DataError("Some scores are NaN; a threshold needs one for every row: check the features.")
    n = len(scores)
    rank = order_statistic(max(n, 1), alpha, delta)
    if rank > n:
        raise DataError(
            f"{n} rows of the first class are too few to say anything: alpha={alpha:g} and delta={delta:g} need at "
            f"least {needed}."
        )
    return NPThreshold(float(scores[rank - 1]), score, rank, n, alpha, delta, model_hash(model), model)


def _scores(model: Any, score: str, X: Any) -> NDArray[np.float64]:
    values = np.asarray(getattr(model, score)(X), np.float64)
    return values[:, 1] if values.ndim == 2 else values
