"""Support vector machines as candidates of a training run, with a choice of C and calibrated probabilities.

    machine       Gaussian kernel up to `max_exact` rows, beyond that the same kernel by Nystroem columns and a linear
                  machine
    C             the one with the smallest out-of-fold loss in three folds, among a few                            (1)
    calibration   P(class k | x) = softmax_k of a linear function of the scores s(x), fitted by logistic regression to
                  the out-of-fold scores (Platt, 1999)                                                              (2)

Columns are assumed to be scaled, as by `TableEncoder(standardize=True)`. Targets of regression are standardised,
so that C and epsilon have the same meaning for all tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.engine.random import permutation, stream_key
from summula.core.errors import TimeLimitError
from summula.core.estimator.parameters import (
    Allowed,
    Parameters,
    check_parameters,
    integer,
    mapping,
    none,
    one_of,
    real,
)
from summula.core.model_files import schema
from summula.kernel_approximation import Nystroem
from summula.linear_model import LogisticRegression
from summula.svm import SVC, SVR, LinearSVC, LinearSVR
from summula.training.models.base import ArrayClassifier, ArrayModel, rows_as_array

__all__ = ["CalibratedSVC", "ScaledSVR"]

Array = NDArray[Any]

_FOLDS = 3
_TINY = 1e-15
_EPSILON = 0.1  # in standard deviations of the target


def _are_positive(values: Any) -> bool:
    numbers = isinstance(values, list | tuple) and all(isinstance(one, int | float) for one in values)
    return bool(numbers and len(values) and all(0.0 < one < np.inf for one in values))


_SETTINGS: dict[str, tuple[Allowed, ...]] = {
    "Cs": (Allowed(_are_positive, "a tuple of positive numbers"),),
    "max_exact": (integer(0),),
    "n_components": (integer(1),),
    "random_state": (integer(0),),
    "max_time": (none, real(0.0)),
}


def _parts_agree(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: the map and the machine have matching numbers of columns."""
    width = sizes["n_features"]
    if model.map_ is not None:
        if model.map_.n_features_in_ != width:
            return f"map_ takes {model.map_.n_features_in_} columns, not {width}"
        width = len(model.map_.get_feature_names_out())
    if model.machine_.n_features_in_ != width:
        return f"machine_ takes {model.machine_.n_features_in_} columns, not {width}"
    return None


def _calibration_agrees(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: the calibration matches the scores and classes of the machine."""
    n = sizes["n_classes"]
    if len(model.calibration_.classes_) != n:
        return f"calibration_ is not of {n} classes"
    if not np.array_equal(model.machine_.classes_, np.arange(n)):  # columns of the array of scores
        return f"machine_ is not of the classes from 0 to {n - 1}"
    if model.calibration_.n_features_in_ != (1 if n == 2 else n):
        return f"calibration_ takes {model.calibration_.n_features_in_} scores"
    return None


class _Clock:
    """Remaining time of a fit."""

    def __init__(self, seconds: float | None) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds left; None if there is no limit."""
        if self.end is None:
            return None
        left = self.end - time.monotonic()
        if left <= 0.0:
            raise TimeLimitError("max_time was exceeded before a first model; increase it or fit fewer rows.")
        return left


def _map_of(X: Array, max_exact: int, n_components: int, seed: int) -> Any:
    """Return a Nystroem map of the Gaussian kernel if there are many rows; otherwise None."""
    if len(X) <= max_exact:
        return None
    spread = float(X.var()) or 1.0
    return Nystroem(gamma=1.0 / (X.shape[1] * spread), n_components=n_components, random_state=seed).fit(X)


def _folds(labels: Array | None, n: int, seed: int) -> NDArray[np.intp]:
    """Return the fold of each row, stratified by class."""
    order = permutation(stream_key(seed, 0), n)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(n, np.intp)
    folds[order] = np.arange(n) % _FOLDS
    return folds


def _left_out(fit: Callable[[Array], Callable[[Array], Array]], Z: Array, folds: Array, width: int) -> Array:
    """Return out-of-fold scores of all rows; `fit` is called with the training rows of each fold."""
    scores = np.empty((len(Z), width))
    for fold in range(_FOLDS):
        out = folds == fold
        scores[out] = fit(~out)(Z[out])
    return scores


@schema.state(
    _parts_agree,
    C_=schema.Real(0.0),
    map_=schema.Object(Nystroem) | None,
)
class _KernelModel(ArrayModel):
    """A support vector machine with a chosen C, of the rows or of their Nystroem columns.

    Parameters
    ----------
    Cs : tuple of float, default=(1.0, 10.0)
        Values of C to choose among, by the out-of-fold loss.
    max_exact : int, default=4000
        Maximum number of rows for the exact kernel.
    n_components : int, default=300
        Number of Nystroem columns for more rows.
    random_state : int, default=0
        Seed of the folds and the Nystroem rows.
    max_time : float, optional
        Seconds after which a fit stops with the current machine; it raises an error if there is none yet.

    Attributes
    ----------
    C_ : float
        The chosen C.
    map_ : Nystroem or None
    """

    _parameters: ClassVar[Parameters] = _SETTINGS

    def __init__(
        self,
        *,
        Cs: Sequence[float] = (1.0, 10.0),
        max_exact: int = 4_000,
        n_components: int = 300,
        random_state: int = 0,
        max_time: float | None = None,
    ) -> None:
        self.Cs = Cs
        self.max_exact = max_exact
        self.n_components = n_components
        self.random_state = random_state
        self.max_time = max_time

    def _mapped(self, X: Any) -> Any:
        """Return rows in the features of the machine."""
        check_is_fitted(self)
        return rows_as_array(self, X) if self.map_ is None else self.map_.transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "machine_")


