"""Targets such as "$3,800.00" or "9 %" are read as numbers, as features are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import summula
from tests.cli.commands import document, run

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=N)
PRICE = 3_000.0 + 400.0 * X + 20.0 * RNG.normal(size=N)
WRITTEN = [f"${value:,.2f}" for value in PRICE]


def trained(y: Any, **options: Any) -> Any:
    frame = pd.DataFrame({"x": X, "price": y})
    return summula.train(frame, "price", models=["linear"], time=3_600, progress=False, **options)


def test_they_give_the_model_of_the_numbers() -> None:
    result, plain = trained(WRITTEN), trained(np.round(PRICE, 2))
    assert result._task.kind == "numbers"
    frame = pd.DataFrame({"x": X})
    np.testing.assert_allclose(result.model.predict(frame), plain.model.predict(frame))
    assert f"The target 'price' is text such as {WRITTEN[0]!r}, read as numbers." in result.remarks


def test_the_first_value_that_is_not_a_number_is_named_and_its_row_left_out() -> None:
    result = trained([*WRITTEN[:50], "on request", *WRITTEN[51:]])
    assert any("1 other value, 'on request', is treated as missing" in one for one in result.remarks)
    assert result.n_training + result.certificate.n == N - 1


def test_percentages() -> None:
    result = trained([f"{value:.1f} %" for value in 50 + 10 * X])
    assert 40 < float(np.mean(result.model.predict(pd.DataFrame({"x": X})))) < 60


def test_a_few_different_texts_stay_classes() -> None:
    y = np.where(X > 0, "10 %", "20 %")
    frame = pd.DataFrame({"x": X, "share": y})
    result = summula.train(frame, "share", models=["logistic"], time=3_600, progress=False)
    assert result.model.classes_.tolist() == ["10 %", "20 %"]


@pytest.mark.parametrize("stream", [False, True])
def test_certify_reads_them_too(stream: bool, tmp_path: Path) -> None:
    table, fresh = tmp_path / "t.csv", tmp_path / "fresh.csv"
    rows = [f'{x!r},"{price}"' for x, price in zip(X.tolist(), WRITTEN, strict=True)]
    table.write_text("\n".join(["x,price", *rows[:80]]) + "\n")
    fresh.write_text("\n".join(["x,price", *rows[80:]]) + "\n")
    options = ["--stream"] if stream else []
    document("train", table, "-t", "price", "-o", tmp_path / "out", "--models", "linear", *options)
    output = document("certify", tmp_path / "out", fresh)
    assert output["rows"] == 40
    assert output["estimate"] < 60


def test_inspect_reads_them_too_and_finds_leakage_among_numbers(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = [
        f'{x!r},"{price}","{2 * float(price[1:].replace(",", "")):,.1f}"'
        for x, price in zip(X.tolist(), WRITTEN, strict=True)
    ]
    rows[3] = rows[3].replace("$", "about ")
    table.write_text("\n".join(["x,price,twice", *rows]) + "\n")
    output = document("inspect", table, "-t", "price")
    assert list(output["leaks"]) == ["twice"]
    remark = next(row["remark"] for row in output["columns"] if row["column"] == "price")
    assert remark == f"the target, numbers: {N - 1} different values"
    result = run("train", table, "-t", "price", "-o", tmp_path / "out", "--models", "linear")
    assert "1 row without a value of 'price' is left out." in result.stderr
