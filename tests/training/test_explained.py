"""Importances, partial dependence and contributions, against closed forms of linear models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import summula
from summula.linear_model import LinearRegression
from summula.preprocessing import TableEncoder, TableModel
from summula.training.reporting.data_figures import _distribution
from summula.training.reporting.explained import EncodedModel, contributions, dependence, importances

RNG = np.random.default_rng(3)
N = 300
FRAME = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "kind": RNG.choice(["u", "v", "w"], N)})
FRAME["y"] = 5.0 + 3.0 * FRAME.a + 0.5 * FRAME.b + 2.0 * (FRAME.kind == "w") + 0.1 * RNG.normal(size=N)
X = FRAME.drop(columns="y")
MODEL = TableModel(TableEncoder(standardize=True), LinearRegression(), "y").fit(FRAME)
ENCODED = EncodedModel(MODEL)
ROWS = MODEL.encoder.transform(X)


def losses(rows: np.ndarray) -> np.ndarray:
    return (FRAME.y.to_numpy() - MODEL.model.predict(rows)) ** 2


@pytest.mark.parametrize("models", [["linear"], ["boosting"]])
def test_a_report_of_columns_of_text_that_are_numbers_or_dates(models: list[str], tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=N)
    frame = pd.DataFrame(
        {
            "price": [f"${4_000 + 1_000 * a:,.2f}" for a in FRAME.a],
            "share": [f"{50 + 10 * b:.1f}%" for b in FRAME.b],
            "mixed": ["unknown", *(f"{b:.2f}" for b in FRAME.b[1:])],
            "day": days.strftime("%Y-%m-%d"),
            "moment": days.strftime("%Y-%m-%d 10:30"),
            "y": FRAME.y,
        }
    )
    result = summula.train(frame, "y", models=models, time=600, progress=False)
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    dependence = page[page.index("Partial dependence") : page.index("Contributions")]
    assert "price" in dependence
    assert re.search(r">2024-\d\d-\d\d<", dependence)
    # Leakage is looked for among the numbers.
    copied = frame.assign(copy=[f"${one:,.3f}" for one in FRAME.y])
    result = summula.train(copied, "y", models=["linear"], time=600, progress=False)
    assert list(result.leaks) == ["copy"]


def test_importance_of_a_linear_model_is_twice_the_variance_it_explains() -> None:
    found = {one.name: one for one in importances(ENCODED, ROWS, losses, seconds=3_600)}
    assert list(found) == ["a", "kind", "b"]
    for name, variance in (
        ("a", 9 * FRAME.a.var()),
        ("b", 0.25 * FRAME.b.var()),
        ("kind", 4 * (FRAME.kind == "w").var()),
    ):
        one = found[name]
        assert one.low < 2 * variance < one.high
        assert one.high - one.low < 2 * variance


def test_columns_that_are_not_used_have_no_importance_and_time_ends_the_search() -> None:
    model = TableModel(TableEncoder(), LinearRegression(), "y").fit(FRAME)
    coef = model.model.coef_
    coef[model.encoder.places()["b"]] = 0.0
    found = {one.name: one for one in importances(EncodedModel(model), model.encoder.transform(X), losses, 3_600)}
    assert found["b"] == ("b", 0.0, 0.0, 0.0)
    assert found["a"].low > 0.0
    assert importances(ENCODED, ROWS, losses, seconds=-1.0) == []


def test_partial_dependence_of_a_linear_model_is_a_line() -> None:
    import pyarrow as pa

    found = dependence(ENCODED, ROWS, "a", pa.array(FRAME.a.to_numpy()))
    assert found is not None
    x, y = np.array(found.values), found.output[:, 0]
    slope = MODEL.model.coef_[MODEL.encoder.places()["a"]][0] / FRAME.a.std(ddof=0)
    np.testing.assert_allclose(np.diff(y), slope * np.diff(x), rtol=1e-9)
    levels = dependence(ENCODED, ROWS, "kind", pa.array(FRAME.kind.to_numpy()))
    assert levels is not None
    means = dict(zip(levels.values, levels.output[:, 0].tolist(), strict=True))
    assert means["w"] - means["u"] == pytest.approx(2.0, abs=0.05)
    assert dependence(ENCODED, ROWS, "a", pa.array([1.0, 1.0])) is None


def test_contributions_are_those_of_a_linear_model_and_add_up() -> None:
    background, row = ROWS[:40], ROWS[50]
    found = contributions(ENCODED, row, background, ["a", "kind"], 0)
    assert found.names[-1] == "other columns"
    assert found.base + sum(found.values) == pytest.approx(found.output, rel=1e-12)
    assert found.output == pytest.approx(float(MODEL.model.predict(row[np.newaxis])[0]), rel=1e-12)
    single = MODEL.model.coef_ * (row - background.mean(axis=0))
    own = dict(zip(found.names, found.values, strict=True))
    for name in ("a", "kind"):
        assert own[name] == pytest.approx(single[MODEL.encoder.places()[name]].sum(), rel=1e-9)
    assert own["other columns"] == pytest.approx(single[MODEL.encoder.places()["b"]].sum(), rel=1e-9)


def test_contributions_of_an_interaction_are_shared_equally() -> None:
    class Product:
        places = {"p": slice(0, 1), "q": slice(1, 2)}

        def output(self, rows: np.ndarray) -> np.ndarray:
            return (rows[:, 0] * rows[:, 1])[:, np.newaxis]

    background = np.zeros((400, 2))
    found = contributions(Product(), np.array([2.0, 3.0]), background, ["p", "q"], 0)  # type: ignore[arg-type]
    assert sum(found.values) == pytest.approx(6.0)
    assert found.values == pytest.approx([3.0, 3.0], abs=0.5)


@pytest.fixture(scope="module")
def boosted(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "when": pd.date_range("2024-01-01", periods=400)})
    frame["sick"] = np.where(x[:, 0] * x[:, 1] > 0, "yes", "no")
    frame.loc[::7, "b"] = np.nan
    result = summula.train(frame, "sick", time=3_600, models=["logistic", "boosting"], random_state=1, metric="auc")
    assert result._board.best.name == "boosting"
    path = tmp_path_factory.mktemp("report") / "report.html"
    result.report(path)
    return path.read_text(encoding="utf-8")


def test_a_report_has_coefficients_of_the_best_linear_model_when_boosting_wins(boosted: str) -> None:
    assert "Coefficients of logistic" in boosted
    assert '<button type="button">std error</button>' in boosted
    assert "of the unpenalised fit to the same rows" in boosted
    assert "Settings of boosting: HistGradientBoostingClassifier" in boosted
    assert "summula.train(data, &#39;sick&#39;, time=3600, metric=&#39;auc&#39;, models=[" in boosted


def test_a_binary_report_has_its_curves_and_the_map_of_missing_values(boosted: str) -> None:
    for title in ("ROC", "Precision and recall", "By threshold", "Correlations", "Missing values", "Target: sick"):
        assert f"<h3>{title}</h3>" in boosted
    assert re.search(r"b \(1[345]\.\d%\)", boosted)  # every seventh value is missing
    assert "Increase of the mean log loss" in boosted  # AUC is no mean over rows


def test_a_streamed_report_has_the_same_sections(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    result = summula.train(tmp_path / "t.parquet", "y", time=3_600, models=["ridge"], stream=True)
    result.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("Permutation importance", "Partial dependence", "Coefficients of ridge", "Distribution of columns"):
        assert title in text
    assert "Rows were read from files" in text


def test_numbers_names_and_headings_of_a_report_are_readable(tmp_path: Path) -> None:
    income = 40_000.0 + 5_000.0 * FRAME.a
    income[::10] = np.nan
    frame = pd.DataFrame({"a_long_name_of_a_column_of_incomes": income, "b": FRAME.b, "y": 1e5 + 1e4 * FRAME.y})
    result = summula.train(frame, "y", models=["linear"], time=600, progress=False)
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "e+0" not in page
    assert "Compared by mean absolute error (smaller is better)" in page
    assert re.search(r">a_long_name_\w*… \(\d+\.\d%\)<", page)  # the share is not cut
    header = re.search(r'<th scope="col"([^>]*)><button type="button">mean</button>', page)
    assert header is not None
    assert header[1] == ' class="number"'


def test_dates_in_text_are_drawn_as_dates() -> None:
    days = np.array(["2024-01-05", "2024-03-01", "NaT", "2024-03-02"], "datetime64[us]")
    texts = pa.array(["2024-01-05", "2024-03-01", None, "2024-03-02"], pa.large_string())
    groups = (["no", "yes"], np.array([0, 1, 0, 1]))
    for chosen in (None, groups):
        assert _distribution(texts, "day", chosen) == _distribution(days, "day", chosen)
