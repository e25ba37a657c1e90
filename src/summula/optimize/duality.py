"""The Lagrangian dual function: a lower bound on a constrained minimum for every choice of multipliers.

For min f(x) with g(x) <= 0, h(x) = 0 and the Lagrangian L = f + l'g + n'h,

    q(l, n)  =  inf over all x of L(x, l, n)                                                                       (1)

If x is feasible and l >= 0 then L(x, l, n) <= f(x), hence (weak duality)

    q(l, n)  <=  f(x)      for every feasible x and every l >= 0, n                                                (2)

q is concave for any f, g and h. Its maximum d* is at most the minimum p*; they are equal (strong duality) if f and g
are convex, h affine, and some x has g(x) < 0 (Slater's condition; feasibility alone is not enough). A pair with
f(x) = q(l, n) proves that both are optimal.

If f, g and h are `Quadratic` so is L, and (1) is exact: -inf if L has a direction of negative curvature, or of zero
curvature and nonzero slope. Otherwise (1) is a minimum found by BFGS; it is the infimum if L is convex in x, and may be
above it if not.
Reference: Boyd and Vandenberghe, Convex Optimization, chapter 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.numerics.solution import Solution
from summula.optimize.constrained import Problem, as_multipliers, constrained_minimum
from summula.optimize.problems.multipliers import ConstrainedSolution, Multipliers
from summula.optimize.problems.objective import vector
from summula.optimize.quasi_newton import bfgs
from summula.optimize.solvers.quadratic_duals import as_quadratic

__all__ = ["DualFunction", "Duality", "check_duality", "dual_function"]

Array = NDArray[np.float64]

_EQUAL = 1e-6  # a gap smaller than this, relative to the value, counts as zero


class DualFunction:
    """The function (1): call it with the multipliers of the inequalities and of the equalities."""

    def __init__(self, problem: Problem, start: Array | None) -> None:
        self.problem, self.start = problem, start
        self.is_exact = as_quadratic(problem, None) is not None

    def __call__(self, lambda_: Any = (), nu: Any = ()) -> float:
        return self.minimiser(lambda_, nu).value

    def minimiser(self, lambda_: Any = (), nu: Any = ()) -> Solution:
        """Minimise the Lagrangian; `status` is "unbounded" and `value` -inf if it has no lower bound.

        Parameters
        ----------
        lambda_, nu : array-like
            Multipliers of the inequalities (>= 0) and of the equalities.

        Returns
        -------
        Solution
        """
        x = self._any_point()
        m = as_multipliers((lambda_, nu), self.problem, x)
        if (m.inequalities < 0).any():
            place = int(np.argmin(m.inequalities))
            raise ParameterError(
                f"The multiplier of inequality {place} is {m.inequalities[place]:.3g}; the dual function is defined "
                "for non-negative multipliers only."
            )
        whole = as_quadratic(self.problem, m)
        if whole is not None:
            lowest = whole.lowest()
            unbounded = lowest.ray is not None
            message = "The Lagrangian is unbounded below, so these multipliers give no bound." if unbounded else ""
            status = "unbounded" if unbounded else "optimal"
            return Solution(lowest.x, lowest.value, 0.0, status, not unbounded, 0, message=message)
        found = bfgs(
            lambda z: self.problem.lagrangian(z, m),
            x,
            gradient=lambda z: self._slope(z, m),
            tolerance=1e-8,
            max_steps=2_000,
        )
        if found.status == "unbounded":
            return Solution(found.x, -np.inf, np.nan, "unbounded", False, found.n_steps, message=found.message)
        return found

    def _slope(self, x: Array, m: Multipliers) -> Array:
        problem = self.problem
        slope = problem.gradient(x) + problem.inequality_jacobian(x).T @ m.inequalities
        return np.asarray(slope + problem.equality_jacobian(x).T @ m.equalities)

    def _any_point(self) -> Array:
        if self.start is not None:
            return self.start
        size = getattr(self.problem.f, "q", None)
        if size is None:
            raise ParameterError("dual_function needs a starting point x0 for functions that are not Quadratic.")
        return np.zeros(len(size))


class Duality(NamedTuple):
    """The minimum of a problem, the maximum of its dual that was found, and their difference.

    Attributes
    ----------
    primal, dual : float
        p* and d*; the dual is at most the primal.
    gap : float
    strong : bool
        Whether they are equal, to about six digits.
    solution : ConstrainedSolution
        Solution of the primal problem.
    multipliers : Multipliers
        Solution of the dual problem.
    """

    primal: float
    dual: float
    gap: float
    strong: bool
    solution: ConstrainedSolution
    multipliers: Multipliers


def dual_function(problem: Problem, x0: Any = None) -> DualFunction:
    """Return the Lagrangian dual function of a problem.

    Parameters
    ----------
    problem : Problem
    x0 : array of shape (d,), optional
        Starting point for minimising the Lagrangian; not needed if all functions are `Quadratic`.

    Returns
    -------
    DualFunction
        Called with (lambda, nu), it returns the infimum over x of the Lagrangian, possibly -inf: a lower bound on the
        minimum of the problem.

    References
    ----------
    S. Boyd and L. Vandenberghe, Convex Optimization (2004), section 5.1.

    Examples
    --------
    min x^2 with x >= 1 has the dual lambda - lambda^2 / 4, which is largest at lambda = 2: it is 1, the minimum.

    >>> from summula.optimize import Problem, Quadratic, dual_function
    >>> dual = dual_function(Problem(Quadratic([[2.0]]), inequalities=[Quadratic(None, [-1.0], 1.0)]))
    >>> [dual([l]) for l in (0.0, 1.0, 2.0, 3.0)]
    [0.0, 0.75, 1.0, 0.75]
    """
    if not isinstance(problem, Problem):
        raise ParameterError(
            f"dual_function needs a Problem, not {type(problem).__name__}; create one from f and constraints."
        )
    dual = DualFunction(problem, None if x0 is None else vector(x0, "x0", "dual_function"))
    dual._any_point()
    return dual


def check_duality(problem: Problem, x0: Any) -> Duality:
    """Compare the minimum of a problem with the maximum of its dual: is duality strong?

    Parameters
    ----------
    problem : Problem
    x0 : array of shape (d,)
        Starting point.

    Returns
    -------
    Duality
        `gap` is non-negative (weak duality); `strong` is whether it is zero up to rounding. If the functions are not
        `Quadratic` and the problem is not convex, the dual may be overestimated.

    References
    ----------
    S. Boyd and L. Vandenberghe, Convex Optimization (2004), section 5.2.

    Examples
    --------
    >>> from summula.optimize import Problem, Quadratic, check_duality
    >>> bowl = Problem(Quadratic([[2.0]]), inequalities=[Quadratic(None, [-1.0], 1.0)])
    >>> check_duality(bowl, [3.0]).strong
    True
    >>> hill = Problem(Quadratic([[-2.0]]), inequalities=[Quadratic(None, [1.0], -1.0), Quadratic(None, [-1.0], -1.0)])
    >>> found = check_duality(hill, [0.5])
    >>> round(found.primal, 6), found.dual, found.strong
    (-1.0, -inf, False)
    """
    solution = constrained_minimum(problem, x0)
    if solution.multipliers is None:
        raise DataError(f"No minimum of the problem was found ({solution.status}): {solution.message}")
    dual = dual_function(problem, solution.x)
    best, value = _maximum(dual, solution.multipliers)
    gap = max(0.0, solution.value - value)
    strong = gap <= _EQUAL * max(1.0, abs(solution.value))
    return Duality(solution.value, value, gap, strong, solution, best)


def _maximum(dual: DualFunction, start: Multipliers) -> tuple[Multipliers, float]:
    """Maximise the dual from some multipliers; its gradient is (g, h) at the minimiser of L."""
    from scipy.optimize import minimize

    m = len(start.inequalities)
    best, value = start, dual(*start[:2])
    if not np.isfinite(value):
        return best, value

    def negative(z: Array) -> tuple[float, Array]:
        found = dual.minimiser(np.maximum(z[:m], 0.0), z[m:])
        if not np.isfinite(found.value):
            return 1e300, np.zeros_like(z)
        x = np.atleast_1d(found.x)
        return -found.value, -np.concatenate([dual.problem.inequality_values(x), dual.problem.equality_values(x)])

    z0 = np.concatenate([start.inequalities, start.equalities])
    if len(z0):
        bounds = [(0.0, None)] * m + [(None, None)] * (len(z0) - m)
        found = minimize(negative, z0, jac=True, method="L-BFGS-B", bounds=bounds)
        if -found.fun > value:
            best, value = Multipliers(np.maximum(found.x[:m], 0.0), found.x[m:]), -float(found.fun)
    return best, value
