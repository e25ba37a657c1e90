"""`scan`: files found, columns chosen, rows on the global grid; fits have the bits of the array's."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import summula
from summula.core.data import chunks
from summula.core.data.scan import ScanSource
from summula.core.engine import threads
from summula.core.environment import INITIAL_ENVIRONMENT
from summula.linear_model import LinearRegression, Ridge
from summula.preprocessing import StandardScaler
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.faults.sentences import one_sentence, refused
from tests.processes import run


def examples(n: int) -> settings:
    """A number of examples, all in one folder."""
    return settings(max_examples=n, suppress_health_check=[HealthCheck.function_scoped_fixture])


def data(n: int = 300, d: int = 4, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(2.0, 1.0, (n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def table(X: Any, y: Any = None, weight: Any = None) -> pa.Table:
    columns = {f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(X.T)}
    columns |= {} if y is None else {"y": y}
    return pa.table(columns | ({} if weight is None else {"w": weight}))


def written(rows: pa.Table, folder: Path, row_group: int = 50, cuts: Sequence[int] = ()) -> Any:
    """The rows in Parquet files that end at the cuts."""
    lines = [0, *sorted(cuts), rows.num_rows]
    for old in folder.glob("*.parquet"):
        old.unlink()
    for number, (a, b) in enumerate(pairwise(lines)):
        parquet.write_table(rows.slice(a, b - a), folder / f"{number:03}.parquet", row_group_size=row_group)
    return summula.scan(folder)


def rows_of(scan: Any, start: int, stop: int, columns: list[str]) -> list[Any]:
    batches = list(scan.read(start, stop, columns))
    return [np.concatenate([batch[j] for batch in batches]) for j in range(len(columns))]


# ------------------------------------------------------------------------------------------------------------- finding


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """Three files with the numbers 0, 1, 2, in Parquet, and one folder further down."""
    (tmp_path / "more").mkdir()
    for number, name in enumerate(["day1.parquet", "day2.parquet", "more/day3.parquet"]):
        parquet.write_table(pa.table({"x": [float(number)], "y": [1.0]}), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (lambda folder: folder / "day1.parquet", [0]),
        (lambda folder: str(folder / "day1.parquet"), [0]),
        (lambda folder: f"{folder}/day?.parquet", [0, 1]),
        (lambda folder: f"{folder}/**/*.parquet", [0, 1, 2]),
        (lambda folder: folder / "more", [2]),
        (lambda folder: [folder / "day2.parquet", f"{folder}/day1.parquet"], [1, 0]),
        (lambda folder: (folder / name for name in ("day2.parquet", "more")), [1, 2]),
        (lambda folder: [f"{folder}/day*.parquet", folder / "more"], [0, 1, 2]),
    ],
    ids=["path", "text", "pattern", "pattern of folders", "folder", "list", "generator", "list of patterns"],
)
def test_files_are_found_in_the_order_of_names_or_of_the_list(path: Any, found: list[int], days: Path) -> None:
    scan = summula.scan(path(days))
    assert rows_of(scan, 0, len(scan), ["x"])[0].tolist() == found


def test_a_name_with_a_magic_character_is_a_name_first(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"x": [1.0]}), tmp_path / "a[1].parquet")
    assert len(summula.scan(tmp_path / "a[1].parquet")) == 1


def test_hidden_files_of_a_folder_are_passed_over(days: Path) -> None:
    (days / "more" / ".crc").write_text("")
    (days / "more" / "_SUCCESS").write_text("")
    assert len(summula.scan(days / "more")) == 1


def test_home_is_expanded(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(days))
    assert len(summula.scan("~/day1.parquet")) == 1


def test_the_repr_of_a_scan(days: Path) -> None:
    scan = summula.scan(f"{days}/day*.parquet")
    assert (len(scan), scan.n_rows, scan.shape, scan.columns) == (2, 2, (2, 2), ["x", "y"])
    assert repr(scan) == "Scan(2 files: 2 rows, 2 columns)"
    assert repr(summula.scan(days / "day1.parquet")) == f"Scan({days}/day1.parquet: 1 rows, 2 columns)"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (lambda folder: folder / "day9.parquet", ["There is no file", "day9.parquet", "did you mean", "day"]),
        (lambda folder: folder / "nowhere" / "x.parquet", ["There is no file", "there is no folder"]),
        (lambda folder: f"{folder}/night*.parquet", ["No file", "night*.parquet"]),
        (lambda folder: folder, ["folder inside a folder", "more"]),
        (lambda folder: [], ["empty", "at least one"]),
        (lambda folder: 3, ["path", "not 3"]),
        (lambda folder: None, ["path", "not None"]),
        (lambda folder: [folder / "day1.parquet", 3], ["path", "not 3"]),
    ],
    ids=["no file", "no folder", "no match", "a folder in the folder", "empty list", "number", "None", "list"],
)
def test_what_is_not_there_is_named(path: Any, words: list[str], days: Path) -> None:
    with pytest.raises(summula.DataError) as caught:
        summula.scan(path(days))
    one_sentence(caught.value, *words)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(summula.DataError) as caught:
        summula.scan(tmp_path)
    one_sentence(caught.value, str(tmp_path), "no files")


def test_an_ending_that_is_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(summula.DataError) as caught:
        summula.scan(tmp_path / "x.json")
    one_sentence(caught.value, "x.json", ".parquet", ".csv")


# ------------------------------------------------------------------------------------------------------------- columns


def two_files(folder: Path, first: dict[str, Any], second: dict[str, Any]) -> list[Path]:
    paths = [folder / "first.parquet", folder / "second.parquet"]
    for path, columns in zip(paths, (first, second), strict=True):
        parquet.write_table(pa.table(columns), path)
    return paths


def test_columns_are_chosen_in_their_order(tmp_path: Path) -> None:
    X, y, _ = data()
    kept = written(table(X, y), tmp_path)
    assert summula.scan(tmp_path, columns=["x2", "y", "x0"]).columns == ["x2", "y", "x0"]
    assert kept.select(["y"]).shape == (300, 1)
    model = LinearRegression().fit(summula.scan(tmp_path, columns=["x2", "y", "x0"]), "y")
    assert model.feature_names_in_.tolist() == ["x2", "x0"]
    assert_same_bits(LinearRegression().fit(X[:, [2, 0]], y).coef_, model.coef_)


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    X, y, _ = data()
    written(table(X, y), tmp_path)
    with pytest.raises(summula.DataError) as caught:
        summula.scan(tmp_path, columns=["x00", "y"])
    one_sentence(caught.value, "no column 'x00'", "did you mean 'x0'")


def test_the_order_of_columns_may_differ_between_files(tmp_path: Path) -> None:
    scan = summula.scan(two_files(tmp_path, {"x": [1.0], "y": [2.0]}, {"y": [4.0], "x": [3.0]}))
    x, y = rows_of(scan, 0, 2, ["x", "y"])
    assert (x.tolist(), y.tolist()) == ([1, 3], [2, 4])


def test_numbers_of_different_kinds_are_one_kind(tmp_path: Path) -> None:
    paths = two_files(tmp_path, {"x": np.float32([0.5]), "n": [1]}, {"x": [0.25], "n": [1.5]})
    scan = summula.scan(paths)
    assert scan.kinds == {"x": "number", "n": "number"}
    assert rows_of(scan, 0, 2, ["n"])[0].tolist() == [1, 1.5]
    assert ScanSource(scan, ["x"]).dtype == np.float64
    assert ScanSource(summula.scan(paths[0]), ["x"]).dtype == np.float32


def test_files_with_other_columns_are_refused_unless_these_are_not_wanted(tmp_path: Path) -> None:
    paths = two_files(tmp_path, {"x": [1.0], "y": [2.0]}, {"x": [3.0], "y": [4.0], "z": [5.0]})
    with pytest.raises(summula.DataError) as caught:
        summula.scan(paths)
    one_sentence(caught.value, "different columns", "second.parquet has 'z'", "columns=[...]")
    assert summula.scan(paths, columns=["y", "x"]).shape == (2, 2)
    for order in (paths, paths[::-1]):
        with pytest.raises(summula.DataError) as caught:
            summula.scan(order, columns=["x", "z"])
        one_sentence(caught.value, "'z'")


def test_files_in_which_a_column_changes_its_kind_are_refused_unless_it_is_not_wanted(tmp_path: Path) -> None:
    paths = two_files(tmp_path, {"x": [1.0], "y": [2.0]}, {"x": [3.0], "y": ["four"]})
    with pytest.raises(summula.DataError) as caught:
        summula.scan(paths)
    one_sentence(caught.value, "Column 'y' is float64 in ", "text in ", "second.parquet")
    assert summula.scan(paths, columns=["x"]).shape == (2, 1)


# ---------------------------------------------------------------------------------------------------------- vocabulary


@pytest.mark.parametrize("encode", [lambda column: column, pa.Array.dictionary_encode], ids=["text", "dictionary"])
def test_the_vocabulary_is_all_values_sorted(encode: Any, tmp_path: Path) -> None:
    words = [["pear", None, "fig"], ["fig", "apple"], []]
    for number, some in enumerate(words):
        column = encode(pa.array(some, pa.string()))
        parquet.write_table(pa.table({"fruit": column}), tmp_path / f"{number}.parquet")
    for engine in ("serial", "threads"):
        with summula.engine(engine, chunk_rows=1):
            assert summula.scan(tmp_path).vocabulary("fruit") == ["apple", "fig", "pear"]


def test_the_vocabulary_of_text_in_csv(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('n,fruit\n1,"pear, green"\n2,\n3,fig\n')
    assert summula.scan(tmp_path / "rows.csv").vocabulary("fruit") == ["fig", "pear, green"]


def test_the_vocabulary_of_a_column_that_is_not_there(days: Path) -> None:
    with pytest.raises(summula.DataError, match="no column 'z'"):
        summula.scan(days / "more").vocabulary("z")


# ------------------------------------------------------------------------------------------------------------ the grid

grids = given(
    n=st.integers(1, 120),
    row_group=st.integers(1, 130),
    chunk_rows=st.integers(1, 130),
    cuts=st.lists(st.integers(0, 120), max_size=4),
    span=st.integers(1, 3),
)


@contextmanager
def small_parts(span: int = 1) -> Iterator[None]:
    """Steps of one chunk, parts of a few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_PART_ELEMENTS", 1)
        patch.setattr("summula.core.data.sources._SPAN_STEPS", span)
        yield


