"""Row numbers in messages are those of the user's file, whichever subset a command was processing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from summula.preprocessing import table_encoder_blocks
from summula.training.data.row_numbers import number_in_blocks
from summula.training.data.split import split_rows
from tests.cli.commands import failure, run
from tests.cli.conftest import Trained

N = 60
HEADER = "x,z,y"
EMPTY = (3, 8, 20)  # rows without a target


def cells(row: int) -> list[str]:
    return [f"{row * 37 % N / 7:.3f}", str(row % 4), "" if row in EMPTY else "ab"[row % 2]]


def table(path: Path, row: int, column: int, value: str) -> Path:
    """A CSV file with one cell changed."""
    rows = [cells(i) for i in range(N)]
    rows[row][column] = value
    path.write_text("\n".join([HEADER, *(",".join(one) for one in rows)]) + "\n")
    return path


def line(path: Path, row: int) -> str:
    return f"line {row + 2} of {path} (the header is line 1)"


def aside() -> list[int]:
    """The rows that `train` holds out."""
    there = [row for row in range(N) if row not in EMPTY]
    return [there[place] for place in np.flatnonzero(split_rows(np.ones(len(there), bool), None, 0.2, 0).held_out)]


ASIDE = aside()
LEARNT = [row for row in range(N) if row not in ASIDE and row not in EMPTY]
modes = pytest.mark.parametrize("more", [(), ("--stream",)], ids=["in memory", "from files"])


@modes
@pytest.mark.parametrize("row", [LEARNT[0], LEARNT[-1], ASIDE[0], ASIDE[-1]])
def test_a_bad_cell_of_train(row: int, more: tuple[str, ...], tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", row, 0, "inf")
    message = failure(3, "train", path, "-t", "y", "-o", tmp_path / "out", "--models", "logistic", *more)
    assert f"Column 'x' is infinite at {line(path, row)};" in message


@modes
def test_a_bad_cell_in_a_later_block(more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_encoder_blocks, "BLOCK_ROWS", 16)
    monkeypatch.setattr("summula.training.data.row_numbers.BLOCK_ROWS", 16)
    for row in (LEARNT[-2], ASIDE[-1]):
        path = table(tmp_path / "t.csv", row, 0, "-inf")
        message = failure(3, "train", path, "-t", "y", "-o", tmp_path / "out", "--models", "logistic", *more)
        assert f"is infinite at {line(path, row)};" in message


def test_rows_of_a_block_of_which_some_are_chosen() -> None:
    chosen = np.zeros(3 * table_encoder_blocks.BLOCK_ROWS, bool)
    chosen[[2, 5, table_encoder_blocks.BLOCK_ROWS + 7]] = True
    assert number_in_blocks(chosen, 1) == 5
    assert number_in_blocks(chosen, table_encoder_blocks.BLOCK_ROWS) == table_encoder_blocks.BLOCK_ROWS + 7


def target_table(path: Path, value: str) -> Path:
    """Write numbers with one other cell in the column y, on line 43."""
    rows = [[f"{i * 37 % N / 7:.3f}", str(i % 4), "" if i in EMPTY else f"{i / 3:.3f}"] for i in range(N)]
    rows[41][2] = value
    path.write_text("\n".join([HEADER, *(",".join(one) for one in rows)]) + "\n")
    return path


@modes
def test_a_bad_target(more: tuple[str, ...], tmp_path: Path) -> None:
    path = target_table(tmp_path / "t.csv", "inf")
    message = failure(3, "train", path, "-t", "y", "-o", tmp_path / "out", "--models", "linear", *more)
    assert f"The target 'y' is infinite at {line(path, 41)}" in message
    message = failure(3, "inspect", path, "-t", "y")
    assert "at line 43 of" in message


@modes
def test_a_target_that_is_text_because_of_one_cell_is_read_as_numbers(more: tuple[str, ...], tmp_path: Path) -> None:
    path = target_table(tmp_path / "t.csv", "1_000")
    message = run("train", path, "-t", "y", "-o", tmp_path / "out", "--models", "linear", *more).stderr
    assert (
        "The target 'y' is text such as '0.000', read as numbers; 1 other value, '1_000', is treated as missing."
        in message
    )
    assert f"{len(EMPTY) + 1} rows without a value of 'y' are left out." in message


def test_a_column_that_is_text_because_of_one_cell_is_read_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [[str(i * 37 / 7), str(i % 4), "ab"[i % 2]] for i in range(N)]
    there = split_rows(np.ones(N, bool), None, 0.2, 0).held_out
    for row, words in (
        (int(np.argmin(there)), "read as numbers; 1 other value, '1_000', is treated as missing."),
        (int(np.argmax(there)), "read as numbers."),  # it is among the rows held out
    ):
        changed = [["1_000", *one[1:]] if i == row else one for i, one in enumerate(rows)]
        path.write_text("\n".join([HEADER, *(",".join(one) for one in changed)]) + "\n")
        message = run("train", path, "-t", "y", "-o", tmp_path / "out", "--models", "baseline").stderr
        assert words in next(line for line in message.splitlines() if line.startswith("'x' is text such as"))


# ---------------------------------------------------------------------------------------------- inspect, predict, certify


def penguins(species: Trained, path: Path, row: int, column: str, value: Any, *, empty: tuple[int, ...] = ()) -> Path:
    """The fresh rows with one cell changed, as text, and some without their answer."""
    fresh = csv.read_csv(species.fresh).to_pydict()
    fresh[column][row] = value
    for one in empty:
        fresh["species"][one] = None
    csv.write_csv(pa.table(fresh), path)
    return path


def test_inspect(species: Trained, tmp_path: Path) -> None:
    path = penguins(species, tmp_path / "t.csv", 29, "bill_length_mm", float("inf"))
    assert f"Column 'bill_length_mm' is infinite at {line(path, 29)};" in failure(3, "inspect", path)


def test_predict_and_certify(species: Trained, tmp_path: Path) -> None:
    path = penguins(species, tmp_path / "t.csv", 29, "bill_length_mm", float("inf"), empty=(0, 4, 9))
    for command in (("predict", species.folder, path, "-o", tmp_path / "p.csv"), ("certify", species.folder, path)):
        message = failure(3, *command)
        assert f"Column 'bill_length_mm' is infinite at {line(path, 29)};" in message


def test_certify_in_a_later_block(species: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_encoder_blocks, "BLOCK_ROWS", 16)
    monkeypatch.setattr("summula.certification.rows._BLOCK", 32)
    path = penguins(species, tmp_path / "t.csv", 129, "bill_length_mm", float("inf"), empty=(0, 4, 40, 125))
    assert f"is infinite at {line(path, 129)};" in failure(3, "certify", species.folder, path)


def test_rows_of_other_formats_are_counted_from_one(species: Trained, tmp_path: Path) -> None:
    fresh = csv.read_csv(species.fresh).to_pydict()
    fresh["bill_length_mm"][29] = float("inf")
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(fresh), path)
    message = failure(3, "predict", species.folder, path, "-o", tmp_path / "p.csv")
    assert f"is infinite at row 30 of {path} (the first is row 1);" in message


def test_rows_of_text_in_an_unusual_form_are_those_of_the_file(species: Trained, tmp_path: Path) -> None:
    plain = penguins(species, tmp_path / "plain.csv", 29, "bill_length_mm", float("inf"))
    path = tmp_path / "t.csv"
    path.write_text(plain.read_text().replace(",", ";"))
    message = failure(3, "predict", species.folder, path, "-o", tmp_path / "p.csv")
    assert f"is infinite at {line(path, 29)};" in message
    path.write_text(plain.read_text() + "\n\n")  # rewritten: rows are counted, and not lines
    message = failure(3, "predict", species.folder, path, "-o", tmp_path / "p.csv")
    assert f"is infinite at row 31 of {path} (the header is row 1);" in message


def test_rows_of_several_files_are_those_of_their_own(species: Trained, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text(species.fresh.read_text())
    bad = penguins(species, folder / "2.csv", 29, "bill_length_mm", float("inf"))
    message = failure(3, "predict", species.folder, folder, "-o", tmp_path / "p.csv")
    assert f"is infinite at {line(bad, 29)};" in message
