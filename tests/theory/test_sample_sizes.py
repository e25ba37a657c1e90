"""Sample sizes and error bounds: by hand, as inverses, and against simulated learners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from summula.core.errors import ParameterError
from summula.svm import SVC
from summula.theory import chernoff_kl, error_bound, hoeffding, margin_bound, sample_size, union_bound
from tests.stats.loss_laws import too_often


def test_finite_classes_by_hand() -> None:
    # log(2 * 1000 / 0.05) = 10.5966; deviation 10.5966 / (2 * 0.01), excess four times that.
    assert sample_size(0.1, 0.05, hypotheses=1_000, kind="deviation") == math.ceil(529.83)
    assert sample_size(0.1, 0.05, hypotheses=1_000) == math.ceil(2119.32)
    # log(1000 / 0.05) / 0.1 = 99.03, for every kind.
    for kind in ("excess", "deviation"):
        assert sample_size(0.1, 0.05, hypotheses=1_000, realizable=True, kind=kind) == 100
    # Ten numbers of 64 bits: 640 log 2 + log 40 = 447.30; times 2 / 0.01.
    assert sample_size(0.1, 0.05, bits=640) == math.ceil(200 * (640 * math.log(2) + math.log(40)))
    assert sample_size(0.1, 0.05, hypotheses=2**640) == sample_size(0.1, 0.05, bits=640)


def test_vc_classes_by_hand() -> None:
    # 8 (3 log(2e 1000 / 3) + log 80) / 1000 = 0.21527...
    g = math.sqrt(8 * (3 * math.log(2 * math.e * 1_000 / 3) + math.log(80)) / 1_000)
    assert error_bound(1_000, 0.05, vc=3, kind="deviation") == pytest.approx(g)
    assert error_bound(1_000, 0.05, vc=3) == pytest.approx(2 * g)
    expected = 2 * (3 * math.log2(2 * math.e * 1_000 / 3) + math.log2(40)) / 1_000
    assert error_bound(1_000, 0.05, vc=3, realizable=True) == pytest.approx(expected)
    # So few rows that every labelling is possible.
    assert error_bound(1, 0.05, vc=100, kind="deviation") == pytest.approx(
        math.sqrt(8 * (2 * math.log(2) + math.log(80)))
    )


@pytest.mark.parametrize("size", [{"hypotheses": 50}, {"bits": 64}, {"vc": 5}, {"vc": 0}], ids=str)
@pytest.mark.parametrize("realizable", [False, True])
@pytest.mark.parametrize("kind", ["excess", "deviation"])
def test_they_are_inverses(size: dict[str, Any], realizable: bool, kind: str) -> None:
    for epsilon in (0.3, 0.05, 0.003):
        for delta in (0.2, 1e-3):
            n = sample_size(epsilon, delta, **size, realizable=realizable, kind=kind)
            assert isinstance(n, int)
            assert error_bound(n, delta, **size, realizable=realizable, kind=kind) <= epsilon
            assert n == 1 or error_bound(n - 1, delta, **size, realizable=realizable, kind=kind) > epsilon


def test_extreme_arguments_by_hand() -> None:
    # log(2 * 10 / 1e-300) = 300 log 10 + log 20, times 2 / 0.01.
    assert sample_size(0.1, 1e-300, hypotheses=10) == math.ceil(200 * (300 * math.log(10) + math.log(20)))
    assert error_bound(10, 5e-324, bits=64 * 10**6) > 1
    # More rows than floats can count: n = (2 / epsilon^2) log(400), and its inverse.
    n = sample_size(1e-200, 0.05, hypotheses=10)
    assert math.log(n) == pytest.approx(math.log(2) + 400 * math.log(10) + math.log(math.log(400)), rel=1e-12)
    assert error_bound(n, 0.05, hypotheses=10) == pytest.approx(1e-200, rel=1e-9)
    n = sample_size(1e-300, 0.05, vc=3)
    assert error_bound(n, 0.05, vc=3) == pytest.approx(1e-300, rel=1e-9)
    n = sample_size(1e-310, 0.05, hypotheses=10, realizable=True)
    assert math.log(n) == pytest.approx(math.log(math.log(200)) + 310 * math.log(10), rel=1e-9)
    assert sample_size(0.1, 0.05, vc=10**18) > 10**18


def test_inequalities_at_the_limits() -> None:
    assert hoeffding(1e200, 1e200) == 0.0
    assert hoeffding(math.inf, 0) == chernoff_kl(0.0, 0.5, 0) == chernoff_kl(0.0, 0.0, 10) == 1.0
    assert chernoff_kl(0.0, 0.5, 10) == 0.0


def test_margin_bound_by_hand() -> None:
    # sqrt(4 (1 / 0.2)^2 / 10000) = 0.1, and sqrt(2 log(2 / 0.05) / 10000) = 0.0271620...
    assert margin_bound(1.0, 0.2, 10_000) == pytest.approx(0.1271620303, rel=1e-9)
    assert margin_bound(3.0, 0.6, 10_000, 0.05) == margin_bound(1.0, 0.2, 10_000, 0.05)
    assert margin_bound(1e200, 1e-100, 100) == 1.0  # vacuous, and no overflow
    # 310 log 10 + log 2 = 714.49; delta whose inverse is no float
    assert margin_bound(1.0, 1.0, 10**9, 1e-310) == pytest.approx(
        (2 + math.sqrt(2 * 714.4945)) / math.sqrt(1e9), rel=1e-6
    )


def test_margin_bound_holds_for_separable_rows() -> None:
    """Directions at least 30 degrees from a line: rho = 1, gamma = sin 30 = 1/2. The true error is an angle of the circle."""
    rng = np.random.default_rng(0)
    n, failures = 100, 0
    for _ in range(40):
        y = rng.choice([-1, 1], n)
        angle = rng.uniform(np.pi / 6, 5 * np.pi / 6, n)  # of rows with y = 1; the others lie opposite
        X = y[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        w = SVC(C=np.inf, kernel="linear").fit(np.vstack([X, -X]), np.concatenate([y, -y])).coef_[0]
        turn = abs(np.arctan2(w[0], w[1]))
        failures += max(turn - np.pi / 6, 0.0) / (2 * np.pi / 3) > margin_bound(1.0, 0.5, n, 0.2)
    assert not too_often(failures, 40, 0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((1.0, 2.0, 100), "gamma=2.0 is larger than rho=1.0"), ((0.0, 1.0, 100), "rho must be a positive"),
     ((1.0, math.nan, 100), "gamma must be a positive"), ((1.0, 0.5, 2.5), "n_samples must be an int >= 1"),
     ((1.0, 0.5, 100, 0.0), "delta must be")],
)  # fmt: skip
def test_bad_arguments_of_margin_bound(arguments: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        margin_bound(*arguments)


def test_deviation_bound_of_a_finite_class_holds() -> None:
    """Hypotheses with independent errors come closest to the union bound."""
    rng = np.random.default_rng(0)
    times, n, size, delta = 2_000, 200, 20, 0.2
    g = error_bound(n, delta, hypotheses=size, kind="deviation")
    observed = rng.binomial(n, 0.5, (times, size)) / n
    assert not too_often(np.sum(np.abs(observed - 0.5).max(axis=1) > g), times, delta)
    # The excess of the chosen one, among hypotheses of different errors.
    errors = np.linspace(0.3, 0.5, size)
    chosen = errors[np.argmin(rng.binomial(n, errors, (times, size)), axis=1)]
    assert not too_often(np.sum(chosen - 0.3 > error_bound(n, delta, hypotheses=size)), times, delta)
    # Consistent ones, where one of the class is right.
    bad = error_bound(n, delta, hypotheses=size, realizable=True)
    assert not too_often(np.sum((rng.binomial(n, bad, (times, size - 1)) == 0).any(axis=1)), times, delta)


def test_deviation_bound_of_thresholds_on_a_line_holds() -> None:
    """VC dimension 1; the largest deviation is the statistic of Kolmogorov and Smirnov."""
    n, delta = 100, 0.2
    assert stats.kstwo.sf(min(error_bound(n, delta, vc=1, kind="deviation"), 1.0), n) <= delta


def test_inequalities_are_true_and_ordered() -> None:
    n, k = 200, np.arange(201)
    for p in (0.05, 0.3, 0.5):
        above = stats.binom.sf(k - 1, n, p)
        high = k / n > p
        assert np.all(above[high] <= chernoff_kl(p, k[high] / n, n) * (1 + 1e-12))
        assert np.all(chernoff_kl(p, k[high] / n, n) <= hoeffding(k[high] / n - p, n, sides=1) * (1 + 1e-12))
        below = stats.binom.cdf(k, n, p)
        assert np.all(below[~high] <= chernoff_kl(p, k[~high] / n, n) * (1 + 1e-12))
    assert hoeffding(0.1, 100) == pytest.approx(2 * math.exp(-2))
    assert hoeffding(1.0, 100, width=10) == pytest.approx(2 * math.exp(-2))
    assert hoeffding(0.0, 100) == 1.0
    assert union_bound([0.1, 0.2], 2) == pytest.approx(0.6)
    assert union_bound(0.5, 10) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.1}, "Pass exactly one of hypotheses, bits and vc"),
        ({"epsilon": 0.1, "hypotheses": 3, "bits": 3}, "Pass exactly one of hypotheses, bits and vc"),
        ({"epsilon": 0.1, "hypotheses": 3, "vc": 3}, "Pass exactly one of hypotheses, bits and vc"),
        ({"epsilon": 0, "vc": 3}, "epsilon must be in the range"),
        ({"epsilon": 0.1, "vc": -1}, "vc must be an int >= 0"),
        ({"epsilon": 0.1, "vc": 1.5}, "vc must be an int >= 0"),
        ({"epsilon": 0.1, "vc": math.inf}, "vc must be an int >= 0"),
        ({"epsilon": 0.1, "vc": 10**400}, r"at most 1e\+300; got about 10\^400"),
        ({"epsilon": "a", "vc": 3}, "epsilon must be in the range"),
        ({"epsilon": 0.1, "hypotheses": math.inf}, "pass vc for infinite classes"),
        ({"epsilon": 0.1, "bits": math.inf}, "bits must be at least 0 and at most"),
        ({"epsilon": 0.1, "hypotheses": 0}, "hypotheses must be at least 1"),
        ({"epsilon": 0.1, "bits": -1}, "bits must be at least 0"),
        ({"epsilon": 0.1, "vc": 3, "kind": "gap"}, "kind must be 'excess' or 'deviation'"),
        ({"epsilon": 0.1, "vc": 3, "delta": 1}, "delta must be a number between 0 and 1"),
    ],
)
def test_what_cannot_be_meant(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sample_size(**arguments)


def test_what_inequalities_refuse() -> None:
    for n in (0, math.inf, math.nan, "10"):
        with pytest.raises(ParameterError, match="n must be an int >= 1"):
            error_bound(n, vc=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilon must be a number, or an array"):
        hoeffding("a", 10)
    with pytest.raises(ParameterError, match="epsilon must be at least 0"):
        hoeffding(-1, 10)
    with pytest.raises(ParameterError, match="sides must be 1 or 2"):
        hoeffding(0.1, 10, sides=3)
    with pytest.raises(ParameterError, match="width must be positive"):
        hoeffding(0.1, 10, width=0)
    with pytest.raises(ParameterError, match="p must be at least 0 and at most 1"):
        chernoff_kl(1.2, 0.5, 10)
    with pytest.raises(ParameterError, match="times must be non-negative"):
        union_bound(0.1, -1)
