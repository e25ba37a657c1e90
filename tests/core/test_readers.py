"""Every format of `scan` gives the rows, and the fits, of the plain table; errors give advice."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import types
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import summula
from summula.core.data.readers import dialects
from summula.core.data.readers.databases import without_password
from summula.core.errors import DataError
from summula.linear_model import LinearRegression
from tests.contract.compare import assert_same_bits, fitted_attributes, without_names
from tests.processes import run


def table(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=n).round(3), rng.integers(0, 9, n)
    return pa.table(
        {"a": a, "b": b, "y": (a - b + rng.normal(size=n)).round(3), "where": ["Zürich", "Bern"] * (n // 2)}
    )


ROWS = table()


def text(rows: pa.Table = ROWS, delimiter: str = ",") -> str:
    sink = io.BytesIO()
    csv.write_csv(rows, sink, csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue().decode()


def european() -> str:
    return text(delimiter=";").replace(".", ",")


def sheet(path: Path, rows: pa.Table = ROWS, names: tuple[str, ...] = ("prices",)) -> Path:
    """A workbook written by hand: the few parts that the format needs."""

    def cell(value: Any) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value!r}</v></c>"

    lines = [rows.column_names, *(list(row.values()) for row in rows.to_pylist())]
    data = "".join(f"<row>{''.join(map(cell, line))}</row>" for line in lines)
    space = "http://schemas.openxmlformats.org"
    kind = f"{space}/officeDocument/2006/relationships"
    sheets = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(names, 1))
    links = "".join(
        f'<Relationship Id="r{i}" Type="{kind}/worksheet" Target="s{i}.xml"/>' for i in range(1, len(names) + 1)
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("[Content_Types].xml", f'<Types xmlns="{space}/package/2006/content-types"/>')
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="r" Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{space}/spreadsheetml/2006/main" xmlns:r="{kind}"><sheets>{sheets}</sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{space}/package/2006/relationships">{links}</Relationships>',
        )
        for i in range(1, len(names) + 1):
            book.writestr(
                f"xl/s{i}.xml",
                f'<worksheet xmlns="{space}/spreadsheetml/2006/main"><sheetData>{data if i == 1 else ""}</sheetData></worksheet>',
            )
    return path


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()).encode()


FILES = {
    "t.csv": text().encode(),
    "mark.csv": b"\xef\xbb\xbf" + text().encode(),
    "t.tsv": text(delimiter="\t").encode(),
    "t.csv.gz": gzip.compress(text().encode()),
    "t.csv.zst": zstd(text().encode()),
    "t.csv.bz2": bz2.compress(text().encode()),
    "named.csv": gzip.compress(text().encode()),
    "t.jsonl": lines(),
    "t.ndjson": lines(),
    "t.jsonl.gz": gzip.compress(lines()),
    "european.csv": european().encode(),
    "european.csv.gz": gzip.compress(european().encode("latin-1")),
    "utf16.csv": text().encode("utf-16"),
    "utf16le.csv": text().encode("utf-16-le"),
    "latin.csv": text().encode("latin-1"),
    "returns.csv": text().replace("\n", "\r").encode(),
    "windows.csv": text().replace("\n", "\r\n").encode(),
    "blank.csv": text().replace("\n", "\n\n", 2).encode(),
}  # fmt: skip


def opened(name: str, folder: Path) -> Any:
    (folder / name).write_bytes(FILES[name])
    return summula.scan(folder / name)


def columns_of(scan: Any) -> dict[str, list[Any]]:
    batches = list(scan.read(0, scan.n_rows, scan.columns))
    return {name: np.concatenate([batch[j] for batch in batches]).tolist() for j, name in enumerate(scan.columns)}


def assert_same_rows(scan: Any) -> None:
    assert columns_of(scan) == {name: ROWS[name].to_pylist() for name in ROWS.column_names}


@pytest.mark.parametrize("name", FILES)
def test_rows_and_fits_are_those_of_the_table(name: str, tmp_path: Path) -> None:
    scan = opened(name, tmp_path)
    assert_same_rows(scan)
    X = np.column_stack([ROWS["a"].to_numpy(), ROWS["b"].to_numpy()]).astype(float)
    plain = LinearRegression().fit(X, ROWS["y"].to_numpy())
    found = LinearRegression().fit(scan.select(["a", "b", "y"]), "y")
    assert_same_bits(without_names(fitted_attributes(found)), without_names(fitted_attributes(plain)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.csv", None),
        ("t.tsv", None),
        ("european.csv", "semicolons between fields and decimal commas"),
        ("european.csv.gz", "gzip compression, the encoding Latin-1 (Windows-1252), semicolons between fields and decimal commas"),
        ("utf16.csv", "the encoding UTF-16"),
        ("utf16le.csv", "the encoding UTF-16"),
        ("latin.csv", "the encoding Latin-1 (Windows-1252)"),
        ("returns.csv", "carriage returns between lines"),
        ("named.csv", "gzip compression"),
        ("blank.csv", "blank lines"),
    ],
)  # fmt: skip
def test_unusual_data_get_a_remark(name: str, message: str | None, tmp_path: Path) -> None:
    assert opened(name, tmp_path).remarks == ([] if message is None else [f"{tmp_path / name} is read with {message}."])


def test_european_files_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    scan = opened("european.csv", tmp_path)
    assert_same_rows(scan)
    assert_same_rows(pickle.loads(pickle.dumps(scan)))
    assert scan.place(0) == f"line 2 of {tmp_path / 'european.csv'} (the header is line 1)"


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text().encode("cp437"))
    assert "Z\u201crich" not in str(columns_of(summula.scan(path, encoding="cp437"))["where"][0])
    assert columns_of(summula.scan(path, encoding="cp437"))["where"][0] == "Zürich"
    with pytest.raises(DataError, match="There is no encoding 'klingon'; give one such as utf-8"):
        summula.scan(path, encoding="klingon")
    path.write_bytes(text().encode("latin-1"))
    with pytest.raises(DataError, match="is not in the encoding utf-8"):
        summula.scan(path, encoding="utf-8")


def test_a_change_of_encoding_further_down_raises_an_error_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 300_000 + "1,ü\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"bytes that are not UTF-8 .* specify the encoding with --encoding"):
        summula.scan(path).vocabulary("b")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("39.1,18.7,Adelie\n40.2,17.1,Adelie\n36,19.0,Gentoo\n35.5,18,Gentoo\n", ["x0", "x1", "x2"]),
        ("3,1,3\n4,1,5\n1,0,2\n3,3,3\n", ["x0", "x1", "x2"]),
        ("city,2019,2020,2021\na,3,4,5\nb,4,5,6\nc,1,2,3\n", ["city", "2019", "2020", "2021"]),
        ("a,b\n1,2\n3,4\n5,6\n", ["a", "b"]),
        ("a,b\nx,y\nz,u\nx,y\n", ["a", "b"]),
        ("id,1\n7,2\n8,3\n9,4\n", ["id", "1"]),
    ],
)
def test_a_missing_header_is_noticed(content: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    scan = summula.scan(path)
    assert scan.columns == names
    assert any("seems to have no header line" in remark for remark in scan.remarks) == (names[0] == "x0")
    assert scan.n_rows == content.count("\n") - (names[0] != "x0")
    with_header = (
        summula.scan(path, header=True) if len(set(content.splitlines()[0].split(","))) == len(names) else None
    )
    assert with_header is None or with_header.n_rows == content.count("\n") - 1
    bare = summula.scan(path, header=False)
    assert bare.n_rows == content.count("\n")
    assert bare.place(0) == f"line 1 of {path}"
    assert [len(column) for column in columns_of(bare).values()] == [bare.n_rows] * len(names)


def test_leading_zeros_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,x,z\n01000,0.5,0\n10115,-0.25,7\n99999,0,10\n")
    scan = summula.scan(path)
    assert scan.kinds == {"zip": "text", "x": "float64", "z": "float64"}
    assert columns_of(scan)["zip"] == ["01000", "10115", "99999"]
    path.write_text("zip;x\r\n01000;0,5\r\n\r\n10115;1,5\r\n")  # rewritten
    assert columns_of(summula.scan(path)) == {"zip": ["01000", "10115"], "x": [0.5, 1.5]}


def test_columns_as_they_are_stored(tmp_path: Path) -> None:
    rows = pa.table({"id": [2**60 + 1, 7], "code": ["007", "1"], "x": [0.5, 1.0]})
    parquet.write_table(rows, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(text(rows))
    for name in ("t.parquet", "t.csv"):
        stored = summula.scan(tmp_path / name).stored()
        (batch,) = stored.read(0, 2, ["id", "code", "x"])
        assert [batch[j].to_pylist() for j in range(3)] == [rows[name].to_pylist() for name in rows.column_names]


# ------------------------------------------------------------------------------------------------------------ JSON lines


def test_json_lines_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for content, message in [
        ('[{"a": 1}]', "one JSON array; write one object per line"),
        ('{"a": 1}\n{"a": "x"}\n', "Field 'a' of .* is number in some rows and string in others"),
        ('{"a": 1}\nhello\n', "is not JSON with one object per line"),
        ('{"a": 1, "b": 2}\n' * 200_000 + '{"a": 1, "c": 3}\n', "a field that those of the first megabyte do not have"),
    ]:
        path.write_text(content)
        with pytest.raises(DataError, match=message):
            summula.scan(path)


def test_whole_numbers_of_json_may_have_fractions_further_down(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "b": null}\n' * 150_000 + '{"a": 1.5, "b": 2}\n')
    found = columns_of(summula.scan(path))
    assert (found["a"][-1], found["b"][-1]) == (1.5, 2.0)


# --------------------------------------------------------------------------------------------------------- spreadsheets


def test_spreadsheets(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = sheet(tmp_path / "t.xlsx", names=("prices", "notes"))
    scan = summula.scan(path)
    assert_same_rows(scan)
    assert scan.remarks == [f"{path} has 2 sheets, and 'prices' is read; {path}#notes is another."]
    named = summula.scan(f"{path}#prices")
    assert_same_rows(named)
    assert named.remarks == []
    with pytest.raises(DataError, match="has no sheet 'price'; it has 'prices', 'notes'"):
        summula.scan(f"{path}#price")
    with pytest.raises(DataError, match="The sheet 'notes' of .* is empty"):
        summula.scan(f"{path}#notes")
    (tmp_path / "bad.xlsx").write_bytes(b"hello")
    with pytest.raises(DataError, match="cannot be read as a spreadsheet"):
        summula.scan(tmp_path / "bad.xlsx")


# ------------------------------------------------------------------------------------------------------------ databases


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", ROWS)
        connection.execute("CREATE TABLE prices AS SELECT * FROM rows")
    assert_same_rows(summula.scan(f"duckdb:{path}"))
    some = summula.scan(f"duckdb:{path}", query="SELECT a, b FROM prices WHERE b > 4")
    assert some.n_rows == sum(b > 4 for b in ROWS["b"].to_pylist())
    assert some.columns == ["a", "b"]
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE notes AS SELECT 1.5::DECIMAL(5, 2) x, DATE '2024-01-01' d")
    with pytest.raises(DataError, match=r"has the tables 'notes', 'prices'; specify one with --query NAME"):
        summula.scan(f"duckdb:{path}")
    assert columns_of(summula.scan(f"duckdb:{path}", query="notes"))["x"] == [1.5]
    with pytest.raises(DataError, match="DuckDB cannot read .*nothing does not exist"):
        summula.scan(f"duckdb:{path}", query="nothing")
    with pytest.raises(DataError, match="There is no DuckDB file"):
        summula.scan(f"duckdb:{tmp_path / 'none.duckdb'}")
    parquet.write_table(ROWS, tmp_path / "t.parquet")
    assert_same_rows(summula.scan(f"duckdb:SELECT * FROM '{tmp_path / 't.parquet'}'"))


@pytest.fixture
def postgresql() -> Any:
    """A server for this test only, on a socket in a separate folder."""
    pytest.importorskip("adbc_driver_postgresql")
    # (Debian keeps these programs in a folder per version that is not in PATH.)
    path = os.pathsep.join([os.environ.get("PATH", ""), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))])
    initdb, pg_ctl = shutil.which("initdb", path=path), shutil.which("pg_ctl", path=path)
    if os.name != "posix" or initdb is None or pg_ctl is None:
        pytest.skip("needs the programs of PostgreSQL")
    folder = tempfile.mkdtemp()
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # they do not run as root
        shutil.chown(folder, "nobody")
        user = {"user": "nobody"}
    quiet = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    data = f"{folder}/data"
    control = [pg_ctl, "-D", data, "-w", "-o", f"-k {folder} -h '' -c fsync=off", "-l", f"{folder}/log"]
    try:
        subprocess.run([initdb, "-D", data, "-U", "me", "-A", "trust", "--no-sync"], **quiet)
        subprocess.run([*control, "start"], **quiet)
        try:
            yield f"postgresql://me:secret@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "stop", "-m", "immediate"], **quiet)
    finally:
        shutil.rmtree(folder)


def test_postgresql(postgresql: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgresql) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("prices", ROWS)
        connection.commit()
    assert_same_rows(summula.scan(postgresql, query="prices"))
    query = "SELECT a::numeric(9, 3) AS a, b, NULL::numeric AS c FROM prices WHERE b > 4 ORDER BY a"
    some = summula.scan(postgresql, query=query)
    assert some.kinds == {"a": "float64", "b": "number", "c": "float64"}
    assert columns_of(some)["a"] == sorted(
        a for a, b in zip(ROWS["a"].to_pylist(), ROWS["b"].to_pylist(), strict=True) if b > 4
    )
    assert "secret" not in repr(some)
    with pytest.raises(DataError, match=r"specify what to read with --query") as refused:
        summula.scan(postgresql)
    assert "secret" not in str(refused.value)
    with pytest.raises(DataError, match=r"PostgreSQL at postgresql://me:\*\*\*@"):
        summula.scan(postgresql, query="nothing")


def test_passwords_are_not_shown() -> None:
    assert without_password("postgresql://me:s3:cr/et@host/db") == "postgresql://me:***@host/db"
    assert without_password("postgresql://me@host/db") == "postgresql://me@host/db"
    assert without_password("duckdb:a.duckdb") == "duckdb:a.duckdb"


@pytest.mark.parametrize(
    ("module", "address", "message"),
    [
        ("duckdb", "duckdb:t.duckdb", "Reading DuckDB needs the package duckdb: pip install"),
        ("adbc_driver_postgresql", "postgresql://host/db", "needs adbc-driver-postgresql: pip install"),
        ("python_calamine", "t.xlsx", "needs python-calamine: pip install"),
    ],
)
def test_packages_that_are_missing_are_named(
    module: str, address: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=message):
        summula.scan(address)


# ------------------------------------------------------------------------------------------------ frames, standard input


def test_lazy_frames() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(ROWS).lazy()
    scan = summula.scan(frame)
    assert_same_rows(scan)
    folder = Path(scan.tables[0].path).parent
    assert folder.exists()
    del scan
    import gc

    gc.collect()
    assert not folder.exists()


def arrow_file() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return sink.getvalue()


def arrow_stream() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return sink.getvalue()


def parquet_file() -> bytes:
    sink = io.BytesIO()
    parquet.write_table(ROWS, sink)
    return sink.getvalue()


PIPED = {
    "CSV": FILES["t.csv"],
    "gzip": FILES["t.csv.gz"],
    "European": FILES["european.csv"],
    "JSON lines": FILES["t.jsonl"],
    "Parquet": parquet_file(),
    "Arrow file": arrow_file(),
    "Arrow stream": arrow_stream(),
}


@pytest.mark.parametrize("kind", PIPED)
def test_standard_input(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = types.SimpleNamespace(buffer=io.BytesIO(PIPED[kind]), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", piped)
    scan = summula.scan("-")
    assert_same_rows(scan)
    assert "standard input" in repr(scan)
    assert "standard input" in scan.place(0)


def test_a_terminal_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(isatty=lambda: True))
    with pytest.raises(DataError, match="No data on standard input; pipe a table to it"):
        summula.scan("-")


def test_several_files_of_several_formats(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(text(ROWS.slice(0, 100)))
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(text(ROWS.slice(100, 100), ";").replace(".", ",").encode()))
    parquet.write_table(ROWS.slice(200), tmp_path / "3.parquet")
    assert_same_rows(summula.scan([tmp_path / name for name in ("1.csv", "2.csv.gz", "3.parquet")]))
    assert_same_rows(summula.scan(tmp_path))


# --------------------------------------------------------------------------------------------------------- rejected input


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty; a CSV file begins with a line of column names"),
        ("t.csv", bytes(np.random.default_rng(0).integers(0, 256, 5_000, np.uint8)), "is not a text file"),
        ("t.csv", parquet_file(), "is a Parquet file, not text; give it the ending .parquet"),
        ("t.csv.gz", gzip.compress(text().encode())[:2_000], "cannot be decompressed|cannot be read to its end"),
        ("t.json", b'{"a": 1}', "write one object per line and name the file .jsonl"),
        ("t.pkl", b"", "read it with pandas or polars and give the frame"),
        ("t.parquet.gz", b"", "unpack it first"),
    ],
)
def test_errors_of_invalid_files_give_advice(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        summula.scan(tmp_path / name)


def test_addresses_and_queries_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="download the file and pass its path"):
        summula.scan("https://example.org/t.csv")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="A query is for databases"):
        summula.scan(tmp_path / "t.csv", query="SELECT 1")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the peak memory of a process")
def test_memory_is_bounded_for_files_that_are_rewritten(tmp_path: Path) -> None:
    rows = pa.table({f"x{j}": np.random.default_rng(j).normal(size=400_000) for j in range(8)})  # 62 MB of text
    for name, some in (("few", rows[:100]), ("t", rows)):
        with (
            pa.OSFile(str(tmp_path / f"{name}.csv.zst"), "wb") as file,
            pa.CompressedOutputStream(file, "zstd") as sink,
        ):
            csv.write_csv(some, sink)
    grown = run(
        f"""
    import json
    import summula
    from benchmarks.memory import PeakMemory
    from summula.linear_model import LinearRegression
    LinearRegression().fit(summula.scan({str(tmp_path / "few.csv.zst")!r}), "x0")  # libraries are loaded
    peak = PeakMemory()
    LinearRegression().fit(summula.scan({str(tmp_path / "t.csv.zst")!r}), "x0")
    print(json.dumps(peak.bytes()))
    """
    )
    assert grown < 160 << 20, f"{grown >> 20} MB"  # the text alone, twice, would be 125 MB


@pytest.mark.parametrize("cell", ["01000", " 01000", "-01000", '"01000"', "+01000"])
@pytest.mark.parametrize("place", [0, 1])
def test_padded_numbers_are_found_wherever_they_are(cell: str, place: int, tmp_path: Path) -> None:
    """One search of the text decides whether columns are checked one by one."""
    row = ["1.05", "2e-05"]
    row[place] = cell
    (tmp_path / "t.csv").write_text("a,b\n3,4\n" + ",".join(row) + "\n")
    kinds = summula.scan(tmp_path / "t.csv").kinds
    assert kinds == {name: "text" if j == place else "float64" for j, name in enumerate("ab")}


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("odd", ["", "x", "n/a", "1e3", "-7", "0012", "true", "2024-01-05", "1.5.6"])
def test_types_of_wide_tables_are_those_of_narrow_ones(
    odd: str, delimiter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = "." if delimiter == "," else ","
    first = ["0.25", "-12.5", "word", "3", "01.5", "", "true", "0.5"]
    rows = [first, [*first[:-1], odd], [odd, *first[1:]]]
    names = [f"c{j}" for j in range(len(first))]
    head = "\n".join(delimiter.join(row) for row in (names, *rows)).replace(".", mark).encode() + b"\n"
    dialect = dialects.Dialect(delimiter=delimiter, decimal=mark)
    expected = dialects.column_types(head, dialect, "t.csv")
    monkeypatch.setattr(dialects, "_WIDE", 2)
    assert dialects._evident_types(head, dialect)
    assert dialects.column_types(head, dialect, "t.csv") == expected


@pytest.mark.parametrize(
    ("name", "cure"), [("shop.duckdb", "a DuckDB file is given as duckdb:.*shop.duckdb"), ("rows", "rename it to .csv")]
)
def test_unsupported_file_types_raise_with_advice(name: str, cure: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=cure):
        summula.scan(tmp_path / name)
