"""Arrow streams are spooled: read once, written to a temporary file that is always removed."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import summula
from summula.linear_model import LinearRegression
from tests.contract.compare import assert_same_bits, fitted_attributes, without_names
from tests.faults.sentences import one_sentence, refused
from tests.processes import run


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def files(folder: Path) -> list[str]:
    gc.collect()
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def columns(n: int = 100) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"a": rng.normal(size=n), "b": rng.integers(0, 9, n), "y": rng.normal(size=n)}


def batches_of(n: int, rows: int = 100) -> Any:
    """A stream of n batches that can be read once."""
    table = pa.table(columns(rows))
    return pa.RecordBatchReader.from_batches(table.schema, (batch for _ in range(n) for batch in table.to_batches()))


class Stream:
    """Nothing but an Arrow stream."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader.__arrow_c_stream__(requested_schema)


STREAMS = {
    "reader": lambda table: table.to_reader(max_chunksize=17),
    "table": lambda table: table,
    "table in pieces": lambda table: pa.concat_tables([table.slice(0, 30), table.slice(30)]),
    "polars": lambda table: pl.from_arrow(table),
    "pandas": lambda table: table.to_pandas(),
    "anything": lambda table: Stream(table.to_reader(max_chunksize=17)),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
def test_streams_give_the_bits_of_the_frame(stream: Any, temporary: Path) -> None:
    table = pa.table(columns())
    scan = summula.scan(stream(table))
    assert scan.columns == ["a", "b", "y"]
    for _ in range(2):  # a stream can be read once, the scan any number of times
        expected, model = LinearRegression().fit(table, "y"), LinearRegression().fit(scan, "y")
        assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))


def test_columns_are_chosen(temporary: Path) -> None:
    assert summula.scan(batches_of(3), columns=["y", "a"]).columns == ["y", "a"]


def test_the_file_is_removed_with_the_scan(temporary: Path) -> None:
    scan = summula.scan(batches_of(3))
    assert len(files(temporary)) == 1
    chosen = scan.select(["a"])
    del scan
    assert len(files(temporary)) == 1, "someone still reads it"
    assert sum(len(batch[0]) for batch in chosen.read(0, 300, ["a"])) == 300
    del chosen
    assert files(temporary) == []
    assert list(temporary.iterdir()) == []


def test_the_file_is_removed_at_the_end_of_the_process(tmp_path: Path) -> None:
    output = run(
        """
        import json, os, pyarrow as pa, summula, tempfile
        scan = summula.scan(pa.table({"x": [1.0, 2.0]}))
        print(json.dumps([len(os.listdir(tempfile.gettempdir())), scan.n_rows]))
        """,
        TMPDIR=str(tmp_path),
    )
    assert output == [1, 2]
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------------- text columns


def test_dictionaries_may_change_from_batch_to_batch(temporary: Path) -> None:
    batches = [pa.record_batch({"fruit": pa.array(some).dictionary_encode()}) for some in (["fig"], ["kiwi", None])]
    scan = summula.scan(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert scan.kinds == {"fruit": "text"}
    assert scan.vocabulary("fruit") == ["fig", "kiwi"]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"fruit": ["kiwi", None, "fig"]}),
        pl.DataFrame({"fruit": ["kiwi", None, "fig"]}, schema={"fruit": pl.Categorical}),
        pl.DataFrame({"fruit": ["kiwi", None, "fig"]}, schema={"fruit": pl.Enum(["kiwi", "fig"])}),
        pd.DataFrame({"fruit": pd.Categorical(["kiwi", None, "fig"])}),
        pd.DataFrame({"fruit": ["kiwi", None, "fig"]}),
    ],
    ids=["polars text", "polars categories", "polars enumeration", "pandas categories", "pandas text"],
)
def test_text_of_frames_has_a_vocabulary(frame: Any, temporary: Path) -> None:
    assert summula.scan(frame).vocabulary("fruit") == ["fig", "kiwi"]


# -------------------------------------------------------------------------------------------------------------- faults


def test_a_stream_without_rows_is_refused_by_a_fit(temporary: Path) -> None:
    refused("no rows", by=LinearRegression(), X=summula.scan(batches_of(0)), y="y")


@pytest.mark.parametrize("wrap", [lambda reader: reader, Stream], ids=["reader", "anything"])
def test_a_truncated_stream_raises_with_its_row_and_leaves_nothing(wrap: Any, temporary: Path) -> None:
    table = pa.table(columns())

    def broken() -> Iterator[Any]:
        yield from table.to_batches()
        raise OSError("the network is gone")

    with pytest.raises(summula.DataError) as caught:
        summula.scan(wrap(pa.RecordBatchReader.from_batches(table.schema, broken())))
    one_sentence(caught.value, "failed after row 100", "network is gone")
    assert list(temporary.iterdir()) == []


def test_an_interruption_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(_: Any) -> Any:
        assert len(files(temporary)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "disk_usage", pressed)
    with pytest.raises(KeyboardInterrupt):
        summula.scan(batches_of(3))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("wrap", [lambda reader: reader, Stream], ids=["reader", "anything"])
def test_an_interruption_inside_the_stream_leaves_nothing(wrap: Any, temporary: Path) -> None:
    table = pa.table(columns())

    def pressed() -> Iterator[Any]:
        yield from table.to_batches()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        summula.scan(wrap(pa.RecordBatchReader.from_batches(table.schema, pressed())))
    assert list(temporary.iterdir()) == []


def test_a_disk_that_would_be_full_is_named_before_it_is(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(temporary)
    left = iter([1 << 40, 1 << 40, 65 << 20, 63 << 20, 63 << 20])  # there is space for two batches, and a third
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(left)))
    with pytest.raises(summula.DataError) as caught:
        summula.scan(batches_of(10))
    one_sentence(caught.value, "does not fit on disk", "63 MB are free", str(temporary), "TMPDIR")
    assert list(temporary.iterdir()) == []


def test_a_disk_that_is_full_is_named(tmp_path: Path) -> None:
    """The system fails to write (here because files may not grow beyond 1 MB)."""
    output = run(
        """
        import json, os, resource, tempfile
        import numpy as np, pyarrow as pa
        import summula
        table = pa.table({"x": np.arange(100_000.0)})
        summula.scan(table)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            summula.scan(pa.RecordBatchReader.from_batches(table.schema, 9 * table.to_batches()))
        except summula.DataError as error:
            print(json.dumps([str(error), os.listdir(tempfile.gettempdir())]))
        """,
        TMPDIR=str(tmp_path),
    )
    one_sentence(output[0], "does not fit on disk", str(tmp_path))
    assert output[1] == []
