"""Cache of decoded rows of files: the same bits, bounded size, and no files left on disk."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import summula
from summula.core.data import cache
from summula.core.data.factors import Factors
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.core.numerics.statistics import Gram
from summula.linear_model import GeneralizedLinearRegressor, LogisticRegression, PoissonRegressor


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 30_000
    table = {f"x{j}": rng.standard_normal(n) for j in range(4)}
    table["w"] = rng.integers(0, 3, n).astype(float)
    table["y"] = rng.poisson(1.0, n).astype(float)
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=7_000)
    return str(tmp_path / "rows.parquet")


def source_of(path, weight="w"):
    return as_source(Unnamed(), summula.scan(path), "y", weight, needs_y=True)


@pytest.mark.parametrize("weight", ["w", None])
def test_every_pass_gives_the_same_chunks(rows, weight):
    source = source_of(rows, weight)
    kept = cache.cached(source)
    assert isinstance(kept, cache.CachedSource)
    for _ in range(3):
        for ours, theirs in zip(kept.plan(1_024), source.plan(1_024), strict=True):
            for a, b in zip(ours.chunks(), theirs.chunks(), strict=True):
                np.testing.assert_array_equal(a.X, b.X)
                np.testing.assert_array_equal(a.y, b.y)
                assert (a.start, a.stop) == (b.start, b.stop)
                assert (a.weight is None) == (b.weight is None)
                if a.weight is not None:
                    np.testing.assert_array_equal(a.weight, b.weight)
    kept.release()


def test_the_files_are_decoded_once(rows, monkeypatch):
    reads = []
    scan = type(summula.scan(rows))
    read = scan.read
    monkeypatch.setattr(scan, "read", lambda self, *given: reads.append(given) or read(self, *given))
    run = Run(Unnamed(), source_of(rows))
    run.keep_rows()
    first = run.sum(Gram, np.zeros(run.source.n_features + 1))
    seen = len(reads)
    again = run.sum(Gram, np.zeros(run.source.n_features + 1))
    assert len(reads) == seen
    np.testing.assert_array_equal(first.products, again.products)
    run.source.release()


def test_a_full_disk_is_gone_around(rows, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    expected = PoissonRegressor().fit(summula.scan(rows), "y").coef_
    monkeypatch.setattr(os, "pwrite", full)
    np.testing.assert_array_equal(PoissonRegressor().fit(summula.scan(rows), "y").coef_, expected)


def test_no_scratch_file_is_written_without_disk_space(rows, monkeypatch):
    source = source_of(rows)
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 100}))
    assert cache.cached(source) is source


def test_nothing_is_left_behind(rows, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("SUMMULA_SCRATCH", str(scratch))
    LogisticRegression().fit(summula.scan(rows), "y")
    assert not list(scratch.iterdir())
    with pytest.raises(ValueError, match="family 'poisson'"):
        PoissonRegressor().fit(summula.scan(rows), "x0")
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("file", ["rows.parquet", "rows.npy"])
@pytest.mark.parametrize("wanted", [{"scattered": True}, {"passes": 20}])
def test_plain_numbers_get_no_scratch_file_unless_scattered_or_read_many_times(tmp_path, file, wanted):
    X = np.random.default_rng(0).standard_normal((9_000, 4))
    if file == "rows.npy":
        np.save(tmp_path / file, X)
    else:
        pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(4)}), tmp_path / file, compression="none")
    source = as_source(Unnamed(), summula.scan(tmp_path / file), "x3", needs_y=True)
    assert cache.cached(source) is source
    assert cache.cached(source, passes=2) is source
    kept = cache.cached(source, **wanted)
    assert isinstance(kept, cache.CachedSource)
    kept.release()


def test_uncompressed_but_encoded_numbers_are_kept(tmp_path):
    X = np.random.default_rng(0).integers(0, 9, (9_000, 4)).astype(float)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(4)}), tmp_path / "rows.parquet", compression="none")
    kept = cache.cached(as_source(Unnamed(), summula.scan(tmp_path / "rows.parquet"), "x3", needs_y=True))
    assert isinstance(kept, cache.CachedSource)
    kept.release()


@pytest.mark.parametrize(("scattered", "passes"), [(False, 1), (False, 20), (True, 1)])
def test_a_slow_disk_is_given_up_with_the_same_rows(rows, monkeypatch, scattered, passes):
    write, writes, clock = os.pwrite, [], SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)

    def slowly(*given):
        writes.append(given[2])
        clock.now += 1.0
        return write(*given)

    monkeypatch.setattr(cache, "time", clock)  # decoding takes no time on this clock
    monkeypatch.setattr(cache, "_TRIAL", 2**16)
    monkeypatch.setattr(os, "pwrite", slowly)
    source = source_of(rows)
    kept = cache.cached(source, scattered=scattered, passes=passes)
    for _ in range(2):
        for ours, theirs in zip(kept.plan(1_024), source.plan(1_024), strict=True):
            for a, b in zip(ours.chunks(), theirs.chunks(), strict=True):
                np.testing.assert_array_equal(a.X, b.X)
                np.testing.assert_array_equal(a.y, b.y)
    assert (len(writes) == 2 * 30) is scattered  # X and the rest, of 30 chunks
    kept.release()


def test_what_was_written_is_read_in_other_stretches(rows, monkeypatch):
    source = source_of(rows)
    kept = cache.cached(source, scattered=True)
    for part in kept.plan(1_024):
        for _ in part.chunks():
            pass
    monkeypatch.setattr(type(source), "chunks", None)  # the files are not needed any more
    given = np.vstack([chunk.X for chunk in kept.chunks(6_000, 15_500, 500)])
    monkeypatch.undo()
    np.testing.assert_array_equal(given, source.chunk(6_000, 15_500).X)
    kept.release()


def test_memory_stays_in_memory():
    source = as_source(Unnamed(), np.ones((5, 2)), np.ones(5), needs_y=True)
    assert cache.cached(source) is source


def test_factors_of_files_are_decoded_once(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"a": rng.standard_normal(9_000), "k": rng.choice(["p", "q", "r"], 9_000), "y": rng.poisson(1.0, 9_000)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=2_000)
    expected = GeneralizedLinearRegressor("poisson").fit(pa.table(columns), "y").coef_
    source = as_source(Unnamed(), summula.scan(tmp_path / "rows.parquet"), "y", needs_y=True, factors=Factors("test"))
    kept = cache.cached(source)
    assert isinstance(kept, type(source))
    assert isinstance(kept.base, cache.CachedSource)
    for _ in range(2):
        for ours, theirs in zip(kept.plan(1_024), source.plan(1_024), strict=True):
            for a, b in zip(ours.chunks(), theirs.chunks(), strict=True):
                np.testing.assert_array_equal(a.X, b.X)
    kept.release()
    model = GeneralizedLinearRegressor("poisson").fit(summula.scan(tmp_path / "rows.parquet"), "y")
    np.testing.assert_array_equal(model.coef_, expected)
