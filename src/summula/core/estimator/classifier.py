"""Base classes of classifiers: public methods derived from the scores of a chunk of rows.

    s(x)             for two classes a single score (of the second class), else one score per class
    class of x       the second class if a single score is > 0, else argmax_k s_k, the first in case of ties        (1)
    P(class k | x)   sigmoid(s) for a single score, softmax(s)_k for several                                        (2)

Subclasses implement `_scores`, which takes a chunk; subclasses of `GenerativeClassifier` implement `_log_joint`,
log P(x, class k), for which softmax is Bayes' theorem. They may override `_score_function` to return a function that is
smaller to pickle than the estimator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import unique_labels

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_number, numbers_in
from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.rows import ROWS, PredictionWriter, ProbabilityWriter, RowFunction, RowwiseEstimator
from summula.core.estimator.scoring import accuracy

__all__ = [
    "Classifier",
    "ComparedClassifier",
    "GenerativeClassifier",
    "ProbabilisticClassifier",
    "ScoreClassifier",
    "ShareClassifier",
    "check_same_classes",
    "class_priors",
    "classes_of_parts",
    "row_weights",
    "weights_of_labels",
]

Array = NDArray[Any]


class Classifier(ClassifierMixin, PredictionWriter, RowwiseEstimator):
    """Base class of estimators that predict classes from scores."""

    _labelled = True

    def _scores(self, chunk: Chunk) -> Array:
        """Return the scores of the rows of a chunk, of shape (n, 1) or (n, n_classes)."""
        raise NotImplementedError

    def _score_function(self) -> RowFunction:
        """Return a picklable function that computes the scores of a chunk."""
        return self._scores

    @staticmethod
    def _winners(scores: Array) -> Array:
        """Return the index of the predicted class of each row, equation (1)."""
        return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)

    @inherit_docs(ROWS)
    def predict(self, X: Any) -> Any:
        """Predict the class with the largest score; ties go to the first class.

        Returns
        -------
        ndarray of shape (n_samples,) of labels; batches for a scan, a Dask array for a Dask collection
        """
        check_fitted(self)
        return self._by_row(X, self._score_function(), functools.partial(_labels, self.classes_, self._winners))

    @inherit_docs(ROWS)
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the fraction of rows whose class is predicted correctly.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or name of a column of X
            True labels; a label that did not occur in `fit` counts as an error.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        float
        """
        return accuracy(self, X, y, sample_weight)


def _labels(classes: Array, winners: Callable[[Array], Array], scores: Array) -> Array:
    return np.asarray(classes[winners(scores)])


class ScoreClassifier(Classifier):
    """Base class of classifiers with a `decision_function`."""

    @inherit_docs(ROWS)
    def decision_function(self, X: Any) -> Any:
        """Compute the scores: for two classes positive if the second is predicted, else one score per class.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes); batches for a scan
        """
        check_fitted(self)
        return self._by_row(X, self._score_function(), self._decided)

    @staticmethod
    def _decided(scores: Array) -> Array:
        """Return scores in scikit-learn's shape: one-dimensional for two classes."""
        return scores[:, 0] if scores.shape[1] == 1 else scores


class ComparedClassifier(Classifier):
    """Base class of classifiers that compare one score per class, also for two classes."""

    def _decisions(self, chunk: Chunk) -> Array:
        """Return the public scores, of shape (n, n_classes)."""
        return self._scores(chunk)

    @inherit_docs(ScoreClassifier.decision_function)
    def decision_function(self, X: Any) -> Any:
        """Compute the score of each class; for two classes the difference of the second and the first."""
        check_fitted(self)
        return self._by_row(X, self._decisions, _difference_of_two)


def _difference_of_two(scores: Array) -> Array:
    return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores


class ProbabilisticClassifier(ProbabilityWriter, Classifier):
    """Base class of classifiers with class probabilities."""

    def _probability_function(self) -> RowFunction:
        """Return the function of the scores for probabilities, if they differ from those for decisions."""
        return self._score_function()

    @inherit_docs(ROWS)
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), columns in the order of `classes_`; batches for a scan
        """
        check_fitted(self)
        return self._by_row(X, self._probability_function(), self._probabilities)

    @inherit_docs(predict_proba)
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class, accurate even for probabilities near 0.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); batches for a scan
        """
        check_fitted(self)
        return self._by_row(X, self._probability_function(), self._log_probabilities)

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


