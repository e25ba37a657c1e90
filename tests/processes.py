"""Run scripts in a separate Python process, and interrupt them with a real signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import summula

ROOT = str(Path(__file__).parents[1])
SOURCE = str(Path(summula.__file__).parents[1])
TIMEOUT = 900  # seconds; ends a deadlock, and is not reached by slow machines


def accept_ctrl_c() -> None:
    """Undo an ignored SIGINT, which background jobs (`make test &`) inherit and pass on to every process they start.

    Handlers are reset by exec, ignored signals are not: once this process has a handler, its children start with the
    default, and a Python child installs its own.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def environment(**changes: str) -> dict[str, str]:
    """Return the environment without thread limits; the library tested, `benchmarks` and `tests` can be imported."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    return kept | {"PYTHONPATH": os.pathsep.join([SOURCE, ROOT])} | changes


def run(script: str, *arguments: str, **changes: str) -> Any:
    """Run a script and return the last line it printed, parsed as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *arguments],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# Sends SIGINT to itself while part number `at` is computed, and counts the parts begun before and after that.
# As a context it records how its body ended. Work is counted, not seconds: the count does not depend on the speed or the load of the machine.
PRESS_CTRL_C = """
import os, signal, threading
from summula.core.data.chunks import Part

class CtrlC:
    def __init__(self, at):
        self.at, self.begun, self.sent, self.lock = at, 0, None, threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.ended = "interrupted" if kind is KeyboardInterrupt else "finished"
        return kind is KeyboardInterrupt

    def work(self):
        with self.lock:
            self.begun += 1
            if self.begun == self.at:
                self.sent = self.begun
                os.kill(os.getpid(), signal.SIGINT)

    def watch_parts(self):
        chunks = Part.chunks
        Part.chunks = lambda part: self.work() or chunks(part)
        return self

    @property
    def after(self):
        return None if self.sent is None else self.begun - self.sent
"""
