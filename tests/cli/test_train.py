"""`summula train`: its files, its output, inferred settings, and options."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import summula
from summula.certification import RiskCertificate
from summula.preprocessing import TableModel
from summula.training.comparison.candidates import CANDIDATES, candidates_for
from summula.training.comparison.metrics import Evaluator
from summula.training.data.split import split_rows
from tests.cli.commands import RUNNER, app, document, failure, run, write
from tests.cli.conftest import Trained


def test_what_is_written_can_be_read_again(species: Trained) -> None:
    model = summula.load(species.folder / "model.summula")
    assert isinstance(model, TableModel)
    assert model.target == "species"
    certificate = RiskCertificate.from_json((species.folder / "certificate.json").read_text(), model)
    assert certificate.n == species.output["rows held out"] == 34  # a fifth of 172
    board = csv.read_csv(species.folder / "leaderboard.csv")
    assert board["model"].to_pylist() == ["logistic", "baseline"]


def test_the_certificate_is_that_of_the_hold_out(species: Trained) -> None:
    model = summula.load(species.folder / "model.summula")
    table = csv.read_csv(species.table, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    aside = table.filter(pa.array(split_rows(np.ones(table.num_rows, bool), None, 0.2, 0).held_out))
    wrong = np.mean(model.predict(aside) != aside["species"].to_numpy())
    assert species.output["estimate"] == pytest.approx(wrong, abs=1e-12)
    assert species.output["lower"] <= wrong <= species.output["upper"]


def test_the_verdict_is_one_sentence_with_its_guarantee(species: Trained, mass: Trained) -> None:
    output = species.output["verdict"]
    assert re.fullmatch(
        r"logistic: [\d.]+ % errors in predicting 'species' on 34 held-out rows \(majority class: [\d.]+ %\); "
        r"true error below [\d.]+ % with 95 % confidence\.",
        output,
    )
    assert "mean absolute error of 'body_mass_g' " in mass.output["verdict"]
    assert "(predicting the mean: " in mass.output["verdict"]


def test_bounds_are_rounded_up() -> None:
    from summula.training.verdicts import _digits

    assert _digits(8.8412, 3, up=True) == "8.85"
    assert _digits(8.8412, 3, up=False) == "8.84"
    assert float(_digits(99.97, 3, up=True)) >= 99.97
    assert _digits(131_415.0, 4, up=True) == "131,500"


def test_predicted_numbers_stay_within_the_range_of_training(mass: Trained) -> None:
    model = summula.load(mass.folder / "model.summula")
    giants = csv.read_csv(mass.fresh).set_column(4, "flipper_length_mm", pa.array([1e6] * 172))
    low, high = model.prediction_range
    assert model.low <= low < high <= model.high
    assert model.predict(giants).max() == high
    certificate = json.loads((mass.folder / "certificate.json").read_text())
    assert str(int(model.high - model.low)) in json.dumps(certificate)


def test_the_tables_are_printed_and_remarks_go_to_the_other_stream(species: Trained, tmp_path: Path) -> None:
    result = run("train", species.table, "-t", "species", "-o", tmp_path, "--models", "baseline")
    assert "Compared on 138 rows by accuracy, larger is better" in result.stdout
    assert "'species' is taken as classes (3 classes of text)" in result.stderr
    assert "\x1b[" not in result.output  # no colours in a pipe
    quiet = run("train", species.table, "-t", "species", "-o", tmp_path, "--models", "baseline", "--quiet")
    assert not quiet.stderr
    assert len(quiet.stdout.splitlines()) == 2


def test_the_verdict_states_that_nothing_beats_the_baseline(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=200), "y": rng.choice(["a", "b"], 200, p=[0.8, 0.2])})
    output = document(
        "train", write(table, tmp_path / "noise.csv"), "-t", "y", "-o", tmp_path / "out", "--models", "logistic"
    )
    assert output["verdict"].startswith("No candidate beat the baseline. baseline: ")
    assert summula.load(tmp_path / "out" / "model.summula").predict(table).tolist() == ["a"] * 200


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"], "classes"),
        ([0, 1], "classes"),
        ([1, 2, 3], "classes"),
        ([True, False], "classes"),
        ([0.5, 1.25, 2.0], "numbers"),
        (list(range(40)), "numbers"),
        ([10, 20, 30], "numbers"),
    ],
)
def test_the_task_is_inferred_and_can_be_overridden(values: list[Any], kind: str, tmp_path: Path) -> None:
    y = [values[i % len(values)] for i in range(80)]
    table = write(pa.table({"x": np.linspace(0, 1, 80) ** 2, "y": y}), tmp_path / "t.csv")
    options = ("-t", "y", "-o", tmp_path / "out", "--models", "baseline")
    assert document("train", table, *options)["task"] == kind
    if values != ["a", "b"]:
        assert document("train", table, *options, "--task", "numbers")["task"] == "numbers"


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
def test_every_kind_of_file_gives_the_same_model(ending: str, mass: Trained, tmp_path: Path) -> None:
    table = csv.read_csv(mass.table, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    path = tmp_path / f"t.{ending}"
    if ending == "tsv":
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))
    else:
        {"csv": csv.write_csv, "parquet": parquet.write_table, "arrow": feather.write_feather}[ending](table, path)
    output = document("train", path, "-t", "body_mass_g", "-o", tmp_path / "out", "--models", "linear,ridge")
    assert output["estimate"] == mass.output["estimate"]
    assert output["upper"] == mass.output["upper"]


def test_a_pattern_is_one_table(species: Trained, tmp_path: Path) -> None:
    table = csv.read_csv(species.table)
    write(table.slice(0, 100), tmp_path / "part-1.csv")
    write(table.slice(100), tmp_path / "part-2.csv")
    options = ("-t", "species", "-o", tmp_path / "out", "--models", "logistic")
    assert document("train", tmp_path / "part-*.csv", *options)["estimate"] == species.output["estimate"]


def test_from_files_the_same_candidates_are_compared_on_folds(mass: Trained, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("train", mass.table, "-t", "body_mass_g", "-o", out, "--stream", "--models", "linear,ridge")
    assert "The rows are encoded to scratch files" in result.stderr
    model, memory = summula.load(out / "model.summula"), summula.load(mass.folder / "model.summula")
    assert model.encoder.columns_ == memory.encoder.columns_
    assert np.array_equal(np.sort(model.training_hashes_), memory.training_hashes_)
    fresh = csv.read_csv(mass.fresh, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    assert type(model.model) is type(memory.model)
    # The same rows in another order: equal up to rounding.
    assert np.allclose(model.predict(fresh), memory.predict(fresh), rtol=1e-9)
    board = csv.read_csv(out / "leaderboard.csv")
    assert sorted(board["model"].to_pylist()) == ["baseline", "linear", "ridge"]
    assert board["folds"].to_pylist() == [5, 5, 5]
    assert not [name for name in out.iterdir() if name.suffix == ".arrow"]


def test_every_candidate_is_fitted_from_files(species: Trained, tmp_path: Path) -> None:
    for target in ("sex", "year"):
        options = ("-t", target, "-o", tmp_path / target, "--task", "classes" if target == "sex" else "numbers")
        output = document("train", species.table, *options, "--stream", "--time", "100")
        assert output["streamed"]
        assert {row["folds"] for row in output["leaderboard"]} == {5}, output["leaderboard"]
        names = {row["model"] for row in output["leaderboard"]}
        assert names >= {"baseline", "boosting"} | ({"logistic", "lda"} if target == "sex" else {"ridge", "lasso"}), (
            names
        )


def test_costs_change_what_is_predicted(species: Trained, tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("true,Gentoo,Adelie,Chinstrap\nAdelie,100,0,100\nChinstrap,0,1,0\nGentoo,0,1,1\n")
    options = ("-t", "species", "-o", tmp_path / "out", "--models", "logistic")
    message = document("train", species.table, *options, "--costs", costs)
    assert "mean cost of predicting 'species'" in message["verdict"]
    costs.write_text("predicted,Adelie,Chinstrap,Gentoo\nGentoo,100,0,0\nAdelie,0,1,1\nChinstrap,100,0,1\n")
    again = document("train", species.table, *options, "--costs", costs)
    assert again["estimate"] == message["estimate"]
    costs.write_text(costs.read_text().replace("predicted", "class"))
    assert "begin it with 'predicted' where its rows are predicted classes" in failure(
        3, "train", species.table, *options, "--costs", costs
    )
    costs.write_text("true,Adelie,Gentoo\nAdelie,0,1\nGentoo,1,0\n")
    sentence = failure(3, "train", species.table, *options, "--costs", costs)
    assert "one row and one column for each of Adelie, Chinstrap, Gentoo" in sentence


def test_ctrl_c_keeps_what_is_finished(species: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, evaluate = iter(range(100)), Evaluator.evaluate

    def interrupted(self: Evaluator, model: Any, blocks: Any) -> Any:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(self, model, blocks)

    monkeypatch.setattr(Evaluator, "evaluate", interrupted)
    options = ["train", str(species.table), "-t", "species", "-o", str(tmp_path), "--models", "logistic"]
    result = RUNNER.invoke(app, options)
    assert result.exit_code == 130
    assert "Stopped by Ctrl-C: continuing with the finished candidates" in result.stderr
    assert summula.load(tmp_path / "model.summula").target == "species"


def test_ctrl_c_before_anything_is_finished(species: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Evaluator, model: Any, blocks: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Evaluator, "evaluate", interrupted)
    sentence = failure(130, "train", species.table, "-t", "species", "-o", tmp_path / "out")
    assert sentence == "Stopped by Ctrl-C before anything was finished; nothing was written."
    assert not (tmp_path / "out").exists()


def test_a_candidate_that_fails_is_named_and_passed_over(
    species: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from summula.linear_model import LogisticRegression

    def broken(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        raise ValueError("no such luck")

    monkeypatch.setattr(LogisticRegression, "fit", broken)
    output = document("train", species.table, "-t", "species", "-o", tmp_path, "--models", "logistic")
    assert output["model"] == "baseline"
    assert output["leaderboard"][1]["note"] == "failed: no such luck"
    assert output["verdict"].startswith("Only the baseline was finished. baseline: ")


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_a_column_that_gives_the_target_away_is_warned_of(more: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), rng.choice(["no", "yes"], 300)
    table = pa.table({"x": x, "code": np.where(y == "yes", "Y", "N"), "y": y})
    path, out = write(table, tmp_path / "t.csv"), tmp_path / "out"
    options = ("-t", "y", "-o", out, "--models", "logistic", *more)
    result = run("train", path, *options)
    warning = "'code' looks like target leakage (rows with equal values have equal targets): unless its value is known"
    assert f"Warning: {warning}" in result.stderr
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<strong>Warning:</strong> &#39;code&#39; looks like target leakage" in page
    output = document("train", path, *options, "--drop", "code")
    assert not output["leakage"]
    assert output["model"] == "baseline"
    assert "code" not in summula.load(out / "model.summula").feature_names_in_


def test_time_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({f"x{j}": rng.normal(size=4_000) for j in range(8)} | {"y": rng.normal(size=4_000)})
    path = write(table, tmp_path / "t.csv")
    output = document("train", path, "-t", "y", "-o", tmp_path / "out", "--time", "1")
    assert output["leaderboard"][0]["folds"] >= 1


def test_one_table_lists_the_candidates() -> None:
    assert {one.kind for one in CANDIDATES} == {"classes", "numbers"}
    for kind in ("classes", "numbers"):
        names = [one.name for one in candidates_for(kind, counts=False)]
        assert names[0] == "baseline"
        assert "poisson" not in names
    assert "poisson" in [one.name for one in candidates_for("numbers", counts=True)]
