"""Where the committed version of a file is, in a folder whose files change together.

`training/results_folder.py` writes several files to a staging folder and commits them by a manifest; then it moves
them to their names. If its process dies in between, the manifest stays, and readers find the files by it: a model is
never read together with the certificate of another.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

__all__ = ["MANIFEST", "STAGE", "Commit", "committed_version", "pending_commit"]

MANIFEST = ".summula-commit.json"
STAGE = ".summula-results-"  # how the names of staging folders begin


class Commit(NamedTuple):
    """A commit whose files may not all have been moved yet."""

    stage: str
    names: list[str]


def pending_commit(folder: str) -> Commit | None:
    """Return the commit that a folder's manifest names; None when there is none, or when it is not one of ours."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.isfile(path):  # opening a pipe would wait for ever
        return None
    try:
        with open(path, encoding="utf-8") as file:
            tree = json.loads(file.read(1 << 16))
        stage, names = tree["stage"], tree["files"]
        ours = stage.startswith(STAGE) and all(isinstance(name, str) and not name.startswith(".") for name in names)
        plain = all(name and name.isprintable() and os.path.basename(name) == name for name in (stage, *names))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    place = os.path.join(folder, stage)
    return Commit(place, names) if ours and plain and not os.path.islink(place) else None


def committed_version(path: str) -> str:
    """Return where the committed version of a file is: in the staging folder until it is moved, else its path."""
    folder, name = os.path.split(path)
    commit = pending_commit(folder or ".")
    if commit is not None and name in commit.names:
        staged = os.path.join(commit.stage, name)
        if os.path.exists(staged):
            return staged
    return path
