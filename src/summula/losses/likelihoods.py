"""Likelihood losses as functions of the linear predictor eta, with the derivatives that solvers need.

For a family with unit deviance d and unit variance V, and a link with mu = mu(eta), the loss of a row is half its
deviance, and (McCullagh and Nelder 1989, section 2.5)

    value      l   = d(y, mu) / 2 >= 0                                                                          (1)
    slope      l'  = (mu - y) mu' / V(mu)                                                                       (2)
    fisher     E l'' = mu'^2 / V(mu) >= 0                                                                       (3)
    curvature  l'' = mu'^2 / V + (mu - y) (mu'' - mu'^2 V'(mu) / V) / V                                         (4)

`FamilyLoss` implements these equations. The most common pairs have their own classes, which are faster and accurate for
any eta: those of `log_links.py`, equation (5), and those of `classes.py`, equation (6).

All methods are elementwise over rows and return new float64 arrays; they have no state, so threads can share a loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.model_files import schema
from summula.losses.classes import BinaryCLogLog, BinaryProbit, Logistic, Multinomial
from summula.losses.log_links import GammaLog, InverseGaussianLog, NegativeBinomialLog, PoissonLog, TweedieLog
from summula.losses.loss import Derivatives, Huber, Interval, Loss, Squared
from summula.stats import families
from summula.stats.families import family_named
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link, link_named

# Pickles of earlier versions look for all likelihood losses in this module, `Huber` among them.
__all__ = ["FamilyLoss", "Huber", "loss_of"]

Array = NDArray[np.float64]

# Pairs with non-negative curvature (4): the canonical ones, and others by differentiation.
_CONVEX = frozenset(
    {
        ("normal", "identity"),
        ("poisson", "identity"),
        ("poisson", "log"),
        ("poisson", "sqrt"),
        ("gamma", "log"),
        ("gamma", "inverse"),
        ("inverse_gaussian", "inverse"),
        ("inverse_gaussian", "inverse_squared"),
        ("negative_binomial", "log"),
        *product(("bernoulli", "binomial"), ("identity", "log", "logit", "probit", "cloglog", "loglog")),
    }
)


class _Domain(NamedTuple):
    low: float  # the range of eta
    high: float
    first: float  # interval in which the derivatives are computed: inside the range, and without overflow
    last: float


@lru_cache(maxsize=64)
def _domain(family: Family, link: Link) -> _Domain:
    low, high = family.mean_range
    inner = link.interval(1e-45 if low == 0.0 else -1e45, 1.0 - 2.0**-53 if high == 1.0 else 1e45)
    return _Domain(*link.interval(low, high), *inner)


@schema.saved(family=schema.Object(Family), link=schema.Object(Link))
@dataclass(frozen=True)
class FamilyLoss(Loss):
    """Equations (1) to (4) for any family with a scalar mean and any link.

    Parameters
    ----------
    family : Family
    link : Link
    """

    family: Family
    link: Link

    @property
    def convex(self) -> bool:
        return (self.family.name, self.link.name) in _CONVEX

    @property
    def eta_range(self) -> Interval:
        domain = _domain(self.family, self.link)
        return domain.low, domain.high

    def value(self, y: Array, eta: Array) -> Array:
        low, high, _, _ = _domain(self.family, self.link)
        with np.errstate(all="ignore"):
            value = 0.5 * self.family.unit_deviance(y, self.link.inverse(eta))
        np.maximum(value, 0.0, out=value)
        # Outside the range the loss is undefined; inside it, NaN is a difference of infinities.
        value[(eta <= low) | (eta >= high) | np.isnan(value)] = np.inf
        return value

    def derivatives(self, y: Array, eta: Array) -> Derivatives:
        eta_in, mu, V = self._inside(eta)
        with np.errstate(all="ignore"):
            weight = self.link.slope(eta_in) / V
            slope = (mu - y) * weight
            fisher = self.link.slope(eta_in) * weight
        return Derivatives(self.value(y, eta), np.nan_to_num(slope, copy=False), np.nan_to_num(fisher, copy=False))

    def curvature(self, y: Array, eta: Array) -> Array:
        eta_in, mu, V = self._inside(eta)
        with np.errstate(all="ignore"):
            square = self.link.slope(eta_in) ** 2
            bend = self.link.curvature(eta_in) - square * self.family.unit_variance_slope(mu) / V
            return np.nan_to_num((square + (mu - y) * bend) / V, copy=False)

    def _inside(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return eta clipped to where (2) to (4) are finite, and mu and V there."""
        domain = _domain(self.family, self.link)
        eta = np.clip(eta, domain.first, domain.last)
        mu = self.link.inverse(eta)
        with np.errstate(all="ignore"):
            return eta, mu, self.family.unit_variance(mu)


def loss_of(family: Any, link: Any = None) -> Loss:
    """Return the loss of a family and a link: a specialised class if there is one, else `FamilyLoss`.

    Parameters
    ----------
    family : str or Family
    link : str or Link, optional
        By default the default link of the family.

    Returns
    -------
    Loss

    Examples
    --------
    >>> from summula.losses import loss_of
    >>> loss_of("poisson")
    PoissonLog()
    >>> loss_of("gamma", "inverse")
    FamilyLoss(family=Gamma(), link=Inverse())
    """
    family = family_named(family)
    link = link_named(family.default_link if link is None else link)
    if isinstance(family, families.Multinomial):
        if link.name != "logit":
            raise ParameterError(f"The multinomial family supports only the 'logit' link. Got {link.name!r} instead.")
        return Multinomial(family.k)
    if isinstance(family, families.Tweedie):
        if family.twin is None and link.name == "log":
            return TweedieLog(family.power)
        family = family.twin or family
    if isinstance(family, families.NegativeBinomial) and link.name == "log":
        return NegativeBinomialLog(family.alpha)
    written: dict[tuple[str, str], Loss] = {
        ("normal", "identity"): Squared(),
        ("bernoulli", "logit"): Logistic(),
        ("bernoulli", "probit"): BinaryProbit(),
        ("bernoulli", "cloglog"): BinaryCLogLog(),
        ("poisson", "log"): PoissonLog(),
        ("gamma", "log"): GammaLog(),
        ("inverse_gaussian", "log"): InverseGaussianLog(),
    }
    name = "bernoulli" if family.name == "binomial" else family.name
    return written.get((name, link.name)) or FamilyLoss(family, link)
