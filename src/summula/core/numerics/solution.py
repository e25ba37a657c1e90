"""What every solver returns."""

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
    """The end of an optimisation: where it stopped, how good that is, and how it got there.

    Attributes
    ----------
    x : ndarray
        The point reached.
    value : float
        The objective there.
    gap : float
        An upper bound on `value` minus the smallest possible value; NaN when the solver has none.
    status : str
        One word: "optimal", "converged", "max_iter", "max_time", "stopped", "stalled", "diverged", "saddle",
        "infeasible", "unbounded".
    converged : bool
        Whether the tolerance was reached.
    n_steps : int
        Steps taken.
    trace : tuple of float
        The quantity the solver drives down, once per step.
    path : tuple of ndarray
        The points it passed, from the start on, where the solver keeps them: in few dimensions.
    message : str
        A sentence, where one word does not say enough.
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
