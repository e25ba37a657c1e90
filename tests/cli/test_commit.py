"""Files that are replaced together: a process may die at any step, and two may write to one folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import summula
from summula.core.errors import OutputError
from summula.core.model_files import persistence
from summula.core.model_files.commits import committed_version
from summula.dummy import BaselineRegressor
from summula.training.results_folder import committed_path, exclusive, write_together, write_whole
from tests.cli.commands import document, failure
from tests.cli.conftest import Trained
from tests.processes import TIMEOUT, environment

NAMES = ("model.summula", "leaderboard.csv", "certificate.json", "report.html")
STEPS = ("replace", "unlink", "mkdir", "rmdir", "fsync", "open", "rename", "remove", "listdir", "chmod")


class Death(BaseException):
    """Simulates the end of the process: no later operation takes effect."""


@contextmanager
def dying_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Simulate a process that dies at its n-th file system call: this call and all later ones fail."""
    calls = [0]

    def mortal(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] > step:
                raise Death
            return original(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, mortal(getattr(os, name)))
        yield calls


def train(folder: Path, what: str) -> None:
    def writer(name: str) -> Callable[[str], None]:
        return lambda path: write_whole(path, f"{what} {name}")

    with exclusive(str(folder)):
        write_together(str(folder), {name: writer(name) for name in NAMES})


def read(folder: Path) -> dict[str, str]:
    """Return the state visible to a command."""
    return {name: Path(committed_path(str(folder / name))).read_text() for name in NAMES}


def read_as_load(folder: Path) -> dict[str, str]:
    """What `summula.load` sees, which moves nothing."""
    return {name: Path(committed_version(str(folder / name))).read_text() for name in NAMES}


def whole(what: str) -> dict[str, str]:
    return {name: f"{what} {name}" for name in NAMES}


def test_a_process_that_dies_at_any_step_leaves_all_old_or_all_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, step, died = [], 0, True
    while died:
        folder = tmp_path / str(step)
        folder.mkdir()
        train(folder, "old")
        died = False
        with dying_at(step, monkeypatch):
            try:
                train(folder, "new")
            except Death:
                died = True
        (folder / ".summula-lock").unlink(missing_ok=True)  # the system releases locks of a dead process
        loaded = read_as_load(folder)
        found = read(folder)
        assert loaded == found
        assert found in (whole("old"), whole("new")), f"mixed after {step} steps"
        seen.append(found["model.summula"].split()[0])
        assert read(folder) == found, "reading changes nothing that is seen"
        train(folder, "newest")
        assert read(folder) == whole("newest")
        assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES), "leftovers are removed"
        step += 1
    # The change is one step, somewhere in the middle.
    change = seen.index("new")
    assert 10 < change < len(seen) - 5
    assert seen == ["old"] * change + ["new"] * (len(seen) - change)


