"""L1-penalised quadratics: the solver behind lasso, elastic net and the L1 steps of other losses.

    P(v) = c/2 - q'v + 1/2 v'G v + a |v|_1 + b/2 |v|^2                                                          (1)

G need not be formed: the solver only uses the slope g = q - G v of all columns, and blocks of G for a few of them.

1. **Working set.** Columns with v_j = 0 and |g_j| <= a are optimal. So (1) is solved on the columns that are active or
   violate this condition most, g is computed for all, and the set grows until no column violates it.
2. **Coordinate descent** inside the set, each step exact, with S(z, a) = sign(z) max(|z| - a, 0):

       v_j = S(g_j + G_jj v_j, a) / (G_jj + b),      g -= G_j (change of v_j)                                   (2)

3. **Newton steps** once the signs are stable: with support S and signs s the minimiser on that face solves

       (G_SS + b I) v_S = q_S - a s                                                                             (3)

   If a sign would change, the step ends at the first change, and that column leaves the support. If columns are
   dependent, (G_SS + b I) n = 0, the objective changes only by a s'n along n: a descent step along n is taken until a
   column leaves. So the last digits take a few linear systems instead of a thousand sweeps.

Duality gap. With s = g - b v, the slope scaled by t = min(1, a / max_j |s_j|) is dual feasible, and with R =
c - (q + g)'v, the residual sum of squares,

    P - min P <= sum_j (a |v_j| - t s_j v_j) + (1 - t)^2 / 2 (R + b |v|^2)                                      (4)

No term is negative, so there is no cancellation. Without an L1 penalty the gap is |s|^2 / (2 b).
References: Friedman, Hastie, Tibshirani (2010); Massias, Gramfort, Salmon (2018); Fercoq, Gramfort, Salmon (2015).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from summula.core.engine.engine import check_watch
from summula.core.engine.threads import solving
from summula.penalties import Penalty

__all__ = [
    "GramQuadratic",
    "L1Solution",
    "Quadratic",
    "judged",
    "minimise_l1",
    "newton_on_face",
    "nothing",
    "solve_inside",
]

Array = NDArray[np.float64]

_SWEEPS, _FEW_SWEEPS = 10, 1  # sweeps of coordinate descent between checks of gap and signs; few for a rough solution
_FIRST = 100  # minimum size of a working set
_ROUNDS = 100
_CROSSINGS = 30
_SMALL = 150  # size of the support up to which a linear system is cheaper than sweeps
_FEW = 32  # ... and up to which a compiled loop is faster than LAPACK
_DEPENDENT = 1e-13  # fraction of its squared norm that remains of a column that depends linearly on others
_ROUNDING = 2e-15  # rounding error of the gap, relative to c


class Quadratic(Protocol):
    """The smooth part of (1)."""

    c: float
    q: Array

    def slope(self, v: Array, used: NDArray[np.intp]) -> Array:
        """q - G v for all columns; v is zero outside of `used`."""

    def block(self, columns: NDArray[np.intp]) -> Array:
        """G for some of the columns; may be shared and must not be modified."""


@dataclass
class GramQuadratic:
    """A quadratic with G stored as a matrix."""

    G: Array
    q: Array
    c: float

    def slope(self, v: Array, used: NDArray[np.intp]) -> Array:
        """q - G v."""
        return np.asarray(self.q - self.G[:, used] @ v[used])

    def slopes(self, V: Array) -> Array:
        """q - G V, column by column."""
        return np.asarray(self.q[:, None] - self.G @ V)

    def block(self, columns: NDArray[np.intp]) -> Array:
        """G for some of the columns."""
        return self.G[np.ix_(columns, columns)]


class L1Solution(NamedTuple):
    """The minimiser of (1), its slope g, the bound (4), and statistics of the solver."""

    v: Array
    slope: Array
    value: float
    gap: float
    converged: bool
    sweeps: int
    rounds: int


def judged(v: Array, g: Array, quadratic: Quadratic, penalty: Penalty) -> tuple[float, float, Array]:
    """Return P(v), the bound (4), and the violation of each column's optimality condition."""
    from summula.optimize.solvers.l1_kernels import survey

    wrong = np.empty_like(v)
    value, gap = survey(v, g, quadratic.q, quadratic.c, *penalty, wrong)
    return value, gap, wrong


