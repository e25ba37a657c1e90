"""Shared fixtures: the hypothesis profile, and frames of every library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tests.processes import accept_ctrl_c

# Threads of OpenMP, which scikit-learn's trees use, sleep while they wait: on a loaded machine spinning takes minutes.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The same examples in every run, on every machine; `make explore` draws new ones, and failures become plain tests.
settings.register_profile("fixed", deadline=None, derandomize=True, database=None, print_blob=False)
settings.register_profile("explore", deadline=None, derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_configure(config: pytest.Config) -> None:
    accept_ctrl_c()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest tests: at the end one process would run them while the others are idle.

    These are the comparisons of products, and the examples of a page, which are one test. Then come the tests that need
    a cluster, so that one process of pytest-xdist runs them all and there is only one cluster.
    """
    items.sort(key=lambda item: (not _is_long(item), "dask_client" not in getattr(item, "fixturenames", ())))


def _is_long(item: pytest.Item) -> bool:
    return "products" in item.path.parts or item.path.suffix == ".md"


# ----------------------------------------------------------------------------------------------------------- frames

Columns = Mapping[str, Any]


def pandas_frame(columns: Columns) -> Any:
    return pytest.importorskip("pandas").DataFrame(dict(columns))


def polars_frame(columns: Columns) -> Any:
    return pytest.importorskip("polars").DataFrame(dict(columns))


def pyarrow_frame(columns: Columns) -> Any:
    return pytest.importorskip("pyarrow").table({name: np.ascontiguousarray(c) if isinstance(c, np.ndarray) else c
                                                 for name, c in columns.items()})  # fmt: skip


# --------------------------------------------------------------------------------------------------------- processors


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine with four processors and no limits."""
    from summula.core.engine import threads
    from summula.core.environment import INITIAL_ENVIRONMENT

    monkeypatch.delitem(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cpu_count", lambda: 4)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_pool_size", 0)


# ---------------------------------------------------------------------------------------------------------- clusters


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """A cluster of two processes on this machine; not the default one of Dask, unless a test sets it."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


CONSTRUCTORS = {"pandas": pandas_frame, "polars": polars_frame, "pyarrow": pyarrow_frame}


@pytest.fixture(params=CONSTRUCTORS.keys())
def constructor(request: pytest.FixtureRequest) -> Callable[[Columns], Any]:
    """Function from a dict of columns to a frame; a test that uses it runs once for every library."""
    return CONSTRUCTORS[request.param]
