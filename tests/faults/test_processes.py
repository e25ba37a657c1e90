"""Forks, joblib workers and nested fits: no deadlock, no more threads than processors, the same bits."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed

from summula.core.engine import engine as engines
from summula.core.engine import threads
from summula.linear_model import Ridge
from tests.processes import run

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# More values than a short pass has, of which the calling thread computes a part, so that the pool computes all of them.
DATA = """
    import json, os, threading
    import numpy as np
    from summula.core.engine.threads import thread_count
    from summula.linear_model import Ridge

    X = np.random.default_rng(0).normal(size=(300_000, 30))
    y = X.sum(axis=1) + 1.0

    def coefficients():
        return Ridge().fit(X, y).coef_.tobytes().hex()

    def pool_threads():
        return sum(thread.name.startswith("summula") for thread in threading.enumerate())
"""


@needs_fork
def test_a_forked_child_fits_again_with_the_same_bits() -> None:
    output = run(
        DATA
        + """
    expected = coefficients()
    used = pool_threads()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before = pool_threads()
            result = [coefficients() == expected, before, pool_threads()]
            os.write(writing, json.dumps(result).encode())
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    result = json.loads(os.read(reading, 1000))
    print(json.dumps(dict(status=status, child=result, used=used, parent=coefficients() == expected)))
    """
    )
    same, before, after = output["child"]
    assert output["status"] == 0
    assert same
    assert output["parent"]
    assert before == 0, "threads do not survive a fork"
    assert after == output["used"]


@needs_fork
def test_a_fork_in_the_middle_of_a_fit_gives_a_child_that_works() -> None:
    """Another thread forks while the pool works and BLAS is limited to one thread: the child starts with fresh state."""
    output = run(
        DATA
        + """
    from threadpoolctl import threadpool_info

    def blas_threads():
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    expected, before = coefficients(), blas_threads()
    going = threading.Event()

    def keep_fitting():
        while not going.is_set():
            Ridge().fit(X, y)

    busy = threading.Thread(target=keep_fitting)
    busy.start()
    failures = 0
    for _ in range(10):
        child = os.fork()
        if child == 0:
            os._exit(0 if coefficients() == expected and blas_threads() == before else 1)
        failures += os.waitpid(child, 0)[1] != 0
    going.set()
    busy.join()
    print(json.dumps(dict(failures=failures, restored=blas_threads() == before)))
    """
    )
    assert output == {"failures": 0, "restored": True}


@needs_fork
def test_a_multiprocessing_pool_of_forks_fits() -> None:
    output = run(
        DATA
        + """
    import multiprocessing
    expected = coefficients()

    def work(_):
        return coefficients() == expected

    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(json.dumps(pool.map(work, range(4))))
    """
    )
    assert output == [True] * 4


# -------------------------------------------------------------------------------------------------------------- joblib


def training_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 30))
    return X, X @ rng.normal(size=30) + rng.normal(size=100_000)


def fit_in_a_worker(X: Any, y: Any) -> tuple[int, bytes]:
    return threads.thread_count(), Ridge().fit(X, y).coef_.tobytes()


def test_workers_of_joblib_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "SUMMULA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    X, y = training_data()
    expected = Ridge().fit(X, y).coef_.tobytes()
    answers = Parallel(n_jobs=2, backend="loky")(delayed(fit_in_a_worker)(X, y) for _ in range(3))
    assert [count for count, _ in answers] == [1, 1, 1], "as many workers as processors: one thread each"
    assert all(bits == expected for _, bits in answers)


@pytest.mark.usefixtures("four_cpus")
def test_threads_of_joblib_share_one_pool() -> None:
    X, y = training_data()
    expected = Ridge().fit(X, y).coef_.tobytes()
    answers = Parallel(n_jobs=4, backend="threading")(delayed(fit_in_a_worker)(X, y) for _ in range(8))
    assert all(bits == expected for _, bits in answers)
    assert 0 < len(threads.pool()._threads) <= 4


def test_omp_num_threads_caps_the_pool() -> None:
    script = (
        DATA
        + """
    from summula.core.engine import threads
    threads._cpu_count = lambda: 4
    coefficients()
    print(json.dumps([thread_count(), pool_threads()]))
    """
    )
    assert run(script, OMP_NUM_THREADS="1") == [1, 0]
    assert run(script, SUMMULA_NUM_THREADS="1") == [1, 0]
    assert run(script, OMP_NUM_THREADS="3") == [3, 3]


# -------------------------------------------------------------------------------------------------------------- nested


@pytest.mark.usefixtures("four_cpus")
def test_a_fit_inside_the_pool_runs_inline_and_does_not_wait_for_itself() -> None:
    """More nested fits than the pool has threads: waiting for a thread would be a deadlock."""
    X, y = training_data()
    expected = Ridge().fit(X, y).coef_.tobytes()
    tasks = 3 * threads.thread_count()
    fits = engines.ThreadEngine().map_ordered(lambda _: (threads.inside_pool(), fit_in_a_worker(X, y)[1]), range(tasks))
    answers = list(fits)
    assert all(bits == expected for _, bits in answers)
    assert all(inside for inside, _ in answers)


# ------------------------------------------------------------------------------------------------------------- threads


def test_only_the_pool_starts_threads_and_no_more_than_processors() -> None:
    output = run(
        DATA
        + """
    import scipy.linalg                         # BLAS has started its own by now
    np.ones((500, 500)) @ np.ones((500, 500))
    def system_threads():
        return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()
    before, seen = system_threads(), set(threading.enumerate())
    for _ in range(3):
        Ridge().fit(X, y).predict(X)
    names = [thread.name for thread in threading.enumerate() if thread not in seen]
    print(json.dumps(dict(names=names, more=system_threads() - before, count=thread_count())))
    """
    )
    assert all(name.startswith("summula") for name in output["names"])
    assert len(output["names"]) <= output["count"]
    assert output["more"] <= output["count"]


def test_blas_has_its_threads_back_after_a_fit() -> None:
    output = run(
        DATA
        + """
    import scipy.linalg
    from threadpoolctl import threadpool_info
    limits = lambda: [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
    before = limits()
    Ridge().fit(X, y)
    after = limits()
    X[7, 3] = np.nan
    try:
        Ridge().fit(X, y)
    except ValueError:
        pass
    print(json.dumps(before == after == limits()))
    """
    )
    assert output