@inherit_docs()
@schema.saved(
    _calibration_agrees,
    classes_=schema.Labels("n_classes"),
    machine_=schema.Object(SVC) | schema.Object(LinearSVC),
    calibration_=schema.Object(LogisticRegression),
)
class CalibratedSVC(ArrayClassifier, _KernelModel):
    """Support vector classification with the C of smallest log loss, and calibrated probabilities.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Class weights, in the machine and in its calibration.

    Attributes
    ----------
    machine_ : SVC or LinearSVC
    calibration_ : LogisticRegression
        Fitted to the scores of the machine.
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.training.models import CalibratedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> CalibratedSVC().fit(X, y).predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    _parameters: ClassVar[Parameters] = {**_SETTINGS, "class_weight": (none, one_of("balanced"), mapping)}

    def __init__(
        self,
        *,
        Cs: Sequence[float] = (1.0, 10.0),
        max_exact: int = 4_000,
        n_components: int = 300,
        class_weight: Any = None,
        random_state: int = 0,
        max_time: float | None = None,
    ) -> None:
        super().__init__(
            Cs=Cs, max_exact=max_exact, n_components=n_components, random_state=random_state, max_time=max_time
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any) -> Self:
        """Choose C, fit the machine, and calibrate its scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled columns without missing values.
        """
        check_parameters(self, self._parameters)
        X, y, clock = rows_as_array(self, X), np.asarray(y), _Clock(self.max_time)
        classes, codes = np.unique(y, return_inverse=True)
        weight = None if self.class_weight is None else compute_sample_weight(self.class_weight, y)
        features = _map_of(X, self.max_exact, self.n_components, self.random_state)
        Z = X if features is None else features.transform(X)
        folds, width = _folds(codes, len(y), self.random_state), 1 if len(classes) == 2 else len(classes)

        def machine(C: float, rows: Any = slice(None)) -> Any:
            made = (SVC if features is None else LinearSVC)(C=C, max_time=clock.left)
            return made.fit(Z[rows], codes[rows], sample_weight=None if weight is None else weight[rows])

        tried = []
        for C in self.Cs:
            scores = _left_out(lambda rows, C=C: _scores_of(machine(C, rows), len(classes)), Z, folds, width)  # type: ignore[misc]
            calibration = LogisticRegression().fit(scores, codes, sample_weight=weight)
            p = calibration.predict_proba(scores)[np.arange(len(y)), codes]
            tried.append((float(np.average(-np.log(np.maximum(p, _TINY)), weights=weight)), C, calibration))
        _, C, calibration = min(tried, key=lambda one: one[0])
        self.machine_ = machine(C).set_params(max_time=None)
        self.C_, self.map_, self.calibration_ = float(C), features, calibration
        self.classes_, self.n_features_in_ = classes, X.shape[1]
        return self

    def predict_proba(self, X: Any) -> Array:
        """Predict the probability of each class, by (2)."""
        Z = self._mapped(X)
        scores = _scores_of(self.machine_, len(self.classes_))(Z)
        return np.asarray(self.calibration_.predict_proba(scores))


def _scores_of(machine: Any, n_classes: int) -> Callable[[Array], Array]:
    """Return scores of shape (n, 1) or (n, n_classes); unknown classes get the smallest score of a row."""

    def scores(Z: Array) -> Array:
        found = np.asarray(machine.decision_function(Z), np.float64)
        if n_classes == 2:
            return found.reshape(-1, 1)
        found = np.column_stack([-found, found]) if found.ndim == 1 else found
        out = np.repeat(found.min(axis=1, keepdims=True), n_classes, axis=1)
        out[:, np.asarray(machine.classes_, np.intp)] = found
        return out

    return scores


def _as_column(machine: Any) -> Callable[[Array], Array]:
    return lambda Z: np.asarray(machine.predict(Z), np.float64)[:, np.newaxis]


@inherit_docs()
@schema.saved(
    mean_=schema.Real(),
    scale_=schema.Real(0.0),
    machine_=schema.Object(SVR) | schema.Object(LinearSVR),
)
class ScaledSVR(RegressorMixin, _KernelModel):
    """Support vector regression of a standardised target, with the C of smallest absolute error.

    Attributes
    ----------
    machine_ : SVR or LinearSVR
    mean_, scale_ : float
        Mean and standard deviation of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.training.models import ScaledSVR
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> bool(abs(ScaledSVR().fit(X, 1_000 * np.sin(X[:, 0])).predict([[1.0]])[0] - 841) < 100)
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Choose C, and fit the machine."""
        check_parameters(self, self._parameters)
        X, y, clock = rows_as_array(self, X), np.asarray(y, np.float64), _Clock(self.max_time)
        mean, scale = float(y.mean()), float(y.std()) or 1.0
        z = (y - mean) / scale
        features = _map_of(X, self.max_exact, self.n_components, self.random_state)
        Z = X if features is None else features.transform(X)
        folds = _folds(None, len(y), self.random_state)

        def machine(C: float, rows: Any = slice(None)) -> Any:
            made = (SVR if features is None else LinearSVR)(C=C, epsilon=_EPSILON, max_time=clock.left)
            return made.fit(Z[rows], z[rows])

        def error(C: float) -> float:
            left_out = _left_out(lambda rows: _as_column(machine(C, rows)), Z, folds, 1)
            return float(np.abs(left_out[:, 0] - z).mean())

        C = min((float(one) for one in self.Cs), key=error)
        self.machine_ = machine(C).set_params(max_time=None)
        self.C_, self.map_, self.mean_, self.scale_ = C, features, mean, scale
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Any) -> Array:
        """Predict the target."""
        Z = self._mapped(X)
        return np.asarray(self.mean_ + self.scale_ * self.machine_.predict(Z))
