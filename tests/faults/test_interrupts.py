"""Ctrl-C in a long fit ends it promptly, leaves a whole model or none, and the process goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

from tests.faults.scripts import TIMEOUT, environment

LIMIT = 2.0  # seconds; on an idle machine it takes a tenth of one

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

# Windows over one long vector: 20 GB to look at, 80 MB to hold, so a pass takes seconds.
DENSE = """
    import numpy as np
    steps = np.random.default_rng(0).normal(size=10_000_000 + 250)
    X = np.lib.stride_tricks.sliding_window_view(steps, 250)
    y = X[:, 0]
"""
# Twenty products a second, a hundred steps to go; a few rows first, so that kernels are compiled.
SPARSE = """
    import numpy as np, warnings
    from scipy import sparse
    rng, n, d = np.random.default_rng(0), 400_000, 100_000
    columns, ends = rng.integers(0, d, 10 * n, dtype=np.int32), np.arange(0, 10 * n + 1, 10, dtype=np.int32)
    X = sparse.csr_array((rng.normal(size=10 * n) * np.logspace(0, 2.5, d)[columns], columns, ends), shape=(n, d))
    y = rng.normal(size=n)
    Ridge(alpha=1e6).fit(X[:100], y[:100])
"""

SCRIPT = """
    import json, time, sys
    import summula
    from summula.linear_model import LinearRegression, Ridge
    from summula.preprocessing import StandardScaler
    {data}
    small, target = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
    expected = LinearRegression().fit(small, target).coef_.tolist()
    model = {model}
    print("ready", flush=True)
    try:
        with summula.engine("{engine}"):
            model.fit(X, y)
        how = "finished"
    except KeyboardInterrupt:
        how = "interrupted"
    ended = time.time()
    import threading
    print(json.dumps(dict(
        how=how,
        ended=ended,
        fitted=sorted(name for name in vars(model) if name.endswith("_")),
        works=LinearRegression().fit(small, target).coef_.tolist() == expected,
        threads=[thread.name for thread in threading.enumerate() if "summula" not in thread.name],
    )))
"""


def interrupt(data: str, model: str, engine: str = "threads") -> tuple[dict[str, Any], float]:
    """Start a fit, press Ctrl-C after a second; what the script says, and how long it took to end the fit."""
    script = textwrap.dedent(SCRIPT).format(data=textwrap.dedent(data), model=model, engine=engine)
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate(timeout=TIMEOUT)[1]
        time.sleep(1.0)
        pressed = time.time()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert process.returncode == 0, error
    said = json.loads(out.splitlines()[-1])
    return said, said["ended"] - pressed


@pytest.mark.parametrize("engine", ["threads", "serial"])
def test_a_long_pass_ends_at_once_and_leaves_nothing(engine: str) -> None:
    said, seconds = interrupt(DENSE, "Ridge()", engine)
    assert said["how"] == "interrupted"
    assert seconds < LIMIT
    assert said["fitted"] == []
    assert said["works"]
    assert said["threads"] == ["MainThread"]


def test_a_long_iteration_ends_at_once_and_keeps_the_best_model() -> None:
    said, seconds = interrupt(SPARSE, "LinearRegression(tol=1e-12)")
    assert said["how"] == "interrupted"
    assert seconds < LIMIT
    assert "coef_" in said["fitted"]
    assert "certificate_" in said["fitted"]
    assert said["works"]
