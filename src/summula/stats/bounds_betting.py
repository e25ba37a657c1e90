r"""Confidence bounds on the mean of losses in [0, 1] by betting.

To test whether the true mean mu of x_1, x_2, ... is at least m, bet that losses are smaller. A capital that starts at 1
with stakes s_t >= 0, which are chosen before x_t is observed and never allow a negative capital, becomes

    K_t = K_{t-1} + s_t (m - x_t)                                                                              (1)

If mu >= m no bet has a positive expected gain, K is a nonnegative supermartingale, and by Ville's inequality the
probability that it ever reaches 1 / delta is at most delta: m is then rejected. The upper bound is the supremum of the
m not rejected; it is below mu only if mu itself is rejected. The lower bound is one minus the upper bound for 1 - x.
No distributional assumption is needed except that each loss has conditional mean mu given those before it.

The two bounds come from separate tests. With a large delta, or if early losses differ from later ones, both may reject
every m near the sample mean. A bound that would exclude the sample mean is therefore moved outward to it, which
preserves its validity and ensures lower <= mean <= upper.

***A fixed number of rows.** The optimal bet pays 1 / delta or nothing after n rows. For a sum of normal increments it
is known: with u = delta K the probability of winning, R = n - t + 1 remaining rows and standard deviation sigma,

    stake on u = I(u) / (sigma sqrt(R)),     I(u) = phi(Phi^-1(u))                                             (2)

so stakes are recomputed at each step from the distance to the target and the remaining rows. Losses are not normal, and
the capital must stay in [0, 1 / delta]. Hence the stakes are, with any sigma_t known before x_t (the smaller of an
estimate with a prior observation of variance 1/4, and of the largest value that a mean of m allows),

    s_t(u, m) = min{ u / (1 - m),   I(u) / (sigma_t sqrt(R)),   (1 - u) / m },     sigma_t <= sqrt(m (1 - m))  (3)
    sigma_t^2 = (1/4 + S_0 + sum_{i<t} (x_i - mean_i)^2) / (n_0 + t)                                           (4)

Here n_0 and S_0 are the number of values that were known before, and their sum of squared deviations; both are zero
without such values. These, for example losses in cross-validation, affect only the size of the stakes.
Proof that this is allowed: if they are independent of x, then given them each x_t still has conditional mean mu,
sigma_t is known before x_t, and the stakes (3) keep the capital in [0, 1 / delta] whatever sigma_t is. So (1) is a
supermartingale given them, the bound is wrong with a probability of at most delta given them, and hence on average.
A wrong variance costs power, never validity.

The rejected m form an interval that ends at 1, so bisection finds where it begins. Proof: s_t is concave in u, and 0 at
u = 0 and u = 1; it is below u / (1 - m), so its slope is at most 1 / (1 - m), and likewise at least -1 / m.
So u + s_t(u, m) (m - x) never decreases in u, for any x in [0, 1]. At fixed u each of u (m - x) / (1 - m),
I (m - x) / sigma, I (m - x) / sqrt(m (1 - m)) and (1 - u) (m - x) / m increases with m, hence so do their minima and
maxima. By induction K_t(m) is non-decreasing in m. (I is interpolated linearly from a table, which keeps it concave.
The target of the bets is 1 / delta times 1 / 0.95, since a target is only approached; m is rejected at 1 / delta.)

***Any time.** A bound that holds for all n simultaneously cannot target one of them. The capital is divided equally
among 16 strategies, each of which stakes a constant fraction lambda = 1, 1/2, 1/4, ... of its capital,

    K_t = mean over lambda of  prod_{i <= t} (1 + lambda (m - x_i))                                            (5)

The fractions are the same for every m, so K_t(m) increases with m; for every n some fraction is within a factor of
sqrt(2) of the best, at the cost of log 16 in log capital. Ville's inequality holds for all times simultaneously.

References: Waudby-Smith and Ramdas (2024), sections 3 and 4; Voracek and Orabona (2025) for recomputed stakes; Ville
(1939).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.stats.bounds import Bounds, check_delta, chernoff_bounds, outward

__all__ = ["anytime_bounds", "anytime_rejects", "betting_bounds", "betting_rejects"]

Array = NDArray[np.float64]
# (m, flip) -> whether a mean of at least m is rejected, for x or (flip) for 1 - x.
Test = Callable[[float, bool], bool]

_PRIOR = 0.25
_GOAL = 0.95  # fraction of the target at which m is rejected
_SHARES = 2.0 ** -np.arange(16.0)
_BLOCK = 1 << 21  # rows per kernel call, between which Ctrl-C is handled
_CELLS = 16
_SMALLEST = -60  # exponent of 2 below which the profile is a single chord
_PRECISION = 2.0**-24
_SMALLEST_DELTA = 1e-300  # below this, rounding errors of subnormal numbers matter
_START = 2.0**-64  # initial capital, so that 1 / delta times it is finite for every delta


def betting_bounds(x: ArrayLike, delta: float = 0.05, earlier: ArrayLike | None = None) -> Bounds:
    """Compute confidence bounds on the mean for a sample size fixed in advance, by the bets (3).

    Parameters
    ----------
    x : array-like of shape (n,) or (n_samples, n)
        Losses in [0, 1], in an order that does not depend on their values.
    delta : float
        Error probability of each one-sided bound.
    earlier : array-like of shape (n_0,), optional
        Losses on the same scale that are independent of x, such as those of cross-validation. The first stakes are
        chosen by their variance, which makes the bounds tighter for few rows; their mean is not used.

    Returns
    -------
    Bounds
        Floats, or arrays with one value per sample.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).beta(1, 19, size=10_000)  # mean 0.05
    >>> lower, upper = betting_bounds(x)
    >>> bool(lower < 0.05 < upper), bool(upper - lower < 0.002)
    (True, True)
    >>> few, before = x[:40], x[40:200]
    >>> bool(betting_bounds(few, earlier=before).upper < betting_bounds(few).upper)
    True
    """
    return _for_each(x, check_delta(delta), functools.partial(_fixed, earlier=_earlier(earlier)))


def anytime_bounds(x: ArrayLike, delta: float = 0.05) -> Bounds:
    """Compute confidence bounds on the mean that are valid for all sample sizes simultaneously (5).

    Parameters
    ----------
    x : array-like of shape (n,) or (n_samples, n)
        Losses in [0, 1], in the order of arrival.
    delta : float
        Probability that a one-sided bound is ever wrong, for any number of rows.

    Returns
    -------
    Bounds
        Bounds after the last row.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).beta(1, 19, size=10_000)  # mean 0.05
    >>> lower, upper = anytime_bounds(x)
    >>> bool(lower < 0.05 < upper), bool(upper - lower < 0.006)
    (True, True)
    """
    return _for_each(x, check_delta(delta), _anytime)


def betting_rejects(x: ArrayLike, m: float, delta: float = 0.05, earlier: ArrayLike | None = None) -> Any:
    """Test whether the bets on x reject a true mean of at least m, in one pass over x.

    `betting_bounds(x, delta, earlier).upper` is the smallest rejected m, or the sample mean if that is larger.

    Parameters
    ----------
    x : array-like of shape (n,) or (n_samples, n)
        Losses in [0, 1].
    m : float
        Mean to test, strictly between 0 and 1.
    delta : float
    earlier : array-like of shape (n_0,), optional
        As in `betting_bounds`.

    Returns
    -------
    bool or ndarray of bool
    """
    return _test_each(x, m, check_delta(delta), functools.partial(_fixed, earlier=_earlier(earlier)))


@inherit_docs(betting_rejects)
def anytime_rejects(x: ArrayLike, m: float, delta: float = 0.05) -> Any:
    """Test whether the bets on x reject a true mean of at least m after any number of rows.

    `anytime_bounds(x, delta).upper` is the smallest rejected m, or the sample mean if that is larger.
    """
    return _test_each(x, m, check_delta(delta), _anytime)


# ------------------------------------------------------------------------------------------------------------- tests


@functools.cache
def _profile() -> tuple[Array, int]:
    """Return the chords of I(u) of (2) over [0, 1/2], and the leading bits of the first cell."""
    from scipy.special import ndtri

    powers = 2.0 ** np.arange(_SMALLEST, -1)
    nodes = np.append((powers[:, None] * (1 + np.arange(_CELLS) / _CELLS)).ravel(), 0.5)
    values = np.exp(-(ndtri(nodes) ** 2) / 2) / np.sqrt(2 * np.pi)
    slopes = np.diff(values) / np.diff(nodes)
    chords = np.column_stack([values[:-1] - slopes * nodes[:-1], slopes])
    # The chord from 0 below the first node, and the maximum at 1/2.
    lines = np.vstack([[0.0, values[0] / nodes[0]], chords, [values[-1], 0.0]])
    bits = int(np.float64(nodes[0]).view(np.int64)) >> 48
    return np.ascontiguousarray(lines), bits - 1


class _Earlier(NamedTuple):
    """Return the number of the values known before, and their sum of squared deviations: n_0 and S_0 of (4)."""

    number: int
    square: float


def _earlier(values: ArrayLike | None) -> _Earlier:
    known = np.zeros(0) if values is None else np.asarray(values, np.float64)
    if known.ndim != 1 or not np.isfinite(known).all():
        raise DataError("The earlier losses must be finite numbers in one dimension.")
    return _Earlier(len(known), float(((known - known.mean()) ** 2).sum()) if len(known) else 0.0)


def _fixed(x: Array, delta: float, earlier: _Earlier) -> Test:
    from summula.stats.bounds_kernels import advance, paces

    if delta < _SMALLEST_DELTA:
        return _chernoff(x, delta)
    lines, first = _profile()
    pace, root = np.empty_like(x), np.empty_like(x)
    paces(x, _PRIOR + earlier.square, earlier.number, pace, root)

    def rejects(m: float, flip: bool) -> bool:
        u = _GOAL * delta
        for start in range(0, len(x), _BLOCK):
            rows = slice(start, start + _BLOCK)
            u = advance(x[rows], flip, m, u, _GOAL, pace[rows], root[rows], lines, first)
            if u >= _GOAL:
                return True
        return False

    return rejects


def _anytime(x: Array, delta: float) -> Test:
    from summula.stats.bounds_kernels import multiply

    goal = 1 / (delta / _START)

    def rejects(m: float, flip: bool) -> bool:
        capital = np.full(len(_SHARES), _START / len(_SHARES))
        blocks = range(0, len(x), _BLOCK)
        return any(multiply(x[i : i + _BLOCK], flip, m, _SHARES, capital, goal) for i in blocks)

    return rejects


def _chernoff(x: Array, delta: float) -> Test:
    """Return Chernoff's test, for a delta too small to represent the capital in double precision."""
    bounds = chernoff_bounds(float(x.mean()), len(x), delta)

    def rejects(m: float, flip: bool) -> bool:
        return bool(m > (1.0 - bounds.lower if flip else bounds.upper))

    return rejects


