"""Constrained minimisation and the Karush-Kuhn-Tucker conditions.

    min f(x)     subject to     g_i(x) <= 0,  i = 1, ..., m,       h_j(x) = 0,  j = 1, ..., k                      (1)

The Lagrangian adds a multiplier for each constraint,

    L(x, l, n) = f(x) + sum_i l_i g_i(x) + sum_j n_j h_j(x),         l >= 0                                        (2)

and at a minimum, where the gradients of the active constraints are independent (or f and g are convex, h affine, and
some x has g(x) < 0: Slater), there are multipliers with (Karush 1939; Kuhn and Tucker 1951)

    grad f + sum_i l_i grad g_i + sum_j n_j grad h_j = 0                       stationary                          (3)
    g(x) <= 0,   h(x) = 0                                                      feasible                            (4)
    l >= 0                                                                     dual feasible                       (5)
    l_i g_i(x) = 0                                                             complementary                       (6)

For convex problems (3) to (6) prove a minimum; for others they are only necessary. The minimum is computed by SciPy's
SLSQP (sequential quadratic programming); the multipliers are then the least-squares solution of (3) with l >= 0 and
zero for inactive constraints.
References: Boyd and Vandenberghe, Convex Optimization, 5.5; Nocedal and Wright, chapters 12 and 18; Kraft (1988).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import integer, real
from summula.optimize.problems.multipliers import ConstrainedSolution, Multipliers
from summula.optimize.problems.objective import Objective, Trail, check_arguments, differences, vector
from summula.optimize.quasi_newton import bfgs
from summula.optimize.solvers.quadratic_duals import infimum_gap

__all__ = ["KKT", "Problem", "as_multipliers", "constrained_minimum", "kkt_residuals"]

Array = NDArray[np.float64]
Function = Callable[[Any], Any]

_ACTIVE = 1e-6  # slack below which a constraint counts as active
_STATIONARY = 1e-5  # tolerance for the residual of (3), relative to 1 + |grad f|
_FAR = 1e8  # distance at which a ray is tested for an unbounded objective


class Problem:
    """Minimise f(x) subject to g(x) <= 0 and h(x) = 0.

    Parameters
    ----------
    f : callable
        Objective, x -> number; x is an array of shape (d,).
    equalities, inequalities : callable or sequence of callables
        h and g: each x -> number or array, with all entries required to be zero, or at most zero.
    gradient : callable, optional
        Gradient of f. By default central differences.
    equality_gradients, inequality_gradients : sequence of callables or None, optional
        One per function in `equalities` and `inequalities`: its gradient, or its Jacobian with one row per entry.

    Notes
    -----
    If a function has a method `gradient`, as `Quadratic` does, it is used. If all are `Quadratic` the dual is exact.

    Examples
    --------
    >>> from summula.optimize import Problem, constrained_minimum
    >>> problem = Problem(lambda x: x @ x, inequalities=[lambda x: 1 - x[0] - x[1]])
    >>> found = constrained_minimum(problem, [2.0, 0.0])
    >>> found.x.round(6).tolist(), found.multipliers.inequalities.round(6).tolist(), found.active
    ([0.5, 0.5], [1.0], (0,))
    """

    def __init__(
        self,
        f: Function,
        equalities: Function | Sequence[Function] = (),
        inequalities: Function | Sequence[Function] = (),
        *,
        gradient: Function | None = None,
        equality_gradients: Sequence[Function | None] | None = None,
        inequality_gradients: Sequence[Function | None] | None = None,
    ) -> None:
        self.f, self.gradient_of_f = _with_gradients([f], [gradient], "f", "gradient")[0]
        self.equalities = _with_gradients(equalities, equality_gradients, "equalities", "equality_gradients")
        self.inequalities = _with_gradients(inequalities, inequality_gradients, "inequalities", "inequality_gradients")

    def value(self, x: Array) -> float:
        """f(x)."""
        numbers = _numbers(self.f, x)
        if numbers.size != 1:
            raise DataError(f"f returned {numbers.size} numbers; the objective of a Problem must return one number.")
        return float(numbers[0])

    def gradient(self, x: Array) -> Array:
        """The gradient of f at x."""
        return np.asarray(_jacobian([(self.f, self.gradient_of_f)], x)[0])

    def inequality_values(self, x: Array) -> Array:
        """All entries of g(x)."""
        return _values(self.inequalities, x)

    def equality_values(self, x: Array) -> Array:
        """All entries of h(x)."""
        return _values(self.equalities, x)

    def inequality_jacobian(self, x: Array) -> Array:
        """The Jacobian of g at x, one gradient per row."""
        return _jacobian(self.inequalities, x)

    def equality_jacobian(self, x: Array) -> Array:
        """The Jacobian of h at x, one gradient per row."""
        return _jacobian(self.equalities, x)

    def lagrangian(self, x: Any, multipliers: Any) -> float:
        """The Lagrangian (2)."""
        x = vector(x, "x", "Problem")
        m = as_multipliers(multipliers, self, x)
        return float(
            self.value(x) + m.inequalities @ self.inequality_values(x) + m.equalities @ self.equality_values(x)
        )


class KKT(NamedTuple):
    """Residuals of the Karush-Kuhn-Tucker conditions (3) to (6): the largest violation of each."""

    stationarity: float
    primal: float
    dual: float
    complementarity: float


def kkt_residuals(problem: Problem, x: Any, multipliers: Any) -> KKT:
    """Compute the residuals of the Karush-Kuhn-Tucker conditions at a point.

    Parameters
    ----------
    problem : Problem
    x : array of shape (d,)
    multipliers : Multipliers, or pair of arrays
        Multipliers of the inequalities and of the equalities.

    Returns
    -------
    KKT
        `stationarity`, `primal`, `dual`, `complementarity`: the largest violation of each. All zero proves a minimum of
        a convex problem.

    Examples
    --------
    >>> from summula.optimize import Problem, kkt_residuals
    >>> problem = Problem(lambda x: x @ x, inequalities=[lambda x: 1 - x[0] - x[1]])
    >>> residuals = kkt_residuals(problem, [0.5, 0.5], ([1.0], []))
    >>> max(residuals) < 1e-9
    True
    """
    x = vector(x, "x", "kkt_residuals")
    m = as_multipliers(multipliers, problem, x)
    g, h = problem.inequality_values(x), problem.equality_values(x)
    slope = problem.gradient(x) + problem.inequality_jacobian(x).T @ m.inequalities
    slope = slope + problem.equality_jacobian(x).T @ m.equalities
    return KKT(
        float(np.abs(slope).max()),
        max(_largest(np.maximum(g, 0.0)), _largest(np.abs(h))),
        _largest(np.maximum(-m.inequalities, 0.0)),
        _largest(np.abs(m.inequalities * g)),
    )


def constrained_minimum(
    problem: Problem, x0: Any, *, tolerance: float = 1e-12, max_steps: int = 1_000
) -> ConstrainedSolution:
    """Find a local minimum of f(x) subject to g(x) <= 0 and h(x) = 0, and its multipliers.

    Parameters
    ----------
    problem : Problem
    x0 : array of shape (d,)
        Starting point; it need not be feasible.
    tolerance : float, default=1e-12
        Tolerance of SLSQP for the change of the objective.
    max_steps : int, default=1_000
        Maximum number of steps.

    Returns
    -------
    ConstrainedSolution
        `status` is "converged" if the conditions (3) to (6) hold; "infeasible" if the constraints cannot be satisfied
        near x0, with `x` the point of least violation and the violated constraints in `conflict`; "unbounded";
        "stalled" if (3) fails, which happens where the gradients of the constraints are dependent; or "max_iter".
        The minimum is global if the problem is convex. `gap` is computed (from the dual) if all functions of the
        problem are `Quadratic`.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization (2006), chapters 12 and 18.

    Examples
    --------
    The largest rectangle of perimeter 4 is a square:

    >>> from summula.optimize import Problem, constrained_minimum
    >>> found = constrained_minimum(Problem(lambda x: -x[0] * x[1], equalities=[lambda x: x[0] + x[1] - 2]), [1.5, 0.5])
    >>> found.x.round(6).tolist(), found.multipliers.equalities.round(6).tolist()
    ([1.0, 1.0], [1.0])
    """
    check_arguments("constrained_minimum", tolerance=(tolerance, (real(0),)), max_steps=(max_steps, (integer(1),)))
    if not isinstance(problem, Problem):
        raise ParameterError(
            f"constrained_minimum needs a Problem, not {type(problem).__name__}; create one from f and constraints."
        )
    start = vector(x0, "x0", "constrained_minimum")
    objective = Objective(problem.f, start, problem.gradient_of_f, function="constrained_minimum")
    trail = Trail(objective)
    trail.add(start, objective.first_value())
    x, ended = _slsqp(problem, trail, start, tolerance, max_steps)
    if ended != "unbounded" and _violation(problem, x) > _ACTIVE:
        nearest = _nearest_feasible(problem, x)
        if _violation(problem, nearest) > _ACTIVE:
            return _infeasible(problem, trail, nearest)
        x, ended = _slsqp(problem, trail, nearest, tolerance, max_steps)
    ray = _unbounded_ray(problem, start, x)
    if ray is not None or ended == "unbounded":
        message = "The objective is unbounded below under the constraints; add the missing constraint."
        return _solution(trail, x, -np.inf, "unbounded", message, ray=ray)
    return _check_conditions(problem, trail, start, x, ended)


def _check_conditions(problem: Problem, trail: Trail, start: Array, x: Array, ended: str) -> ConstrainedSolution:
    """Return the solution at x, with a status that depends on the conditions (3) to (6)."""
    m = _multipliers(problem, x)
    residuals = kkt_residuals(problem, x, m)
    active = tuple(np.flatnonzero(problem.inequality_values(x) >= -_ACTIVE).tolist())
    status, message = "converged", ""
    if residuals.primal > _ACTIVE:
        status, message = "stalled", f"The constraints are violated by {residuals.primal:.3g}; start from another x0."
    elif residuals.stationarity > _STATIONARY * (1 + _largest(np.abs(problem.gradient(x)))) or _vanishing(
        problem, start, x, m
    ):
        status = "max_iter" if ended == "max_iter" else "stalled"
        message = (
            "No finite multipliers make the Lagrangian stationary here: the gradients of the active constraints "
            "vanish or are dependent, or the functions are not smooth; reformulate the constraints."
        )
    gap = infimum_gap(problem, x, m) if status == "converged" else np.nan
    return _solution(trail, x, problem.value(x), status, message, gap=gap, multipliers=m, active=active)


def _solution(trail: Trail, x: Array, value: float, status: str, message: str, **more: Any) -> ConstrainedSolution:
    gap = more.pop("gap", np.nan)
    steps = max(len(trail.values) - 1, 0)
    return ConstrainedSolution(
        x, value, gap, status, status == "converged", steps, tuple(trail.values), tuple(trail.points), message, **more
    )


class _UnboundedError(Exception):
    """Raised to stop a solver when the objective is unbounded."""


def _slsqp(problem: Problem, trail: Trail, x0: Array, tolerance: float, max_steps: int) -> tuple[Array, str]:
    """Run SciPy's SLSQP from x0; return the final point and how it ended."""
    from scipy.optimize import minimize

    constraints = []
    if problem.inequalities:
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda x: -problem.inequality_values(x),
                "jac": lambda x: -problem.inequality_jacobian(x),
            }
        )
    if problem.equalities:
        constraints.append({"type": "eq", "fun": problem.equality_values, "jac": problem.equality_jacobian})

    last = x0

    def after(x: Array) -> None:
        nonlocal last
        value = problem.value(x)
        if np.isfinite(value) and np.isfinite(x).all():
            last = x.copy()
            trail.add(x, value)
        if trail.is_diverging or not np.isfinite(x).all():
            raise _UnboundedError

    try:
        with np.errstate(all="ignore"):
            found = minimize(
                problem.value,
                x0,
                jac=problem.gradient,
                method="SLSQP",
                constraints=constraints,
                callback=after,
                options={"ftol": tolerance, "maxiter": max_steps},
            )
    except _UnboundedError:
        return last, "unbounded"
    if not np.isfinite(found.x).all():
        return last, "unbounded"
    return np.asarray(found.x, np.float64), "max_iter" if found.status == 9 else "ended"


