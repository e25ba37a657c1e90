"""What a family of distributions is: the exponential family of the lecture, and what a linear model sees of it.

With natural parameter eta, statistic T, log partition a and dispersion phi (1 in the plain exponential family),

    p(y; eta, phi) = b(y, phi) exp((eta T(y) - a(eta)) / phi),     E[T] = a'(eta),     Var[T] = phi a''(eta)     (1)

A generalised linear model sees a family through its unit variance V and its unit deviance d, which say the same:

    Var[y] = phi V(mu) / weight,      d(y, mu) = 2 integral from mu to y of (y - t) / V(t) dt >= 0               (2)

The members are in `families.py`. Reference: McCullagh and Nelder (1989), chapter 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files import schema

__all__ = ["Complaint", "Family"]

Array = NDArray[np.float64]
Interval = tuple[float, float]

_TINY = np.finfo(np.float64).tiny


class Complaint(NamedTuple):
    """A target outside the support: where the first one is, and what the family needs."""

    row: int
    needs: str


@schema.state()
class Family(ABC):
    """A family of distributions, seen as (1) and as (2).

    `log_base` is what is written for each family, since b(y) underflows; `base` is its exponential. `mean` and
    `variance` are a' and a''. Targets `y` of `unit_deviance` and `log_likelihood` have the mean `mu`.

    Attributes
    ----------
    name : str
        What users write for it.
    fixed_dispersion : bool
        Whether phi is 1 by definition, or has to be estimated.
    default_link : str
        identity for the normal and Tweedie with power <= 0, logit for proportions and classes, else log.
    mean_range, natural_range : tuple of float
        The open intervals of mu and of eta.
    """

    name: str
    support: str
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
        """d(y, mu) of equation (2), with its limits where y is at the edge of the support."""

    def log_likelihood(
        self, y: Array, mu: Array, dispersion: float = 1.0, weight: Array | None = None, frequency: Array | None = None
    ) -> float:
        """The sum of log p(y; mu, phi / weight), each row counted `frequency` times.

        Parameters
        ----------
        y, mu : ndarray
        dispersion : float
        weight : ndarray, optional
            Precision of the rows; rows of weight 0 are left out.
        frequency : ndarray, optional
            How often each row stands in the data.

        Returns
        -------
        float
            NaN for a Tweedie power whose density is not known in closed form.
        """
        y, mu = np.asarray(y), np.asarray(mu)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        count = np.ones(len(y)) if frequency is None else np.asarray(frequency, dtype=np.float64)
        used = (weight > 0) & (count > 0)
        rows = self._log_likelihood_rows(y[used], mu[used], dispersion / weight[used])
        return float(np.sum(count[used] * rows))

    def _log_likelihood_rows(self, y: Array, mu: Array, dispersion: Array) -> Array:
        return self.log_density(y, self.natural(np.maximum(mu, _TINY)), dispersion)

    def complain(self, y: Array) -> Complaint | None:
        """The first target outside the support (or missing, or infinite), if there is one."""
        y = np.asarray(y, dtype=np.float64)
        inside = self._inside(y) & np.isfinite(y)
        return None if inside.all() else Complaint(int(np.argmin(inside)), f"family {self.name!r} needs {self.support}")

    @abstractmethod
    def _inside(self, y: Array) -> NDArray[np.bool_]: ...