def test_after_the_commit_a_reader_completes_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, "old")
    original, moved = os.replace, []

    def replace(source: Any, target: Any) -> None:
        if moved and os.path.basename(target) in NAMES and ".summula-results-" not in str(target):
            raise Death
        moved.extend(["commit"] if str(target).endswith(".summula-commit.json") else [])
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(Death):
            train(tmp_path, "new")
    assert (tmp_path / "model.summula").read_text() == "old model.summula"
    committed_path(str(tmp_path / "report.html"))
    assert {name: (tmp_path / name).read_text() for name in NAMES} == whole("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


def test_a_folder_that_cannot_be_written_to_is_read_where_the_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, "old")
    stage = tmp_path / ".summula-results-x"
    stage.mkdir()
    for name in NAMES[1:]:  # the first has been moved
        (stage / name).write_text(f"new {name}")
    (tmp_path / NAMES[0]).write_text(f"new {NAMES[0]}")
    (tmp_path / ".summula-commit.json").write_text(json.dumps({"stage": stage.name, "files": list(NAMES)}))

    def refuse(*args: Any, **options: Any) -> Any:
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)
    assert read(tmp_path) == whole("new")


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "{}",
        '{"stage": "../elsewhere", "files": ["model.summula"]}',
        '{"stage": "elsewhere", "files": ["model.summula"]}',
        '{"stage": ".summula-results-link", "files": ["model.summula"]}',
        '{"stage": ".summula-results-x", "files": ["../model.summula"]}',
        '{"stage": ".summula-results-x", "files": [3]}',
    ],
)
def test_a_manifest_that_is_not_ours_moves_nothing(manifest: str, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    for place in (folder, elsewhere, folder / "elsewhere", folder / ".summula-results-x"):
        place.mkdir()
        (place / "model.summula").write_text("private")
    if os.name == "posix":
        (folder / ".summula-results-link").symlink_to(elsewhere)
    (folder / "model.summula").write_text("old")
    (folder / ".summula-commit.json").write_text(manifest)
    path = str(folder / "model.summula")
    assert committed_path(path) == path
    assert (folder / "model.summula").read_text() == "old"
    assert (elsewhere / "model.summula").read_text() == "private"


def test_the_second_of_two_raises(tmp_path: Path, species: Trained) -> None:
    with exclusive(str(tmp_path)):
        with pytest.raises(OutputError, match="Another training run is writing to"), exclusive(str(tmp_path)):
            pass
        message = failure(5, "train", species.table, "-t", "species", "-o", tmp_path, "--models", "baseline")
        assert message.startswith(
            f"Another training run is writing to {tmp_path}; wait until it has finished, or choose"
        )
    assert not list(tmp_path.iterdir())
    document("train", species.table, "-t", "species", "-o", tmp_path, "--models", "baseline")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_the_lock_of_a_dead_process_holds_nobody(tmp_path: Path) -> None:
    script = "import os, signal, sys; from summula.training.results_folder import exclusive\nwith exclusive(sys.argv[1]):\n    "
    script += "os.kill(os.getpid(), signal.SIGKILL)"
    words = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, env=environment(), timeout=TIMEOUT, check=False)
    assert done.returncode < 0
    assert (tmp_path / ".summula-lock").exists()
    train(tmp_path, "new")
    assert read(tmp_path) == whole("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


def test_a_model_that_is_committed_and_not_moved_is_the_one_that_predicts(species: Trained, tmp_path: Path) -> None:
    """The command line reads a folder according to its manifest."""
    folder, stage = tmp_path / "out", tmp_path / "out" / ".summula-results-x"
    stage.mkdir(parents=True)
    (folder / "model.summula").write_text("an older model")
    for name in NAMES:
        (stage / name).write_bytes((species.folder / name).read_bytes())
    (folder / ".summula-commit.json").write_text(json.dumps({"stage": stage.name, "files": list(NAMES)}))
    output = document("certify", folder / "model.summula", species.fresh)
    assert output["model hash"] == json.loads((folder / "certificate.json").read_text())["model_hash"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)


def _baseline(value: float) -> BaselineRegressor:
    return BaselineRegressor().fit([[0.0]], [value])


def test_a_model_that_is_committed_and_not_moved_is_the_one_that_loads(tmp_path: Path) -> None:
    stage, path = tmp_path / ".summula-results-x", tmp_path / "model.summula"
    stage.mkdir()
    summula.save(_baseline(1.0), path)
    summula.save(_baseline(2.0), stage / "model.summula")
    (tmp_path / ".summula-commit.json").write_text(json.dumps({"stage": stage.name, "files": list(NAMES)}))
    assert summula.load(path).predict([[0.0]]) == 2.0
    assert summula.load(path).predict([[0.0]]) == 2.0, "loading moves nothing"
    summula.save(_baseline(3.0), path)
    assert summula.load(path).predict([[0.0]]) == 3.0, "a newer file is not hidden by the commit"


def test_a_model_that_is_moved_while_it_is_loaded_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, path = tmp_path / ".summula-results-x", tmp_path / "model.summula"
    stage.mkdir()
    summula.save(_baseline(1.0), path)
    summula.save(_baseline(2.0), stage / "model.summula")
    (tmp_path / ".summula-commit.json").write_text(json.dumps({"stage": stage.name, "files": list(NAMES)}))
    original = persistence.read_header

    def read_header(name: str) -> Any:
        if os.path.dirname(name) == str(stage):  # the process that has the folder completes the commit now
            committed_path(str(path))
        return original(name)

    monkeypatch.setattr(persistence, "read_header", read_header)
    assert summula.load(path).predict([[0.0]]) == 2.0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model.summula"]
