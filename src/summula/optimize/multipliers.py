"""What the solution of a problem with constraints has besides: multipliers, and which constraints hold it."""

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
    """The price of each constraint: by how much the minimum would fall if the constraint were relaxed by one.

    Attributes
    ----------
    inequalities : ndarray
        lambda >= 0, one for each inequality.
    equalities : ndarray
        nu, one for each equality, of either sign.
    lower, upper : ndarray
        Those of the bounds of each variable, in programs; >= 0.
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
        None where there is no solution.
    active : tuple of int
        The inequalities that hold with equality.
    active_bounds : tuple of int
        The variables at one of their bounds.
    conflict : tuple of str
        Where nothing is feasible: names of a few constraints that contradict each other, if they are known.
    ray : ndarray or None
        Where there is no lower bound: a direction along which the objective falls for ever.
    """

    multipliers: Multipliers | None = None
    active: tuple[int, ...] = ()
    active_bounds: tuple[int, ...] = ()
    conflict: tuple[str, ...] = ()
    ray: Array | None = None
