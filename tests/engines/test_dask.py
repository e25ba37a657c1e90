"""Dask: the engine, and fits inside workers."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse

import summula
from summula import ParameterError, TimeLimitError
from summula.core.engine.engine import Engine, SerialEngine, ThreadEngine, watched
from summula.core.estimator.input.validation import as_source
from summula.engines.dask import DaskEngine
from summula.engines.dask_memory import keeping_freed_memory
from summula.linear_model import LinearRegression
from summula.preprocessing import StandardScaler
from tests.contract.compare import assert_same_bits
from tests.engines import slow_work
from tests.engines.clusters import D, N, attributes, parts_of
from tests.processes import TIMEOUT, run

# -------------------------------------------------------------------------------------------------------- the engine


def test_values_come_in_order_and_sums_by_position(client: Client) -> None:
    engine = DaskEngine(client)
    assert isinstance(engine, Engine)
    assert list(engine.map_ordered(slow_work.square, range(50))) == [k * k for k in range(50)]
    assert list(engine.map_ordered(slow_work.square, [])) == []
    expected = SerialEngine().map_reduce(str, range(13), lambda a, b: f"({a}{b})")
    ticks: list[int] = []
    assert engine.map_reduce(str, range(13), lambda a, b: f"({a}{b})", on_part=lambda: ticks.append(1)) == expected
    assert len(ticks) == 13


@pytest.mark.parametrize(("n_jobs", "most"), [(None, 8), (-1, 8), (1, 1), (3, 3), (99, 8)])
def test_few_tasks_are_sent_ahead(
    n_jobs: int | None, most: int, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, send = [0], Client.map

    def counted(self: Client, *args: Any, **options: Any) -> Any:
        futures = send(self, *args, **options)
        sent[0] += len(futures)
        return futures

    monkeypatch.setattr(Client, "map", counted)
    taken = 0
    for _ in DaskEngine(client).map_ordered(slow_work.square, range(40), n_jobs=n_jobs):
        assert sent[0] - taken <= 2 * most  # running tasks, and those just submitted
        taken += 1
    assert taken == sent[0] == 40


def test_a_large_function_is_sent_once(client: Client, data: Any) -> None:
    weights = np.arange(400_000.0)

    def weighed(part: Any) -> float:
        return float(weights[part.start])

    assert list(DaskEngine(client).map_ordered(weighed, parts_of(data[0]))) == list(range(0, N, 300))


def test_a_part_carries_its_own_rows_without_a_warning(client: Client) -> None:
    X = np.ones((70_000, 40))  # parts of 11 MB: more than Dask likes to see in a graph
    with summula.engine(client, chunk_rows=35_000):
        assert StandardScaler().fit(X).n_samples_seen_ == 70_000


@pytest.mark.parametrize(
    ("options", "message"),
    [({"chunk_rows": 0}, "chunk_rows"), ({"retries": -1}, "retries"), ({"retries": 1.5}, "retries"),
     ({"worker_timeout": 0}, "worker_timeout"), ({"rows": 3}, "no option 'rows'")],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str, client: Client) -> None:
    with pytest.raises(ParameterError, match=message), summula.engine(client, **options):
        pass


def test_a_cluster_is_not_a_client(client: Client) -> None:
    with pytest.raises(ParameterError, match=r"Client\(cluster\)"), summula.engine(client.cluster):
        pass


def test_a_choice_of_threads_holds_for_collections_on_a_cluster(client: Client, data: Any) -> None:
    with client.as_current():
        X = da.from_array(data[0], chunks=(700, D)).persist()
        with summula.engine("threads", chunk_rows=300):
            expected, model = StandardScaler().fit(data[0]), StandardScaler().fit(X)
            assert isinstance(as_source(StandardScaler(), X, needs_y=False).engine(), ThreadEngine)
        assert_same_bits(attributes(expected), attributes(model))
        del X


# ------------------------------------------------------------------------------------------------------- inside workers


def test_a_fit_inside_a_worker_keeps_to_its_thread(client: Client) -> None:
    threads, told, pool = client.submit(slow_work.environment_of_a_fit, 50_000, pure=False).result(timeout=TIMEOUT)
    assert (threads, told) == (1, "1")
    assert pool == 0


def test_a_local_cluster_leaves_this_process_its_threads() -> None:
    told, ours, theirs = run("""
    import json, os
    import summula
    from distributed import Client, LocalCluster

    def count(processors):
        from summula.core.engine import threads

        threads._cpu_count = lambda: processors
        return threads.thread_count()

    options = dict(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0")
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        print(json.dumps([os.environ["OMP_NUM_THREADS"], count(8), client.submit(count, 8).result()]))
    """)
    assert told == "1", "what Dask leaves behind; without it there is no need for a copy of the environment"
    assert (ours, theirs) == (8, 1)


def test_a_fit_inside_a_worker_may_use_the_cluster(own_client: Client) -> None:
    # As many tasks as there are threads, each waiting for others.
    futures = own_client.map(slow_work.fit_a_collection, [600, 700, 800], pure=False)
    for coef in own_client.gather(futures):
        np.testing.assert_allclose(coef, [1, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("fit", [slow_work.fit_a_collection, slow_work.fit_by_engine])
def test_a_fit_inside_a_worker_waits_for_the_connection(
    fit: Any, own_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client of a worker is created by the first task that requests it, and reused by the second.
    connect = Client._ensure_connected

    async def slowly(self: Client, timeout: Any = None) -> None:
        await asyncio.sleep(0.5)
        await connect(self, timeout=timeout)

    monkeypatch.setattr(Client, "_ensure_connected", slowly)
    futures = own_client.map(fit, [600, 700], pure=False)
    for coef in own_client.gather(futures):
        np.testing.assert_allclose(coef, [1, 0, 0, 0], atol=1e-12)


def test_a_fit_that_ends_in_mid_transfer_takes_nothing_from_another(
    own_client: Client, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Concurrent requests of one client are one request to distributed.
    engine, parts = DaskEngine(own_client), parts_of(data[0], 1_000)
    transfer, gather, left, asked = Client._gather_remote, Client.gather, threading.Event(), []

    async def slowly(self: Client, *args: Any) -> Any:
        while not left.is_set():
            await asyncio.sleep(0.01)
        return await transfer(self, *args)

    def counted(self: Client, *args: Any, **options: Any) -> Any:
        asked.append(threading.current_thread())
        return gather(self, *args, **options)

    def stop() -> None:
        if len(asked) > 1:  # the other fit waits for the same request
            raise TimeLimitError("no time left")

    def impatient() -> None:
        try:
            with pytest.raises(TimeLimitError), watched(stop):
                list(engine.map_ordered(slow_work.part_range, parts))
        finally:
            left.set()

    monkeypatch.setattr(Client, "_gather_remote", slowly)
    monkeypatch.setattr(Client, "gather", counted)
    other = threading.Thread(target=impatient)
    other.start()
    while not asked:
        time.sleep(0.01)
    values = list(engine.map_ordered(slow_work.part_range, parts))
    other.join()
    assert values == [(part.start, part.stop) for part in parts]


def test_waiting_for_tasks_does_not_change_what_dask_uses(own_client: Client, data: Any) -> None:
    before = dask.config.get("scheduler", None)

    def scheduler(part: Any) -> Any:
        time.sleep(0.2)  # the engine waits meanwhile
        return dask.config.get("scheduler", None)

    assert list(DaskEngine(own_client).map_ordered(scheduler, parts_of(data[0], 2_000))) == [before] * 3


def test_blas_has_one_thread_in_a_task(own_client: Client, data: Any) -> None:
    from threadpoolctl import threadpool_info

    def threads(part: Any) -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    assert list(DaskEngine(own_client).map_ordered(threads, parts_of(data[0], 2_000))) == [{1}] * 3


def test_memory_is_kept_in_a_task_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from summula.engines import dask_memory

    settings: list[int] = []
    monkeypatch.setattr(dask_memory, "_set", lambda trim, mmap: settings.append(trim))
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with keeping_freed_memory():
        pass
    assert settings == []
    monkeypatch.setattr(dask_memory, "_trim_setting", lambda: 65_536)
    with keeping_freed_memory(), keeping_freed_memory():
        assert settings == [dask_memory._KEPT]
    assert settings == [dask_memory._KEPT, 65_536]


def test_the_measured_size_of_rows_is_that_of_their_arrays(data: Any) -> None:
    from dask.sizeof import sizeof

    X, y, w = data
    for rows, size in [(X, X.nbytes), (tuple(X.T), X.nbytes), (pd.DataFrame(X), X.nbytes)]:
        source = as_source(LinearRegression(), pd.DataFrame(np.column_stack(rows)) if isinstance(rows, tuple) else rows,
                           y, w, needs_y=True)  # fmt: skip
        assert sizeof(source) == size + y.nbytes + w.nbytes
    csr = sparse.csr_array(X)
    source = as_source(LinearRegression(), csr, y, needs_y=True)
    assert sizeof(source) == csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes + y.nbytes
