"""Baseline models: predict the mean of the target or its most frequent class, computed from one sum.

    mean = o + s / W,     frequency of class k = W_k / W                                                        (1)

with W the sum of weights, W_k that of class k, and s the sum of the target about an origin o.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.data.chunks import Chunk
from summula.core.data.printable import shortened
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import draw_seed, stream_key, uniform
from summula.core.errors import ParameterError
from summula.core.estimator.classifier import ShareClassifier
from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.parameters import Parameters, none, one_of, random_state, real
from summula.core.estimator.regressor import Regressor, check_one_target
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.sums import CONCATENATED, Sum

__all__ = ["DummyClassifier", "DummyRegressor"]

Array = NDArray[Any]


@dataclass(frozen=True)
class TargetSums(Sum):
    """Sum of weights, and of the target about an origin, or weights per class.

    `params` is ("mean", origin) or ("classes", number of classes).
    """

    weight: float
    total: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[str, float]) -> Self:
        """Return the sums over one chunk."""
        w = chunk.weights
        what, value = params
        if what == "classes":
            return cls(float(w.sum()), np.bincount(np.asarray(chunk.codes), w, int(value)))
        return cls(float(w.sum()), np.array([w @ (chunk.target.astype(np.float64) - value)]))


def _repeated(value: Array, chunk: Chunk) -> Array:
    return np.repeat(value, len(chunk), axis=0)


def _drawn(shares: Array, key: int, chunk: Chunk) -> Array:
    """Return indicators of the classes drawn for the rows of a chunk with probabilities `shares`."""
    draws = uniform(key, range(chunk.start, chunk.stop)) * shares.sum()
    codes = np.searchsorted(np.cumsum(shares)[:-1], draws, side="right")
    return np.asarray(codes[:, None] == np.arange(len(shares)), np.float64)


@dataclass(frozen=True)
class TargetValues(Sum):
    """All values of the target, and their weights."""

    y: Array = field(metadata=CONCATENATED)
    weight: Array = field(metadata=CONCATENATED)

    @classmethod
    def map(cls, chunk: Chunk, params: None) -> Self:
        """Return the values of one chunk."""
        return cls(chunk.target.astype(np.float64), np.asarray(chunk.weights))

    def quantile(self, q: float) -> float:
        """Return the weighted q-quantile; if two values qualify, their midpoint."""
        order = np.argsort(self.y, kind="stable")
        y, below = self.y[order], np.cumsum(self.weight[order])
        y, below = y[self.weight[order] > 0], below[self.weight[order] > 0]
        target = q * below[-1]
        low = int(np.searchsorted(below, target * (1 - 1e-12)))
        high = min(low + 1, len(y) - 1) if abs(below[low] - target) <= 1e-12 * below[-1] else low
        return float((y[low] + y[high]) / 2)


@inherit_docs()
@schema.saved(constant_=schema.Array("float64", 1, 1))
class DummyRegressor(Regressor):
    """Predict a constant, as a baseline for other regressors.

    Parameters
    ----------
    strategy : {"mean", "median", "quantile", "constant"}, default="mean"
        Statistic of the training targets to predict. The mean minimises the squared error, the median the absolute
        error.
    constant : float, optional
        Value predicted by strategy "constant".
    quantile : float, optional
        Quantile to predict with strategy "quantile", from 0 to 1.

    Attributes
    ----------
    constant_ : ndarray of shape (1, 1)
        The predicted value.
    n_outputs_ : int
        Number of targets, which is 1.

    Examples
    --------
    >>> from summula.dummy import DummyRegressor
    >>> DummyRegressor().fit([[0.0], [1.0]], [1.0, 3.0]).predict([[5.0]])
    array([2.])
    """

    _parameters: ClassVar[Parameters] = {
        "strategy": (one_of("mean", "median", "quantile", "constant"),),
        "constant": (none, real()),
        "quantile": (none, real(0.0, 1.0)),
    }

    def __init__(self, *, strategy: str = "mean", constant: float | None = None, quantile: float | None = None) -> None:
        self.strategy = strategy
        self.constant = constant
        self.quantile = quantile

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DummyRegressor:
        """Compute the constant.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Ignored, apart from the number and names of the columns.
        sample_weight : array-like of shape (n_samples,), optional
        """
        with self._fitting(X, y, sample_weight) as run:
            check_one_target(run, y)
            self.constant_ = np.array([[self._number(run)]])
        return self

    @property
    def n_outputs_(self) -> int:
        check_fitted(self)
        return 1

    def _number(self, run: Run) -> float:
        if self.strategy == "mean":
            origin = float(run.origin()[-1])
            sums = run.sum(TargetSums, ("mean", origin))
            return origin + float(sums.total[0]) / sums.weight
        if self.strategy == "constant":
            if self.constant is None:
                raise ParameterError("DummyRegressor(strategy='constant') needs a number: pass constant=.")
            return float(self.constant)
        if self.strategy == "quantile" and self.quantile is None:
            raise ParameterError("DummyRegressor(strategy='quantile') needs a number from 0 to 1: pass quantile=.")
        q = 0.5 if self.strategy == "median" else float(self.quantile or 0.0)
        return run.sum(TargetValues, None).quantile(q)

    def _row_function(self) -> RowFunction:
        return partial(_repeated, self.constant_[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = tags.input_tags.allow_nan = True
        return tags


@inherit_docs()
@schema.saved(
    classes_=schema.Labels("n_classes"),
    class_prior_=schema.Array("float64", "n_classes", low=0.0, high=1.0),
)
class DummyClassifier(ShareClassifier):
    """Predict the most frequent class, as a baseline for other classifiers.

    Parameters
    ----------
    strategy : {"prior", "most_frequent", "stratified", "uniform", "constant"}, default="prior"
        "prior" predicts the class frequencies as probabilities, and the most frequent class; "most_frequent" and
        "constant" predict probability 1 for one class. "stratified" draws the class of each row by the frequencies,
        with probability 1; "uniform" draws among all classes, which have equal probabilities.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the classes drawn by "stratified" and "uniform": an int draws the same in every call.
    constant : label, optional
        Class predicted by strategy "constant".

    Attributes
    ----------
    classes_ : ndarray
    class_prior_ : ndarray
        Frequency of each class.
    n_classes_, n_outputs_ : int
        Number of classes, and of targets, which is 1.

    Examples
    --------
    >>> from summula.dummy import DummyClassifier
    >>> DummyClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]).predict([[5.0]]).tolist()
    ['b']
    """

    _fewest_classes = 1
    _parameters: ClassVar[Parameters] = {
        "strategy": (one_of("prior", "most_frequent", "stratified", "uniform", "constant"),),
        "random_state": (random_state,),
    }

    def __init__(self, *, strategy: str = "prior", random_state: Any = None, constant: Any = None) -> None:
        self.strategy = strategy
        self.random_state = random_state
        self.constant = constant

    @with_callbacks
    @inherit_docs(DummyRegressor.fit)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DummyClassifier:
        """Count the classes."""
        with self._fitting(X, y, sample_weight) as run:
            sums = run.sum(TargetSums, ("classes", len(self.classes_)))
            self.class_prior_ = sums.total / sums.weight
            if self.strategy == "constant":
                self._place_of_constant()
        return self

    def _place_of_constant(self) -> int:
        labels = self.classes_.tolist()
        try:
            return {label: place for place, label in enumerate(labels)}[self.constant]
        except (KeyError, TypeError):  # TypeError: lists and arrays are no keys
            raise ParameterError(
                f"DummyClassifier(constant={shortened(repr(self.constant))}) is not a class of the target; choose from "
                f"{labels[:10]}."
            ) from None

    @property
    def n_classes_(self) -> int:
        check_fitted(self)
        return len(self.classes_)

    @property
    def n_outputs_(self) -> int:
        check_fitted(self)
        return 1

    def _score_function(self) -> RowFunction:
        scores = self.class_prior_
        if self.strategy in {"stratified", "uniform"}:
            shares = scores if self.strategy == "stratified" else np.full(len(scores), 1 / len(scores))
            return partial(_drawn, shares, stream_key(draw_seed(self.random_state)))
        if self.strategy != "prior":
            place = self._place_of_constant() if self.strategy == "constant" else scores.argmax()
            scores = (np.arange(len(scores)) == place).astype(np.float64)
        return partial(_repeated, scores[None, :])

    def _probability_function(self) -> RowFunction:
        if self.strategy == "uniform":
            return partial(_repeated, np.full((1, len(self.classes_)), 1 / len(self.classes_)))
        return super()._probability_function()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = tags.input_tags.allow_nan = True
        return tags


@schema.saved("cli.BaselineRegressor", mean_=schema.Real())
class BaselineRegressor(Regressor):
    """Predict the mean of the target; kept to load files of earlier versions."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaselineRegressor:
        """Compute the mean of y."""
        with self._fitting(X, y, sample_weight) as run:
            origin = float(run.origin()[-1])
            sums = run.sum(TargetSums, ("mean", origin))
            self.mean_ = origin + float(sums.total[0]) / sums.weight
        return self

    def _row_function(self) -> RowFunction:
        return partial(_repeated, np.array([self.mean_]))


@schema.saved(
    "cli.BaselineClassifier",
    classes_=schema.Labels("n_classes"),
    shares_=schema.Array("float64", "n_classes", low=0.0, high=1.0),
)
class BaselineClassifier(ShareClassifier):
    """Predict the most frequent class; kept to load files of earlier versions."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaselineClassifier:
        """Count the classes."""
        with self._fitting(X, y, sample_weight) as run:
            sums = run.sum(TargetSums, ("classes", len(self.classes_)))
            self.shares_ = sums.total / sums.weight
        return self

    def _score_function(self) -> RowFunction:
        return partial(_repeated, self.shares_[None, :])
