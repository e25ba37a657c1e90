"""`predict_to`: results are written to a file atomically."""

from __future__ import annotations

import csv as python_csv
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import summula
from summula.core.data.output import write_batches
from summula.core.errors import OutputError
from summula.linear_model import LinearRegression, LogisticRegression, PolynomialRegression
from tests.contract.compare import assert_close
from tests.faults.sentences import one_sentence
from tests.processes import run

READERS = {"out.parquet": parquet.read_table, "out.pq": parquet.read_table, "out.csv": csv.read_csv}
endings = pytest.mark.parametrize("name", READERS)


def read(path: Path) -> dict[str, list[Any]]:
    return READERS[path.name](path).to_pydict()


def blocks(*sizes: int, width: int = 1) -> list[Any]:
    ends = np.cumsum(sizes)
    values = np.arange(width * ends[-1]).reshape(-1, width) / 3
    return [block[:, 0] if width == 1 else block for block in np.split(values, ends[:-1])]


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """A folder with 600 rows in two files."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "trips"
    folder.mkdir()
    for day in range(2):
        km = rng.uniform(1, 20, 300)
        table = pa.table({"km": km, "fare": 3 + 2 * km + rng.normal(size=300), "tip": rng.normal(size=300)})
        parquet.write_table(table, folder / f"{day}.parquet", row_group_size=50)
    return folder


# --------------------------------------------------------------------------------------------------------- whole files


@endings
def test_batches_are_written_one_below_the_other(name: str, tmp_path: Path) -> None:
    assert write_batches(blocks(3, 1, 4), ["x"], tmp_path / name) == 8
    assert read(tmp_path / name) == {"x": [i / 3 for i in range(8)]}


@endings
def test_every_column_has_its_name(name: str, tmp_path: Path) -> None:
    write_batches(blocks(2, 3, width=2), ["fare, in euros", "tip"], str(tmp_path / name))
    assert read(tmp_path / name) == {
        "fare, in euros": [i / 3 for i in range(0, 10, 2)],
        "tip": [i / 3 for i in range(1, 10, 2)],
    }


WORDS = ["no", "", "Zürich", "no", 'a "b", c', "yes"]


@pytest.mark.parametrize("kind", [object, str])
@endings
def test_text_is_written_as_text(name: str, kind: type, tmp_path: Path) -> None:
    batches = [np.array(WORDS[:2], kind), np.array(WORDS[2:3], kind), np.array(WORDS[3:], kind)]
    assert write_batches(batches, ["y"], tmp_path / name) == 6
    assert read(tmp_path / name) == {"y": WORDS}
    assert READERS[name](tmp_path / name).schema.field("y").type == pa.string()


# ------------------------------------------------------------------------------- text a spreadsheet takes for formulas

FORMULAS = [
    '=HYPERLINK("http://evil","x")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "＝1",
]  # fmt: skip
HARMLESS = ["-1.5", "+1", "-.5", "-2e-3", "yes", "a=b", "'=1", "", " =1"]


@pytest.mark.parametrize("kind", [object, str])
def test_formulas_are_neutralised_in_csv(kind: type, tmp_path: Path) -> None:
    values = np.array(FORMULAS + HARMLESS, kind)
    write_batches([values[:3], values[3:]], ["=name"], tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        header, *rows = python_csv.reader(file)
    assert header == ["'=name"]
    assert [row[0] for row in rows] == [f"'{text}" for text in FORMULAS] + HARMLESS


@endings
def test_formulas_are_kept_on_request_and_in_parquet(name: str, tmp_path: Path) -> None:
    values = np.array(["=1+1", "-2+3", "no"], object)
    write_batches([values], ["=name"], tmp_path / name, raw_text=True)
    assert read(tmp_path / name) == {"=name": values.tolist()}
    if name != "out.csv":
        write_batches([values], ["=name"], tmp_path / name)
        assert read(tmp_path / name) == {"=name": values.tolist()}


def test_negative_numbers_stay_numbers(tmp_path: Path) -> None:
    write_batches([np.array([-1.5, 2.0])], ["-x"], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == '"\'-x"\n-1.5\n2\n'


def test_labels_of_a_classifier(tmp_path: Path) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LogisticRegression().fit(X, ["=1+1", "=1+1", "no", "no"])
    path = tmp_path / "out.csv"
    model.predict_to(X, path)
    assert read(path) == {"prediction": ["'=1+1", "'=1+1", "no", "no"]}
    model.predict_to(X, path, raw_text=True)
    assert read(path) == {"prediction": ["=1+1", "=1+1", "no", "no"]}
    model.predict_to(X, path, proba=True)
    assert list(read(path)) == ["'=1+1", "no"]
    model.predict_to(X, path, proba=True, raw_text=True)
    assert list(read(path)) == ["=1+1", "no"]


def test_small_batches_share_a_row_group(tmp_path: Path) -> None:
    write_batches(blocks(*[100] * 50), ["x"], tmp_path / "out.parquet")
    assert parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups == 1


def test_single_precision_stays(tmp_path: Path) -> None:
    write_batches([np.float32([0.5, 0.25])], ["x"], tmp_path / "out.parquet")
    assert parquet.read_schema(tmp_path / "out.parquet").field("x").type == pa.float32()


def test_a_generator_is_read_batch_by_batch(tmp_path: Path) -> None:
    """Output is written to a temporary file in the folder of the target."""

    def watched() -> Iterator[Any]:
        for block in blocks(2, 2):
            assert not (tmp_path / "out.csv").exists()
            yield block
        assert len(list(tmp_path.iterdir())) == 1

    write_batches(watched(), ["x"], tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_the_file_has_the_rights_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("")
    write_batches(blocks(2), ["x"], tmp_path / "out.csv")
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "out.csv")]
    assert rights[0] == rights[1]


@endings
def test_an_old_file_is_replaced(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old")
    write_batches(blocks(2), ["x"], tmp_path / name)
    assert read(tmp_path / name) == {"x": [0, 1 / 3]}


# ------------------------------------------------------------------------------------------------------- or not at all


@endings
@pytest.mark.parametrize("old", [True, False], ids=["a file was there", "nothing was there"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("after", [0, 2])
def test_an_error_leaves_what_was_there(after: int, error: type, old: bool, name: str, tmp_path: Path) -> None:
    if old:
        (tmp_path / name).write_text("old")

    def failing() -> Iterator[Any]:
        yield from blocks(2, 2)[:after]
        raise error

    with pytest.raises(error):
        write_batches(failing(), ["x"], tmp_path / name)
    assert [path.read_text() for path in tmp_path.iterdir()] == (["old"] if old else [])


def test_an_error_at_the_last_step_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.csv").write_text("old")

    def denied(*_: Any) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(os, "replace", denied)
    with pytest.raises(PermissionError):
        write_batches(blocks(2), ["x"], tmp_path / "out.csv")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@endings
def test_a_full_disk_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    """The system fails to write (here because files may not grow beyond 1 MB); closing fails then as well."""
    (tmp_path / name).write_text("old")
    output = run(f"""
    import json, os, resource
    import numpy as np
    from summula.core.data.output import write_batches
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    rng = np.random.default_rng(0)
    try:
        write_batches((rng.normal(size=100_000) for _ in range(20)), ["x"], {str(tmp_path / name)!r})
    except OSError as error:
        print(json.dumps([error.errno, os.listdir({str(tmp_path)!r})]))
    """)
    assert output == [27, [name]]  # EFBIG
    assert (tmp_path / name).read_text() == "old"


@pytest.mark.parametrize(
    ("path", "words"),
    [("out.json", "end in .parquet or .csv"), ("out", "end in .parquet or .csv"), ("no/out.csv", "does not exist")],
)
def test_an_unwritable_folder_raises_before_anything_is_computed(path: str, words: str, tmp_path: Path) -> None:
    def untouched() -> Iterator[Any]:
        raise AssertionError("computed")
        yield

    with pytest.raises((summula.DataError, OutputError)) as caught:
        write_batches(untouched(), ["x"], tmp_path / path)
    one_sentence(caught.value, words)
    assert list(tmp_path.iterdir()) == []


def test_having_no_rows_to_write_raises(tmp_path: Path) -> None:
    with pytest.raises(summula.DataError, match="no rows to write"):
        write_batches([], ["x"], tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------- predict_to


@endings
def test_predictions_of_files_are_written(name: str, trips: Path, tmp_path: Path) -> None:
    scan = summula.scan(trips)
    model = LinearRegression().fit(scan, "fare")
    assert model.predict_to(scan, tmp_path / name) == 600
    written = read(tmp_path / name)
    assert list(written) == ["fare"]
    assert_close(np.concatenate(list(model.predict(scan))), np.array(written["fare"]))


def test_several_targets_are_several_columns(trips: Path, tmp_path: Path) -> None:
    scan = summula.scan(trips)
    model = PolynomialRegression().fit(scan, ["tip", "fare"])
    model.predict_to(scan, tmp_path / "out.parquet")
    written = read(tmp_path / "out.parquet")
    assert list(written) == ["tip", "fare"]
    assert_close(np.concatenate(list(model.predict(scan))), np.column_stack(list(written.values())))


def test_predictions_of_arrays_are_written_and_have_a_name(tmp_path: Path) -> None:
    X = np.arange(10.0).reshape(5, 2) ** 2
    LinearRegression().fit(X, X[:, 0]).predict_to(X, tmp_path / "one.csv")
    assert csv.read_csv(tmp_path / "one.csv").column_names == ["prediction"]
    LinearRegression().fit(X, X).predict_to(X, tmp_path / "two.csv")
    assert csv.read_csv(tmp_path / "two.csv").column_names == ["prediction0", "prediction1"]


def test_predictions_may_replace_a_file_they_are_made_of(trips: Path) -> None:
    scan = summula.scan(trips / "0.parquet")
    model = LinearRegression().fit(scan, "fare")
    expected = np.concatenate(list(model.predict(scan)))
    model.predict_to(scan, trips / "0.parquet")
    assert_close(expected, parquet.read_table(trips / "0.parquet")["fare"].to_numpy())


def test_a_gap_in_the_middle_leaves_the_old_file(trips: Path, tmp_path: Path) -> None:
    model = LinearRegression().fit(summula.scan(trips), "fare")
    (tmp_path / "out.csv").write_text("old")
    gaps = pa.table({"km": [1.0, None], "tip": [0.0, 0.0]})
    parquet.write_table(gaps, tmp_path / "gaps.parquet")
    scan = summula.scan([trips / "0.parquet", tmp_path / "gaps.parquet"], columns=["km", "tip"])
    with pytest.raises(summula.DataError, match="row 301"):
        model.predict_to(scan, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gaps.parquet", "out.csv", "trips"]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        yield np.zeros((2, 1))
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    with pytest.raises(
        OutputError, match=r"out\.csv could not be written \(No space left on device\); nothing was changed"
    ):
        write_batches(rows(), ["x"], tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())