# --------------------------------------------------------------------------------------------------------- inversion


def _for_each(x: ArrayLike, delta: float, test_of: Callable[[Array, float], Test]) -> Bounds:
    samples = _samples(x)
    found, means = np.empty((2, len(samples))), np.empty(len(samples))
    for i, sample in enumerate(samples):
        rejects = test_of(sample, delta)
        means[i] = mean = min(max(float(sample.mean()), 0.0), 1.0)
        spread = float(sample.std()) / np.sqrt(len(sample)) + 1 / len(sample)
        found[0, i] = 1.0 - _end(functools.partial(rejects, flip=True), 1.0 - mean, spread)  # type: ignore[call-arg]
        found[1, i] = _end(functools.partial(rejects, flip=False), mean, spread)  # type: ignore[call-arg]
    bounds = outward(found[0], found[1], means)
    return bounds if np.ndim(x) == 2 else Bounds(bounds.lower[0], bounds.upper[0])


def _end(rejects: Callable[[float], bool], mean: float, spread: float) -> float:
    """Return the smallest rejected m, rounded up: bracket it near mean + 2 spread, then bisect."""
    low, high, step = 0.0, 1.0, spread
    guess = mean + 2 * spread
    # Rejection is monotone in m, so every test shortens the interval.
    while low < guess < high:
        if rejects(guess):
            high, guess = guess, guess - step
            if low > 0.0:
                break
        else:
            low, guess = guess, guess + step
            if high < 1.0:
                break
        step *= 2
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if rejects(middle):
            high = middle
        else:
            low = middle
    return high


def _test_each(x: ArrayLike, m: float, delta: float, test_of: Callable[[Array, float], Test]) -> Any:
    m = check_delta(m, "The mean m")
    answers = [test_of(sample, delta)(m, False) for sample in _samples(x)]
    return np.array(answers) if np.ndim(x) == 2 else answers[0]


def _samples(x: ArrayLike) -> Array:
    values = np.ascontiguousarray(x, np.float64)
    if values.ndim not in (1, 2) or not values.size:
        raise DataError(f"The losses have shape {values.shape}; expected (n,) or (n_samples, n) with n >= 1.")
    outside = ~((values >= 0) & (values <= 1))
    if outside.any():
        at = np.unravel_index(int(np.argmax(outside)), values.shape)
        place = f"row {at[0]}" if values.ndim == 1 else f"row {at[1]} of sample {at[0]}"
        raise DataError(f"The loss is {values[at]:g} at {place}; losses must be in [0, 1]: scale them first.")
    return values.reshape(-1, values.shape[-1])
