"""Convex quadratic programming.

    min  1/2 x'Px + q'x     subject to   Gx <= h,   Ax = b,   low <= x <= high                                     (1)

with P positive semidefinite. x is a minimum exactly when there are multipliers with (Karush, Kuhn and Tucker)

    Px + q + G'l + A'n - s + w = 0,      l, s, w >= 0                          stationary                          (2)
    Gx <= h,  Ax = b,  low <= x <= high                                        feasible                            (3)
    l'(Gx - h) = 0,   s'(x - low) = 0,   w'(high - x) = 0                      complementary                       (4)

Given (2), the dual objective -1/2 x'Px - h'l - b'n + low's - high'w is a lower bound on (1); the difference is the gap.
An indefinite P raises an error: deciding whether a point is a minimum is then NP-hard.

Clarabel, an interior-point method, computes x to about ten digits and identifies the active constraints. With these as
equalities, (2) and (3) are a linear system, whose solution is used if it is more accurate (polishing).
References: Boyd and Vandenberghe, Convex Optimization, sections 4.4 and 5.5; Goulart and Chen (2024), Clarabel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.errors import DataError
from summula.optimize.linear_programs import active_sets, linear_program, no_minimum
from summula.optimize.problems.multipliers import ConstrainedSolution, Multipliers
from summula.optimize.problems.objective import vector
from summula.optimize.problems.quadratics import Quadratic, check_convex, symmetric
from summula.optimize.solvers.linear_constraints import LinearConstraints

__all__ = ["quadratic_program"]

Array = NDArray[np.float64]

_POLISHED = 1_000  # maximum number of unknowns of the linear system of the active constraints


def quadratic_program(
    P: Any, q: Any, G: Any = None, h: Any = None, A: Any = None, b: Any = None, bounds: Any = None
) -> ConstrainedSolution:
    """Solve a convex quadratic program: minimise 1/2 x'Px + q'x under linear constraints.

    Parameters
    ----------
    P : array of shape (d, d)
        Symmetric, positive semidefinite matrix.
    q : array of shape (d,)
    G, h : array or sparse matrix of shape (m, d), array of shape (m,), optional
        Inequalities Gx <= h.
    A, b : array or sparse matrix of shape (k, d), array of shape (k,), optional
        Equalities Ax = b.
    bounds : pair (low, high), or one for each variable, optional
        Bounds of the variables; None for no bound.

    Returns
    -------
    ConstrainedSolution
        `status` is "optimal", "infeasible" (`conflict` and `message` name contradicting constraints), "unbounded"
        (`ray` is a direction of unbounded decrease) or "stalled". `gap` is the duality gap.

    References
    ----------
    S. Boyd and L. Vandenberghe, Convex Optimization (2004), section 4.4. P. Goulart and Y. Chen, Clarabel: An
    interior-point solver for conic programs with quadratic objectives (2024).

    Examples
    --------
    The point of the line x + y = 1 with x <= 0.2 that is nearest to the origin:

    >>> from summula.optimize import quadratic_program
    >>> found = quadratic_program([[2, 0], [0, 2]], [0, 0], G=[[1, 0]], h=[0.2], A=[[1, 1]], b=[1])
    >>> found.status, found.x.round(9).tolist(), found.active
    ('optimal', [0.2, 0.8], (0,))
    >>> found.multipliers.inequalities.round(9).tolist(), found.multipliers.equalities.round(9).tolist()
    ([1.2], [-1.6])
    """
    matrix = symmetric(P, "P")
    slope = vector(q, "q", "quadratic_program")
    if len(slope) != len(matrix):
        raise DataError(f"P has {len(matrix)} rows but q has {len(slope)} entries; they must agree.")
    check_convex(matrix, "quadratic_program")
    given = LinearConstraints.read(len(slope), G, h, A, b, bounds, "quadratic_program", "G h A b")
    if not given:
        return _free(matrix, slope, given)
    program = _Program.of(matrix, slope, given)
    found, duals = program.clarabel()
    status, steps, k = str(found.status), int(found.iterations), len(given.b)
    if "Infeasible" in status:  # the primal or the dual: decided by solving without an objective
        pairs = list(zip(given.low.tolist(), given.high.tolist(), strict=True))
        feasible = linear_program(np.zeros_like(slope), given.G, given.h, given.A, given.b, pairs)
        return no_minimum(feasible.x if feasible.converged else None, slope, given, matrix, steps)
    point = program.polished(_Point(np.asarray(found.x, np.float64), duals[:k], np.maximum(duals[k:], 0.0)))
    if status in ("Solved", "AlmostSolved"):
        return program.answer(point, "optimal", steps, "")
    message = f"Clarabel stopped early ({status}); scale rows and columns to similar sizes."
    return program.answer(point, "stalled", steps, message)


class _Point(NamedTuple):
    """A point with the multipliers of equalities and of inequalities."""

    x: Array
    y: Array
    z: Array


class _Program(NamedTuple):
    """The program (1) with all inequalities as R x <= r: G, then finite lower bounds, then finite upper bounds."""

    P: Array
    q: Array
    given: LinearConstraints
    R: Any
    r: Array
    below: NDArray[np.int64]
    above: NDArray[np.int64]

    @classmethod
    def of(cls, P: Array, q: Array, given: LinearConstraints) -> _Program:
        below, above = np.flatnonzero(np.isfinite(given.low)), np.flatnonzero(np.isfinite(given.high))
        eye = sparse.eye_array(len(q), format="csr")
        R = sparse.vstack([sparse.csr_array(given.G), -eye[below], eye[above]]).tocsr()
        r = np.concatenate([given.h, -given.low[below], given.high[above]])
        return cls(P, q, given, R, r, below, above)

    def clarabel(self) -> tuple[Any, Array]:
        """Return Clarabel's solution and its multipliers, equalities first."""
        import clarabel  # imported lazily

        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        # Scale the objective to entries of about 1, as its tolerances assume; multipliers are scaled back.
        size = max(float(np.abs(self.P).max()), float(np.abs(self.q).max())) or 1.0
        left = sparse.vstack([sparse.csr_array(self.given.A), self.R])
        right = np.concatenate([self.given.b, self.r])
        cones = [clarabel.ZeroConeT(len(self.given.b)), clarabel.NonnegativeConeT(len(self.r))]
        # The binding expects SciPy's sparse matrices, not its sparse arrays.
        upper = sparse.csc_matrix(np.triu(self.P / size))
        found = clarabel.DefaultSolver(upper, self.q / size, sparse.csc_matrix(left), right, cones, settings).solve()
        return found, size * np.asarray(found.z, np.float64)

    def polished(self, point: _Point) -> _Point:
        """Return the solution of (2) and (3) with the active constraints as equalities, if it has smaller residuals."""
        x, y, z = point
        active = np.flatnonzero(z > self.r - self.R @ x)
        d, k = len(x), len(y)
        if d + k + len(active) > _POLISHED:
            return point
        fixed = np.vstack([sparse.csr_array(self.given.A).toarray(), self.R[active].toarray()])
        system = np.block([[self.P, fixed.T], [fixed, np.zeros((len(fixed), len(fixed)))]])
        right = np.concatenate([-self.q, self.given.b, self.r[active]])
        now = np.concatenate([x, y, z[active]])
        answer = now + np.linalg.lstsq(system, right - system @ now, rcond=1e-12)[0]
        multipliers = np.zeros_like(z)
        multipliers[active] = np.maximum(answer[d + k :], 0.0)
        better = _Point(answer[:d], answer[d : d + k], multipliers)
        return better if self.residual(better) <= self.residual(point) else point

    def residual(self, point: _Point) -> float:
        """The largest violation of (2) to (4)."""
        x, y, z = point
        slack = self.r - self.R @ x
        parts = (
            np.abs(self.P @ x + self.q + self.R.T @ z + self.given.A.T @ y),
            np.abs(self.given.A @ x - self.given.b),
            np.maximum(-slack, 0.0),
            np.abs(z * slack),
        )
        return max(float(part.max(initial=0.0)) for part in parts)

    def answer(self, point: _Point, status: str, steps: int, message: str) -> ConstrainedSolution:
        """Return the solution with value, gap, multipliers and active sets."""
        x, y, z = point
        bend = float(x @ self.P @ x) / 2
        value = bend + float(self.q @ x)
        dual = -bend - float(self.r @ z + self.given.b @ y)
        m, below = len(self.given.h), len(self.below)
        lower, upper = np.zeros_like(x), np.zeros_like(x)
        lower[self.below], upper[self.above] = z[m : m + below], z[m + below :]
        active, at_bounds = active_sets(self.given, x)
        return ConstrainedSolution(
            x,
            value,
            max(0.0, value - dual),
            status,
            status == "optimal",
            steps,
            message=message,
            multipliers=Multipliers(z[:m], y, lower, upper),
            active=active,
            active_bounds=at_bounds,
        )


def _free(P: Array, q: Array, given: LinearConstraints) -> ConstrainedSolution:
    """Solve the program without constraints: a linear system."""
    lowest = Quadratic(P, q).lowest()
    if lowest.ray is not None:
        return no_minimum(np.zeros_like(q), q, given, P, 0)
    none = np.empty(0)
    multipliers = Multipliers(none, none, np.zeros_like(q), np.zeros_like(q))
    return ConstrainedSolution(lowest.x, lowest.value, 0.0, "optimal", True, 0, multipliers=multipliers)
