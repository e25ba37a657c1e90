"""Columns that are target leakage only jointly are reported; good models are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import summula


def table(noise: float, classes: bool) -> pa.Table:
    rng = np.random.default_rng(0)
    a, b, other = rng.normal(size=(3, 1_500))
    y = a + 2 * b + noise * rng.normal(size=1_500)
    return pa.table({"a": a, "b": b, "other": other, "y": np.where(y > 0, "yes", "no") if classes else y})


@pytest.mark.parametrize(
    ("noise", "classes", "message"),
    [
        (0.0, False, "% of the variance of 'y' on 300 held-out rows, mostly by 'b' and 'a'): possible leakage"),
        (0.3, False, None),
        (0.0, True, "0 % errors in predicting 'y' on 300 held-out rows, mostly by 'b' and 'a'): possible leakage"),
        (0.3, True, None),
    ],
)
def test_predictions_that_are_nearly_exact(noise: float, classes: bool, message: str | None, tmp_path: Path) -> None:
    # (A lasso path with weak penalties separates classes that a line separates.)
    models = ["logistic_l1"] if classes else ["linear"]
    result = summula.train(table(noise, classes), "y", models=models, time=600, progress=False)
    found = [text for text in result.remarks if "leakage" in text]
    assert not result.leaks
    if message is None:
        assert not found
    else:
        assert len(found) == 1
        assert message in found[0]
        assert "drop=['b', 'a'] in Python" in found[0]
        assert "possible leakage" in result._repr_html_()
        result.report(tmp_path / "report.html")
        assert "<strong>Warning:</strong> Predictions are nearly exact" in (tmp_path / "report.html").read_text()


def test_one_column_that_is_leakage_by_itself_is_named_once() -> None:
    data = table(0.3, False)
    data = data.append_column("log", pa.array(np.exp(data["y"].to_numpy())))
    result = summula.train(data, "y", models=["linear"], time=600, progress=False)
    assert list(result.leaks) == ["log"]
    assert len([text for text in result.remarks if "leakage" in text]) == 1


def test_the_baseline_of_costs_is_the_cheapest_class() -> None:
    data = table(1.0, True)
    costs = {"no": {"no": 0.0, "yes": 10.0}, "yes": {"no": 1.0, "yes": 0.0}}
    result = summula.train(data, "y", models=["logistic"], costs=costs, time=600, progress=False)
    held_out = result._holdout.y
    assert result.baseline == pytest.approx(
        np.mean(held_out == "no")
    )  # always "yes": a missed one costs ten times more
    assert f"(always the cheapest class: {result.baseline:.4g})" in result.verdict
    assert result.certificate.estimate < result.baseline
    assert result.beats_baseline
