"""Linear programs: a plane over a polytope.

    min  c'x     subject to   A_ub x <= b_ub,   A_eq x = b_eq,   low <= x <= high                                  (1)

A minimum, if there is one, is at a vertex, where as many constraints are active as there are variables. The dual is

    max  -b_ub'l - b_eq'n + low's - high'w    subject to   c + A_ub'l + A_eq'n - s + w = 0,   l, s, w >= 0         (2)

and its value bounds that of (1) from below: at a solution they are equal, and a multiplier is zero wherever its
constraint is not active. Simplex methods go from vertex to vertex, interior-point methods through the inside; both are
those of HiGHS, by SciPy. If nothing is feasible, some constraints contradict each other, and they are named; if (1) has
no lower bound, there is a direction that falls for ever and stays feasible, and it is given.
References: Boyd and Vandenberghe, Convex Optimization, sections 4.3 and 5.2; Huangfu and Hall (2018), HiGHS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.estimator.parameters import one_of
from summula.optimize.multipliers import ConstrainedSolution, Multipliers
from summula.optimize.objective import check_arguments, vector
from summula.optimize.solvers.linear_constraints import LinearConstraints, conflict, descent_ray, in_words

__all__ = ["active_sets", "linear_program", "no_minimum"]

Array = NDArray[np.float64]

_METHODS = {"auto": "highs", "simplex": "highs-ds", "interior_point": "highs-ipm"}
_TIGHT = 1e-7  # of the size of a constraint: less slack than this is none


def linear_program(
    c: Any,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = None,
    *,
    method: str = "auto",
) -> ConstrainedSolution:
    """Minimise c'x under linear constraints.

    Parameters
    ----------
    c : array of shape (d,)
    A_ub, b_ub : array or sparse matrix of shape (m, d), array of shape (m,), optional
        Inequalities A_ub x <= b_ub.
    A_eq, b_eq : array or sparse matrix of shape (k, d), array of shape (k,), optional
        Equalities A_eq x = b_eq.
    bounds : pair (low, high), or one for each variable, optional
        None where there is no bound. Without `bounds` variables are free (SciPy's `linprog` takes x >= 0 then).
    method : {"auto", "simplex", "interior_point"}, default="auto"

    Returns
    -------
    ConstrainedSolution
        `status` is "optimal", "infeasible" (`conflict` and `message` name constraints that contradict each other),
        "unbounded" (`ray` falls for ever) or "stalled". `gap` is the difference to the dual (2), computed from the
        multipliers.

    References
    ----------
    S. Boyd and L. Vandenberghe, Convex Optimization (2004), sections 4.3 and 5.2.

    Examples
    --------
    The most of 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18 (Hillier and Lieberman's first example):

    >>> from summula.optimize import linear_program
    >>> found = linear_program([-3, -5], [[1, 0], [0, 2], [3, 2]], [4, 12, 18], bounds=(0, None))
    >>> found.status, found.x.tolist(), -found.value, found.active
    ('optimal', [2.0, 6.0], 36.0, (1, 2))
    >>> found.multipliers.inequalities.tolist()
    [0.0, 1.5, 1.0]
    >>> print(linear_program([1.0], [[1.0], [-1.0]], [0.0, -1.0]).message)
    No x meets inequality 0 and inequality 1 at once; relax one of them or leave it out.
    """
    from scipy.optimize import linprog

    check_arguments("linear_program", method=(method, (one_of(*_METHODS),)))
    cost = vector(c, "c", "linear_program")
    given = LinearConstraints.read(len(cost), A_ub, b_ub, A_eq, b_eq, bounds, "linear_program", "A_ub b_ub A_eq b_eq")

    def solve(cost: Array) -> Any:
        inside, on = len(given.h) > 0, len(given.b) > 0
        return linprog(
            cost,
            A_ub=given.G if inside else None,
            b_ub=given.h if inside else None,
            A_eq=given.A if on else None,
            b_eq=given.b if on else None,
            bounds=np.column_stack([given.low, given.high]),
            method=_METHODS[method],
        )

    found = solve(cost)
    if found.status in (2, 3, 4):  # infeasible, unbounded, or one of them: which, is asked without an objective
        answer = no_minimum(solve(np.zeros_like(cost)).x, cost, given, None, int(found.nit))
        if found.status != 4 or answer.status == "infeasible" or answer.ray is not None:
            return answer
    if found.status != 0:
        message = f"HiGHS gave up ({found.message.strip().rstrip('.')}); scale rows and columns to like sizes."
        return ConstrainedSolution(
            np.full(len(cost), np.nan), np.nan, np.nan, "stalled", False, int(found.nit), message=message
        )
    x = np.asarray(found.x, np.float64) + 0.0
    multipliers = Multipliers(
        np.maximum(-np.asarray(found.ineqlin.marginals, np.float64), 0.0),
        -np.asarray(found.eqlin.marginals, np.float64) + 0.0,
        np.maximum(np.asarray(found.lower.marginals, np.float64), 0.0),
        np.maximum(-np.asarray(found.upper.marginals, np.float64), 0.0),
    )
    value = float(cost @ x)
    gap = max(0.0, value - _dual_value(given, multipliers))
    active, at_bounds = active_sets(given, x)
    return ConstrainedSolution(
        x,
        value,
        gap,
        "optimal",
        True,
        int(found.nit),
        multipliers=multipliers,
        active=active,
        active_bounds=at_bounds,
    )


def no_minimum(
    feasible: Any, slope: Array, given: LinearConstraints, P: Array | None, steps: int
) -> ConstrainedSolution:
    """The answer where there is none: contradicting constraints, or a feasible point and a ray downhill from it."""
    nothing = np.full(len(slope), np.nan)
    if feasible is None:
        names = conflict(given)
        message = in_words(names)
        return ConstrainedSolution(nothing, np.nan, np.nan, "infeasible", False, steps, message=message, conflict=names)
    ray = descent_ray(slope, given, P)
    along = "" if ray is None else f" along {np.array2string(ray, precision=4, threshold=6)}"
    message = f"The objective falls without end{along}; bound the variables, or check the signs of the objective."
    return ConstrainedSolution(
        np.asarray(feasible), -np.inf, np.nan, "unbounded", False, steps, message=message, ray=ray
    )


def active_sets(given: LinearConstraints, x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The inequalities, and the variables whose bounds, x meets with equality."""
    slack = given.h - given.G @ x
    size = np.maximum(abs(given.G) @ np.abs(x), np.maximum(np.abs(given.h), 1.0)) if len(slack) else slack
    tight = _TIGHT * np.maximum(1.0, np.abs(x))
    at_bound = (x - given.low <= tight) | (given.high - x <= tight)
    return tuple(np.flatnonzero(slack <= _TIGHT * size).tolist()), tuple(np.flatnonzero(at_bound).tolist())


def _dual_value(given: LinearConstraints, m: Multipliers) -> float:
    """The value (2)."""
    low, high = np.isfinite(given.low), np.isfinite(given.high)
    return float(
        -given.h @ m.inequalities
        - given.b @ m.equalities
        + given.low[low] @ m.lower[low]
        - given.high[high] @ m.upper[high]
    )
