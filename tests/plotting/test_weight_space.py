"""Rows as lines in the plane of weights."""

from __future__ import annotations

import numpy as np
import pytest

from summula.core.errors import DataError, ParameterError
from summula.plotting import weight_space
from summula.plotting.fitting.weights import _right_arc

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("seed", range(30))
def test_the_cone_holds_exactly_the_weights_that_are_right(seed):
    rng = np.random.default_rng(seed)
    right = rng.standard_normal((rng.integers(1, 6), 2))
    arc = _right_arc(right)
    angles = np.linspace(0.0, 2 * np.pi, 7_200, endpoint=False) + 1e-7
    judged = (np.column_stack([np.cos(angles), np.sin(angles)]) @ right.T > 0).all(axis=1)
    if arc is None:
        assert not judged.any()
    else:
        inside = np.mod(angles - arc[0], 2 * np.pi) < arc[1] - arc[0]
        assert (inside != judged).sum() <= 2  # grid points at the two ends


def test_each_row_is_a_line_of_weights_orthogonal_to_it():
    X = np.array([[1.0, 2.0], [-1.0, 1.0], [-2.0, -1.0]])
    ax = weight_space(X, ["b", "b", "a"])
    lines = [line.get_xydata() for line in ax.lines]
    for row in X:
        assert any(np.abs(points @ row).max() < 1e-9 for points in lines)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["all rows correct", "a", "b"]
    assert "all 3 rows correctly" in ax.get_title()


def test_classes_that_cannot_be_separated_have_no_cone():
    X = np.array([[0.0], [1.0], [2.0]])
    ax = weight_space(X, [0, 1, 0], intercept=True)
    assert not ax.patches
    assert ax.get_title() == "no weights classify all 3 rows correctly"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("slope", "intercept")


def test_weights_are_joined_and_stay_in_the_picture():
    path = [[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]]
    _, given = pyplot.subplots()
    ax = weight_space([[1.0, 2.0], [-1.0, -1.0]], [1, 0], path, ax=given)
    assert ax is given
    assert any(np.array_equal(line.get_xydata(), path) for line in ax.lines)
    assert ax.get_xlim()[1] > 3


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "words"),
    [
        ([[1.0, 2.0, 3.0]], [1], {}, DataError, "two columns"),
        ([[1.0, 2.0]], [1], {"intercept": True}, DataError, "one column"),
        ([[1.0, np.nan], [0.0, 1.0]], [0, 1], {}, DataError, "NaN"),
        ([["a", "b"], ["c", "d"]], [0, 1], {}, DataError, "is not numeric"),
        ([[1.0, 2.0], [0.0, 1.0]], [0, 1, 1], {}, DataError, "must be equal"),
        ([[1.0, 2.0], [0.0, 1.0]], [1, 1], {}, DataError, "1 classes"),
        ([[1.0, 2.0], [0.0, 1.0]], [0, 1], {"weights": [1.0, 2.0, 3.0]}, ParameterError, "must be finite and of shape"),
    ],
)
def test_what_cannot_be_drawn_raises(X, y, options, error, words):
    with pytest.raises(error, match=words):
        weight_space(X, y, **options)
