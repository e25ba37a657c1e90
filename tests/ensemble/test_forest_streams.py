"""Forests from rows that are not in memory: the same bits as from an array."""

from __future__ import annotations

from dataclasses import fields
from itertools import chain, repeat
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from summula import scan
from summula.core.engine.engine import ThreadEngine, engine
from summula.core.errors import ParameterError
from summula.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from summula.ensemble.forest import streaming
from summula.ensemble.forest.bootstrap import Bootstrap
from summula.tree.binned import level_grower

N = 700


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Numbers, a constant, columns that are mostly constant, categories, missing values and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)).round(2)
    X[rng.random(N) < 0.1, 1] = np.nan
    found = pd.DataFrame(X, columns=list("abcd"))
    found["same"] = 1.0
    found["rare"] = (rng.random(N) < 0.01).astype(float)
    found["kind"] = pd.Categorical(rng.choice(["u", "v", "w", "x"], N))
    found["number"] = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + (found["kind"] == "v") + rng.normal(size=N)
    found["count"] = rng.poisson(np.exp(0.3 * X[:, 0]))
    found["class"] = np.digitize(found["number"], [-0.7, 0.9])
    found["weight"] = rng.random(N) * (rng.random(N) < 0.9)
    return found


CASES: dict[str, tuple[Any, str, str | None]] = {
    "classes": (RandomForestClassifier(3, random_state=0), "class", None),
    "numbers": (RandomForestRegressor(3, random_state=1, max_features=0.4, min_samples_leaf=2), "number", None),
    "all columns": (RandomForestRegressor(2, random_state=1), "number", None),
    "depth": (RandomForestClassifier(4, random_state=2, max_depth=3, criterion="entropy"), "class", None),
    "leaves": (RandomForestRegressor(3, random_state=3, max_leaf_nodes=9, min_samples_leaf=4), "number", None),
    "leaves of classes": (RandomForestClassifier(3, random_state=3, max_leaf_nodes=25), "class", None),
    "one column": (RandomForestClassifier(4, random_state=4, max_features=1), "class", None),
    "counts": (RandomForestRegressor(2, random_state=5, criterion="poisson", max_depth=6), "count", None),
    "drawn": (ExtraTreesRegressor(3, random_state=6, max_depth=7), "number", "weight"),
    "drawn classes": (ExtraTreesClassifier(3, random_state=7, max_features=2), "class", "weight"),
    "weights": (RandomForestRegressor(3, random_state=8, max_depth=5), "number", "weight"),
    "balanced": (RandomForestClassifier(3, random_state=9, class_weight="balanced_subsample"), "class", None),
    "pruned": (RandomForestRegressor(2, random_state=10, ccp_alpha=0.01), "number", None),
    "worth it": (RandomForestClassifier(3, random_state=11, min_impurity_decrease=0.005), "class", None),
    "heavy leaves": (RandomForestClassifier(3, random_state=12, min_weight_fraction_leaf=0.02), "class", "weight"),
    "few rows": (RandomForestClassifier(6, random_state=13, max_samples=40), "class", None),
    "out of bag": (RandomForestRegressor(30, random_state=14, oob_score=True, max_depth=4), "number", None),
}


def _fit(model: Any, X: Any, target: str, weight: str | None) -> Any:
    return clone(model).fit(X, target, sample_weight=weight)


