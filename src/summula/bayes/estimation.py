"""Bayes estimates of a parameter, which minimise the expected loss under its posterior, by quadrature.

    p(t | data)  proportional to  exp(log_likelihood(t, data) + log_prior(t))                                   (1)
    estimate = argmin over a of  integral loss(a, t) p(t | data) dt                                             (2)

Squared loss gives the posterior mean, absolute loss the median, zero-one loss the mode (the limit of losses that are 1
outside a shrinking neighbourhood). For conjugate priors (1) is known: see `conjugate`. Here it is tabulated on
Gauss-Legendre nodes between the points at which it is exp(-depth) of its maximum, farther away for heavy tails.

Reference: Lehmann and Casella, Theory of Point Estimation, section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan

__all__ = ["LOSSES", "bayes_estimator", "check_loss", "checked_support", "least_expected_loss", "quantile_nodes"]

Array = NDArray[np.float64]
Loss = Callable[[float, Array], Any]

LOSSES = ("square", "zero_one", "absolute")
_DEPTHS = (45.0, 90.0, 180.0, 360.0)  # exp(-45) is below rounding, unless tails fall slowly
_NEGLIGIBLE = 1e-11  # share of the expectation beyond the ends
_PIECES, _ORDER = 60, 8  # pieces on each side of the mode, and nodes per piece
_HALVINGS = 60  # maximum number of halvings of a piece
_RESOLUTION = 1e-10  # of a density on a piece, relative to the whole
_X, _W = np.polynomial.legendre.leggauss(_ORDER)
_LAST_COEFFICIENTS = np.array(  # of degrees 6 and 7, from values at the nodes
    [(2 * k + 1) / 2 * _W * np.polynomial.Legendre.basis(k)(_X) for k in (_ORDER - 2, _ORDER - 1)]
)
_SEARCH = 1_001
_QUANTILES = 20_000  # number of nodes between the tails, and probability of the tails
_TAIL = 1e-3  # nodes per tail, down to this probability
_FARTHEST = 1e-60
_TAIL_PIECES = 60


class _Posterior(NamedTuple):
    """Nodes in ascending order, their probability masses, and the ends of the pieces."""

    nodes: Array
    mass: Array
    edges: Array


def bayes_estimator(
    log_likelihood: Callable[[float, Any], Any],
    log_prior: Any,
    data: Any,
    loss: Any = "square",
    *,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> float:
    """Compute the Bayes estimate (2) of a number.

    Parameters
    ----------
    log_likelihood : callable
        log p(data | t), called with t (a number) and the data.
    log_prior : callable or distribution
        log p(t), up to a constant; or a distribution with `logpdf`. A function that returns 0 is a flat prior.
    data : object
        Passed to `log_likelihood`.
    loss : {"square", "zero_one", "absolute"} or callable, default="square"
        A function is called with the estimate and an array of possible values of t.
    support : pair of float, default=(-inf, inf)
        Interval of possible values of t.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from summula.bayes import bayes_estimator
    >>> x = np.array([0.5, 2.0, 1.1])
    >>> def log_likelihood(t, x):  # exponential waiting times
    ...     return len(x) * np.log(t) - t * x.sum()
    >>> mode = bayes_estimator(log_likelihood, lambda t: -t, x, loss="zero_one", support=(0, np.inf))
    >>> round(mode, 8), round(3 / (float(x.sum()) + 1), 8)
    (0.65217391, 0.65217391)
    """
    check_loss(loss)
    log_prior = getattr(log_prior, "logpdf", log_prior)
    for name, function in (("log_likelihood", log_likelihood), ("log_prior", log_prior)):
        if not callable(function):
            raise ParameterError(f"{name} must be a function that returns a log density; got {function!r}.")
    low, high = checked_support(support)

    def log_posterior(t: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = float(np.sum(log_likelihood(t, data)) + np.sum(log_prior(t)))
        return -np.inf if np.isnan(value) else value

    begin, mode, end = _bracket(log_posterior, low, high, _DEPTHS[0])
    if loss == "zero_one":
        return mode
    share = (np.arange(_PIECES + 1) / _PIECES) ** 2
    posterior = _tabulated(log_posterior, np.concatenate([mode - (mode - begin) * share, mode + (end - mode) * share]))
    for depth in _DEPTHS[1:]:
        if _tails(posterior, low, high, power=1 if loss == "absolute" else 2) <= _NEGLIGIBLE:
            break
        begin, _, end = _bracket(log_posterior, low, high, depth)
        edges = posterior.edges
        tails = [_ladder(mode, edges[0], begin), edges, _ladder(mode, edges[-1], end)]
        posterior = _tabulated(log_posterior, np.concatenate(tails))
    return _median(posterior) if loss == "absolute" else least_expected_loss(posterior.nodes, posterior.mass, loss)


def checked_support(support: Any) -> tuple[float, float]:
    """Return the ends of an interval, or raise."""
    ends = [number_or_nan(end) for end in support] if np.ndim(support) == 1 else []
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ParameterError(f"support must be two numbers, the smaller first; got {support!r}.")
    return ends[0], ends[1]


def check_loss(loss: Any) -> None:
    """Raise if the loss is neither a known name nor a function."""
    if not callable(loss) and loss not in LOSSES:
        raise ParameterError(f"loss must be one of {', '.join(LOSSES)} or a function; got {loss!r}.")


def quantile_nodes(distribution: Any) -> tuple[Array, Array]:
    """Return ascending nodes of a `scipy.stats` distribution, and their masses, for computing expectations.

    They are quantiles of equal mass, and in each tail Gauss-Legendre nodes in the logarithm of its probability u, since
    moments of heavy-tailed distributions need distant nodes.
    """
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    edges = np.linspace(np.log(_FARTHEST), np.log(_TAIL), _TAIL_PIECES + 1)
    half = np.diff(edges) / 2
    u = np.exp((edges[:-1] + half)[:, None] + half[:, None] * x).ravel()
    in_tail = u * (half[:, None] * w).ravel()
    middle = _TAIL + (1 - 2 * _TAIL) * (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    with np.errstate(all="ignore"):
        nodes = np.concatenate([distribution.ppf(u), distribution.ppf(middle), distribution.isf(u[::-1])])
    mass = np.concatenate([in_tail, np.full(_QUANTILES, (1 - 2 * _TAIL) / _QUANTILES), in_tail[::-1]])
    good = np.isfinite(nodes)
    return nodes[good], mass[good] / mass[good].sum()


def least_expected_loss(nodes: Array, mass: Array, loss: Any) -> float:
    """Return the estimate (2) for a posterior of nodes and masses, for "square" or a loss function."""
    if loss == "square":
        return float(mass @ nodes)

    def expected(a: float) -> float:
        return float(mass @ np.broadcast_to(np.asarray(loss(a, nodes), np.float64), nodes.shape))

    few = nodes[:: max(1, len(nodes) // 200)]
    values = np.array([expected(a) for a in few])
    if not np.isfinite(values).any():
        raise DataError("The expected loss is not finite for any estimate; pass a loss with a finite expectation.")
    best = int(np.nanargmin(np.where(np.isfinite(values), values, np.nan)))
    ends = few[max(best - 1, 0)], few[min(best + 1, len(few) - 1)]
    found = minimize_scalar(expected, bounds=ends, method="bounded", options={"xatol": 1e-12 * (1 + abs(few[best]))})
    return float(found.x if found.fun <= values[best] else few[best])


# ---------------------------------------------------------------------------------------------------- the posterior


def _tails(posterior: _Posterior, low: float, high: float, power: int) -> float:
    """Return density times distance**power at the ends, relative to its mean: about the share of a tail beyond them."""
    nodes, mass, edges = posterior
    away = np.abs(nodes - mass @ nodes)
    scale = float(mass @ away) ** (power - 1)
    ends = [k for k, limit in ((0, low), (-1, high)) if not np.isfinite(limit)]
    width = np.diff(edges)
    return max((float(mass[k] / width[k] * _ORDER * away[k] ** power) / scale for k in ends), default=0.0)


def _bracket(
    log_posterior: Callable[[float], float], low: float, high: float, depth: float
) -> tuple[float, float, float]:
    """Return the mode, and the points on either side beyond which the posterior is negligible."""
    grid = _unfolded(np.linspace(0.0, 1.0, _SEARCH + 2)[1:-1], low, high)
    values = np.array([log_posterior(t) for t in grid])
    if not (values > -np.inf).any() or (values == np.inf).any():
        raise DataError(
            "The posterior is 0 or infinite wherever it was evaluated; check log_likelihood and log_prior, and pass "
            "the support of the parameter."
        )
    top = int(np.argmax(values))
    around = grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda t: -log_posterior(t), bounds=around, method="bounded", options={"xatol": 1e-13 * (1 + abs(grid[top]))}
    )
    mode, peak = (float(found.x), -float(found.fun)) if -found.fun >= values[top] else (float(grid[top]), values[top])
    covered = np.flatnonzero(values > peak - depth)
    first, last = (int(covered[0]), int(covered[-1])) if len(covered) else (top, top)
    inside = (min(grid[first], mode), max(grid[last], mode)) if len(covered) else (mode, mode)
    level = peak - depth
    begin = _falls(log_posterior, level, grid[first - 1] if first else low, inside[0], low)
    end = _falls(log_posterior, level, grid[last + 1] if last + 1 < len(grid) else high, inside[1], high)
    return begin, _polished(log_posterior, mode, begin, end), end


def _falls(log_posterior: Callable[[float], float], level: float, outside: float, inside: float, limit: float) -> float:
    """Return the point between two points at which the log posterior falls to a level."""
    if not np.isfinite(outside):
        step = max(abs(inside), 1.0)
        outside = inside + np.sign(limit) * step
        while log_posterior(outside) > level:
            step *= 2
            outside = inside + np.sign(limit) * step
            if step > 1e300:
                raise DataError("The posterior does not decay, so it cannot be normalised; check the prior.")
    for _ in range(100):
        middle = (outside + inside) / 2
        if log_posterior(middle) > level:
            inside = middle
        else:
            outside = middle
    return float(outside)


def _polished(log_posterior: Callable[[float], float], mode: float, begin: float, end: float) -> float:
    """Refine the mode beyond the resolution of posterior values, as a root of the difference quotient."""
    h = 1e-4 * (end - begin)
    if not begin < mode - 2 * h < mode + 2 * h < end:
        return mode

    def slope(t: float) -> float:  # central differences of order 4
        near, far = log_posterior(t + h) - log_posterior(t - h), log_posterior(t + 2 * h) - log_posterior(t - 2 * h)
        return (8 * near - far) / (12 * h)

    left, right = mode - h, mode + h
    a, b = slope(left), slope(right)
    if not (np.isfinite([a, b]).all() and a > 0 > b):
        return mode
    for _ in range(60):
        middle = (left + right) / 2
        left, right = (middle, right) if slope(middle) > 0 else (left, middle)
    return (left + right) / 2


def _ladder(mode: float, inner: float, outer: float) -> Array:
    """Return points between two points on one side of the mode, whose distances from it grow geometrically."""
    near, far = abs(inner - mode), abs(outer - mode)
    if not 0 < near < far:
        return np.array([outer])
    n = math.ceil(math.log2(far / near))
    return np.asarray(mode + math.copysign(near, inner - mode) * (far / near) ** (np.arange(1, n + 1) / n))


def _tabulated(log_posterior: Callable[[float], float], edges: Array) -> _Posterior:
    """Tabulate the posterior on Gauss-Legendre nodes of pieces, which are halved until they are short enough."""
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    edges = np.unique(edges)
    values = np.empty((0, _ORDER))
    fresh = np.ones(len(edges) - 1, np.bool_)  # pieces not yet evaluated
    for _ in range(_HALVINGS):
        half = np.diff(edges)[:, None] / 2
        nodes = edges[:-1, None] + half + half * x
        known, values = values, np.empty(nodes.shape)
        values[~fresh] = known
        values[fresh] = np.array([log_posterior(t) for t in nodes[fresh].ravel()]).reshape(-1, _ORDER)
        values[np.isposinf(values)] = -np.inf  # a pole at the end of the support, at which a node was rounded
        mass = half * w * np.exp(values - values.max())
        coarse = _is_coarse(nodes, mass, w)
        if not coarse.any():
            break
        # Both halves of a coarse piece are evaluated anew.
        edges = np.insert(edges, np.flatnonzero(coarse) + 1, (edges[:-1] + edges[1:])[coarse] / 2)
        values, fresh = values[~coarse], np.repeat(coarse, 1 + coarse)
    return _Posterior(nodes.ravel(), (mass / mass.sum()).ravel(), edges)


def _is_coarse(nodes: Array, mass: Array, w: Array) -> NDArray[np.bool_]:
    """Return the pieces on which the last Legendre coefficients of the density, times the distance, are not small."""
    density = mass / w
    centre = float((mass * nodes).sum() / mass.sum())
    spread = float((mass * np.abs(nodes - centre)).sum() / mass.sum())
    distance = np.maximum(np.abs(nodes - centre).max(axis=1) / max(spread, np.finfo(np.float64).tiny), 1.0)
    last = np.abs(density @ _LAST_COEFFICIENTS.T).sum(axis=1)
    return np.asarray(last * distance > _RESOLUTION * mass.sum())


def _median(posterior: _Posterior) -> float:
    """Return the median, with the density interpolated by a polynomial in each piece."""
    below = np.concatenate([[0.0], np.cumsum(posterior.mass.reshape(-1, _ORDER).sum(axis=1))])
    piece = min(int(np.searchsorted(below, 0.5, side="right")) - 1, len(below) - 2)
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    density = posterior.mass.reshape(-1, _ORDER)[piece] / w
    antiderivative = np.polynomial.Polynomial.fit(x, density, _ORDER - 1, domain=[-1, 1]).integ(lbnd=-1)
    left, right = -1.0, 1.0
    for _ in range(60):
        middle = (left + right) / 2
        left, right = (middle, right) if antiderivative(middle) < 0.5 - below[piece] else (left, middle)
    low, high = posterior.edges[piece], posterior.edges[piece + 1]
    return float(low + (high - low) * (left + 1) / 2)


def _unfolded(u: Array, low: float, high: float) -> Array:
    """Map points between 0 and 1 to the support, denser near 0 and towards infinite ends."""
    if np.isfinite(low) and np.isfinite(high):
        return np.asarray(low + (high - low) * u)
    spread = 10.0 ** (24 * u - 12)  # from 1e-12 to 1e12
    if np.isfinite(low):
        return np.asarray(low + spread)
    if np.isfinite(high):
        return np.asarray(high - spread[::-1])
    both = 10.0 ** (24 * np.linspace(0.0, 1.0, len(u) // 2) - 12)
    return np.concatenate([-both[::-1], [0.0], both])
