"""One model of classes and one of numbers, trained once for all tests of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("typer")

from tests.cli.commands import document, halves


class Trained(NamedTuple):
    """A table, rows the model has not seen, the folder of results, and what was printed."""

    table: Path
    fresh: Path
    folder: Path
    said: Any


@pytest.fixture(scope="session")
def species(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    home = tmp_path_factory.mktemp("species")
    table, fresh = halves("penguins", home)
    said = document("train", table, "-t", "species", "-o", home / "out", "--models", "logistic")
    return Trained(table, fresh, home / "out", said)


@pytest.fixture(scope="session")
def mass(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    home = tmp_path_factory.mktemp("mass")
    table, fresh = halves("penguins", home)
    said = document("train", table, "-t", "body_mass_g", "-o", home / "out", "--models", "linear,ridge")
    return Trained(table, fresh, home / "out", said)