@pytest.mark.parametrize("memory", [1, 30_000, 200_000])
@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_as_from_memory(
    case: str, memory: int, frame: pd.DataFrame, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, target, weight = CASES[case]
    columns = [*list("abcd"), "same", "rare", "kind", target, *([weight] if weight else [])]
    rows = frame[columns][: N // 2]  # (with memory for one node the file is read once per node)
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path)
    with engine(ThreadEngine(chunk_rows=64)):
        expected = _fit(model, rows, target, weight)
        limits = chain([1], repeat(memory))  # the rows do not fit; memory for nodes
        monkeypatch.setattr(streaming, "memory_limit", lambda: next(limits))
        found = _fit(model, scan(path), target, weight)
    assert next(limits) == memory
    for field in fields(expected._trees):
        np.testing.assert_array_equal(getattr(found._trees, field.name), getattr(expected._trees, field.name))
    if model.oob_score:
        np.testing.assert_array_equal(found.oob_prediction_, expected.oob_prediction_)


def test_passes_keep_to_the_memory_allowed(frame: pd.DataFrame, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    frame[[*"abcd", "class"]].to_parquet(path)
    memory, sizes, kinds = 100_000, [], set()
    read_rows = streaming._read_rows

    def spy(run: Any, bins: Any, data: Any, chosen: Any) -> None:
        works = [growing.tree.work for growing in chosen]
        sizes.append(sum(work.cells.nbytes + work.bins.nbytes + 16 * len(work.y) for work in works))
        kinds.update(int(kind) for work in works for kind in work.records["is_gathered"])
        read_rows(run, bins, data, chosen)

    limits = chain([1], repeat(memory))
    monkeypatch.setattr(streaming, "memory_limit", lambda: next(limits))
    monkeypatch.setattr(streaming, "_read_rows", spy)
    RandomForestClassifier(4, min_samples_leaf=2, random_state=0).fit(scan(path), "class")
    assert max(sizes) <= memory
    assert kinds == {0, 1}  # sums of columns, and copies of rows


def test_the_memory_allowed_is_that_of_the_environment(
    frame: pd.DataFrame, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    frame[["a", "c", "class"]].to_parquet(path)
    passes: list[int] = []
    read_rows = streaming._read_rows
    monkeypatch.setattr(streaming, "_read_rows", lambda *given: (passes.append(1), read_rows(*given)))
    model = RandomForestClassifier(2, max_depth=2, random_state=0)
    for memory, n_passes in (("", 0), (str(2 * N), 0), (str(2 * N - 1), 3)):
        monkeypatch.setenv("SUMMULA_FOREST_MEMORY", memory)
        passes.clear()
        model.fit(scan(path), "class")
        assert (len(passes) >= n_passes) if n_passes else not passes
    monkeypatch.setenv("SUMMULA_FOREST_MEMORY", "a lot")
    with pytest.raises(ParameterError, match="SUMMULA_FOREST_MEMORY is 'a lot': set it to a number of bytes"):
        model.fit(scan(path), "class")


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_of_blocks_are_multinomial(weighted: bool) -> None:
    n, trees = 10_000, 60  # three blocks, the last one smaller
    weight = np.where(np.arange(n) % 7 == 0, 0.0, 1.0 + np.arange(n) % 3) if weighted else None
    bootstrap = Bootstrap(n, n, weight, seed=5)
    counts = np.array([bootstrap.sample(tree).counts(0, n) for tree in range(trees)])
    assert (counts.sum(axis=1) == n).all()
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    assert not counts[:, share == 0].any()
    groups = np.arange(n) // 500
    observed, expected = np.bincount(groups, counts.sum(axis=0)), trees * n * np.bincount(groups, share)
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    # Within a tree, blocks vary as those of a multinomial distribution do.
    p = share[:4_096].sum()
    spread = counts[:, :4_096].sum(axis=1).var(ddof=1) / (n * p * (1 - p))
    assert stats.chi2.ppf(1e-3, trees - 1) < spread * (trees - 1) < stats.chi2.ppf(1 - 1e-3, trees - 1)


def test_some_rows_of_a_sample_are_drawn_alike() -> None:
    sample = Bootstrap(9_000, 5_000, None, seed=1).sample(3)
    whole = sample.counts(0, 9_000)
    np.testing.assert_array_equal(np.bincount(sample.draws(), minlength=9_000), whole)
    for start, stop in ((0, 1), (100, 5_000), (4_095, 4_097), (8_192, 9_000)):
        np.testing.assert_array_equal(sample.counts(start, stop), whole[start:stop])


def test_warmup_grows_a_tree() -> None:
    level_grower.warmup()
