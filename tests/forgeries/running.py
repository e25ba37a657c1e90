"""Run forgeries in separate processes: a crash or an endless loop is recorded, and the next forgery is tried."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import summula

ROOT = Path(__file__).parents[2]
_MOST_CRASHES = 5
_STUCK = 3_600  # seconds after which an idle process is terminated


def run_forgeries(folder: Path, count: int, kinds: list[str], **settings: str) -> dict[str, Any]:
    """Counts by kind of what became of `count` forgeries of each, the failures, and the peak of memory in MB.

    `settings` are added to the environment of the processes.
    """
    source = Path(summula.__file__).parents[1]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]),
        "SUMMULA_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        **settings,
    }
    command = [sys.executable, "-m", "tests.forgeries.worker", str(folder), str(count), *kinds]
    crashes: list[dict[str, Any]] = []
    while len(crashes) <= _MOST_CRASHES:
        ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=_STUCK, check=False)
        if ended.returncode == 0:
            result: dict[str, Any] = json.loads((folder / "result").read_text())
            return {**result, "failures": [*result["failures"], *crashes]}
        if not (folder / "now").exists():
            raise AssertionError(f"the worker ended before the first forgery:\n{ended.stderr[-3000:]}")
        now = json.loads((folder / "now").read_text())
        failures = now.pop("failures")
        crashes.append({**now, "what": _ending(ended.returncode, ended.stderr)})
        done = {"next": [now["place"], now["number"] + 1], "counts": now["counts"], "failures": failures}
        (folder / "done").write_text(json.dumps(done))
    return {"counts": {}, "failures": crashes, "peak": 0.0}


def _ending(code: int, stderr: str) -> str:
    if code == -signal.SIGXCPU:
        return "did not end (processor time)"
    if code < 0:
        return f"ended by the signal {signal.Signals(-code).name}"
    return f"ended with code {code}:\n{stderr[-2000:]}"
