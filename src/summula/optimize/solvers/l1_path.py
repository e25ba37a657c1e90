"""Regularisation path of an L1-penalised quadratic for decreasing penalties, with warm starts.

From a to a' < a the slope of an inactive column rarely changes by more than a - a', so columns with

    |g_j| < 2 a' - a                                                                       (the strong rule)    (1)

are excluded at first. Several steps of the path are computed within such a working set before all columns are checked,
with one matrix product for their slopes. A step at which some column violates its optimality condition is repeated with
that column, and the path continues from there, so the result does not depend on (1).

Between changes of the support the path is linear in a, so each step starts from the extrapolation of the last two,

    v(a'') = v(a') + (v(a') - v(a)) (a'' - a') / (a' - a),     zero where the sign would change                  (2)

Reference: Tibshirani, Bien, Friedman, Hastie, Simon, Taylor, Tibshirani (2012), Strong rules for discarding predictors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from summula.optimize.solvers.l1_quadratic import L1Solution, Quadratic, judged, minimise_l1, solve_inside
from summula.penalties import Penalty

__all__ = ["ManySlopes", "l1_path"]

Array = NDArray[np.float64]

_TOGETHER = 3  # steps between checks of all columns


class ManySlopes(Quadratic, Protocol):
    """A quadratic that computes several slopes at once."""

    def slopes(self, V: Array) -> Array:
        """q - G V, column by column."""


def l1_path(
    quadratic: ManySlopes,
    penalties: Sequence[Penalty],
    *,
    start: Array | None = None,
    tolerance: float = 1e-10,
    max_sweeps: int = 100_000,
) -> list[L1Solution]:
    """Compute the minimiser for each of a decreasing sequence of penalties.

    Parameters
    ----------
    quadratic : ManySlopes
    penalties : sequence of Penalty
    start : ndarray, optional
        Starting point for the first penalty.
    tolerance, max_sweeps
        As in `minimise_l1`, for each penalty.

    Returns
    -------
    list of L1Solution
    """
    first = minimise_l1(quadratic, penalties[0], start=start, tolerance=tolerance, max_sweeps=max_sweeps)
    done = [first]
    while len(done) < len(penalties):
        at = len(done)
        ahead = penalties[at : at + _TOGETHER]
        columns = _likely(done[-1], penalties[at - 1].l1, ahead[-1])
        known = list(zip([p.l1 for p in penalties[:at]], [s.v for s in done], strict=True))[-2:]
        V, sweeps = _inside(quadratic, known, ahead, columns, tolerance, max_sweeps)
        slopes = quadratic.slopes(V)
        for k, penalty in enumerate(ahead):
            v, g = np.ascontiguousarray(V[:, k]), np.ascontiguousarray(slopes[:, k])
            value, gap, wrong = judged(v, g, quadratic, penalty)
            if gap <= max(tolerance * quadratic.c / 2, 1e-13 * value):
                done.append(L1Solution(v, g, value, gap, True, sweeps[k], 1))
                continue
            more = np.flatnonzero(wrong)
            hint = np.union1d(columns, more) if len(more) <= len(columns) + 100 else columns
            done.append(minimise_l1(quadratic, penalty, start=v, hint=hint, tolerance=tolerance, max_sweeps=max_sweeps))
            break
    return done


def _likely(here: L1Solution, last: float, penalty: Penalty) -> NDArray[np.intp]:
    """Return the active columns, and those the strong rule (1) does not exclude."""
    size = penalty.steepness(here.slope - penalty.l2 * here.v)
    return np.flatnonzero((here.v != 0) | (size >= 2 * penalty.l1 - last))


def _inside(
    quadratic: ManySlopes,
    known: list[tuple[float, Array]],
    penalties: Sequence[Penalty],
    columns: NDArray[np.intp],
    tolerance: float,
    max_sweeps: int,
) -> tuple[Array, list[int]]:
    """Compute the minimisers within some columns; `known` has the last one or two of the path, each with its a."""
    V = np.zeros((len(quadratic.q), len(penalties)))
    sweeps = [0] * len(penalties)
    if not len(columns):
        return V, sweeps
    G = np.ascontiguousarray(quadratic.block(columns))
    q, c = quadratic.q[columns], quadratic.c
    line = [(a, v[columns]) for a, v in known]
    for k, penalty in enumerate(penalties):
        inside = _ahead(line, penalty.l1)
        sweeps[k] = solve_inside(G, q, inside, penalty, c, 0.9 * tolerance * c / 2, max_sweeps)
        V[columns, k] = inside
        line = [line[-1], (penalty.l1, inside)]
    return V, sweeps


def _ahead(line: list[tuple[float, Array]], a: float) -> Array:
    """Equation (2)."""
    last, v = line[-1]
    if len(line) == 1 or line[0][0] == last:
        return v.copy()
    before, u = line[0]
    there = v + (v - u) * ((a - last) / (last - before))
    return np.where(there * v > 0, there, 0.0)
