"""Common mistakes of new users: a one-sentence message with advice, the right exit code, no partial output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import summula
from tests.cli.commands import document, failure, run
from tests.cli.conftest import Trained

LINES = [f"{i / 7:.3f},{i % 13},{'ab'[i % 3 == 0]}" for i in range(60)]
TABLE = "x,z,y\n" + "\n".join(LINES) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "t.csv",
            "# exported today\n# by me\n" + TABLE,
            "begins with a comment ('# exported today'); remove the lines",
        ),
        ("t.csv", "<!DOCTYPE html>\n<html><body>404, not found</body></html>\n", "is a web page or XML, not a table"),
        ("t.csv", " x , z , y \n" + "\n".join(LINES) + "\n", "no column 'y'; did you mean ' y '?"),
        ("t.csv", TABLE.replace("x,z,y", "x,z,Y"), "no column 'y'; did you mean 'Y'?"),
        ("t.parquet", TABLE, "is a text file despite its extension .parquet; if it is a CSV file, rename it to .csv"),
        ("t.parquet", "", "is empty; write it again"),
        ("t.feather", "", "is empty; write it again"),
        ("t.summula", "", "is a saved model, not a table"),
        ("t.csv", TABLE + "1e300,1,a\n" * 40, "Column 'x' contains 1e+300 at line "),
        (
            "t.csv",
            TABLE.replace(",a\n", ",1e300\n").replace(",b\n", ",2.5\n"),
            "The target 'y' contains 1e+300 at line ",
        ),
    ],
)
def test_files_that_are_no_tables(name: str, content: str, message: str, tmp_path: Path) -> None:
    path, out = tmp_path / name, tmp_path / "out"
    path.write_text(content)
    assert message in failure(3, "train", path, "-t", "y", "-o", out, "--models", "baseline")
    assert not out.exists()


def test_a_name_that_begins_with_a_hash_is_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("#" + TABLE)
    assert summula.scan(path).columns == ["#x", "z", "y"]


def with_a_long_cell(place: int, before: int, path: Path) -> Path:
    """A table with a cell of a million characters in a column, after some rows."""
    cells = ["1.0", "3", "a"]
    cells[place] = "q" * 1_000_000
    lines = LINES * (before // len(LINES))
    path.write_text("\n".join(["x,z,y", *lines, ",".join(cells), *LINES * 100]) + "\n")
    return path


@pytest.mark.parametrize("place", [1, 2])
def test_a_cell_of_a_million_characters(place: int, tmp_path: Path) -> None:
    # An array of text of one width would need 4 MB for each of the rows.
    path = with_a_long_cell(place, 60, tmp_path / "t.csv")
    found = document("train", path, "-t", "y", "-o", tmp_path / "out", "--models", "baseline", "--time", "600")
    assert found["model"] == "baseline"


def test_an_error_shows_the_beginning_of_a_long_cell(tmp_path: Path) -> None:
    path = with_a_long_cell(1, 6_000, tmp_path / "t.csv")
    message = failure(3, "train", path, "-t", "y", "-o", tmp_path / "out", "--models", "baseline")
    assert len(message) < 1_000
    assert "qqq... at line 6002, and numbers in the first lines" in message


def test_an_empty_list_of_models(species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "out"
    message = failure(3, "train", species.table, "-t", "species", "-o", out, "--models", ",")
    assert message == "The list of models is empty; pass at least one, or omit it for all."
    assert not out.exists()


def test_model_and_table_in_the_wrong_order(species: Trained, tmp_path: Path) -> None:
    message = failure(4, "predict", species.table, species.folder, "-o", tmp_path / "p.csv")
    assert message == f"{species.table} is a table; give the model first, and then the table."
    assert "is a saved model, not a table" in failure(
        3, "predict", species.folder, species.folder / "model.summula", "-o", tmp_path / "p.csv"
    )
    assert not (tmp_path / "p.csv").exists()


def test_predictions_to_a_folder(species: Trained, tmp_path: Path) -> None:
    for more in ((), ("--force",)):
        message = failure(5, "predict", species.folder, species.table, "-o", tmp_path, *more)
        assert message == f"{tmp_path} is a folder; give the name of a file in it."
    assert not list(tmp_path.iterdir())


def test_a_column_that_is_kept_twice_is_written_once(species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    run("predict", species.folder, species.table, "-o", out, "--keep", "island,island")
    assert csv.read_csv(out).column_names == ["island", "species"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_target_of_booleans_is_predicted_as_booleans(ending: str, tmp_path: Path) -> None:
    from pyarrow import parquet

    x = np.random.default_rng(len(ending)).normal(size=200)
    data = pa.table({"x": x, "y": x > 0.3})
    path = tmp_path / f"t.{ending}"
    {"csv": csv.write_csv, "parquet": parquet.write_table}[ending](data, path)
    result = run("train", path, "-t", "y", "-o", tmp_path / "out", "--models", "logistic", "--time", "600")
    assert "'y' is taken as classes (true and false)" in result.stderr
    run("predict", tmp_path / "out", path, "-o", tmp_path / "p.csv")
    assert csv.read_csv(tmp_path / "p.csv")["y"].type == pa.bool_()
    assert document("certify", tmp_path / "out", path)["rows"] == 40
    streamed = summula.train(path, "y", models=["logistic"], time=600, stream=True, progress=False)
    assert streamed.model.classes_.tolist() == [False, True]


def test_spaces_are_no_class(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace(",b\n", ",   \n") + "9,9,b\n" * 20)
    message = run("train", path, "-t", "y", "-o", tmp_path / "out", "--models", "baseline").stderr
    assert "(2 classes of text)" in message
    assert "20 rows without a value of 'y' are left out" in message


def test_classes_that_differ_only_in_case_or_spaces_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace(",b\n", ",A \n"))
    message = run("train", path, "-t", "y", "-o", tmp_path / "out", "--models", "baseline").stderr
    assert "'y' has the classes 'A ' and 'a', which differ only in case or spaces" in message


def test_a_file_that_is_not_there_is_compared_without_its_ending(tmp_path: Path) -> None:
    (tmp_path / "uni.csv").write_text(TABLE)
    assert "check the path" in failure(3, "inspect", tmp_path / "nofile.csv")
    assert "did you mean" in failure(3, "inspect", tmp_path / "unit.csv")


def test_more_clusters_than_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    message = failure(3, "cluster", path, "--k", "500", "-o", tmp_path / "c.csv", "--report", tmp_path / "c.html")
    assert "--k 500 is more than the 60 rows of the table; give fewer" in message


def _in_time(tmp_path: Path, classes: str) -> Path:
    path = tmp_path / "t.csv"
    rows = [f"{i},{i % 7},2024-01-{1 + i // 10:02d},{one}" for i, one in enumerate(classes)]
    path.write_text("x,z,day,y\n" + "\n".join(rows) + "\n")
    return path


def test_a_class_that_only_the_latest_rows_have(tmp_path: Path) -> None:
    """Folds that would be fitted on one class are skipped; held-out rows of a new class are reported."""
    path = _in_time(tmp_path, "a" * 60 + "ab" * 50 + "ccca" * 10)
    options = ("--time-column", "day", "--models", "tree", "-o", tmp_path / "out")
    message = run("train", path, "-t", "y", *options).stderr
    assert (
        "30 of 40 held-out rows (split by 'day') have a class of 'y' that no training row has, such as 'c'" in message
    )
    path = _in_time(tmp_path, "a" * 60 + "ab" * 50 + "c" * 40)
    message = failure(3, "train", path, "-t", "y", *options)
    assert "All 40 held-out rows have classes of 'y' that no training row has, such as 'c', so nothing" in message


def test_times_before_which_there_is_one_class(tmp_path: Path) -> None:
    path = _in_time(tmp_path, "a" * 158 + "b" * 42)
    message = failure(3, "train", path, "-t", "y", "--time-column", "day", "-o", tmp_path / "out", "--models", "tree")
    assert "Split by 'day', no part of the training rows to fit on has two classes of 'y'" in message


def test_a_table_is_no_database(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    assert "is not a DuckDB file; give it without duckdb:" in failure(3, "inspect", f"duckdb:{path}")


def test_an_empty_standard_input() -> None:
    assert failure(3, "inspect", "-").startswith("Standard input is empty;")


@pytest.mark.parametrize(
    ("entry", "message"),
    [("ten", "has 'ten' in row 'a', column 'b'; give a number"), ("", "has no entry in row 'a', column 'b'; add it")],
)
def test_an_entry_of_the_costs_that_is_no_number(entry: str, message: str, tmp_path: Path) -> None:
    path, costs = tmp_path / "t.csv", tmp_path / "costs.csv"
    path.write_text(TABLE)
    costs.write_text(f"predicted,a,b\na,0,{entry}\nb,1,0\n")
    assert message in failure(3, "train", path, "-t", "y", "-o", tmp_path / "out", "--costs", costs)


def test_the_name_of_tables_in_the_usage_line() -> None:
    assert "TABLE......" not in run("train", "--help").stdout.replace("}", "")
