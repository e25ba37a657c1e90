"""report.html of `summula train`: its contents, for classification and for regression."""

from __future__ import annotations

import re

import pytest

import summula
from tests.cli.conftest import Trained
from tests.report.test_page import Page, coordinates


def text_of(trained: Trained) -> str:
    return (trained.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("which", ["species", "mass"])
def test_a_report_is_small_whole_and_has_every_section(which: str, request: pytest.FixtureRequest) -> None:
    trained = request.getfixturevalue(which)
    text = text_of(trained)
    output = " ".join(" ".join(Page(text).text).split())
    assert len(text.encode()) < 3_000_000
    assert trained.output["verdict"] in output
    for heading in ("Candidates", "On the rows held out", "What the model depends on", "The data", "How it was made"):
        assert f"<h2>{heading}</h2>" in text
    assert "Assumed: The held-out rows are independent draws" in output
    assert f"summula {summula.__version__}" in output
    assert "Permutation importance" in output
    assert "Partial dependence" in output
    assert "Contributions to single predictions" in output
    assert re.search(r"held-out data \(SHA-256\) [0-9a-f]{64} ", output)
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        assert 0.0 <= coordinates(drawing).min() <= coordinates(drawing).max() <= 1.0


def test_classes_get_curves_calibration_and_a_table_of_confusions(species: Trained) -> None:
    text = text_of(species)
    assert "<h3>ROC</h3>" in text
    assert "<h3>Precision and recall</h3>" in text
    assert "<h3>Calibration</h3>" in text
    assert "<h3>Confusion matrix</h3>" in text
    assert "they have no valid standard errors" in text  # the model is penalised
    assert "island" in text
    assert "sex[" in text  # coefficients have the names of columns and levels


def test_numbers_get_residuals(mass: Trained) -> None:
    text = text_of(mass)
    assert "<h3>Residuals</h3>" in text
    assert re.search(r"Predictions are clipped to the range -?[\d.]+ to [\d.]+\.", text)
    for score in ("R2", "RMSE", "MAE"):
        assert f"<td>{score}</td>" in text


def test_least_squares_has_standard_errors(mass: Trained, tmp_path: object) -> None:
    from tests.cli.commands import run

    run("train", mass.table, "-t", "body_mass_g", "-o", tmp_path, "--models", "linear")
    text = text_of(Trained(mass.table, mass.fresh, tmp_path, None))  # type: ignore[arg-type]
    assert "std error" in text
    assert "assume that the model was specified in advance" in text
