"""`--time` from the command line to the files, on a fake clock that only fits advance."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from summula.core.data.chunks import Part
from summula.core.estimator import estimator, run
from summula.core.estimator.run import Run
from summula.training import pipeline
from summula.training.comparison import schedule
from tests.cli.commands import document
from tests.cli.mixed_table import mixed_table


class WorkClock:
    """A fake clock that counts processed cells, at a million per second; a step processes all of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells, self.lock = 0, threading.Lock()
        chunks, step = Part.chunks, Run.step
        monkeypatch.setattr(Part, "chunks", lambda part: self.work(part.source, len(part)) or chunks(part))
        monkeypatch.setattr(
            Run, "step", lambda run, *task: self.work(run.source, run.source.n_rows) or step(run, *task)
        )
        # (Compilation is measured by another clock, and would be added to this one.)
        monkeypatch.setattr(schedule, "compile_times", lambda: nullcontext(SimpleNamespace(seconds=0.0)))
        for module in (schedule, pipeline, estimator, run):
            monkeypatch.setattr(module, "time", self)

    def work(self, source: Any, rows: int) -> None:
        with self.lock:
            self.cells += rows * source.n_features

    def monotonic(self) -> float:
        return self.cells / 1e6


@pytest.mark.parametrize("seconds", [15, 60])
def test_a_table_of_many_kinds_is_done_in_time_and_boosting_is_in_it(
    seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMMULA_NUM_THREADS", "1")
    parquet.write_table(mixed_table(3_000), tmp_path / "t.parquet")
    clock = WorkClock(monkeypatch)
    output = document("train", tmp_path / "t.parquet", "-t", "bought", "-o", tmp_path / "out", "--time", seconds)
    # Guarantee: steps that are running when the time limit is reached finish within 10 s.
    assert clock.monotonic() < seconds + 10
    # Always predicting the most frequent class is wrong on 50 % of the rows.
    assert output["estimate"] < 0.4
    board = {row["model"]: row for row in output["leaderboard"]}
    assert board["boosting"]["folds"] >= 1
    assert board["boosting"]["note"] == ("cut short by the time budget" if seconds == 15 else "")
    assert board["baseline"]["folds"] == board["boosting"]["folds"]
