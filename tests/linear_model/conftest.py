"""Fixtures that force each least-squares solver on small data."""

from __future__ import annotations

from typing import Any

import pytest

from summula.linear_model.cross_validation import leave_one_out, ridge_errors
from summula.linear_model.least_squares import certificate
from summula.linear_model.least_squares import solver as least_squares


def _usual_and(forced: str, usual: str, by: str) -> Any:
    """Return a fixture for both cases: the default solver for small data, and the one forced by the fixture `by`."""

    @pytest.fixture(params=[usual, forced])
    def fixture(request: pytest.FixtureRequest) -> str:
        if request.param == forced:
            request.getfixturevalue(by)
        return request.param

    return fixture


@pytest.fixture
def by_gram(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the solvers of large data on small data: Gram matrix, refinement, and orthogonal factors only if needed."""
    monkeypatch.setattr(least_squares, "TINY_FACTOR", 0)
    monkeypatch.setattr(least_squares, "_CHEAP_FACTOR", 0)


@pytest.fixture
def by_conjugate_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat sparse data with more than ten columns as wide."""
    for module in (least_squares, certificate):
        monkeypatch.setattr(module, "SPARSE_GRAM_COLUMNS", 10)


# The solver for small data, and the one for large data.
way = _usual_and("large", usual="small", by="by_gram")
# Sparse data that have a Gram matrix, and those that are too wide for one.
width = _usual_and("wide", usual="narrow", by="by_conjugate_gradients")


@pytest.fixture
def ridge_cv_large(monkeypatch: pytest.MonkeyPatch, by_gram: None) -> None:
    """Use the solvers of `RidgeCV` for large data on small data."""
    for module in (ridge_errors, leave_one_out):
        monkeypatch.setattr(module, "TINY_FACTOR", 0)


# The same for `RidgeCV`: triangular factors, and sums of products.
ridge_cv_way = _usual_and("large", usual="small", by="ridge_cv_large")
