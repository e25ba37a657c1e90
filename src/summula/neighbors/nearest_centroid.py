"""Nearest centroid classification: each class is represented by its mean.

With the mean c_k of class k, pooled standard deviations s_j within classes and priors pi_k,

    class of x = argmin_k ||x - c_k||                       for equal priors                                    (1)
    score      = 2 log pi_k - sum_j (x_j - c_kj)^2 / s_j^2                                                      (2)

For two classes the decision boundary of (1) is the plane w.x = w.(c_0 + c_1) / 2 with w = c_1 - c_0. `adjust` shifts it
along w to minimise the number of errors on the training rows:

    w.x > t,   t = argmin of the weight of rows on the wrong side                                               (3)

`shrink_threshold` shrinks the means towards that of all rows, by this number of standard errors, which removes columns
that do not separate the classes (nearest shrunken centroids; Tibshirani, Hastie, Narasimhan and Chu 2002).
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if

from summula.core.data.chunks import Chunk, Part
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.certificates import SAVED_CERTIFICATE, StatisticCertificate
from summula.core.estimator.classifier import ComparedClassifier, ProbabilisticClassifier
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, none, one_of, real
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments
from summula.neighbors.centroid_fit import CentroidFit, Spread, soft_threshold

__all__ = ["NearestCentroid"]

Array = NDArray[np.float64]


def _is_additive(model: Any) -> bool:
    if model.metric == "manhattan" or model.adjust:
        raise ParameterError(
            "Medians (metric='manhattan') and adjusted boundaries (adjust=True) need all rows: fit again on them."
        )
    return True


def _has_scores(model: Any) -> bool:
    return bool(model.metric == "euclidean")


def _has_probabilities(model: Any) -> bool:
    return bool(model.metric == "euclidean" and not model.adjust)


@inherit_docs()
@schema.saved(
    centroids_=schema.Array("float64", "n_classes", "n_features"),
    deviations_=schema.Array("float64", "n_classes", "n_features"),
    within_class_std_dev_=schema.Array("float64", "n_features", low=0.0),
    class_prior_=schema.Array("float64", "n_classes", low=0.0),
    class_count_=schema.Array("float64", "n_classes", low=0.0),
    threshold_=schema.Maybe(schema.Real()),
    certificate_=schema.Maybe(SAVED_CERTIFICATE),
)
class NearestCentroid(AdditiveClassifier, ComparedClassifier, ProbabilisticClassifier):
    """Nearest centroid classifier.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}, default="euclidean"
        Distance. Centroids are means, or medians for "manhattan", which need the rows in memory.
    shrink_threshold : float, optional
        Number of standard errors by which means are shrunk towards that of all rows.
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default="uniform"
        Class probabilities: equal, the class proportions, or an array.
    adjust : bool, default=False
        Whether to shift the decision boundary of two classes along the line through their means to minimise the number
        of errors on the training rows (3). Needs a second pass over the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    centroids_ : ndarray of shape (n_classes, n_features)
    class_prior_, class_count_ : ndarray of shape (n_classes,)
    deviations_ : ndarray of shape (n_classes, n_features)
        Deviations of the means from that of all rows, in standard errors, after shrinkage.
    within_class_std_dev_ : ndarray of shape (n_features,)
    threshold_ : float
        t of (3), with `adjust`.
    certificate_ : StatisticCertificate
        The sum of squares minimised by the means (`centroid_fit`), and its suboptimality; not available for medians.

    Notes
    -----
    With equal priors, `predict` returns the nearest centroid (1), while `decision_function` and `predict_proba` compare
    rows in units of the pooled standard deviations (2), as in scikit-learn: they agree on standardised columns. For
    "manhattan", squares in (2) are those of the sum of absolute differences, and deviations are about the medians.

    References
    ----------
    Tibshirani, Hastie, Narasimhan, Chu (2002), Diagnosis of multiple cancer types by shrunken centroids.

    Examples
    --------
    >>> from summula.neighbors import NearestCentroid
    >>> X, y = [[0.0], [1.0], [1.5], [4.0], [9.0]], ["a", "a", "a", "b", "b"]
    >>> NearestCentroid().fit(X, y).predict([[3.2]]), NearestCentroid(adjust=True).fit(X, y).predict([[3.2]])
    (array(['a'], dtype='<U1'), array(['b'], dtype='<U1'))
    """

    _statistic = Moments
    _fewest_classes = 2
    _standardises = True
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "metric": (one_of("euclidean", "manhattan"),),
        "shrink_threshold": (none, real(0.0, open_low=True)),
        "priors": (one_of("uniform", "empirical"), array_like),
        "adjust": (boolean,),
    }
    threshold_: float

    def __init__(
        self,
        metric: str = "euclidean",
        *,
        shrink_threshold: float | None = None,
        priors: Any = "uniform",
        adjust: bool = False,
    ) -> None:
        self.metric, self.shrink_threshold, self.priors, self.adjust = metric, shrink_threshold, priors, adjust

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
        """
        with self._fitting(X, y, sample_weight) as run:
            self._begin(run)
            self.__dict__.pop("threshold_", None)
            if self.adjust and (len(self.classes_) != 2 or self.metric != "euclidean"):
                raise ParameterError(
                    f"adjust=True shifts the boundary of two classes, with metric='euclidean'; there are "
                    f"{len(self.classes_)}, with metric={self.metric!r}: use adjust=False."
                )
            medians = self._medians(run) if self.metric == "manhattan" else None
            self._use_sums(self._sums_of(run), run.source.weighted)
            if medians is not None:
                self.centroids_ = self._shrunk(self._sums, medians)
            if self.adjust:
                self.threshold_ = self._best_threshold(run)
        return self

    partial_fit = available_if(_is_additive)(AdditiveClassifier.partial_fit)
    forget = available_if(_is_additive)(AdditiveClassifier.forget)
    merge = available_if(_is_additive)(AdditiveClassifier.merge)

    def _medians(self, run: Run) -> Array:
        """Return the medians of the classes, column by column; they are not sums, so the rows must be in memory."""
        if run.source.streams:
            raise DataError(
                "NearestCentroid with metric='manhattan' needs medians, and therefore its rows in memory: use "
                "metric='euclidean' for files and Dask collections, or pass an array of some of the rows."
            )
        chunk = run.source.chunk(0, run.source.n_rows)
        X, codes = chunk.block(np.float64), np.asarray(chunk.codes)
        return np.stack([_median(X[codes == k], chunk.weight, codes == k) for k in range(len(self.classes_))])

    def _solve(self, sums: Moments) -> None:
        W = self.class_count_ = np.array(sums.weight[:, 0])
        self.class_prior_ = self._priors(W)
        self.centroids_ = self._shrunk(sums, np.nan_to_num(sums.mean))
        self.__dict__.pop("certificate_", None)
        if self.metric == "euclidean":
            fit = CentroidFit(self.centroids_, self.deviations_, self.shrink_threshold)
            self.certificate_ = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)

    def _shrunk(self, sums: Moments, centroids: Array) -> Array:
        """Set the pooled deviations, and shrink the centroids if requested."""
        spread = Spread.of(sums, centroids)
        self.within_class_std_dev_ = spread.within
        self.deviations_ = spread.standardised(centroids)
        if self.shrink_threshold is None:
            return centroids
        if not self.within_class_std_dev_.any():
            raise DataError("All features have zero variance. Division by zero: use shrink_threshold=None.")
        self.deviations_ = soft_threshold(self.deviations_, float(self.shrink_threshold))
        return spread.centroids(self.deviations_)

    def _priors(self, W: Array) -> Array:
        K = len(W)
        if isinstance(self.priors, str):
            return np.asarray(W / W.sum() if self.priors == "empirical" else np.full(K, 1 / K))
        try:
            priors = numbers_in("priors", self.priors)
        except (TypeError, ValueError):
            raise ParameterError(f"priors must be numbers; got {self.priors!r}.") from None
        if priors.shape != (K,):
            raise ParameterError(f"priors must have one number for each of {K} classes; got shape {priors.shape}.")
        if (priors < 0).any():
            raise ParameterError("priors must be non-negative")
        if not np.isfinite(priors).all() or not priors.any():
            raise ParameterError(f"priors must be finite numbers, not all of them 0; got {self.priors!r}.")
        if not np.isclose(priors.sum(), 1.0):
            warn("The priors do not sum to 1. Normalizing such that it sums to one.", UserWarning)
        return np.asarray(priors / priors.sum())

    # ---- the adjusted boundary

    def _best_threshold(self, run: Run) -> float:
        """Return t of (3), from the positions of all rows along the line through the means."""
        w = self.centroids_[1] - self.centroids_[0]
        parts = [*run.each(functools.partial(_positions, w))]
        x, own, weight = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        order = np.argsort(x, kind="stable")
        order = order[weight[order] > 0]
        x, own, weight = x[order], own[order], weight[order]
        # With the boundary after row i, rows of class 1 up to i and rows of class 0 after it are misclassified.
        ones = np.concatenate([[0.0], np.cumsum(weight * (own == 1))])
        zeros = np.concatenate([[0.0], np.cumsum(weight * (own == 0))])
        errors = ones + zeros[-1] - zeros
        between = np.concatenate([[True], x[1:] > x[:-1], [True]])  # equal positions are on the same side
        best = np.flatnonzero(between & (errors <= errors[between].min() + 1e-12 * weight.sum()))
        middle = float(w @ self.centroids_.sum(axis=0)) / 2
        edges = np.concatenate([[x[0] - 1.0], (x[1:] + x[:-1]) / 2, [x[-1] + 1.0]])[best]
        return float(edges[np.argmin(np.abs(edges - middle))])  # ties go to the threshold nearest to the midpoint

    # ---- results for rows

    def _scores(self, chunk: Chunk) -> Array:
        """Return negative distances if (1) decides, else the scores (2)."""
        if hasattr(self, "threshold_"):
            along = chunk.times(self.centroids_[1] - self.centroids_[0]) - self.threshold_
            return np.column_stack([-along, along])
        if not self._is_uniform():
            return self._discriminants(chunk)
        X = chunk.block(np.float64)
        with np.errstate(divide="ignore"):
            scores = np.tile(np.where(self.class_count_ > 0, 0.0, -np.inf), (len(chunk), 1))
        for k in np.flatnonzero(self.class_count_):
            away = X - self.centroids_[k]
            scores[:, k] -= np.abs(away).sum(axis=1) if self.metric == "manhattan" else (away * away).sum(axis=1)
        return scores

    def _is_uniform(self) -> bool:
        return bool(np.isclose(self.class_prior_, 1 / len(self.class_prior_)).all())

    def _discriminants(self, chunk: Chunk) -> Array:
        X, s = chunk.block(np.float64), self.within_class_std_dev_
        scale = np.where(s > 0, s, 1.0)
        with np.errstate(divide="ignore"):
            scores = np.tile(2 * np.log(np.where(self.class_count_ > 0, self.class_prior_, 0.0)), (len(chunk), 1))
        for k in np.flatnonzero(self.class_count_):
            away = (X - self.centroids_[k]) / scale
            is_l1 = self.metric == "manhattan"
            scores[:, k] -= np.abs(away).sum(axis=1) ** 2 if is_l1 else (away * away).sum(axis=1)
        return scores

    @staticmethod
    def _winners(scores: Array) -> Array:
        return np.asarray(scores.argmax(axis=1))

    def _decisions(self, chunk: Chunk) -> Array:
        return self._scores(chunk) if hasattr(self, "threshold_") else self._discriminants(chunk)

    def _probability_function(self) -> RowFunction:
        return self._discriminants  # independent normal columns with the pooled deviations

    decision_function = available_if(_has_scores)(ComparedClassifier.decision_function)
    predict_proba = available_if(_has_probabilities)(ProbabilisticClassifier.predict_proba)
    predict_log_proba = available_if(_has_probabilities)(ProbabilisticClassifier.predict_log_proba)


def _positions(w: Array, part: Part) -> tuple[Array, NDArray[Any], Array]:
    """Return the positions of the rows of a part along w, their classes and their weights."""
    x, own, weight = [], [], []
    for chunk in part.chunks():
        assert chunk.codes is not None
        x.append(np.asarray(chunk.times(w), np.float64))
        own.append(chunk.codes)
        weight.append(chunk.weights)
    return np.concatenate(x), np.concatenate(own), np.concatenate(weight)


def _median(X: Array, weight: Array | None, own: NDArray[np.bool_]) -> Array:
    """Return the weighted medians of columns."""
    if not len(X):
        return np.zeros(X.shape[1])
    if weight is None:
        return np.asarray(np.median(X, axis=0))
    w, medians = weight[own], np.empty(X.shape[1])
    for j, column in enumerate(X.T):
        order = np.argsort(column, kind="stable")
        below = np.cumsum(w[order])
        half, values = below[-1] / 2, column[order]
        low, high = np.searchsorted(below, half), np.searchsorted(below, half, side="right")
        medians[j] = (values[low] + values[min(high, len(values) - 1)]) / 2
    return medians
