"""Betting bounds: the kernels against the equations, monotonicity, tightness, and error rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from summula.core.errors import DataError, ParameterError
from summula.stats import bounds_kernels
from summula.stats.bounds import clopper_pearson_bounds
from summula.stats.bounds_betting import (
    _SHARES,
    _profile,
    anytime_bounds,
    anytime_rejects,
    betting_bounds,
    betting_rejects,
)
from tests.reference import betting
from tests.stats.loss_laws import LAWS, Law, too_often

laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def capital(x: np.ndarray, m: float, u: float = 0.05, flip: bool = False, prior: float = 0.25, count: int = 0) -> float:
    """After all rows, without a goal."""
    pace, root = np.empty_like(x), np.empty_like(x)
    bounds_kernels.paces(x, prior, count, pace, root)
    return bounds_kernels.advance(x, flip, m, u, 2.0, pace, root, *_profile())


# ----------------------------------------------------------------------------------------------------------- kernels


def test_capital_follows_the_equations() -> None:
    rng = np.random.default_rng(0)
    for m, u in ((0.3, 0.05), (0.5, 0.5), (0.9, 0.01), (0.02, 0.9)):
        for x in (rng.beta(2, 5, 60), (rng.random(60) < 0.3).astype(float)):
            # Chords over cells of a sixteenth lie below the profile by less than 0.1 %.
            assert capital(x, m, u) == pytest.approx(betting.capital(x, m, u), rel=2e-2, abs=1e-3)
            assert capital(x, m, u, flip=True) == pytest.approx(betting.capital(1 - x, m, u), rel=2e-2, abs=1e-3)
            known = betting.capital(x, m, u, prior=0.9, count=40)
            assert capital(x, m, u, prior=0.9, count=40) == pytest.approx(known, rel=2e-2, abs=1e-3)


def test_shared_capital_follows_the_equations() -> None:
    x = np.random.default_rng(1).random(200)
    own = np.full(16, 1 / 16)
    bounds_kernels.multiply(x, False, 0.5, _SHARES, own, np.inf)
    assert own.sum() == pytest.approx(betting.shared_capital(x, 0.5, _SHARES), rel=1e-12)


def test_the_chords_are_concave_and_below_the_profile() -> None:
    from scipy.stats import norm

    lines, first = _profile()
    slopes = lines[:-1, 1]
    assert np.all(np.diff(slopes) <= 0)
    u = np.exp(np.linspace(np.log(1e-25), np.log(0.5), 5_000))
    cell = np.maximum((u.view(np.int64) >> 48) - first, 0)
    chord, top = lines[cell, 0] + lines[cell, 1] * u, norm.pdf(norm.ppf(u))
    assert np.all(chord <= top * (1 + 1e-12))
    inside = u > 2.0**-59
    assert np.all(chord[inside] >= top[inside] * (1 - 1e-3))


losses = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=60)


@given(losses, st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(1e-9, 0.9), st.integers(0, 100_000))
@settings(max_examples=300)
def test_capital_never_decreases_with_the_mean_that_is_tested(
    x: list[float], a: float, b: float, u: float, count: int
) -> None:
    values, (a, b) = np.array(x), sorted((a, b))
    low, high = capital(values, a, u, count=count), capital(values, b, u, count=count)
    assert -1e-12 <= low <= high + 1e-9
    assert high <= 1 + 1e-9


@given(losses, st.floats(0.01, 0.5))
def test_upper_and_lower_bounds_mirror_each_other(x: list[float], delta: float) -> None:
    values = np.array(x)
    for bounds_of in (betting_bounds, anytime_bounds):
        a, b = bounds_of(values, delta), bounds_of(1 - (1 - values), delta)
        assert 0 <= a.lower <= a.upper <= 1
        mirrored = bounds_of(1 - values, delta)
        np.testing.assert_allclose([a.lower, a.upper], [1 - mirrored.upper, 1 - mirrored.lower], atol=1e-6)
        np.testing.assert_allclose([a.lower, a.upper], [b.lower, b.upper], atol=1e-6)


def test_bounds_do_not_cross_when_both_games_are_won() -> None:
    """At delta = 1/2 bets on these losses reject every mean: the lower bound is moved down to the sample mean."""
    x = np.array([1.0, 1, 1, 0, 0, 0, 0, 0])
    assert betting_rejects(x, 0.6, 0.5)
    assert betting_rejects(1 - x, 0.45, 0.5)  # a mean of 0.55 or less
    lower, upper = betting_bounds(x, 0.5)
    assert lower == x.mean() < upper < 0.6


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-301, 1e-299, 1e-20, 0.05, 0.5, 0.9, 1 - 2.0**-53])
def test_bounds_surround_the_sample_mean_at_any_delta(delta: float) -> None:
    zeros, ones = np.zeros(1_500), np.ones(1_500)
    # Sorted losses win early, against what comes later.
    samples = (zeros[:1], ones[:1], zeros, ones, np.append(zeros, ones), np.append(ones, zeros), np.full(50, 0.3))
    for x in samples:
        for bounds_of in (betting_bounds, anytime_bounds):
            lower, upper = bounds_of(x, delta)
            assert 0 <= lower <= x.mean() <= upper <= 1


def test_bounds_widen_as_delta_shrinks() -> None:
    x = np.random.default_rng(8).random(4_000)
    for bounds_of in (betting_bounds, anytime_bounds):
        found = [bounds_of(x, delta) for delta in (0.5, 0.05, 1e-10, 1e-100, 1e-299, 1e-301, 1e-310, 5e-324)]
        assert np.all(np.diff([one.lower for one in found]) < 0)
        assert np.all(np.diff([one.upper for one in found]) > 0)
        assert found[-1].upper < 1


def test_the_bound_is_where_rejection_begins() -> None:
    rng = np.random.default_rng(3)
    for x in (rng.random(500), (rng.random(500) < 0.02).astype(float), np.zeros(500)):
        for bounds_of, rejects in ((betting_bounds, betting_rejects), (anytime_bounds, anytime_rejects)):
            upper = bounds_of(x).upper
            assert rejects(x, upper)
            assert not rejects(x, upper * (1 - 1e-6))


def test_samples_one_by_one_or_together() -> None:
    x = np.random.default_rng(4).random((3, 100))
    for bounds_of in (betting_bounds, anytime_bounds):
        together = bounds_of(x)
        for i in range(3):
            assert (together.lower[i], together.upper[i]) == tuple(bounds_of(x[i]))
    np.testing.assert_array_equal(betting_rejects(x, 0.7), [betting_rejects(row, 0.7) for row in x])


def test_blocks_of_rows_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(5).random(1_000)
    whole = betting_bounds(x), anytime_bounds(x)
    monkeypatch.setattr("summula.stats.bounds_betting._BLOCK", 137)
    assert (betting_bounds(x), anytime_bounds(x)) == whole


# --------------------------------------------------------------------------------------------------------- tightness


def test_nothing_lost_is_as_good_as_exact() -> None:
    """Without any loss the best bet is everything, every time: Clopper and Pearson's bound."""
    for n in (100, 1_000, 100_000):
        assert betting_bounds(np.zeros(n)).upper == pytest.approx(clopper_pearson_bounds(0, n).upper, rel=1e-6)
        assert betting_bounds(np.ones(n)).lower == pytest.approx(clopper_pearson_bounds(n, n).lower, rel=1e-6)


