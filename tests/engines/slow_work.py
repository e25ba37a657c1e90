"""Work that waits or fails, for workers to import."""

from __future__ import annotations

import os
import time
from typing import Any


class Gate:
    """Work that waits for a signal from a test, by files, because workers are other processes.

    `row` is where the part begins that waits; None: every block and part does. `pause` is in seconds, for work that
    goes on by itself.
    """

    def __init__(self, folder: Any, row: int | None = None, pause: float | None = None) -> None:
        self.folder, self.row, self.pause = str(folder), row, pause

    def wait_for(self, name: str, seconds: float = 300.0) -> None:
        """Wait for a file; the limit ends a test that hangs."""
        until = time.monotonic() + seconds
        while not self.has(name):
            if time.monotonic() > until:
                raise TimeoutError(f"{name} did not happen in {seconds} s")
            time.sleep(0.01)

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.folder, name))

    def note(self, name: str) -> None:
        open(os.path.join(self.folder, name), "w").close()

    def open(self) -> None:
        self.note("open")

    def block(self, block: Any) -> Any:
        if len(block):
            self.note("reached")
            if self.pause is None:
                self.wait_for("open")
            else:
                time.sleep(self.pause)
            self.note("passed")
        return block

    def __call__(self, part: Any) -> tuple[int, int]:
        if self.row is None or part.start == self.row:
            self.block([part])
        return part.start, part.stop


def part_range(part: Any) -> tuple[int, int]:
    return part.start, part.stop


def column_sums(part: Any) -> Any:
    return sum(chunk.X.sum(axis=0) for chunk in part.chunks())


def square(k: int) -> int:
    return k * k


def environment_of_a_fit(rows: int) -> tuple[int, str, int]:
    """Number of threads that a fit in a worker may use, its environment, and the threads that exist after it."""
    import numpy as np

    from summula.core.engine import threads
    from summula.linear_model import LinearRegression

    X = np.random.default_rng(0).normal(size=(rows, 5))
    LinearRegression().fit(X, X[:, 0])
    return threads.thread_count(), os.environ.get("OMP_NUM_THREADS", ""), threads._pool_size


def fit_a_collection(rows: int) -> Any:
    """A fit on a Dask array from inside a task, on the cluster the task is on."""
    import dask.array as da

    from summula.linear_model import LinearRegression

    X = da.arange(4 * rows, chunks=4 * rows // 3, dtype=float).reshape(rows, 4) % 7
    return LinearRegression().fit(X, X[:, 0]).coef_


def fit_by_engine(rows: int) -> Any:
    """A fit on an array from inside a task, on the cluster the task is on."""
    import numpy as np
    from distributed import get_client

    import summula
    from summula.linear_model import LinearRegression

    X = np.arange(4.0 * rows).reshape(rows, 4) % 7
    with summula.engine(get_client(), chunk_rows=100):
        return LinearRegression().fit(X, X[:, 0]).coef_


class Fragile:
    """Raises at the part that begins at `row`: an error of some kind, the first few times in each worker."""

    def __init__(self, error: BaseException, row: int, folder: str | None = None, times: int = 10**9) -> None:
        self.error, self.row, self.folder, self.times = error, row, folder, times

    def __call__(self, part: Any) -> tuple[int, int]:
        if part.start == self.row:
            if self.folder is not None:
                tries = len(os.listdir(self.folder))
                open(os.path.join(self.folder, str(tries)), "w").close()
                if tries >= self.times:
                    return part.start, part.stop
            raise self.error
        return part.start, part.stop


class Deadly:
    """Ends the process of the worker at the part that begins at `row`."""

    def __init__(self, row: int) -> None:
        self.row = row

    def __call__(self, part: Any) -> int:
        if part.start == self.row:
            os._exit(1)
        return int(part.start)


class Peculiar(Exception):
    """An error that cannot be constructed from a message."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(code, where)
