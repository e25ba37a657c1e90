"""Training rows in files: errors, memory of a search, and interrupts."""

from __future__ import annotations

import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import summula
from summula.core.data.scan import Scan
from summula.neighbors import KNeighborsRegressor
from summula.neighbors.search import streamed
from tests.neighbors.stream_pairs import assert_same, features, pair, scanned, table
from tests.processes import run

# --------------------------------------------------------------------------------------------------------------- errors


def test_metrics_that_need_all_rows_are_refused_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = scanned(table().drop(columns="c"), tmp_path)
    monkeypatch.setattr(Scan, "read", lambda *_: pytest.fail("rows are read"))
    for metric, words in (
        ("precomputed", "pass an array, or fit the rows themselves"),
        ("seuclidean", r"pass metric_params=\{'V': ...\}"),
        ("mahalanobis", r"pass metric_params=\{'VI': ...\}"),
    ):
        with pytest.raises(summula.ParameterError, match=words):
            KNeighborsRegressor(metric=metric).fit(rows, "y")


def test_wrong_options_are_refused_at_fit(tmp_path: Path) -> None:
    rows = scanned(table("normal").drop(columns="c"), tmp_path)
    for options, words in (
        ({"metric": "seuclidean", "metric_params": {"V": [1.0]}}, "4 positive numbers"),
        ({"metric": "haversine"}, "2 dimensions"),
        ({"p": 0.5, "algorithm": "kd_tree"}, "set p >= 1"),
    ):
        with pytest.raises(summula.ParameterError, match=words):
            KNeighborsRegressor(**options).fit(rows, "y")


@pytest.mark.parametrize("column", ["b", "y"])
def test_missing_values_are_located_at_fit(column: str, tmp_path: Path) -> None:
    frame = table("normal").drop(columns="c")
    model = KNeighborsRegressor().fit(scanned(frame, tmp_path / ".."), "y")
    before = dict(vars(model))
    frame.loc[503, column] = np.nan
    with pytest.raises(summula.DataError, match=f"'{column}' has 1 missing value .NaN; first at row 503"):
        model.fit(scanned(frame, tmp_path), "y")
    assert vars(model) == before
    frame.loc[503, column] = np.inf
    with pytest.raises(summula.DataError, match=f"'{column}' has 1 infinite value"):
        KNeighborsRegressor(metric="nan_euclidean").fit(scanned(frame, tmp_path), "y")


def test_undefined_distances_name_the_training_row(small_parts: Any, tmp_path: Path) -> None:
    frame = table("normal")
    frame.loc[400, list("abde")] = 1.0
    with small_parts(64), pytest.raises(summula.DataError, match="training row 400 is NaN.*'correlation'"):
        pair(frame, tmp_path, metric="correlation")[1].kneighbors(features(frame))
    # Undefined distances to rows that are not among the nearest do not matter, also where a block has no others.
    frame = table("missing")
    frame.loc[64:127, list("abde")] = np.nan
    with small_parts(64):
        expected, model = pair(frame, tmp_path, metric="nan_euclidean")
        known = features(frame, None).dropna()[:30]
        assert_same(expected.kneighbors(known), model.kneighbors(known))
        with pytest.raises(summula.DataError, match="training row [0-9]+ is NaN.*impute them"):
            model.kneighbors(features(frame)[64:70])
        with pytest.raises(
            summula.ParameterError, match="have missing values, which metric='euclidean' does not support"
        ):
            model.set_params(metric="euclidean").predict(known)


def test_a_file_that_changed_is_not_searched(tmp_path: Path) -> None:
    frame = table()
    _, model = pair(frame, tmp_path)
    twin = pickle.loads(pickle.dumps(model))
    scanned(frame.drop(columns="c")[::-1], tmp_path)
    for one in (model, twin):
        with pytest.raises(summula.DataError, match=r"rows.parquet was changed after KNeighborsRegressor.*: fit again"):
            one.predict(features(frame))
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(summula.DataError, match="was moved or deleted after KNeighborsRegressor.*: put it back, or"):
        model.kneighbors()


def test_saving_is_refused_and_pickles_keep_the_description(tmp_path: Path) -> None:
    frame = table()
    expected, model = pair(frame, tmp_path)
    with pytest.raises(summula.ModelFileError, match="training rows are in files or a Dask.*; pickle the model"):
        summula.save(model, tmp_path / "model")
    packed = pickle.dumps(model)
    assert len(packed) < 8 * len(frame) + 8_000  # the targets and the description
    assert_same([expected.predict(features(frame))], [pickle.loads(packed).predict(features(frame))])


def test_too_many_neighbours_are_refused(tmp_path: Path) -> None:
    frame = table(rows=20)
    _, model = pair(frame, tmp_path, k=21)
    with pytest.raises(summula.ParameterError, match="set n_neighbors to 20"):
        model.predict(features(frame))


# ---------------------------------------------------------------------------------------------- memory and interruption


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Forty files of 20 MB are searched with a fraction of their size."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100_000, 20)), columns=[f"x{j}" for j in range(20)])
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=50_000, compression="none")
    grown = run(
        f"""
    import json
    import pandas as pd
    import summula
    from benchmarks.memory import PeakMemory
    from summula.neighbors import KNeighborsRegressor
    few = pd.read_parquet({str(path)!r})[:300]
    queries = few.drop(columns="x0")
    KNeighborsRegressor().fit(few, "x0").predict(queries)  # libraries and kernels are loaded
    rows = summula.scan(40 * [{str(path)!r}])
    peak = PeakMemory()
    KNeighborsRegressor().fit(rows, "x0").predict(queries)
    print(json.dumps(peak.bytes()))
    """,
        SUMMULA_NUM_THREADS="2",
    )
    assert grown < 0.3 * 40 * path.stat().st_size, f"{grown >> 20} MB"


def test_ctrl_c_ends_a_search_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table()
    expected, model = pair(frame, tmp_path)
    index_rows, blocks = streamed.index_rows, []

    def interrupted(*given: Any) -> Any:
        blocks.append(1)
        if len(blocks) == 3:
            signal.raise_signal(signal.SIGINT)
        return index_rows(*given)

    with summula.engine("serial", chunk_rows=64), monkeypatch.context() as patch:
        patch.setattr(streamed, "index_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.predict_to(model._fit_X.source.table, tmp_path / "found.parquet")
    assert not (tmp_path / "found.parquet").exists()
    assert_same([expected.predict(features(frame))], [model.predict(features(frame))])
