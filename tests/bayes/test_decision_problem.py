"""Decision problems against enumeration, hand-computed values and the definition of risk."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import Normal, beta, norm

from summula.bayes import DecisionProblem, mean_cost
from summula.core.errors import DataError, ParameterError

PRIORS = {"rain": 0.2, "dry": 0.8}
LIKELIHOODS = {"rain": {"grey": 0.9, "blue": 0.1}, "dry": {"grey": 0.3, "blue": 0.7}}
COSTS = {"take": {"rain": 1.0, "dry": 2.0}, "leave": {"rain": 10.0, "dry": 0.0}}


def umbrella(**changes: Any) -> DecisionProblem:
    return DecisionProblem(**{"priors": PRIORS, "likelihoods": LIKELIHOODS, "costs": COSTS, **changes})


def test_posterior_by_hand() -> None:
    after = umbrella().posterior(["grey"])
    assert after == pytest.approx({"rain": 0.18 / 0.42, "dry": 0.24 / 0.42}, rel=1e-14)
    assert umbrella().posterior([]) == pytest.approx(PRIORS, rel=1e-14)
    assert umbrella().log_evidence(["grey"]) == pytest.approx(math.log(0.42), rel=1e-14)


def test_updating_one_by_one_is_updating_at_once() -> None:
    seen = ["grey", "blue", "grey", "grey"]
    problem = umbrella()
    for x in seen:
        problem = problem.update(x)
    assert problem.posterior([]) == pytest.approx(umbrella().posterior(seen), rel=1e-12)
    assert problem.decide([]) == umbrella().decide(seen)


def test_an_update_leaves_the_first_problem_as_it_was() -> None:
    problem = umbrella()
    problem.update("grey")
    assert problem.priors.tolist() == [0.2, 0.8]


def test_thousands_of_observations_do_not_underflow() -> None:
    seen = ["grey", "blue"] * 5_000
    log_odds = math.log(0.2 / 0.8) + 5_000 * (math.log(0.9 / 0.3) + math.log(0.1 / 0.7))
    np.testing.assert_allclose(umbrella().log_posterior(seen)[0], log_odds, rtol=1e-12)
    assert umbrella().posterior(seen)["dry"] == 1.0


def test_risk_and_decision_by_hand() -> None:
    p = 0.18 / 0.42
    assert umbrella().risk(["grey"]) == pytest.approx({"take": p + 2 * (1 - p), "leave": 10 * p}, rel=1e-14)
    assert umbrella().decide(["grey"]) == "take"
    assert umbrella().decide(["blue", "blue"]) == "leave"


def test_the_decision_has_the_least_risk_by_enumeration() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_states, n_actions, n_values = rng.integers(2, 5, 3)
        priors, likelihoods = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_values), n_states)
        costs = rng.normal(size=(n_actions, n_states))
        problem = DecisionProblem(priors, likelihoods, costs)
        for xs in itertools.product(range(n_values), repeat=2):
            joint = [priors[s] * math.prod(likelihoods[s, x] for x in xs) for s in range(n_states)]
            risks = [sum(c * p for c, p in zip(row, joint, strict=True)) / sum(joint) for row in costs]
            np.testing.assert_allclose(problem.risk(list(xs)), risks, rtol=1e-10, atol=1e-12)
            assert problem.decide(list(xs)) == int(np.argmin(risks))


def test_zero_one_costs_choose_the_likeliest_state_and_a_symmetric_loss_need_not() -> None:
    assert DecisionProblem([0.3, 0.45, 0.25], [[1.0]] * 3).decide([]) == 1
    symmetric = [[0.0, 1.0, 5.0], [1.0, 0.0, 9.0], [5.0, 9.0, 0.0]]
    assert DecisionProblem([0.3, 0.45, 0.25], [[1.0]] * 3, symmetric).decide([]) == 0


def test_rejecting_is_an_action() -> None:
    problem = DecisionProblem({"a": 0.5, "b": 0.5}, {"a": norm(0, 1), "b": norm(2, 1)}, reject_cost=0.2)
    assert [problem.decide([x]) for x in (-1.0, 1.0, 3.0)] == ["a", "reject", "b"]
    border = 1 - math.log(4) / 2  # where the posterior of a is 0.8
    assert problem.decide([border - 1e-9]) == "a"
    assert problem.decide([border + 1e-9]) == "reject"


def drawn_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_states, n_actions = rng.integers(2, 5, 2)
    priors, likelihoods = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(3), n_states)
    return priors, likelihoods, rng.normal(size=(n_actions, n_states))


class TestSensitivity:
    def test_priors_may_move_within_their_ranges(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(30):
            priors, likelihoods, costs = drawn_problem(rng)
            found = DecisionProblem(priors, likelihoods, costs).sensitivity([0, 2])
            for s, (low, high) in enumerate(found.priors):
                for t in np.clip([low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6], 0, 1):
                    moved = priors * (1 - t) / (1 - priors[s])
                    moved[s] = t
                    same = DecisionProblem(moved, likelihoods, costs).decide([0, 2]) == found.action
                    assert same == (low <= t <= high)

    def test_costs_may_move_within_their_ranges(self) -> None:
        rng = np.random.default_rng(2)
        for _ in range(30):
            priors, likelihoods, costs = drawn_problem(rng)
            n_actions, n_states = costs.shape
            found = DecisionProblem(priors, likelihoods, costs).sensitivity([1])
            for a, s, side in itertools.product(range(n_actions), range(n_states), range(2)):
                if np.isfinite(found.costs[a, s, side]):
                    for step in (1e-6, -1e-6):
                        moved = costs.copy()
                        moved[a, s] = found.costs[a, s, side] + step
                        same = DecisionProblem(priors, likelihoods, moved).decide([1]) == found.action
                        assert same == ((step > 0) == (side == 0))

    def test_by_name(self) -> None:
        found = umbrella().sensitivity()
        # Taking it costs 1.8, leaving it 2.0: they are equal if p + 2 (1 - p) = 10 p.
        assert found.action == "take"
        assert found.margin == pytest.approx(0.2)
        assert found.priors["rain"] == pytest.approx((2 / 11, 1.0))
        assert found.costs["take"]["rain"] == pytest.approx((-np.inf, 2.0))
        assert found.costs["leave"]["rain"] == pytest.approx((9.0, np.inf))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"priors": {"rain": 0.5, "dry": 0.6}}, "The priors must sum to 1; they sum to 1.1: divide"),
        ({"priors": {"rain": -0.5, "dry": 1.5}}, "non-negative"),
        ({"likelihoods": {"rain": LIKELIHOODS["rain"]}}, r"the states \['rain'\], but priors \['rain', 'dry'\]"),
        ({"likelihoods": [LIKELIHOODS["rain"]]}, "1 distributions, but priors 2 states"),
        ({"likelihoods": {**LIKELIHOODS, "dry": {"grey": 0.3, "blue": 0.3}}}, "given the state 'dry' must sum to 1"),
        ({"likelihoods": {**LIKELIHOODS, "dry": 3}}, "of type int: pass a dict of probabilities"),
        ({"costs": [[0, 1, 2], [1, 0, 2]]}, r"\(n, 2\) for the states \['rain', 'dry'\]; got \(2, 3\)"),
        ({"costs": {"take": {"rain": 1.0}}}, "a cost for each of the states"),
        ({"costs": {}}, "costs is empty"),
        ({"costs": [[0.0, np.nan], [1.0, 0.0]]}, "finite"),
        ({"reject_cost": np.inf}, "reject_cost must be a finite number"),
        ({"reject_cost": "a"}, "reject_cost must be a finite number; got 'a'"),
        ({"costs": {"take": {"rain": "x", "dry": 1}}}, r"costs\['take'\] contains 'x' at index 0"),
    ],
)
def test_bad_problems(changes: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        umbrella(**changes)


def test_bad_observations() -> None:
    with pytest.raises(DataError, match=r"'pink' has no probability .*; known are \['grey', 'blue'\]"):
        umbrella().posterior(["pink"])
    with pytest.raises(DataError, match=r"write \['grey'\]"):
        umbrella().decide("grey")
    never = umbrella(likelihoods={s: {"grey": 1.0, "blue": 0.0} for s in PRIORS})
    with pytest.raises(DataError, match="probability 0 in every possible state"):
        never.posterior(["blue"])


def test_densities_are_functions_of_arrays_or_of_single_numbers() -> None:
    def slow(x: float) -> float:
        return math.exp(-x)

    for first in (slow, lambda x: np.exp(-x)):
        problem = DecisionProblem([0.5, 0.5], [first, lambda x: 2 * np.exp(-2 * x)])
        found = problem.posterior([0.5, 1])
        assert found[0] == pytest.approx(1 / (1 + 4 * math.exp(-1.5)), rel=1e-14)


def test_pandas_labels_name_states_observations_and_actions() -> None:
    priors = pd.Series(PRIORS)
    likelihoods = pd.DataFrame(LIKELIHOODS).T  # one row per state
    costs = pd.DataFrame(COSTS).T[["dry", "rain"]]  # not in the order of the states
    problem = DecisionProblem(priors, likelihoods, costs)
    assert problem.posterior(["grey"]) == umbrella().posterior(["grey"])
    assert problem.risk(["grey"]) == umbrella().risk(["grey"])
    by_state = DecisionProblem(PRIORS, {state: pd.Series(table) for state, table in LIKELIHOODS.items()}, costs)
    assert by_state.risk(pd.Series(["grey", "grey"], index=[7, 8])) == umbrella().risk(["grey", "grey"])
    assert mean_cost(["rain", "dry"], ["leave", "leave"], costs, classes=["rain", "dry"]) == 5.0


def test_pandas_objects_without_labels_are_arrays() -> None:
    problem = DecisionProblem(
        pd.Series([0.2, 0.8]), pd.DataFrame([[0.9, 0.1], [0.3, 0.7]]), pd.DataFrame([[1, 2], [10, 0]])
    )
    np.testing.assert_allclose(problem.risk([0]), list(umbrella().risk(["grey"]).values()), rtol=1e-14)
    named = umbrella(costs=pd.DataFrame({"dry": [2.0, 0.0], "rain": [1.0, 10.0]}))  # the actions have no names
    assert named.risk(["grey"]) == dict(zip(PRIORS, umbrella().risk(["grey"]).values(), strict=True))


def test_random_variables_of_scipy() -> None:
    old = DecisionProblem([0.5, 0.5], [norm(0, 1), norm(1, 2)])
    new = DecisionProblem([0.5, 0.5], [Normal(mu=0.0, sigma=1.0), Normal(mu=1.0, sigma=2.0)])
    np.testing.assert_allclose(new.posterior([0.3, 2.0]), old.posterior([0.3, 2.0]), rtol=1e-12)


def test_a_pole_of_a_density_makes_its_state_certain() -> None:
    arcsine = DecisionProblem([0.5, 0.5], [beta(0.5, 0.5), beta(1, 1)])
    assert arcsine.posterior([0.0]).tolist() == [1.0, 0.0]
    assert arcsine.decide([0.0]) == 0


@pytest.mark.parametrize(
    ("observations", "words"),
    [
        ((x for x in ["grey"]), r"a list, not a generator: wrap it in list"),
        (np.array(1.0), "even if there is only one"),
        ([["grey", "blue"]], r"The observation \('grey', 'blue'\) has no probability"),
    ],
)
def test_what_is_not_a_list_of_observations(observations: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        umbrella().posterior(observations)
    with pytest.raises(ParameterError, match="non-negative numbers; got 'ab'"):
        umbrella(priors="ab")
