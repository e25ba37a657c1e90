"""Decision rules: from observations to indices of actions.

A rule may be a function of an array of observations or of one, a table of observations, an object with `predict`, or
the Bayes rule, which minimises sum_s costs[a, s] P(s) p(x | s).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.bayes.decision_problem import DecisionProblem
from summula.bayes.densities import finite_joint
from summula.core.errors import DataError, ParameterError

__all__ = ["Rule", "decided", "log_joint", "rule_of"]

Array = NDArray[np.float64]
Rule = Callable[[Any], NDArray[np.intp]]


def rule_of(rule: Any, problem: DecisionProblem) -> Rule:
    """Return a rule as a function from observations to indices of actions."""
    act = rule.predict if hasattr(rule, "predict") else _looked_up(rule) if isinstance(rule, Mapping) else rule
    if not callable(act):
        raise ParameterError(
            f"rule must be a function of observations, a dict, or have predict; got {type(rule).__name__}."
        )
    places = {action: place for place, action in enumerate(problem.actions)}
    discrete = problem._densities[0].table is not None

    def decide(x: Any) -> NDArray[np.intp]:
        rows = np.asarray(x)
        if hasattr(rule, "predict"):
            actions = np.asarray(act(rows[:, None] if rows.ndim == 1 else rows)).tolist()
        else:
            actions = [act(one) for one in x] if discrete else _acts(act, rows)
        if len(actions) != len(x):
            raise DataError(
                f"The rule returned {len(actions)} actions for {len(x)} observations; it must return one for each."
            )
        try:
            return np.array([places[action] for action in actions], np.intp)
        except KeyError as error:
            raise DataError(
                f"The rule returned {error.args[0]!r}, which has no costs; the actions are {list(problem.actions)!r}."
            ) from None

    return decide


def _looked_up(rule: Mapping[Any, Any]) -> Callable[[Any], Any]:
    """Return a rule that is a table of observations as a function of one observation."""

    def act(x: Any) -> Any:
        if x not in rule:
            raise DataError(f"The rule has no action for the observation {x!r}; it has actions for {list(rule)!r}.")
        return rule[x]

    return act


def _acts(act: Callable[[Any], Any], rows: Any) -> list[Any]:
    """Return the action of every row, from one call if the rule accepts an array, else from one call each."""
    try:
        actions = np.asarray(act(rows))
    except (TypeError, ValueError):  # as `1 if x > 0 else 0` does
        actions = np.empty(())
    return actions.tolist() if actions.ndim else [act(row) for row in rows]


def log_joint(problem: DecisionProblem, x: Any) -> Array:
    """Return log P(s) p(x | s) for every observation, one column per state."""
    with np.errstate(divide="ignore"):
        return np.log(problem.priors) + np.column_stack([density.log(x) for density in problem._densities])


def decided(problem: DecisionProblem, x: Any) -> NDArray[np.intp]:
    """Return the Bayes action for every observation, which minimises sum_s costs[a, s] P(s) p(x | s)."""
    joint = finite_joint(log_joint(problem, x))
    top = joint.max(axis=1, keepdims=True)
    scaled = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
    return np.asarray(problem._table.risks(scaled).argmin(axis=1), np.intp)
