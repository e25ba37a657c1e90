"""Collections, and what is on a cluster, for the tests of Dask."""

from __future__ import annotations

import time
from typing import Any

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client

import summula
from summula.core.estimator.input.validation import as_source
from summula.linear_model import LinearRegression
from tests.contract.compare import fitted_attributes, without_names
from tests.engines.slow_work import Gate
from tests.processes import TIMEOUT

N, D = 5_003, 4
NAMES = [f"column {j}" for j in range(D)]


def assert_nothing_left(client: Client) -> None:
    until = time.monotonic() + TIMEOUT
    while (left := client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    assert not left


def in_memory_of(client: Client, n: int) -> list[Any]:
    """Return the keys on the cluster, once there are n of them; released ones disappear with a delay."""
    for _ in range(6_000):
        held = [key for keys in client.has_what().values() for key in keys]
        if len(held) == n:
            break
        time.sleep(0.05)
    assert len(held) == n
    return held


def attributes(model: Any) -> dict[str, Any]:
    return without_names(fitted_attributes(model))


def unknown(collection: Any) -> Any:
    """Return the same array with unknown block lengths."""
    known = tuple((float("nan"),) * len(collection.chunks[0]) if k == 0 else c for k, c in enumerate(collection.chunks))
    return da.Array(collection.dask, collection.name, known, meta=collection._meta)


def with_empty_partitions(frame: pd.DataFrame | pd.Series, *ends: int) -> Any:
    """A dataframe in partitions that end at these rows; two ends alike make an empty one."""
    lines = [0, *ends, len(frame)]
    parts = [frame.iloc[a:b] for a, b in zip(lines, lines[1:], strict=False)]
    return dd.from_map(lambda k: parts[k], range(len(parts)), meta=frame.iloc[:0])


def frame_of(X: Any, y: Any, w: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES).assign(y=y, w=w)


def threads() -> Any:
    return summula.engine("threads", chunk_rows=300)


def parts_of(X: Any, rows: int = 300) -> list[Any]:
    return as_source(LinearRegression(), X, needs_y=False).plan(rows)


def held(X: Any, gate: Gate, rows: int = 700) -> Any:
    """The rows in blocks that wait at a gate."""
    return da.from_array(X, chunks=(rows, D)).map_blocks(gate.block, meta=X[:0])
