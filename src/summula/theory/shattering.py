"""Shattering and the VC dimension.

A class H of functions from rows to {0, 1} shatters the points x_1, ..., x_n if it realises all their labellings:

    for all y in {0, 1}^n there is an h in H with h(x_i) = y_i for i = 1, ..., n                                (1)

Its VC dimension is the largest number of points that it shatters. Closed forms (Shalev-Shwartz and Ben-David,
Understanding Machine Learning, 2014, sections 6.3 and 9.1):

    thresholds x >= t                                   1
    boxes with sides along the axes, in d dimensions    2 d
    half-spaces w'x + b > 0                             d + 1        (d with b = 0)

Half-spaces shatter points if and only if these are affinely independent (linearly independent with b = 0): of dependent
points some have a Radon partition, whose two parts no hyperplane separates. Whether a half-space realises a certain
labelling is decided by a linear program (`optimize.separating_hyperplane`), so it does not depend on how a learner
converges.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

from summula.core.errors import DataError, ParameterError
from summula.optimize.separation import separating_hyperplane

__all__ = ["Boxes", "Halfspaces", "HypothesisClass", "Thresholds", "shatters", "unrealized_labels", "vc_dimension"]

Array = NDArray[np.float64]
Labels = NDArray[np.bool_]

_MOST_POINTS = 16
_MOST_DRAWN = 5
# Classifiers whose decision is the sign of a linear function; PegasosSVC has no intercept.
_LINEAR = (
    *("LinearSVC", "LogisticRegression", "LogisticRegressionCV", "PassiveAggressiveClassifier", "PegasosSVC"),
    *("Perceptron", "RidgeClassifier", "SGDClassifier"),
)


class HypothesisClass(ABC):
    """A class of functions from rows to {0, 1} for which (1) can be decided."""

    @abstractmethod
    def realizes(self, points: Array, labels: Labels) -> bool:
        """Return whether a function of the class has these labels at these points."""

    @abstractmethod
    def dimension(self) -> int:
        """Return the VC dimension."""

    def _most_shattered(self, points: Array) -> int | None:
        """Return the largest number of the points that are shattered, if there is a closed form."""
        return None

    def _line(self, points: Array, labels: Labels) -> Array:
        """Return (w, b) of a line that separates the labels, for the plot; NaN if there is none."""
        return np.full(3, np.nan)

    def _plot(self, X: Any, y: Any = None, *, ax: Any = None) -> Any:
        """Plot all labellings of the points X in the plane; called by `summula.plot`."""
        from summula.plotting.predictions.shattered import shattering

        if X is None:
            raise DataError(f"The plot of {self} needs points: pass them, summula.plot(model, points).")
        points = _points(X)
        if points.shape[1] != 2 or len(points) > _MOST_DRAWN:
            raise DataError(
                f"Plots of shattering have at most {_MOST_DRAWN} points with 2 coordinates; got {points.shape}."
            )
        labels = np.array(list(product((False, True), repeat=len(points))))
        here = _class_of(self, points)
        realized = [here.realizes(points, one) for one in labels]
        return shattering(points, labels, realized, [self._line(points, one) for one in labels], ax=ax)


@dataclass(frozen=True)
class Thresholds(HypothesisClass):
    """The functions x >= t of one number."""

    n_features: ClassVar[int] = 1

    def realizes(self, points: Array, labels: Labels) -> bool:
        """Return whether all points with label 1 are larger than those with label 0."""
        one_class = bool(labels.all() or not labels.any())
        return one_class or bool(points[labels, 0].min() > points[~labels, 0].max())

    def dimension(self) -> int:
        """Return 1."""
        return 1


@dataclass(frozen=True)
class Boxes(HypothesisClass):
    """The indicators of boxes with sides along the axes, in `n_features` dimensions; intervals in one."""

    n_features: int

    def __post_init__(self) -> None:
        _check_width(self.n_features)

    def realizes(self, points: Array, labels: Labels) -> bool:
        """Return whether the smallest box around the points with label 1 contains no others."""
        if not labels.any():
            return True
        low, high = points[labels].min(axis=0), points[labels].max(axis=0)
        inside = ((points[~labels] >= low) & (points[~labels] <= high)).all(axis=1)
        return not inside.any()

    def dimension(self) -> int:
        """Return 2 d."""
        return 2 * self.n_features


@dataclass(frozen=True)
class Halfspaces(HypothesisClass):
    """The indicators of half-spaces w'x + b > 0 in `n_features` dimensions; `homogeneous` ones have b = 0."""

    n_features: int
    homogeneous: bool = False

    def __post_init__(self) -> None:
        _check_width(self.n_features)

    def realizes(self, points: Array, labels: Labels) -> bool:
        """Return whether a hyperplane strictly separates the points with label 1 from the others."""
        if not self.homogeneous:
            one_class = bool(labels.all() or not labels.any())
            return bool(one_class or separating_hyperplane(points, labels).kind == "complete")
        # The signed rows are on one side if and only if a hyperplane separates them from their mirror images.
        signed = np.where(labels[:, None], points, -points)
        both = np.vstack([signed, -signed])
        found = separating_hyperplane(both, np.repeat([1, 0], len(points)), fit_intercept=False)
        return bool(found.kind == "complete")

    def _most_shattered(self, points: Array) -> int:
        """Return the affine (or linear) rank of the points; columns are scaled, which does not change it."""
        rows = points if self.homogeneous else points - points[0]
        scale = np.abs(rows).max(axis=0)
        return int(np.linalg.matrix_rank(rows / np.where(scale > 0, scale, 1.0))) + (0 if self.homogeneous else 1)

    def _line(self, points: Array, labels: Labels) -> Array:
        if labels.all() or not labels.any() or self.homogeneous:
            return super()._line(points, labels)
        if not self.realizes(points, labels):
            return super()._line(points, labels)
        from summula.svm import SVC

        widest = SVC(C=np.inf, kernel="linear").fit(points, labels)  # far from all points
        return np.append(widest.coef_[0], widest.intercept_)

    def dimension(self) -> int:
        """Return d + 1, or d without b."""
        return self.n_features + (0 if self.homogeneous else 1)


