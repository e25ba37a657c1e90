"""Several passes of Lloyd's algorithm in one call, against a few lines of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from summula.cluster.k_means_kernels import few_passes
from tests.reference.k_means import lloyd


def run(X: Any, start: Any, weights: Any, passes: int, tolerance: float = -1.0) -> tuple[int, Any, Any, Any, Any]:
    """The number of passes, the centres after and before the last one, labels, and the inertia of each."""
    k, d = start.shape
    labels, inertias, centres, last = np.full(len(X), -1, np.int32), np.zeros(passes), start.copy(), np.zeros((k, d))
    sums = np.zeros((k, d)), np.zeros(k), np.zeros(k + 1), np.array([tolerance, np.inf])
    done = few_passes(X, (centres, last, np.arange(k)), weights, labels, np.zeros((2, len(X))), sums, inertias)
    return done, centres, last, labels, inertias


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_are_those_of_the_reference(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    weights = rng.integers(1, 4, 300).astype(float) if weighted else np.empty(0)
    done, centres, last, _, inertias = run(X, X[:4], weights, 6)
    expected, _, trace = lloyd(X, X[:4], 6, weights if weighted else None)
    assert done == 6
    np.testing.assert_allclose(centres, expected, rtol=1e-12)
    np.testing.assert_allclose(last, lloyd(X, X[:4], 5, weights if weighted else None)[0], rtol=1e-12)
    np.testing.assert_allclose(inertias, trace, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("kind", ["normal", "clusters", "lattice"])
def test_bounds_leave_the_bits_of_single_passes(kind: str, offset: float) -> None:
    """On a lattice many rows are equally near to several centres."""
    rng = np.random.default_rng(1)
    X = {
        "normal": rng.normal(size=(900, 6)),
        "clusters": rng.normal(size=(900, 6)) + 20.0 * rng.integers(0, 2, (900, 6)),
        "lattice": rng.integers(-1, 2, (900, 6)).astype(float),
    }[kind] + offset
    done, centres, last, labels, inertias = run(X, X[:5], np.empty(0), 30)
    assert done > 3
    start = X[:5]
    for p in range(done):
        one, now, before, single, inertia = run(X, start, np.empty(0), 1)
        assert (one, inertia[0]) == (1, inertias[p])
        start = now
    for found, expected in ((centres, now), (last, before), (labels, single)):
        np.testing.assert_array_equal(found, expected)


def test_they_end_when_no_label_changes_and_at_the_tolerance() -> None:
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    done, centres, _, labels, inertias = run(X, X[[0, 2]], np.empty(0), 6)
    assert done == 1
    assert centres.tolist() == [[0.5], [10.5]]
    assert labels.tolist() == [0, 0, 1, 1]
    assert inertias[0] == 2.0
    assert run(X, X[[0, 1]], np.empty(0), 6, tolerance=1e9)[0] == 1


@pytest.mark.parametrize("far", [5.0, np.nan, 1e200])
def test_a_pass_that_needs_more_is_left_to_the_caller(far: float) -> None:
    """An empty cluster, or rows that are not finite, or whose distances are not."""
    X = np.array([[0.0], [1.0], [far]])
    start = np.array([[0.0], [1e3]]) if far == 5.0 else X[:2].copy()
    done, centres, _, labels, _ = run(X, start, np.empty(0), 4)
    assert done == 0
    assert centres.tolist() == start.tolist()
    assert (labels == -1).all()
