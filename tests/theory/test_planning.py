"""Plans satisfy their guarantees: checked for every number of rows, and by simulated hold-outs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from summula.core.errors import ParameterError
from summula.stats import clopper_pearson_bounds, order_statistic
from summula.theory import plan_holdout, plan_recall


@pytest.mark.parametrize(
    "plan",
    [
        {"error": 0.0, "limit": 0.05},
        {"error": 0.05, "limit": 0.06},
        {"error": 0.05, "width": 0.02},
        {"error": 0.3, "width": 0.3},
        {"error": 0.5, "width": 0.1},
        {"error": 0.9, "limit": 0.95},
        {"error": 0.01, "limit": 0.02, "n_models": 10},
        {"error": 0.02, "limit": 0.03, "delta": 0.2},
    ],
    ids=str,
)
def test_every_number_of_rows_was_tried(plan: dict[str, Any]) -> None:
    found = plan_holdout(**plan)
    n = np.arange(1, 3 * found + 200)
    k = np.ceil(np.round(plan["error"] * n, 9))
    lower, upper = clopper_pearson_bounds(k, n, plan.get("delta", 0.05) / plan.get("n_models", 1))
    enough = upper <= plan["limit"] if "limit" in plan else upper - lower <= plan["width"]
    assert found == n[~enough][-1] + 1


def test_large_plans_are_quick() -> None:
    n = plan_holdout(0.05, limit=0.0501)
    assert clopper_pearson_bounds(np.ceil(0.05 * n), n).upper <= 0.0501
    assert 12_000_000 < n < 14_000_000


def test_fifty_nine_again() -> None:
    assert plan_holdout(0.0, limit=0.05) == plan_recall(0.05) == 59
    for alpha in (0.3, 0.1, 0.05, 0.01, 0.001, 0.5):
        for delta in (0.2, 0.05, 0.001, 0.5):
            n = plan_recall(alpha, delta)
            assert order_statistic(n, alpha, delta) <= n
            assert n == 1 or order_statistic(n - 1, alpha, delta) == n


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error": -0.1, "limit": 0.1}, "error must be in the range"),
        ({"error": 0.1, "limit": 0.1}, "limit must be greater than the error of 0.1 and at most 1"),
        ({"error": 0.1, "limit": 1.1}, "limit must be greater than the error"),
        ({"error": 0.1}, "Pass exactly one of limit and width"),
        ({"error": 0.1, "limit": 0.2, "width": 0.2}, "Pass exactly one of limit and width"),
        ({"error": 0.1, "width": 0.0}, "width must be in the range"),
        ({"error": 0.1, "width": 0.1, "delta": 0}, "delta must be a number between 0 and 1"),
        ({"error": 0.1, "width": 0.1, "n_models": 0}, "n_models must be an int >= 1"),
    ],
)
def test_what_cannot_be_planned(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        plan_holdout(**arguments)
    with pytest.raises(ParameterError, match="alpha must be"):
        plan_recall(1.0)
    with pytest.raises(ParameterError, match="alpha=1e-310 is too small"):
        plan_recall(1e-310)


def test_a_plan_for_a_tiny_delta() -> None:
    n = plan_holdout(0.0, limit=0.05, delta=1e-300)
    assert n == math.ceil(math.log(1e-300) / math.log(0.95))
    assert plan_holdout(0.05, width=0.02, delta=1e-300) > plan_holdout(0.05, width=0.02, delta=1e-20)
