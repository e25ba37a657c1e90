"""Bounds in closed form: textbook values, other libraries, and error rates."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from summula.core.errors import DataError, ParameterError
from summula.stats.bounds import (
    bernstein_bounds,
    chernoff_bounds,
    clopper_pearson_bounds,
    hoeffding_bounds,
    mcnemar,
    order_statistic,
    shared_delta,
)
from tests.stats.loss_laws import LAWS, Law, too_often

laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


# ------------------------------------------------------------------------------------------------------------ values


def test_clopper_pearson_is_the_exact_interval_of_scipy() -> None:
    for k, n in ((0, 10), (1, 10), (10, 10), (50, 1000), (500, 10_000), (3, 100_000)):
        for delta in (0.2, 0.05, 1e-6):
            lower, upper = clopper_pearson_bounds(k, n, delta)
            # One-sided at delta each is two-sided at 2 delta.
            expected = stats.binomtest(k, n).proportion_ci(1 - 2 * delta, method="exact")
            # The reference is accurate to 2e-12, and loses digits in 1 - 2 delta.
            assert lower == pytest.approx(expected.low, rel=1e-5, abs=1e-11)
            assert upper == pytest.approx(expected.high, rel=1e-5, abs=1e-11)


def test_clopper_pearson_at_an_error_of_five_percent() -> None:
    n = np.array([1_000, 10_000, 100_000])
    upper = clopper_pearson_bounds(n // 20, n).upper
    assert np.all(upper <= [0.0630, 0.0538, 0.0512])
    np.testing.assert_allclose(upper, [0.0629, 0.0537, 0.0511], atol=6e-5)


def test_fifty_nine_rows_without_an_error() -> None:
    """The auditors' rule: 59 rows without an error give "below 5 %" with confidence 95 %, 58 do not."""
    assert clopper_pearson_bounds(0, 59).upper < 0.05 < clopper_pearson_bounds(0, 58).upper


def test_hoeffding_by_hand() -> None:
    # log 20 = 2.99573, divided by 200 and rooted: 0.122386.
    lower, upper = hoeffding_bounds([0.5, 0.01], 100)
    np.testing.assert_allclose(upper, [0.622387, 0.132387], atol=1e-6)
    np.testing.assert_allclose(lower, [0.377613, 0.0], atol=1e-6)


def test_chernoff_solves_its_equation() -> None:
    p = np.array([0.0, 0.01, 0.05, 0.5, 0.97, 1.0])
    n, delta = 400, 0.03
    lower, upper = chernoff_bounds(p, n, delta)
    for here, q in ((p[1:], lower[1:]), (p[:-1], upper[:-1])):
        kl = stats.entropy(np.stack([here, 1 - here]), np.stack([q, 1 - q]))
        np.testing.assert_allclose(n * kl, -np.log(delta), rtol=1e-8)
    assert upper[-1] == 1.0
    assert lower[0] == 0.0
    assert upper[0] == pytest.approx(1 - delta ** (1 / n), rel=1e-9)


def test_bernstein_by_hand() -> None:
    # log 40 = 3.68888: sqrt(2 * 0.01 * 3.68888 / 101) + 7 * 3.68888 / 300 = 0.027027 + 0.086074.
    assert bernstein_bounds(0.2, 0.01, 101).upper == pytest.approx(0.313101, abs=2e-6)


def test_the_better_the_more_is_assumed() -> None:
    n = np.array([100, 1_000, 10_000])
    for share in (0.02, 0.3, 0.7):
        k = np.round(share * n)
        p = k / n
        exact, chernoff, hoeffding = clopper_pearson_bounds(k, n), chernoff_bounds(p, n), hoeffding_bounds(p, n)
        assert np.all((exact.upper <= chernoff.upper) & (chernoff.upper <= hoeffding.upper))
        assert np.all((exact.lower >= chernoff.lower) & (chernoff.lower >= hoeffding.lower))


