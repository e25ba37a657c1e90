"""Columns of Arrow batches: arrays on request, and the addresses of columns of doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from summula.core.data.readers.arrow_columns import ArrowColumns, arrow_columns


def batch() -> pa.RecordBatch:
    rows = np.arange(20.0)
    values = {"a": rows, "b": rows + 100, "n": np.arange(20), "c": -rows, "f": rows.astype(np.float32)}
    return pa.record_batch({name: pa.array(column) for name, column in values.items()})


def columns_of(given: pa.RecordBatch, names: list[str]) -> ArrowColumns:
    (columns,) = arrow_columns([given], names, lambda values, name: values.to_numpy(zero_copy_only=False))
    return columns


def addresses_of(columns: ArrowColumns, count: int) -> list[int]:
    """Reference implementation of the kernel."""
    return [column.__array_interface__["data"][0] for column in columns[:count]]


def test_columns_are_in_the_requested_order_and_made_once() -> None:
    made: list[str] = []

    def convert(values: Any, name: str) -> Any:
        made.append(name)
        return values.to_numpy()

    (columns,) = arrow_columns([batch()], ["c", "a", "n"], convert)
    assert len(columns) == 3
    assert made == []
    assert columns[0].tolist() == (-np.arange(20.0)).tolist()
    assert columns[-1].tolist() == list(range(20))
    assert [column[3] for column in columns[:2]] == [-3.0, 3.0]
    assert made == ["c", "n", "a"]
    with pytest.raises(IndexError):
        columns[3]


@pytest.mark.parametrize("names", [["a", "b", "c"], ["c", "a"], ["b", "c", "a", "n"]])
@pytest.mark.parametrize("rows", [slice(0, 20), slice(7, 19), slice(19, 20)])
def test_addresses_are_where_the_arrays_start(names: list[str], rows: slice) -> None:
    columns = columns_of(batch().slice(rows.start, rows.stop - rows.start), names)
    count = min(len(names), 3)
    found = columns.addresses(count)
    assert found is not None
    assert found.tolist() == addresses_of(columns, count)


@pytest.mark.parametrize("names", [["a", "n"], ["f"], ["n", "a"]])
def test_columns_that_are_not_doubles_have_none(names: list[str]) -> None:
    assert columns_of(batch(), names).addresses(len(names)) is None


def test_columns_with_a_gap_have_none() -> None:
    rows = pa.record_batch({"a": pa.array([1.0, None, 3.0]), "b": pa.array([1.0, 2.0, 3.0])})
    assert columns_of(rows, ["b", "a"]).addresses(2) is None
    assert columns_of(rows, ["b", "a"]).addresses(1) is not None


def test_batches_share_what_is_known_of_their_schema() -> None:
    given = [batch(), batch().slice(3)]
    sizes = [len(columns[1]) for columns in arrow_columns(given, ["a", "c"], lambda values, name: values.to_numpy())]
    assert sizes == [20, 17]
