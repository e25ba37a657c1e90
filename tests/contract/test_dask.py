"""Promise 6 on Dask collections: the fitted attributes of an array, in threads and on a cluster; lazy predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import summula
from summula.core.data import chunks
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import Case, in_turn, over_ways

pytest.importorskip("dask.dataframe")

BLOCKS = ("dask array, small blocks", "dask dataframe, empty partitions")


def check_same_bits(case: Case, size: str, keep: Any) -> None:
    """Features, target and weights as collections, each in blocks of its own."""
    import dask.array as da

    X, y, weight = case.data(size)
    lazy_y = None if y is None else da.from_array(y, chunks=len(X) // 4)
    lazy_weight = da.from_array(weight, chunks=len(X) // 7 + 3) if case.weighted else None
    expected, model = case.model(size, weighted=case.weighted), case.fit(keep(X), lazy_y, lazy_weight)
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))
    output = case.output(model, keep(X))
    assert isinstance(output, da.Array)
    assert_close(case.output(expected, X), np.asarray(output))


@over_ways("keep", storage.DASK, "streams")
def test_collections_give_the_same_bits_as_arrays(case: Case, keep: Any, size: str) -> None:
    check_same_bits(case, size, keep)


@in_turn("kind", BLOCKS, "streams")
def test_collections_give_the_same_bits_in_small_chunks(case: Case, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)
    with summula.engine("threads", chunk_rows=7):
        check_same_bits(case, "small", storage.DASK[kind])


KEPT = storage.DASK | storage.FRAMES


@in_turn("kind", (*BLOCKS, "pandas, mixed types"), "streams")
def test_a_cluster_gives_the_same_bits_as_threads(
    case: Case, kind: str, dask_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)
    X, y, weight = case.data("large")
    chunk_rows = len(X) // 4 + 9  # four parts on two workers, the last one shorter
    with summula.engine("threads", chunk_rows=chunk_rows):
        expected = case.model("large", weighted=case.weighted)
        output = case.output(expected, X)
    with summula.engine(dask_client, chunk_rows=chunk_rows):
        model = case.fit(KEPT[kind](X), y, weight if case.weighted else None)
        assert_close(output, case.output(expected, X))
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))
