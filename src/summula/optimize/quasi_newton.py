"""BFGS and L-BFGS: quasi-Newton methods, which approximate the Hessian from gradients.

With s = x+ - x and y = g+ - g, a Hessian B near x satisfies the secant equation B s = y. Its inverse H is updated by
the smallest change that satisfies it, of rank two:

    p = -H g,     x+ = x + t p                                                                                     (1)
    H+ = (I - r s y') H (I - r y s') + r s s',        r = 1 / y's                                                  (2)

H stays positive definite as long as y's > 0, which a line search with |phi'(t)| <= 0.9 |phi'(0)| ensures. The initial
t is 1, which is optimal near the minimum. H starts as the identity and is rescaled by y's / y'y after the first step.

With `memory=m` only the last m pairs are stored and H is never formed, so d may be large (L-BFGS). The product H g is
computed from the pairs by the two-loop recursion, from newest to oldest and back:

    a_i = s_i'q / y_i's_i,   q <- q - a_i y_i;      q <- q y's / y'y;      q <- q + (a_i - y_i'q / y_i's_i) s_i    (3)

The theory assumes smooth functions; on others BFGS often works but without guarantees.
References: Nocedal and Wright, Numerical Optimization (2006), chapters 6 and 7; Liu and Nocedal (1989).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.estimator.parameters import integer, none, real
from summula.core.numerics.solution import Solution
from summula.optimize.line_searches import Line, by_slopes
from summula.optimize.problems.objective import MINIMISER, Objective, check_arguments, start_trail

__all__ = ["bfgs"]

Array = NDArray[np.float64]

_FLAT = 0.9  # final slope of a line search, relative to the initial slope
_ROUNDING = float(np.finfo(np.float64).eps)


@inherit_docs(MINIMISER)
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
    memory : int, optional
        Number of pairs stored by L-BFGS; by default the full d by d matrix is stored (BFGS).

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
    x, value, g, trail = start_trail(objective)
    H: _Matrix | _Pairs = _Matrix(len(x)) if memory is None else _Pairs(memory)
    while np.linalg.norm(g) > tolerance:
        if (ended := trail.exhausted(x, value, g, tolerance, max_steps)) is not None:
            return ended
        p = -H.times(g)  # (1)
        if not float(g @ p) < 0:  # H is not positive definite, because of rounding
            H.reset()
            p = -g
        line = Line(objective, x, p, value, g)
        first = 1.0 / max(1.0, float(np.linalg.norm(g))) if H.is_identity else 1.0
        stop = by_slopes(line, first, _FLAT)
        if stop.status == "unbounded":
            return trail.unbounded(line.point(stop.t), stop.value)
        if stop.t == 0.0 and H.is_identity:
            return trail.stalled(x, value, g)
        if stop.t == 0.0 and -float(g @ p) <= _ROUNDING * abs(value):
            return trail.end(x, value, "converged", message="The predicted decrease is below rounding error.")
        if stop.t == 0.0:
            H.reset()
            continue
        s, y = line.point(stop.t) - x, line.gradient(stop.t) - g
        x, value, g = line.point(stop.t), stop.value, line.gradient(stop.t)
        trail.add(x, value)
        if trail.is_diverging:
            return trail.unbounded(x, value)
        if float(y @ s) > _ROUNDING * float(np.linalg.norm(y) * np.linalg.norm(s)):
            H.update(s, y)  # pairs without positive curvature are skipped
    return trail.end(x, value, "converged")


class _Matrix:
    """H as a matrix."""

    def __init__(self, d: int) -> None:
        self.H, self.is_identity = np.eye(d), True

    def reset(self) -> None:
        self.H, self.is_identity = np.eye(len(self.H)), True

    def times(self, g: Array) -> Array:
        return np.asarray(self.H @ g)

    def update(self, s: Array, y: Array) -> None:
        """Apply (2), starting from a multiple of the identity."""
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

    def reset(self) -> None:
        self.pairs.clear()

    def update(self, s: Array, y: Array) -> None:
        self.pairs.append((s, y))

    def times(self, g: Array) -> Array:
        """Return H g by the two-loop recursion (3)."""
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
