"""Shattering and VC dimension: textbook sets of points, closed forms found again by search, Radon's theorem."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.pipeline import make_pipeline

from summula.core.errors import DataError, ParameterError
from summula.features import ParabolicLift
from summula.linear_model import LogisticRegression, Perceptron
from summula.svm import SVC, LinearSVC, PegasosSVC
from summula.theory import Boxes, Halfspaces, Thresholds, shatters, unrealized_labels, vc_dimension
from summula.tree import DecisionTreeClassifier

TRIANGLE = [[0, 0], [1, 0], [0, 1]]
SQUARE = [[0, 0], [1, 0], [0, 1], [1, 1]]
DIAMOND = [[1, 0], [-1, 0], [0, 1], [0, -1]]


@pytest.mark.parametrize(
    ("model", "points", "expected"),
    [
        (Halfspaces(2), TRIANGLE, True),
        (Halfspaces(2), [[0, 0], [1, 1], [2, 2]], False),  # on a line
        (Halfspaces(2), SQUARE, False),
        (Halfspaces(2, homogeneous=True), [[1, 0], [0, 1]], True),
        (Halfspaces(2, homogeneous=True), TRIANGLE, False),  # the origin is on every boundary
        (Halfspaces(2, homogeneous=True), [[1, 0], [2, 0]], False),
        (Boxes(2), DIAMOND, True),
        (Boxes(2), SQUARE, False),
        (Boxes(1), [1, 2], True),
        (Boxes(1), [1, 2, 3], False),
        (Thresholds(), [3], True),
        (Thresholds(), [3, 4], False),
        (Halfspaces(2), [[0, 0], [0, 0]], False),  # one point twice
    ],
)
def test_textbook_sets(model, points, expected):
    assert shatters(model, points) is expected


@pytest.mark.parametrize("d", [1, 2, 3])
def test_half_spaces_shatter_a_simplex_and_no_larger_set(d):
    """Radon: d + 2 points have a partition whose convex hulls meet."""
    rng = np.random.default_rng(d)
    assert shatters(Halfspaces(d), np.vstack([np.zeros(d), np.eye(d)]))
    assert shatters(Halfspaces(d, homogeneous=True), np.eye(d))
    for _ in range(5):
        assert not shatters(Halfspaces(d), rng.normal(size=(d + 2, d)))
        assert not shatters(Halfspaces(d, homogeneous=True), rng.normal(size=(d + 1, d)))


@pytest.mark.parametrize("model", [Thresholds(), Boxes(1), Boxes(2), Halfspaces(1), Halfspaces(2)])
def test_the_search_finds_the_closed_form(model):
    d = model.n_features
    points = np.vstack([DIAMOND, [[0.3, 0.2]]]) if d == 2 else np.arange(4.0)[:, None]
    assert vc_dimension(model, points) == vc_dimension(model)


@pytest.mark.parametrize("homogeneous", [False, True])
def test_half_spaces_shatter_independent_points(homogeneous):
    """The closed form by ranks against linear programs for all labellings."""
    rng = np.random.default_rng(3)
    for n in (2, 3, 4):
        for rank in (1, 2, 3):
            points = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, 3)) * [1.0, 1e6, 1e-6]
            model = Halfspaces(3, homogeneous)
            by_programs = all(model.realizes(points, np.array(y)) for y in product([False, True], repeat=n))
            assert shatters(model, points) == by_programs == (n <= rank + (not homogeneous))


def test_many_points_in_many_dimensions_take_no_time():
    points = np.random.default_rng(0).normal(size=(16, 15)) + 1e6
    assert shatters(Halfspaces(15), points)
    assert vc_dimension(Halfspaces(15), points) == 16
    assert vc_dimension(Halfspaces(15, homogeneous=True), points) == 15


@pytest.mark.parametrize("n_features", [0, 2.5, True])
def test_numbers_of_coordinates(n_features):
    for kind in (Halfspaces, Boxes):
        with pytest.raises(ParameterError, match="n_features must be an int >= 1"):
            kind(n_features)


def test_the_labelling_that_is_missing():
    assert unrealized_labels(Halfspaces(2), TRIANGLE) is None
    labels = unrealized_labels(Halfspaces(2), SQUARE)
    assert labels.tolist() in ([False, True, True, False], [True, False, False, True])


# ---------------------------------------------------------------------------------------------------- finite classes


def test_functions_are_counted_by_their_patterns():
    every = [lambda X, y=y: np.array(y)[X[:, 0].astype(int)] for y in product((0, 1), repeat=3)]
    assert shatters(every, [0, 1, 2])
    assert not shatters(every[:-1], [0, 1, 2])
    assert unrealized_labels(every[:-1], [0, 1, 2]).tolist() == [True, True, True]
    assert vc_dimension(every[:-1], [0, 1, 2]) == 2
    assert vc_dimension(dict(enumerate(every[:1])), [0, 1, 2]) == 0


def test_without_points_the_dimension_of_functions_is_unknown():
    with pytest.raises(ParameterError, match=r"pass them as points= \(it is at most 1\)"):
        vc_dimension([lambda X: X[:, 0] > 0] * 3)


# ------------------------------------------------------------------------------------------------------- classifiers


@pytest.mark.parametrize("model", [LogisticRegression(), Perceptron(), LinearSVC(), SVC(kernel="linear"), Theirs()])
def test_linear_classifiers_are_half_spaces(model):
    assert shatters(model, TRIANGLE)
    assert not shatters(model, SQUARE)
    assert vc_dimension(model.fit(np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2)) == 6


def test_without_an_intercept_one_point_less():
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2
    assert vc_dimension(LogisticRegression(fit_intercept=False).fit(X, y)) == 5
    assert vc_dimension(PegasosSVC().fit(X, y)) == 5
    assert not shatters(LogisticRegression(fit_intercept=False), TRIANGLE)


def test_circles_in_a_pipeline():
    """Circles and lines in the plane are half-spaces after the lift to three dimensions, so they can shatter four."""
    model = make_pipeline(ParabolicLift(), LogisticRegression())
    assert shatters(model, [[0, 0], [1, 0], [0, 1], [0.3, 0.3]])
    assert vc_dimension(model, [[0, 0], [1, 0], [0, 1], [0.3, 0.3], [2.0, 1.7]]) == 4


def test_a_tree_shatters_any_distinct_points_and_a_stump_does_not():
    points = np.random.default_rng(0).normal(size=(5, 2))
    assert shatters(DecisionTreeClassifier(), points)
    assert not shatters(DecisionTreeClassifier(max_depth=1), points)
    with pytest.raises(ParameterError, match="pass points= to find how many"):
        vc_dimension(DecisionTreeClassifier())


@pytest.mark.parametrize(
    ("model", "points", "error", "message"),
    [
        (Halfspaces(3), TRIANGLE, DataError, "3 coordinates; these have 2"),
        (Halfspaces(2), np.zeros((17, 2)), ParameterError, "2\\^17 labellings; pass at most 16"),
        (Halfspaces(2), [[0.0, np.nan]], DataError, "Point 0 is not finite"),
        (Halfspaces(2), [["a", "b"]], DataError, "array of numbers"),
        (Halfspaces(1), [], DataError, "shape"),
        ([], TRIANGLE, ParameterError, "empty"),
        ("half-planes", TRIANGLE, ParameterError, "a class such as Halfspaces"),
        ([lambda X: X], TRIANGLE, DataError, "one label per point, 0 or 1"),
        (LogisticRegression(), None, ParameterError, "fit it first"),
    ],
)
def test_bad_input(model, points, error, message):
    with pytest.raises(error, match=message):
        vc_dimension(model) if points is None else shatters(model, points)