def test_mcnemar_is_the_binomial_test() -> None:
    for b, c in ((0, 0), (0, 5), (12, 2), (30, 30), (400, 450)):
        found = mcnemar(b, c)
        expected = stats.binomtest(b, b + c).pvalue if b + c else 1.0
        assert found.p_value == pytest.approx(expected, rel=1e-9)
        if b + c:
            assert found.p_first_worse == pytest.approx(stats.binomtest(b, b + c, alternative="greater").pvalue)
            assert found.p_second_worse == pytest.approx(stats.binomtest(b, b + c, alternative="less").pvalue)
    np.testing.assert_allclose(mcnemar([1, 5], [9, 5]).p_value, [0.021484375, 1.0])


def test_order_statistics_by_counting() -> None:
    for n in (10, 59, 100, 1_000):
        for alpha in (0.01, 0.05, 0.3):
            for delta in (0.05, 0.2):
                tails = stats.binom.sf(np.arange(n), n, 1 - alpha)  # P(>= k) for k = 1, ..., n
                enough = np.flatnonzero(tails <= delta)
                assert order_statistic(n, alpha, delta) == (enough[0] + 1 if len(enough) else n + 1)


# ---------------------------------------------------------------------------------------------------- extreme values

DELTAS = (5e-324, 1e-310, 1e-300, 1e-200, 1e-101, 1e-99, 1e-20, 0.05, 0.5, 0.9, 1 - 2.0**-53)


def exact_tail(k: int, n: int, q: Fraction) -> Fraction:
    """P(Binomial(n, q) >= k) in rational arithmetic."""
    a, b, whole = q.numerator, q.denominator - q.numerator, q.denominator
    return Fraction(sum(math.comb(n, j) * a**j * b ** (n - j) for j in range(k, n + 1)), whole**n)


