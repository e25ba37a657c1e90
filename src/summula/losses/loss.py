"""The base class of likelihood losses, and the squared and Huber losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.model_files import schema

__all__ = ["Derivatives", "Huber", "Interval", "Loss", "Relative", "Squared"]

Array = NDArray[np.float64]
Interval = tuple[float, float]


class Derivatives(NamedTuple):
    """Value, slope and expected curvature of a loss, row by row."""

    value: Array
    slope: Array
    fisher: Array


class Relative(NamedTuple):
    """Value of a loss up to terms in y alone, slope and curvature, row by row."""

    value: Array
    slope: Array
    curvature: Array


@schema.state()
class Loss(ABC):
    """A loss of (y, eta): `value`, its derivatives `slope` and `curvature` in eta, `fisher`, the expected curvature.

    Attributes
    ----------
    convex : bool
        Whether the curvature is non-negative for any y in the support.
    self_concordant : bool
        Whether the absolute third derivative is known to be at most the curvature (see `Multinomial` for classes).
    eta_range : tuple of float
        Open interval in which the loss is defined; outside it the value is infinite and the derivatives are finite.
    """

    @property
    def convex(self) -> bool:
        return True

    @property
    def self_concordant(self) -> bool:
        return False

    @property
    def eta_range(self) -> Interval:
        return (-np.inf, np.inf)

    @abstractmethod
    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        """Compute value, slope and fisher together, sharing common terms."""

    @abstractmethod
    def curvature(self, y: Array, eta: Array) -> Array:
        """d2 value / d eta2."""

    def value(self, y: Array, eta: Array) -> Array:
        return self.derivatives(y, eta).value

    def slope(self, y: Array, eta: Array) -> Array:
        return self.derivatives(y, eta).slope

    def fisher(self, y: Array, eta: Array) -> Array:
        return self.derivatives(y, eta).fisher


@schema.saved()
@dataclass(frozen=True)
class Squared(Loss):
    """(eta - y)^2 / 2: the normal family with the identity link."""

    self_concordant = True

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        r = eta - y
        with np.errstate(over="ignore"):
            value = 0.5 * r * r
        return Derivatives(value, r, np.ones_like(r))

    def curvature(self, y: Array, eta: Array) -> Array:
        return np.ones_like(eta)


@schema.saved(threshold=schema.Real(0.0))
@dataclass(frozen=True)
class Huber(Loss):
    """(eta - y)^2 / 2 for residuals up to `threshold`, linear beyond; `fisher` is the curvature, 1 or 0."""

    threshold: float = 1.35

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < np.inf:
            raise ParameterError(f"The 'threshold' of Huber must be a number > 0. Got {self.threshold!r} instead.")

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        slope = eta - y
        size = np.abs(slope)
        inner = np.minimum(size, self.threshold)
        np.clip(slope, -self.threshold, self.threshold, out=slope)
        return Derivatives(inner * (size - 0.5 * inner), slope, (size <= self.threshold).astype(np.float64))

    def curvature(self, y: Array, eta: Array) -> Array:
        return self.fisher(y, eta)
