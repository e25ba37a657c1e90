"""Paths over contours: the points of the path, contours of the function, error messages."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.contour import ContourSet

from summula import DataError, ParameterError
from summula.core.numerics.solution import Solution
from summula.optimize import bfgs, coordinate_descent, gradient_descent
from summula.plotting import descent_path
from summula.plotting.style import colour


def f(x):
    return x[0] ** 2 / 2 + 5 * x[1] ** 2


def found():
    return gradient_descent(f, [5.0, 1.0], lipschitz=10.0, max_steps=20), bfgs(f, [5.0, 1.0])


def test_the_points_are_those_of_the_solver():
    solutions = found()
    ax = descent_path(f, *solutions, labels=["descent", "BFGS"])
    for k, solution in enumerate(solutions):
        line = ax.get_lines()[k]
        np.testing.assert_array_equal(np.column_stack(line.get_data()), np.array(solution.path))
        assert line.get_color() == colour(k)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["descent", "BFGS"]


def test_all_points_are_in_the_picture_with_a_margin():
    solutions = found()
    ax = descent_path(f, *solutions, margin=0.1)
    points = np.vstack([np.array(solution.path) for solution in solutions])
    for values, (low, high) in zip(points.T, (ax.get_xlim(), ax.get_ylim()), strict=True):
        assert low < values.min() < values.max() < high
        assert high - low == pytest.approx(1.2 * (values.max() - values.min()))


def test_contours_are_levels_of_the_function():
    ax = descent_path(f, found()[0])
    (contours,) = [artist for artist in ax.collections if isinstance(artist, ContourSet)]
    lines = [(level, part) for level, parts in zip(contours.levels, contours.allsegs, strict=True) for part in parts]
    assert len(lines) > 5
    for level, part in lines:
        np.testing.assert_allclose([f(point) for point in part], level, rtol=2e-2, atol=2e-2)
    # On a quadratic, squares of equal steps.
    steps = np.diff(np.sqrt(np.maximum(contours.levels, 0.0)))
    np.testing.assert_allclose(steps, steps[0], rtol=2e-2)


def test_a_path_along_an_axis_and_one_alone():
    ax = descent_path(f, coordinate_descent(f, [2.0, 0.0]))
    assert ax.get_ylim()[1] > ax.get_ylim()[0]
    assert ax.get_legend() is None


def test_it_draws_on_the_given_axes():
    from matplotlib.figure import Figure

    mine = Figure().subplots()
    assert descent_path(f, found()[0], ax=mine) is mine


def test_functions_that_are_not_everywhere_defined():
    descent_path(lambda x: np.log(x[0]) + x[1], found()[0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: descent_path(f), ParameterError, "at least one Solution"),
        (lambda: descent_path(f, found()[0], labels="ab"), ParameterError, "must be 1 names"),
        (lambda: descent_path(f, found()[0], resolution=1), ParameterError, "'resolution'"),
        (lambda: descent_path(f, 3), ParameterError, "int has no path"),
        (lambda: descent_path(f, Solution(0, 0.0, 0.0, "optimal", True, 0)), DataError, "is empty"),
        (lambda: descent_path(f, bfgs(lambda x: x @ x, np.ones(3))), DataError, "have 3 coordinates"),
        (lambda: descent_path(lambda x: np.nan, found()[0]), DataError, "no finite value"),
    ],
)
def test_sentences(call, error, words):
    with pytest.raises(error, match=words):
        call()