def minimise_l1(
    quadratic: Quadratic,
    penalty: Penalty,
    *,
    start: Array | None = None,
    hint: NDArray[np.intp] | None = None,
    tolerance: float = 1e-12,
    max_sweeps: int = 100_000,
    on_round: Callable[[L1Solution], bool] | None = None,
) -> L1Solution:
    """Minimise (1) until the gap (4) is `tolerance` times c/2 (or P, when that is smaller).

    Parameters
    ----------
    quadratic : Quadratic
    penalty : Penalty
    start : ndarray, optional
        Starting point.
    hint : ndarray of int, optional
        Columns that are likely to be active.
    tolerance, max_sweeps
        Stopping criteria.
    on_round : callable, optional
        Called with the best point so far whenever the working set is about to grow; True stops.

    Returns
    -------
    L1Solution
    """
    d = len(quadratic.q)
    v = np.zeros(d) if start is None else start.copy()
    used = np.flatnonzero(v)
    g = quadratic.slope(v, used) if len(used) else quadratic.q.copy()
    columns = used if hint is None else np.union1d(used, hint)
    sweeps, best = 0, np.inf
    target = tolerance * quadratic.c / 2
    for rounds in itertools.count():
        value, gap, wrong = judged(v, g, quadratic, penalty)
        here = L1Solution(v, g, value, gap, gap <= max(target, 1e-9 * value), sweeps, rounds)
        stuck = gap >= best and rounds > 1 and gap <= 1e-6 * value  # rounding
        enough = max(min(target, tolerance * 10 * value), _ROUNDING * quadratic.c)
        if gap <= enough or stuck or sweeps >= max_sweeps or rounds == _ROUNDS:
            break
        if rounds and on_round is not None and on_round(here):
            break
        best = min(best, gap)
        before = len(columns)
        columns = _enlarged(columns, wrong, len(used))
        inside = v[columns]
        # While the working set grows, a rough solution is enough.
        aim = max(target / 2, 0.1 * gap) if len(columns) > before else target / 2
        sweeps += _inside(quadratic, columns, inside, penalty, min(aim, value), max_sweeps - sweeps)
        v = np.zeros(d)
        v[columns] = inside
        used = columns[inside != 0]
        g = quadratic.slope(v, used)
    return here


def nothing(quadratic: Quadratic, penalty: Penalty) -> L1Solution:
    """Return the solution at v = 0."""
    v, g = np.zeros(len(quadratic.q)), quadratic.q.copy()
    value, gap, _ = judged(v, g, quadratic, penalty)
    return L1Solution(v, g, value, gap, False, 0, 0)


def _inside(
    quadratic: Quadratic, columns: NDArray[np.intp], v: Array, penalty: Penalty, target: float, max_sweeps: int
) -> int:
    """Minimise (1) on a working set in place, by sparse sweeps if they suffice, else with its block of G."""
    descend = getattr(quadratic, "descend", None) if getattr(quadratic, "sparse", False) else None
    sweeps = 0
    if descend is not None:
        sweeps, done = descend(columns, v, penalty, target, max_sweeps)
        if done or sweeps >= max_sweeps:
            return int(sweeps)
    G, q = quadratic.block(columns), quadratic.q[columns]
    return sweeps + solve_inside(G, q, v, penalty, quadratic.c, target, max_sweeps - sweeps)


def _enlarged(columns: NDArray[np.intp], wrong: Array, used: int) -> NDArray[np.intp]:
    """Return the working set extended by the worst violators, at most as many as are active."""
    capacity = max(_FIRST, used)
    wrong[columns] = 0.0
    new = np.flatnonzero(wrong)
    if len(new) > capacity:
        new = new[np.argpartition(-wrong[new], capacity)[:capacity]]
    return np.concatenate([columns, new])


