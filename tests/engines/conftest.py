"""Data of the tests of Dask, and clusters to compute on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

import summula
from summula.core.data import chunks
from tests.engines.clusters import D, N, assert_nothing_left
from tests.engines.slow_work import Gate
from tests.processes import TIMEOUT


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 1.0, (N, D))
    return X, X @ rng.normal(size=D) + rng.normal(size=N), rng.integers(0, 3, N).astype(float)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one chunk, so that small data make many of them."""
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)


@pytest.fixture
def client(dask_client: Client) -> Iterator[Client]:
    """The cluster, with both workers; no data may remain on it afterwards."""
    dask_client.wait_for_workers(2, timeout=TIMEOUT)
    yield dask_client
    assert_nothing_left(dask_client)


@pytest.fixture(params=["threads", "cluster"])
def place(request: pytest.FixtureRequest, dask_client: Client) -> Iterator[str]:
    """Where a fit on collections is computed: in threads, or by a client given to engine()."""
    if request.param == "threads":
        with summula.engine("threads", chunk_rows=300):
            yield request.param
        return
    dask_client.wait_for_workers(2, timeout=TIMEOUT)
    with summula.engine(dask_client, chunk_rows=300):
        yield request.param
    assert_nothing_left(dask_client)


@pytest.fixture
def own_client() -> Iterator[Client]:
    """A cluster in this process, to be broken."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def gate(tmp_path: Any) -> Gate:
    return Gate(tmp_path)
