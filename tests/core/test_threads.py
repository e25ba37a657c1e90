"""The rules of threads: how many, who is inside, and one BLAS thread while the pool works."""

from __future__ import annotations

import os
import threading
import warnings
from concurrent.futures import wait

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  loads SciPy's BLAS before the first guard
from threadpoolctl import threadpool_info, threadpool_limits

from summula.core.engine import threads
from summula.core.engine.engine import SerialEngine, ThreadEngine
from summula.core.engine.team_kernels import called, meet
from summula.core.engine.threads import inside_pool, one_blas_thread, pool, thread_count
from summula.core.environment import FOUND


@pytest.fixture
def machine(monkeypatch):
    """Eight processors, no caps, no pool yet."""
    monkeypatch.delitem(FOUND, "OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 8)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_pool_size", 0)
    return monkeypatch


@pytest.fixture
def two_blas_threads():
    """BLAS as a user has it who never heard of us."""
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


# ------------------------------------------------------------------------------------------------------------ how many


def test_all_processors_unless_told_otherwise(machine):
    assert thread_count() == 8


@pytest.mark.parametrize(
    ("n_jobs", "count"), [(None, 8), (1, 1), (3, 3), (8, 8), (50, 8), (-1, 8), (-2, 7), (-50, 1), (0, 1)]
)
def test_n_jobs_counts_as_in_joblib(machine, n_jobs, count):
    assert thread_count(n_jobs) == count


@pytest.mark.parametrize(
    "variable", [(FOUND, "OMP_NUM_THREADS"), (os.environ, "SUMMULA_NUM_THREADS")], ids=lambda v: v[1]
)
@pytest.mark.parametrize(
    ("text", "count"), [("3", 3), (" 3 ", 3), ("3,2", 3), ("100", 8), ("0", 1), ("", 8), ("many", 8), ("-2", 8)]
)
def test_the_environment_caps_it(machine, variable, text, count):
    machine.setitem(*variable, text)
    assert thread_count() == count


def test_the_smallest_cap_holds(machine):
    machine.setitem(FOUND, "OMP_NUM_THREADS", "5")
    machine.setenv("SUMMULA_NUM_THREADS", "3")
    assert thread_count() == 3
    assert thread_count(2) == 2
    assert thread_count(-1) == 3
    assert thread_count(-2) == 2
    assert thread_count(6) == 3


def test_the_cgroup_is_asked():
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
    assert small.submit(int, "7").result() == 7, "whoever still holds the old pool may use it"
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
                entered.wait(10)
                leave.wait(10)

        other = threading.Thread(target=hold)
        other.start()
        entered.wait(10)
        with one_blas_thread():
            pass
        assert set(blas_threads()) == {1}, "the other block is still open"
        leave.set()
        other.join()
        assert set(blas_threads()) == {2}

    def test_whoever_leaves_last_puts_it_back(self):
        entered, leave, left, end = (threading.Event() for _ in range(4))

        def first():
            with one_blas_thread():
                entered.set()
                leave.wait(10)
            left.set()
            end.wait(10)  # alive: threadpoolctl listens to the thread that set the limit as long as it lives

        other = threading.Thread(target=first)
        other.start()
        entered.wait(10)
        with one_blas_thread():
            leave.set()
            left.wait(10)
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

    def test_a_fit_leaves_blas_as_it_was(self):
        from summula.linear_model import LinearRegression

        X = np.random.default_rng(0).normal(size=(200, 3))
        LinearRegression().fit(X, X[:, 0])
        assert set(blas_threads()) == {2}


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
    inner = threads.pool().submit(lambda: threads.together([lambda: 1, lambda: 2])).result(timeout=20)
    assert inner == [1, 2]


