"""Ctrl-C in a long fit ends it promptly, leaves a complete model or none, and the process continues."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

from tests.processes import PRESS_CTRL_C, accept_ctrl_c, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

SCRIPT = """
import json
import numpy as np
from scipy import sparse
import summula
from summula.core.engine.threads import thread_count
from summula.linear_model import LinearRegression, Ridge
{data}
small, target = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
expected = LinearRegression().fit(small, target).coef_.tolist()
model, ctrl_c = {model}, CtrlC({at}).watch_parts()
with ctrl_c, summula.engine("{engine}"):
    model.fit(X, y)
print(json.dumps(dict(
    ended=ctrl_c.ended,
    after=ctrl_c.after,
    queue=2 * thread_count() if "{engine}" == "threads" else 0,
    fitted=sorted(name for name in vars(model) if name.endswith("_")),
    works=LinearRegression().fit(small, target).coef_.tolist() == expected,
    threads=[thread.name for thread in threading.enumerate() if "summula" not in thread.name],
)))
"""

# 100 parts per pass; windows over one vector, so that they take no memory.
DENSE = """
X = np.lib.stride_tricks.sliding_window_view(np.random.default_rng(0).normal(size=4_100_050), 50)
y = X[:, 0]
"""
# 3 parts per pass, thousands of passes.
SPARSE = """
rng, n, d = np.random.default_rng(0), 450_000, 10_000
columns, ends = rng.integers(0, d, 10 * n, dtype=np.int32), np.arange(0, 10 * n + 1, 10, dtype=np.int32)
X = sparse.csr_array((rng.normal(size=10 * n) * np.logspace(0, 2.5, d)[columns], columns, ends), shape=(n, d))
y = rng.normal(size=n)
"""


def interrupt(data: str, model: str, at: int, engine: str = "threads") -> Any:
    """Send Ctrl-C while a part is computed; return the script's report on the rest of the fit."""
    return run(PRESS_CTRL_C + SCRIPT.format(data=data, model=model, at=at, engine=engine))


@pytest.mark.parametrize("engine", ["threads", "serial"])
def test_a_long_pass_ends_at_once_and_leaves_nothing(engine: str) -> None:
    output = interrupt(DENSE, "Ridge()", at=10, engine=engine)
    assert output["ended"] == "interrupted"
    assert output["after"] <= output["queue"], "parts that were begun already, of 100"
    assert output["fitted"] == []
    assert output["works"]
    assert output["threads"] == ["MainThread"]


@pytest.mark.parametrize("engine", ["threads", "serial"])
def test_a_long_iteration_ends_at_once_and_keeps_the_best_model(engine: str) -> None:
    output = interrupt(SPARSE, "LinearRegression(tol=1e-12)", at=50, engine=engine)
    assert output["ended"] == "interrupted"
    assert output["after"] <= output["queue"]
    assert "coef_" in output["fitted"]
    assert "certificate_" in output["fitted"]
    assert output["works"]


def test_scripts_accept_ctrl_c_where_the_shell_ignores_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        accept_ctrl_c()
        script = """
        import json, os, signal
        try:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            print(json.dumps("interrupted"))
        """
        assert run(script) == "interrupted"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
