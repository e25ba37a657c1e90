"""Exponential dispersion families, as used by generalised linear models.

With natural parameter eta, statistic T, log partition a and dispersion phi (1 in the plain exponential family),

    p(y; eta, phi) = b(y, phi) exp((eta T(y) - a(eta)) / phi),     E[T] = a'(eta),     Var[T] = phi a''(eta)     (1)

A generalised linear model depends on a family through its unit variance V or, equivalently, its unit deviance d:

    Var[y] = phi V(mu) / weight,      d(y, mu) = 2 integral from mu to y of (y - t) / V(t) dt >= 0               (2)

The members are in `families.py`. Reference: McCullagh and Nelder (1989), chapter 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.model_files import schema

__all__ = ["Family", "Interval", "UnsupportedTarget", "check_parameter"]

Array = NDArray[np.float64]
Interval = tuple[float, float]

_TINY = np.finfo(np.float64).tiny


class UnsupportedTarget(NamedTuple):
    """The first target outside the support of a family, and what the family needs."""

    row: int
    needs: str


@schema.state()
class Family(ABC):
    """A family of distributions, in the forms (1) and (2).

    Subclasses implement `log_base`, since b(y) underflows; `base` is its exponential. `mean` and `variance` are a' and
    a''. In `unit_deviance` and `log_likelihood`, `y` has the mean `mu`.

    Attributes
    ----------
    name : str
        Name of the family in parameters.
    fixed_dispersion : bool
        Whether phi is 1 by definition; otherwise it is estimated.
    default_link : str
        "identity" for the normal and Tweedie with power <= 0, "logit" for proportions and classes, else "log".
    mean_range, natural_range : tuple of float
        Open intervals of mu and of eta.
    """

    name: str
    support: str = "values >= 0"
    fixed_dispersion = False
    mean_range: Interval = (0.0, np.inf)
    natural_range: Interval = (-np.inf, np.inf)

    @property
    def default_link(self) -> str:
        return "log"

    # ---- exponential family

    def base(self, y: Array) -> Array:
        """b(y) of equation (1)."""
        return np.exp(self.log_base(y))

    @abstractmethod
    def log_base(self, y: Array, dispersion: float | Array = 1.0) -> Array:
        """log b(y, phi) of equation (1). Counts divide by phi, which makes (1) a quasi-likelihood."""

    def statistic(self, y: Array) -> Array:
        """T(y)."""
        return np.asarray(y, dtype=np.float64)

    @abstractmethod
    def natural(self, mean: Array) -> Array:
        """eta, given E[T]: the inverse of `mean`."""

    @abstractmethod
    def log_partition(self, eta: Array) -> Array:
        """a(eta)."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """E[T] = a'(eta)."""

    @abstractmethod
    def variance(self, eta: Array) -> Array:
        """Var[T] / phi = a''(eta)."""

    def log_density(self, y: Array, eta: Array, dispersion: float | Array = 1.0) -> Array:
        """log p(y; eta, phi), equation (1), for y in the support."""
        return (eta * self.statistic(y) - self.log_partition(eta)) / dispersion + self.log_base(y, dispersion)

    # ---- generalised linear model

    @abstractmethod
    def unit_variance(self, mu: Array) -> Array:
        """V(mu)."""

    @abstractmethod
    def unit_variance_slope(self, mu: Array) -> Array:
        """dV / d mu."""

    @abstractmethod
    def unit_deviance(self, y: Array, mu: Array) -> Array:
        """d(y, mu) of equation (2), with its limits if y is on the boundary of the support."""

    def log_likelihood(
        self, y: Array, mu: Array, dispersion: float = 1.0, weight: Array | None = None, frequency: Array | None = None
    ) -> float:
        """Return the sum of log p(y; mu, phi / weight), with each row counted `frequency` times.

        Parameters
        ----------
        y, mu : ndarray
        dispersion : float
        weight : ndarray, optional
            Precision weights; rows with weight 0 are ignored.
        frequency : ndarray, optional
            Number of occurrences of each row.

        Returns
        -------
        float
            NaN for a Tweedie power without a closed-form density.
        """
        y, mu = np.asarray(y), np.asarray(mu)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        count = np.ones(len(y)) if frequency is None else np.asarray(frequency, dtype=np.float64)
        used = (weight > 0) & (count > 0)
        rows = self._log_likelihood_rows(y[used], mu[used], dispersion / weight[used])
        return float(np.sum(count[used] * rows))

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        return self.log_density(y, self.natural(np.maximum(mu, _TINY)), dispersion)

    def find_unsupported(self, y: Array) -> UnsupportedTarget | None:
        """Return the first target that is outside the support, missing or infinite, or None."""
        y = np.asarray(y, dtype=np.float64)
        inside = self._inside(y) & np.isfinite(y)
        if inside.all():
            return None
        return UnsupportedTarget(int(np.argmin(inside)), f"family {self.name!r} needs {self.support}")

    def _inside(self, y: Array) -> NDArray[np.bool_]:
        """Whether targets are in the support; non-negative numbers unless overridden."""
        return y >= 0


def check_parameter(valid: bool, family: Family, name: str, what: str) -> None:
    """Raise ParameterError if a parameter of a family is not valid; `what` says what it must be."""
    if not valid:
        value = getattr(family, name)
        raise ParameterError(f"The {name!r} of {type(family).__name__} must be {what}. Got {value!r} instead.")
