"""Promise 6 on files: all fitted attributes have the bits of the array's, and rows add up, however they are cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import summula
from summula.core.data import chunks
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import SIZES, Case, Data, in_turn, over, over_ways

sizes = pytest.mark.parametrize("size", SIZES)

# Sums of products lose as many digits again as the columns' condition number has, which is below 100 here
# (monomials included), and as many as the share of rows that is left after forgetting: some two more.
FROM_SUMS = 1e-9


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


@over_ways("keep", storage.STREAMS, third="rows", values=ROWS)
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
        batches = case.output(model, kept)  # targets and weights among the columns are passed over
        assert isinstance(batches, Iterator)
        batches = list(batches)
    # A product of blocks cut otherwise may differ in the last place.
    assert_close(case.output(model, storage.FRAMES["pyarrow"](data.X)), np.concatenate(batches))


# An engine, and the rows of a chunk for small data and for large.
GRIDS = [("serial", 1, 1_000), ("threads", 7, 64), ("threads", 1, 1_000), ("serial", 7, 64)]


@in_turn("grid", GRIDS)
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


@over("certified")
def test_a_certificate_is_verified_on_files(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    kept = storage.STREAMS["Parquet, several files"](named(data), tmp_path)
    model = case.fit(kept, target(data))
    assert model.certificate_.verify(kept, target(data))
    assert model.certificate_.verify(data.X, data.y)


# ---------------------------------------------------------------------------------------------------------- additivity


def halves(data: Data) -> tuple[Data, Data]:
    return data.rows(slice(len(data.X) // 3)), data.rows(slice(len(data.X) // 3, None))


def assert_same_model(case: Case, whole: Any, model: Any, data: Data) -> None:
    """All that can be compared: which solver was used, and how exactly, may differ."""
    left, right = (without_names(fitted_attributes(m)) for m in (whole, model))
    assert left.keys() == right.keys()
    for name in left.keys() - {"certificate_", "solver_", "n_iter_"}:
        assert_close(left[name], right[name], rounding=FROM_SUMS, where=name)
    assert_close(case.output(whole, data.X), case.output(model, data.X), rounding=FROM_SUMS)
    if case.certified:
        assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=FROM_SUMS)


@sizes
@over("incremental")
def test_rows_may_come_one_part_after_the_other(case: Case, size: str) -> None:
    data = case.data(size)
    first, rest = halves(data)
    model = clone(case.estimator).partial_fit(first.X, first.y, first.weight)
    whole = case.model(size, weighted=True)
    assert_same_model(case, whole, model.partial_fit(rest.X, rest.y, rest.weight), data)


@sizes
@over("incremental")
def test_models_of_two_sets_of_rows_merge(case: Case, size: str) -> None:
    data = case.data(size)
    first, rest = (case.fit(*part) for part in halves(data))
    before = dict(vars(rest))
    assert_same_model(case, case.model(size, weighted=True), first.merge(rest), data)
    assert all(vars(rest)[name] is value for name, value in before.items()), "the other model is left as it was"


@sizes
@over("incremental")
def test_rows_can_be_forgotten(case: Case, size: str) -> None:
    data = case.data(size)
    first, rest = halves(data)
    assert_same_model(case, case.fit(*rest), case.fit(*data).forget(*first), rest)


@over("incremental")
def test_many_models_combine(case: Case) -> None:
    data = case.data("large")
    models = [case.fit(*data.rows(slice(a, a + 600))) for a in range(0, 4_200, 600)]
    bits = [fitted_attributes(model) for model in models]
    assert_same_model(case, case.model("large", weighted=True), summula.combine(models), data)
    assert_same_bits(bits, [fitted_attributes(model) for model in models])


@over("incremental")
def test_a_file_can_be_added_and_taken_away(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    kept = []
    for name, part in zip(("first", "rest"), halves(data), strict=True):
        (tmp_path / name).mkdir()
        kept.append(storage.STREAMS["Parquet, several files"](named(part, weighted=True), tmp_path / name))
    model = case.fit(kept[0], target(data), "weight")
    model.partial_fit(kept[1], target(data), "weight")
    frame = storage.FRAMES["pyarrow"](data.X)
    expected = case.fit(frame, data.y, data.weight)
    assert_close(case.output(expected, frame), case.output(model, frame), rounding=FROM_SUMS)
    model.forget(kept[0], target(data), "weight")
    rest = halves(data)[1]
    frame = storage.FRAMES["pyarrow"](rest.X)
    expected = case.fit(frame, rest.y, rest.weight)
    assert_close(case.output(expected, frame), case.output(model, frame), rounding=FROM_SUMS)


@over("incremental")
def test_a_saved_model_still_adds_up(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    first, rest = (case.fit(*part) for part in halves(data))
    summula.save(first, tmp_path / "first.summula")
    loaded = summula.load(tmp_path / "first.summula")
    assert_same_bits(fitted_attributes(first.merge(rest)), fitted_attributes(loaded.merge(rest)))
