"""Running a script in a Python of its own, and reading what it says at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

TIMEOUT = 120  # a deadlock is reported, not waited for


def environment(**changes: str) -> dict[str, str]:
    """The environment without anybody's thread limits."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    return kept | changes


def run(script: str, **changes: str) -> Any:
    """What the last line that the script printed says, as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