@pytest.mark.parametrize("n", [1, 2, 10, 69])
@pytest.mark.parametrize("delta", DELTAS)
def test_clopper_pearson_solves_its_equation_exactly(n: int, delta: float) -> None:
    """Never inside the exact limit, and within 1e-5 of it, down to the smallest positive delta."""
    for k in sorted({0, 1, 2, n // 2, n - 1, n} & set(range(n + 1))):
        lower, upper = clopper_pearson_bounds(k, n, delta)
        assert 0 <= lower <= k / n <= upper <= 1
        # The tail beyond the bound has at most probability delta; a little further in it has more.
        if lower > 0:
            assert exact_tail(k, n, Fraction(float(lower))) <= Fraction(delta)
        if upper < 1:
            assert exact_tail(n - k, n, 1 - Fraction(float(upper))) <= Fraction(delta)
        if delta <= 0.5:  # else the bound may be the sample mean
            if k and lower > 1e-300:
                assert exact_tail(k, n, Fraction(float(lower) * (1 + 1e-5))) > Fraction(delta)
            if k < n and upper < 1:
                assert exact_tail(n - k, n, 1 - Fraction(float(upper) * (1 - 1e-5))) > Fraction(delta)


def test_a_lower_limit_of_two_errors_at_a_tiny_delta() -> None:
    # P(Binomial(69, q) >= 2) is 69 * 68 / 2 * q^2 for tiny q.
    expected = math.sqrt(1e-200 / (69 * 68 / 2))
    assert clopper_pearson_bounds(2, 69, 1e-200).lower == pytest.approx(expected, rel=1e-9)


def test_counts_beyond_any_table() -> None:
    """Few errors in very many rows follow Poisson's law, many the normal law."""
    few = clopper_pearson_bounds(5, 10**15)
    assert few.lower * 1e15 == pytest.approx(stats.gamma.ppf(0.05, 5), rel=1e-6)
    assert few.upper * 1e15 == pytest.approx(stats.gamma.isf(0.05, 6), rel=1e-6)
    many = clopper_pearson_bounds(10**14, 10**15)
    width = stats.norm.isf(0.05) * math.sqrt(0.09 / 1e15)
    assert width <= 0.1 - many.lower <= 1.5 * width
    assert width <= many.upper - 0.1 <= 1.5 * width


@pytest.mark.parametrize("delta", DELTAS)
def test_no_bound_is_nan_or_crosses_the_mean(delta: float) -> None:
    mean = np.array([0.0, 1e-300, 1e-10, 0.1, 0.5, 1 - 2.0**-53, 1.0])[:, None]
    n = np.array([2, 10, 1_000, 10**9, 10**15, 10**18])
    found = [
        hoeffding_bounds(mean, n, delta),
        chernoff_bounds(mean, n, delta),
        bernstein_bounds(mean, 0.25, n, delta),
        bernstein_bounds(mean, 0.0, n, delta),
    ]
    for lower, upper in found:
        assert np.all((lower >= 0) & (lower <= mean) & (mean <= upper) & (upper <= 1))
    k = np.floor(mean * n)
    lower, upper = clopper_pearson_bounds(k, n, delta)
    assert np.all((lower >= 0) & (lower <= k / n) & (k / n <= upper) & (upper <= 1))


def test_a_delta_divided_among_models() -> None:
    assert shared_delta(0.05, 1) == 0.05
    assert 0 <= 0.05 / 3 - shared_delta(0.05, 3) <= 1e-17
    with pytest.raises(ParameterError, match="delta=4.94066e-324 is too small to divide among 2 models"):
        shared_delta(5e-324, 2)


# ---------------------------------------------------------------------------------------------------------- coverage


@laws
@pytest.mark.parametrize("n", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_bounds_hold_with_the_stated_probability(law: Law, n: int) -> None:
    x = law.draw(2_000, n)
    mean, variance = x.mean(axis=1), x.var(axis=1, ddof=1)
    for delta in (0.05, 0.2):
        found = {
            "Hoeffding": hoeffding_bounds(mean, n, delta),
            "Chernoff": chernoff_bounds(mean, n, delta),
            "Bernstein": bernstein_bounds(mean, variance, n, delta),
        }
        for name, (lower, upper) in found.items():
            assert not too_often(np.sum(upper < law.mean), 2_000, delta), name
            assert not too_often(np.sum(lower > law.mean), 2_000, delta), name


@pytest.mark.parametrize("p", [0.05, 0.3])
@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_clopper_pearson_has_nominal_coverage(p: float, n: int, delta: float) -> None:
    k = np.arange(n + 1)
    lower, upper = clopper_pearson_bounds(k, n, delta)
    chance = stats.binom.pmf(k, n, p)
    # Not simulated: summed over every count there can be.
    for wrong in (chance[upper < p].sum(), chance[lower > p].sum()):
        assert wrong <= delta
        assert wrong >= delta - (0.02 if n == 10_000 else 0.04)


# ------------------------------------------------------------------------------------------------------------ errors


def test_delta_is_a_probability() -> None:
    for delta in (0.0, 1.0, -0.1, 5, np.nan, "0.05%", None, True):
        with pytest.raises(
            ParameterError, match=r"delta must be a number between 0 and 1 \(exclusive\), such as 0.05; got"
        ):
            hoeffding_bounds(0.1, 10, delta)  # type: ignore[arg-type]


def test_what_is_no_sample() -> None:
    with pytest.raises(DataError, match="The mean of the losses must be in"):
        hoeffding_bounds(1.2, 10)
    with pytest.raises(DataError, match=r"The number of rows must be an integer >= 1; got 0"):
        chernoff_bounds(0.5, 0)
    with pytest.raises(DataError, match="at least 2 rows"):
        bernstein_bounds(0.5, 0.1, 1)
    with pytest.raises(DataError, match="The variance is negative or missing"):
        bernstein_bounds(0.5, np.nan, 10)
    for k in (-1, 11, 2.5, np.nan):
        with pytest.raises(DataError, match="The number of errors must be an integer"):
            clopper_pearson_bounds(k, 10)
    with pytest.raises(DataError, match="McNemar's test needs two row counts"):
        mcnemar(-1, 3)
    with pytest.raises(ParameterError, match="alpha must be a number between 0 and 1"):
        order_statistic(10, 0.0)