class ShareClassifier(ProbabilisticClassifier):
    """Base class of classifiers whose scores are the class probabilities (such as proportions of rows)."""

    @staticmethod
    def _winners(scores: Array) -> Array:
        return np.asarray(scores.argmax(axis=1))

    @staticmethod
    def _probabilities(scores: Array) -> Array:
        return scores

    @staticmethod
    def _log_probabilities(scores: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(scores))


class GenerativeClassifier(ProbabilisticClassifier):
    """Base class of classifiers that model each class: P(class k | x) = P(x, k) / sum_j P(x, j)."""

    def _log_joint(self, chunk: Chunk) -> Array:
        """Return log P(x, class k) of the rows of a chunk, of shape (n, n_classes)."""
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

    @inherit_docs(ProbabilisticClassifier.predict_log_proba)
    def predict_joint_log_proba(self, X: Any) -> Any:
        """Compute the joint log-probability (or log-density) of each row and class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        """
        check_fitted(self)
        return self._by_row(X, self._score_function())

    @inherit_docs(ProbabilisticClassifier.predict_log_proba)
    def score_samples(self, X: Any) -> Any:
        """Compute the log-probability (or log-density) of each row, marginalised over the classes.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_fitted(self)
        return self._by_row(X, self._score_function(), functools.partial(special.logsumexp, axis=1))


def _labels_in(classes: Any) -> Array:
    """Return the sorted labels of a parameter `classes`."""
    try:
        return np.asarray(unique_labels(classes))
    except (TypeError, ValueError):
        raise ParameterError(
            f"classes must be a list of labels: text, whole numbers or booleans; got {classes!r}."
        ) from None


def classes_of_parts(model: Any, classes: Any, *, least: int = 2) -> Array:
    """Return the classes for `partial_fit`: those passed in the first call, and checked in later calls."""
    if not hasattr(model, "classes_"):
        if classes is None:
            raise ParameterError("classes must be passed on the first call to partial_fit.")
        found = _labels_in(classes)
        if len(found) < least:
            raise DataError(
                f"The number of classes has to be greater than one; got {len(found)} class: name all classes."
            )
        return found
    if classes is not None and not np.array_equal(model.classes_, _labels_in(classes)):
        raise ParameterError(
            f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {model.classes_!r}"
        )
    return np.asarray(model.classes_)


def check_same_classes(before: Array, now: Array) -> None:
    """Raise DataError if a warm start is given other classes than the previous fit."""
    if not np.array_equal(before, now):
        raise DataError(
            f"The target y has the classes {now.tolist()}, but had {before.tolist()} in the previous fit, which "
            "warm_start=True continues; pass the same classes, or set warm_start=False."
        )


def class_priors(model: Any, weights: Array) -> Array:
    """Return the prior probability of each class: the parameter `priors`, or the class frequencies in the data."""
    if model.priors is None:
        return np.asarray(weights / weights.sum())
    priors = numbers_in("priors", model.priors)
    for fault, words in (
        (priors.shape != weights.shape, "Number of priors must match number of classes"),
        (not np.isclose(priors.sum(), 1.0), "The sum of the priors should be 1"),
        (bool((priors < 0).any()), "Priors must be non-negative"),
    ):
        if fault:
            raise ParameterError(f"{words}: got priors={model.priors!r} for the classes {model.classes_.tolist()}.")
    return priors


def row_weights(class_weight: Any, classes: Array, codes: Array, weight: Array | None) -> Array | None:
    """Return the weights of rows multiplied by those of their classes: "balanced", by label, or None."""
    if class_weight is None:
        return weight
    if isinstance(class_weight, str):
        by_row = np.asarray(compute_sample_weight("balanced", codes))
    else:
        by_row = weights_of_labels(class_weight, classes)[codes]
    return by_row if weight is None else weight * by_row


def weights_of_labels(class_weight: Mapping[Any, float], classes: Array, *, all_known: bool = True) -> Array:
    """Return the weight of each class, 1 by default; with `all_known`, any unknown label raises an error.

    Otherwise an error is raised only if no label is known, since later rows may contain the others.
    """
    known = classes.tolist()
    if not isinstance(class_weight, Mapping) or not all(is_number(one) for one in class_weight.values()):
        raise ParameterError(
            f"class_weight must be 'balanced', or a dict from labels to numbers; got {class_weight!r}."
        )
    unknown = [label for label in class_weight if label not in known]
    if unknown and (all_known or len(unknown) == len(class_weight)):
        raise ParameterError(
            f"The classes, {unknown}, are not in class_weight's data: class_weight contains labels that do not occur "
            f"in y; the labels of y are {known}."
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in known])
