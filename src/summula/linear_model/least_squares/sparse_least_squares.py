"""Least squares on wide sparse data: conjugate gradients on equation (2) of `least_squares/solver.py`.

Each step takes one pass over the data. No d x d matrix is formed and columns are not centred (except that columns far
from 0 are shifted to an origin near their mean): with total weight W, mean xbar and raw products,

    H v = X'W X v - W xbar (xbar'v) + alpha v,          diag H = sum w x^2 - W xbar^2 + alpha                    (1)

Ridge regression is solved with columns scaled by diag(H)^(1/2). So is plain least squares if columns differ widely in
size; otherwise it is solved without scaling, which gives the solution of minimum norm.
The final gradient g is computed from residuals; with alpha > 0,

    P(v) - min P <= ||g||^2 / alpha                                                                            (2)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.chunks import Chunk
from summula.core.errors import warn
from summula.core.numerics.sums import Sum
from summula.linear_model.least_squares.problem import (
    Fit,
    Problem,
    Residuals,
    centred_slope,
    residual_noise,
    residual_pass,
)
from summula.optimize.solvers.quadratic import minimise_quadratic

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["ColumnSums", "NormalProduct", "solve_sparse", "sparse_gap"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SIMILAR = 1e3  # columns whose norms differ by less are not scaled in plain least squares
_ROUNDS = 3  # restarts from the true gradient
_MAX_STEPS = 5_000


@dataclass(frozen=True)
class ColumnSums(Sum):
    """Sums over sparse rows: weight, and for each column total, squares and products with the shifted targets."""

    count: int
    weight: float
    log_weight: float
    total: Array
    square: Array
    cross: Array
    y_total: Array
    y_square: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Array) -> Self:
        """The sums of one chunk about the origin `params`."""
        from summula.core.numerics.statistics import weight_sums
        from summula.linear_model.least_squares.sparse_kernels import column_sums

        X = chunk.rows.about(params[: chunk.n_features])
        assert chunk.y is not None
        Y = np.ascontiguousarray(chunk.y - params[chunk.n_features :])
        w = np.empty(0) if chunk.weight is None else chunk.weight
        sums = np.zeros((X.shape[1], 2 + Y.shape[1]))
        column_sums(X.indptr, X.indices, X.data, w, Y, sums)
        Yw = Y if chunk.weight is None else Y * w[:, None]
        total, square, cross = sums[:, 0].copy(), sums[:, 1].copy(), sums[:, 2:].copy()
        return cls(*weight_sums(chunk), total, square, cross, Yw.sum(axis=0), (Yw * Y).sum(axis=0))


@dataclass(frozen=True)
class NormalProduct(Sum):
    """The product X'W X v."""

    value: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Array, Array]) -> Self:
        """Return the product of one chunk, about an origin, with a vector."""
        from summula.linear_model.least_squares.sparse_kernels import normal_product

        origin, v = params
        X, out = chunk.rows.about(origin), np.zeros(len(v))
        normal_product(X.indptr, X.indices, X.data, np.empty(0) if chunk.weight is None else chunk.weight, v, out)
        return cls(out)


def solve_sparse(run: Run, problem: Problem, offer: Callable[[Fit], None]) -> Fit:
    """Solve by conjugate gradients, restarted from the true gradient until it is small."""
    d, t = run.source.n_features, run.source.n_targets
    origin = run.origin() if problem.fit_intercept else np.zeros(d + t)
    sums = run.sum(ColumnSums, origin, "column sums")
    mean = sums.total / sums.weight if problem.fit_intercept else np.zeros(d)
    y_mean = sums.y_total / sums.weight if problem.fit_intercept else np.zeros(t)
    fit = Fit(
        coef=np.zeros((d, t)),
        mean_x=origin[:d] + mean,
        mean_y=origin[d:] + y_mean,
        rss=np.zeros(t),
        tss=sums.y_square - sums.weight * y_mean**2,
        gap=np.zeros(t),
        count=sums.count,
        weight=sums.weight,
        log_weight=sums.log_weight,
        half_inverse=None,
        rank=d,
        dependent=np.empty(0, np.intp),
        undetermined=np.empty(0, np.intp),
        method="lbfgs" if problem.positive else "sparse_cg",
        n_iter=0,
        origin=origin,
        drift=np.concatenate([mean, y_mean]),
    )
    spread = np.maximum(sums.square - sums.weight * mean**2, 0.0)
    right = sums.cross - sums.weight * np.outer(mean, y_mean)
    solver = _Solver(run, problem, mean, sums.weight, spread, fit, offer, origin)
    if problem.positive:
        return solver.nonnegative(right)
    return solver.descend(right)


