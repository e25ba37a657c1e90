"""For the examples in docstrings: figures are closed after each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def close_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close what an example has drawn."""
    yield
    if isinstance(request.node, pytest.DoctestItem) and "matplotlib.pyplot" in sys.modules:
        from matplotlib import pyplot

        pyplot.close("all")
