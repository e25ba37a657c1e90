"""A second process compiles the kernels that a fit will need: when it is started, and that it compiles only those."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba.core.compiler import Flags

from summula.cluster import score_kernels, seeding_kernels
from summula.cluster.score_kernels import compile_assignment
from summula.cluster.seeding_kernels import compile_passes
from summula.core.compilation import background, warmup
from summula.core.compilation.background import (
    compile_meanwhile,
    compile_targets,
    expect_kernels,
    expect_later,
    start_background,
)
from summula.core.compilation.fast_compiler import _KernelFlags
from summula.ensemble import RandomForestRegressor
from summula.training.comparison.candidates import candidates_for, kernels_of
from summula.tree.binned.scan_kernels import needed_kernels
from summula.tree.exact import grower as exact_grower
from summula.tree.exact.records import ENTROPY, GINI, SQUARED
from summula.tree.growing.criterion import NEWTON
from summula.tree.growing.grower import compile_grow
from summula.tree.growing.grower import warmup as grow_a_tree
from summula.tree.growing.growing_kernels import make_grow
from summula.tree.growing.outputs import Outputs
from summula.tree.prediction import predictor_kernels
from summula.tree.prediction.predictor_kernels import COMPILE_FIND_LEAVES
from summula.tree.prediction.predictor_kernels import warmup as find_leaves_of_all

CALLS = []


def note(text: str = "note") -> None:
    """Be called by name."""
    CALLS.append(text)


class Process:
    """A fake process whose `poll` returns these codes; None while it runs."""

    def __init__(self, *codes):
        self.codes = list(codes)

    def poll(self):
        return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]


@pytest.fixture
def started(monkeypatch):
    """Return the commands of processes that would have been started; each of them ends at once."""
    commands = []

    def start(command, **options):
        commands.append(command)
        return Process(0)

    monkeypatch.setattr(background, "_started", set())
    monkeypatch.setattr(background, "_processes", [])
    monkeypatch.setattr(background, "_expected", ())
    monkeypatch.setattr(background, "_later", ())
    monkeypatch.setattr(background.subprocess, "Popen", start)
    monkeypatch.setattr(background.atexit, "register", lambda *_: None)
    monkeypatch.setattr("summula.core.engine.threads.thread_count", lambda n_jobs=None: 2)
    monkeypatch.delenv("SUMMULA_BACKGROUND_COMPILATION", raising=False)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    return commands


def test_one_process_is_started_for_what_is_expected(started):
    start_background()
    assert started == []
    expect_kernels("a:f", "b:g")
    start_background()
    start_background()
    assert [command[-2:] for command in started] == [["a:f", "b:g"]]
    expect_kernels("b:g", "c:h")
    start_background()
    assert started[1][-1:] == ["c:h"]
    assert "b:g" not in started[1]


def test_what_comes_later_is_compiled_by_the_first_process(started):
    expect_later("x:later", "a:f")
    expect_kernels("a:f")
    start_background()
    assert [command[-2:] for command in started] == [["a:f", "x:later"]]


def test_there_is_one_process_at_a_time(started, monkeypatch):
    monkeypatch.setattr(background, "_processes", [Process(None, 0)])
    expect_kernels("a:f")
    start_background()
    assert started == []
    start_background()
    assert len(started) == 1


@pytest.mark.parametrize(("kind", "n_classes"), [("classes", 2), ("classes", 3), ("numbers", 0)])
def test_the_kernels_of_candidates_can_be_compiled(kind, n_classes):
    targets = kernels_of(candidates_for(kind, counts=False), n_classes, has_categories=True)
    assert len(targets) == 6
    assert targets[0].startswith("summula.tree.binned")
    compile_targets(targets)


def test_no_process_is_started_where_it_is_turned_off(started, monkeypatch):
    monkeypatch.setenv("SUMMULA_BACKGROUND_COMPILATION", "0")
    expect_kernels("a:f")
    start_background()
    assert started == []


def test_no_process_is_started_on_one_core(started, monkeypatch):
    monkeypatch.setattr("summula.core.engine.threads.thread_count", lambda n_jobs=None: 1)
    expect_kernels("a:f")
    start_background()
    assert started == []


@pytest.mark.parametrize("executable", [None, "", "/usr/sbin/uwsgi"])
def test_no_process_is_started_from_a_program_that_embeds_python(started, monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    expect_kernels("a:f")
    start_background()
    assert started == []


def test_a_process_that_cannot_be_started_is_done_without(started, monkeypatch):
    def fail(*args, **options):
        raise OSError("no more processes")

    monkeypatch.setattr(background.subprocess, "Popen", fail)
    expect_kernels("a:f")
    start_background()
    assert background._processes == []


def test_targets_are_called_by_name():
    CALLS.clear()
    sys.modules["tests_background_target"] = sys.modules[__name__]
    try:
        compile_targets(["tests_background_target:note", "tests_background_target:note:float32"])
    finally:
        del sys.modules["tests_background_target"]
    assert CALLS == ["note", "float32"]


FIT = """
import numpy as np
from summula.core.compilation import background
from summula.core.compilation.background import expect_kernels
from summula.core.data.layout.fixed_order_kernels import warmup
expect_kernels("summula.core.numerics.grouped_kernels:warmup")
warmup()
(process,) = background._processes
print(process.wait())
"""


def test_the_process_fills_the_same_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "SUMMULA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    environment.pop("SUMMULA_BACKGROUND_COMPILATION", None)
    done = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]
    cached = {path.name.partition(".")[0] for path in tmp_path.rglob("*.nbi")}
    assert {"grouped_kernels", "fixed_order_kernels"} <= cached


def test_what_is_compiled_in_advance_is_what_a_fit_uses():
    for compile_alone, compile_all, kernel in (
        (compile_grow, grow_a_tree, make_grow(NEWTON)),
        (exact_grower.compile_grow, exact_grower.warmup, exact_grower.grow),
        (compile_assignment, score_kernels.warmup, score_kernels.assign_rows),
        (compile_passes, seeding_kernels.warmup, seeding_kernels.reseed_narrow_rows),
        (
            lambda: compile_targets([f"{COMPILE_FIND_LEAVES}:float64"]),
            find_leaves_of_all,
            predictor_kernels._find_leaves,
        ),
    ):
        compile_alone()
        alone = set(kernel.signatures)
        compile_all()
        assert alone
        assert alone <= set(kernel.signatures)
    assert len(make_grow(NEWTON).signatures) == len(exact_grower.grow.signatures) == 1


def test_processes_of_warmup_share_the_modules(tmp_path):
    names = ["a", "b", "c"]
    first, second = warmup._not_taken(names, str(tmp_path)), warmup._not_taken(names, str(tmp_path))
    assert next(first) == "a"
    assert next(second) == "b"
    assert list(first) == ["c"]
    assert list(second) == []


@pytest.mark.parametrize(
    ("criterion", "outputs", "category", "sign", "expected"),
    [
        (GINI, Outputs.one(2), False, 0, ["scan"]),
        (SQUARED, Outputs(), False, 0, ["scan"]),
        (SQUARED, Outputs(), True, -1, ["scan", "find_split", "find_categories"]),
        (GINI, Outputs.one(3), False, 0, ["find_split"]),
        (ENTROPY, Outputs.one(2), True, 0, ["find_split", "find_categories"]),
        (SQUARED, Outputs(2), False, 0, ["find_split"]),
    ],
)
def test_trees_on_bins_compile_the_kernels_they_need(criterion, outputs, category, sign, expected):
    columns = np.array([category, False]), np.array([0, sign])
    assert needed_kernels(criterion, outputs, *columns) == expected


def test_trees_are_added_on_edges_that_cannot_be_written_to():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    model = RandomForestRegressor(2, random_state=0, warm_start=True).fit(X, X[:, 0])
    model._bins.edges.flags.writeable = False
    more = model.set_params(n_estimators=3).fit(X, X[:, 0])
    whole = RandomForestRegressor(3, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(more.predict(X), whole.predict(X))


def test_a_fit_compiles_what_it_needs_later_while_another_process_compiles(monkeypatch):
    CALLS.clear()
    monkeypatch.setattr(background, "_processes", [])
    compile_meanwhile(f"{__name__}:note:a")
    assert CALLS == []
    monkeypatch.setattr(background, "_processes", [Process(None, 0)])
    compile_meanwhile(f"{__name__}:note:a", f"{__name__}:note:b")
    assert CALLS == ["a"]


def test_options_of_kernels_equal_those_of_numba():
    plain = Flags()
    plain.nrt = True
    mine = _KernelFlags(plain)
    assert mine == plain
    assert hash(mine) == hash(plain)
    other = mine.copy()
    assert type(other) is _KernelFlags
    other.nrt = False
    assert other != mine
    assert other == Flags()
    assert len({mine, plain}) == 1


def test_sparse_indices_are_shortened_where_they_fit():
    from scipy.sparse import csr_array, random_array

    from summula.core.data.sparse_format import canonical_csr

    X = random_array((5, 7), density=0.5, format="csr", rng=np.random.default_rng(0))
    X.sort_indices()
    long = csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    short = canonical_csr(long)
    assert short.indices.dtype == short.indptr.dtype == np.int32
    assert np.shares_memory(short.data, long.data)
    np.testing.assert_array_equal(short.toarray(), X.toarray())
    again = canonical_csr(short)
    assert np.shares_memory(again.indices, short.indices)
