"""The problem of LinearSVC and LinearSVR, and its losses.

With z_i = (x_i, s) and v = (w, w_s), so that f(x) = w'x + b, b = s w_s, row weights c_i and y = -1, 1 or a number

    P(v) = R(v) + C sum_i c_i l(y_i, f(x_i))                                                                    (1)

    R    1/2 ||v||^2 or ||v||_1: the intercept is penalised as in scikit-learn, unless `penalize_intercept=False`
    l    hinge                       max(0, 1 - y f)            epsilon_insensitive           max(0, |y - f| - eps)
         squared_hinge               its square                 squared_epsilon_insensitive   its square

The dual has one beta_i per row, which has the sign of its class. With D_i = 1 / (2 C c_i) for squared losses, and
D_i = 0, |beta_i| <= C c_i otherwise; beta_i y_i >= 0 for classes,

    D(beta) = -R*(sum_i beta_i z_i) + sum_i (y_i beta_i - eps |beta_i| - D_i beta_i^2 / 2)                        (2)

R* is 1/2 ||.||^2, or 0 if no entry is larger than 1 (L1); an unpenalised intercept requires sum beta = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.model_files import schema
from summula.penalties import Penalty

__all__ = ["CLASS_LOSSES", "NUMBER_LOSSES", "LinearProblem", "Pointwise", "losses", "targets_and_weights"]

Array = NDArray[Any]

CLASS_LOSSES = ("hinge", "squared_hinge")
NUMBER_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@schema.saved(
    loss=schema.Text(*CLASS_LOSSES, *NUMBER_LOSSES),
    penalty=schema.Text("l1", "l2"),
    C=schema.Real(0.0),
    epsilon=schema.Real(0.0),
    column=schema.Real(),
    penalize_intercept=schema.Flag(),
    positive=schema.Integer(-1),
    inside=schema.Real(0.0),
    outside=schema.Real(0.0),
)
class LinearProblem(NamedTuple):
    """Definition of the problem (1).

    `column` is s, 0 without an intercept; `positive` is the code of the positive class, -1 for regression; `inside` and
    `outside` are the weights of that class and of the others.
    """

    loss: str
    penalty: str
    C: float
    epsilon: float
    column: float
    penalize_intercept: bool
    positive: int = -1
    inside: float = 1.0
    outside: float = 1.0

    @property
    def regulariser(self) -> Penalty:
        """The regulariser R of (1)."""
        return Penalty(1.0) if self.penalty == "l1" else Penalty(0.0, 1.0)

    @property
    def is_squared(self) -> bool:
        """Whether the loss is squared, and so differentiable."""
        return self.loss.startswith("squared")

    @property
    def is_free(self) -> bool:
        """Whether there is an unpenalised intercept."""
        return self.column != 0.0 and not self.penalize_intercept


class Pointwise(NamedTuple):
    """Loss, slope and curvature of every row, without C and weights."""

    value: Array
    slope: Array
    curvature: Array


def losses(problem: LinearProblem, y: Array, f: Array) -> Pointwise:
    """Return the losses of scores; at a kink the slope is 0."""
    if problem.positive >= 0:
        over, sign = np.maximum(1.0 - y * f, 0.0), -y
    else:
        r = f - y
        over, sign = np.maximum(np.abs(r) - problem.epsilon, 0.0), np.sign(r)
    if problem.is_squared:
        return Pointwise(over * over, 2.0 * over * sign, 2.0 * (over > 0.0))
    return Pointwise(over, (over > 0.0) * sign, np.zeros_like(over))


def targets_and_weights(problem: LinearProblem, chunk: Chunk) -> tuple[Array, Array]:
    """Return y of (1) and C c_i, which must not be modified."""
    found: tuple[Array, Array] = chunk.kept(problem, lambda: _targets_and_weights(problem, chunk))
    return found


def _targets_and_weights(problem: LinearProblem, chunk: Chunk) -> tuple[Array, Array]:
    weight = np.full(len(chunk), problem.C) if chunk.weight is None else problem.C * chunk.weight
    if problem.positive < 0:
        return chunk.target, weight
    assert chunk.codes is not None
    mine = chunk.codes == problem.positive
    return np.where(mine, 1.0, -1.0), weight * np.where(mine, problem.inside, problem.outside)
