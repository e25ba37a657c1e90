"""Parameters and state of the compiled steps of stochastic gradient descent, importable without Numba."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.losses.scores import TAGS

__all__ = ["LOSSES", "ONE_BUFFER", "SCHEDULES", "Epochs", "Rule", "State"]

Array = NDArray[Any]

# Losses supported by stochastic gradient descent.
LOSSES = {name: tag for name, tag in TAGS.items() if name not in ("exponential", "quantile")}
SCHEDULES = {"constant": 0, "adaptive": 0, "optimal": 1, "invscaling": 2, "pa1": 3, "pa2": 4}

# Indices into State.numbers.
SCALE, INTERCEPT, STEPS, ETA, LOSS, PENALTY, UPDATES, L1_SUM, SCALES, INTERCEPTS, AVERAGED = range(11)


class Rule(NamedTuple):
    """Parameters of a step.

    loss, bend : tag of the loss, and its margin or epsilon
    positive : code of the positive class; -1 for numeric targets
    inside, outside : weights of rows of that class and of the rest
    intercept : whether b is updated
    l2, l1 : penalties
    schedule, eta0, power, alpha, early : learning rate as a function of t; `early` is the initial t of "optimal"
    average : step from which weights are averaged; 0 for never
    batch : rows per step
    judged : whether losses and penalties are accumulated for the stopping rule
    """

    loss: int
    bend: float
    positive: float
    inside: float
    outside: float
    intercept: int
    l2: float
    l1: float
    schedule: int
    eta0: float
    power: float
    alpha: float
    early: float
    average: float
    batch: int
    judged: int


class Epochs(NamedTuple):
    """Epochs to take at once over rows that are all in one buffer.

    seed, first, shuffle : seed of the order of rows, number of the first epoch, and whether rows are shuffled
    clean : whether to end after an epoch without updates
    trace : output for loss with penalty, and updates, per epoch; if empty, rows are used in the order of the buffer
    """

    seed: int
    first: int
    shuffle: int
    clean: int
    trace: Array


ONE_BUFFER = Epochs(0, 0, 0, 0, np.empty((0, 2)))


class State(NamedTuple):
    """State of the descent: v of (3), a of (4), q of (2), and the numbers listed above."""

    v: Array
    a: Array
    q: Array
    numbers: Array

    @classmethod
    def at(cls, coef: Array, intercept: float, steps: float, eta0: float, *, averages: bool, l1: bool) -> State:
        """Return the initial state at given weights."""
        none, d = np.empty(0), len(coef)
        numbers = np.zeros(11)
        numbers[SCALE], numbers[INTERCEPT], numbers[STEPS], numbers[ETA] = 1.0, intercept, steps, eta0
        v = np.array(coef, np.float64)
        return cls(v, np.zeros(d) if averages else none, np.zeros(d) if l1 else none, numbers)

    @property
    def coef(self) -> Array:
        """The weights w."""
        return np.asarray(self.numbers[SCALE] * self.v)

    @property
    def finite(self) -> bool:
        """Whether all weights are finite."""
        return math.isfinite(self.numbers[INTERCEPT]) and bool(np.isfinite(self.v).all())
