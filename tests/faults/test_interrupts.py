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

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

# Windows over one long vector: 20 GB to look at, 80 MB to hold, so a pass takes seconds.
DENSE = """
    import numpy as np
    steps = np.random.default_rng(0).normal(size=10_000_000 + 250)
    X = np.lib.stride_tricks.sliding_window_view(steps, 250)
    y = X[:, 0]
"""
# Ten products a second, thousands of steps to go.
SPARSE = """
    import numpy as np
    from scipy import sparse
    rng = np.random.default_rng(0)
    X = sparse.random_array((100_000, 50_000), density=2e-4, rng=rng, format="csr")
    X = sparse.csr_array(X @ sparse.diags_array(np.logspace(0, 5, 50_000)))
    y = rng.normal(size=100_000)
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
def test_a_long_pass_ends_within_a_second_and_leaves_nothing(engine: str) -> None:
    said, seconds = interrupt(DENSE, "Ridge()", engine)
    assert said["how"] == "interrupted"
    assert seconds < 1.0
    assert said["fitted"] == []
    assert said["works"]
    assert said["threads"] == ["MainThread"]


def test_a_long_iteration_ends_within_a_second_and_keeps_the_best_model() -> None:
    said, seconds = interrupt(SPARSE, "LinearRegression(tol=1e-12)")
    assert said["how"] == "interrupted"
    assert seconds < 1.0
    assert "coef_" in said["fitted"]
    assert "certificate_" in said["fitted"]
    assert said["works"]