@dataclass(frozen=True)
class _Finite(HypothesisClass):
    """Finitely many functions; `patterns` are their labels at the points, once these are known."""

    functions: tuple[Any, ...]
    patterns: frozenset[bytes] = frozenset()

    def at(self, points: Array) -> _Finite:
        return _Finite(self.functions, frozenset(_labels_of(one, points).tobytes() for one in self.functions))

    def realizes(self, points: Array, labels: Labels) -> bool:
        return labels.tobytes() in self.patterns

    def dimension(self) -> int:
        raise ParameterError(
            f"The VC dimension of {len(self.functions)} functions depends on the points they are defined on: pass them "
            f"as points= (it is at most {int(math.log2(len(self.functions)))})."
        )


@dataclass(frozen=True)
class _Learner(HypothesisClass):
    """Labellings realised by a classifier: those that a fit reproduces without error."""

    classifier: Any

    def realizes(self, points: Array, labels: Labels) -> bool:
        if labels.all() or not labels.any():  # for which most classifiers raise an error
            return True
        codes = labels.astype(np.int64)
        return bool((np.asarray(clone(self.classifier).fit(points, codes).predict(points)) == codes).all())

    def dimension(self) -> int:
        raise ParameterError(
            f"No closed form is known for {type(self.classifier).__name__}: pass points= to find how many of them its "
            "fits shatter, which is a lower bound."
        )


def shatters(model: Any, points: ArrayLike) -> bool:
    """Decide whether a class of functions shatters some points (1).

    Parameters
    ----------
    model : HypothesisClass, classifier, or list or dict of functions
        `Halfspaces`, `Boxes`, `Thresholds`; a classifier, for the functions it can fit; or the functions themselves
        (callables or fitted classifiers that predict 0 and 1, or False and True).
        Linear classifiers, also after transformers in a pipeline, are decided exactly, as half-spaces. Other
        classifiers are fitted to every labelling with two classes: True is certain, False only means that these fits
        do not realise all labellings.
    points : array-like of shape (n, d)
        At most 16 points; a list of numbers for d = 1.

    Returns
    -------
    bool

    Examples
    --------
    Half-planes shatter the corners of a triangle, but never four points:

    >>> from summula.theory import Halfspaces, shatters
    >>> shatters(Halfspaces(2), [[0, 0], [1, 0], [0, 1]])
    True
    >>> shatters(Halfspaces(2), [[0, 0], [1, 0], [0, 1], [1, 1]])
    False
    """
    return unrealized_labels(model, points) is None


def unrealized_labels(model: Any, points: ArrayLike) -> Labels | None:
    """Return the first labelling of some points that a class of functions does not realise; None if it shatters them.

    Parameters
    ----------
    model, points
        As in `shatters`.

    Returns
    -------
    ndarray of bool of shape (n,), or None

    Examples
    --------
    The corners of a square, with opposite corners alike:

    >>> from summula.theory import Halfspaces, unrealized_labels
    >>> unrealized_labels(Halfspaces(2), [[0, 0], [1, 0], [0, 1], [1, 1]]).tolist()
    [False, True, True, False]
    """
    rows = _points(points)
    return _unrealized(_class_of(model, rows), _lifted(model, rows))


