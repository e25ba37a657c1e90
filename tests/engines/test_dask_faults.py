"""Dask: errors, lost workers and clusters, Ctrl-C and time limits."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import pytest
from distributed import Client, Future
from sklearn.exceptions import ConvergenceWarning

import summula
from summula import ClusterError, DataError, TimeLimitError
from summula.core.estimator.run import Run
from summula.engines.dask import DaskEngine
from summula.linear_model import LinearRegression, PolynomialRegression, Ridge
from tests.contract.compare import assert_same_bits, fitted_attributes
from tests.contract.registry import wide_sparse
from tests.engines import slow_work
from tests.engines.clusters import D, assert_nothing_left, attributes, held, parts_of, unknown
from tests.engines.slow_work import Gate
from tests.processes import TIMEOUT

# --------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "error",
    [DataError("it is odd"), ZeroDivisionError("it is odd"), TimeoutError("it is odd"), KeyboardInterrupt("it is odd"),
     MemoryError("it is odd"), LookupError("it is odd")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_keeps_its_type_and_names_its_rows(error: BaseException, client: Client, data: Any) -> None:
    engine = DaskEngine(client)
    with pytest.raises(type(error), match=r"^rows 600 to 900: it is odd$"):
        list(engine.map_ordered(slow_work.Fragile(error, 600), parts_of(data[0])))


def test_an_error_of_an_unusual_type_has_a_clear_message(client: Client, data: Any) -> None:
    broken = slow_work.Fragile(slow_work.Peculiar(7, "here"), 600)
    with pytest.raises(RuntimeError, match=r"^rows 600 to 900: Peculiar: \(7, 'here'\)$"):
        list(DaskEngine(client).map_ordered(broken, parts_of(data[0])))


@pytest.mark.parametrize(("error", "tries"), [(OSError("a moment"), 3), (DataError("for good"), 1)])
def test_what_may_pass_is_tried_again(error: Exception, tries: int, client: Client, data: Any, tmp_path: Any) -> None:
    broken = slow_work.Fragile(error, 600, str(tmp_path))
    with pytest.raises(type(error), match="rows 600 to 900"):
        list(DaskEngine(client, retries=2).map_ordered(broken, parts_of(data[0])))
    assert len(os.listdir(tmp_path)) == tries


def test_valid_input_prints_nothing(client: Client, data: Any, tmp_path: Any) -> None:
    broken = slow_work.Fragile(OSError("a moment"), 600, str(tmp_path), times=2)
    values = list(DaskEngine(client).map_ordered(broken, parts_of(data[0])))
    assert values == [slow_work.part_range(part) for part in parts_of(data[0])]


def test_an_error_while_loading_a_block_names_the_rows(client: Client, data: Any) -> None:
    def load(block: Any, block_id: Any = None) -> Any:
        if block_id == (3, 0):
            raise FileNotFoundError("no such file: b3")
        return block

    X = da.from_array(data[0], chunks=(700, D)).map_blocks(load, meta=data[0][:0])
    model = LinearRegression()
    with (
        summula.engine(client, chunk_rows=300),
        pytest.raises(FileNotFoundError, match="rows 2100 to .*no such file: b3"),
    ):
        model.fit(X, data[1])
    assert not fitted_attributes(model)


@contextmanager
def when_reached(gate: Gate, act: Callable[[], Any], *, opens: bool = True) -> Iterator[None]:
    """Do something from another thread when work waits at a gate, which `opens` then, or at the end."""

    def watch() -> None:
        gate.wait_for("reached")
        act()
        if opens:
            gate.open()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        gate.open()
        watcher.join()


def kill_one_worker(client: Client) -> None:
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_killed_during_a_fit_does_not_change_the_result(client: Client, data: Any, gate: Gate) -> None:
    X, y, _ = data
    pids = set(client.run(os.getpid).values())
    with summula.engine(client, chunk_rows=300):
        expected = PolynomialRegression().fit(X, y)
        with when_reached(gate, lambda: kill_one_worker(client)):
            model = PolynomialRegression().fit(held(X, gate), da.from_array(y, chunks=700))
    assert_same_bits(attributes(expected), attributes(model))
    client.wait_for_workers(2, timeout=TIMEOUT)
    assert set(client.run(os.getpid).values()) != pids


@pytest.mark.slow
def test_a_worker_killed_while_it_computes_parts_of_an_array_does_not_change_the_result(
    client: Client, data: Any, gate: Gate
) -> None:
    pids, parts = set(client.run(os.getpid).values()), parts_of(data[0], 500)
    with when_reached(gate, lambda: kill_one_worker(client)):
        values = list(DaskEngine(client).map_ordered(gate, parts))
    assert values == [(part.start, part.stop) for part in parts]
    client.wait_for_workers(2, timeout=TIMEOUT)
    assert set(client.run(os.getpid).values()) != pids


@pytest.mark.slow
def test_a_part_that_kills_its_workers_is_given_up(client: Client, data: Any) -> None:
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    try:
        with pytest.raises(ClusterError, match=r"rows \d+ to \d+: the workers .* died"):
            list(DaskEngine(client, retries=0).map_ordered(slow_work.Deadly(600), parts_of(data[0])))
    finally:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
        client.wait_for_workers(2, timeout=TIMEOUT)


def lose_workers(client: Client) -> None:
    client.cluster.scale(0)


def test_all_workers_lost_is_an_error(own_client: Client, data: Any, gate: Gate) -> None:
    model = LinearRegression()
    with (
        summula.engine(own_client, chunk_rows=300, worker_timeout=1.0),
        when_reached(gate, lambda: lose_workers(own_client), opens=False),
        pytest.raises(ClusterError, match="no workers for 1 s"),
    ):
        model.fit(held(data[0], gate), data[1])
    assert not fitted_attributes(model)


def test_a_cluster_lost_in_an_iteration_leaves_the_best_model(
    own_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = wide_sparse()
    steps, step = [0], Run.step

    def counted(self: Run, task: str = "iteration") -> bool:
        steps[0] += 1
        if steps[0] == 5:
            lose_workers(own_client)
        return step(self, task)

    monkeypatch.setattr(Run, "step", counted)
    model = Ridge()
    with (
        summula.engine(own_client, chunk_rows=1_000, worker_timeout=0.5),
        pytest.raises(ClusterError, match="no workers"),
    ):
        model.fit(X, y)
    assert model.certificate_.verify(X, y)
    assert ((y - model.predict(X)) ** 2).sum() < ((y - y.mean()) ** 2).sum()


@pytest.mark.parametrize("how", ["cluster", "client"])
def test_a_scheduler_closed_in_mid_fit_is_a_clear_error(how: str, own_client: Client, data: Any, tmp_path: Any) -> None:
    model, gate = LinearRegression(), Gate(tmp_path, pause=0.5)  # a cluster that is closed waits for its tasks
    close = own_client.cluster.close if how == "cluster" else own_client.close
    with (
        summula.engine(own_client, chunk_rows=300),
        when_reached(gate, close, opens=False),
        pytest.raises(ClusterError, match="closed or lost"),
    ):
        model.fit(held(data[0], gate, rows=100), data[1])
    assert not fitted_attributes(model)
    with summula.engine(own_client), pytest.raises(ClusterError, match="closed or lost"):
        model.fit(*data[:2])


def test_cancelled_tasks_are_a_clear_error(own_client: Client, data: Any, tmp_path: Any) -> None:
    gate, parts = Gate(tmp_path, row=1_500), parts_of(data[0])
    values = DaskEngine(own_client).map_ordered(gate, parts)
    try:
        next(values)
        gate.wait_for("reached")
        own_client.cancel([Future(key, own_client) for key in list(own_client.futures)])
        with pytest.raises(ClusterError, match="cancelled"):
            list(values)
    finally:
        gate.open()


def test_ctrl_c_ends_a_fit_and_its_tasks(client: Client, data: Any, gate: Gate) -> None:
    model = LinearRegression()
    with summula.engine(client, chunk_rows=300), when_reached(gate, _thread.interrupt_main, opens=False):
        with pytest.raises(KeyboardInterrupt):
            model.fit(held(data[0], gate), data[1])
        assert not gate.has("passed"), "the fit ended although tasks were under way"
    assert not fitted_attributes(model)
    assert_nothing_left(client)
    with summula.engine(client, chunk_rows=300):
        model.fit(*data[:2])


@pytest.mark.parametrize("known", [True, False], ids=["computed", "counted"])
def test_max_time_holds_while_rows_are(known: bool, client: Client, data: Any, gate: Gate) -> None:
    blocks = held(data[0], gate)
    try:
        with summula.engine(client, chunk_rows=300), pytest.raises(TimeLimitError, match="max_time=0.5"):
            LinearRegression(max_time=0.5).fit(blocks if known else unknown(blocks), data[1])
        assert not gate.has("passed"), "the fit ended although tasks were under way"
    finally:
        gate.open()


def test_max_time_keeps_the_best_model(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide_sparse()
    steps, step = [0], Run.step

    def counted(self: Run, task: str = "iteration") -> bool:
        steps[0] += 1
        if steps[0] == 5:
            self._deadline = 0.0
        return step(self, task)

    monkeypatch.setattr(Run, "step", counted)
    with summula.engine(client, chunk_rows=1_000), pytest.warns(ConvergenceWarning, match="max_time"):
        model = Ridge(max_time=60.0).fit(X, y)
    assert model.certificate_.verify(X, y)
