"""Commands run in the test process, and small tables for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

import summula

pytest.importorskip("typer")

from typer.testing import CliRunner

from summula.cli.app import app

RUNNER = CliRunner()


def run(*words: Any) -> Any:
    """Return the result of a command that must succeed."""
    result = RUNNER.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def document(*words: Any) -> Any:
    """Return the JSON document printed by a command."""
    return json.loads(run(*words, "--json", "--quiet").stdout)


def failure(code: int, *words: Any) -> str:
    """Return the one-sentence message of a command that must fail with an exit code."""
    result = RUNNER.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert "Traceback" not in result.output
    return lines[0].removeprefix("Error: ")


def write(table: Any, path: Path) -> Path:
    csv.write_csv(table, path)
    return path


def halves(name: str, folder: Path) -> tuple[Path, Path]:
    """Return every other row of a packaged table, and the rest, as two files."""
    table = summula.datasets.load(name)
    even = pa.array([row % 2 == 0 for row in range(table.num_rows)])
    odd = pa.array([row % 2 == 1 for row in range(table.num_rows)])
    return write(table.filter(even), folder / "even.csv"), write(table.filter(odd), folder / "odd.csv")
