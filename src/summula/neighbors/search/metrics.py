"""Metrics: scikit-learn's names, and their parameters for the kernels.

A metric of the kernels ranks rows by V (`kernels`, equation 1); the distance is (factor V)^root. The cosine distance is

    1 - x'z / (|x| |z|) = |x/|x| - z/|z||^2 / 2                                                                  (1)

so it is half the squared distance of normalised rows. A row of zeros gets a 1 in an additional column instead, which
makes its distance to all others 1. The haversine distance of latitudes and longitudes is the angle between points on
the unit sphere, computed from the length of the chord between them,

    2 arcsin(|u - v| / 2),        u = (cos lat cos lon, cos lat sin lon, sin lat)                                    (2)

"nan_euclidean" is in `pairwise`; all other names are those of `scipy.spatial.distance.cdist`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.data.layout.blocks import aligned
from summula.core.errors import DataError, ParameterError
from summula.neighbors.search.kernels import CHEBYSHEV, HAMMING, MANHATTAN, POWER, SQUARES

__all__ = [
    "BOOLEAN_METRICS",
    "METRIC_NAMES",
    "Metric",
    "PairwiseMetric",
    "chosen_metric",
    "is_between_0_and_1",
    "is_distance_metric",
]

Array = NDArray[Any]

_ALIASES = {"l1": "manhattan", "cityblock": "manhattan", "l2": "euclidean", "infinity": "chebyshev", "p": "minkowski"}
_FIXED = ("euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "hamming", "haversine")
# For boolean rows: nonzero numbers count as true.
BOOLEAN_METRICS = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
_SCIPY = ("braycurtis", "canberra", "correlation", "mahalanobis", "seuclidean", *BOOLEAN_METRICS)
METRIC_NAMES = (*_FIXED, "minkowski", *_SCIPY, "nan_euclidean", "precomputed", *_ALIASES)


_EXPONENTS = 900  # limits of powers of the largest value, beyond which differences may over- or underflow
_UNDEFINED = {
    "correlation": ", which is undefined for rows with equal values in all columns: drop those",
    "nan_euclidean": ", which is undefined for rows without a column in which both have a value: impute them",
}


class Metric(NamedTuple):
    """A metric of the kernels: the distance is (factor V)^root."""

    tag: int
    p: float
    factor: float
    root: float
    embedding: str | None = None
    shift: int = 0  # rows are multiplied by 2^shift, which is exact, to avoid over- and underflow of powers

    def fitted_to(self, X: Any) -> Metric:
        """Return the metric with the shift for these rows."""
        values = X.data if sparse.issparse(X) else X
        if self.embedding is not None or self.tag not in (SQUARES, POWER) or not values.size:
            return self
        return self.scaled_to(max(float(values.max()), -float(values.min())))

    def scaled_to(self, largest: float) -> Metric:
        """Return the metric with the shift for rows with this largest absolute value."""
        if self.embedding is not None or self.tag not in (SQUARES, POWER):
            return self
        exponent = int(np.frexp(largest)[1])
        return self._replace(shift=-exponent) if abs(exponent) * self.p > _EXPONENTS else self

    def queries(self, X: Any) -> tuple[Any, Array]:
        """Return rows in the form in which they are compared, and the numbers of those that are not finite."""
        X, bad = _finite_rows(X)
        return self.embedded(X), bad

    def embedded(self, X: Any) -> Any:
        """Map rows to the space in which distances are computed, (1) and (2)."""
        if self.shift:
            return _shifted(X, self.shift)
        if self.embedding is None:
            return X
        return _to_unit_rows(X) if self.embedding == "unit rows" else _to_sphere(X)

    def distances(self, values: Array, rows: Array) -> Array:
        """Convert the ranking values of training rows to distances."""
        if self.embedding == "sphere":
            return np.asarray(2.0 * np.arcsin(np.minimum(0.5 * np.sqrt(values), 1.0)))
        if self.root == 1.0:
            values = values * self.factor
        else:
            values = np.sqrt(values) if self.root == 0.5 else values**self.root
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(values, -self.shift * round(self.p * self.root)) if self.shift else values)


class PairwiseMetric(NamedTuple):
    """A metric of all pairs of rows: a name of SciPy's `cdist`, a function, a DistanceMetric, or "precomputed"."""

    what: Any
    options: Mapping[str, Any]

    @property
    def needs_all_rows(self) -> bool:
        """Return whether the metric includes variances or covariances of the training rows."""
        given = {"seuclidean": ("V",), "mahalanobis": ("V", "VI")}.get(str(self.what))
        return given is not None and not any(name in self.options for name in given)

    def queries(self, X: Any) -> tuple[Any, Array]:
        """Return rows in the form in which they are compared, and the numbers of those that are not finite."""
        if self.what != "nan_euclidean":
            return _finite_rows(X)
        is_infinite = np.isinf(X)
        if not is_infinite.any():
            return X, np.zeros(0, np.intp)
        return np.where(is_infinite, np.nan, X), np.flatnonzero(is_infinite.any(axis=1))

    def ranked(self, D: Array) -> Array:
        """Return distances with NaN replaced by minus infinity, so that it comes first, where it is an error.

        For "nan_euclidean" NaN comes last: it is an error only if it is among the neighbours.
        """
        is_undefined = np.isnan(D)
        if self.what != "nan_euclidean" and is_undefined.any():
            D[is_undefined] = -np.inf
        return D

    def distances(self, values: Array, rows: Array) -> Array:
        """Return the distances of training rows, none of which may be NaN."""
        is_undefined = np.isnan(values) | np.isneginf(values)
        if is_undefined.any():
            raise DataError(
                f"The distance from training row {int(rows[is_undefined].min())} is NaN with "
                f"metric={self.what!r}{_UNDEFINED.get(str(self.what), '')}."
            )
        return values


