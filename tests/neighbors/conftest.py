"""Small blocks of training rows, and small batches of queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import summula
from summula.core.data import chunks
from summula.neighbors import neighbor_search
from summula.neighbors.search import streamed


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """An engine whose blocks have a given number of rows."""

    def of(rows: int | None, engine: str = "threads") -> Any:
        monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1 if rows else 2**21)
        return summula.engine(engine, chunk_rows=rows)

    return of


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Batches of 256 queries, and the number of those of every pass over the training rows."""
    passes: list[int] = []
    search = streamed.StreamedIndex._pass

    def counted(self: Any, X: Any, *given: Any) -> Any:
        passes.append(X.shape[0])
        return search(self, X, *given)

    monkeypatch.setattr(neighbor_search, "_PASS_QUERIES", 256)
    monkeypatch.setattr(streamed.StreamedIndex, "_pass", counted)
    return passes
