"""Ctrl-C as sent by a terminal: a real signal to a real process, in the middle of a fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import csv

import summula
from tests.cli.mixed_table import mixed_table
from tests.processes import PRESS_CTRL_C, TIMEOUT, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

# Runs the command, and sends Ctrl-C after it has printed a line and started some more parts of the rows.
SCRIPT = """
import sys
from summula.cli.app import main
from summula.cli.console import Console

line, parts, remark = sys.argv.pop(1), int(sys.argv.pop(1)), Console.remark
ctrl_c = CtrlC(-1).watch_parts()

def watched(self, text):
    remark(self, text)
    if text.startswith(line):
        ctrl_c.at = ctrl_c.begun + parts
        if not parts:
            os.kill(os.getpid(), signal.SIGINT)

Console.remark = watched
main()
"""


def interrupted_at(line: str, parts: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command interrupted by Ctrl-C a number of parts after it printed a line; 0 is at the line."""
    command = [sys.executable, "-c", PRESS_CTRL_C + SCRIPT, line, str(parts), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=TIMEOUT, check=False)
    assert line in done.stderr
    return done


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "mixed.csv"
    csv.write_csv(mixed_table(2_000), path)
    return path


def test_in_the_middle_of_a_candidate_what_is_finished_is_kept(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["train", table, "-t", "bought", "-o", out, "--time", 3_600, "--models", "logistic,logistic_l1"]
    done = interrupted_at("Fold 1: logistic_l1.", 5, *words)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "Stopped by Ctrl-C: continuing with the finished candidates." in done.stderr
    assert "logistic: " in done.stdout
    written = {"model.summula", "report.html", "leaderboard.csv", "certificate.json"}
    assert {path.name for path in out.iterdir()} == written
    assert "Stopped by Ctrl-C before the end" in (out / "report.html").read_text(encoding="utf-8")
    board = csv.read_csv(out / "leaderboard.csv").to_pylist()
    assert [row["model"] for row in board] == ["logistic", "baseline", "logistic_l1"]
    assert [row["folds"] for row in board] == [1, 1, 0]
    assert board[2]["note"] == "not finished"
    assert summula.load(out / "model.summula").target == "bought"


def test_from_files_too_and_scratch_files_go(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("SUMMULA_SCRATCH", str(scratch))
    out = tmp_path / "out"
    words = ["train", table, "-t", "bought", "-o", out, "--time", 3_600, "--stream"]
    done = interrupted_at("Fold 1: logistic_l1.", 5, *words, "--models", "logistic,logistic_l1")
    assert done.returncode == 130, done.stderr
    assert "logistic: " in done.stdout
    assert not list(scratch.iterdir())


def test_before_anything_is_finished_nothing_is_written(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["train", table, "-t", "bought", "-o", out, "--models", "logistic_l1", "--time", 3_600]
    done = interrupted_at(f"{table}: ", 0, *words)
    assert done.returncode == 130
    message = "Error: Stopped by Ctrl-C before anything was finished; nothing was written."
    assert done.stderr.splitlines()[-1] == message
    assert not out.exists()


def test_while_packages_are_imported() -> None:
    script = "import sys, signal, os\nfrom summula.cli import entry\n"
    script += "class Finder:\n    def find_spec(self, name, *rest):\n        if name == 'summula.cli.app':\n"
    script += "            os.kill(os.getpid(), signal.SIGINT)\n"
    script += "sys.meta_path.insert(0, Finder())\nentry.main()\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), timeout=TIMEOUT, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "Error: Stopped by Ctrl-C before anything was finished; nothing was written.\n"