def _finite_rows(X: Any) -> tuple[Any, Array]:
    """Return rows with non-finite values replaced by zeros, and the numbers of these rows."""
    values = X.data if sparse.issparse(X) else X
    is_finite = np.isfinite(values)
    if is_finite.all():
        return X, np.zeros(0, np.intp)
    X = X.copy()
    if sparse.issparse(X):
        X.data[~is_finite] = 0.0
        return X, np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[~is_finite])
    X[~is_finite] = 0.0
    return X, np.flatnonzero(~is_finite.all(axis=1))


def is_distance_metric(metric: Any) -> bool:
    """Return whether this is a DistanceMetric object of scikit-learn."""
    if isinstance(metric, str) or not hasattr(metric, "pairwise"):
        return False
    from sklearn.metrics import DistanceMetric

    return isinstance(metric, DistanceMetric)


def is_between_0_and_1(metric: Any, p: float, params: Any) -> bool:
    """Return whether this is a Minkowski "metric" that does not satisfy the triangle inequality."""
    power = (params or {}).get("p", p)
    return isinstance(metric, str) and _ALIASES.get(metric, metric) == "minkowski" and 0 < power < 1


def chosen_metric(metric: Any, p: float, params: Mapping[str, Any] | None, columns: int) -> Metric | PairwiseMetric:
    """Return the metric for the parameters of an estimator."""
    options = dict(params or {})
    if is_distance_metric(metric):
        _check_options(type(metric).__name__, options)
    if not isinstance(metric, str):
        return PairwiseMetric(metric, options)
    name = _ALIASES.get(metric, metric)
    if name == "minkowski":
        power = float(options.pop("p", p))
        if not power > 0:
            raise ParameterError(f"metric_params={{'p': {power}}}: the power of a Minkowski distance must be positive.")
        if options.get("w") is None:
            options.pop("w", None)
            _check_options(name, options)
            return _minkowski(power)
        if np.isinf(power):
            raise ParameterError("The weights 'w' of metric_params need a finite p.")
        return PairwiseMetric(name, {"p": power, "w": _weights(options, columns)})
    if name in ("nan_euclidean", "precomputed"):
        _check_options(name, options)
    if name in ("nan_euclidean", "precomputed") or name in _SCIPY:
        return PairwiseMetric(name, options)
    _check_options(name, options)
    if name == "haversine" and columns != 2:
        raise ParameterError(
            f"Haversine distance only valid in 2 dimensions, but X has {columns} columns: pass latitude and longitude "
            "in radians."
        )
    return {
        "euclidean": Metric(SQUARES, 2.0, 1.0, 0.5),
        "sqeuclidean": Metric(SQUARES, 2.0, 1.0, 1.0),
        "cosine": Metric(SQUARES, 2.0, 0.5, 1.0, "unit rows"),
        "manhattan": Metric(MANHATTAN, 1.0, 1.0, 1.0),
        "chebyshev": Metric(CHEBYSHEV, 1.0, 1.0, 1.0),
        "hamming": Metric(HAMMING, 1.0, 1.0 / columns, 1.0),
        "haversine": Metric(SQUARES, 2.0, 1.0, 0.5, "sphere"),
    }[name]