@examples(150)
@grids
def test_chunks_are_the_rows_in_order_on_the_grid_of_the_array(
    n: int, row_group: int, chunk_rows: int, cuts: list[int], span: int, tmp_path: Path
) -> None:
    X, y, weight = data(n, 3)
    scan = written(table(X, y, weight), tmp_path, row_group, [min(cut, n) for cut in cuts])
    with small_parts(span):
        parts = ScanSource(scan, ["x0", "x1", "x2"], ["y"], "w").plan(chunk_rows)
        found = [chunk for part in parts for chunk in part.chunks()]
    step = parts[0].step
    assert all(part.start % step == 0 for part in parts), "parts begin on lines of the grid"
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert [(c.start, c.stop) for c in found] == [(a, min(a + chunk_rows, n)) for a in range(0, n, chunk_rows)]
    for chunk in found:
        rows = slice(chunk.start, chunk.stop)
        assert_same_bits(X[rows], np.ascontiguousarray(chunk.X))
        assert_same_bits(y[rows, None], np.ascontiguousarray(chunk.y))
        assert_same_bits(weight[rows], np.ascontiguousarray(chunk.weight))


@examples(60)
@grids
def test_any_rows_come_as_one_chunk(
    n: int, row_group: int, chunk_rows: int, cuts: list[int], span: int, tmp_path: Path
) -> None:
    X, _, _ = data(n, 2)
    scan = written(table(X), tmp_path, row_group, [min(cut, n) for cut in cuts])
    start = chunk_rows % n
    chunk = ScanSource(scan, ["x1", "x0"]).chunk(start, min(start + span, n))
    assert_same_bits(X[start : start + span, ::-1].copy(), np.ascontiguousarray(chunk.dense()))


