"""Files as tables: any range of rows of any format equals what was written; unreadable content is reported."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet

import summula
from summula.core.data.readers import csv_table, text_streams
from summula.core.data.readers.csv_table import CsvTable
from summula.core.data.readers.opening import open_table
from summula.core.data.readers.table import Table
from summula.core.errors import DataError
from summula.linear_model import LinearRegression
from tests.faults.sentences import one_sentence

N = 50


def columns(n: int = N) -> dict[str, Any]:
    """A column of each kind that is a number; thirds have no short decimal form."""
    i = np.arange(n)
    return {
        "third": i / 3,
        "single": (i / 7).astype(np.float32),
        "whole": i * 10**12 - 5,
        "small": (i % 200).astype(np.uint8),
        "yes": i % 3 == 0,
    }


def write_parquet(path: Path, table: Any, row_group: int = 7) -> Path:
    parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=row_group)
    return path.with_suffix(".parquet")


def write_csv(path: Path, table: Any, separator: str = ",") -> Path:
    path = path.with_suffix(".csv" if separator == "," else ".tsv")
    csv.write_csv(table, path, csv.WriteOptions(delimiter=separator))
    return path


def write_ipc(path: Path, table: Any, rows: int = 7, compression: str | None = None) -> Path:
    path, compression = path.with_suffix(".feather"), compression or "uncompressed"
    feather.write_feather(table, path, chunksize=rows, compression=compression)
    return path


WRITERS: dict[str, Callable[[Path, Any], Path]] = {
    "Parquet": write_parquet,
    "Parquet, a row a group": lambda path, table: write_parquet(path, table, 1),
    "Parquet, one group": lambda path, table: write_parquet(path, table, 10**6),
    "CSV": write_csv,
    "tab-separated": lambda path, table: write_csv(path, table, "\t"),
    "Arrow IPC": write_ipc,
    "Arrow IPC, compressed": lambda path, table: write_ipc(path, table, 20, "zstd"),
}
every_format = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())


def read(table: Table, start: int = 0, stop: int | None = None, names: list[str] | None = None) -> list[Any]:
    """Rows of some columns, batches joined."""
    names = list(table.kinds) if names is None else names
    batches = list(table.read(start, table.n_rows if stop is None else stop, names))
    return [np.concatenate([batch[j] for batch in batches]) for j in range(len(names))]


def text(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


# ------------------------------------------------------------------------------------------------------ rows and kinds


@every_format
def test_all_rows_are_read_as_written(write: Any, tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "rows", pa.table(columns()))))
    assert table.n_rows == N
    assert list(table.kinds) == list(columns())
    for values, written in zip(read(table), columns().values(), strict=True):
        # (Text of a float32 has only as many digits as needed to identify it.)
        np.testing.assert_array_equal(values.astype(written.dtype), written)


@every_format
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 4), (6, 8), (7, 14), (13, 50), (49, 50)])
def test_any_stretch_of_rows_is_read(write: Any, start: int, stop: int, tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "rows", pa.table(columns()))))
    for values, written in zip(read(table, start, stop, ["whole", "third"]), ("whole", "third"), strict=True):
        np.testing.assert_array_equal(values, columns()[written][start:stop])


@every_format
def test_a_table_can_be_sent_to_another_process(write: Any, tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "rows", pa.table(columns()))))
    sent = pickle.dumps(table)
    assert len(sent) < 2_000, "only its description"
    np.testing.assert_array_equal(read(pickle.loads(sent))[0], columns()["third"])


@every_format
def test_a_file_without_rows(write: Any, tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "rows", pa.table(columns()).slice(0, 0))))
    assert table.n_rows == 0
    assert list(table.kinds) == list(columns())


def test_kinds(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "rows", pa.table(columns()))
    assert open_table(str(path)).kinds == {
        "third": "float64", "single": "float32", "whole": "number", "small": "number", "yes": "number",
    }  # fmt: skip


UNUSUAL = {
    "decimals": (pa.array([Decimal("1.25"), None, Decimal("-0.50")]), [1.25, np.nan, -0.5]),
    "half precision": (pa.array(np.array([1.5, -2.0, 0.0], np.float16)), [1.5, -2.0, 0.0]),
    "booleans with gaps": (pa.array([True, None, False]), [1.0, np.nan, 0.0]),
    "nothing but gaps": (pa.array([None, None, None]), [np.nan] * 3),
    "numbers with gaps": (pa.array([0.1, None, 0.3]), [0.1, np.nan, 0.3]),
    "single precision with gaps": (pa.array([0.5, None, 0.25], pa.float32()), [0.5, np.nan, 0.25]),
    "whole numbers with gaps": (pa.array([1, None, 3]), [1.0, np.nan, 3.0]),
    "whole numbers beyond 2^53 with gaps": (pa.array([2**60 + 1, None, 3]), [float(2**60), np.nan, 3.0]),
    "a dictionary of numbers": (pa.array([0.1, 0.3, 0.1]).dictionary_encode(), [0.1, 0.3, 0.1]),
    "a dictionary of whole numbers": (pa.array([7, None, 7]).dictionary_encode(), [7.0, np.nan, 7.0]),
    "a dictionary of singles": (pa.array([0.5, None, 0.5], pa.float32()).dictionary_encode(), [0.5, np.nan, 0.5]),
}


@pytest.mark.parametrize("write", [write_parquet, write_ipc])
@pytest.mark.parametrize(("column", "numbers"), UNUSUAL.values(), ids=UNUSUAL.keys())
def test_other_numbers_are_read_as_floats(column: Any, numbers: Any, write: Any, tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "rows", pa.table({"x": column}))))
    assert table.kinds["x"] in ("number", "float64", "float32")
    (values,) = read(table)
    assert values.dtype.kind == "f"
    np.testing.assert_array_equal(values, numbers)


TEXTS = {
    "text": pa.array(["b", None, "a"]),
    "long text": pa.array(["b", None, "a"], pa.large_string()),
    "views": pa.array(["b", None, "a"], pa.string_view()),
    "a dictionary": pa.array(["b", None, "a"]).dictionary_encode(),
}


@pytest.mark.parametrize("column", TEXTS.values(), ids=TEXTS.keys())
def test_text_is_read_as_objects_with_none_for_gaps(column: Any, tmp_path: Path) -> None:
    table = open_table(str(write_ipc(tmp_path / "rows", pa.table({"x": column}))))
    assert table.kinds == {"x": "text"}
    assert read(table)[0].tolist() == ["b", None, "a"]


def test_other_things_are_named_by_their_type(tmp_path: Path) -> None:
    table = pa.table({"day": pa.array([datetime.date(2024, 1, 1)]), "raw": pa.array([b"x"])})
    assert open_table(str(write_parquet(tmp_path / "rows", table))).kinds == {"day": "date32[day]", "raw": "binary"}


@pytest.mark.parametrize("write", [write_parquet, write_ipc])
def test_two_columns_of_one_name_are_refused(write: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "rows", pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]))
    with pytest.raises(summula.DataError) as caught:
        open_table(str(path))
    one_sentence(caught.value, "more than one column named 'x'", str(path))


def test_reading_begins_at_row_groups(tmp_path: Path) -> None:
    assert open_table(str(write_parquet(tmp_path / "a", pa.table(columns()), 20))).starts == [0, 20, 40, 50]
    assert open_table(str(write_ipc(tmp_path / "a", pa.table(columns()), 30))).starts == [0, 30, 50]


# ---------------------------------------------------------------------------------------------------------------- .npy


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u1", "?", ">f8", ">f4"])
def test_arrays_are_read(dtype: str, order: Any, tmp_path: Path) -> None:
    X = np.arange(60).reshape(20, 3).astype(dtype, order=order)
    np.save(tmp_path / "rows.npy", X)
    table = open_table(str(tmp_path / "rows.npy"))
    assert list(table.kinds) == ["x0", "x1", "x2"]
    assert set(table.kinds.values()) == {{"f8": "float64", "f4": "float32"}.get(dtype.strip(">"), "number")}
    np.testing.assert_array_equal(np.column_stack(read(table, 3, 17, ["x2", "x0"])), X[3:17, [2, 0]])


def test_a_vector_is_one_column(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(5.0))
    table = open_table(str(tmp_path / "rows.npy"))
    assert table.kinds == {"x0": "float64"}
    assert read(table)[0].tolist() == [0, 1, 2, 3, 4]


def test_an_array_without_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.empty((0, 3)))
    assert open_table(str(tmp_path / "rows.npy")).n_rows == 0


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.array(1.0), "0 dimensions"),
        (np.array([["a", 1.0]], dtype=object), "cannot be read"),
    ],
)
def test_other_arrays_are_refused(array: Any, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", array)
    with pytest.raises(summula.DataError) as caught:
        open_table(str(tmp_path / "rows.npy"))
    one_sentence(caught.value, words, "rows.npy")


# ----------------------------------------------------------------------------------------------------------------- CSV


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few lines per block and a few bytes per read, so that small files have many of both."""
    monkeypatch.setattr(csv_table, "_BLOCK_LINES", 4)
    monkeypatch.setattr(csv_table, "_COUNTED_BYTES", 11)
    monkeypatch.setattr(text_streams, "HEAD", 64)


