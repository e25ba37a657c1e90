"""Ctrl-C as a terminal sends it: a real signal to a real process, in the middle of a fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import csv

import summula
from tests.cli.mixed_table import mixed_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")


def interrupted_at(line: str, words: list[str], signals: int = 1) -> subprocess.CompletedProcess[str]:
    """What a command left behind that was sent SIGINT when it had said a line."""
    command = [sys.executable, "-m", "summula.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        seen = []
        for said in process.stderr:
            seen.append(said)
            if said.startswith(line):
                break
        else:
            pytest.fail(f"The command never said {line!r}: {''.join(seen)}")
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=300)
        return subprocess.CompletedProcess(command, process.returncode, out, "".join(seen) + rest)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Large enough for a path of L1 penalties to take many seconds anywhere."""
    path = tmp_path_factory.mktemp("table") / "mixed.csv"
    csv.write_csv(mixed_table(20_000), path)
    return path


def test_in_the_middle_of_a_candidate_what_is_finished_is_kept(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["train", str(table), "-t", "bought", "-o", str(out), "--time", "600", "--models", "logistic,logistic_l1"]
    done = interrupted_at("Fold 1: logistic_l1.", words)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "Stopped by Ctrl-C: going on with what is finished." in done.stderr
    assert "The logistic model predicts 'bought' wrongly for at most" in done.stdout
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
    words = ["train", str(table), "-t", "bought", "-o", str(out), "--time", "600", "--stream"]
    done = interrupted_at("Fold 1: logistic_l1.", [*words, "--models", "logistic,logistic_l1"])
    assert done.returncode == 130, done.stderr
    assert "The logistic model predicts" in done.stdout
    assert not list(scratch.iterdir())


def test_before_anything_is_finished_nothing_is_written(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["train", str(table), "-t", "bought", "-o", str(out), "--models", "logistic_l1", "--time", "600"]
    done = interrupted_at(f"{table}: ", words)
    assert done.returncode == 130
    # (The baseline takes milliseconds, and may have been finished.)
    if "going on" not in done.stderr:
        assert done.stderr.splitlines()[-1] == (
            "Error: Stopped by Ctrl-C before anything was finished; nothing was written."
        )
        assert not list(out.iterdir())
