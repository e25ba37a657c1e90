"""Worker groups: barriers, rounds, errors, cancellation, and processors that are shared with others."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import wait

import numpy as np
import pytest

from summula.core.compilation.compile import kernel
from summula.core.engine import threads, worker_group
from summula.core.engine.engine import watched
from summula.core.engine.worker_group import (
    WorkerGroup,
    barrier_wait,
    group_size,
    is_cancelled,
    run_supervised,
    wait_for_round,
)
from summula.core.environment import INITIAL_ENVIRONMENT
from tests.processes import TIMEOUT, environment, run


@pytest.fixture
def machine(monkeypatch):
    """Simulate eight processors, no limits, and no pool yet."""
    monkeypatch.delitem(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_WORKER_GROUP", raising=False)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 8)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_pool_size", 0)
    return monkeypatch


@kernel
def wait_until_cancelled(table, member):
    """Run until the group is cancelled."""
    polls = 0
    while not is_cancelled(table):
        polls += 1
    return polls


class TestBarrier:
    @pytest.mark.parametrize("supervised", [False, True])
    @pytest.mark.parametrize("members", [1, 2, 5])
    def test_what_is_written_before_a_barrier_is_read_after_it(self, machine, members, supervised):
        read = np.zeros((members, 200), np.int64)
        written = np.zeros((members, 8), np.int64)

        def task(table, member):
            for k in range(200):
                written[member, 0] = k + 1
                barrier_wait(table, member)
                read[member, k] = written[:, 0].sum()
                barrier_wait(table, member)

        WorkerGroup(task, members, supervised=supervised).run()
        np.testing.assert_array_equal(read, np.tile(members * np.arange(1, 201), (members, 1)))

    @pytest.mark.parametrize("which", [0, 1, 2])
    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    @pytest.mark.parametrize("supervised", [False, True])
    def test_an_error_of_one_member_ends_the_others(self, machine, which, error, supervised):
        def task(table, member):
            if member == which:
                raise error
            barrier_wait(table, member)

        with pytest.raises(error):
            WorkerGroup(task, 3, supervised=supervised).run()
        WorkerGroup(barrier_wait, 3).run()  # and the next group runs

    def test_two_groups_do_not_wait_for_each_other(self, machine):
        def task(table, member):
            for _ in range(50):
                barrier_wait(table, member)

        callers = [threading.Thread(target=WorkerGroup(task, 8).run, daemon=True) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(TIMEOUT)
        assert not any(caller.is_alive() for caller in callers)

    def test_there_is_no_group_inside_the_pool_or_larger_than_it(self, machine):
        with pytest.raises(RuntimeError, match="of 9 members needs as many threads"):
            WorkerGroup(barrier_wait, 9)
        with pytest.raises(RuntimeError, match="needs as many threads"):
            threads.pool().submit(WorkerGroup, barrier_wait, 2).result(20)

    def test_the_environment_switches_groups_off(self, machine):
        assert group_size() == 8
        assert group_size(3) == 3
        assert threads.pool().submit(group_size).result(20) == 1
        machine.setenv("SUMMULA_WORKER_GROUP", "0")
        assert group_size() == 1


class TestRounds:
    @staticmethod
    def rounds(counts):
        def task(table, member):
            while wait_for_round(table, member):
                barrier_wait(table, member)
                counts[member] += 1
                barrier_wait(table, member)
                if member == 0:
                    return

        return task

    def test_a_persistent_group_is_not_started_again(self, machine):
        counts = np.zeros(3, np.int64)
        machine.setattr(worker_group, "_ROUND_POLLS", 10**9)
        group = WorkerGroup(self.rounds(counts), 3, persistent=True)
        group.run()
        workers = list(group._workers)
        for _ in range(200):
            group.run()
        assert group._workers == workers
        assert counts.tolist() == [201] * 3
        assert not any(worker.done() for worker in workers)
        group.stop()
        assert all(worker.done() for worker in workers)

    def test_members_without_a_round_return_to_the_pool_and_are_started_again(self, machine):
        counts = np.zeros(3, np.int64)
        group = WorkerGroup(self.rounds(counts), 3, persistent=True)
        for k in range(4):
            group.run()
            assert not wait(group._workers, TIMEOUT).not_done
            assert counts.tolist() == [k + 1] * 3

    def test_an_error_ends_the_round_and_not_the_group(self, machine):
        counts, fails = np.zeros(3, np.int64), [False]
        good = self.rounds(counts)

        def task(table, member):
            if fails[0] and member == 0:
                raise KeyboardInterrupt
            good(table, member)

        machine.setattr(worker_group, "_ROUND_POLLS", 10**9)
        group = WorkerGroup(task, 3, persistent=True)
        group.run()
        fails[0] = True
        with pytest.raises(KeyboardInterrupt):
            group.run()
        assert all(worker.done() for worker in group._workers)
        fails[0] = False
        group.run()
        assert counts.tolist() == [2] * 3
        group.stop()

    def test_another_group_replaces_a_persistent_one(self, machine):
        machine.setattr(worker_group, "_ROUND_POLLS", 10**9)
        one, other = (WorkerGroup(self.rounds(np.zeros(3, np.int64)), 3, persistent=True) for _ in range(2))
        one.run()
        other.run()
        assert not wait(one._workers, TIMEOUT).not_done
        other.stop()

    def test_persistent_groups_share_the_pool(self, machine):
        counts = np.zeros((4, 8), np.int64)

        def work(which):
            group = WorkerGroup(self.rounds(counts[which]), 8, persistent=True)
            for _ in range(30):
                group.run()

        callers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(TIMEOUT)
        assert not any(caller.is_alive() for caller in callers)
        np.testing.assert_array_equal(counts, 30)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_child_process_starts_its_own(self, machine):
        counts = np.zeros(2, np.int64)
        machine.setattr(worker_group, "_ROUND_POLLS", 10**9)
        group = WorkerGroup(self.rounds(counts), 2, persistent=True)
        group.run()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks while threads exist
            child = os.fork()
        if child == 0:
            group.run()
            group.stop()
            os._exit(0 if counts.tolist() == [2, 2] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        group.stop()


class TestSupervision:
    """An endless kernel is ended by interrupting the thread that waits for it."""

    @pytest.mark.parametrize("members", [1, 3])
    def test_an_interruption_cancels_the_kernel(self, machine, members):
        class Over(Exception):
            pass

        checks = []

        def check():
            checks.append(1)
            if len(checks) > 2:
                raise Over

        group = WorkerGroup(wait_until_cancelled, members, supervised=True)
        with pytest.raises(Over), watched(check):
            group.run()
        group.run()  # a cancelled group stays so: this returns at once

    def test_the_error_of_a_task_is_raised(self):
        def fail():
            raise LookupError("bins")

        with pytest.raises(LookupError, match="bins"):
            run_supervised([lambda: None, fail], lambda: None)

    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
    def test_ctrl_c_cancels_the_kernel(self):
        script = """
            import os, signal, threading, time
            import numpy as np
            from tests.core.test_worker_group import wait_until_cancelled
            from summula.core.engine.worker_group import WorkerGroup
            wait_until_cancelled(np.ones((3, 8), np.int64), 0)  # compiled
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                WorkerGroup(wait_until_cancelled, 1, supervised=True).run()
            except KeyboardInterrupt:
                print('"interrupted"')
        """
        assert run(script) == "interrupted"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity")
def test_members_that_share_one_processor_do_not_hold_each_other_up():
    # Members that only spun would hold the processor for a time slice each at all of the 20,000 barriers: for minutes.
    script = """
        import os
        import numpy as np
        from summula.core.engine import threads
        from summula.core.compilation.compile import kernel
        from summula.core.engine.worker_group import WorkerGroup, barrier_wait

        threads._cpu_count = lambda: 4

        @kernel
        def task(table, member):
            for _ in range(20_000):
                barrier_wait(table, member)

        task(np.zeros((2, 8), np.int64), 0)  # compiled
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        group = WorkerGroup(task, 4)
        group.run()
        print(group._table[:4, 0].tolist())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "[20000, 20000, 20000, 20000]\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity")
