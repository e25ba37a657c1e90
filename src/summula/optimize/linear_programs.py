"""Linear programming.

    min  c'x     subject to   A_ub x <= b_ub,   A_eq x = b_eq,   low <= x <= high                                  (1)

If there is a minimum, one is attained at a vertex, where as many constraints are active as there are variables. The
dual is

    max  -b_ub'l - b_eq'n + low's - high'w    subject to   c + A_ub'l + A_eq'n - s + w = 0,   l, s, w >= 0         (2)

and its value is a lower bound on (1): at a solution they are equal, and the multipliers of inactive constraints are
zero. Simplex methods move from vertex to vertex, interior-point methods through the interior; both are implemented by
HiGHS, called through SciPy. If (1) is infeasible, a small set of contradicting constraints is reported; if it is
unbounded, a feasible direction of unbounded decrease (a ray) is returned.
References: Boyd and Vandenberghe, Convex Optimization, sections 4.3 and 5.2; Huangfu and Hall (2018), HiGHS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.estimator.parameters import one_of
from summula.optimize.problems.multipliers import ConstrainedSolution, Multipliers
from summula.optimize.problems.objective import check_arguments, vector
from summula.optimize.solvers.linear_constraints import LinearConstraints, conflict, descent_ray, in_words

__all__ = ["active_sets", "linear_program", "no_minimum"]

Array = NDArray[np.float64]

_METHODS = {"auto": "highs", "simplex": "highs-ds", "interior_point": "highs-ipm"}
_TIGHT = 1e-7  # constraints with less slack than this, relative to their size, are active


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
    """Solve a linear program: minimise c'x under linear constraints.

    Parameters
    ----------
    c : array of shape (d,)
    A_ub, b_ub : array or sparse matrix of shape (m, d), array of shape (m,), optional
        Inequalities A_ub x <= b_ub.
    A_eq, b_eq : array or sparse matrix of shape (k, d), array of shape (k,), optional
        Equalities A_eq x = b_eq.
    bounds : pair (low, high), or one for each variable, optional
        Bounds of the variables; None for no bound. Without `bounds` variables are free (unlike SciPy's `linprog`, which
        then assumes x >= 0).
    method : {"auto", "simplex", "interior_point"}, default="auto"

    Returns
    -------
    ConstrainedSolution
        `status` is "optimal", "infeasible" (`conflict` and `message` name contradicting constraints), "unbounded"
        (`ray` is a direction of unbounded decrease) or "stalled". `gap` is the duality gap, computed from the
        multipliers.

    References
    ----------
    S. Boyd and L. Vandenberghe, Convex Optimization (2004), sections 4.3 and 5.2.

    Examples
    --------
    Maximise 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18 (the first example of Hillier and Lieberman):

    >>> from summula.optimize import linear_program
    >>> found = linear_program([-3, -5], [[1, 0], [0, 2], [3, 2]], [4, 12, 18], bounds=(0, None))
    >>> found.status, found.x.tolist(), -found.value, found.active
    ('optimal', [2.0, 6.0], 36.0, (1, 2))
    >>> found.multipliers.inequalities.tolist()
    [0.0, 1.5, 1.0]
    >>> print(linear_program([1.0], [[1.0], [-1.0]], [0.0, -1.0]).message)
    No x satisfies both inequality 0 and inequality 1; relax or remove one of them.
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
    if found.status in (2, 3, 4):  # infeasible, unbounded, or either: decided by solving without an objective
        answer = no_minimum(solve(np.zeros_like(cost)).x, cost, given, None, int(found.nit))
        if found.status != 4 or answer.status == "infeasible" or answer.ray is not None:
            return answer
    if found.status != 0:
        message = f"HiGHS failed ({found.message.strip().rstrip('.')}); scale rows and columns to similar sizes."
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
    """Return the result of a program without a minimum: contradicting constraints, or a feasible point and a ray."""
    nothing = np.full(len(slope), np.nan)
    if feasible is None:
        names = conflict(given)
        message = in_words(names)
        return ConstrainedSolution(nothing, np.nan, np.nan, "infeasible", False, steps, message=message, conflict=names)
    ray = descent_ray(slope, given, P)
    along = "" if ray is None else f" along {np.array2string(ray, precision=4, threshold=6)}"
    message = f"The objective is unbounded below{along}; bound the variables, or check the signs of the objective."
    return ConstrainedSolution(
        np.asarray(feasible), -np.inf, np.nan, "unbounded", False, steps, message=message, ray=ray
    )


def active_sets(given: LinearConstraints, x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the active inequalities, and the variables at one of their bounds."""
    slack = given.h - given.G @ x
    size = np.maximum(abs(given.G) @ np.abs(x), np.maximum(np.abs(given.h), 1.0)) if len(slack) else slack
    tight = _TIGHT * np.maximum(1.0, np.abs(x))
    at_bound = (x - given.low <= tight) | (given.high - x <= tight)
    return tuple(np.flatnonzero(slack <= _TIGHT * size).tolist()), tuple(np.flatnonzero(at_bound).tolist())


def _dual_value(given: LinearConstraints, m: Multipliers) -> float:
    """Return the dual objective (2)."""
    low, high = np.isfinite(given.low), np.isfinite(given.high)
    return float(
        -given.h @ m.inequalities
        - given.b @ m.equalities
        + given.low[low] @ m.lower[low]
        - given.high[high] @ m.upper[high]
    )
