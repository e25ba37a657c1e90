"""The Lagrangian of quadratic functions is quadratic, so its infimum, the dual function, has a closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.optimize.problems.multipliers import Multipliers
from summula.optimize.problems.quadratics import Quadratic

__all__ = ["as_quadratic", "infimum_gap"]

Array = NDArray[np.float64]


def as_quadratic(problem: Any, multipliers: Multipliers | None) -> Quadratic | None:
    """Return f + l'g + n'h as a quadratic (f alone without multipliers); None if any function is not `Quadratic`."""
    constraints = [*problem.inequalities, *problem.equalities]
    pieces = [problem.f, *(function for function, _ in constraints)]
    if not all(isinstance(piece, Quadratic) for piece in pieces):
        return None
    if multipliers is None:
        return Quadratic(problem.f.P, problem.f.q, problem.f.r)
    weights = np.concatenate([[1.0], multipliers.inequalities, multipliers.equalities])
    P = sum(weight * piece.P for weight, piece in zip(weights, pieces, strict=True))
    q = sum(weight * piece.q for weight, piece in zip(weights, pieces, strict=True))
    return Quadratic(P, q, float(sum(weight * piece.r for weight, piece in zip(weights, pieces, strict=True))))


def infimum_gap(problem: Any, x: Array, multipliers: Multipliers) -> float:
    """Return f(x) minus the dual function at the multipliers, a bound by weak duality; NaN if it is not exact."""
    whole = as_quadratic(problem, multipliers)
    if whole is None:
        return float("nan")
    value = float(problem.f(x)) - whole.lowest().value
    return max(value, 0.0)
