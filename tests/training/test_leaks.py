"""Columns that look like target leakage, and columns that do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from summula.training.data.leaks import leaks

N = 500
RNG = np.random.default_rng(0)
NUMBERS = np.exp(RNG.normal(size=N))
CLASSES = np.where(RNG.random(N) < 0.6, "yes", "no").astype(object)
YES = CLASSES == "yes"


def found(column: object, y: np.ndarray) -> str:
    table = pa.table({"x": RNG.normal(size=N), "c": pa.array(column, from_pandas=True)})
    evidence = leaks(table, y, y.dtype == object)
    assert evidence.keys() <= {"c"}
    return evidence.get("c", "")


def test_missing_just_where_the_target_has_one_value() -> None:
    wage = np.where(YES, RNG.normal(size=N), np.nan)
    assert found(wage, CLASSES) == "it is missing where the target is no, and nowhere else"
    zeros = np.where(RNG.random(N) < 0.4, 0.0, NUMBERS)
    assert found(np.where(zeros == 0, np.nan, RNG.normal(size=N)), zeros).startswith(
        "it is missing where the target is 0"
    )


@pytest.mark.parametrize("transform", [np.log, np.sqrt, lambda y: -y, lambda y: y**3])
def test_a_monotone_function_of_the_target(transform: object) -> None:
    assert "monotone function" in found(transform(NUMBERS), NUMBERS)  # type: ignore[operator]


def test_an_order_that_separates_the_classes_but_for_a_row() -> None:
    score = RNG.random(N) + 2.0 * YES
    score[np.flatnonzero(YES)[0]] = 0.97
    assert "separates the classes" in found(score, CLASSES)


def test_text_that_names_the_classes() -> None:
    assert found(np.where(YES, "Y", "N"), CLASSES) == "rows with equal values have equal targets"


@pytest.mark.parametrize(
    "column",
    [
        np.where(RNG.random(N) < 0.4, np.nan, RNG.normal(size=N)),  # missing at random
        RNG.normal(size=N) + 3.0 * YES,  # a good feature
        np.where(YES ^ (RNG.random(N) < 0.05), "Y", "N"),  # a very good one
        [f"row {i}" for i in range(N)],  # an identifier
        np.full(N, 1.0),
    ],
)
def test_columns_without_leakage_get_no_remark(column: object) -> None:
    assert not found(column, CLASSES)


def test_a_good_predictor_of_numbers_is_left_alone() -> None:
    assert not found(NUMBERS + 0.1 * RNG.normal(size=N), NUMBERS)


@pytest.mark.parametrize("classes", [True, False])
def test_wide_tables_have_the_same_suspicious_columns_as_their_columns_alone(classes: bool) -> None:
    rng = np.random.default_rng(0)
    n = 30
    y = np.where(np.arange(n) < 12, "no", "yes") if classes else np.arange(n) * 1.5
    wide = {f"v{j}": rng.normal(size=n) for j in range(60)}
    wide["order"] = np.exp(np.arange(n) / 3.0)
    wide["reversed"] = -np.arange(float(n))
    wide["tied"] = np.repeat(np.arange(6.0), 5)
    wide["two"] = (np.arange(n) >= 12).astype(float)
    wide["gone"] = np.where(np.arange(n) < 12, np.nan, rng.normal(size=n))
    wide |= {f"t{j}": rng.choice(["a", "b", "c"], n) for j in range(20)}
    wide["word"] = np.where(np.arange(n) < 12, "x", rng.choice(["y", "z"], n))
    wide["empty"] = pa.array([None if i < 12 else "a" for i in range(n)])
    alone = {name: found for name in wide for found in leaks(pa.table({name: wide[name]}), y, classes).values()}
    assert leaks(pa.table(wide), y, classes) == alone
    assert {"order", "reversed"} <= set(alone)
    assert all((name in alone) == classes for name in ("two", "gone", "word", "empty"))