def lines(n: int, end: str = "\n", last: str = "\n") -> str:
    return "a,b" + end + end.join(f"{i},{i / 3!r}" for i in range(n)) + last


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("last", ["end", ""], ids=["final line end", "none"])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 23])
def test_lines_are_counted_and_read(n: int, end: str, last: str, small_blocks: None, tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", lines(n, end, end if last else ""))))
    assert table.n_rows == n
    assert table.starts == [*range(0, n, 4), n]
    a, b = read(table)
    assert a.tolist() == list(range(n))
    assert b.tolist() == [i / 3 for i in range(n)]
    for start in range(n):
        assert read(table, start, n, ["a"])[0].tolist() == list(range(start, n))


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    cut=st.integers(0, 29),
    counted=st.integers(1, 40),
    ended=st.booleans(),
)
def test_every_float_comes_back_to_the_bit(
    values: list[float], cut: int, counted: int, ended: bool, small_blocks: None, tmp_path: Path
) -> None:
    cut = cut % len(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "_COUNTED_BYTES", counted)
        content = "x,y\n" + "\n".join(f"{v!r},1" for v in values) + ("\n" if ended else "")
        table = open_table(str(text(tmp_path / "rows.csv", content)))
        assert table.n_rows == len(values)
        assert read(table, cut, len(values), ["x"])[0].tobytes() == np.array(values[cut:]).tobytes()


