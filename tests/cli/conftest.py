"""One classifier and one regressor, trained once for all tests of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("typer")

from tests.cli.commands import document, halves


class Trained(NamedTuple):
    """A table, new rows, the folder of results, and the printed output."""

    table: Path
    fresh: Path
    folder: Path
    output: Any


def trained(home: Path, target: str, models: str) -> Trained:
    table, fresh = halves("penguins", home)
    output = document("train", table, "-t", target, "-o", home / "out", "--models", models)
    return Trained(table, fresh, home / "out", output)


@pytest.fixture(scope="session")
def species(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return trained(tmp_path_factory.mktemp("species"), "species", "logistic")


@pytest.fixture(scope="session")
def mass(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return trained(tmp_path_factory.mktemp("mass"), "body_mass_g", "linear,ridge")
