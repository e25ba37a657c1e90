"""BFGS: Newton's method with a Hessian learnt from gradients.

With s = x+ - x and y = g+ - g, a Hessian B near x fulfils B s = y, the secant equation in d dimensions. Its inverse H
is changed as little as this allows, by two ranks:

    p = -H g,     x+ = x + t p                                                                                     (1)
    H+ = (I - r s y') H (I - r y s') + r s s',        r = 1 / y's                                                  (2)

H stays positive definite as long as y's > 0, which a search that leaves |phi'(t)| <= 0.9 |phi'(0)| ensures. The first
t is 1: near the minimum it is the right one. H starts at the identity and is rescaled by y's / y'y after one step.

With `memory=m` only the last m pairs are kept and H is never formed, so that d may be large (L-BFGS). Written out, (2)
makes H g from the pairs, the newest first, then from the oldest on:

    a_i = s_i'q / y_i's_i,   q <- q - a_i y_i;      q <- q y's / y'y;      q <- q + (a_i - y_i'q / y_i's_i) s_i    (3)

The theory is for smooth functions; on others BFGS often works and promises nothing.
References: Nocedal and Wright, Numerical Optimization (2006), chapters 6 and 7; Liu and Nocedal (1989).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.estimator.parameters import integer, none, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, by_slopes
from summula.optimize.objective import Objective, Trail, check_arguments

__all__ = ["bfgs"]

Array = NDArray[np.float64]

_FLAT = 0.9  # share of the first slope that a search along a line may leave
_ROUNDING = float(np.finfo(np.float64).eps)


def bfgs(
    f: Callable[[Any], Any],
    x0: Any,
    *,
    gradient: Callable[[Any], Any] | None = None,
    memory: int | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 10_000,
) -> Solution:
    """Minimise a smooth function by the quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno.

    Parameters
    ----------
    f : callable
        x -> number.
    x0 : number or array of shape (d,)
        Where to start.
    gradient : callable, optional
        x -> array of shape (d,); central differences without it.
    memory : int, optional
        How many of the last steps L-BFGS remembers; the whole d by d matrix by default.
    tolerance : float, default=1e-6
        The length of the gradient at which to stop.
    max_steps : int, default=10_000

    Returns
    -------
    Solution
        `trace` has the values, `path` the points.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization (2006), section 6.1.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.optimize import bfgs
    >>> def rosenbrock(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> found = bfgs(rosenbrock, [-1.2, 1.0])
    >>> found.status, found.x.round(5).tolist()
    ('converged', [1.0, 1.0])
    """
    check_arguments(
        "bfgs",
        memory=(memory, (none, integer(1))),
        tolerance=(tolerance, (real(0),)),
        max_steps=(max_steps, (integer(1),)),
    )
    objective = Objective(f, x0, gradient, function="bfgs")
    x, value = objective.start, objective.first_value()
    g, trail = objective.gradient(x), Trail(objective)
    H: _Matrix | _Pairs = _Matrix(len(x)) if memory is None else _Pairs(memory)
    trail.add(x, value)
    while np.linalg.norm(g) > tolerance:
        if len(trail.values) > max_steps:
            return trail.unfinished(x, value, g, tolerance)
        if trail.stuck(g):
            return trail.end(x, value, "stalled", message=objective.why_stalled(x, g))
        p = -H.times(g)  # (1)
        if not float(g @ p) < 0:  # rounding has spoilt H
            H.forget()
            p = -g
        line = Line(objective, x, p, value, g)
        first = 1.0 / max(1.0, float(np.linalg.norm(g))) if H.is_identity else 1.0
        stop = by_slopes(line, first, _FLAT)
        if stop.status == "unbounded":
            return trail.bottomless(line.point(stop.t), stop.value)
        if stop.t == 0.0 and H.is_identity:
            return trail.end(x, value, "stalled", message=objective.why_stalled(x, g))
        if stop.t == 0.0 and -float(g @ p) <= _ROUNDING * abs(value):
            return trail.end(x, value, "converged", message="What H still promises to gain is less than rounding.")
        if stop.t == 0.0:
            H.forget()
            continue
        s, y = line.point(stop.t) - x, line.gradient(stop.t) - g
        x, value, g = line.point(stop.t), stop.value, line.gradient(stop.t)
        trail.add(x, value)
        if trail.fallen:
            return trail.bottomless(x, value)
        if float(y @ s) > _ROUNDING * float(np.linalg.norm(y) * np.linalg.norm(s)):
            H.learn(s, y)  # a pair without curvature teaches nothing
    return trail.end(x, value, "converged")


class _Matrix:
    """H whole."""

    def __init__(self, d: int) -> None:
        self.H, self.is_identity = np.eye(d), True

    def forget(self) -> None:
        self.H, self.is_identity = np.eye(len(self.H)), True

    def times(self, g: Array) -> Array:
        return np.asarray(self.H @ g)

    def learn(self, s: Array, y: Array) -> None:
        """(2), from a multiple of the identity at first."""
        bend = float(y @ s)
        if self.is_identity:
            self.H = self.H * (bend / float(y @ y))
        A = np.eye(len(s)) - np.outer(s, y) / bend
        self.H, self.is_identity = A @ self.H @ A.T + np.outer(s, s) / bend, False


class _Pairs:
    """H as the product of the last pairs (s, y)."""

    def __init__(self, memory: int) -> None:
        self.pairs: deque[tuple[Array, Array]] = deque(maxlen=memory)

    @property
    def is_identity(self) -> bool:
        return not self.pairs

    def forget(self) -> None:
        self.pairs.clear()

    def learn(self, s: Array, y: Array) -> None:
        self.pairs.append((s, y))

    def times(self, g: Array) -> Array:
        """H g by (3): back through the pairs, a multiple of the identity, and forth again."""
        q, shares = g.copy(), []
        for s, y in reversed(self.pairs):
            shares.append(float(s @ q) / float(y @ s))
            q -= shares[-1] * y
        if self.pairs:
            s, y = self.pairs[-1]
            q *= float(y @ s) / float(y @ y)
        for (s, y), share in zip(self.pairs, reversed(shares), strict=True):
            q += (share - float(y @ q) / float(y @ s)) * s
        return q
