"""Threads: their number, nesting, and one BLAS thread while the pool works."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  loads SciPy's BLAS before the first guard
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from summula.core.engine import threads
from summula.core.engine.engine import SerialEngine, ThreadEngine, map_batches, reading_ahead
from summula.core.engine.threads import inside_pool, one_blas_thread, pool, solving, thread_count
from summula.core.environment import INITIAL_ENVIRONMENT


@pytest.fixture
def machine(monkeypatch):
    """Simulate eight processors, no limits, and no pool yet."""
    monkeypatch.delitem(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 8)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_pool_size", 0)
    return monkeypatch


@pytest.fixture
def two_blas_threads():
    """BLAS in the user's configuration."""
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


# ------------------------------------------------------------------------------------------------------------ how many


def test_all_processors_by_default(machine):
    assert thread_count() == 8


@pytest.mark.parametrize(
    ("n_jobs", "count"), [(None, 8), (1, 1), (3, 3), (8, 8), (50, 8), (-1, 8), (-2, 7), (-50, 1), (0, 1)]
)
def test_n_jobs_counts_as_in_joblib(machine, n_jobs, count):
    assert thread_count(n_jobs) == count


@pytest.mark.parametrize(
    "variable", [(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS"), (os.environ, "SUMMULA_NUM_THREADS")], ids=lambda v: v[1]
)
@pytest.mark.parametrize(
    ("text", "count"), [("3", 3), (" 3 ", 3), ("3,2", 3), ("100", 8), ("0", 1), ("", 8), ("many", 8), ("-2", 8)]
)
def test_the_environment_caps_it(machine, variable, text, count):
    machine.setitem(*variable, text)
    assert thread_count() == count


def test_the_smallest_cap_holds(machine):
    machine.setitem(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS", "5")
    machine.setenv("SUMMULA_NUM_THREADS", "3")
    assert thread_count() == 3
    assert thread_count(2) == 2
    assert thread_count(-1) == 3
    assert thread_count(-2) == 2
    assert thread_count(6) == 3


def test_the_cgroup_limits_the_processors():
    import joblib

    assert threads._cpu_count() == joblib.cpu_count()


# ------------------------------------------------------------------------------------------------------------ the pool


def test_there_is_one_pool(machine):
    assert pool() is pool()
    assert pool()._max_workers == 8


def test_the_pool_grows_with_the_cap_and_does_not_shrink(machine):
    machine.setenv("SUMMULA_NUM_THREADS", "2")
    small = pool()
    machine.setenv("SUMMULA_NUM_THREADS", "4")
    large = pool()
    assert large is not small
    assert large._max_workers == 4
    assert small.submit(int, "7").result() == 7, "references to the old pool may still use it"
    machine.setenv("SUMMULA_NUM_THREADS", "1")
    assert pool() is large


def test_a_thread_knows_whether_it_is_of_the_pool(machine):
    assert not inside_pool()
    assert pool().submit(inside_pool).result()
    seen = []
    other = threading.Thread(target=lambda: seen.append(inside_pool()))
    other.start()
    other.join()
    assert seen == [False]


# ---------------------------------------------------------------------------------------------------------------- BLAS


@pytest.mark.usefixtures("two_blas_threads")
class TestOneBlasThread:
    def test_inside_it_is_one_and_afterwards_as_before(self):
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_blocks_nest(self):
        with one_blas_thread():
            with one_blas_thread():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_an_error_puts_it_back(self):
        with pytest.raises(LookupError), one_blas_thread():
            raise LookupError
        assert set(blas_threads()) == {2}

    def test_blocks_of_several_threads_share_the_limit(self):
        entered, leave = threading.Barrier(2), threading.Event()

        def hold():
            with one_blas_thread():
                entered.wait(600)
                leave.wait(600)

        other = threading.Thread(target=hold)
        other.start()
        entered.wait(600)
        with one_blas_thread():
            pass
        assert set(blas_threads()) == {1}, "the other block is still open"
        leave.set()
        other.join()
        assert set(blas_threads()) == {2}

    def test_the_last_to_leave_restores_the_limit(self):
        entered, leave, left, end = (threading.Event() for _ in range(4))

        def first():
            with one_blas_thread():
                entered.set()
                leave.wait(600)
            left.set()
            end.wait(600)  # alive: threadpoolctl listens to the thread that set the limit as long as it lives

        other = threading.Thread(target=first)
        other.start()
        entered.wait(600)
        with one_blas_thread():
            leave.set()
            left.wait(600)
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}
        end.set()
        other.join()

    @pytest.mark.parametrize("where", [SerialEngine(), ThreadEngine(), ThreadEngine(2)], ids=repr)
    def test_parts_see_one_blas_thread_and_the_caller_keeps_his(self, machine, where):
        seen = list(where.map_ordered(lambda k: set(blas_threads()), range(6)))
        assert seen == [{1}] * 6
        assert set(blas_threads()) == {2}

    def test_it_is_put_back_after_a_part_has_failed(self, machine):
        def fail(k):
            raise LookupError

        for where in (SerialEngine(), ThreadEngine()):
            with pytest.raises(LookupError):
                where.map_reduce(fail, range(6), int.__add__)
            assert set(blas_threads()) == {2}

    def test_a_limit_that_was_set_meanwhile_is_kept(self):
        with one_blas_thread(), one_blas_thread():
            ThreadpoolController().select(user_api="blas").limit(limits=3)
        assert set(blas_threads()) == {3}

    def test_large_solves_have_all_threads_meanwhile(self):
        with one_blas_thread():
            with solving(999):
                assert set(blas_threads()) == {1}
            with solving(1_000):
                assert set(blas_threads()) == {2}
                with one_blas_thread():
                    assert set(blas_threads()) == {1}
                assert set(blas_threads()) == {2}
            assert set(blas_threads()) == {1}
            with pytest.raises(LookupError), solving(1_000):
                raise LookupError
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_large_solves_do_not_lift_the_limit_of_another_thread(self):
        entered, leave = threading.Event(), threading.Event()

        def hold():
            with one_blas_thread():
                entered.set()
                leave.wait(600)

        other = threading.Thread(target=hold)
        other.start()
        entered.wait(600)
        with one_blas_thread(), solving(1_000):
            assert set(blas_threads()) == {1}
        leave.set()
        other.join()
        assert set(blas_threads()) == {2}

    def test_the_limit_of_another_thread_ends_that_of_a_large_solve(self):
        def limited():
            with one_blas_thread():
                seen.append(set(blas_threads()))

        seen: list = []
        with one_blas_thread():
            with solving(1_000):
                other = threading.Thread(target=limited)
                other.start()
                other.join()
            assert set(blas_threads()) == {1}
        assert seen == [{1}]
        assert set(blas_threads()) == {2}

    def test_blas_has_one_thread_throughout_a_fit(self, monkeypatch):
        """Its threads keep spinning after a call, and compete with those of the pool."""
        from summula.decomposition import FactorAnalysis
        from summula.decomposition.factors import likelihood

        solved = likelihood.linalg.cho_factor
        seen = []

        def watched(*given, **options):
            seen.extend(blas_threads())
            return solved(*given, **options)

        monkeypatch.setattr(likelihood.linalg, "cho_factor", watched)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(9_000, 2)) @ rng.normal(size=(2, 20)) + rng.normal(size=(9_000, 20))
        FactorAnalysis(2).fit(X)
        assert set(seen) == {1}

    def test_a_fit_leaves_blas_as_it_was(self):
        from summula.linear_model import LinearRegression

        X = np.random.default_rng(0).normal(size=(200, 3))
        LinearRegression().fit(X, X[:, 0])
        assert set(blas_threads()) == {2}


class Watched:
    """A task that counts how many of its kind run, and records the number of BLAS threads."""

    def __init__(self):
        self.running, self.done, self._lock = 0, 0, threading.Lock()

    def __call__(self, k):
        with self._lock:
            self.running += 1
        seen = set(blas_threads())
        with self._lock:
            self.running -= 1
            self.done += 1
        return k, seen


@pytest.mark.usefixtures("two_blas_threads")
class TestBatchesForTheUser:
    """Between two batches the process is the user's: nothing runs, and BLAS has the user's number of threads."""

    @pytest.fixture(params=[SerialEngine(), ThreadEngine(), ThreadEngine(2), ThreadEngine(1)], ids=repr)
    def where(self, request, machine):
        return request.param

    def test_nothing_runs_while_the_user_has_a_batch(self, where):
        task, order = Watched(), []
        for k, seen in map_batches(where, task, range(40)):
            assert seen == {1}
            assert task.running == 0
            assert task.done <= k + 16, "computed ahead by at most a group"
            assert set(blas_threads()) == {2}
            order.append(k)
        assert order == list(range(40))

    def test_a_limit_the_user_sets_in_the_loop_stays(self, where):
        controller = ThreadpoolController().select(user_api="blas")
        for k, seen in map_batches(where, Watched(), range(40)):
            assert seen == {1}
            if k == 3:
                controller.limit(limits=3)
            assert set(blas_threads()) == {2 if k < 3 else 3}
        assert set(blas_threads()) == {3}

    def test_an_iterator_that_is_closed_or_forgotten_leaves_nothing(self, where):
        for leave in ("close", "forget", "raise"):
            task = Watched()
            batches = map_batches(where, task, range(40))
            next(batches)
            if leave == "close":
                batches.close()
            elif leave == "raise":
                with pytest.raises(KeyError):
                    batches.throw(KeyError)
            del batches
            gc.collect()
            assert task.running == 0
            assert task.done <= 16
            assert set(blas_threads()) == {2}

    def test_an_iterator_forgotten_in_another_thread(self, where):
        held = [map_batches(where, Watched(), range(40))]
        next(held[0])
        other = threading.Thread(target=held.clear)
        other.start()
        other.join()
        assert set(blas_threads()) == {2}
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_iterators_nest(self, where):
        pairs = []
        for a, _ in map_batches(where, Watched(), range(6)):
            for b, seen in map_batches(where, Watched(), range(6)):
                assert seen == {1}
                assert set(blas_threads()) == {2}
                pairs.append((a, b))
        assert pairs == [(a, b) for a in range(6) for b in range(6)]

    def test_an_error_comes_after_the_batches_before_it(self, where):
        def fail(k):
            if k == 5:
                raise LookupError
            return k

        batches, seen = map_batches(where, fail, range(40)), []
        for _ in range(5):
            seen.append(next(batches))
            assert set(blas_threads()) == {2}
        with pytest.raises(LookupError):
            next(batches)
        assert seen == list(range(5))
        assert set(blas_threads()) == {2}

    def test_a_writer_of_files_may_compute_ahead(self, where):
        with reading_ahead():
            assert [k for k, seen in map_batches(where, Watched(), range(40)) if seen == {1}] == list(range(40))
        assert set(blas_threads()) == {2}


def test_predictions_of_a_scan_leave_blas_to_the_loop(machine, two_blas_threads, tmp_path):
    """Through the public interface: a linear model, a scaler, and a table model, on files of many batches."""
    import pyarrow as pa
    from pyarrow import parquet

    import summula
    from summula.linear_model import LinearRegression
    from summula.preprocessing import StandardScaler, TableEncoder

    X = np.random.default_rng(0).normal(size=(30_000, 3))
    parquet.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)}), tmp_path / "x.parquet")
    files = summula.scan(tmp_path / "x.parquet")
    with summula.engine("threads", chunk_rows=1_000):
        predictions = LinearRegression().fit(files, "x0").predict(files)
        for batches in (predictions, StandardScaler().fit(files).transform(files), TableEncoder().fit_transform(files)):
            rows = 0
            for batch in batches:
                assert set(blas_threads()) == {2}
                rows += len(batch)
            assert rows == len(X)


def test_tasks_run_together_and_answer_in_order(monkeypatch):
    monkeypatch.setenv("SUMMULA_NUM_THREADS", "2")
    names = threads.together([lambda k=k: (k, threading.current_thread().name) for k in range(3)])
    assert [k for k, _ in names] == [0, 1, 2]
    assert names[2][1] == threading.current_thread().name
    assert threads.together([lambda: 5]) == [5]


@pytest.mark.parametrize("which", [0, 1])
def test_an_error_of_a_task_is_raised_when_all_have_ended(which):
    ended = []

    def task(k):
        if k == which:
            raise KeyError(k)
        ended.append(k)

    with pytest.raises(KeyError):
        threads.together([lambda: task(0), lambda: task(1)])
    assert ended == [1 - which]


def test_together_inside_the_pool_does_not_wait_for_itself():
    inner = threads.pool().submit(lambda: threads.together([lambda: 1, lambda: 2])).result(timeout=600)
    assert inner == [1, 2]