@examples(60)
@grids
def test_fits_have_the_bits_of_the_array_on_every_grid(
    n: int, row_group: int, chunk_rows: int, cuts: list[int], span: int, tmp_path: Path
) -> None:
    X, y, weight = data(n, 2)
    scan = written(table(X, y, weight), tmp_path, row_group, [min(cut, n) for cut in cuts])
    with small_parts(span):
        with summula.engine("serial", chunk_rows=chunk_rows):
            expected = without_names(fitted_attributes(Ridge().fit(X, y, weight)))
        for engine in ("serial", "threads"):
            with summula.engine(engine, chunk_rows=chunk_rows):
                model = Ridge().fit(scan, "y", sample_weight="w")
            assert_same_bits(expected, without_names(fitted_attributes(model)))


@pytest.mark.parametrize("processors", [1, 2, 4])
def test_threads_do_not_change_the_result(processors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough rows for the normal equations and for several parts."""
    X, y, weight = data(100_000, 12)
    scan = written(table(X, y, weight), tmp_path, 2_000, [10_001])
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 2**16)
    with summula.engine("serial"):
        expected = without_names(fitted_attributes(LinearRegression().fit(X, y, weight)))
    monkeypatch.setattr(threads, "_cpu_count", lambda: processors)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_pool_size", 0)
    monkeypatch.delitem(INITIAL_ENVIRONMENT, "OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SUMMULA_NUM_THREADS", raising=False)
    monkeypatch.setattr("summula.core.data.sources._SPAN_STEPS", 1)
    assert len(ScanSource(scan, ["x0"]).plan()) > 1
    model = LinearRegression().fit(scan, "y", "w")
    assert_same_bits(expected, without_names(fitted_attributes(model)))


def test_a_part_is_small_to_send(tmp_path: Path) -> None:
    X, y, _ = data(2_000)
    source = ScanSource(written(table(X, y), tmp_path, 100, [1_000]), ["x0", "x1"], ["y"])
    with small_parts():
        part = source.plan(64)[3]
    sent = pickle.dumps(part)
    assert len(sent) < 4_000
    for mine, theirs in zip(part.chunks(), pickle.loads(sent).chunks(), strict=True):
        assert_same_bits(mine.dense(), theirs.dense())


# ---------------------------------------------------------------------------------------------------------------- fits

KINDS = {
    "float64": lambda X, y: (X, y),
    "float32": lambda X, y: (X.astype(np.float32), y),
    "float32 target": lambda X, y: (X, y.astype(np.float32)),
    "all float32": lambda X, y: (X.astype(np.float32), y.astype(np.float32)),
    "whole numbers": lambda X, y: (np.round(X).astype(np.int64), np.round(y).astype(np.int32)),
    "truth values": lambda X, y: (X > 2, y > 0),
}


@pytest.mark.parametrize("n", [500, 5_000])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_columns_of_any_kind_give_the_bits_of_the_array(kind: Any, n: int, tmp_path: Path) -> None:
    X, y, weight = data(n, 16)
    X, y = kind(X, y)
    scan = written(table(X, y, weight), tmp_path, 300)
    for model in (LinearRegression, Ridge, StandardScaler):
        expected = without_names(fitted_attributes(model().fit(X, y, weight)))
        target = "y" if model is not StandardScaler else None
        features = scan if target else scan.select([c for c in scan.columns if c != "y"])
        assert_same_bits(expected, without_names(fitted_attributes(model().fit(features, target, "w"))))


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_in_a_file_gives_the_bits_of_the_array(order: Any, tmp_path: Path) -> None:
    X, _, _ = data(3_000)
    np.save(tmp_path / "rows.npy", np.asarray(X, order=order))
    model = LinearRegression().fit(summula.scan(tmp_path / "rows.npy"), "x3")
    assert_same_bits(LinearRegression().fit(X[:, :3], X[:, 3]).coef_, model.coef_)


def test_several_targets_by_a_list_of_names(tmp_path: Path) -> None:
    X, _, _ = data(400, 5)
    scan = written(table(X), tmp_path)
    model = LinearRegression().fit(scan, ["x4", "x1"])
    expected = LinearRegression().fit(X[:, [0, 2, 3]], X[:, [4, 1]])
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))
    assert LinearRegression().fit(scan, ["x4"]).coef_.shape == (1, 4), "a list gives a second dimension, as in frames"


def test_predictions_are_those_of_arrays_and_frames(tmp_path: Path) -> None:
    X, y, weight = data(1_000)
    rows = table(X, y, weight)
    scan = written(rows, tmp_path, 100)
    model = LinearRegression().fit(scan, "y", "w")
    expected = model.predict(rows.select(["x0", "x1", "x2", "x3"]))
    with small_parts(), summula.engine("threads", chunk_rows=64):
        batches = list(model.predict(scan))
    assert len(batches) > 5
    assert_close(expected, np.concatenate(batches))
    shuffled = summula.scan(tmp_path, columns=["x3", "w", "x1", "x0", "x2"])
    assert_close(expected, np.concatenate(list(model.predict(shuffled))))
    assert_close(expected, model.predict(rows))


def test_rows_are_read_when_a_batch_is_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = data(1_000)
    scan = written(table(X, y), tmp_path, 50)
    model = LinearRegression().fit(scan, "y")
    stretches: list[int] = []
    read = type(scan).read
    monkeypatch.setattr(type(scan), "read", lambda self, a, b, c: stretches.append(a) or read(self, a, b, c))
    with small_parts(), summula.engine("serial", chunk_rows=50):
        batches = model.predict(scan)
        assert stretches == []
        next(batches)
        assert len(stretches) == 1


def test_standard_errors_of_files_are_those_of_the_array(tmp_path: Path) -> None:
    X, y, _ = data(900)
    scan = written(table(X, y), tmp_path)
    for cov in ("classical", "HC0", "HC3"):
        expected = LinearRegression().fit(X, y).summary(cov=cov)
        assert_close(expected.std_error, LinearRegression().fit(scan, "y").summary(cov=cov).std_error)


def test_collinear_columns_are_named(tmp_path: Path) -> None:
    X, y, _ = data()
    scan = written(table(np.column_stack([X, X[:, 1]]), y), tmp_path)
    with pytest.warns(summula.CollinearityWarning, match="'x4'|'x1'"):
        LinearRegression().fit(scan, "y")


# ------------------------------------------------------------------------------------------------------------ refusals


def test_gaps_are_named_by_column_and_row(tmp_path: Path) -> None:
    X, y, _ = data()
    X[211, 2] = y[17] = np.nan
    scan = written(table(X, y), tmp_path, 50, [120])
    refused("Column 'x2' has 1 missing value", "row 211", "1 other column", by=LinearRegression(), X=scan, y="y")
    whole = scan.select(["x0", "x1", "y"])
    refused("The target 'y' has 1 missing value", "row 17", by=LinearRegression(), X=whole, y="y")


def test_gaps_in_csv_are_named_by_column_and_row(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n2,3\n,4\n4,1\n")
    refused("Column 'x' has 1 missing value", "row 2", by=Ridge(), X=summula.scan(tmp_path / "rows.csv"), y="y")


def test_gaps_are_named_when_predicting(tmp_path: Path) -> None:
    X, y, _ = data()
    model = LinearRegression().fit(written(table(X, y), tmp_path), "y")
    X[211, 2] = np.nan
    batches = model.predict(written(table(X), tmp_path))
    with pytest.raises(summula.DataError) as caught:
        list(batches)
    one_sentence(caught.value, "Column 'x2'", "row 211")


def test_scaling_keeps_gaps(tmp_path: Path) -> None:
    X, _, _ = data()
    X[211, 2] = np.nan
    scan = written(table(X), tmp_path)
    model = StandardScaler().fit(scan)
    assert_same_bits(StandardScaler().fit(X).mean_, model.mean_)
    assert np.isnan(np.concatenate(list(model.transform(scan)))[211, 2])


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_bad_weight_is_named_by_its_row(value: float, tmp_path: Path) -> None:
    X, y, weight = data()
    weight[171] = value
    scan = written(table(X, y, weight), tmp_path)
    refused("weight", "row 171", by=LinearRegression(), X=scan, y="y", sample_weight="w")


def test_weights_that_are_all_zero_are_refused(tmp_path: Path) -> None:
    X, y, weight = data()
    scan = written(table(X, y, 0 * weight), tmp_path)
    for model in (LinearRegression(), StandardScaler()):
        refused("All sample weights are zero", by=model, X=scan, y="y", sample_weight="w")


def test_text_is_named_by_its_row(tmp_path: Path) -> None:
    X, y, _ = data()
    names = ["Ann"] * 300
    scan = written(table(X, y).append_column("name", pa.array(names)), tmp_path)
    refused("Column 'name' contains 'Ann' at row 1 of", "the first is row 1", by=Ridge(), X=scan, y="y")
    refused("Column 'name' contains 'Ann' at row 1 of", by=LinearRegression(), X=scan, y="name")
    assert LinearRegression().fit(scan.select(["x0", "y"]), "y").coef_.shape == (1,)


@pytest.mark.parametrize("text", ["n/k", "1_000", "1'000", "１２"])
def test_the_text_among_the_numbers_of_a_csv_file_is_named(text: str, tmp_path: Path) -> None:
    rows = [f"{i},{i % 7}" for i in range(2_000)]
    rows[1_234] = f"{text},3"
    (tmp_path / "rows.csv").write_text("x,y\n" + "\n".join(rows))
    scan = summula.scan(tmp_path / "rows.csv")
    refused(f"Column 'x' contains {text!r} at line 1236 of", by=LinearRegression(), X=scan, y="y")


def test_dates_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"day": pa.array([0, 1, 2], pa.timestamp("s")), "y": [1.0, 2.0, 3.0]})
    refused("Column 'day' has timestamp[", by=LinearRegression(), X=written(rows, tmp_path), y="y")


def test_targets_and_weights_have_to_be_names(tmp_path: Path) -> None:
    X, y, weight = data()
    scan = written(table(X, y, weight), tmp_path)
    refused("from files", "y must be the name", "ndarray", by=LinearRegression(), X=scan, y=y)
    refused("from files", "sample_weight", by=LinearRegression(), X=scan, y="y", sample_weight=weight)
    refused("y is None", "name a column", by=LinearRegression(), X=scan)
    refused("no column 'z'", by=LinearRegression(), X=scan, y="z")
    refused("no column 'z'", by=LinearRegression(), X=scan, y="y", sample_weight="z")
    refused("no feature columns", by=LinearRegression(), X=scan.select(["y", "w"]), y="y", sample_weight="w")


def test_files_without_rows_are_refused(tmp_path: Path) -> None:
    X, y, _ = data()
    refused("no rows", by=LinearRegression(), X=written(table(X, y).slice(0, 0), tmp_path), y="y")


def test_predicting_from_files_without_a_feature_is_refused(tmp_path: Path) -> None:
    X, y, _ = data()
    model = LinearRegression().fit(written(table(X, y), tmp_path), "y")
    with pytest.raises(summula.DataError, match="no column 'x3'"):
        model.predict(summula.scan(tmp_path, columns=["x0", "x1", "x2"]))


# -------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A fit holds batches and buffers for each of two threads (up to 75 MB for text), not the file (300 and 470 MB)."""
    rng = np.random.default_rng(0)
    block = pa.table({f"x{j}": rng.normal(size=200_000) for j in range(10)})
    parquet.write_table(block, tmp_path / "rows.parquet", compression="none", use_dictionary=False)
    csv.write_csv(block, tmp_path / "rows.csv")
    for name, times in (("rows.parquet", 20), ("rows.csv", 12)):
        grown = run(
            f"""
        import json
        import summula
        from benchmarks.memory import PeakMemory
        from summula.core.data.layout import column_kernels
        from summula.linear_model import LinearRegression
        summula.scan({str(tmp_path / "rows.csv")!r})
        LinearRegression().fit([[0.0], [1.0], [3.0]], [1.0, 3.0, 4.0])     # libraries are loaded
        peak = PeakMemory()
        LinearRegression().fit(summula.scan({times} * [{str(tmp_path / name)!r}]), "x0")
        print(json.dumps(peak.bytes()))
        """,
            SUMMULA_NUM_THREADS="2",
        )
        assert grown < 0.4 * times * (tmp_path / name).stat().st_size, f"{name}: {grown >> 20} MB"


@pytest.mark.parametrize("kinds", ["float64", "float32", "mixed", "null"])
def test_columns_copied_by_the_kernel_have_the_bits_of_the_array(tmp_path, kinds, monkeypatch):
    monkeypatch.setattr("summula.core.data.scan._MANY", 0)
    X, y, w = data(5_000, 3)
    rows = table(X, y, w)
    if kinds == "float32":
        X = X.astype(np.float32)
        rows = table(X, y.astype(np.float32), w)
    elif kinds == "mixed":
        X[:, 1] = np.rint(X[:, 1])
        rows = rows.set_column(1, "x1", pa.array(X[:, 1].astype(np.int32)))
    elif kinds == "null":
        rows = rows.set_column(1, "x1", pa.array(X[:, 1], mask=np.arange(5_000) == 4_321))
        scan = written(rows.drop_columns("w"), tmp_path, 700)
        refused("Column 'x1' has 1 missing value", "row 4321", by=LinearRegression(), X=scan, y="y")
        return
    scan = written(rows, tmp_path, row_group=700, cuts=(1_234,))
    for weight in (None, "w"):
        chosen = scan.select(["x0", "x1", "x2", "y"] + ([] if weight is None else [weight]))
        streamed = LinearRegression().fit(chosen, "y", weight)
        array = LinearRegression().fit(X, y.astype(X.dtype), None if weight is None else w)
        assert_same_bits(
            without_names(fitted_attributes(streamed)), without_names(fitted_attributes(array)), where=kinds
        )