def test_processes_that_share_one_processor_do_not_starve_each_other(tmp_path):
    # Each continues until both have completed 3,000 rounds. Waiting at the two barriers of a round, for two members, takes
    # 0.05 ms of processor time (bar: 3 ms), and 8 ms where members spin through their time slices, whatever else is running.
    script = """
        import os, sys, time
        import numpy as np
        from summula.core.engine import threads
        from summula.core.compilation.compile import kernel
        from summula.core.compilation.intrinsics import load_acquire, store_release
        from summula.core.engine.worker_group import WorkerGroup, barrier_wait

        threads._cpu_count = lambda: 2
        mine = int(sys.argv[2])
        rounds = np.memmap(sys.argv[1], np.int64, "r+").view(np.ndarray)  # of each process; then their microseconds

        @kernel
        def work(table, member, rounds, mine, goal, stop):
            while stop[0] == 0:
                barrier_wait(table, member)
                if member == 0:
                    store_release(rounds, mine, rounds[mine] + 1)
                    stop[0] = rounds[mine] >= goal and load_acquire(rounds, 1 - mine) >= goal
                barrier_wait(table, member)

        def run(members, rounds, goal):
            stop = np.zeros(1, np.int64)
            WorkerGroup(lambda table, member: work(table, member, rounds, mine, goal, stop), members).run()

        run(1, np.zeros(2, np.int64), 0)  # compiled
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        begin = time.process_time_ns()
        run(2, rounds, 3_000)
        rounds[2 + mine] = (time.process_time_ns() - begin) // 1_000
    """
    np.zeros(4, np.int64).tofile(tmp_path / "rounds")
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "rounds")]
    options = {"env": environment(), "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(k)], **options) for k in range(2)]
    try:
        errors = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], errors
    rounds, microseconds = np.fromfile(tmp_path / "rounds", np.int64).reshape(2, 2)
    assert rounds.min() >= 3_000
    assert (microseconds < 3_000 * rounds).all()
