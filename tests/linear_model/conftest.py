"""The ways to solve a least-squares problem, forced upon data too small to take them by themselves."""

from __future__ import annotations

import pytest

from summula.linear_model.least_squares import certificate
from summula.linear_model.least_squares import solver as least_squares


@pytest.fixture
def by_gram(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data take the ways of large ones: Gram matrix, refinement, and orthogonal factors only when they must."""
    monkeypatch.setattr(least_squares, "TINY_FACTOR", 0)
    monkeypatch.setattr(least_squares, "_CHEAP_FACTOR", 0)


@pytest.fixture(params=["small", "large"])
def way(request: pytest.FixtureRequest) -> str:
    """Both in turn: the way small data take, and the one large data take."""
    if request.param == "large":
        request.getfixturevalue("by_gram")
    return request.param


@pytest.fixture
def by_conjugate_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse data of more than ten columns count as wide."""
    for module in (least_squares, certificate):
        monkeypatch.setattr(module, "SPARSE_GRAM_COLUMNS", 10)


@pytest.fixture(params=["narrow", "wide"])
def width(request: pytest.FixtureRequest) -> str:
    """Both in turn: sparse data that have a Gram matrix, and those that are too wide for one."""
    if request.param == "wide":
        request.getfixturevalue("by_conjugate_gradients")
    return request.param
