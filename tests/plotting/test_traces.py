"""Convergence plots: the trace, or the distance of objectives from the lowest."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as Theirs

from summula import DataError, ParameterError
from summula.core.numerics.solution import Solution
from summula.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from summula.optimize.solvers.limited_memory import lbfgs
from summula.optimize.solvers.newton_method import Local, newton
from summula.plotting import convergence


class Plain:
    """Variables as they are."""

    def solve(self, u):
        return u

    def solve_transposed(self, g):
        return g


def bowl(x, order=2):
    """Sum of x^4/4 + x^2/2 - x, plus 3."""
    hessian = np.diag(3 * x**2 + 1) if order == 2 else None
    return Local(float((x**4 / 4 + x**2 / 2 - x).sum() + 3), x**3 + x - 1, hessian)


def solutions():
    start = np.array([2.0, -1.0, 5.0])
    by_newton = newton(bowl, start)
    enough = lambda x, value, g: bool(g @ g < 1e-20)  # noqa: E731
    return by_newton, lbfgs(lambda x: bowl(x, 1)[:2], start, Plain(), enough=enough)


def heights(ax):
    return [line.get_ydata() for line in ax.get_lines()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def solution(trace, value=1.0):
    return Solution(np.zeros(1), value, np.nan, "converged", True, len(trace) - 1, tuple(trace))


def test_a_trace_is_drawn_step_by_step_on_a_logarithmic_scale():
    by_newton, _ = solutions()
    ax = convergence(by_newton)
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), np.arange(by_newton.n_steps + 1))
    np.testing.assert_array_equal(line.get_ydata(), by_newton.trace)
    assert ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "convergence criterion")
    assert ax.get_legend() is None
    ax.figure.canvas.draw()
    assert all(float(t).is_integer() for t in ax.get_xticks())


def test_objectives_are_drawn_above_the_lowest_of_all():
    by_newton, by_lbfgs = solutions()
    lowest = min(by_newton.value, by_lbfgs.value)
    first, second = heights(convergence(by_newton, by_lbfgs))
    np.testing.assert_array_equal(first, by_newton.trace)
    above = np.array(by_lbfgs.trace) - lowest
    np.testing.assert_array_equal(second, np.where(above > 0, above, np.nan))
    # Both estimate the remaining decrease, so they agree at their common start.
    assert 0.1 < first[0] / second[0] < 10


def test_a_stalled_solver_does_not_look_finished():
    good, stalled = solution([9.0, 5.0, 2.0], 2.0), solution([9.0, 8.0, 7.0], 7.0)
    ax = convergence(good, stalled)
    np.testing.assert_array_equal(heights(ax)[1], [7.0, 6.0, 5.0])
    assert ax.get_ylabel() == "objective above the smallest"


def test_negative_objectives_have_a_place_too():
    (line,) = heights(convergence(solution([-1.0, -5.0, -6.0], -6.0)))
    np.testing.assert_array_equal(line, [5.0, 1.0, np.nan])


def test_models_have_traces():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    logistic = LogisticRegression().fit(X, X[:, 0] + rng.normal(size=80) > 0)
    poisson = PoissonRegressor().fit(X, rng.poisson(np.exp(X[:, 0] / 2)))
    wide = sparse.random(60, 3_000, 0.01, random_state=0, format="csr")
    ridge = Ridge(solver="sparse_cg").fit(wide, rng.normal(size=60))
    assert ridge.trace_
    ax = convergence(logistic, poisson, ridge)
    assert legend(ax) == ["LogisticRegression", "PoissonRegressor", "Ridge"]
    assert [len(line) for line in heights(ax)] == [len(logistic._fit.trace), len(poisson._fit.trace), len(ridge.trace_)]
    assert all(line[-1] < 1e-3 * line[0] for line in heights(ax))
    assert ax.get_ylabel() == "convergence criterion"


def test_labels_name_the_lines():
    ax = convergence(*solutions(), labels=("Newton", "L-BFGS"))
    assert legend(ax) == ["Newton", "L-BFGS"]
    assert legend(convergence(*solutions())) == ["solution 1", "solution 2"]
    assert legend(convergence(solutions()[0], labels=["Newton"])) == ["Newton"]
    colours = {line.get_color() for line in ax.get_lines()}
    markers = {line.get_marker() for line in ax.get_lines()}
    assert len(colours) == len(markers) == 2


def test_it_draws_on_the_given_axes():
    figure, ax = pyplot.subplots()
    assert convergence(solutions()[0], ax=ax) is ax
    assert pyplot.get_fignums() == [figure.number]


def line_of(n=20):
    X = np.arange(float(n))[:, None]
    return LinearRegression().fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("solved", "labels", "error", "sentence"),
    [
        ((), None, ParameterError, "convergence needs at least one Solution or fitted model"),
        ((solution([1.0, 0.1]),), ["a", "b"], ParameterError, r"must be 1 names, one for each, not \['a', 'b'\]"),
        ((solution([1.0, 0.1]),), "a", ParameterError, "must be 1 names, one for each, not 'a'"),
        ((solution([]),), None, DataError, "The trace of Solution is empty"),
        ((solution([0.0, 0.0]),), None, DataError, "The trace of solution 1 is zero throughout"),
        ((line_of(),), None, DataError, "The trace of LinearRegression is empty: it was solved without iterations"),
        ((Theirs().fit([[1.0], [2.0]], [1, 2]),), None, ParameterError, "LinearRegression has no trace"),
        ((np.ones((2, 2)),), None, ParameterError, "ndarray has no trace; convergence needs a Solution or an"),
    ],
)
def test_errors_are_one_sentence(solved, labels, error, sentence):
    with pytest.raises(error, match=sentence):
        convergence(*solved, labels=labels)
    assert not pyplot.get_fignums()


def test_a_model_that_is_not_fitted():
    with pytest.raises(NotFittedError, match="not fitted"):
        convergence(Ridge())
