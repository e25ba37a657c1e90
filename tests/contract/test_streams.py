"""Promise 6 on files: all fitted attributes have the same bits as from an array, for any partition of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import summula
from summula.core.data import chunks
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import SIZES, Case, Data, in_turn, over, over_ways


def named(data: Data, weighted: bool = False) -> dict[str, Any]:
    """Features, targets and weight as columns of one table."""
    table = storage.columns(data.X)
    if data.y is not None:
        targets = data.y[:, None] if data.y.ndim == 1 else data.y
        table |= {f"target {k}": np.ascontiguousarray(column) for k, column in enumerate(targets.T)}
    return table | ({"weight": data.weight} if weighted else {})


def target(data: Data) -> Any:
    if data.y is None:
        return None
    return "target 0" if data.y.ndim == 1 else [f"target {k}" for k in range(data.y.shape[1])]


@contextmanager
def small_parts(chunk_rows: int | None, engine: str = "threads") -> Iterator[None]:
    """Parts of one step, so that small data make many of them."""
    with pytest.MonkeyPatch.context() as patch, summula.engine(engine, chunk_rows=chunk_rows):
        patch.setattr(chunks, "_PART_ELEMENTS", 1)
        yield


# ------------------------------------------------------------------------------------------------------- the same bits


# Which data, and whether they are weighted.
ROWS = [("large", False), ("small", True), ("small", False), ("large", True)]


@over_ways("keep", storage.STREAMS, "streams", third="rows", values=ROWS)
def test_files_give_the_same_bits_as_arrays_and_outputs_in_batches(
    case: Case, keep: Any, rows: tuple[str, bool], tmp_path: Path
) -> None:
    size, weighted = rows[0], rows[1] and case.weighted
    data = case.data(size)
    kept = keep(named(data, weighted), tmp_path)
    model = case.fit(kept, target(data), "weight" if weighted else None)
    expected = case.model(size, weighted=weighted)
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))
    assert model.feature_names_in_.tolist() == storage.names(data.X.shape[1])
    with small_parts(100):
        batches = case.output(model, kept)  # targets and weights among the columns are ignored
        assert isinstance(batches, Iterator)
        batches = list(batches)
    # Products of blocks with other boundaries may differ in the last place.
    assert_close(case.output(model, storage.FRAMES["pyarrow"](data.X)), np.concatenate(batches))


# An engine, and the rows of a chunk for small data and for large.
GRIDS = [("serial", 1, 1_000), ("threads", 7, 450), ("threads", 1, 1_000), ("serial", 7, 450)]


@in_turn("grid", GRIDS, "streams")
def test_files_give_the_same_bits_on_every_grid(case: Case, grid: tuple[Any, ...], tmp_path: Path) -> None:
    engine, *rows = grid
    for size, chunk_rows in zip(SIZES, rows, strict=True):
        data = case.data(size)
        kept = storage.STREAMS["Parquet, small row groups"](named(data, case.weighted), tmp_path)
        with small_parts(chunk_rows, "serial"):
            expected = without_names(fitted_attributes(case.model(size, weighted=case.weighted)))
        with small_parts(chunk_rows, engine):
            model = case.fit(kept, target(data), "weight" if case.weighted else None)
            assert_same_bits(expected, without_names(fitted_attributes(model)))


@over("certified", "streams")
def test_a_certificate_is_verified_on_files(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    kept = storage.STREAMS["Parquet, several files"](named(data), tmp_path)
    model = case.fit(kept, target(data))
    assert model.certificate_.verify(kept, target(data))
    assert model.certificate_.verify(data.X, data.y)


@over("in_memory")
def test_a_model_that_needs_its_rows_in_memory_names_an_alternative(case: Case, tmp_path: Path) -> None:
    data = case.data()
    kept = storage.STREAMS["Parquet"](named(data), tmp_path)
    with pytest.raises(summula.DataError, match=f"{type(case.estimator).__name__} needs its rows in memory.*: use "):
        case.fit(kept, target(data))
    model = case.fit(storage.FRAMES["pandas"](data.X), data.y)
    if case.streams_results:
        found = np.concatenate(list(case.output(model, kept)))
        assert_close(case.output(model, storage.FRAMES["pandas"](data.X)), found)
        return
    with pytest.raises(summula.DataError, match=f"{type(case.estimator).__name__} needs its rows in memory.*: use "):
        case.output(model, kept)
