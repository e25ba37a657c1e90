"""Text of a table cannot control a terminal: control characters in names, labels, cells and paths are escaped."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from summula.cli import app as commands
from summula.core.data.printable import printable
from summula.training.result import _as_csv
from tests.cli.commands import document, failure, run

CLEAR, TITLE, C1 = "\x1b[2J\x1b[31mred", "\x1b]0;owned\x07", "\x9b31mc1"
BREAK, RETURN, OVERRIDE, INVISIBLE = "one\nError: forged", "right\rwrong", "a\u202egnp.exe", "a\u200bb"
HOSTILE = [CLEAR, TITLE, C1, BREAK, RETURN, OVERRIDE, INVISIBLE, "\x00", "\x7f", "\u2028", "\ufeff", "\U000e0041"]


def shows(text: str) -> str:
    """Return the text, after checking that all of its characters except line feeds are printable."""
    hidden = {one for one in text if not (one.isprintable() or one == "\n")}
    assert not hidden, f"{hidden} in {text!r}"
    return text


def printed(*words: Any) -> str:
    result = run(*words)
    return shows(result.stdout) + shows(result.stderr)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=(200, 2)), 200
    labels = np.where(x[:, 0] + 0.3 * rng.normal(size=n) > 0, f"{CLEAR}yes", f"{OVERRIDE}no")
    words = rng.choice([TITLE, C1, BREAK, "plain"], n)
    columns = {CLEAR: x[:, 0], f"{BREAK}, {C1}": x[:, 1], OVERRIDE: words, RETURN: np.ones(n), f"y{TITLE}": labels}
    path = tmp_path_factory.mktemp("hostile") / f"t{CLEAR}.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_control_and_format_characters_become_escapes(text: str) -> None:
    escaped = shows(printable(text))
    assert escaped.encode().decode("unicode_escape") == text
    assert "\n" not in escaped


def test_printable_text_is_unchanged() -> None:
    for text in ("Zürich", "naïve \\x1b", "数据", "عمر", "1\xa0000 €", "👍", ""):
        assert printable(text) == text
    assert printable("one\ntwo\x1b", lines=True) == "one\ntwo\\x1b"


def test_inspect(table: Path) -> None:
    text = printed("inspect", table)
    assert r"\x1b[2J\x1b[31mred" in text
    assert r"\x1b]0;owned\x07" in text.replace("\n", "")
    printed("inspect", table, "-t", f"y{TITLE}")


def test_the_document_of_inspect_keeps_the_names(table: Path) -> None:
    result = run("inspect", table, "--json")
    names = [row["column"] for row in json.loads(shows(result.stdout))["columns"]]
    assert names == parquet.read_schema(table).names


def test_train_predict_certify_and_the_report(table: Path, tmp_path: Path) -> None:
    out, target = tmp_path / f"out{C1}", f"y{TITLE}"
    printed("train", table, "-t", target, "-o", out, "--models", "logistic", "--drop", RETURN)
    page = shows((out / "report.html").read_text())
    assert r"\x1b[2J\x1b[31mred" in page
    printed("predict", out, table, "-o", tmp_path / f"p{TITLE}.csv")
    documented = document("predict", out, table, "-o", tmp_path / "p.csv", "--proba")
    assert documented["columns"] == [target, f"{target}[{CLEAR}yes]", f"{target}[{OVERRIDE}no]"]
    printed("certify", out, table)


def test_errors(table: Path, tmp_path: Path) -> None:
    shows(failure(3, "inspect", table, "-t", "other"))
    shows(failure(3, "inspect", tmp_path / CLEAR))
    shows(failure(3, "train", table, "-t", RETURN, "-o", tmp_path / "out"))
    (tmp_path / "t.csv").write_text(f'x,y\n1,"{CLEAR}"\n2,b,{CLEAR}\n')
    shows(failure(3, "inspect", tmp_path / "t.csv"))
    shows(failure(4, "predict", tmp_path / OVERRIDE, table, "-o", tmp_path / "p.csv"))


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    name = b"caf\xe9.csv".decode("utf-8", "surrogateescape")
    assert failure(3, "inspect", tmp_path / name) == f"There is no file {tmp_path}/caf\\udce9.csv; check the path."


def test_tracebacks_and_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # restored afterwards
    monkeypatch.setattr(sys, "argv", ["summula", "inspect", str(tmp_path / CLEAR), "--debug"])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 1
    text = shows(capsys.readouterr().err)
    assert text.startswith("Traceback")
    assert r"\x1b[2J\x1b[31mred" in text
    warnings.showwarning(UserWarning(f"Column {CLEAR} is odd."), UserWarning, "file.py", 1)
    assert capsys.readouterr().err == "Warning: Column \\x1b[2J\\x1b[31mred is odd.\n"


def test_words_between_colons_are_no_pictures(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(":warning:,y\n1,:100:\n2,[bold]b\n")
    text = printed("inspect", tmp_path / "t.csv")
    assert ":warning:" in text
    assert ":100:" in text


def test_predictions_are_no_formulas_to_a_spreadsheet(tmp_path: Path) -> None:
    rows = [f'{i % 9},"{"=cmd|A1" if i % 9 > 4 else "no"}"' for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,=y", *rows]) + "\n")
    out, predicted = tmp_path / "out", tmp_path / "p.csv"
    run("train", tmp_path / "t.csv", "-t", "=y", "-o", out, "--models", "logistic")
    run("predict", out, tmp_path / "t.csv", "-o", predicted)
    assert set(predicted.read_text().splitlines()) == {'"\'=y"', '"\'=cmd|A1"', '"no"'}
    run("predict", out, tmp_path / "t.csv", "-o", predicted, "--raw-text", "--force")
    assert set(predicted.read_text().splitlines()) == {'"=y"', '"=cmd|A1"', '"no"'}


def test_a_leaderboard_is_no_formula_to_a_spreadsheet() -> None:
    assert _as_csv([{"rank": 1, "risk": -1.5, "note": "=1"}, {"rank": None, "risk": np.nan, "note": ""}]) == (
        "rank,risk,note\n1,-1.5,'=1\n,,\n"
    )
