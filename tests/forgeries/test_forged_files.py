"""Forged files of every kind of model are rejected, or load into working models: no crash, no hang, bounded memory.

Files are changed in one place or several and signed again (`forging.py`), then loaded and used in processes of their
own (`worker.py`). A few per kind are tried here; `SUMMULA_FORGERIES=2000 make test ARGS=tests/forgeries` tries more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import summula
from summula.core.errors import ModelFileError
from summula.core.model_files.classes import saved_classes
from tests.forgeries.forging import ARRAY_MUTATIONS, JSON_MUTATIONS, Forger
from tests.forgeries.kinds import KINDS
from tests.forgeries.running import run_forgeries
from tests.forgeries.uses import CHANGING, NOT_READING, READING, public_methods, uses, works

COUNT = int(os.environ.get("SUMMULA_FORGERIES", "30"))  # per kind
_PEAK = 1_000  # MB; a process that has compiled the kernels of trees has 400

# Processes take seconds to start and to fit what they forge: each has several kinds.
GROUPS = [list(KINDS)[start::3] for start in range(3)]


def test_every_kind_of_model_is_forged() -> None:
    savable = saved_classes().values()
    assert {cls.__name__ for cls in savable if hasattr(cls, "get_params")} == set(KINDS)


def test_every_public_method_is_used_or_reads_nothing() -> None:
    named = [READING, CHANGING, NOT_READING]
    classes = [cls for cls in saved_classes().values() if hasattr(cls, "get_params")]
    found = set.union(*(public_methods(cls) for cls in classes))
    assert found == set.union(*(set(names) for names in named))


@pytest.mark.skipif(sys.platform != "linux", reason="limits processor time and memory as Linux counts them")
@pytest.mark.parametrize("kinds", GROUPS, ids=lambda kinds: "-".join(kinds[:2]))
def test_forged_files_are_refused_or_work(kinds: list[str], tmp_path: Path) -> None:
    result = run_forgeries(tmp_path, COUNT, kinds)
    told = [f"{one['kind']} {one['variant']}, forgery {one['number']}, {one['changes']}: {one['what']}"
            for one in result["failures"]]  # fmt: skip
    assert not told, "\n\n".join(told[:10])
    assert result["peak"] < _PEAK
    for kind in kinds:
        counts = result["counts"][kind]
        assert sum(counts.values()) >= COUNT
        assert counts["refused"] > 0
        assert counts["used"] > 0


def test_forgeries_change_the_file_and_nothing_else(tmp_path: Path) -> None:
    """The forger itself: the same number gives the same file, and what is not changed loads."""
    saved = KINDS["Ridge"][0]()
    summula.save(saved.model, tmp_path / "m")
    forger, again = Forger(tmp_path / "m", 3), Forger(tmp_path / "m", 3)
    forger.write(5, tmp_path / "a")
    again.write(5, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert {mutation for site, mutation in forger.arrays} == set(ARRAY_MUTATIONS)
    assert {mutation for site, mutation in forger.nodes} == set(JSON_MUTATIONS)
    assert len(forger.changes(len(forger) + 1)) > 1
    forger.changes = lambda number: []  # type: ignore[method-assign]
    forger.write(0, tmp_path / "a")
    np.testing.assert_array_equal(summula.load(tmp_path / "a").predict(saved.X), saved.model.predict(saved.X))


# ------------------------------------------------------------------------------------------------------------- by hand


def _forge(folder: Path, changes: dict[str, np.ndarray], kind: str = "HistGradientBoostingRegressor") -> None:
    """Replace tensors of a boosted model."""
    saved = KINDS[kind][1]()
    summula.save(saved.model, folder / "m")
    forger = Forger(folder / "m", 0)
    unknown = changes.keys() - forger.tensors.keys()
    assert not unknown
    forger.tensors.update(changes)
    forger.changes = lambda number: []  # type: ignore[method-assign]
    forger.write(0, folder / "m")


def _nodes() -> dict[str, np.ndarray]:
    nodes = KINDS["HistGradientBoostingRegressor"][1]().model._nodes
    return {f"_nodes.{name}": value.copy() for name, value in nodes._asdict().items()}


def _set(name: str, place: object, value: object) -> dict[str, np.ndarray]:
    array = _nodes()[f"_nodes.{name}"]
    array[place] = value
    return {f"_nodes.{name}": array}


def _swapped_children() -> dict[str, np.ndarray]:
    nodes = _nodes()
    inner = np.flatnonzero(nodes["_nodes.column"][: nodes["_nodes.roots"][1]] >= 0)
    child = nodes["_nodes.child"]
    child[inner[[0, 1]]] = child[inner[[1, 0]]]
    return {"_nodes.child": child}


def _leaf_asks() -> dict[str, np.ndarray]:
    column = _nodes()["_nodes.column"]
    column[np.flatnonzero(column < 0)[0]] = 0
    return {"_nodes.column": column}


def _number_asked_as_category() -> dict[str, np.ndarray]:
    nodes = _nodes()
    number = int(np.flatnonzero(nodes["_nodes.column"] == 0)[0])
    nodes["_nodes.category"][number] = 0
    return {"_nodes.category": nodes["_nodes.category"]}


TREES = {
    "child past the end": (lambda: _set("child", slice(None), 2**31 - 2), "child contains a node that cannot be"),
    "child is a million": (lambda: _set("child", slice(None), 1_000_000), "child contains a node that cannot be"),
    "child is 0": (lambda: _set("child", slice(None), 0), "child contains a node that cannot be the left child"),
    "child is itself": (lambda: _set("child", 1, 1), "child contains a node"),
    "children swapped": (_swapped_children, "child contains a node that cannot be"),
    "child of another tree": (lambda: _set("child", 0, 21), "child contains a node"),
    "a leaf that asks": (_leaf_asks, "child contains a node that cannot be"),
    "column past the end": (lambda: _set("column", 0, 3), r"_nodes.column\[0\] = 3 must be below n_features = 3"),
    "column below -1": (lambda: _set("column", 0, -2), "must be at least -1"),
    "a leaf as root": (lambda: _set("column", 0, -1), "disagree on which nodes are leaves"),
    "category past the end": (lambda: _set("category", 0, 10**6), "must be below n_choices"),
    "category of a number": (_number_asked_as_category, "categorical split on a numeric column"),
    "roots past the end": (lambda: _set("roots", -1, 10**9), "roots does not divide the"),
    "roots falling": (lambda: _set("roots", 1, 10**9), "must not decrease"),
    "roots negative": (lambda: _set("roots", 0, -5), "must be at least 0"),
    "no rows": (lambda: _set("rows", 0, 0), r"_nodes.rows\[0\] = 0 must be at least 1"),
    "edges falling": (lambda: {"_bins.edges": np.tile(np.arange(256.0)[::-1], (3, 1))}, "must not decrease"),
    "edges without end": (lambda: {"_bins.edges": np.tile(np.arange(256.0), (3, 1))}, "edges and n_bins disagree"),
    "levels out of range": (lambda: {"_bins.starts": np.array([0, 0, 1000, 1000])}, "starts goes from 0 to 1000"),
    "levels unsorted": (lambda: {"_bins.levels": np.array([2.0, 1.0, 0.0])}, "levels is not increasing"),
    "bins of levels": (lambda: {"_bins.level_bins": np.array([0, 1, 200], np.uint8)}, "a bin that its column does not"),
    "no bins": (lambda: {"_bins.n_bins": np.array([0, 3, 3])}, "must be at least 1"),
}


@pytest.mark.parametrize("name", TREES)
def test_forged_trees_are_refused(name: str, tmp_path: Path) -> None:
    """Each of these crashed the process, caused an endless loop, or let compiled code read other memory."""
    changes, says = TREES[name]
    _forge(tmp_path, changes())
    with pytest.raises(ModelFileError, match=f"does not contain a valid model .*{says}") as caught:
        summula.load(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="limits processor time and memory as Linux counts them")
def test_failures_are_noticed(tmp_path: Path) -> None:
    """The watch itself: workers that fail at some forgeries are reported with these, and the others are tried."""
    faults = {
        "signal": "ended by the signal SIGSEGV",
        "loop": "did not end",
        "memory": "MemoryError",
        "exception": "KeyError: 'exception'",
    }
    settings = {"FORGERY_FAULTS": " ".join(faults), "FORGERY_SECONDS": "2"}
    result = run_forgeries(tmp_path, 7, ["BaselineRegressor"], **settings)
    failures = sorted(result["failures"], key=lambda one: one["number"])
    assert [(one["kind"], one["number"]) for one in failures] == [("BaselineRegressor", k) for k in (1, 2, 3, 4)]
    for one, says in zip(failures, faults.values(), strict=True):
        assert says in one["what"]
    assert sum(result["counts"]["BaselineRegressor"].values()) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_not_fitted_says_so(kind: str) -> None:
    """A forged file may hold one: every use is refused with a clear sentence, or needs no fit."""
    saved = KINDS[kind][0]()
    model = clone(saved.model)
    if hasattr(model, "__sklearn_is_fitted__") and model.__sklearn_is_fitted__():
        return  # its state is in its parameters
    for name, use in uses(model).items():
        works(name, use, model, saved)