def _multipliers(problem: Problem, x: Array) -> Multipliers:
    """Solve (3) for the multipliers by least squares, with l >= 0 and zero for inactive constraints."""
    from scipy.optimize import lsq_linear

    g, h = problem.inequality_values(x), problem.equality_values(x)
    active = np.flatnonzero(g >= -_ACTIVE)
    columns = np.vstack([problem.inequality_jacobian(x)[active], problem.equality_jacobian(x)]).T
    lambda_, nu = np.zeros(len(g)), np.zeros(len(h))
    if columns.shape[1]:
        low = np.concatenate([np.zeros(len(active)), np.full(len(h), -np.inf)])
        found = lsq_linear(columns, -problem.gradient(x), bounds=(low, np.inf), tol=1e-14, method="bvls").x
        lambda_[active], nu = np.maximum(found[: len(active)], 0.0), found[len(active) :]
    return Multipliers(lambda_, nu)


def _vanishing(problem: Problem, start: Array, x: Array, m: Multipliers) -> bool:
    """Whether a constraint with a nonzero multiplier has a vanishing gradient here, relative to that at the start."""
    here = np.vstack([problem.inequality_jacobian(x), problem.equality_jacobian(x)])
    there = np.vstack([problem.inequality_jacobian(start), problem.equality_jacobian(start)])
    nonzero = np.concatenate([m.inequalities, m.equalities]) != 0
    return bool((nonzero & (np.linalg.norm(here, axis=1) < _ACTIVE * np.linalg.norm(there, axis=1))).any())


