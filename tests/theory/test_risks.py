"""Errors on a sample, and the smallest of a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import summula
from summula.core.errors import DataError, ParameterError
from summula.linear_model import LinearRegression
from summula.theory import empirical_risk, erm

X = np.array([[-2.0], [-1.0], [0.5], [1.0], [3.0]])
Y = np.array([0, 1, 0, 1, 1])


def stump(t: float) -> Any:
    return lambda X: (np.asarray(X)[:, 0] > t).astype(int)


def test_by_hand() -> None:
    assert empirical_risk(stump(0.0), X, Y) == 2 / 5
    assert empirical_risk(stump(0.7), X, Y) == 1 / 5
    assert empirical_risk(lambda X: X[:, 0], X, Y, "absolute") == pytest.approx((2 + 2 + 0.5 + 0 + 2) / 5)
    assert empirical_risk(lambda X: X[:, 0], X, Y, "squared") == pytest.approx((4 + 4 + 0.25 + 0 + 4) / 5)
    assert empirical_risk(stump(0.0), X, Y, lambda y, f: 10.0 * (y < f)) == 2.0


def test_the_smallest_of_a_class() -> None:
    found = erm({t: stump(t) for t in (-3.0, 0.0, 0.7, 0.8)}, X, Y)
    assert found.chosen == 0.7  # the first of two
    assert found.risk == 0.2
    np.testing.assert_allclose(found.risks, [0.4, 0.4, 0.2, 0.2])
    assert erm([stump(0.0), stump(0.7)], X, Y).chosen == 1
    assert found.hypothesis(np.array([[0.75]]))[0] == 1


def test_models_and_files(tmp_path: Path) -> None:
    model = LinearRegression().fit(X, Y)
    expected = np.mean((model.predict(X) - Y) ** 2)
    assert empirical_risk(model, X, Y, "squared") == pytest.approx(expected)
    np.save(tmp_path / "rows.npy", np.column_stack([X, Y]))
    scanned = summula.scan(tmp_path / "rows.npy")
    named = LinearRegression().fit(scanned, "x1")
    assert empirical_risk(named, scanned, "x1", "squared") == pytest.approx(expected)


def test_what_cannot_be_meant() -> None:
    with pytest.raises(ParameterError, match="The class of hypotheses is empty"):
        erm([], X, Y)
    with pytest.raises(ParameterError, match="loss must be one of 'zero_one', 'squared', 'absolute' or a function"):
        empirical_risk(stump(0.0), X, Y, "log")
    with pytest.raises(ParameterError, match="A hypothesis must be a function or have a predict method; got 3"):
        erm([3], X, Y)
    with pytest.raises(DataError, match=r"A hypothesis returned predictions of shape \(1,\) for 5 rows"):
        empirical_risk(lambda X: np.zeros(1), X, Y)
    with pytest.raises(DataError, match="X has no rows"):
        empirical_risk(stump(0.0), X[:0], Y[:0])


def test_losses_that_are_no_numbers() -> None:
    halves = {"a": lambda X: X[:, 0], "b": lambda X: X[:, 0] / 2}
    with pytest.raises(DataError, match="hypothesis 'a' is nan at row 1"):
        erm(halves, [[1.0], [2.0]], [1.0, np.nan], loss="squared")
    with pytest.raises(DataError, match="one number for each of 2 rows"):
        erm(halves, [[1.0], [2.0]], [1.0, 2.0], loss=lambda y, p: 1.0)
    with pytest.raises(DataError, match="use 'zero_one'"):
        empirical_risk(lambda X: np.array(["a", "b"]), [[1.0], [2.0]], ["a", "b"], "squared")


def test_losses_have_the_names_of_scikit_learn_too() -> None:
    assert empirical_risk(stump(0.0), X, Y, "squared_error") == empirical_risk(stump(0.0), X, Y, "squared")
    assert empirical_risk(stump(0.0), X, Y, "absolute_error") == empirical_risk(stump(0.0), X, Y, "absolute")
