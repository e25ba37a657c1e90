"""Files that are corrupt, change, vanish or are not readable; full disks; Ctrl-C: one-sentence errors, no partial output."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import summula
from summula.core.data.readers import binary_tables, text_streams
from summula.core.data.readers.binary_tables import ParquetTable
from summula.core.data.readers.table import Table
from summula.linear_model import LinearRegression
from tests.contract.compare import assert_same_bits, fitted_attributes
from tests.faults.sentences import one_sentence, refused
from tests.processes import PRESS_CTRL_C, run

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and rights")


def table(n: int = 1_000, seed: int = 0) -> pa.Table:
    """Columns so nearly dependent that a fit passes over the rows more than once."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pa.table({"a": a, "b": a + 1e-4 * rng.normal(size=n), "y": rng.normal(size=n)})


def write(path: Path, rows: pa.Table | None = None, **options: Any) -> Path:
    parquet.write_table(table() if rows is None else rows, path, **({"row_group_size": 100} | options))
    return path


def refused_scan(path: Any, *words: str) -> str:
    with pytest.raises(summula.DataError) as caught:
        summula.scan(path)
    return one_sentence(caught.value, *words)


# ----------------------------------------------------------------------------------------------------- different files


def test_a_column_that_one_file_lacks_is_named_with_the_file(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", table().drop_columns("b"))
    refused_scan(tmp_path, "different columns", "1.parquet has 'b'", "2.parquet does not")


def test_a_column_that_changes_its_kind_is_named_with_the_files(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", table().set_column(1, "b", pa.array(["text"] * 1_000)))
    refused_scan(tmp_path, "Column 'b' is float64 in", "1.parquet", "text in", "2.parquet")


def test_whole_numbers_in_one_file_and_fractions_in_another_are_numbers(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", table().set_column(1, "b", pa.array(range(1_000))))
    assert LinearRegression().fit(summula.scan(tmp_path), "y").coef_.shape == (2,)


# ------------------------------------------------------------------------------------------------------------- damages


@pytest.mark.parametrize("keep", [0, 3, 4, 100, 0.5, -1])
def test_a_truncated_parquet_file_is_named(keep: float, tmp_path: Path) -> None:
    content = write(tmp_path / "rows.parquet").read_bytes()
    end = int(keep * len(content)) if isinstance(keep, float) else keep
    (tmp_path / "rows.parquet").write_bytes(content[:end])
    refused_scan(tmp_path, "rows.parquet", "corrupt or truncated" if end else "is empty")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather", "rows.npy"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"no table at all, but some text in a file", "is a text file despite its extension"),
        (b"no table at all\0, but bytes", "corrupt or truncated"),
    ],
    ids=["empty", "text", "bytes"],
)
def test_a_file_that_is_something_else_is_named(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    refused_scan(tmp_path / name, name, words)


@pytest.mark.parametrize("keep", [9, 0.5, -1])
def test_truncated_arrow_and_array_files_are_named(keep: float, tmp_path: Path) -> None:
    feather.write_feather(table(), tmp_path / "rows.feather")
    np.save(tmp_path / "rows.npy", np.ones((1_000, 3)))
    for name in ("rows.feather", "rows.npy"):
        content = (tmp_path / name).read_bytes()
        end = int(keep * len(content)) if isinstance(keep, float) else keep
        (tmp_path / name).write_bytes(content[:end])
        refused_scan(tmp_path / name, name, "corrupt or truncated")


def test_a_damaged_page_is_named_with_the_file_and_leaves_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary_tables, "BATCH_ROWS", 100)
    path = write(tmp_path / "rows.parquet", compression="zstd")
    content = bytearray(path.read_bytes())
    start = parquet.ParquetFile(path).metadata.row_group(5).column(0).data_page_offset
    content[start + 40 : start + 400] = bytes(360)
    path.write_bytes(content)
    model = LinearRegression()
    message = refused("rows.parquet", "cannot be read near row", by=model, X=summula.scan(path), y="y")
    assert 400 <= int(message.partition("near row ")[2].partition(":")[0]) <= 500
    assert not fitted_attributes(model)


def test_a_parquet_file_without_rows_is_no_fault_among_others(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", table().slice(0, 0))
    write(tmp_path / "2.parquet")
    write(tmp_path / "3.parquet", table().slice(0, 0))
    expected = LinearRegression().fit(table(), "y")
    model = LinearRegression().fit(summula.scan(tmp_path), "y")
    assert_same_bits(fitted_attributes(expected), fitted_attributes(model))


# -------------------------------------------------------------------------------------------------- between two passes


def after_one_pass(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> list[int]:
    """Call a function when all rows have been read; the list contains the starts of reads."""
    begun: list[int] = []
    read = Table.read

    def watched(self: Any, start: int, stop: int, columns: Any) -> Any:
        begun.append(start)
        yield from read(self, start, stop, columns)
        if (start, stop) == (0, self.n_rows):
            act()

    monkeypatch.setattr(Table, "read", watched)
    return begun


def vanish(path: Path) -> Callable[[], None]:
    return lambda: path.unlink(missing_ok=True)


def change(path: Path) -> Callable[[], None]:
    return lambda: write(path, table(1_001, seed=1)) and None


def lose_a_column(path: Path) -> Callable[[], None]:
    return lambda: write(path, table().drop_columns("b")) and None


@pytest.mark.parametrize(
    ("act", "word"),
    [(vanish, "was moved or deleted"), (change, "changed"), (lose_a_column, "changed")],
    ids=["gone", "other rows", "other columns"],
)
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_a_file_that_goes_between_passes_is_named_and_leaves_what_was_there(
    act: Any, word: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "rows.parquet")
    model = LinearRegression().fit(table(seed=2), "y")
    attributes = copy.deepcopy(fitted_attributes(model))
    scan = summula.scan(path)
    begun = after_one_pass(monkeypatch, act(path))
    with summula.engine(engine):
        refused(str(path), word, by=model, X=scan, y="y")
    assert begun.count(0) >= 2, "it was a second pass that failed"
    assert_same_bits(attributes, fitted_attributes(model))


def test_a_file_that_vanishes_before_the_first_pass_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet")
    scan = summula.scan(path)
    path.unlink()
    refused(str(path), "was moved or deleted", by=LinearRegression(), X=scan, y="y")


def test_a_file_that_changes_before_a_prediction_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet")
    scan = summula.scan(path)
    model = LinearRegression().fit(scan, "y")
    change(path)()
    with pytest.raises(summula.DataError) as caught:
        list(model.predict(scan))
    one_sentence(caught.value, str(path), "changed")
    assert len(np.concatenate(list(model.predict(summula.scan(path))))) == 1_001, "scanned again it is a new file"


# -------------------------------------------------------------------------------------------------------------- rights


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", denied)
    refused_scan(tmp_path, str(tmp_path), "is not readable")


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    scan = summula.scan(path)

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(ParquetTable, "_open", denied)
    monkeypatch.setattr(text_streams, "open", denied, raising=False)
    for name in ("rows.parquet", "rows.csv"):
        refused_scan(tmp_path / name, name, "is not readable")
    refused(str(path), "cannot be read near row 0", "Permission denied", by=LinearRegression(), X=scan, y="y")


@posix
def test_rights_are_those_of_the_system() -> None:
    """In a process of a user other than root."""
    output = run("""
    import json, os, tempfile
    import numpy as np, pyarrow.csv, pyarrow.feather, pyarrow.parquet
    import summula, summula.core.data.scan

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "closed"))
        names = ("rows.parquet", "rows.csv", "rows.npy", "rows.feather", "closed")
        names = [os.path.join(folder, name) for name in names]
        table = pyarrow.table({"x": [1.0, 2.0]})
        pyarrow.parquet.write_table(table, names[0])
        pyarrow.csv.write_csv(table, names[1])
        np.save(names[2], np.ones((2, 2)))
        pyarrow.feather.write_feather(table, names[3])
        for name in names:
            os.chmod(name, 0)
        child = os.fork()
        if child == 0:
            if os.getuid() == 0:
                os.setuid(65534)
            answers = []
            for name in names:
                try:
                    answers.append(repr(summula.scan(name)))
                except summula.DataError as error:
                    answers.append(str(error))
            print(json.dumps(answers), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        for name in names:
            os.chmod(name, 0o700)
    """)
    assert len(output) == 5
    for sentence in output:
        one_sentence(sentence, "is not readable by this user")


# ----------------------------------------------------------------------------------------------------------------- CSV


def csv_file(path: Path, n: int, **changed: str) -> Path:
    """n numbered rows of 12 bytes, of which some are something else; by default lines are parsed 65,536 at a time."""
    lines = [f"{10**6 + i},{i % 7}" for i in range(n)]
    for row, line in changed.items():
        lines[int(row.removeprefix("row"))] = line
    path.write_text("a,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("row", [0, 17, 65_535, 65_536, 150_000, 199_999])
def test_a_line_with_too_many_fields_is_named_by_its_number(row: int, tmp_path: Path) -> None:
    path = csv_file(tmp_path / "rows.csv", 200_000, **{f"row{row}": "1,2,3"})
    with pytest.raises(summula.DataError) as caught:
        LinearRegression().fit(summula.scan(path), "y")
    one_sentence(caught.value, f"Line {row + 2} of {path}", "3 fields and the header 2", "fix or remove")


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("", 150_000),
        ("only one", 0),
        ("only one", 65_535),
        ("only one", 150_000),
    ],  # blank lines near the top are skipped
)
def test_a_line_with_too_few_fields_is_named_by_its_number(line: str, row: int, tmp_path: Path) -> None:
    path = csv_file(tmp_path / "rows.csv", 200_000, **{f"row{row}": line})
    with pytest.raises(summula.DataError) as caught:
        LinearRegression().fit(summula.scan(path), "y")
    one_sentence(caught.value, f"Line {row + 2} of {path}", "1 field " if line else "blank")


def test_text_in_a_column_of_numbers_is_named_wherever_it_is(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "near.csv", 200_000, row777="x,1")
    refused("Column 'a' contains 'x' at line 779", by=LinearRegression(), X=summula.scan(path), y="y")
    path = csv_file(tmp_path / "far.csv", 200_000, row177777="x,1")
    refused("Column 'a'", "contains 'x' at line 177779", by=LinearRegression(), X=summula.scan(path), y="y")


def test_a_line_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "rows.csv", 1_000)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(summula.DataError) as caught:
        LinearRegression().fit(summula.scan(path), "y")
    one_sentence(caught.value, "Line 1001 of ", "1 field ")


# -------------------------------------------------------------------------------------------------------------- Ctrl-C

# One small file, sixty times, is sixty parts.
SCRIPT = """
import json, os, sys, tempfile
from pathlib import Path
import numpy as np
import pyarrow as pa
from pyarrow import parquet
import summula
from summula.core.engine.threads import thread_count
from summula.linear_model import LinearRegression

here = sys.argv[1]
path = os.path.join(here, "rows.parquet")
rng = np.random.default_rng(0)
table = pa.table({{f"x{{j}}": rng.normal(size=200_000) for j in range(10)}})
parquet.write_table(table, path, row_group_size=50_000)
small = summula.scan(path)
model = LinearRegression()
known = LinearRegression().fit(small, "x0")
expected = known.coef_.tolist()
old = os.path.join(here, "old.csv")
Path(old).write_text("old")
ctrl_c = CtrlC(4)

def stream():
    for batch in 30 * table.to_batches(max_chunksize=20_000):
        ctrl_c.work()
        yield batch

with ctrl_c:
    {act}
print(json.dumps(dict(
    ended=ctrl_c.ended,
    after=ctrl_c.after,
    queue=2 * thread_count(),
    fitted=sorted(name for name in vars(model) if name.endswith("_")),
    works=LinearRegression().fit(small, "x0").coef_.tolist() == expected,
    here=sorted(os.listdir(here)),
    temporary=os.listdir(tempfile.gettempdir()),
    old=Path(old).read_text(),
)))
"""

ACTS = {
    "fit": 'ctrl_c.watch_parts(); model.fit(summula.scan([path] * 60), "x0")',
    "serial fit": """with summula.engine("serial"):
        ctrl_c.watch_parts()
        model.fit(summula.scan([path] * 60), "x0")""",
    "spooling": 'model.fit(summula.scan(pa.RecordBatchReader.from_batches(table.schema, stream())), "x0")',
    "predict_to": "ctrl_c.watch_parts(); known.predict_to(summula.scan([path] * 60), old)",
}


@posix
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_ctrl_c_ends_reading_at_once_and_leaves_nothing(act: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    script = PRESS_CTRL_C + SCRIPT.format(act=act)
    output = run(script, str(tmp_path / "here"), TMPDIR=str(tmp_path / "temporary"))
    assert output["ended"] == "interrupted"
    assert output["after"] <= output["queue"], "parts that were begun already, of sixty"
    assert output["fitted"] == []
    assert output["works"]
    assert output["here"] == ["old.csv", "rows.parquet"]
    assert output["old"] == "old"
    assert output["temporary"] == []
    assert list((tmp_path / "temporary").iterdir()) == []