def vc_dimension(model: Any, points: ArrayLike | None = None) -> int:
    """Return the VC dimension of a class of functions.

    Parameters
    ----------
    model : HypothesisClass, classifier, or list or dict of functions
        As in `shatters`. Without points, a classifier must be linear and fitted, to know its number of features.
    points : array-like of shape (n, d), optional
        At most 16 points: the answer is the largest number of them that the class shatters, which is the VC dimension
        of the class on these points, and a lower bound of it elsewhere.

    Returns
    -------
    int

    Examples
    --------
    >>> from summula.theory import Boxes, Halfspaces, sample_size, vc_dimension
    >>> vc_dimension(Halfspaces(10)), vc_dimension(Boxes(2))
    (11, 4)
    >>> stumps = [lambda X, t=t: X[:, 0] > t for t in (0.5, 1.5, 2.5)]
    >>> vc_dimension(stumps, points=[0, 1, 2, 3])
    1
    """
    if points is None:
        return _class_of(model, None).dimension()
    rows = _points(points)
    hypotheses, lifted = _class_of(model, rows), _lifted(model, rows)
    if (most := hypotheses._most_shattered(lifted)) is not None:
        return most
    # Every subset of a shattered set is shattered: sets grow from those of one point less.
    shattered: set[tuple[int, ...]] = {()}
    size = 0
    while shattered:
        larger = {(*chosen, j) for chosen in shattered for j in range(chosen[-1] + 1 if chosen else 0, len(rows))}
        possible = [c for c in sorted(larger) if all(part in shattered for part in combinations(c, size))]
        shattered = {c for c in possible if _unrealized(hypotheses, lifted[list(c)]) is None}
        size += bool(shattered)
    return size


# ------------------------------------------------------------------------------------------------------------- classes


def _class_of(model: Any, points: Array | None) -> HypothesisClass:
    if isinstance(model, HypothesisClass):
        width = getattr(model, "n_features", None)
        if points is not None and width not in (None, points.shape[1]):
            raise DataError(f"{model} is about points with {width} coordinates; these have {points.shape[1]}.")
        return model
    if isinstance(model, Mapping) or (isinstance(model, Sequence) and not isinstance(model, str)):
        functions = tuple(model.values() if isinstance(model, Mapping) else model)
        if not functions:
            raise ParameterError("The class of functions is empty; pass at least one.")
        return _Finite(functions)
    if not hasattr(model, "fit") or not is_classifier(model):
        raise ParameterError(
            f"model must be a class such as Halfspaces(2), a classifier, or a list of functions; got {model!r}."
        )
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not _is_linear(last):
        return _Learner(model)
    if points is None and not hasattr(last, "n_features_in_"):
        raise ParameterError(f"The number of features of {type(model).__name__} is unknown: fit it first.")
    width = _lifted(model, points).shape[1] if points is not None else last.n_features_in_
    return Halfspaces(width, homogeneous=not getattr(last, "fit_intercept", type(last).__name__ != "PegasosSVC"))


def _check_width(n_features: Any) -> None:
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ParameterError(f"n_features must be an int >= 1, the number of coordinates; got {n_features!r}.")


def _is_linear(classifier: Any) -> bool:
    return type(classifier).__name__ in _LINEAR or (
        type(classifier).__name__ == "SVC" and getattr(classifier, "kernel", None) == "linear"
    )


def _lifted(model: Any, points: Array) -> Array:
    """Return the points transformed by a pipeline, as input of its last step, a linear classifier."""
    if not hasattr(model, "steps") or not _is_linear(model.steps[-1][1]) or len(model.steps) == 1:
        return points
    return np.asarray(clone(model[:-1]).fit_transform(points), np.float64)


def _points(given: ArrayLike) -> Array:
    try:
        points = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise DataError("points must be an array of numbers, one row for each point.") from None
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or not points.size:
        raise DataError(f"points must have shape (n, d); got an array of shape {np.shape(given)}.")
    if len(points) > _MOST_POINTS:
        raise ParameterError(f"{len(points)} points have 2^{len(points)} labellings; pass at most {_MOST_POINTS}.")
    if not np.isfinite(points).all():
        raise DataError(f"Point {int(np.argmin(np.isfinite(points).all(axis=1)))} is not finite.")
    return points


def _labels_of(function: Any, points: Array) -> Labels:
    values = np.asarray(function.predict(points) if hasattr(function, "predict") else function(points))
    if values.shape != (len(points),) or not np.isin(values, (0, 1)).all():
        raise DataError(
            f"A function of the class returned values of shape {values.shape} for {len(points)} points; need one label "
            "per point, 0 or 1."
        )
    return np.ascontiguousarray(values, dtype=bool)


def _unrealized(hypotheses: HypothesisClass, points: Array) -> Labels | None:
    """Return the first labelling, in lexicographic order, that no function has."""
    hypotheses = hypotheses.at(points) if isinstance(hypotheses, _Finite) else hypotheses
    if hypotheses._most_shattered(points) == len(points):
        return None
    for y in product((False, True), repeat=len(points)):
        labels = np.array(y)
        if not hypotheses.realizes(points, labels):
            return labels
    return None
