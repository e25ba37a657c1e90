"""The figures of the documentation are reproducible and small."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("make_pictures", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_they_come_out_the_same_each_time(script: Any, tmp_path: Path) -> None:
    again = ("descent-paths", "poisson-mean", "certificate-bounds")  # what could differ is common to all
    for place, names in (("first", script.PICTURES), ("second", again)):
        (tmp_path / place).mkdir()
        script.main(tmp_path / place, names)
    assert {path.stem for path in (tmp_path / "first").iterdir()} == set(script.PICTURES)
    for name in again:
        assert (tmp_path / "first" / f"{name}.svg").read_bytes() == (tmp_path / "second" / f"{name}.svg").read_bytes()


def test_each_is_there_small_and_without_a_date(script: Any) -> None:
    for name in script.PICTURES:
        text = (FOLDER / f"{name}.svg").read_text()
        assert len(text) < 150_000
        assert "<dc:date>" not in text
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(script.PICTURES)