def _violation(problem: Problem, x: Array) -> float:
    worst = max(_largest(problem.inequality_values(x)), _largest(np.abs(problem.equality_values(x))))
    return worst if np.isfinite(worst) else np.inf


def _nearest_feasible(problem: Problem, x: Array) -> Array:
    """Return a point near x that minimises the sum of squared violations."""

    def squares(x: Array) -> float:
        over = np.maximum(problem.inequality_values(x), 0.0)
        return float(over @ over + np.sum(problem.equality_values(x) ** 2)) / 2

    def slope(x: Array) -> Array:
        over = np.maximum(problem.inequality_values(x), 0.0)
        along = problem.equality_jacobian(x).T @ problem.equality_values(x)
        return np.asarray(problem.inequality_jacobian(x).T @ over + along)

    return np.atleast_1d(bfgs(squares, x, gradient=slope, tolerance=1e-10, max_steps=1_000).x)


def _infeasible(problem: Problem, trail: Trail, x: Array) -> ConstrainedSolution:
    g, h = problem.inequality_values(x), problem.equality_values(x)
    names = [f"inequality {i}" for i in np.flatnonzero(g > _ACTIVE)]
    names += [f"equality {j}" for j in np.flatnonzero(np.abs(h) > _ACTIVE)]
    message = (
        f"The constraints cannot be satisfied near x0: at the point of least violation, {', '.join(names)} "
        f"{'is' if len(names) == 1 else 'are'} violated by up to {_violation(problem, x):.3g}; relax them, or start "
        "from another x0."
    )
    return _solution(trail, x, np.nan, "infeasible", message, conflict=tuple(names))


