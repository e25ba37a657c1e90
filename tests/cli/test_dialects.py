"""Text tables in various dialects: unusual formats are detected, reported, and parsed correctly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import summula
from summula.core.data.readers.dialects import Dialect, dialect_of
from tests.cli.commands import document, failure, run

PLAIN = "name,amount,since,answer\n" + "".join(
    f"{'ab'[i % 2]}{i % 5},{i * 1.5},2024-01-{i % 28 + 1:02d},{'yes' if i + i * 7 % 11 * 3 > 45 else 'no'}\n"
    for i in range(60)
)


def odd(text: str = PLAIN, breaks: bool = True) -> str:
    """The same table with semicolons, decimal commas, days first and, in quotes, line breaks."""
    lines = []
    for line in text.splitlines():
        name, amount, since, answer = line.split(",")
        if name != "name":
            amount, since = amount.replace(".", ","), ".".join(reversed(since.split("-")))
            name = f'"{name}\nof old"' if breaks else f'"{name}; of old"'
        lines.append(";".join([name, amount, since, answer]))
    return "\ufeff" + "\r\n".join(lines) + "\r\n"


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (PLAIN, "t.csv", None),
        ("\ufeff" + PLAIN, "t.csv", None),
        (PLAIN.replace(",", "\t"), "t.tsv", None),
        (PLAIN.replace(",", "\t"), "t.csv", Dialect("\t")),
        (PLAIN.replace(",", ";"), "t.csv", Dialect(";")),
        (PLAIN.replace(",", "|"), "t.txt", Dialect("|")),
        (odd(), "t.csv", Dialect(";", ",", True, days=".")),
        (odd(breaks=False), "t.csv", Dialect(";", ",", days=".")),
        ("a,b\n1,7/4/2019\n2,12/16/2005\n", "t.csv", Dialect(days="m/")),
        ("a,b\n1,7/4/2019\n2,16/12/2005\n", "t.csv", Dialect(days="d/")),
        ("a,b\n1,7/4/2019\n2,6/12/2005\n", "t.csv", None),  # ambiguous
        (PLAIN.replace("a0,0.0,", '"a0\n",0.0,'), "t.csv", Dialect(breaks=True)),
        (PLAIN + "\n\n", "t.csv", Dialect(blanks=True)),
        ('"a;b",c\n1,2\n', "t.csv", None),  # a semicolon in a quoted name
        ("", "t.csv", None),
    ],
)
def test_the_form_of_a_file_is_found(content: str, name: str, expected: Dialect | None) -> None:
    usual = "\t" if name.endswith(".tsv") else ","
    found = dialect_of(content.removeprefix("\ufeff"), usual)
    assert (None if found == Dialect(usual) else found) == expected


def test_unusual_data_get_a_remark() -> None:
    assert Dialect(";").peculiarities() == ["semicolons between fields"]
    assert Dialect("|", ",", True, True).peculiarities() == [
        "bars between fields", "decimal commas", "line breaks inside quotes", "blank lines"
    ]  # fmt: skip


def test_an_unusual_file_gives_the_model_of_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text(PLAIN)
    (tmp_path / "odd.csv").write_bytes(odd().encode())
    options = ("-t", "answer", "--models", "logistic", "-o")
    output = run("train", tmp_path / "odd.csv", *options, tmp_path / "odd")
    assert (
        "odd.csv is read with semicolons between fields, decimal commas, line breaks inside quotes and dates in the form"
        in output.stderr
    )
    assert "is read with" not in run("train", tmp_path / "plain.csv", *options, tmp_path / "plain").stderr
    models = [summula.load(tmp_path / name / "model.summula") for name in ("odd", "plain")]
    assert [column.kind for column in models[0].encoder.columns_] == ["category", "number", "date"]
    run("predict", tmp_path / "odd", tmp_path / "odd.csv", "-o", tmp_path / "odd.parquet")
    run("predict", tmp_path / "plain", tmp_path / "plain.csv", "-o", tmp_path / "plain.parquet")
    predicted = [parquet.read_table(tmp_path / f"{name}.parquet")["answer"].to_pylist() for name in ("odd", "plain")]
    assert predicted[0] == predicted[1]
    assert np.allclose(models[0].model.coef_, models[1].model.coef_)


@pytest.mark.parametrize(
    ("days", "spelled"), [("d/", "{d}/{m}/{y}"), ("m/", "{m}/{d}/{y}"), (".", "{d:02d}.{m:02d}.{y}")]
)
def test_dates_are_read_as_they_are_spelled(days: str, spelled: str, tmp_path: Path) -> None:
    rows = [(y, m, d) for y in (1999, 2024) for m in (1, 7, 12) for d in (2, 15, 28)]
    lines = [f"{i},{spelled.format(y=y, m=m, d=d)}" for i, (y, m, d) in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["x,since", *lines]) + "\n")
    assert dialect_of((tmp_path / "t.csv").read_text()) == Dialect(days=days)
    column = document("inspect", tmp_path / "t.csv")["columns"][1]
    assert (column["kind"], column["lowest"], column["highest"]) == ("date", "1999-01-02", "2024-12-28")


def test_a_pattern_may_mix_forms(tmp_path: Path) -> None:
    lines = PLAIN.splitlines(keepends=True)
    (tmp_path / "1.csv").write_text("".join(lines[:31]))
    (tmp_path / "2.csv").write_text("".join([lines[0], *lines[31:]]).replace(",", ";"))
    output = document("inspect", tmp_path / "*.csv")
    assert output["rows"] == 60
    assert [row["kind"] for row in output["columns"]] == ["category", "number", "date", "category"]


def test_whole_numbers_may_have_fractions_further_down(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n" + "1;x\n" * 400_000 + "1.5;y\n")
    output = document("inspect", tmp_path / "t.csv")
    assert output["columns"][0]["highest"] == 1.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (odd(breaks=False) + "a;b\r\n", "has 2 fields and the header 4; fix or remove it"),
        (odd(breaks=False).replace("name;amount", "amount;amount"), "more than one column named 'amount'"),
    ],
)
def test_broken_lines_are_located(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content.encode())
    assert message in failure(3, "train", tmp_path / "t.csv", "-t", "answer", "-o", tmp_path / "out")


def test_other_encodings_are_named_and_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(PLAIN.replace("a0", "Zürich").encode("utf-16"))
    message = run("inspect", tmp_path / "t.csv")
    assert f"{tmp_path / 't.csv'} is read with the encoding UTF-16." in message.stderr
    assert "Zürich" in message.stdout
    (tmp_path / "t.csv").write_bytes(odd().removeprefix("\ufeff").replace("a0", "Zürich").encode("latin-1"))
    assert "the encoding Latin-1 (Windows-1252), semicolons" in run("inspect", tmp_path / "t.csv").stderr
    (tmp_path / "t.csv").write_bytes(PLAIN.replace("a0", "Zürich").encode("cp437"))
    assert "Zürich" in run("inspect", tmp_path / "t.csv", "--encoding", "cp437").stdout


def test_the_scratch_file_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import tempfile

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "t.csv").write_bytes(odd().encode())
    run("inspect", tmp_path / "t.csv")
    gc.collect()
    assert not list(scratch.iterdir())


def test_a_table_from_arrow_is_what_it_was(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0], "y": ["a;b", "c\nd"]})
    csv.write_csv(table, tmp_path / "t.csv", csv.WriteOptions(delimiter=";"))
    output = document("inspect", tmp_path / "t.csv")
    assert output["rows"] == 2