class TestTeam:
    """Members that wait for each other."""

    @pytest.mark.parametrize("members", [1, 2, 5])
    def test_what_is_written_before_a_meeting_is_seen_after_it(self, machine, members):
        seen = np.zeros((members, 200), np.int64)
        written = np.zeros((members, 8), np.int64)

        def task(place, me):
            for turn in range(200):
                written[me, 0] = turn + 1
                meet(place, me)
                seen[me, turn] = written[:, 0].sum()
                meet(place, me)

        threads.Team(task, members).run()
        np.testing.assert_array_equal(seen, np.tile(members * np.arange(1, 201), (members, 1)))

    @pytest.mark.parametrize("which", [0, 1, 2])
    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    def test_if_one_fails_nobody_waits_for_it(self, machine, which, error):
        def task(place, me):
            if me == which:
                raise error
            meet(place, me)

        with pytest.raises(error):
            threads.Team(task, 3).run()
        threads.Team(meet, 3).run()  # and the next team meets

    def test_two_teams_do_not_wait_for_each_other(self, machine):
        def meet_often(place, me):
            for _ in range(50):
                meet(place, me)

        callers = [threading.Thread(target=threads.Team(meet_often, 8).run, daemon=True) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)
        assert not any(caller.is_alive() for caller in callers)

    def test_there_is_no_team_inside_the_pool_or_larger_than_it(self, machine):
        with pytest.raises(RuntimeError, match="cannot meet here"):
            threads.Team(meet, 9)
        with pytest.raises(RuntimeError, match="cannot meet here"):
            threads.pool().submit(threads.Team, meet, 2).result(20)


class TestTeamThatStays:
    """Members that wait a little for the next round."""

    @staticmethod
    def rounds(counts):
        def task(place, me):
            while called(place, me):
                meet(place, me)
                counts[me] += 1
                meet(place, me)
                if me == 0:
                    return

        return task

    def test_it_is_called_again_without_being_hired_again(self, machine):
        counts = np.zeros(3, np.int64)
        machine.setattr(threads, "_STAY", 10**9)
        team = threads.Team(self.rounds(counts), 3, stays=True)
        team.run()
        others = list(team._others)
        for _ in range(200):
            team.run()
        assert team._others == others
        assert counts.tolist() == [201] * 3
        assert not any(other.done() for other in others)
        team.dismiss()
        assert all(other.done() for other in others)

    def test_who_waits_in_vain_goes_and_is_hired_again(self, machine):
        counts = np.zeros(3, np.int64)
        team = threads.Team(self.rounds(counts), 3, stays=True)
        for k in range(4):
            team.run()
            wait(team._others, 30)
            assert all(other.done() for other in team._others)
            assert counts.tolist() == [k + 1] * 3

    def test_an_error_ends_the_round_and_not_the_team(self, machine):
        counts, fails = np.zeros(3, np.int64), [False]
        good = self.rounds(counts)

        def task(place, me):
            if fails[0] and me == 0:
                raise KeyboardInterrupt
            good(place, me)

        machine.setattr(threads, "_STAY", 10**9)
        team = threads.Team(task, 3, stays=True)
        team.run()
        fails[0] = True
        with pytest.raises(KeyboardInterrupt):
            team.run()
        assert all(other.done() for other in team._others)
        fails[0] = False
        team.run()
        assert counts.tolist() == [2] * 3
        team.dismiss()

    def test_another_team_takes_its_place(self, machine):
        machine.setattr(threads, "_STAY", 10**9)
        one, other = (threads.Team(self.rounds(np.zeros(3, np.int64)), 3, stays=True) for _ in range(2))
        one.run()
        other.run()
        assert not wait(one._others, 30).not_done
        other.dismiss()

    def test_two_of_them_share_the_threads_there_are(self, machine):
        counts = np.zeros((4, 8), np.int64)
        machine.setattr(threads, "_STAY", 10**5)

        def work(which):
            team = threads.Team(self.rounds(counts[which]), 8, stays=True)
            for _ in range(30):
                team.run()

        callers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(120)
        assert not any(caller.is_alive() for caller in callers)
        np.testing.assert_array_equal(counts, 30)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_child_process_hires_its_own(self, machine):
        counts = np.zeros(2, np.int64)
        machine.setattr(threads, "_STAY", 10**9)
        team = threads.Team(self.rounds(counts), 2, stays=True)
        team.run()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            child = os.fork()
        if child == 0:
            team.run()
            team.dismiss()
            os._exit(0 if counts.tolist() == [2, 2] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        team.dismiss()