def _minkowski(p: float) -> Metric:
    if p == 1.0:
        return Metric(MANHATTAN, 1.0, 1.0, 1.0)
    if p == 2.0:
        return Metric(SQUARES, 2.0, 1.0, 0.5)
    return Metric(CHEBYSHEV, 1.0, 1.0, 1.0) if np.isinf(p) else Metric(POWER, p, 1.0, 1.0 / p)


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise ParameterError(
            f"metric={name!r} does not support {', '.join(map(repr, options))} in metric_params: drop it."
        )


def _weights(options: Mapping[str, Any], columns: int) -> Array:
    w = np.asarray(options["w"], np.float64)
    if w.shape != (columns,) or not (w >= 0).all():
        raise ParameterError(
            f"The weights 'w' of metric_params must be {columns} non-negative numbers, one per column."
        )
    return w


def _to_unit_rows(X: Any) -> Any:
    """Normalise rows, and mark rows of zeros in an additional column, equation (1)."""
    if sparse.issparse(X):
        X = sparse.csr_matrix(X, dtype=np.float64, copy=True)  # SciPy sorts matrices in place
        largest = np.asarray(abs(X).max(axis=1).todense()).reshape(-1)
        X = sparse.diags(1.0 / np.where(largest > 0, largest, 1.0)) @ X
        length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).reshape(-1))
        scale = sparse.diags(1.0 / np.where(length > 0, length, 1.0))
        return sparse.csr_matrix(sparse.hstack([scale @ X, sparse.csr_matrix((length == 0)[:, None] * 1.0)]))
    largest = np.abs(X).max(axis=1, initial=0.0)
    Z = np.zeros((len(X), X.shape[1] + 1))
    Z[:, :-1] = X / np.where(largest > 0, largest, 1.0)[:, None]  # squares of huge numbers would overflow
    length = np.sqrt((Z * Z).sum(axis=1))
    Z[:, -1] = length == 0
    Z[:, :-1] /= np.where(length > 0, length, 1.0)[:, None]
    return aligned(Z)


def _shifted(X: Any, shift: int) -> Any:
    """Multiply rows by 2^shift."""
    with np.errstate(over="ignore"):
        if not sparse.issparse(X):
            return np.ldexp(np.asarray(X, np.float64), shift)
        X = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        X.data = np.ldexp(X.data, shift)
        return X


def _to_sphere(X: Any) -> Array:
    """Return the points of the unit sphere at latitudes and longitudes in radians, equation (2)."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    latitude, longitude = X[:, 0], X[:, 1]
    radius = np.cos(latitude)
    return aligned(np.column_stack([radius * np.cos(longitude), radius * np.sin(longitude), np.sin(latitude)]))
