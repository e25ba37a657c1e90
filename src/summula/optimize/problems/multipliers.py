"""Solutions of constrained problems: multipliers and active constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.solution import Solution

__all__ = ["ConstrainedSolution", "Multipliers"]

Array = NDArray[np.float64]

_NONE = np.empty(0)


class Multipliers(NamedTuple):
    """Lagrange multipliers: the rate of decrease of the minimum as each constraint is relaxed.

    Attributes
    ----------
    inequalities : ndarray
        lambda >= 0, one per inequality.
    equalities : ndarray
        nu, one per equality, of either sign.
    lower, upper : ndarray
        Multipliers of the bounds of each variable, in linear and quadratic programs; >= 0.
    """

    inequalities: Array
    equalities: Array
    lower: Array = _NONE
    upper: Array = _NONE


@dataclass(frozen=True)
class ConstrainedSolution(Solution):
    """A solution under constraints.

    Attributes
    ----------
    multipliers : Multipliers or None
        Lagrange multipliers; None if there is no solution.
    active : tuple of int
        Indices of the active inequalities.
    active_bounds : tuple of int
        Indices of the variables at one of their bounds.
    conflict : tuple of str
        If infeasible: names of a small set of contradicting constraints, if known.
    ray : ndarray or None
        If unbounded: a direction along which the objective decreases without bound.
    """

    multipliers: Multipliers | None = None
    active: tuple[int, ...] = ()
    active_bounds: tuple[int, ...] = ()
    conflict: tuple[str, ...] = ()
    ray: Array | None = None
