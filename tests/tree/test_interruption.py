"""Growing one large tree returns to Python often: after every column, if so much was read, not only after every node."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from summula.core.engine.engine import watched
from summula.ensemble import RandomForestClassifier, RandomForestRegressor
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor
from summula.tree.binned import grower as binned_grower
from summula.tree.exact import grower as exact_grower
from summula.tree.exact.grower import ExactGrower, ExactParameters
from summula.tree.growing.outputs import Outputs

N, D = 600, 6


def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    X[:, 3] = rng.integers(0, 6, N)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] % 2 + rng.normal(size=N)


def counting(monkeypatch: Any, module: Any, budget: int) -> list[tuple[int, int]]:
    """Set the budget of a kernel; return a list that gets the values that each of its calls has read beyond it."""
    calls, grow = [], module.grow

    def counted(*arguments: Any) -> bool:
        complete = bool(grow(*arguments))
        state = arguments[-3][0]
        calls.append((budget - int(state["budget"]), int(state["n_nodes"])))
        return complete

    counted.signatures = grow.signatures  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "_BUDGET", budget)
    monkeypatch.setattr(module, "grow", counted)
    return calls


MODELS: dict[str, Callable[[], Any]] = {
    "squared error": lambda: DecisionTreeRegressor(),
    "categories": lambda: DecisionTreeRegressor(categorical_features=[3]),
    "absolute error": lambda: DecisionTreeRegressor(criterion="absolute_error", max_depth=4),
    "best first": lambda: DecisionTreeClassifier(max_leaf_nodes=17),
    "columns drawn": lambda: DecisionTreeClassifier(splitter="random", max_features=2, random_state=0),
    "bins": lambda: RandomForestRegressor(2, random_state=0, n_jobs=1),
    "bins, columns drawn": lambda: RandomForestClassifier(2, random_state=0, max_leaf_nodes=40, n_jobs=1),
}


@pytest.mark.parametrize("budget", [1, 3 * N])
@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_reads_its_budget_and_one_column_at_most(name: str, budget: int, monkeypatch: Any) -> None:
    X, y = table()
    y = y > 0 if name in ("best first", "columns drawn", "bins, columns drawn") else y
    expected = MODELS[name]().fit(X, y)
    exact, binned = (counting(monkeypatch, module, budget) for module in (exact_grower, binned_grower))
    model = MODELS[name]().fit(X, y)
    calls = binned if name.startswith("bins") else exact
    column = 16 * N if name == "absolute error" else N  # its searches take so much longer
    assert max(read for read, _ in calls) < budget + column
    assert len(calls) > 3
    if budget == 1:
        assert calls[1][1] == 1, "after two calls, the search for the first split is still under way"
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


class Stop(Exception):
    pass


def test_columns_are_sorted_one_by_one(monkeypatch: Any) -> None:
    calls: list[int] = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Stop

    monkeypatch.setattr(exact_grower, "thread_count", lambda: 1)
    with pytest.raises(Stop):
        ExactGrower(table()[0], np.zeros(D, bool), check)
    assert len(calls) == 3


def test_all_threads_stop_sorting_after_ctrl_c(monkeypatch: Any) -> None:
    sorted_columns, d, argsort = [], 400, np.argsort

    def slow(*arguments: Any, **options: Any) -> Any:
        sorted_columns.append(1)
        time.sleep(0.01)
        return argsort(*arguments, **options)

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(exact_grower, "thread_count", lambda: 2)
    monkeypatch.setattr(exact_grower, "_SMALL", 0)
    monkeypatch.setattr(np, "argsort", slow)
    with pytest.raises(KeyboardInterrupt), watched(interrupt):
        ExactGrower(np.zeros((10, d)), np.zeros(d, bool), lambda: None)
    assert len(sorted_columns) < d / 4


def test_an_interrupted_tree_reads_nothing_further(monkeypatch: Any) -> None:
    X, y = table()
    calls = counting(monkeypatch, exact_grower, 1)
    checks: list[int] = []

    def check() -> None:
        checks.append(1)
        if len(checks) == D + 9:
            raise Stop

    grower = ExactGrower(X, np.zeros(D, bool), check)
    before = len(checks)
    with pytest.raises(Stop):
        grower.grow(y, None, Outputs(), ExactParameters("squared_error"))
    assert len(calls) == D + 9 - before
