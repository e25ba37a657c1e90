"""The ways to solve a least-squares problem, forced upon data too small to take them by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from summula.linear_model.least_squares import certificate
from summula.linear_model.least_squares import solver as least_squares


def _usual_and(forced: str, usual: str, by: str) -> Any:
    """Make a fixture of both in turn: what small data do by themselves, and what the fixture named `by` forces."""

    @pytest.fixture(params=[usual, forced])
    def fixture(request: pytest.FixtureRequest) -> str:
        if request.param == forced:
            request.getfixturevalue(by)
        return request.param

    return fixture


@pytest.fixture
def by_gram(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data take the ways of large ones: Gram matrix, refinement, and orthogonal factors only when they must."""
    monkeypatch.setattr(least_squares, "TINY_FACTOR", 0)
    monkeypatch.setattr(least_squares, "_CHEAP_FACTOR", 0)


@pytest.fixture
def by_conjugate_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse data of more than ten columns count as wide."""
    for module in (least_squares, certificate):
        monkeypatch.setattr(module, "SPARSE_GRAM_COLUMNS", 10)


# The way small data take, and the one large data take.
way = _usual_and("large", usual="small", by="by_gram")
# Sparse data that have a Gram matrix, and those that are too wide for one.
width = _usual_and("wide", usual="narrow", by="by_conjugate_gradients")
