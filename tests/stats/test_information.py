"""Entropy and divergences against closed forms, definitions by loops, and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from summula.core.errors import DataError, ParameterError
from summula.stats import (
    MultivariateNormal,
    conditional_entropy,
    entropy,
    gini_impurity,
    jensen_gap,
    kl_divergence,
    mutual_information,
)

JOINT = np.array([[0.1, 0.2, 0.0], [0.3, 0.15, 0.25]])


def test_entropy_of_fair_and_certain_outcomes() -> None:
    assert entropy([0.5, 0.5]) == pytest.approx(math.log(2), rel=1e-15)
    assert entropy(np.full(8, 1 / 8), base=2) == pytest.approx(3.0, rel=1e-15)
    assert entropy([0.0, 1.0, 0.0]) == 0.0


def test_entropy_and_gini_of_rows_of_counts() -> None:
    counts = np.array([[3, 1, 0], [2, 2, 4]])
    np.testing.assert_allclose(entropy(counts), [stats.entropy(row) for row in counts], rtol=1e-14)
    np.testing.assert_allclose(gini_impurity(counts), [1 - 10 / 16, 1 - 24 / 64], rtol=1e-15)
    assert entropy(counts, axis=None) == pytest.approx(stats.entropy(counts.ravel()), rel=1e-14)


def test_gini_is_the_chance_that_two_draws_differ() -> None:
    p = np.array([0.2, 0.5, 0.3])
    pairs = sum(p[i] * p[j] for i in range(3) for j in range(3) if i != j)
    assert gini_impurity(p) == pytest.approx(pairs, rel=1e-15)


def test_conditional_entropy_and_information_by_their_definitions() -> None:
    px, py = JOINT.sum(axis=1), JOINT.sum(axis=0)
    there = [(i, j) for i in range(2) for j in range(3) if JOINT[i, j] > 0]
    left = -sum(JOINT[i, j] * math.log(JOINT[i, j] / px[i]) for i, j in there)
    shared = sum(JOINT[i, j] * math.log(JOINT[i, j] / (px[i] * py[j])) for i, j in there)
    assert conditional_entropy(JOINT) == pytest.approx(left, rel=1e-14)
    assert mutual_information(JOINT) == pytest.approx(shared, rel=1e-13)
    assert mutual_information(JOINT) == pytest.approx(entropy(py) - conditional_entropy(JOINT), rel=1e-13)
    assert mutual_information(JOINT.T, base=2) == pytest.approx(shared / math.log(2), rel=1e-13)


def test_divergence_of_tables_and_of_outcomes_that_are_impossible() -> None:
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.4, 0.2])
    assert kl_divergence(p, q) == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    assert kl_divergence(p, p) == 0.0
    assert kl_divergence([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]) == 0.0
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf


def test_divergence_of_normals_in_closed_form() -> None:
    one, other = MultivariateNormal([0.0], 4.0), MultivariateNormal([1.0], 9.0)
    expected = math.log(3 / 2) + (4 + 1) / 18 - 0.5  # of N(0, 4) and N(1, 9)
    assert kl_divergence(one, other) == pytest.approx(expected, rel=1e-14)
    p = MultivariateNormal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]])
    q = MultivariateNormal([0.0, 1.0], [[1.0, -0.3], [-0.3, 2.0]])
    inverse = np.linalg.inv(q.cov)
    away = q.mean - p.mean
    log_ratio = math.log(np.linalg.det(q.cov) / np.linalg.det(p.cov))
    direct = 0.5 * (np.trace(inverse @ p.cov) + away @ inverse @ away - 2 + log_ratio)
    assert kl_divergence(p, q) == pytest.approx(direct, rel=1e-13)


def test_sampled_divergence_covers_the_closed_form() -> None:
    p, q = MultivariateNormal([0.0, 0.0], 1.0), MultivariateNormal([0.5, 0.0], [1.5, 1.0])
    exact = kl_divergence(p, q)
    found = [kl_divergence(p, q, n_samples=2_000, delta=0.1, random_state=seed) for seed in range(400)]
    # 400 intervals, each end wrong with probability 0.1: about 40 misses, standard deviation 6.
    assert 20 <= sum(one.upper < exact for one in found) <= 60
    assert 20 <= sum(one.lower > exact for one in found) <= 60
    assert all(one.lower < one.value < one.upper for one in found)


def test_sampled_divergence_of_scipy_distributions_and_functions() -> None:
    exact = 1 / 2 + math.log(2) - 1  # of exponentials with rates 2 and 1: log 2 + 1/2 - 1
    fast, slow = stats.expon(scale=0.5), stats.expon(scale=1.0)
    assert kl_divergence(fast, slow).value == pytest.approx(exact, abs=0.01)
    draws = np.random.default_rng(0).exponential(0.5, 50_000)
    assert kl_divergence(fast.logpdf, slow.logpdf, samples=draws).value == pytest.approx(exact, abs=0.01)
    of_variables = kl_divergence(stats.Normal(mu=0.0, sigma=1.0), stats.Normal(mu=1.0, sigma=1.0))
    assert of_variables.value == pytest.approx(0.5, abs=0.02)
    counts = kl_divergence(stats.poisson(3.0), stats.poisson(2.0))
    assert counts.value == pytest.approx(3 * math.log(1.5) - 1, abs=0.02)


def test_jensen() -> None:
    x, p = np.array([1.0, 2.0, 6.0]), np.array([0.5, 0.25, 0.25])
    assert jensen_gap(np.square, x, p) == pytest.approx(p @ x**2 - (p @ x) ** 2, rel=1e-14)
    assert jensen_gap(lambda t: 3 * t - 1, x, p) == pytest.approx(0.0, abs=1e-14)
    assert jensen_gap(np.exp, x) > 0
    assert jensen_gap(np.log, x) < 0
    assert jensen_gap(lambda t: -np.log(t), [0.0, 1.0], [0.0, 1.0]) == 0.0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: entropy([0.5, 0.6]), DataError, "p must sum to 1, or contain counts; it sums to 1.1"),
        (lambda: entropy([1.5, -0.5]), DataError, "negative"),
        (lambda: entropy([0, 0]), DataError, "all 0"),
        (lambda: entropy(["a", "b"]), DataError, r"p must contain probabilities or counts; got \['a', 'b'\]"),
        (lambda: entropy([0.5, 0.5], base=1), ParameterError, "base must be positive and not 1"),
        (lambda: mutual_information([0.5, 0.5]), DataError, "a row per value of X"),
        (lambda: kl_divergence([0.5, 0.5], [0.2, 0.3, 0.5]), DataError, r"shape \(2,\) and q has shape \(3,\)"),
        (lambda: kl_divergence([0.5, 0.5], np.log), ParameterError, "pass two of one kind"),
        (lambda: kl_divergence(np.log, np.log), ParameterError, "neither `sample` nor `rvs`"),
        (lambda: jensen_gap(np.exp, [1.0, 2.0], [1.0]), DataError, "2 values but p has 1"),
    ],
)
def test_bad_input(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_jensen_gap_of_a_function_of_numbers() -> None:
    assert jensen_gap(math.exp, [0.0, 1.0]) == pytest.approx(jensen_gap(np.exp, [0.0, 1.0]), rel=1e-14)
