"""The result type of all solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from summula.core.model_files import schema

__all__ = ["Solution"]


@schema.saved(
    "core.solution.Solution",
    x=schema.Plain(),
    value=schema.Real(finite=False),
    gap=schema.Real(finite=False),
    status=schema.Text(),
    converged=schema.Flag(),
    n_steps=schema.Integer(0),
    trace=schema.Items(schema.Real(finite=False)),
    path=schema.Items(schema.Plain()),
    message=schema.Text(),
)
@dataclass(frozen=True)
class Solution:
    """Result of an optimisation.

    Attributes
    ----------
    x : ndarray
        Final point.
    value : float
        Objective at `x`.
    gap : float
        Upper bound on `value` minus the minimum of the objective; NaN if the solver does not provide one.
    status : str
        One of "optimal", "converged", "max_iter", "max_time", "stopped", "stalled", "diverged", "saddle", "infeasible",
        "unbounded".
    converged : bool
        Whether the tolerance was reached.
    n_steps : int
        Number of steps.
    trace : tuple of float
        Value of the convergence criterion after each step.
    path : tuple of ndarray
        Iterates, starting with the initial point; empty if the solver does not store them (in high dimensions).
    message : str
        Additional information about the status.
    """

    x: Any
    value: float
    gap: float
    status: str
    converged: bool
    n_steps: int
    trace: tuple[float, ...] = field(default=(), repr=False)
    path: tuple[Any, ...] = field(default=(), repr=False)
    message: str = ""
