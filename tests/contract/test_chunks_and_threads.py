"""Promise 6: chunks affect only rounding, threads nothing; a part can be pickled at the cost of its own rows."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import summula
from summula.core.data import chunks
from summula.core.data.labels import Labels
from summula.core.engine import threads
from summula.core.environment import INITIAL_ENVIRONMENT
from summula.core.estimator.input.validation import as_source
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes
from tests.contract.registry import Case, in_turn, over


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one chunk, so that small data make many of them."""
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)


@pytest.fixture
def machine_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Simulate a machine with a given number of processors."""
    monkeypatch.delitem(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_NUM_THREADS", raising=False)

    @contextmanager
    def machine(n: int) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(threads, "_cpu_count", lambda: n)
            patch.setattr(threads, "_pool", None)
            patch.setattr(threads, "_pool_size", 0)
            yield

    return machine


def fitted(case: Case, size: str) -> tuple[dict[str, Any], Any]:
    X, y, weight = case.data(size)
    model = case.fit(X, y, weight if case.weighted else None)
    return fitted_attributes(model), case.output(model, X)


def expected_of(case: Case, size: str) -> tuple[dict[str, Any], Any]:
    model = case.model(size, weighted=case.weighted)
    return fitted_attributes(model), case.output(model, case.data(size).X)


@pytest.mark.parametrize(("size", "chunk_rows"), [("small", 1), ("small", 7), ("large", 450), ("large", 1_000)])
@over()
def test_chunks_change_results_only_by_rounding(case: Case, size: str, chunk_rows: int, small_parts: None) -> None:
    expected = expected_of(case, size)
    with summula.engine("threads", chunk_rows=chunk_rows):
        assert_close(expected, fitted(case, size))


@pytest.mark.parametrize(("size", "chunk_rows", "machines"), [("small", 20, (1, 2, 4)), ("large", 300, (4,))])
@over()
def test_threads_do_not_change_the_result(
    case: Case,
    size: str,
    chunk_rows: int,
    machines: tuple[int, ...],
    small_parts: None,
    machine_of: Callable[[int], Any],
) -> None:
    with summula.engine("serial", chunk_rows=chunk_rows):
        expected = expected_of(case, size)
    for processors in machines:
        with machine_of(processors), summula.engine("threads", chunk_rows=chunk_rows):
            assert threads.thread_count() == processors
            assert_same_bits(expected, fitted(case, size))
            assert (threads._pool is not None) == (processors > 1)


@over("wide_sparse")
def test_threads_do_not_change_conjugate_gradients(
    case: Case, small_parts: None, machine_of: Callable[[int], Any]
) -> None:
    X, y = case.wide_data()
    with summula.engine("serial", chunk_rows=1_000):
        expected = fitted_attributes(case.fit(X, y))
    with machine_of(4), summula.engine("threads", chunk_rows=1_000):
        assert_same_bits(expected, fitted_attributes(case.fit(X, y)))


@over()
def test_the_environment_caps_threads(
    case: Case, small_parts: None, machine_of: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine_of(4), summula.engine("threads", chunk_rows=50):
        expected = fitted(case, "small")
        for variable in ((INITIAL_ENVIRONMENT, "OMP_NUM_THREADS"), (os.environ, "SUMMULA_NUM_THREADS")):
            with monkeypatch.context() as patch:
                patch.setitem(*variable, "1")
                assert threads.thread_count() == 1
                assert_same_bits(expected, fitted(case, "small"))


@over("parallel")
def test_n_jobs_does_not_change_the_result(case: Case, small_parts: None, machine_of: Callable[[int], Any]) -> None:
    X, y, _ = case.data()
    with machine_of(4), summula.engine("threads", chunk_rows=50):
        expected = fitted_attributes(case.fit(X, y))
        for n_jobs in (1, 2, -1, -2):
            model = clone(case.estimator).set_params(n_jobs=n_jobs).fit(X, y)
            assert_same_bits(expected, fitted_attributes(model))


@over()
def test_two_fits_give_the_same_bits(case: Case) -> None:
    assert_same_bits(expected_of(case, "large"), fitted(case, "large"))


# ------------------------------------------------------------------------------------------------------------- parts

KEPT = {
    "array": np.asarray,
    "Fortran order": np.asfortranarray,
    "slice": storage.ARRAYS["slice"],
    "memory map": storage.ARRAYS["memory map"],
    "pandas": storage.FRAMES["pandas, mixed types"],
    "polars": storage.FRAMES["polars"],
    "pyarrow": storage.FRAMES["pyarrow, in pieces"],
    "sparse": storage.SPARSE["csr_array"],
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT.keys())
@over("supervised")
def test_a_part_carries_its_own_rows_and_no_others(case: Case, keep: Any, small_parts: None) -> None:
    X, y, weight = case.data("large")
    labels = Labels("the model") if case.classifier else None
    source = as_source(case.estimator.__class__(), keep(X), y, weight, needs_y=True, labels=labels)
    parts = source.plan(500)
    assert len(parts) == -(-len(X) // 500)
    targets = 1 if y.ndim == 1 else y.shape[1]
    for part in parts:
        sent = pickle.dumps(part, protocol=5)
        # Sparse rows bring a column number for every value; the rest of a part is a few hundred bytes.
        row = 8 * (X.shape[1] * (2 if source.is_sparse else 1) + targets + 1 + (1 if source.is_sparse else 0))
        assert len(sent) < row * len(part) + 4_000
        for mine, theirs in zip(part.chunks(), pickle.loads(sent).chunks(), strict=True):
            assert (mine.start, mine.stop) == (theirs.start, theirs.stop)
            assert_same_bits(mine.dense(), theirs.dense())
            assert mine.row_data.keys() >= {"codes" if case.classifier else "y", "weight"}
            assert_same_bits(mine.row_data, theirs.row_data)


@in_turn("chunk_rows", [None, 100, 1_000])
def test_the_plan_covers_every_row_once_on_one_grid(case: Case, chunk_rows: int | None, small_parts: None) -> None:
    X, _, _ = case.data("large")
    source = as_source(case.estimator.__class__(), X, needs_y=False)
    ranges = [(chunk.start, chunk.stop) for part in source.plan(chunk_rows) for chunk in part.chunks()]
    step = chunk_rows or chunks.chunk_rows_for(source.width)
    assert ranges == [(a, min(a + step, len(X))) for a in range(0, len(X), step)]
