"""A local Dask cluster: the overhead of a pass on two worker processes instead of two threads.

`dask-pass` reads the same file in the same 64 parts on the cluster and in threads. Its result is valid only if it is
bit-identical to that of the fit to the array in memory. `dask-overhead` submits 64 empty tasks: its time is the
overhead of a pass; the target is 0.3 s.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.streams import TARGET, Files, _table, blocks
from benchmarks.workload import Contender, FitWorkload, Quality

PARTS = 64
PART_ROWS = 40_960  # of 50 columns: a step of the grid, and here a row group


class Groups(Files):
    """A Parquet file with a row group for every part, and the fit to the same rows in memory."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__("dask-pass", rows, columns, _write)
        self.paths = [path for path in self.paths if path.endswith(".parquet")]
        self.bits = np.load(self.folder / "fit.npy").tobytes()


def _write(folder: Path, rows: int, columns: int) -> None:
    from pyarrow import parquet

    from summula.linear_model import LinearRegression

    X, y = np.empty((rows, columns)), np.empty(rows)
    end = 0
    for block, values in blocks(rows, columns):
        start, end = end, end + len(block)
        X[start:end], y[start:end] = block, values
    np.save(folder / "fit.npy", _numbers(LinearRegression().fit(X, y)))
    groups = [slice(start, start + PART_ROWS) for start in range(0, rows, PART_ROWS)]
    schema = _table(X[:1], y[:1]).schema
    with parquet.ParquetWriter(folder / "rows.parquet", schema, compression="none") as writer:
        for group in groups:
            writer.write_table(_table(X[group], y[group]))


def _numbers(model: Any) -> np.ndarray:
    return np.append(model.coef_, model.intercept_)


@functools.cache
def _client() -> Any:
    """Two worker processes, which live as long as this process."""
    import atexit

    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    client = Client(cluster, set_as_default=False)
    atexit.register(cluster.close)
    atexit.register(client.close)  # handlers registered last run first
    return client


# ---------------------------------------------------------------------------------------------------------- contenders


def _fit(engine: Callable[[], Any]) -> Callable[[], Callable[[Groups], np.ndarray]]:
    def load() -> Callable[[Groups], np.ndarray]:
        import summula
        from summula.linear_model import LinearRegression

        where = engine()

        def work(files: Groups) -> np.ndarray:
            with summula.engine(where):
                return _numbers(LinearRegression().fit(summula.scan(files.paths), TARGET))

        return work

    return load


def _sum_by_engine() -> Callable[[range], int]:
    import summula

    client = _client()

    def work(numbers: range) -> int:
        with summula.engine(client) as engine:
            return engine.map_reduce(_same, numbers, _add)

    return work


def _sum_by_dask() -> Callable[[range], int]:
    client = _client()
    return lambda numbers: sum(client.gather(client.map(_same, numbers, pure=False)))


def _same(number: int) -> int:
    return number


def _add(a: int, b: int) -> int:
    return a + b


# ----------------------------------------------------------------------------------------------------------- workloads


def other_bits(files: Groups, result: np.ndarray) -> float:
    """0 if the fit is bit-identical to that of the array, else 1."""
    return float(result.tobytes() != files.bits)


WORKLOADS = (
    FitWorkload(
        name="dask-pass",
        title=f"LinearRegression from Parquet in {PARTS} parts, two Dask workers",
        shape=(PARTS * PART_ROWS, 50),
        quick_shape=(20_000, 50),
        make_data=Groups,
        contenders=(
            Contender("summula, two workers", _fit(_client)),
            Contender("summula, two threads", _fit(lambda: "threads")),
        ),
        quality=Quality(other_bits, "error", tolerance=0.0),
    ),
    FitWorkload(
        name="dask-overhead",
        title=f"a pass of {PARTS} tasks that do nothing, two Dask workers",
        shape=(PARTS, 1),
        quick_shape=(PARTS, 1),
        make_data=lambda rows, columns: range(rows),
        contenders=(
            Contender("summula", _sum_by_engine),
            Contender("dask, map and gather", _sum_by_dask),
        ),
        quality=Quality(lambda numbers, result: float(result != sum(numbers)), "error", tolerance=0.0),
    ),
)
