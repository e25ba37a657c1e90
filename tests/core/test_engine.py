"""The engine: sums are associated by position, not by completion order; errors stop all tasks."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import summula
from summula.core.engine import threads
from summula.core.engine.engine import (
    Engine,
    SerialEngine,
    ThreadEngine,
    TreeSum,
    check_watch,
    current_engine,
    engine,
)
from summula.core.errors import ParameterError
from summula.linear_model import LinearRegression


class Busy:
    """A task that records how many of its kind run concurrently, and in which threads.

    It waits until `together` of them run, so that a loaded machine gets there too; the limit is for a test that fails.
    """

    def __init__(self, pause=0.005, together=1):
        self.pause, self.together, self.lock, self.met = pause, together, threading.Lock(), threading.Event()
        self.now, self.most, self.started, self.threads = 0, 0, [], set()

    def __call__(self, part):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.started.append(part)
            self.threads.add(threading.current_thread().name)
            if self.now == self.together:
                self.met.set()
        self.met.wait(60)
        time.sleep(self.pause)
        with self.lock:
            self.now -= 1
        return part


def join(a, b):
    """A merge that records its association."""
    return f"({a}{b})"


def tree(values):
    """The same by recursion: the largest power of two smaller than all to the left, the rest to the right."""
    if len(values) == 1:
        return values[0]
    left = 1 << (len(values) - 1).bit_length() - 1
    return join(tree(values[:left]), tree(values[left:]))


# ----------------------------------------------------------------------------------------------------------- the tree


@pytest.mark.parametrize(
    ("letters", "sum_"), [("a", "a"), ("ab", "(ab)"), ("abc", "((ab)c)"), ("abcdefg", "(((ab)(cd))((ef)g))")]
)
def test_tree_sum_associates_by_position(letters, sum_):
    total = TreeSum(join)
    for letter in letters:
        total.push(letter)
    assert total.result() == sum_


@given(st.lists(st.integers(0, 9).map(str), min_size=1, max_size=70))
def test_tree_sum_is_the_balanced_tree(values):
    total = TreeSum(join)
    for value in values:
        total.push(value)
    assert total.result() == tree(values)
    assert total.result() == tree(values), "asking does not change it"


@given(st.lists(st.tuples(st.integers()), min_size=1, max_size=40))
def test_tree_sum_keeps_the_order(values):
    total = TreeSum(tuple.__add__)
    for value in values:
        total.push(value)
    assert total.result() == sum(values, ())


def test_tree_sum_keeps_few_sums_alive():
    total = TreeSum(int.__add__)
    for k in range(1000):
        total.push(k)
        assert len(total.blocks()) <= 10
    assert total.result() == 999 * 500


@given(st.lists(st.integers(0, 9).map(str), min_size=1, max_size=60), st.lists(st.integers(1, 59), max_size=5))
def test_blocks_of_workers_make_the_same_tree(values, cuts):
    whole = TreeSum(join)
    for first, last in itertools.pairwise(sorted({0, *(c for c in cuts if c < len(values)), len(values)})):
        worker = TreeSum(join, first)
        for value in values[first:last]:
            worker.push(value)
        for level, block in worker.blocks():
            whole.push(block, level)
    assert whole.result() == tree(values)


def test_summing_none_raises_a_clear_error():
    with pytest.raises(ValueError, match="over zero parts"):
        TreeSum(join).result()


# ------------------------------------------------------------------------------------------------------- the engines

ENGINES = [SerialEngine(), ThreadEngine(), ThreadEngine(1), ThreadEngine(3), ThreadEngine(-1), ThreadEngine(-2)]


@pytest.mark.usefixtures("four_cpus")
@pytest.mark.parametrize("where", ENGINES, ids=repr)
class TestEveryEngine:
    def test_values_come_in_the_order_of_the_parts(self, where):
        def late_first(k):
            time.sleep(0.002 * (k % 5 == 0))
            return k

        assert list(where.map_ordered(late_first, range(40))) == list(range(40))

    @pytest.mark.parametrize("n", [1, 2, 3, 13])
    def test_sums_are_associated_alike(self, where, n):
        def late_first(k):
            time.sleep(0.001 * (n - k))
            return "abcdefghijklm"[k]

        assert where.map_reduce(late_first, range(n), join) == tree("abcdefghijklm"[:n])

    def test_errors_reach_the_caller_unchanged(self, where):
        def fail(k):
            if k == 3:
                raise LookupError("part three")
            return k

        with pytest.raises(LookupError, match="part three"):
            list(where.map_ordered(fail, range(30)))
        with pytest.raises(LookupError, match="part three"):
            where.map_reduce(fail, range(30), int.__add__)

    def test_of_two_errors_the_first_by_position_is_raised(self, where):
        def fail(k):
            time.sleep(0.01 * (k == 0))
            raise LookupError(k)

        with pytest.raises(LookupError, match=r"^0$"):
            where.map_reduce(fail, range(8), int.__add__)

    def test_on_part_is_called_once_a_part(self, where):
        calls = []
        where.map_reduce(int, range(17), int.__add__, on_part=lambda: calls.append(threading.current_thread()))
        assert calls == [threading.current_thread()] * 17

    @pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
    def test_nothing_runs_after_on_part_has_raised(self, where, error):
        busy, count = Busy(), iter(range(100))

        def stop():
            if next(count) == 2:
                raise error

        with pytest.raises(error):
            where.map_reduce(busy, range(200), int.__add__, on_part=stop)
        assert busy.now == 0
        started = len(busy.started)
        assert started < 20
        time.sleep(0.03)
        assert len(busy.started) == started

    def test_nothing_runs_after_an_error(self, where):
        busy = Busy()

        def fail(k):
            if k == 1:
                raise LookupError
            return busy(k)

        with pytest.raises(LookupError):
            where.map_reduce(fail, range(200), int.__add__)
        assert busy.now == 0
        started = len(busy.started)
        time.sleep(0.03)
        assert len(busy.started) == started < 20

    def test_an_abandoned_stream_stops(self, where):
        busy = Busy()
        stream = where.map_ordered(busy, range(200))
        assert next(stream) == 0
        stream.close()
        assert busy.now == 0
        started = len(busy.started)
        time.sleep(0.02)
        assert len(busy.started) == started < 20

    def test_it_is_an_engine(self, where):
        assert isinstance(where, Engine)


@pytest.mark.usefixtures("four_cpus")
class TestThreads:
    @pytest.mark.parametrize(("n_jobs", "most"), [(None, 4), (-1, 4), (-2, 3), (3, 3), (2, 2), (1, 1), (99, 4)])
    def test_n_jobs_limits_how_many_run_at_once(self, n_jobs, most):
        for where, option in [(ThreadEngine(n_jobs), None), (ThreadEngine(), n_jobs)]:
            busy = Busy(together=most)
            list(where.map_ordered(busy, range(24), n_jobs=option))
            assert busy.most == most

    def test_of_two_limits_the_smaller_holds(self):
        for ours, theirs in [(3, 2), (2, 3)]:
            busy = Busy(together=2)
            list(ThreadEngine(ours).map_ordered(busy, range(24), n_jobs=theirs))
            assert busy.most == 2

    def test_a_cap_set_later_holds_although_the_pool_is_larger(self, monkeypatch):
        list(ThreadEngine().map_ordered(Busy(), range(8)))
        monkeypatch.setenv("SUMMULA_NUM_THREADS", "2")
        busy = Busy(together=2)
        list(ThreadEngine().map_ordered(busy, range(24)))
        assert busy.most == 2

    def test_a_cap_lifted_later_gives_more_threads(self, monkeypatch):
        monkeypatch.setenv("SUMMULA_NUM_THREADS", "2")
        list(ThreadEngine().map_ordered(Busy(), range(8)))
        monkeypatch.delenv("SUMMULA_NUM_THREADS")
        busy = Busy(together=4)
        list(ThreadEngine().map_ordered(busy, range(24)))
        assert busy.most == 4

    def test_a_sum_inside_a_pool_task_runs_in_that_thread(self):
        inner = [Busy(0.001) for _ in range(6)]

        def outer(k):
            assert threads.inside_pool()
            here = threading.current_thread().name
            total = ThreadEngine().map_reduce(inner[k], range(5), int.__add__)
            assert inner[k].threads == {here}
            return total

        assert list(ThreadEngine().map_ordered(outer, range(6))) == [10] * 6

    def test_one_part_runs_in_the_calling_thread(self):
        busy = Busy()
        assert ThreadEngine().map_reduce(busy, [7], int.__add__) == 7
        assert busy.threads == {threading.current_thread().name}

    def test_callers_in_several_threads_share_the_pool(self):
        results = {}

        def call(name):
            results[name] = ThreadEngine().map_reduce(lambda k: f"{k}", range(20), join)

        callers = [threading.Thread(target=call, args=(k,)) for k in range(5)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(timeout=600)
        assert set(results.values()) == {tree([f"{k}" for k in range(20)])}
        assert len(results) == 5


# ------------------------------------------------------------------------------------------------ choosing an engine


def test_threads_are_the_default():
    assert isinstance(current_engine(), ThreadEngine)


def test_engines_nest_and_are_put_back():
    before = current_engine()
    with engine("serial", chunk_rows=7) as outer:
        assert current_engine() is outer
        with engine("threads", n_jobs=2, chunk_rows=9) as inner:
            assert current_engine() is inner
            assert (inner.n_jobs, inner.chunk_rows) == (2, 9)
        assert current_engine() is outer
    assert current_engine() is before


def test_an_error_inside_puts_the_engine_back():
    before = current_engine()
    with pytest.raises(LookupError), engine("serial"):
        raise LookupError
    assert current_engine() is before


def test_an_engine_made_before_is_used_as_it_is():
    made = ThreadEngine(2, chunk_rows=11)
    with summula.engine(made) as chosen:
        assert chosen is made is current_engine()
    with pytest.raises(ParameterError, match="chunk_rows to its constructor"), engine(made, chunk_rows=3):
        pass


@pytest.mark.parametrize("kind", ["thread", "dask", 3, None, object()])
def test_an_invalid_engine_raises_one_sentence(kind):
    with pytest.raises(ParameterError, match="'threads'"), engine(kind):
        pass


@pytest.mark.parametrize(
    ("kind", "options"),
    [("threads", {"chunk_rows": 0}), ("serial", {"chunk_rows": -5}), ("threads", {"chunk_rows": 2.5}),
     ("threads", {"n_jobs": 1.5}), ("serial", {"n_jobs": 2}), ("threads", {"rows": 5})],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(kind, options):
    with pytest.raises(ParameterError, match=next(iter(options))), engine(kind, **options):
        pass


def test_an_engine_of_ones_own_is_used_by_fits():
    class Counting(SerialEngine):
        passes = 0

        def map_ordered(self, *args, **options):
            Counting.passes += 1
            return super().map_ordered(*args, **options)

    X = np.random.default_rng(0).normal(size=(30, 2))
    with engine(Counting(chunk_rows=4)):
        model = LinearRegression().fit(X, X[:, 0])
    assert Counting.passes > 0
    np.testing.assert_allclose(model.coef_, [1, 0], atol=1e-13)


def test_the_choice_belongs_to_the_thread_that_made_it():
    seen = []
    with engine("serial"):
        other = threading.Thread(target=lambda: seen.append(current_engine()))
        other.start()
        other.join()
    assert isinstance(seen[0], ThreadEngine)


@pytest.mark.usefixtures("four_cpus")
def test_one_two_or_four_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 6)), rng.normal(size=5000)
    answers = []
    for where in ("serial", "threads"):
        for n_jobs in (1, 2, 4) if where == "threads" else (None,):
            options = {"n_jobs": n_jobs} if where == "threads" else {}
            with engine(where, chunk_rows=64, **options):
                answers.append(LinearRegression().fit(X, y).coef_.tobytes())
    assert len(set(answers)) == 1


def test_tasks_end_when_their_results_are_not_needed():
    started, stopped = threading.Event(), []

    def task(part):
        if part == 0:
            started.wait(60)
            raise ZeroDivisionError
        started.set()
        try:
            while time.sleep(0.001) is None:
                check_watch()
        except BaseException as error:
            stopped.append(type(error).__name__)
            raise

    with pytest.raises(ZeroDivisionError):
        list(ThreadEngine(2).map_ordered(task, range(2)))
    assert stopped == ["CancelledError"]


@pytest.mark.usefixtures("four_cpus")
class TestShortParts:
    """`map_short`: the calling thread computes parts, too."""

    @pytest.mark.parametrize("n_jobs", [1, 2, 4])
    def test_values_come_in_the_order_of_the_parts(self, n_jobs):
        busy = Busy(together=n_jobs)
        assert list(ThreadEngine().map_short(busy, range(30), n_jobs=n_jobs)) == list(range(30))
        assert busy.most == n_jobs
        assert threading.current_thread().name in busy.threads

    def test_of_several_errors_the_first_by_position_is_raised(self):
        def fail(k):
            time.sleep(0.01 * (k == 1))
            if k:
                raise LookupError(k)

        with pytest.raises(LookupError, match=r"^1$"):
            list(ThreadEngine().map_short(fail, range(30)))

    def test_ctrl_c_in_the_calling_thread_waits_for_the_others_and_starts_nothing_more(self):
        busy, main = Busy(pause=0.02, together=2), threading.current_thread()

        def interrupted(part):
            busy(part)
            if threading.current_thread() is main:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            list(ThreadEngine(2).map_short(interrupted, range(100)))
        assert busy.now == 0
        started = len(busy.started)
        time.sleep(0.05)
        assert len(busy.started) == started < 10

    def test_tasks_of_the_pool_run_inline(self):
        def nested(part):
            return sum(ThreadEngine().map_short(lambda k: k * part, range(5)))

        assert list(ThreadEngine().map_ordered(nested, range(8))) == [10 * k for k in range(8)]
