"""Plots are drawn in memory, and all figures are closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    from matplotlib import pyplot

    matplotlib.use("Agg")
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before, "a picture has changed settings of matplotlib"
    pyplot.close("all")
