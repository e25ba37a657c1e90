"""`predict`, `certify`, `inspect`, `plan`, `warmup`, `doctor`, and the command line itself."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import summula
from summula.cli.console import Console
from summula.core.errors import DataError
from summula.theory import plan_holdout
from summula.training.data.split import split_rows
from tests.cli.commands import document, failure, run, write
from tests.cli.conftest import Trained


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_of_files_are_those_of_the_model(ending: str, species: Trained, tmp_path: Path) -> None:
    out = tmp_path / f"p.{ending}"
    run("predict", species.folder / "model.summula", species.fresh, "-o", out)
    written = (csv.read_csv if ending == "csv" else parquet.read_table)(out)
    model = summula.load(species.folder / "model.summula")
    fresh = csv.read_csv(species.fresh, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    assert written.column_names == ["species"]
    assert written["species"].to_pylist() == model.predict(fresh).tolist()


def test_probabilities_have_a_column_for_each_class(species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    output = document("predict", species.folder, species.fresh, "-o", out, "--proba")
    table = parquet.read_table(out)
    assert table.column_names == output["columns"]
    assert table.column_names == ["species", "species[Adelie]", "species[Chinstrap]", "species[Gentoo]"]
    assert np.allclose(np.column_stack([c.to_numpy() for c in table.columns[1:]]).sum(axis=1), 1.0)


def test_numbers_have_no_probabilities(mass: Trained, tmp_path: Path) -> None:
    assert "--proba applies to classes" in failure(
        3, "predict", mass.folder, mass.fresh, "-o", tmp_path / "p.csv", "--proba"
    )


def test_certify_needs_no_target_and_agrees_with_the_library(species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    output = document("certify", species.folder, species.fresh, "-o", out)
    model = summula.load(species.folder / "model.summula")
    fresh = csv.read_csv(species.fresh, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    certificate = summula.certify(model, fresh, "species")
    assert output["rows"] == 172
    assert (output["lower"], output["upper"]) == (certificate.lower, certificate.upper)
    assert output["model hash"] == certificate.model_hash
    assert json.loads(out.read_text())
    assert (
        "on 172 held-out rows; true error below 4.45 % with 95 % confidence"
        in run("certify", species.folder, species.fresh).stdout
    )


def test_numbers_are_certified_by_the_loss_they_were_chosen_by(mass: Trained) -> None:
    output = document("certify", mass.folder, mass.fresh, "--delta", "0.1")
    model = summula.load(mass.folder / "model.summula")
    fresh = csv.read_csv(mass.fresh, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    y = fresh["body_mass_g"].drop_null().to_numpy()
    fresh = fresh.filter(fresh["body_mass_g"].is_valid())
    assert output["estimate"] == pytest.approx(np.abs(model.predict(fresh) - y).mean(), rel=1e-12)
    assert output["loss"].startswith("absolute error, at most ")
    assert output["lower"] < output["estimate"] < output["upper"]


def test_a_tiny_delta_is_certified_and_printed(species: Trained, tmp_path: Path) -> None:
    for delta, sure in (("1e-300", "1 - 1e-300"), ("5e-324", "1 - 4.9e-324")):
        run("train", species.table, "-t", "species", "-o", tmp_path / delta, "--models", "baseline", "--delta", delta)
        words = ("certify", tmp_path / delta, species.fresh, "--delta", delta)
        assert (f"with confidence {sure}." if "e" in sure else f"with {sure} confidence.") in run(*words).stdout
        output = document(*words)
        assert 0 < output["lower"] < output["estimate"] < output["upper"] < 1


def test_a_delta_that_is_no_probability_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    assert "delta must be a number between 0 and 1" in failure(3, "certify", "none", "none.csv", "--delta", "1")
    assert "delta must be a number" in failure(3, "train", "none.csv", "-t", "y", "-o", tmp_path, "--delta", "0")


def test_rows_of_the_training_data_are_dropped_and_counted(species: Trained, mass: Trained) -> None:
    for trained in (species, mass):
        output = document("certify", trained.folder, trained.table)
        assert output["rows"] == trained.output["rows held out"]
        assert output["estimate"] == pytest.approx(trained.output["estimate"], rel=1e-12)
        assert output["rows of the training data dropped"] > 3 * output["rows"]
        remark = run("certify", trained.folder, trained.table).stderr
        assert f"{output['rows of the training data dropped']} rows that were in the training data" in remark
    learned = csv.read_csv(species.table, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    model = summula.load(species.folder / "model.summula")
    aside = split_rows(np.ones(learned.num_rows, bool), None, 0.2, 0).held_out
    with pytest.raises(DataError, match="138 of these 138 rows were in the training data of TableModel"):
        summula.certify(model, learned.filter(pa.array(~aside)), "species")


def test_the_model_in_a_folder_is_never_overwritten(species: Trained, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(species.folder, folder)
    model = folder / "model.summula"
    before = model.read_bytes()
    message = f"{model} is an input of this command and would be overwritten; give another name."
    assert failure(5, "certify", folder, species.fresh, "-o", model, "--force") == message
    assert model.read_bytes() == before


def test_training_does_not_overwrite_its_table(species: Trained, tmp_path: Path) -> None:
    table = tmp_path / "leaderboard.csv"
    table.write_bytes(species.table.read_bytes())
    message = failure(5, "train", table, "-t", "species", "-o", tmp_path)
    assert message == f"{table} is an input of this command and would be overwritten; choose another folder."
    assert os.listdir(tmp_path) == ["leaderboard.csv"]


def test_nothing_is_overwritten_unasked(species: Trained, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(species.fresh.read_bytes())
    before = table.read_bytes()
    for more in ((), ("--force",)):
        message = failure(5, "predict", species.folder, table, "-o", table, *more)
        assert message == f"{table} is an input of this command and would be overwritten; give another name."
    assert table.read_bytes() == before
    out = tmp_path / "p.csv"
    out.write_text("mine")
    for words in (("predict", species.folder, table), ("certify", species.folder, table)):
        assert (
            failure(5, *words, "-o", out)
            == f"{out} exists already; give another name with --out, or overwrite it with --force."
        )
    assert out.read_text() == "mine"
    run("predict", species.folder, table, "-o", out, "--force")
    assert out.read_text() != "mine"


def test_a_target_of_another_kind_is_refused(species: Trained, tmp_path: Path) -> None:
    fresh = csv.read_csv(species.fresh).set_column(0, "species", pa.array([1.5] * 172))
    message = failure(3, "certify", species.folder, write(fresh, tmp_path / "t.csv"))
    assert "The target 'species' contains numbers here, but not in training" in message


def test_inspect_tells_kinds_and_leaks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 300)
    columns: dict[str, Any] = {
        "id": np.arange(300),
        "x": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
        "code": np.array(["n", "y"])[codes],
        "score": rng.random(300) + 2.0 * codes,
        "answer": np.array(["no", "yes"])[codes],
    }
    path = write(pa.table({n: pa.array(c, from_pandas=True) for n, c in columns.items()}), tmp_path / "t.csv")
    output = document("inspect", path, "-t", "answer")
    assert output["leaks"].keys() == {"code", "score"}
    by_name = {row["column"]: row for row in output["columns"]}
    assert by_name["id"]["remark"] == "left out: it numbers the rows: an identifier"
    assert by_name["x"]["kind"] == "number"
    assert by_name["x"]["missing"] == np.isnan(columns["x"]).mean()
    assert "looks like target leakage" in run("inspect", path, "-t", "answer").stdout


def test_inspect_counts_values_that_are_not_numbers_as_missing(tmp_path: Path) -> None:
    table = pa.table({"x": ["unknown", *map(str, range(98)), None], "y": range(100)})
    x = document("inspect", write(table, tmp_path / "t.csv"))["columns"][0]
    assert x["kind"] == "number"
    assert x["missing"] == pytest.approx(0.02)


def test_inspect_finds_a_number_in_disguise(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    table = pa.table({"fahrenheit": 32 + 1.8 * y, "x": rng.normal(size=100), "celsius": y})
    assert list(document("inspect", write(table, tmp_path / "t.csv"), "-t", "celsius")["leaks"]) == ["fahrenheit"]


def test_plan_prints_the_number_of_rows() -> None:
    assert document("plan", "--limit", "0.05")["rows"] == 59
    assert document("plan", "--error", "0.05", "--width", "0.02")["rows"] == plan_holdout(0.05, width=0.02)
    assert document("plan", "--recall", "0.99")["rows"] == 299
    assert "With confidence 95 %" in run("plan", "--limit", "0.05").stdout
    assert "Pass exactly one of --limit, --width and --recall" in failure(3, "plan")


def test_doctor_finds_what_is_installed() -> None:
    found = document("doctor")
    assert found["summula"] == summula.__version__
    assert found["numpy"] == np.__version__
    assert found["threads"] >= 1


def test_warmup_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr("summula.core.compilation.warmup.warmup", lambda float32: called.append(float32))
    assert "Compiled in" in run("warmup").stderr
    run("warmup", "--float32")
    assert called == [False, True]


def test_compilation_is_announced_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("summula.compile")
    for quiet, expected in ((False, "Compiling.\n"), (True, "")):
        Console(quiet=quiet).report_compilation()
        logger.info("Compiling.")
        assert capsys.readouterr().err == expected
    logger.handlers.clear()


LIGHT = """
import json, sys
before = set(sys.modules)
sys.argv = ["summula", "--help"]
import summula.cli.app as app
try:
    app.main()
except SystemExit:
    pass
print(json.dumps(sorted(set(sys.modules) - before)))
"""
HEAVY = {"numpy", "sklearn", "numba", "scipy", "pyarrow", "pandas", "matplotlib", "rich", "jinja2", "joblib"}


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
    assert "Exit codes: 0 done" in done.stdout
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert not HEAVY & set(loaded)
    # Loading modules is all the time that help takes.
    assert len(loaded) < 300


def test_the_module_is_the_command() -> None:
    words = [sys.executable, "-m", "summula.cli", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"summula {summula.__version__}\n"


def test_closing_a_reader_early_is_not_an_error(species: Trained) -> None:
    words = [sys.executable, "-m", "summula.cli", "inspect", str(species.table)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
        assert process.wait() in (0, 1, 120)