def _unbounded_ray(problem: Problem, start: Array, x: Array) -> Array | None:
    """Return the direction from the start to x if it stays feasible and f decreases linearly far along it."""
    away = x - start
    size = float(np.linalg.norm(away))
    if size == 0.0:
        return None
    ray = away / size
    reach = _FAR * max(1.0, float(np.linalg.norm(x)))
    values = [problem.value(x), problem.value(x + reach * ray), problem.value(x + 2 * reach * ray)]
    falls = values[1] < values[0] - _FAR**0.5 and values[2] < values[1] + (values[1] - values[0]) / 2
    if falls and _violation(problem, x + reach * ray) <= _ACTIVE * reach * _ACTIVE:
        return np.asarray(ray)
    return None


# ----------------------------------------------------------------------------------------------------------- functions


def as_multipliers(given: Any, problem: Problem, x: Array) -> Multipliers:
    """Convert multipliers to arrays and check that there is one per constraint."""
    try:
        first, second = given[0], given[1]
    except (TypeError, IndexError, KeyError):
        raise ParameterError("Multipliers must be a pair: of the inequalities and of the equalities.") from None
    lambda_ = np.atleast_1d(np.asarray(first if first is not None else (), np.float64))
    nu = np.atleast_1d(np.asarray(second if second is not None else (), np.float64))
    for values, count, name in (
        (lambda_, len(problem.inequality_values(x)), "inequalities"),
        (nu, len(problem.equality_values(x)), "equalities"),
    ):
        if values.shape != (count,):
            raise DataError(f"There are {count} {name} but multipliers of shape {values.shape}; pass one for each.")
    return Multipliers(lambda_, nu)


def _with_gradients(functions: Any, gradients: Any, name: str, gradient_name: str) -> list[tuple[Function, Any]]:
    """Return pairs of a function and its gradient: the given one, the function's own, or None."""
    functions = [functions] if callable(functions) else list(functions)
    gradients = [gradients] if callable(gradients) else gradients
    gradients = [None] * len(functions) if gradients is None else list(gradients)
    if len(functions) != len(gradients):
        raise ParameterError(
            f"Problem has {len(functions)} {name} but {len(gradients)} {gradient_name}; pass one for each, or None."
        )
    for function in functions:
        if not callable(function):
            raise ParameterError(f"The {name!r} of Problem must be functions of x, not {function!r}.")
    return [
        (function, gradient if gradient is not None else getattr(function, "gradient", None))
        for function, gradient in zip(functions, gradients, strict=True)
    ]


def _numbers(function: Function, x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(function(x.copy()), np.float64).ravel()


def _values(functions: list[tuple[Function, Any]], x: Array) -> Array:
    return np.concatenate([_numbers(function, x) for function, _ in functions]) if functions else np.empty(0)


def _jacobian(functions: list[tuple[Function, Any]], x: Array) -> Array:
    rows = []
    for function, gradient in functions:
        if gradient is None:
            rows.append(differences(partial(_numbers, function), x))
            continue
        slopes = np.asarray(gradient(x.copy()), np.float64)
        if slopes.size % len(x):
            raise DataError(f"The gradient of a constraint has shape {slopes.shape}, but x has {len(x)} entries.")
        rows.append(slopes.reshape(-1, len(x)))
    return np.vstack(rows) if rows else np.empty((0, len(x)))


def _largest(values: Array) -> float:
    return float(np.max(values, initial=0.0))
