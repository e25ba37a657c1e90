"""Likelihood ratios, Wald's test and risks of rules against closed forms and simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import (
    Binomial,
    Normal,
    bernoulli,
    beta,
    binom,
    cauchy,
    expon,
    gamma,
    multivariate_normal,
    norm,
    poisson,
    uniform,
)
from scipy.stats import t as student

from summula.bayes import SPRT, BayesClassifier, DecisionProblem, bayes_risk, decision_risk, likelihood_ratio_test
from summula.core.errors import DataError, ParameterError
from summula.stats import MultivariateNormal

ZERO, ONE = norm(0, 1), norm(1, 1)
NARROW = norm(1e4, 1e-3)


class TestLikelihoodRatio:
    def test_both_sides_of_the_inequality(self) -> None:
        xs = np.array([0.2, 1.4, -0.3])
        found = likelihood_ratio_test(xs, ONE, ZERO, priors=(0.7, 0.3), costs=[[0.5, 4.0], [2.0, 1.0]])
        assert found.log_ratio == pytest.approx((xs - 0.5).sum(), rel=1e-12)
        assert found.log_threshold == pytest.approx(math.log(0.7 * 1.5 / (0.3 * 3.0)), rel=1e-12)
        assert found.decision == 0

    def test_it_decides_as_the_risk_does(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(100):
            p, costs = rng.uniform(), rng.uniform(0, 1, (2, 2)) + np.array([[0.0, 1.0], [1.0, 0.0]])
            xs = rng.normal(size=3)
            problem = DecisionProblem([1 - p, p], [ZERO, ONE], costs)
            assert likelihood_ratio_test(xs, ONE, ZERO, priors=(1 - p, p), costs=costs).decision == problem.decide(xs)

    def test_priors_and_costs_by_name(self) -> None:
        xs = [0.2, 1.4]
        listed = likelihood_ratio_test(xs, ONE, ZERO, priors=(0.3, 0.7), costs=[[0.5, 4.0], [2.0, 1.0]])
        for priors, costs in (
            ({1: 0.7, 0: 0.3}, {1: {0: 2.0, 1: 1.0}, 0: {1: 4.0, 0: 0.5}}),
            (pd.Series([0.3, 0.7]), pd.DataFrame([[0.5, 4.0], [2.0, 1.0]])),
        ):
            assert likelihood_ratio_test(xs, ONE, ZERO, priors=priors, costs=costs) == listed
        with pytest.raises(
            ParameterError, match=r"priors must be a pair, or a dict with the keys 0 and 1; got the keys"
        ):
            likelihood_ratio_test(xs, ONE, ZERO, priors={"a": 0.3, "b": 0.7})

    def test_bad_input(self) -> None:
        with pytest.raises(ParameterError, match="there is nothing to test"):
            likelihood_ratio_test([0.0], ONE, ZERO, costs=[[0, 0], [1, 1]])
        with pytest.raises(ParameterError, match=r"got 2, \(3, 2\)"):
            likelihood_ratio_test([0.0], ONE, ZERO, costs=[[0, 1], [1, 0], [2, 2]])
        with pytest.raises(DataError, match="probability 0 in both states"):
            likelihood_ratio_test([2], bernoulli(0.5), bernoulli(0.2))
        with pytest.raises(DataError, match="The observation 2.0 has probability 0 in both states"):
            likelihood_ratio_test(pd.Series([0.5, 2.0], index=[5, 6]), uniform(), uniform())
        with pytest.raises(DataError, match="in state 0 because of observation 1, in state 1 because of observation 0"):
            likelihood_ratio_test([-0.5, 1.5], uniform(0, 2), uniform(-1, 2))


class TestSPRT:
    def test_limits_are_those_of_wald(self) -> None:
        test = SPRT(0.01, 0.1, ONE, ZERO)
        assert (test.lower, test.upper) == pytest.approx((math.log(0.1 / 0.99), math.log(0.9 / 0.01)))

    def test_errors_and_lengths_are_as_promised(self) -> None:
        alpha, beta, rng = 0.05, 0.1, np.random.default_rng(2)
        test = SPRT(alpha, beta, lambda x: np.exp(-((np.asarray(x) - 1) ** 2) / 2), lambda x: np.exp(-np.square(x) / 2))
        runs = {s: [test.run(rng.normal(s, 1.0, 200)) for _ in range(400)] for s in (0, 1)}
        output = {s: np.array([one.decision for one in found]) for s, found in runs.items()}
        # Wald's bounds, plus three standard errors of 400 runs.
        assert np.mean(output[0] == 1) <= alpha / (1 - beta) + 3 * math.sqrt(0.05 / 400)
        assert np.mean(output[1] == 0) <= beta / (1 - alpha) + 3 * math.sqrt(0.1 / 400)
        expected = test.expected_samples(-0.5, 0.5)
        for s in (0, 1):
            # Wald's approximation ignores the overshoot: one or two observations too few here.
            assert expected[s] <= np.mean([one.n for one in runs[s]]) <= expected[s] + 2.5

    def test_it_reads_no_further_than_needed(self) -> None:
        stream = iter([5.0, 5.0, 5.0])
        found = SPRT(0.05, 0.05, ONE, ZERO).run(stream)
        assert (found.decision, found.n, len(list(stream))) == (1, 1, 2)
        open_end = SPRT(0.05, 0.05, ONE, ZERO).run([0.5, 0.6])
        assert (open_end.decision, open_end.n) == (None, 2)
        np.testing.assert_allclose(open_end.path, [0.0, 0.1], atol=1e-14)

    def test_bad_input(self) -> None:
        with pytest.raises(ParameterError, match="alpha must be a number between 0 and 1"):
            SPRT(0.0, 0.1, ONE, ZERO)
        with pytest.raises(ParameterError, match="below 1"):
            SPRT(0.6, 0.5, ONE, ZERO)

    def test_rows_of_several_columns_and_single_numbers(self) -> None:
        test = SPRT(0.1, 0.1, multivariate_normal([3, 3]), multivariate_normal([0, 0]))
        assert test.run([[3.0, 3.0]])[:3] == (1, 1, pytest.approx(9.0))
        with pytest.raises(DataError, match=r"write \[3.0\]"):
            test.run(3.0)


class TestRisk:
    def test_rules_of_single_numbers_and_tables(self) -> None:
        of_arrays = decision_risk(lambda x: (x > 0.5).astype(int), [0.5, 0.5], [ZERO, ONE]).value
        of_numbers = decision_risk(lambda x: 1 if x > 0.5 else 0, [0.5, 0.5], [ZERO, ONE]).value
        assert of_numbers == of_arrays
        assert decision_risk(lambda x: 1, [0.3, 0.7], [ZERO, ONE]).value == pytest.approx(0.3, abs=1e-12)
        counts = decision_risk(lambda k: 1 if k >= 4 else 0, [0.5, 0.5], [poisson(3), poisson(5)])
        assert counts.value == pytest.approx(0.5 * poisson.sf(3, 3) + 0.5 * poisson.cdf(3, 5), rel=1e-12)
        tables, costs = [{"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.8}], [[0, 3], [1, 0]]
        found = decision_risk({"a": 0, "b": 1}, [0.5, 0.5], tables, costs)
        assert found.value == pytest.approx(0.5 * 0.1 * 1 + 0.5 * 0.2 * 3, rel=1e-14)
        with pytest.raises(DataError, match="no action for the observation 'b'"):
            decision_risk({"a": 0}, [0.5, 0.5], tables, costs)

    def test_random_variables_of_scipy(self) -> None:
        new = bayes_risk([0.5, 0.5], [Normal(mu=0.0, sigma=1.0), Normal(mu=1.0, sigma=1.0)])
        assert new.value == pytest.approx(norm.cdf(-0.5), rel=1e-11)
        drawn = bayes_risk(
            [0.5, 0.5], [Normal(mu=0.0, sigma=1.0), ONE], method="monte_carlo", n_samples=2_000, delta=1e-6
        )
        assert drawn.lower < norm.cdf(-0.5) < drawn.upper
        counts = bayes_risk([0.5, 0.5], [Binomial(n=3, p=0.2), Binomial(n=3, p=0.7)])
        assert counts.value == pytest.approx(bayes_risk([0.5, 0.5], [binom(3, 0.2), binom(3, 0.7)]).value, rel=1e-12)

    def test_densities_with_poles(self) -> None:
        # The arcsine density is below the uniform one between the roots of pi^2 x (1 - x) = 1.
        half = math.sqrt(0.25 - 1 / math.pi**2)
        inside = beta.cdf(0.5 + half, 0.5, 0.5) - beta.cdf(0.5 - half, 0.5, 0.5)
        found = bayes_risk([0.5, 0.5], [beta(0.5, 0.5), uniform()])
        assert found.value == pytest.approx(0.5 * (inside + 1 - 2 * half), rel=1e-11)
        assert BayesClassifier([0.5, 0.5], [beta(0.5, 0.5), uniform()]).predict_proba([[0.0]]).tolist() == [[1.0, 0.0]]

    @pytest.mark.parametrize(
        ("first", "second", "cut"),
        [
            (beta(0.5, 0.5), uniform(), 0.6),  # a pole at 1, where floats are 1e-16 apart
            (uniform(), beta(2, 0.1), 0.6),
            (beta(0.5, 0.5, loc=1000), uniform(1000, 1), 1000.6),
        ],
    )
    def test_the_interval_contains_what_is_nearer_to_a_pole_than_floats_are(
        self, first: Any, second: Any, cut: float
    ) -> None:
        for one, other in ((first, second), (second, first)):
            found = decision_risk(lambda x: (x > cut).astype(int), [0.5, 0.5], [one, other])
            assert found.lower <= 0.5 * one.sf(cut) + 0.5 * other.cdf(cut) <= found.upper
        at_0 = decision_risk(lambda x: (x > 0.5).astype(int), [0.5, 0.5], [gamma(0.1), expon()])
        assert at_0.upper - at_0.lower < 1e-11

    @pytest.mark.parametrize("cut", [-0.7, 1.9])
    def test_of_a_threshold_between_two_normals(self, cut: float) -> None:
        costs, priors = [[0.0, 3.0], [1.0, 0.0]], (0.6, 0.4)
        found = decision_risk(lambda x: (x > cut).astype(int), priors, [ZERO, ONE], costs)
        exact = 0.6 * norm.sf(cut) + 3 * 0.4 * norm.cdf(cut - 1)
        assert found.method == "quadrature"
        assert found.value == pytest.approx(exact, abs=1e-10)

    def test_the_bayes_rule_has_the_least(self) -> None:
        best = bayes_risk([0.5, 0.5], [ZERO, ONE])
        assert best.value == pytest.approx(norm.cdf(-0.5), abs=1e-10)
        classifier = BayesClassifier([0.5, 0.5], [ZERO, ONE])
        assert decision_risk(classifier, [0.5, 0.5], [ZERO, ONE]).value == pytest.approx(best.value, abs=1e-10)
        other = decision_risk(lambda x: (x > 0.6).astype(int), [0.5, 0.5], [ZERO, ONE])
        assert other.value > best.value

    def test_regions_of_several_pieces(self) -> None:
        r = math.sqrt(2 * math.log(3) / (1 - 1 / 9))  # where the densities of N(0, 1) and N(0, 9) are equal
        exact = 0.5 * (2 * norm.sf(r)) + 0.5 * (norm.cdf(r / 3) - norm.cdf(-r / 3))
        assert bayes_risk([0.5, 0.5], [ZERO, norm(0, 3)]).value == pytest.approx(exact, abs=1e-10)

    def test_sums_over_tables_and_counts(self) -> None:
        tables = [{"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.8}]
        always = decision_risk(lambda x: 0, [0.3, 0.7], tables)
        assert (always.value, always.method, always.n) == (pytest.approx(0.7), "sum", 2)
        exact = min(0.27, 0.28) + min(0.03, 1.12)
        assert bayes_risk([0.3, 0.7], tables, [[0, 2], [1, 0]]).value == pytest.approx(exact, rel=1e-14)
        k = np.arange(200)
        counted = bayes_risk([0.5, 0.5], [poisson(2), poisson(5)])
        assert counted.method == "sum"
        both = np.minimum(0.5 * poisson(2).pmf(k), 0.5 * poisson(5).pmf(k)).sum()
        assert counted.value == pytest.approx(both, abs=1e-12)

    def test_monte_carlo_covers_the_closed_form(self) -> None:
        a, b = MultivariateNormal([0.0, 0.0], 1.0), MultivariateNormal([2.0, 0.0], 1.0)
        exact = norm.cdf(-1.0)  # by the distance of the means
        found = [bayes_risk([0.5, 0.5], [a, b], n_samples=1_000, delta=0.1, random_state=seed) for seed in range(40)]
        assert {one.method for one in found} == {"monte_carlo"}
        # Each bound is wrong with probability at most 0.1: more than 10 of 40 has probability below 0.002.
        assert sum(one.lower > exact for one in found) <= 10
        assert sum(one.upper < exact for one in found) <= 10
        # The mean of 40,000 conditional risks, of standard deviation below 0.2.
        assert np.mean([one.value for one in found]) == pytest.approx(exact, abs=0.004)

    def test_rejecting(self) -> None:
        found = bayes_risk([0.5, 0.5], [norm(0, 1), norm(2, 1)], reject_cost=0.2)
        low = 1 - math.log(4) / 2  # where the posterior of the first state is 0.8
        rejected = norm.cdf(2 - low) - norm.cdf(low)
        assert found.value == pytest.approx(0.2 * rejected + norm.cdf(low - 2), abs=1e-9)

    def test_plain_functions_with_a_support(self) -> None:
        found = bayes_risk([0.5, 0.5], [ZERO.pdf, ONE.pdf], support=(-9, 10))
        assert found.value == pytest.approx(norm.cdf(-0.5), abs=1e-9)

    @pytest.mark.parametrize(
        ("densities", "risk"),
        [
            ([ZERO.pdf, ONE.pdf], norm.cdf(-0.5)),
            ([lambda x: math.exp(-x) if x > 0 else 0.0, lambda x: 2 * math.exp(-2 * x) if x > 0 else 0.0], 0.375),
            ([lambda x: np.exp(-x) * (x > 0), lambda x: 2 * np.exp(-2 * x) * (x > 0)], 0.375),
            ([lambda x: (x >= 0) & (x <= 1), lambda x: 0.5 * ((x >= 0.5) & (x <= 2.5))], 0.125),
        ],
    )
    def test_plain_functions_of_arrays_or_of_single_numbers(self, densities: Any, risk: float) -> None:
        found = bayes_risk([0.5, 0.5], densities)
        assert found.method == "quadrature"
        assert found.value == pytest.approx(risk, abs=1e-11)
        assert found.lower <= risk <= found.upper

    @pytest.mark.parametrize(
        ("densities", "risk"),
        [
            ([cauchy(0), cauchy(2)], 0.25),
            ([student(2), student(2, loc=1)], student(2).cdf(-0.5)),
            ([norm(0, 1e-3), norm(0, 1e3)], None),
        ],
    )
    def test_heavy_tails_and_very_different_scales(self, densities: Any, risk: float | None) -> None:
        if risk is None:  # where the narrow density is the larger one
            x = 1e-3 * math.sqrt(2 * math.log(1e6) / (1 - 1e-12))
            risk = norm.cdf(-x / 1e-3) + 0.5 * (1 - 2 * norm.cdf(-x / 1e3))
        found = bayes_risk([0.5, 0.5], densities)
        assert found.value == pytest.approx(risk, rel=1e-9)
        assert found.lower <= risk <= found.upper

    @pytest.mark.parametrize(
        ("make", "error", "words"),
        [
            (lambda: bayes_risk([0.5, 0.5], [NARROW.pdf, ONE.pdf], method="quadrature"), ParameterError, "support="),
            (lambda: bayes_risk([0.5, 0.5], [NARROW.pdf, ONE.pdf]), ParameterError, "distributions to draw from"),
            (lambda: bayes_risk([0.5, 0.5], [ZERO, ONE], method="exact"), ParameterError, "method must be one of"),
            (lambda: bayes_risk([0.5, 0.5], [ZERO, ONE], support=(1, 0)), ParameterError, "the smaller first"),
            (lambda: decision_risk(lambda x: x * 0 + 7, [0.5, 0.5], [ZERO, ONE]), DataError, "has no costs"),
            (lambda: decision_risk(3, [0.5, 0.5], [ZERO, ONE]), ParameterError, "rule must be a function"),
        ],
    )
    def test_bad_input(self, make: Any, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            make()


class TestBayesClassifier:
    def test_posteriors_and_decisions(self) -> None:
        densities = {"a": multivariate_normal([0, 0], np.eye(2)), "b": MultivariateNormal([1.0, 1.0], [2.0, 0.5])}
        rule = BayesClassifier({"a": 0.3, "b": 0.7}, densities)
        X = np.random.default_rng(0).normal(size=(40, 2))
        joint = np.column_stack([0.3 * densities["a"].pdf(X), 0.7 * densities["b"].pdf(X)])
        np.testing.assert_allclose(rule.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
        np.testing.assert_array_equal(rule.predict(X), np.array(["a", "b"])[joint.argmax(axis=1)])
        np.testing.assert_allclose(rule.score_samples(X), np.log(joint.sum(axis=1)), rtol=1e-12)

    def test_far_outliers_keep_their_posterior(self) -> None:
        rule = BayesClassifier([0.5, 0.5], [ZERO, ONE])
        assert rule.predict_log_proba([[1_000.0]])[0, 0] == pytest.approx(-999.5)
        assert rule.score_samples([[1_000.0]])[0] < -400_000

    def test_costs_move_the_border(self) -> None:
        rule = BayesClassifier([0.5, 0.5], [ZERO, ONE], [[0, 10], [1, 0]])
        border = 0.5 - math.log(10)
        assert rule.predict([[border - 1e-6], [border + 1e-6]]).tolist() == [0, 1]
        assert rule.risk([[0.2]])[0] == pytest.approx([10, 1] * rule.predict_proba([[0.2]])[0, ::-1])
