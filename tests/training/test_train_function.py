"""`summula.train`: supported tables, results, held-out rows, metrics, and errors."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import f1_score, roc_auc_score

import summula
from summula.core.errors import DataError, OutputError, ParameterError
from summula.training import TrainingResult

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 3))
SCORE = X[:, 0] + 0.5 * X[:, 1]
FRAME = pd.DataFrame(
    {
        "a": X[:, 0],
        "b": X[:, 1],
        "kind": np.where(X[:, 2] > 0, "u", "v"),
        "patient": [f"p{i}" for i in np.arange(N) // 8],
        "day": pd.date_range("2024-01-01", periods=N),
        "sick": np.where(SCORE + 0.7 * RNG.normal(size=N) > 0.8, "yes", "no"),
        "cost": 3.0 + SCORE + 0.3 * RNG.normal(size=N),
    }
)
CLASSES = FRAME.drop(columns=["cost", "patient", "day"])
NUMBERS = FRAME.drop(columns=["sick", "patient", "day"])


def trained(data: Any = CLASSES, target: str = "sick", **options: Any) -> TrainingResult:
    return summula.train(data, target, **{"models": ["logistic"], "time": 3_600, **options})


@pytest.fixture(scope="module")
def result() -> TrainingResult:
    return trained()


def test_what_is_returned(result: TrainingResult, tmp_path: Path) -> None:
    assert result.model.predict(CLASSES[:3]).shape == (3,)
    assert result.model.predict_proba(CLASSES[:3]).shape == (3, 2)
    assert result.certificate.lower <= result.certificate.estimate <= result.certificate.upper < result.baseline
    assert result.beats_baseline
    assert result.verdict.startswith("logistic: ")
    assert result.verdict.endswith(" with 95 % confidence.")
    board = result.leaderboard
    assert board["model"].tolist() == ["logistic", "baseline"]
    assert (board["2.5 %"] <= board["held-out accuracy"]).all()
    assert (board["held-out accuracy"] <= board["97.5 %"]).all()
    assert "<table>" in result._repr_html_()
    assert repr(result) == f"TrainingResult: {result.verdict}"
    result.save(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "certificate.json", "leaderboard.csv", "model.summula", "report.html",
    ]  # fmt: skip
    assert np.array_equal(
        summula.load(tmp_path / "out" / "model.summula").predict(CLASSES), result.model.predict(CLASSES)
    )
    result.report(tmp_path / "r.html")
    assert "</html>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_every_kind_of_table_gives_the_same_model(result: TrainingResult, tmp_path: Path) -> None:
    CLASSES.to_csv(tmp_path / "t.csv", index=False)
    parquet.write_table(pa.Table.from_pandas(CLASSES), tmp_path / "t.parquet")
    tables = [
        pl.from_pandas(CLASSES),
        pl.from_pandas(CLASSES).lazy(),
        pa.Table.from_pandas(CLASSES),
        tmp_path / "t.csv",
        summula.scan(tmp_path / "t.parquet"),
    ]
    for table in tables:
        same = trained(table)
        assert same.certificate.estimate == result.certificate.estimate
        assert np.allclose(same.model.model.coef_, result.model.model.coef_, rtol=1e-9)


def test_from_scratch_files_it_is_the_same(result: TrainingResult) -> None:
    streamed = trained(stream=True)
    assert streamed.certificate.estimate == result.certificate.estimate
    ours, theirs = streamed.leaderboard, result.leaderboard
    assert np.allclose(ours["accuracy"], theirs["accuracy"])


def check_files_state_assumptions(result: TrainingResult, folder: Path) -> None:
    result.save(folder)
    stated = json.loads((folder / "certificate.json").read_text())["assumptions"]
    assert stated == list(result.certificate.assumptions)
    report = html.unescape((folder / "report.html").read_text())
    assert all(f"Assumed: {one}" in report for one in stated)


def test_whole_groups_are_held_out_and_the_certificate_is_about_groups(tmp_path: Path) -> None:
    result = trained(FRAME.drop(columns=["cost", "day"]), groups="patient")
    assert result.certificate.sampling == "groups"
    assert result.certificate.n_groups == result.certificate.n // 8 == 10
    assert "groups of rows are independent draws" in result.certificate.assumptions[0]
    assert "in 10 groups" in result.verdict
    assert "patient" not in result.model.feature_names_in_
    check_files_state_assumptions(result, tmp_path / "out")


def test_the_latest_rows_are_held_out(tmp_path: Path) -> None:
    result = trained(FRAME.drop(columns=["cost", "patient"]), time_column="day")
    assert result.certificate.sampling == "latest rows"
    assert "latest rows" in result.certificate.assumptions[0]
    late = FRAME[-80:]
    wrong = np.mean(result.model.predict(late) != late["sick"].to_numpy())
    assert result.certificate.estimate == pytest.approx(wrong)
    assert "day" not in result.model.feature_names_in_
    check_files_state_assumptions(result, tmp_path / "out")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y/%j"])
def test_times_of_text_that_sorts_are_those_of_dates(form: str) -> None:
    frame = FRAME.drop(columns=["cost", "patient"])
    text = frame.assign(day=pd.to_datetime(frame["day"]).dt.strftime(form))
    one, two = trained(frame, time_column="day"), trained(text, time_column="day")
    assert one.certificate.estimate == two.certificate.estimate
    assert one.certificate.n == two.certificate.n


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%B %d, %Y"])
def test_times_of_text_that_does_not_sort_are_refused(form: str) -> None:
    text = FRAME.assign(day=pd.to_datetime(FRAME["day"]).dt.strftime(form))
    with pytest.raises(
        DataError, match="'day' contains text such as '.*', which does not sort in time; convert it to dates"
    ):
        trained(text, time_column="day")


def test_keys_are_noticed() -> None:
    frame = FRAME.drop(columns="cost")
    for day in (frame["day"], pd.to_datetime(frame["day"]).dt.strftime("%Y-%m-%d")):
        remarks = " ".join(trained(frame.assign(day=day)).remarks)
        assert "'day' contains times: if the model is to predict the future" in remarks
    keyed = FRAME.drop(columns=["cost", "day"]).rename(columns={"patient": "patient_id"})
    assert "'patient_id' looks like a group key (50 values" in " ".join(trained(keyed).remarks)


def test_a_metric_of_probabilities_ranks_and_is_shown_as_it_is_known() -> None:
    result = trained(metric="auc")
    board = result.leaderboard
    assert board["auc"][0] > 0.8
    assert board["auc"][1] == 0.5
    X, y = result._holdout.X, result._holdout.y
    known = roc_auc_score(y == "yes", result.model.predict_proba(X)[:, 1])
    assert board["held-out auc"][0] == pytest.approx(known)


def test_a_threshold_is_chosen_for_f1() -> None:
    result = trained(metric="f1")
    assert result.model.threshold is not None
    assert 0.05 < result.model.threshold < 0.95
    X, y = result._holdout.X, result._holdout.y
    chosen = np.where(result.model.predict_proba(X)[:, 1] >= result.model.threshold, "yes", "no")
    assert np.array_equal(result.model.predict(X), chosen)
    assert result.leaderboard["held-out f1"][0] == pytest.approx(f1_score(y, chosen, pos_label="yes"))


@pytest.mark.parametrize(
    "costs", [[[0, 10], [1, 0]], {"no": {"no": 0, "yes": 10}, "yes": {"no": 1, "yes": 0}}], ids=["array", "mapping"]
)
def test_costs_move_the_decision(costs: Any, result: TrainingResult) -> None:
    costly = trained(costs=costs)
    assert costly.metric == "expected_cost"
    assert "mean cost of predicting 'sick'" in costly.verdict
    assert np.mean(costly.model.predict(CLASSES) == "yes") > 1.3 * np.mean(result.model.predict(CLASSES) == "yes")


@pytest.mark.parametrize("metric", ["absolute", "squared", "poisson"])
def test_numbers(metric: str) -> None:
    positive = NUMBERS.assign(cost=NUMBERS["cost"].clip(lower=0.1))
    result = trained(positive, "cost", models=["linear"], metric=metric)
    assert ("root mean squared error" if metric == "squared" else "mean absolute error") in result.verdict
    assert result.leaderboard[metric][0] < result.leaderboard[metric][1]


def test_noise_is_not_shown_to_beat_the_baseline() -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"x": rng.normal(size=150), "y": rng.choice(["a", "b"], 150)})
    result = trained(table, "y")
    assert not result.beats_baseline
    assert "baseline" in result.verdict


def test_leakage_is_reported() -> None:
    frame = NUMBERS.assign(log=np.log(NUMBERS["cost"] + 10.0))
    result = trained(frame, "cost", models=["linear"])
    assert result.leaks.keys() == {"log"}
    assert any(remark.startswith("Warning: 'log' looks like target leakage") for remark in result.remarks)
    assert not trained(frame, "cost", models=["linear"], drop=["log"]).leaks


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"target": "sicc"}, DataError, "did you mean 'sick'"),
        ({"metric": "squared"}, ParameterError, "The metric 'squared' is not for a target of classes"),
        ({"metric": "expected_cost"}, ParameterError, r"needs costs .* give --costs FILE \(costs= in Python\)"),
        ({"metric": "mape"}, ParameterError, "did you mean 'mae'"),
        ({"groups": "nobody"}, DataError, "nobody"),
        ({"groups": "a", "time_column": "b"}, ParameterError, "not both"),
        ({"models": ["magic"]}, ParameterError, "choose from baseline, logistic"),
        ({"models": ["Logistic"]}, ParameterError, "did you mean 'logistic'"),
        ({"costs": [[0, 1, 2]]}, DataError, r"give \(2, 2\)"),
        ({"data": [[1.0, 2.0]]}, ParameterError, "give a frame"),
        ({"time": 0}, ParameterError, "must be a positive number of seconds"),
        ({"time": "60"}, ParameterError, "time must be a positive number of seconds, such as 60; got '60'"),
        ({"time": None}, ParameterError, "time must be a positive number of seconds, such as 60; got None"),
        ({"target": FRAME["sick"]}, ParameterError, "^target is a Series; give the name of a column"),
        ({"groups": np.arange(N) // 8}, ParameterError, "^groups is a ndarray; give the name of a column"),
        ({"time_column": FRAME["day"]}, ParameterError, "^time_column is a Series; give the name of a column"),
        (
            {"metric": "rmse"},
            ParameterError,
            "average_precision, log_loss\\.$",
        ),  # (task='numbers' does not help for text)
        (
            {"data": NUMBERS, "target": "cost", "class_weight": "balanced"},
            ParameterError,
            "class_weight applies to classes",
        ),
        ({"data": NUMBERS, "target": "cost", "costs": [[0, 1], [1, 0]]}, ParameterError, "--task classes"),
        ({"holdout": 1.0}, ParameterError, "must be a fraction of the rows"),
        ({"drop": ["sick"]}, ParameterError, "is the target"),
    ],
)
def test_refusals(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        trained(**options)


def test_one_model_may_be_named_by_itself() -> None:
    assert trained(models="logistic").leaderboard["model"].tolist() == ["logistic", "baseline"]


def test_columns_called_by_numbers() -> None:
    frame = pd.DataFrame(X)
    frame[3] = SCORE
    assert trained(frame, 3, models=["linear"]).model.target == "3"  # type: ignore[arg-type]


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    result = trained(models=["baseline"])
    with pytest.raises(OutputError, match="is a folder; give the name of a file, such as report.html"):
        result.report(tmp_path)
    with pytest.raises(OutputError, match="does not exist; create it, or choose another"):
        result.report(tmp_path / "nowhere" / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stream", [False, True])
def test_copies_of_training_rows_among_those_held_out_get_a_remark(stream: bool) -> None:
    twice = pd.concat([CLASSES, CLASSES], ignore_index=True)
    copies = [text for text in trained(twice, stream=stream).remarks if "equal a training row in every column" in text]
    assert len(copies) == 1
    assert not any("equal a training row" in text for text in trained(stream=stream).remarks)


def test_no_kernels_are_expected_after_training() -> None:
    from summula.core.compilation import background

    summula.train(summula.datasets.load("penguins"), "species", models=["logistic"], time=600)
    assert background._later == ()
