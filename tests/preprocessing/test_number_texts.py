"""Text columns of numbers: parsed as numbers if nearly all texts agree, in prediction as in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import summula
from summula.core.errors import DataError
from summula.preprocessing import TableEncoder
from summula.preprocessing.number_texts import NumberFormat, parsed_numbers, text_numbers
from summula.preprocessing.table_encoder_plans import plan_column
from summula.preprocessing.table_encoder_sums import ColumnSums
from summula.training.data.split import split_rows


def chosen(words: list[Any]) -> Any:
    return ColumnSums.of(pa.array(words, pa.large_string()), "x", 0, None).spelled.chosen()


@pytest.mark.parametrize(
    ("word", "decimal", "value"),
    [
        ("3,750", ".", 3750.0), ("3,750", ",", 3.75), ("$3800.00", ".", 3800.0), ("-$1,234.5", ".", -1234.5),
        ("$-5", ".", -5.0), ("9%", ".", 9.0), ("9 %", ".", 9.0), ("1.234,56 €", ",", 1234.56), ("1 234,5", ",", 1234.5),
        ("1'234.5", ".", 1234.5), ("1e3", ".", 1000.0), (".5", ".", 0.5), ("\u22127", ".", -7.0), ("12,34", ".", None),
        ("1,2345", ".", None), ("unknown", ".", None), ("", ".", None), ("5 kg", ".", None), ("--5", ".", None),
        ("$5€", ".", None), ("١٢", ".", None), ("1_000", ".", None), ("nan", ".", None), ("1e999", ".", None),
    ],
)  # fmt: skip
def test_what_a_text_spells(word: str, decimal: str, value: float | None) -> None:
    units = ("", "$", "%", "€")
    found = [parsed_numbers([word], NumberFormat(decimal, unit))[0] for unit in units]
    there = [one for one in found if not np.isnan(one)]
    assert set(there) == (set() if value is None else {value})


@pytest.mark.parametrize(
    ("words", "form", "odd"),
    [
        ([f"{i},750" for i in range(1, 20)], NumberFormat(".", ""), 0),
        ([f"{i},5" for i in range(1, 20)] + ["3,750"], NumberFormat(",", ""), 0),
        ([f"${i}.00" for i in range(1, 20)] + ["7"], NumberFormat(".", "$"), 0),
        ([f"{i}%" for i in range(1, 40)] + ["7"], NumberFormat(".", "%"), 1),
        ([f"{i}" for i in range(1, 40)] + ["unknown"], NumberFormat(".", ""), 1),
        ([f"{i}" for i in range(1, 40)] + ["n/a?"] * 5, None, 0),
        ([f"{i:05}" for i in range(1, 40)], None, 0),
        ([f"{i}" for i in range(1, 40)] + ["007"], None, 0),
        (["a", "b"] * 20, None, 0),
        (["1", "2"], None, 0),
        ([f"${i}" for i in range(1, 20)] + [f"€{i}" for i in range(20)], None, 0),
    ],
)
def test_the_format_of_a_column(words: list[str], form: NumberFormat | None, odd: int) -> None:
    found = chosen(words)
    if form is None:
        assert found is None
    else:
        assert (found.form, found.others) == (form, odd)


def test_sums_of_blocks_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    words = [None if i % 17 == 0 else f"${x:,.2f}" for i, x in enumerate(rng.uniform(0, 5_000, 400))]
    words[333] = "unknown"
    weight = rng.uniform(0.5, 2, 400)
    values = pa.array(words, pa.large_string())
    whole = ColumnSums.of(values, "x", 0, weight)
    parts = [ColumnSums.of(values[a : a + 100], "x", a, weight[a : a + 100]) for a in range(0, 400, 100)]
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    a, b = whole.spelled.chosen(), merged.spelled.chosen()
    assert (a.form, a.odd) == (b.form, b.odd) == (NumberFormat(".", "$"), "unknown")
    expected = parsed_numbers([word or "" for word in words], a.form)
    there = ~np.isnan(expected)
    mean = np.average(expected[there], weights=weight[there])
    for one in (a.numbers, b.numbers):
        assert one.mean == pytest.approx(mean, rel=1e-12)
        assert one.spread == pytest.approx(np.sqrt(np.average((expected[there] - mean) ** 2, weights=weight[there])))
        assert (one.low, one.high) == (np.nanmin(expected), np.nanmax(expected))


def test_plans_are_those_of_the_numbers() -> None:
    numbers = np.random.default_rng(0).uniform(0, 9_000, 300).round(2)
    text = pa.array([f"${x:,.2f}" for x in numbers], pa.large_string())
    spelled = plan_column("x", ColumnSums.of(text, "x", 0, None), 100, True)
    plain = plan_column("x", ColumnSums.of(numbers, "x", 0, None), 100, True)
    assert (spelled.kind, spelled.decimal, spelled.unit) == ("number", ".", "$")
    assert (spelled.low, spelled.high) == (plain.low, plain.high)
    assert spelled.mean == pytest.approx(plain.mean, rel=1e-12)


def table(n: int = 60) -> pa.Table:
    rng = np.random.default_rng(1)
    prices = rng.uniform(500, 5_000, n).round(2)
    texts = [f"${x:,.2f}" for x in prices]
    y = np.where(prices > 2_500, "high", "low")
    texts[int(np.argmin(split_rows(np.ones(n, bool), y, 0.2, 0).held_out))] = "unknown"  # a row to learn from
    return pa.table({"price": texts, "z": rng.normal(size=n), "y": y})


def test_the_parse_is_stored_in_the_model(tmp_path: Path) -> None:
    rows = table()
    result = summula.train(rows, "y", models=["logistic"], time=3_600)
    output = [remark for remark in result.remarks if remark.startswith("'price' is text such as '$")]
    assert [one.endswith(", read as numbers; 1 other value, 'unknown', is treated as missing.") for one in output] == [
        True
    ]
    summula.save(result.model, tmp_path / "model.summula")
    model = summula.load(tmp_path / "model.summula")
    asked = pa.table({"price": ["$4,900.00", "600", "$600.00"], "z": [0.0, 0.0, 0.0]})
    assert model.predict(asked).tolist() == ["high", "low", "low"]
    numeric = asked.set_column(0, "price", pa.array([4_900.0, 600.0, 600.0]))
    np.testing.assert_array_equal(model.predict_proba(asked), model.predict_proba(numeric))


def test_columns_that_were_numbers_in_training_do_not_take_text() -> None:
    encoder = TableEncoder().fit(pa.table({"x": np.arange(30.0) ** 2}))
    with pytest.raises(DataError, match="had numbers in the training data but is '\\$5' at row 0"):
        encoder.transform(pa.table({"x": ["$5"]}))


def test_rows_without_text_spell_nothing() -> None:
    assert text_numbers([], np.full(3, -1), None, 0).chosen() is None
