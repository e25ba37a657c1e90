"""Line searches against minima in closed form, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from summula import DataError, ParameterError
from summula.optimize import line_search

EXACT = ("secant", "newton", "golden")


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("step", [1e-3, 1.0, 50.0])
def test_a_parabola(method, step):
    P, x, p = np.diag([1.0, 9.0]), np.array([3.0, 1.0]), np.array([-1.0, -2.0])
    found = line_search(
        lambda z: z @ P @ z / 2, x, p, method=method, gradient=lambda z: P @ z, hessian=lambda z: P, step=step
    )
    exact = -(p @ P @ x) / (p @ P @ p)
    assert found.status == "converged"
    # Values determine the position of a minimum only to the square root of rounding.
    assert found.x == pytest.approx(exact, rel=1e-7 if method == "golden" else 1e-12)
    assert found.value == pytest.approx((x + exact * p) @ P @ (x + exact * p) / 2, rel=1e-12)
    assert found.path[0] == 0.0
    assert len(found.path) == len(found.trace) == found.n_steps + 1


@pytest.mark.parametrize("method", ["secant", "newton"])
def test_on_a_parabola_two_slopes_are_enough(method):
    found = line_search(
        lambda x: (x - 3) ** 2, 0.0, 1.0, method=method, gradient=lambda x: 2 * (x - 3), hessian=lambda x: 2.0
    )
    assert found.n_steps == 2


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(
    "phi",
    [
        lambda t: np.exp(t) - 3 * t,
        lambda t: -t / (t * t + 2),  # bends down further out
        lambda t: (t + 0.004) ** 5 - 2 * (t + 0.004) ** 4,
        lambda t: np.cosh(3 * (t - 2.0)),
    ],
)
def test_curves_that_are_no_parabola(method, phi):
    found = line_search(phi, 0.0, 1.0, method=method, step=0.7)
    theirs = minimize_scalar(phi, bounds=(0, 5), method="bounded", options={"xatol": 1e-10})
    assert found.status == "converged"
    assert found.x == pytest.approx(theirs.x, abs=1e-5)
    assert found.value <= theirs.fun + 1e-10


def test_golden_sections_need_no_smoothness():
    found = line_search(lambda x: abs(x[0] - 1) + 2 * abs(x[1]), [3.0, 0.0], [-1.0, 0.0], method="golden", step=0.1)
    assert found.x == pytest.approx(2.0, abs=1e-6)


def test_golden_sections_shrink_by_the_golden_ratio():
    found = line_search(lambda t: (t - 1) ** 2, 0.0, 1.0, method="golden", step=2.0, tolerance=1e-3)
    # From width 2 down to a thousandth of about 1: log(2000) / log(1.618) = 15.8 sections.
    assert 15 <= found.n_steps <= 19


def test_backtracking_stops_at_the_first_step_that_is_good_enough():
    found = line_search(lambda x: x * x, 1.0, -2.0, method="backtracking", gradient=lambda x: 2 * x, step=8.0)
    # x = 1 - 2t: 8, 4, 2 go up, 1 comes back to x = -1 (no lower), 1/2 is the minimum.
    assert found.path == (0.0, 8.0, 4.0, 2.0, 1.0, 0.5)
    assert found.x == 0.5
    assert found.value == 0.0


@pytest.mark.parametrize("method", EXACT)
def test_without_end(method):
    found = line_search(lambda x: -x[0], [0.0, 1.0], [1.0, 0.0], method=method)
    assert found.status == "unbounded"
    assert not found.converged
    assert "no minimum along this direction" in found.message


def test_uphill_is_refused():
    with pytest.raises(ParameterError, match="the slope of f along it is 2; reverse it"):
        line_search(lambda x: x * x, 1.0, 1.0, gradient=lambda x: 2 * x)
    assert line_search(lambda x: x * x, 1.0, 1.0, method="golden").x == 0.0


def test_sentences():
    with pytest.raises(ParameterError, match="'backtracking', 'golden', 'newton', 'secant'"):
        line_search(lambda x: x * x, 1.0, -1.0, method="wolfe")
    with pytest.raises(DataError, match="direction has 1 entries but x has 2"):
        line_search(lambda x: x @ x, [1.0, 1.0], [-1.0])
    with pytest.raises(ParameterError, match="'step'"):
        line_search(lambda x: x * x, 1.0, -1.0, step=0)
