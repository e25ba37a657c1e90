"""Maximum likelihood of factor analysis: Newton's method on the logarithms of the noise variances.

    x = mu + L'z + e,     z ~ N(0, I_k),   e ~ N(0, Psi),   Psi diagonal,      Sigma = L'L + Psi                 (1)

For given Psi the likelihood is maximised by the loadings (theta and u of `spread.py`, kept: m <= k with theta_m > 1)

    l_m = Psi^1/2 u_m (theta_m - 1)^1/2                                                                         (2)

and the profile likelihood depends on x = log psi only: -2/n times the log-likelihood is

    F(x) = d log 2 pi + sum_j x_j + tr S* + sum_kept (log theta_m + 1 - theta_m)                                (3)
    g    = sum_m not kept (1 - theta_m) u_m o u_m                                  (o: entry by entry)           (4)
    H    = (U2 Theta2 U2') o (U2 U2') + sum_(l kept) u_l u_l' o (U2 diag[(1 - theta_m)(theta_l + theta_m)
           / (theta_l - theta_m)] U2')                                             (2: not kept)                 (5)

The first term of (5), positive semidefinite as a product of such matrices, is the Hessian if the model is exact; it is
used if the sum is indefinite. A noise variance may tend to 0 (a Heywood case): psi_j >= lower s_jj keeps the problem
bounded. For many columns limited-memory BFGS replaces Newton's method, which needs leading eigenvectors only.
References: Jöreskog (1967), Psychometrika 32; Clarke (1970), British J. of Math. and Statistical Psychology 23.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from summula.decomposition.factors.spread import Eigen, Spread
from summula.optimize.solvers.newton_method import Bounds, Local, newton

__all__ = ["FactorFit", "loadings_at", "maximize", "start", "value_and_slope"]

Array = NDArray[np.float64]

NEWTON_COLUMNS = 400  # number of columns above which (5) is too expensive
_POLISH = 1e-4  # fraction of the tolerance at which Newton's method stops: its last step is cheap
_REPEATS = 3  # number of consecutive steps without progress after which the remaining decrease is rounding
_ROUNDING = 1e-13  # rounding error of (3)
_NOTHING = 1e-10  # remaining decrease of (3) in that case
_SINKING = 1e-3  # relative noise variance below which a decreasing one may tend to 0
_HALF = 0.5  # default relative noise variance


# Called with noise variances and the log-likelihoods so far; True stops.
OnStep = Callable[[Array, tuple[float, ...]], bool]


class FactorFit(NamedTuple):
    """Noise variances of standardised columns, their loadings as rows, and solver statistics.

    `trace` contains the log-likelihood of the original columns after every step.
    """

    psi: Array
    loadings: Array
    trace: tuple[float, ...]
    n_iter: int
    converged: bool


def start(spread: Spread, k: int) -> Array:
    """Return starting values: (1 - k/2d) / (S^-1)_jj (Jöreskog), or half of the variance if S is singular."""
    d = spread.size
    if spread.matrix is not None:
        try:
            factor = linalg.cho_factor(spread.matrix, check_finite=False)
            inverse = np.diag(linalg.cho_solve(factor, np.eye(d), check_finite=False))
        except linalg.LinAlgError:
            return np.full(d, _HALF)
        return np.clip((1 - k / (2 * max(d, 1))) / inverse, 0.0, 1.0)
    return np.full(d, _HALF)


def _kept(eigen: Eigen, k: int) -> int:
    return int((eigen.values[:k] > 1).sum())


def value_and_slope(eigen: Eigen, x: Array, k: int) -> tuple[float, Array]:
    """Return (3) without its constant, and (4), from the leading eigenvectors; tr S* = sum_j 1/psi_j."""
    kept = _kept(eigen, k)
    theta, U = eigen.values[:kept], eigen.vectors[:, :kept]
    diagonal = np.exp(-x)
    value = x.sum() + diagonal.sum() + (np.log(theta) + 1 - theta).sum()
    return float(value), 1.0 - diagonal + U**2 @ (theta - 1)


def _hessian(eigen: Eigen, k: int) -> Array:
    """Return (5), or its first term if the sum is not positive definite."""
    kept = _kept(eigen, k)
    theta, rest = eigen.values[:kept], eigen.values[kept:]
    U, V = eigen.vectors[:, :kept], eigen.vectors[:, kept:]
    first = ((V * rest) @ V.T) * (V @ V.T)
    whole = first.copy()
    with np.errstate(divide="ignore", invalid="ignore"):  # equal eigenvalues, one kept and one not: no derivative
        for t, u in zip(theta, U.T, strict=True):
            whole += np.outer(u, u) * ((V * ((1 - rest) * (t + rest) / (t - rest))) @ V.T)
    if not np.isfinite(whole).all():
        return np.asarray(first)
    try:
        np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return np.asarray(first)
    return np.asarray(whole)


def loadings_at(spread: Spread, psi: Array, k: int) -> Array:
    """Return (2) as rows; zero for factors that are not kept."""
    eigen = spread.eigen(psi, k)
    length = np.sqrt(np.maximum(eigen.values[:k] - 1, 0.0))
    found = np.zeros((k, spread.size))
    found[: len(length)] = length[:, None] * eigen.vectors[:, :k].T * np.sqrt(psi)
    return found


def maximize(
    spread: Spread, k: int, psi: Array, *, lower: float, tol: float, max_iter: int, on_step: OnStep
) -> FactorFit:
    """Minimise (3) from noise variances psi.

    Parameters
    ----------
    spread : Spread
    k : int
        Number of factors.
    psi : ndarray of shape (d,)
        Initial noise variances of standardised columns.
    lower : float
        Smallest noise variance.
    tol : float
        Tolerance for the remaining increase of the log-likelihood.
    max_iter : int
    on_step : callable
        Called at every step with the noise variances and the log-likelihoods so far; True stops.
    """
    x = np.log(np.clip(psi, lower, None))
    if not len(x):
        return FactorFit(np.empty(0), np.empty((k, 0)), (0.0,), 1, True)
    method = _newton if spread.size <= NEWTON_COLUMNS and spread.matrix is not None else _lbfgs
    constant = spread.size * np.log(2 * np.pi) + np.log(spread.variance[spread.varies]).sum()

    def log_likelihoods(values: list[float]) -> tuple[float, ...]:
        return tuple(-spread.weight / 2 * (value + constant) for value in values)

    def step(x: Array, values: list[float]) -> bool:
        return on_step(np.exp(x), log_likelihoods(values))

    x, values, n_iter, converged = method(spread, k, x, lower, tol, max_iter, step)
    psi = np.exp(x)
    return FactorFit(psi, loadings_at(spread, psi, k), log_likelihoods(values), max(n_iter, 1), converged)


Found = tuple[Array, list[float], int, bool]
Step = Callable[[Array, list[float]], bool]


class _Search:
    """State of Newton's method on (3): values so far, and noise variances that tend to 0.

    The logarithms of these change by about -1 per step; they are moved to their bound at once, if that is better.
    """

    def __init__(self, spread: Spread, k: int, tol: float, on_step: Step) -> None:
        self.spread, self.k, self.tol, self.on_step = spread, k, tol, on_step
        self.values: list[float] = []
        self.tried = np.zeros(spread.size, np.bool_)
        self.base, self.least, self.repeats, self.stopped = 0.0, np.inf, 0, False

    def evaluate(self, x: Array, order: int) -> Local:
        """Evaluate (3), shifted since values are compared relative to their size, with (4) and (5)."""
        eigen = self.spread.eigen(np.exp(x), None)
        value, slope = value_and_slope(eigen, x, self.k)
        return Local(value - self.base + len(x), slope, _hessian(eigen, self.k) if order == 2 else None)

    def note(self, here: Local) -> None:
        """Record a value if it is lower than the last by more than rounding."""
        value = here.value + self.base - len(here.gradient)
        if not self.values or value < self.values[-1] - _ROUNDING * (len(here.gradient) + abs(value)):
            self.values.append(value)

    def step(self, x: Array, here: Local, decrement: float) -> bool:
        """Return whether to stop: the remaining decrease is small, or rounding, or a noise variance tends to 0."""
        self.note(here)
        self.repeats = self.repeats + 1 if decrement > self.least / 4 else 0
        self.least = min(self.least, decrement)
        self.stopped = self.on_step(x, self.values)
        is_done = self.spread.weight / 2 * decrement <= _POLISH * self.tol
        at_rounding = self.repeats >= _REPEATS and decrement <= _NOTHING
        return self.stopped or is_done or at_rounding or bool(self.sinking(x, here.gradient).any())

    def sinking(self, x: Array, slope: Array) -> NDArray[np.bool_]:
        """Return the noise variances that are small and decreasing, and were not yet moved to their bound."""
        return np.asarray((x < np.log(_SINKING)) & (slope > 0) & ~self.tried)


def _newton(spread: Spread, k: int, x: Array, lower: float, tol: float, max_iter: int, on_step: Step) -> Found:
    """Minimise by Newton's method within the bounds."""
    search = _Search(spread, k, tol, on_step)
    search.base = search.evaluate(x, 1).value - len(x)
    low, high, steps = np.full(len(x), np.log(lower)), np.full(len(x), np.inf), 0
    while True:
        left = max(max_iter - steps, 0)
        solution = newton(
            search.evaluate,
            x,
            tolerance=1e-28,
            max_steps=left,
            bounds=Bounds(low, high),
            chord=0.0,
            on_step=search.step,
        )
        x, steps, here = solution.x, steps + solution.n_steps, search.evaluate(solution.x, 1)
        search.note(here)
        sinking = search.sinking(x, here.gradient)
        if search.stopped or solution.status == "max_iter" or not sinking.any():
            break
        search.tried |= sinking
        there = np.where(sinking, low, x)
        if search.evaluate(there, 1).value < here.value:
            x, high = there, np.where(sinking, low, high)
    is_done = solution.status != "max_iter" or spread.weight / 2 * solution.gap <= tol
    return x, search.values, len(search.values), bool(is_done)


def _lbfgs(spread: Spread, k: int, x: Array, lower: float, tol: float, max_iter: int, on_step: Step) -> Found:
    """Minimise by limited-memory BFGS within the bounds, until a step gains less than the tolerance."""
    values: list[float] = []

    def evaluate(x: Array) -> tuple[float, Array]:
        return value_and_slope(spread.eigen(np.exp(x), k), x, k)

    def after(intermediate_result: optimize.OptimizeResult) -> None:
        value = float(intermediate_result.fun)
        gained = values[-1] - value if values else np.inf
        if not values or gained > 0:
            values.append(value)
        if on_step(intermediate_result.x, values) or spread.weight / 2 * gained <= tol:
            raise StopIteration

    found = optimize.minimize(
        evaluate,
        x,
        jac=True,
        method="L-BFGS-B",
        bounds=[(np.log(lower), None)] * len(x),
        callback=after,
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 1e-15, "gtol": 1e-10},
    )
    return found.x, values or [float(found.fun)], max(int(found.nit), 1), int(found.nit) < max_iter