def test_missing_cells_are_nan_or_none(tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", "a,b,c\n1,,x\n,2.5,\nNA,nan,NULL\n")))
    a, b, c = read(table)
    np.testing.assert_array_equal(a, [1, np.nan, np.nan])
    np.testing.assert_array_equal(b, [np.nan, 2.5, np.nan])
    assert c.tolist() == ["x", None, None]


def test_text_may_be_quoted_and_hold_commas_and_quotes(tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", 'a,"b, c"\n1,"x, y"\n2,"say ""z"""\n')))
    assert list(table.kinds) == ["a", "b, c"]
    assert read(table)[1].tolist() == ["x, y", 'say "z"']


def test_truth_values_are_numbers(tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", "a,b\ntrue,1\nFalse,2\n,3\n")))
    np.testing.assert_array_equal(read(table, names=["a"])[0], [1.0, 0.0, np.nan])


def test_dates_are_text(tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", "a,b\n2024-01-31,1\n")))
    assert table.kinds == {"a": "text", "b": "float64"}


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert list(open_table(str(text(tmp_path / "rows.csv", "\ufeffa,b\n1,2\n"))).kinds) == ["a", "b"]


@pytest.mark.parametrize("content", ["a,b", "a,b\n"])
def test_a_header_alone_has_no_rows(content: str, tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", content)))
    assert table.n_rows == 0
    assert list(table.kinds) == ["a", "b"]


def test_whole_numbers_may_become_fractions_later(small_blocks: None, tmp_path: Path) -> None:
    content = "a\n" + "1\n" * 100 + "2.5\n"
    assert read(open_table(str(text(tmp_path / "rows.csv", content))))[0][-1] == 2.5


@pytest.mark.parametrize(("names", "chosen"), [("a,b,c", ["a", "b", "c"]), ("a,b,c", ["c"]), ("b,c,a", ["c", "a"])])
def test_numbers_that_become_text_are_named_with_their_line(
    names: str, chosen: list[str], small_blocks: None, tmp_path: Path
) -> None:
    path = text(tmp_path / "rows.csv", _with_last(names, c="x"))
    table = open_table(str(path))
    with pytest.raises(summula.DataError) as caught:
        read(table, names=chosen)
    one_sentence(caught.value, "Column 'c'", "contains 'x' at line 102", "rows.csv")


def _with_last(names: str, **last: str) -> str:
    """A hundred rows of ones, then one that is different."""
    header = names.split(",")
    rows = [",".join("1" for _ in header)] * 100 + [",".join(last.get(name, "1") for name in header)]
    return names + "\n" + "\n".join(rows) + "\n"


def test_gaps_that_become_text_are_named_with_their_line(small_blocks: None, tmp_path: Path) -> None:
    path = text(tmp_path / "rows.csv", "a,b\n" + ",2\n" * 100 + "x,2\n")
    with pytest.raises(summula.DataError) as caught:
        read(open_table(str(path)))
    one_sentence(caught.value, "Column 'a'", "contains 'x' at line 102")


def test_text_that_becomes_numbers_stays_text(small_blocks: None, tmp_path: Path) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", "a\n" + "x\n" * 100 + "1\n")))
    assert read(table)[0][-1] == "1"


WRONG = {
    "too many fields in the first lines": ("a,b\n1,2\n1,2,3\n", "Line 3 of ", "3 fields and the header 2"),
    "too few fields in the first lines": ("a,b\n1\n", "Line 2 of ", "1 field and the header 2"),
    "too many fields far down": (lines(90) + "1,2,3\n", "Line 92 of ", "3 fields and the header 2"),
    "a blank line far down": (lines(90) + "\n" + "1,2\n", "Line 92 of ", "blank"),
    "a blank line of Windows": (lines(90, "\r\n", "\r\n") + "\r\n1,2\r\n", "Line 92 of ", "blank"),
    "a blank line at the end": (lines(30) + "\n", "Line 32 of ", "blank"),
    "line breaks inside quotes": ("a,b\n" + "1,x\n" * 90 + '1,"x\ny"\n', "line breaks inside quotes"),
    "two columns of one name": ("a,a\n1,2\n", "more than one column named 'a'"),
    "nothing": ("", "is empty"),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_table_is_refused_with_the_line(content: Any, small_blocks: None, tmp_path: Path) -> None:
    path = text(tmp_path / "rows.csv", content[0])
    with pytest.raises(summula.DataError) as caught:
        read(open_table(str(path)))
    one_sentence(caught.value, "rows.csv", *content[1:])


def test_other_encodings_further_down_are_refused_only_where_they_matter(small_blocks: None, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"a,b\n" + b"1,x\n" * 100 + "2,ü\n".encode("latin-1"))
    table = open_table(str(tmp_path / "rows.csv"))
    assert read(table, names=["a"])[0].tolist() == [1] * 100 + [2]
    with pytest.raises(summula.DataError) as caught:
        read(table, names=["b"])
    one_sentence(caught.value, "rows.csv", "after line 101", "not UTF-8", "--encoding")


def test_only_the_requested_lines_are_parsed(
    small_blocks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(str(text(tmp_path / "rows.csv", lines(40))))
    parsed: list[int] = []
    parse = CsvTable._parse

    def noted(self: CsvTable, text: bytes, row: int, names: Any) -> Any:
        parsed.append(row)
        return parse(self, text, row, names)

    monkeypatch.setattr(CsvTable, "_parse", noted)
    read(table, 9, 15)
    assert parsed == [8, 12]


def test_damaged_arrow_files_are_refused(tmp_path):
    """Arrow trusts offsets of text, and codes of categories, as it reads; some of these crashed the process."""
    n = 64
    table = pa.table({"y": np.arange(float(n)), "t": pa.array([f"{k % 4:03d}" for k in range(n)])})
    coded = table.set_column(1, "t", table["t"].dictionary_encode())
    offsets, codes = np.arange(0, 3 * n + 1, 3, dtype=np.int32), (np.arange(n) % 4).astype(np.int32)
    for stored, entries in ((table, offsets), (coded, codes)):
        feather.write_feather(stored, tmp_path / "t.feather", compression="uncompressed")
        damaged = entries.copy()
        damaged[n // 2] = 2**30
        whole = (tmp_path / "t.feather").read_bytes()
        assert whole.count(entries.tobytes()) == 1
        (tmp_path / "t.feather").write_bytes(whole.replace(entries.tobytes(), damaged.tobytes()))
        with pytest.raises(DataError, match=r"t\.feather cannot be read near row 0") as caught:
            LinearRegression().fit(summula.scan(tmp_path / "t.feather"), "y")
        assert "\n" not in str(caught.value)