@dataclass
class _Solver:
    run: Run
    problem: Problem
    mean: Array
    weight: float
    spread: Array
    fit: Fit
    offer: Callable[[Fit], None]
    origin: Array

    def product(self, v: Array, alpha: float) -> Array:
        """Return H v of equation (1)."""
        raw = self.run.sum(NormalProduct, (self.origin[: len(v)], v), "product").value
        return raw - self.weight * self.mean * float(self.mean @ v) + alpha * v

    def scale(self, alpha: float) -> Array:
        """Return the diagonal of H, or ones if plain least squares is solved without scaling."""
        diagonal = self.spread + alpha
        positive = diagonal > 1e-14 * diagonal.max(initial=0.0)
        lengths = np.sqrt(diagonal[positive])
        if alpha == 0 and len(lengths) and lengths.max() < _SIMILAR * lengths.min():
            return np.ones_like(diagonal)
        return np.where(positive, diagonal, 1.0)

    def tolerance(self) -> float:
        """Return the relative gradient at which to stop, proportional to `tol`: 1e-10 at its default."""
        default = 1e-4 if self.problem.alpha.any() or hasattr(self.run.estimator, "alpha") else 1e-6
        return max(1e-10 * float(getattr(self.run.estimator, "tol", default)) / default, 1e-14)

    def descend(self, right: Array) -> Fit:
        """Run conjugate gradients for each target, restarting from the true gradient while it is not small."""
        tolerance, most = self.tolerance(), getattr(self.run.estimator, "max_iter", None) or _MAX_STEPS
        fit, slope, steps = self.fit, right, 0
        trace: list[float] = []
        size = [self._size(right[:, j], j) for j in range(right.shape[1])]
        for _ in range(_ROUNDS):
            coef, done = fit.coef.copy(), True
            primal = (fit.tss if fit.n_iter == 0 else fit.rss) + self.problem.alpha * (coef**2).sum(axis=0)
            for j, alpha in enumerate(self.problem.alpha):
                now = self._size(slope[:, j], j)
                if size[j] == 0 or now <= tolerance * size[j]:
                    continue
                one = minimise_quadratic(
                    functools.partial(self.product, alpha=float(alpha)),
                    slope[:, j],
                    scale=self.scale(float(alpha)),
                    tolerance=tolerance * size[j] / now,
                    max_steps=max(most - steps, 1),
                    on_step=self._on_step(fit, coef, slope, primal, trace, j),
                )
                coef[:, j] += one.x
                primal[j] += 2 * one.value
                steps, done = steps + one.n_steps, False
                trace.extend(one.trace)
            if done:
                break
            fit = replace(fit, coef=coef, n_iter=steps, trace=tuple(trace))
            fit, slope = self._judged(fit)
            if steps >= most:
                break
        now = max((self._size(slope[:, j], j) / size[j] for j in range(len(size)) if size[j]), default=0.0)
        if now > 1e4 * tolerance:
            self._warn(fit, now, tolerance, most)
        rounded = self.problem.as_returned(fit.coef)
        return fit if rounded is fit.coef else self._judged(replace(fit, coef=rounded))[0]

    def _size(self, g: Array, j: int) -> float:
        return float(np.sqrt((g * g / self.scale(float(self.problem.alpha[j]))).sum()))

    def _on_step(
        self, fit: Fit, coef: Array, slope: Array, primal: Array, trace: list[float], j: int
    ) -> Callable[[Array, Array], bool]:
        """Return a callback that offers each iterate: P(v + x) = P(v) - x'(b + r), with b and r the gradients."""
        b, alpha = slope[:, j], self.problem.alpha
        gaps, start, taken = _gaps(slope, coef, self.problem), self._size(b, j), list(trace)

        def step(x: Array, r: Array) -> bool:
            best, now, gap = coef.copy(), primal.copy(), gaps.copy()
            best[:, j] += x
            now[j] -= float(x @ (b + r))
            gap[j] = _gaps(r[:, None], best[:, [j]], self.problem._replace(alpha=alpha[[j]]))[0]
            taken.append(self._size(r, j) / start)
            rss = now - alpha * (best**2).sum(axis=0)
            self.offer(replace(fit, coef=best, rss=rss, gap=gap, n_iter=len(taken), trace=tuple(taken)))
            return self.run.step()

        return step

    def _judged(self, fit: Fit) -> tuple[Fit, Array]:
        """Return residual sum of squares, gradient and gap at a point, from its residuals."""
        residuals = residual_pass(self.run, fit)
        centre = residuals.total**2 / residuals.weight if self.problem.fit_intercept else 0.0
        slope = centred_slope(residuals, self.mean, self.problem) - self.problem.alpha * fit.coef
        gap = _gaps(slope, fit.coef, self.problem)
        rss = np.asarray(residuals.squares - centre)
        norms = np.sqrt(self.spread + self.weight * self.mean**2)
        assert fit.drift is not None
        target = np.sqrt(fit.tss + self.weight * fit.drift[len(fit.coef) :] ** 2)
        noise = residual_noise(rss, target + norms @ np.abs(fit.coef), _EPS)
        return replace(fit, rss=rss, gap=gap, noise=noise), slope

    def nonnegative(self, right: Array) -> Fit:
        """Minimise over v >= 0 by L-BFGS-B for each target, in scaled columns."""
        from scipy.optimize import minimize

        coef, steps = np.zeros_like(right), 0
        for j, alpha in enumerate(self.problem.alpha):
            root = np.sqrt(np.where(self.spread + alpha > 0, self.spread + alpha, 1.0))

            def objective(z: Array, j: int = j, alpha: float = float(alpha), root: Array = root) -> tuple[float, Array]:
                v = z / root
                Hv = self.product(v, alpha)
                self.run.step()
                return 0.5 * float(v @ Hv) - float(v @ right[:, j]), (Hv - right[:, j]) / root

            most = getattr(self.run.estimator, "max_iter", None) or _MAX_STEPS
            options = {"maxiter": most, "maxfun": 2 * most, "ftol": 1e-15, "gtol": 1e-12}
            bounds = [(0.0, None)] * len(root)
            answer = minimize(
                objective, np.zeros(len(root)), jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            coef[:, j], steps = answer.x / root, steps + int(answer.nit)
        fit, _ = self._judged(replace(self.fit, coef=self.problem.as_returned(coef), n_iter=steps))
        return fit

    def _warn(self, fit: Fit, now: float, tolerance: float, most: int) -> None:
        warn(
            f"{type(self.run.estimator).__name__} stopped after {fit.n_iter} steps with a relative gradient of "
            f"{now:.1e} (tolerance {tolerance:.1e}), at most {fit.gap.sum():.3g} above the best objective; "
            f"increase max_iter ({most}), or use Ridge with a larger alpha.",
            ConvergenceWarning,
        )


def _gaps(slope: Array, coef: Array, problem: Problem) -> Array:
    """Return the bound (2) for each target; with v >= 0, multipliers m/2 = max(-g, 0) absorb negative gradients."""
    multiplier = np.maximum(-slope, 0.0) if problem.positive else np.zeros_like(slope)
    rest = ((slope + multiplier) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2 * (multiplier * coef).sum(axis=0) + np.where(rest > 0, rest / problem.alpha, 0.0))


def sparse_gap(problem: Problem, residuals: Residuals, mean: Array, coef: Array) -> float:
    """Equation (2) at a point, from the sums of its residuals; infinite without a penalty."""
    slope = centred_slope(residuals, mean, problem) - problem.alpha * coef
    return float(_gaps(slope, coef, problem).sum())
