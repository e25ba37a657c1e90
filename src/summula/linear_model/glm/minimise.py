"""Choice of the solver of a likelihood by its penalty.

A problem consists of a loss of the linear predictor and a penalty on the slopes. Solvers use only value, slope and
curvature of the loss (`glm/objective.py`), so the solver is determined by the penalty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.glm.solver import solve
from summula.linear_model.l1.likelihood import solve_l1

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["SOLVERS", "Solver", "minimise"]

Array = NDArray[Any]
Offer = Callable[[Callable[[], GlmFit]], None]


class Solver(Protocol):
    """Minimises a penalised likelihood over the rows of a run; see `glm.solver.solve` for the arguments."""

    def __call__(
        self, run: Run, problem: GlmProblem, offer: Offer | None = None, start: tuple[Array, Array] | None = None
    ) -> GlmFit: ...


SOLVERS: dict[str, Solver] = {"smooth": solve, "l1": solve_l1}


def minimise(
    run: Run, problem: GlmProblem, offer: Offer | None = None, start: tuple[Array, Array] | None = None
) -> GlmFit:
    """Minimise a penalised likelihood by the solver for its penalty."""
    return SOLVERS[problem.penalty_kind](run, problem, offer, start)
