"""Every error has a one-sentence message with advice and an exit code, and leaves no partial output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.cli.commands import RUNNER, app, failure, run, write
from tests.cli.conftest import Trained


def trained_on(content: str | bytes, tmp_path: Path, target: str = "y", *more: Any) -> str:
    """Return the message of `train` for a file with this content."""
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "out"
    sentence = failure(3, "train", path, "-t", target, "-o", out, *more)
    assert not list(out.glob("*"))
    return sentence


ROWS = "\n".join(f"{i / 7},{'ab'[i % 2]}" for i in range(40)) + "\n"


def test_a_missing_file(species: Trained, tmp_path: Path) -> None:
    near = species.table.with_name("evn.csv")
    assert failure(3, "train", near, "-t", "species") == f"There is no file {near}; did you mean {species.table}?"
    assert "check the path" in failure(3, "inspect", tmp_path / "nothing.csv")
    assert "No file is named or matches" in failure(3, "inspect", tmp_path / "*.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; a CSV file begins with a line of column names"),
        ("x,y\n", "The table has 0 rows, too few for training and evaluation; pass at least 10"),
        ("x,y\n1,a\n", "The table has 1 row, too few"),
        ("x,y\n" + ROWS + "1,2,3\n" + ROWS, "Line 42 of "),
        ("y\n" + "a\nb\n" * 20, "The table has no column but the target 'y'"),
        ("x,y\n" + "1,a\n2,a\n" * 20, "The target 'y' is 'a' in every row; there is nothing to predict"),
        ("x,y\n" + "1,\n2,\n" * 20, "Every value of the target 'y' is missing"),
        ("x,y\n" + "1,a\n1,b\n" * 20, "All columns were dropped ('x': all values are the same)"),
        (
            "x,y\n" + "".join(f'{i},"1,{i:03d}"\n{i},user-{i}\n' for i in range(40)),
            "write numbers without thousands separators",
        ),
        ("x,y\n" + "".join(f"{i},user-{i}\n" for i in range(40)), "40 different texts in 40 rows, such as 'user-0'"),
        (b"x,y\n" + b"1,a\n2,b\n" * 200_000 + b"1,\xfc\n", "specify the encoding with --encoding"),
        (bytes(range(256)) * 20, "is not a text file"),
    ],
)
def test_tables_that_cannot_be_learned_from(content: str | bytes, message: str, tmp_path: Path) -> None:
    assert message in trained_on(content, tmp_path)


def test_an_unknown_target_gets_the_nearest(tmp_path: Path) -> None:
    output = trained_on("price,y\n" + ROWS, tmp_path, "prise")
    assert output == "The data have no column 'prise'; did you mean 'price'?"


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    table = "x,y\n" + ROWS
    assert "The metric 'squared' is not for a target of classes; choose from accuracy" in trained_on(
        table, tmp_path, "y", "--metric", "squared"
    )
    assert "There is no candidate 'oracle'" in trained_on(table, tmp_path, "y", "--models", "oracle")
    assert "and no numbers: omit the task" in trained_on(table, tmp_path, "y", "--task", "regression")
    assert "delta" in trained_on(table, tmp_path, "y", "--delta", "2", "--models", "baseline")
    assert "Costs apply to classes, and the target is numeric" in trained_on(table, tmp_path, "x", "--costs", "c.csv")
    assert RUNNER.invoke(app, ["train", "t.csv"]).exit_code == 2
    assert RUNNER.invoke(app, ["train", "t.csv", "-t", "y", "--task", "poetry"]).exit_code == 2
    misspelt = RUNNER.invoke(app, ["train", "t.csv", "-t", "y", "--metric", "rmsee"])
    assert misspelt.exit_code == 2
    assert "did you mean 'rmse'?" in misspelt.output


@pytest.mark.parametrize("seed", ["4294967296", "-1", "many", "0.5"])
def test_a_seed_outside_the_range(seed: str, species: Trained, tmp_path: Path) -> None:
    words = ["train", species.table, "-t", "species", "-o", tmp_path / "out", "--models", "baseline", "--seed", seed]
    result = RUNNER.invoke(app, [str(word) for word in words])
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1].startswith("Error: Invalid value for '--seed': ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("more", [(), ("--stream",)], ids=["in memory", "from files"])
def test_the_largest_seed(more: tuple[str, ...], species: Trained, tmp_path: Path) -> None:
    run("train", species.table, "-t", "species", "-o", tmp_path / "out", "--models", "baseline,boosting",
        "--seed", 4294967295, *more)  # fmt: skip


def test_text_where_numbers_were_at_training(species: Trained, tmp_path: Path) -> None:
    lines = species.fresh.read_text().splitlines()
    cells = lines[4].split(",")
    lines[4] = ",".join([*cells[:2], '"long"', *cells[3:]])
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    message = failure(3, "predict", species.folder, tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert "Column 'bill_length_mm' had numbers in the training data but is 'long' at line 5 of" in message
    assert not (tmp_path / "p.csv").exists()


def test_columns_that_are_missing_or_new_at_prediction(species: Trained, tmp_path: Path) -> None:
    fresh = csv.read_csv(species.fresh)
    lacking = write(fresh.drop_columns(["island"]), tmp_path / "lacking.csv")
    message = failure(3, "predict", species.folder, lacking, "-o", tmp_path / "p.csv")
    assert "The data have no column 'island'" in message
    assert "the model was trained on 'island'" in message
    more = write(fresh.append_column("wind", pa.array(range(172))).drop_columns(["species"]), tmp_path / "more.csv")
    result = RUNNER.invoke(app, ["predict", str(species.folder), str(more), "-o", str(tmp_path / "p.csv")])
    assert result.exit_code == 0
    assert "Columns ignored because the model was not trained on them: 'wind'" in result.stderr


def test_model_files_that_are_damaged_or_foreign(species: Trained, tmp_path: Path) -> None:
    import summula
    from summula.linear_model import LinearRegression

    whole = (species.folder / "model.summula").read_bytes()
    bad = tmp_path / "m.summula"
    options = (species.fresh, "-o", tmp_path / "p.csv")
    for content in (whole[: len(whole) // 2], whole[:-9] + b"!" + whole[-8:], b"hello, world", b"\x80\x04pickle" * 9):
        bad.write_bytes(content)
        assert failure(4, "predict", bad, *options)
        assert failure(4, "certify", bad, species.fresh)
    summula.save(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), bad)
    assert "contains a LinearRegression, not a table model" in failure(4, "predict", bad, *options)
    assert "There is no model file" in failure(4, "predict", tmp_path / "none", *options)
    assert not (tmp_path / "p.csv").exists()


def test_places_that_cannot_be_written_to(species: Trained, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert "is a file, not a folder" in failure(5, "train", species.table, "-t", "species", "-o", file)
    assert "does not exist; create it" in failure(
        5, "predict", species.folder, species.fresh, "-o", tmp_path / "a" / "p.csv"
    )
    assert "must end in .parquet or .csv" in failure(
        3, "predict", species.folder, species.fresh, "-o", tmp_path / "p.xls"
    )


def test_folders_made_for_a_run_that_fails_are_removed(tmp_path: Path) -> None:
    rows = "".join(f"{k},{'inf' if k == 30 else k % 7}.5\n" for k in range(60)).replace("inf.5", "inf")
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}")
    (tmp_path / "kept").mkdir()
    message = failure(3, "train", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "kept" / "new" / "out")
    assert "'y' is infinite at line 32" in message
    assert (tmp_path / "kept").is_dir()
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a folder nobody can write to")
def test_a_folder_nobody_can_write_to(species: Trained) -> None:
    message = failure(5, "train", species.table, "-t", "species", "-o", "/proc/summula")
    assert "cannot be written to" in message
    assert failure(5, "predict", species.folder, species.fresh, "-o", "/proc/p.csv")


FULL = """
import resource, signal, sys
from summula.cli.app import main
import summula.cli.predicting
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))  # files may not grow beyond this: a full disk
sys.argv = ["summula", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits on the size of files")
def test_on_a_full_disk_nothing_half_written_is_left(species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    out.write_text("what was there")
    words = ["predict", str(species.folder), str(species.fresh), "-o", str(out), "--force"]
    done = subprocess.run([sys.executable, "-c", FULL, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert "p.csv could not be written (File too large); nothing was changed: free disk space" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert out.read_text() == "what was there"


FULL_AT_THE_END = """
import resource, signal, sys
from summula.cli.app import main
import summula.training.results_folder as training
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write = training.write_together

def full(folder, writers):
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
    write(folder, writers)

training.write_together = full
sys.argv = ["summula", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits on the size of files")
@pytest.mark.parametrize("limit", [256, 9_000])  # the model does not fit; the model fits, and the report does not
def test_a_full_disk_leaves_the_results_of_an_earlier_run(limit: int, species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(species.folder, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    words = ["train", str(species.table), "-t", "species", "-o", str(out), "--models", "baseline"]
    script = FULL_AT_THE_END.replace("MOST", str(limit))
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert "no partial files are left: free disk space" in done.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_scratch_files_that_would_not_fit_are_not_begun(
    species: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMMULA_SCRATCH", str(tmp_path))
    usage = type(shutil.disk_usage("/"))(total=1_000, used=900, free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    message = failure(5, "train", species.table, "-t", "species", "-o", tmp_path / "out", "--stream")
    assert message.endswith(f"0.0 GB are free in {tmp_path}; set SUMMULA_SCRATCH to a folder on a larger disk.")
    assert not list(tmp_path.iterdir())


def test_a_broken_line_is_numbered_at_prediction_too(species: Trained, tmp_path: Path) -> None:
    lines = species.fresh.read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*lines[:9], "1,2", *lines[9:]]) + "\n")
    message = failure(3, "predict", species.folder, tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert "has 2 fields and the header 8; fix or remove it" in message
    assert "Line 10 of" in message
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("command", ["predict", "certify"])
def test_tables_without_rows_or_columns_of_the_model(command: str, species: Trained, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "p.csv") if command == "predict" else ()
    header = species.fresh.read_text().splitlines()[0]
    (tmp_path / "none.csv").write_text(header + "\n")
    message = failure(3, command, species.folder, tmp_path / "none.csv", *out)
    assert ("has no rows" if command == "predict" else "No row has a value of 'species'") in message
    (tmp_path / "empty.csv").write_text("")
    assert "is empty; a CSV file begins with a line" in failure(
        3, command, species.folder, tmp_path / "empty.csv", *out
    )
    lacking = write(csv.read_csv(species.fresh).drop_columns(["island", "sex"]), tmp_path / "lacking.csv")
    message = failure(3, command, species.folder, lacking, *out)
    assert "The data have no column 'island'" in message
    assert "the model was trained on 'island' and 1 more that are missing" in message


def test_certify_needs_answers(species: Trained, tmp_path: Path) -> None:
    fresh = csv.read_csv(species.fresh)
    asked = write(fresh.drop_columns(["species"]), tmp_path / "asked.csv")
    message = failure(3, "certify", species.folder, asked)
    assert "no column 'species'" in message
    assert "it contains the true labels" in message
    empty = fresh.set_column(0, "species", pa.array([None] * 172, pa.string()))
    message = failure(3, "certify", species.folder, write(empty, tmp_path / "empty.csv"))
    assert message == "No row has a value of 'species'; pass labelled rows."


def test_columns_to_leave_out_have_to_be_there(tmp_path: Path) -> None:
    table = "price,z,y\n" + "\n".join(f"{i / 7},{i % 3},{'ab'[i % 2]}" for i in range(40)) + "\n"
    assert "did you mean 'price'?" in trained_on(table, tmp_path, "y", "--drop", "prise")
    assert "'y' is the target, and cannot also be excluded" in trained_on(table, tmp_path, "y", "--drop", "y")
    assert "No column is left to predict from" in trained_on(table, tmp_path, "y", "--drop", "price,z")


def test_tracebacks_come_with_debug_only(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["inspect", str(tmp_path / "none.csv"), "--debug"])
    assert result.exception is not None
    assert type(result.exception).__name__ == "DataError"


def test_a_target_of_dates_in_text_is_named_as_such(tmp_path: Path) -> None:
    days = [f"2024-{1 + k // 28:02}-{1 + k % 28:02}" for k in range(60)]
    content = "\n".join(["x,when", *(f"{k % 7},{day}" for k, day in enumerate(days))]) + "\n"
    sentence = trained_on(content, tmp_path, "when")
    assert "The target 'when' contains dates" in sentence
    assert "number of days" in sentence
