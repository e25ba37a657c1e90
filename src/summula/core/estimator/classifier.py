"""Base classes of classifiers: everything that follows from the scores of a chunk of rows.

    s(x)             one score for two classes (of the second), or one per class
    class of x       the second of two where s > 0, else that of the largest score; of equal ones the first         (1)
    P(class k | x)   sigmoid(s) for a single score, softmax(s)_k for several                                        (2)

An author derives from one of these and writes `_scores`, a method of a chunk; a `GenerativeClassifier` writes
`_log_joint`, log P(x, class k), for which softmax is Bayes' theorem. `_score_function` may be overridden by a function
that is smaller to send to another process than the estimator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.rows import PredictionWriter, ProbabilityWriter, RowFunction, RowwiseEstimator
from summula.core.estimator.scoring import accuracy

__all__ = [
    "Classifier",
    "GenerativeClassifier",
    "ProbabilisticClassifier",
    "ScoreClassifier",
    "class_priors",
    "classes_of_parts",
    "weights_of_labels",
]

Array = NDArray[Any]


class Classifier(ClassifierMixin, PredictionWriter, RowwiseEstimator):
    """Classes by the scores of rows."""

    _labelled = True

    def _scores(self, chunk: Chunk) -> Array:
        """The scores of the rows of a chunk, shape (n, 1) or (n, n_classes)."""
        raise NotImplementedError

    def _score_function(self) -> RowFunction:
        """What gives the scores of a chunk; it can be sent to another process."""
        return self._scores

    @staticmethod
    def _winners(scores: Array) -> Array:
        """The code of the class (1) of every row."""
        return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def predict(self, X: Any) -> Any:
        """The class with the largest score; of several with exactly this score the first.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) of labels; batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), functools.partial(_labels, self.classes_, self._winners))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy: the share of rows whose class is predicted.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
            The true labels; one that the fit has not seen is never predicted.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        float
        """
        return accuracy(self, super().score, X, y, sample_weight)


def _labels(classes: Array, winners: Callable[[Array], Array], scores: Array) -> Array:
    return np.asarray(classes[winners(scores)])


class ScoreClassifier(Classifier):
    """Classes by scores that are shown."""

    def decision_function(self, X: Any) -> Any:
        """The scores: positive for the second of two classes, or one score per class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), self._decided)

    @staticmethod
    def _decided(scores: Array) -> Array:
        """Scores as scikit-learn shapes them."""
        return scores[:, 0] if scores.shape[1] == 1 else scores


class ProbabilisticClassifier(ProbabilityWriter, Classifier):
    """Classes, and their probabilities, by the scores of rows."""

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), columns in the order of `classes_`; batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), self._probabilities)

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of the probability of each class, exact also where the probability is nearly 0.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), self._log_probabilities)

    @staticmethod
    def _probabilities(scores: Array) -> Array:
        """Equation (2)."""
        if scores.shape[1] == 1:
            p = special.expit(scores[:, 0])
            return np.column_stack([1 - p, p])
        return np.asarray(special.softmax(scores, axis=1))

    @staticmethod
    def _log_probabilities(scores: Array) -> Array:
        if scores.shape[1] == 1:
            return np.column_stack([special.log_expit(-scores[:, 0]), special.log_expit(scores[:, 0])])
        return np.asarray(special.log_softmax(scores, axis=1))


class GenerativeClassifier(ProbabilisticClassifier):
    """Classes by models of the rows of each: P(class k | x) = P(x, k) / sum_j P(x, j)."""

    def _log_joint(self, chunk: Chunk) -> Array:
        """log P(x, class k) of the rows of a chunk, shape (n, n_classes)."""
        raise NotImplementedError

    def _scores(self, chunk: Chunk) -> Array:
        return self._log_joint(chunk)

    @staticmethod
    def _winners(scores: Array) -> Array:
        return np.asarray(scores.argmax(axis=1))

    @staticmethod
    def _probabilities(scores: Array) -> Array:
        return np.asarray(special.softmax(scores, axis=1))

    @staticmethod
    def _log_probabilities(scores: Array) -> Array:
        return np.asarray(special.log_softmax(scores, axis=1))

    def predict_joint_log_proba(self, X: Any) -> Any:
        """The logarithm of the joint probability (or density) of the row and each class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function())

    def score_samples(self, X: Any) -> Any:
        """The logarithm of the probability (or density) of each row, whatever its class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), functools.partial(special.logsumexp, axis=1))


def classes_of_parts(model: Any, classes: Any, *, least: int = 2) -> Array:
    """The classes of a model that is given its rows part by part: the first call has to say which they are."""
    if not hasattr(model, "classes_"):
        if classes is None:
            raise ParameterError("classes must be passed on the first call to partial_fit.")
        found = np.asarray(unique_labels(classes))
        if len(found) < least:
            raise DataError(
                f"The number of classes has to be greater than one; got {len(found)} class: name all classes."
            )
        return found
    if classes is not None and not np.array_equal(model.classes_, unique_labels(classes)):
        raise ParameterError(
            f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {model.classes_!r}"
        )
    return np.asarray(model.classes_)


def class_priors(model: Any, weights: Array) -> Array:
    """The probability of each class: the parameter `priors` of a fitted model, or the share of the rows' weight."""
    if model.priors is None:
        return np.asarray(weights / weights.sum())
    priors = np.asarray(model.priors, np.float64)
    for fault, words in (
        (priors.shape != weights.shape, "Number of priors must match number of classes"),
        (not np.isclose(priors.sum(), 1.0), "The sum of the priors should be 1"),
        (bool((priors < 0).any()), "Priors must be non-negative"),
    ):
        if fault:
            raise ParameterError(f"{words}: got priors={model.priors!r} for the classes {model.classes_.tolist()}.")
    return priors


def weights_of_labels(class_weight: Mapping[Any, float], classes: Array, *, all_known: bool = True) -> Array:
    """The weight of each class, 1 where none is given; `all_known` refuses any label that is no class.

    (Otherwise only weights without a single known label are refused: some rows may still be to come.)
    """
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown and (all_known or len(unknown) == len(class_weight)):
        raise ParameterError(
            f"The classes, {unknown}, are not in class_weight's data: class_weight names labels that y does not "
            f"have; its labels are {known}."
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in known])
