"""Scores as sums over rows: on files and collections they are scikit-learn's scores of the same rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, r2_score

import summula
from summula.core.data import chunks
from summula.linear_model import LinearRegression, LogisticRegression, PolynomialRegression, Ridge, RidgeCV

rng = np.random.default_rng(5)
N = 700
X = rng.normal(1.0, 2.0, (N, 3))
Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(N, 2)) + 1e4
WORDS = np.where(X[:, 0] + rng.normal(size=N) > 1, "yes", "no").astype(object)
W = rng.integers(0, 3, N).astype(float)
TABLE = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y0": Y[:, 0], "y1": Y[:, 1], "word": WORDS, "w": W}
FEATURES = ["a", "b", "c"]
FRAME = pd.DataFrame(TABLE)[FEATURES]

REGRESSORS = [LinearRegression(), Ridge(), RidgeCV(), PolynomialRegression()]
regressors = pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
weights = pytest.mark.parametrize("weight", [None, "w"])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)
    with summula.engine("threads", chunk_rows=64):
        yield


def scanned(folder: Path, *columns: str, **table: Any) -> Any:
    parquet.write_table(pa.table({**TABLE, **table}), folder / "rows.parquet", row_group_size=90)
    return summula.scan(folder / "rows.parquet", columns=[*FEATURES, *columns])


def collected(*columns: str, **table: Any) -> Any:
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(pd.DataFrame({**TABLE, **table})[[*FEATURES, *columns]], npartitions=3)


@regressors
@weights
def test_r2_of_files_and_collections_is_that_of_arrays(model: Any, weight: Any, tmp_path: Path) -> None:
    values = None if weight is None else W
    named = [] if weight is None else ["w"]
    model.fit(scanned(tmp_path, "y0", *named), "y0", weight)
    expected = r2_score(Y[:, 0], model.predict(FRAME), sample_weight=values)
    assert model.score(FRAME, Y[:, 0], values) == expected
    # Sums about an origin near the mean lose no digits although the mean is 1e4.
    assert model.score(scanned(tmp_path, "y0", *named), "y0", weight) == pytest.approx(expected, rel=1e-12)
    assert model.score(collected("y0", *named), "y0", weight) == pytest.approx(expected, rel=1e-12)
    assert model.score(pd.DataFrame(TABLE)[[*FEATURES, "y0", *named]], "y0", weight) == expected


@regressors
def test_r2_of_several_targets_is_their_mean(model: Any, tmp_path: Path) -> None:
    model.fit(scanned(tmp_path, "y0", "y1"), ["y0", "y1"])
    expected = r2_score(Y, model.predict(FRAME))
    assert model.score(scanned(tmp_path, "y0", "y1"), ["y0", "y1"]) == pytest.approx(expected, rel=1e-12)
    assert model.score(pd.DataFrame(TABLE)[[*FEATURES, "y0", "y1"]], ["y0", "y1"]) == pytest.approx(expected)


def test_a_constant_target_is_hit_or_not(tmp_path: Path) -> None:
    model = LinearRegression().fit(scanned(tmp_path, "y0"), "y0")
    assert model.score(scanned(tmp_path, "y0", y0=np.full(N, 3.7)), "y0") == 0.0
    flat = LinearRegression().fit(FRAME, np.full(N, 2.5))
    assert flat.score(scanned(tmp_path, "y0", y0=np.full(N, 2.5)), "y0") == 1.0


def test_one_row_has_no_r2(tmp_path: Path) -> None:
    model = LinearRegression().fit(scanned(tmp_path, "y0"), "y0")
    parquet.write_table(pa.table({name: values[:1] for name, values in TABLE.items()}), tmp_path / "one.parquet")
    with pytest.warns(UndefinedMetricWarning, match="less than two samples"):
        assert np.isnan(model.score(summula.scan(tmp_path / "one.parquet", columns=[*FEATURES, "y0"]), "y0"))


def test_missing_values_are_named(tmp_path: Path) -> None:
    model = LinearRegression().fit(scanned(tmp_path, "y0"), "y0")
    bad = TABLE["b"].copy()
    bad[100] = np.nan
    with pytest.raises(summula.DataError, match="Column 'b' has 1 missing value .*row 100"):
        model.score(scanned(tmp_path, "y0", b=bad), "y0")


@weights
def test_accuracy_of_files_and_collections_is_that_of_arrays(weight: Any, tmp_path: Path) -> None:
    values = None if weight is None else W
    named = [] if weight is None else ["w"]
    model = LogisticRegression().fit(scanned(tmp_path, "word", *named), "word", weight)
    expected = accuracy_score(WORDS, model.predict(FRAME), sample_weight=values)
    assert 0.6 < expected < 1
    assert model.score(FRAME, WORDS, values) == expected
    assert model.score(scanned(tmp_path, "word", *named), "word", weight) == pytest.approx(expected, rel=1e-14)
    assert model.score(collected("word", *named), "word", weight) == pytest.approx(expected, rel=1e-14)
    assert model.score(pd.DataFrame(TABLE)[[*FEATURES, "word", *named]], "word", weight) == expected


@pytest.mark.parametrize("rows", [2, 3, 9, 64, 700])
@pytest.mark.parametrize("step", [1, 2])
def test_scores_in_memory_have_the_bits_of_scikit_learn(rows: int, step: int) -> None:
    y, codes = Y[:, 0], np.searchsorted([-1.0, 1.0, 3.0], X[:, 0])
    model, classifier = Ridge().fit(X, y), LogisticRegression().fit(X, codes)
    here = slice(0, rows, step) if rows > 2 else slice(0, rows)
    assert model.score(X[here], y[here]) == r2_score(y[here], model.predict(X[here]))
    assert classifier.score(X[here], codes[here]) == accuracy_score(codes[here], classifier.predict(X[here]))
    assert classifier.score(X[here], codes[here] > 1) == accuracy_score(codes[here] > 1, classifier.predict(X[here]))


def test_what_scikit_learn_refuses_to_score_is_refused() -> None:
    model = Ridge().fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        model.score(X[:3], np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X[:3], Y[:4, 0])
    assert model.score(X[:3], np.ones(3)) == 0.0  # a constant target
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(model.score(X[:1], Y[:1, 0]))


def test_an_unknown_class_counts_as_wrong(tmp_path: Path) -> None:
    model = LogisticRegression().fit(FRAME, WORDS)
    other = WORDS.copy()
    other[:70] = "perhaps"
    expected = accuracy_score(other, model.predict(FRAME))
    assert model.score(FRAME, other) == expected
    assert model.score(scanned(tmp_path, "word", word=other), "word") == pytest.approx(expected)


def test_collections_of_arrays_have_targets_of_their_own() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(100, 3))
    model = Ridge().fit(X, Y)
    assert model.score(lazy, da.from_array(Y, chunks=(150, 2))) == pytest.approx(model.score(X, Y), rel=1e-12)
    codes = (WORDS == "yes").astype(int)
    classifier = LogisticRegression().fit(X, codes)
    assert classifier.score(lazy, da.from_array(codes, chunks=90)) == pytest.approx(classifier.score(X, codes))


def test_scores_on_a_cluster(dask_client: Any) -> None:
    model = LogisticRegression().fit(FRAME, WORDS)
    ridge = PolynomialRegression().fit(FRAME, Y[:, 0])
    with summula.engine(dask_client, chunk_rows=100):
        assert model.score(collected("word"), "word") == pytest.approx(model.score(FRAME, WORDS))
        assert ridge.score(collected("y0"), "y0") == pytest.approx(ridge.score(FRAME, Y[:, 0]))