@np.errstate(over="ignore", invalid="ignore")  # with weights of 1e160: the gap shows that nothing was found
def solve_inside(
    G: Array, q: Array, v: Array, penalty: Penalty, c: float, target: float, max_sweeps: int = 100_000
) -> int:
    """Minimise (1) on a working set in place until its gap (4) is at most `target`; return the number of sweeps."""
    from summula.optimize.solvers.l1_kernels import FaceScratch, face_steps, survey, sweep

    n = len(v)
    few = FaceScratch.of(n) if n <= _FEW else None
    g, wrong = q - G @ v, np.empty_like(v)
    least = 1e-15 * max(penalty.l1, float(np.abs(q).max(initial=0.0)))
    sweeps, since, before = 0, 0, None
    target = max(target, _ROUNDING / 2 * c)
    together = _SWEEPS if target < 1e-6 * c else _FEW_SWEEPS
    while sweeps < max_sweeps:
        check_watch()
        change = sweep(G, g, v, *penalty, together, least)
        sweeps += together
        if change <= least or survey(v, g, q, c, *penalty, wrong)[1] <= target:
            return sweeps
        if few is not None:
            face_steps(G, q, v, penalty.l1, penalty.l2, _CROSSINGS, _DEPENDENT, few)
            g = q - G @ v
            if survey(v, g, q, c, *penalty, wrong)[1] <= target:
                return sweeps
            continue
        # A linear system in S columns costs about as much as S^2 / (6 |set|) sweeps, and is solved after that many.
        signs = np.sign(v)
        used = int(np.count_nonzero(signs))
        settling = before is not None and np.array_equal(signs, before)
        since += together
        if used <= _SMALL or (since * 6 * n >= used**2 and (settling or since >= 10 * _SWEEPS)):
            newton_on_face(G, q, v, penalty, _CROSSINGS if used <= _SMALL else 3)
            g, since = q - G @ v, 0
            if survey(v, g, q, c, *penalty, wrong)[1] <= target:
                return sweeps
            signs = np.sign(v)
        before = signs
    return sweeps


def newton_on_face(G: Array, q: Array, v: Array, penalty: Penalty, crossings: int) -> bool:
    """Take steps (3) in place until no sign changes, at most `crossings`; return whether the minimiser was reached."""
    a, b, _ = penalty
    for _ in range(crossings):
        S = np.flatnonzero(v)
        if not len(S):
            return True
        H = G[np.ix_(S, S)]
        H.flat[:: len(S) + 1] += b
        here, signs = v[S], np.sign(v[S])
        with solving(len(S)):
            L, k = _independent(H)
        if whole := k == len(S):
            goal, _ = linalg.lapack.dpotrs(L, q[S] - a * signs, lower=1)
            step = goal - here
        elif len(S) > _SMALL:  # too many to remove one by one; sweeps are faster
            return False
        else:
            step = _free_direction(H, L, k)
            step = -step if signs @ step > 0 else step
        shrinks = step * here < 0
        share = np.divide(-here, step, out=np.full(len(S), np.inf), where=shrinks)
        t = float(share.min())
        if whole and t >= 1:
            v[S] = goal
            return True
        if t == np.inf:
            return False
        v[S] = np.where(share <= t, 0.0, here + t * step)
    return False


def _independent(H: Array) -> tuple[Array, int]:
    """Return a Cholesky factor and the number of leading columns that are independent, where the factor ends."""
    L, failed = linalg.lapack.dpotrf(H, lower=1)
    k = failed - 1 if failed else len(H)
    dependent = L.diagonal()[:k] ** 2 <= _DEPENDENT * H.diagonal()[:k]
    return L, int(dependent.argmax()) if dependent.any() else k


def _free_direction(H: Array, L: Array, k: int) -> Array:
    """Return n with H n = 0: column k as a combination of the columns before it."""
    n = np.zeros(len(H))
    n[k] = 1.0
    if k:
        n[:k] = -linalg.cho_solve((L[:k, :k], True), H[:k, k], check_finite=False)
    return n
