"""Distributions of observations as users pass them: tables, densities, distributions of SciPy or of `stats`.

{"grey": 0.7, "blue": 0.3}      probabilities by name                       a discrete observation
[0.7, 0.3]                      probabilities of the observations 0, 1, ...
scipy.stats.norm(0, 1)          anything with `logpdf` or `logpmf`, such as scipy.stats.Normal(mu=0, sigma=1)
lambda x: ...                   a density p(x), of an array of observations or of a single one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.bayes.labelled import is_labelled, without_labels
from summula.core.errors import DataError, ParameterError
from summula.stats.information import has_pmf

__all__ = ["Density", "check_probabilities", "density_of", "evaluate", "finite_joint", "item_of", "listed"]

Array = NDArray[np.float64]

_ROUNDING = 1e-8  # tolerance for the sum of probabilities


@dataclass(frozen=True)
class Density:
    """A distribution of observations.

    Attributes
    ----------
    given : object
        The object passed by the user.
    table : dict or None
        Probabilities of the observations, if they are discrete and listed.
    log : callable
        Log densities (or probabilities) of a list or array of observations.
    """

    given: Any
    table: Mapping[Any, float] | None
    log: Callable[[Any], Array]

    @property
    def is_discrete(self) -> bool:
        """Whether the distribution is discrete."""
        return self.table is not None or has_pmf(self.given)

    def quantiles(self, p: Any) -> Array | None:
        """Return quantiles; None without a method for them."""
        method = getattr(self.given, "ppf", None) or getattr(self.given, "icdf", None)
        return None if method is None else np.asarray(method(p), np.float64)

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw independent observations."""
        if self.table is not None:
            values = np.empty(len(self.table), object)
            values[:] = list(self.table)
            return values[rng.choice(len(values), n, p=np.array(list(self.table.values())) / sum(self.table.values()))]
        if hasattr(self.given, "rvs"):
            return np.asarray(self.given.rvs(size=n, random_state=rng))
        if hasattr(self.given, "icdf"):
            return np.asarray(self.given.sample(n, rng=rng))
        if hasattr(self.given, "sample"):
            return np.asarray(self.given.sample(n, int(rng.integers(2**31))))
        raise ParameterError(
            "A Monte Carlo risk needs distributions to draw from, but a density is a plain function: pass one with "
            "`rvs` (scipy.stats) or `sample` (stats.MultivariateNormal), or support=(low, high) for quadrature."
        )


def density_of(given: Any, name: str) -> Density:
    """Return the distribution passed by a user; `name` is that of the state, for errors."""
    if isinstance(given, Density):
        return given
    if is_labelled(given):
        given = given.to_dict()
    if isinstance(given, Mapping):
        table = dict(given)
        check_probabilities(list(table.values()), f"The probabilities of the observations given {name}", sums=True)
        return Density(given, table, lambda xs: _looked_up(table, xs, name))
    if has_pmf(given):
        return Density(given, None, lambda xs: np.atleast_1d(np.asarray(given.logpmf(xs), np.float64)))
    if hasattr(given, "logpdf"):
        return Density(given, None, lambda xs: np.atleast_1d(np.asarray(given.logpdf(xs), np.float64)))
    if callable(given):
        return Density(given, None, lambda xs: _log(evaluate(given, xs), name))
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return density_of(dict(enumerate(np.asarray(given, np.float64).tolist())), name)
    raise ParameterError(
        f"The distribution given {name} is of type {type(given).__name__}: pass a dict of probabilities, a density "
        "(a function), or a distribution with logpdf or logpmf."
    )


def check_probabilities(values: Any, what: str, *, sums: bool) -> Array:
    """Return probabilities as an array, or raise."""
    try:
        p = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{what} must be non-negative numbers; got {values!r}.") from None
    if p.ndim != 1 or not len(p) or not np.isfinite(p).all() or (p < 0).any():
        raise ParameterError(f"{what} must be non-negative numbers; got {np.asarray(values).tolist()!r}.")
    if sums and abs(p.sum() - 1) > _ROUNDING:
        raise ParameterError(f"{what} must sum to 1; they sum to {p.sum():.6g}: divide them by their sum.")
    return p


def listed(observations: Any) -> Any:
    """Return observations as a list or an array, or raise if they are a single one."""
    if isinstance(observations, Iterator):
        raise DataError(f"Observations must be a list, not a {type(observations).__name__}: wrap it in list(...).")
    if isinstance(observations, str | Mapping) or not hasattr(observations, "__len__") or np.ndim(observations) == 0:
        raise DataError(
            f"Observations must be a list, even if there is only one; got {observations!r}: write [{observations!r}]."
        )
    return without_labels(observations)


def finite_joint(joint: Array) -> Array:
    """Return log joint densities; if those of some states are infinite, as at a pole, with 0 for them, else -inf."""
    if not np.isposinf(joint).any():
        return joint
    infinite = np.isposinf(joint)
    with np.errstate(divide="ignore"):
        return np.where(infinite.any(axis=-1, keepdims=True), np.log(infinite), joint)


def item_of(observation: Any) -> Any:
    """Return an observation as a Python object, for messages."""
    return observation.tolist() if isinstance(observation, np.generic | np.ndarray) else observation


def _looked_up(table: Mapping[Any, float], xs: Any, name: str) -> Array:
    values = [tuple(x) if isinstance(x, list) else x for x in (xs.tolist() if isinstance(xs, np.ndarray) else xs)]
    unknown = [x for x in values if x not in table]
    if unknown:
        raise DataError(
            f"The observation {unknown[0]!r} has no probability given {name}; known are {list(table)!r}: add it, "
            "with probability 0 "
            "if it is impossible."
        )
    with np.errstate(divide="ignore"):
        return np.log(np.array([table[x] for x in values], np.float64))


def evaluate(function: Callable[[Any], Any], xs: Any) -> Array:
    """Return the density of every observation, from one call if it accepts an array, else from one call each."""
    x = np.asarray(xs)
    if x.dtype.kind in "biuf":
        try:
            p = np.asarray(function(x), np.float64)
        except (TypeError, ValueError):  # as `math.exp(x)` and `x > 0 and ...` do
            p = np.empty(0)
        if p.shape in ((), x.shape[:1]):
            return np.broadcast_to(p, x.shape[:1])
    return np.array([float(function(one)) for one in xs])


def _log(p: Array, name: str) -> Array:
    if (p < 0).any() or np.isnan(p).any():
        raise DataError(f"The density given {name} is negative or NaN somewhere; a density is at least 0.")
    with np.errstate(divide="ignore"):
        return np.log(p)
