"""The solution of one machine: its dual problem, and the point at which the solver stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.svm.dual.certificate import (
    Machine,
    MachineTask,
    problem_of,
    rounding_of,
    rows_of_pair,
)
from summula.svm.dual.solver import DualPoint, DualProblem, intercept_of, objectives

__all__ = ["MachineFit", "first_point", "gap_of_point"]

Array = NDArray[Any]
Index = NDArray[np.intp]


class MachineFit:
    """A machine after, or before, its solver has run."""

    def __init__(self, point: DualPoint, rows: Index, problem: DualProblem, largest: float = 0.0) -> None:
        self.point, self.rows, self.problem = point, rows, problem
        self.largest = largest  # largest diagonal value of the kernel matrix

    @classmethod
    def unsolved(cls, task: MachineTask, pair: tuple[int, int], y: Array | None, weight: Array) -> MachineFit:
        """Return the machine with beta = 0."""
        rows = rows_of_pair(task, pair, y, weight)
        problem = problem_of(task, pair, None if y is None else y[rows], weight[rows])
        return cls(DualPoint(np.zeros(len(problem.q)), problem.q, np.inf, 0, False, "stopped"), rows, problem)

    def machine(self) -> Machine:
        beta = np.bincount(self.problem.row, self.point.beta, len(self.rows))
        support = np.flatnonzero(beta)
        numbers, weights = self.rows[support].astype(np.int64), self.point.weights
        if weights is not None:
            return Machine(numbers, beta[support], weights.intercept, weights.coef)
        return Machine(numbers, beta[support], intercept_of_point(self.problem, self.point))

    def rounding(self) -> float:
        """Return the rounding error of the objectives."""
        return 0.0 if self.point.weights is not None else rounding_of(self.problem, self.point.beta, self.largest)

    def objectives(self, intercept: float) -> tuple[float, float]:
        if (weights := self.point.weights) is not None:
            return weights.primal, weights.dual
        return objectives(self.problem, self.point.beta, self.point.f, intercept)


def gap_of_point(problem: DualProblem, point: DualPoint) -> float:
    """Return primal minus dual at a point of the solver."""
    primal, dual = objectives(problem, point.beta, point.f, intercept_of_point(problem, point))
    return primal - dual


def intercept_of_point(problem: DualProblem, point: DualPoint) -> float:
    return intercept_of(problem, point.beta, point.f) if point.intercept is None else point.intercept


def first_point(problem: DualProblem) -> Array | None:
    """Return a point with the required sum: the first variables at their bounds, and one in between."""
    if not problem.total:
        return None
    before = np.cumsum(problem.high) - problem.high
    return np.clip(problem.total - before, 0.0, problem.high)
