"""Choice of the solver of a penalised likelihood: datafit x penalty.

A problem consists of a datafit (a loss of the linear predictor, summed over rows) and a penalty on the slopes. Solvers
use only value, slope and curvature of the datafit (`glm/objective.py`) and the methods of the penalty
(`penalties/penalty.py`), so which of them applies depends on whether the penalty has a gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from summula.linear_model.glm.objective import GlmFit, GlmProblem, Offer, Start
from summula.linear_model.glm.solver import solve
from summula.linear_model.l1.likelihood import solve_l1
from summula.penalties import Penalty

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["Solver", "minimise", "solver_for"]

Array = NDArray[Any]


class Solver(Protocol):
    """Minimises a penalised likelihood over the rows of a run."""

    def __call__(
        self, run: Run, problem: GlmProblem, offer: Offer | None = None, start: Start | None = None
    ) -> GlmFit: ...


def solver_for(penalty: Penalty) -> Solver:
    """Return Newton's method and L-BFGS for penalties with a gradient, proximal Newton for the others."""
    return solve if penalty.is_smooth else solve_l1


def minimise(run: Run, problem: GlmProblem, offer: Offer | None = None, start: Start | None = None) -> GlmFit:
    """Minimise a penalised likelihood over the rows of a run, by the solver for its penalty.

    `offer` is called with a function that returns the fit so far, at each intermediate point; `start` are initial
    intercepts and slopes.
    """
    return solver_for(problem.regulariser)(run, problem, offer, start)