@pytest.mark.parametrize(("n", "most"), [(1_000, 0.0690), (10_000, 0.0545), (100_000, 0.0514)])
def test_upper_bound_at_an_error_of_five_percent(n: int, most: float) -> None:
    x = np.zeros(n)
    x[: n // 20] = 1.0
    for seed in range(20 if n < 100_000 else 5):
        assert betting_bounds(np.random.default_rng(seed).permutation(x)).upper <= most


@laws
@pytest.mark.parametrize("n", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_coverage_is_close_to_nominal(law: Law, n: int) -> None:
    """The bound lies on the wrong side of the mean just when the mean itself is rejected."""
    times = 2_000 if n < 10_000 else 800
    x = law.draw(times, n)
    for delta in (0.05, 0.2):
        for wrong in (betting_rejects(x, law.mean, delta), betting_rejects(1 - x, 1 - law.mean, delta)):
            assert not too_often(wrong.sum(), times, delta)
            assert wrong.mean() >= delta / 2


@laws
@pytest.mark.parametrize("n", [40, 400])
def test_earlier_losses_never_make_it_wrong_more_often(law: Law, n: int) -> None:
    """Not even with earlier losses of far too small or too large variance, which make the stakes too large or small."""
    times = 2_000
    x = law.draw(times, n)
    for earlier in (law.draw(1, 300)[0], np.full(300, law.mean), np.arange(300) % 2):
        for delta in (0.05, 0.2):
            wrong = betting_rejects(x, law.mean, delta, earlier)
            assert not too_often(wrong.sum(), times, delta)
            wrong = betting_rejects(1 - x, 1 - law.mean, delta, 1 - earlier)
            assert not too_often(wrong.sum(), times, delta)


def test_earlier_losses_decide_where_few_rows_do_not() -> None:
    """Differences of losses with a mean of -0.8 standard deviations, scaled to [0, 1]: 53 rows are mostly enough."""
    rng = np.random.default_rng(0)
    x, earlier = (np.clip(rng.normal(0.45, 0.06, size), 0, 1) for size in ((200, 53), 210))
    assert betting_rejects(x, 0.5).mean() < 0.6
    assert betting_rejects(x, 0.5, earlier=earlier).mean() > 0.7
    assert np.mean(betting_bounds(x, earlier=earlier).upper < betting_bounds(x).upper) > 0.95


@laws
def test_anytime_bounds_hold_with_the_stated_probability(law: Law) -> None:
    x = law.draw(500, 10_000)
    for delta in (0.05, 0.2):
        for wrong in (anytime_rejects(x, law.mean, delta), anytime_rejects(1 - x, 1 - law.mean, delta)):
            assert not too_often(wrong.sum(), 500, delta)


def test_the_price_of_any_time() -> None:
    x = np.random.default_rng(6).beta(1, 19, 100_000)
    fixed, anytime = betting_bounds(x), anytime_bounds(x)
    assert anytime.lower < fixed.lower < 0.05 < fixed.upper < anytime.upper
    assert anytime.upper - anytime.lower < 3 * (fixed.upper - fixed.lower)


@pytest.mark.parametrize("bounds", [betting_bounds, anytime_bounds])
def test_bounds_take_few_passes_whatever_the_number_of_rows(bounds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = 0

    def counted(kernel: Any) -> Any:
        def call(x: Any, *rest: Any) -> Any:
            nonlocal passed
            passed += len(x)
            return kernel(x, *rest)

        return call

    for name in ("advance", "multiply"):
        monkeypatch.setattr(bounds_kernels, name, counted(getattr(bounds_kernels, name)))
    for n in (1_000, 100_000):
        passed = 0
        bounds(np.random.default_rng(7).random(n))
        # Each bound is computed to 24 bits by bisection, starting from an interval of a few standard errors.
        assert 2 * 10 * n < passed < 2 * 35 * n


# ------------------------------------------------------------------------------------------------------------ errors


def test_losses_outside_the_range_are_named() -> None:
    with pytest.raises(DataError, match=r"The loss is 1.5 at row 1; losses must be in \[0, 1\]: scale them"):
        betting_bounds([0.1, 1.5])
    with pytest.raises(DataError, match="The loss is nan at row 2 of sample 1"):
        anytime_bounds([[0.1, 0.2, 0.3], [0.1, 0.2, np.nan]])
    with pytest.raises(DataError, match=r"The losses have shape \(0,\); expected"):
        betting_bounds([])
    with pytest.raises(DataError, match="The earlier losses must be finite numbers in one dimension"):
        betting_bounds([0.5], earlier=[0.1, np.nan])
    with pytest.raises(ParameterError, match="delta must be"):
        betting_bounds([0.5], 0)
    with pytest.raises(ParameterError, match="The mean m must be a number between 0 and 1"):
        betting_rejects([0.5], 1.0)


def test_warmup_compiles_every_kernel() -> None:
    bounds_kernels.warmup()
    for name in set(bounds_kernels.__all__) - {"warmup"}:
        assert getattr(bounds_kernels, name).signatures
