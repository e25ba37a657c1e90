"""Goodness of fit of generalised linear models: deviance, Pearson's chi-squared, dispersion, likelihood.

    deviance  D = sum_i w_i d(y_i, mu_i)                                                                       (1)
    Pearson   chi2 = sum_i w_i (y_i - mu_i)^2 / V(mu_i),    dispersion = chi2 / (N - p)                        (2)

N is the sum of weights, p the rank. The null deviance is computed in the same pass: the deviance is a Bregman
divergence, so for any m

    sum_i w_i d(y_i, ybar) = sum_i w_i d(y_i, m) - W d(ybar, m)                                                (3)

With an offset the intercept-only model is fitted by Newton's method. For classes, with p_i the probability of the
observed class,

    D = -2 sum_i w_i log p_i,    chi2 = sum_i w_i (1 / p_i - 1),    D_null = -2 sum_k W_k log(W_k / W)         (4)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.sums import Sum
from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.glm.sums import At, linear_predictor, weighted_rows
from summula.losses import Multinomial
from summula.optimize.solvers.newton_method import Local, newton
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link

__all__ = ["Quality", "d2_of", "quality_of", "quality_of_classes"]

Array = NDArray[Any]


@schema.saved(
    deviance=schema.Real(finite=False),
    null_deviance=schema.Real(finite=False),
    pearson_chi2=schema.Real(finite=False),
    dispersion=schema.Real(finite=False),
    log_likelihood=schema.Real(finite=False),
    n_rows=schema.Integer(0),
    weight=schema.Real(finite=False),
    df=schema.Real(finite=False),
)
class Quality(NamedTuple):
    """The numbers (1) to (3) of a fit."""

    deviance: float
    null_deviance: float
    pearson_chi2: float
    dispersion: float
    log_likelihood: float
    n_rows: int
    weight: float
    df: float


# b of log p(y; mu, phi) = a(phi) + b log y - d(y, mu) / (2 phi), by family; the likelihood then needs no extra pass.
_LOG_POWER = {"normal": 0.0, "gamma": -1.0, "inverse_gaussian": -1.5}


class _Point(NamedTuple):
    at: At
    family: Family
    link: Link
    pilot: float
    dispersion: float


@dataclass(frozen=True)
class _Fitted(Sum):
    """Sums over rows for (1), (2) and (3), and the likelihood at a dispersion (None if it is unknown)."""

    deviance: float
    pilot: float
    chi2: float
    likelihood: float | None
    count: int
    weight: float
    total: float
    logs: float  # sum of log y, if needed

    @classmethod
    def map(cls, chunk: Chunk, params: _Point) -> Self:
        """The sums of one chunk."""
        at, family, link, pilot, dispersion = params
        y = chunk.target.astype(np.float64)
        w = chunk.weights
        if not w.all():
            chunk = chunk.take(np.flatnonzero(w > 0))
            y, w = chunk.target.astype(np.float64), w[w > 0]
        if not len(y):
            return cls(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0)
        with np.errstate(all="ignore"):
            mu = link.inverse(linear_predictor(chunk, at)[:, 0])
            likelihood = None
            if np.isfinite(dispersion):
                likelihood = float(family.log_likelihood(y, mu, dispersion, frequency=w))
            return cls(
                float(w @ family.unit_deviance(y, mu)),
                float(w @ family.unit_deviance(y, np.full(len(y), pilot))),
                float(w @ (np.square(y - mu) / family.unit_variance(mu))),
                likelihood,
                len(y),
                float(w.sum()),
                float(w @ y),
                float(w @ np.log(y)) if _LOG_POWER.get(family.name) else 0.0,
            )


def quality_of(run: Run, fit: GlmFit, problem: GlmProblem, family: Family, link: Link) -> Quality:
    """Compute the goodness of fit on the rows of a run, in one pass, or two if the dispersion is estimated first."""
    d = run.source.n_features
    pilot = _pilot(run, family)
    point = _Point(fit.at(problem), family, link, pilot, 1.0 if family.fixed_dispersion else np.nan)
    sums = run.sum(_Fitted, point, "deviance")
    # For a penalised fit the number of columns is used, which is assumed to be small relative to the number of rows.
    p = fit.rank or d + int(problem.intercept)
    df = sums.weight - p
    with np.errstate(all="ignore"):
        dispersion = 1.0 if family.fixed_dispersion else (sums.chi2 / df if df > 0 else np.nan)
    null = _null_with_offset(run, problem, link) if run.source.shifted else _null(sums, pilot, family)
    likelihood = sums.likelihood
    if not family.fixed_dispersion and np.isfinite(dispersion) and dispersion > 0:
        if family.name in _LOG_POWER:
            at_one = family.log_likelihood(np.ones(1), np.ones(1), dispersion)
            likelihood = sums.weight * at_one + _LOG_POWER[family.name] * sums.logs - sums.deviance / (2 * dispersion)
            return Quality(sums.deviance, null, sums.chi2, dispersion, likelihood, sums.count, sums.weight, df)
        likelihood = run.sum(_Fitted, point._replace(dispersion=dispersion), "likelihood").likelihood
    known = np.nan if likelihood is None else likelihood
    return Quality(sums.deviance, null, sums.chi2, dispersion, known, sums.count, sums.weight, df)


def _derivatives_of_level(loss: Any, level: float, chunk: Chunk) -> Array:
    """Half the deviance of an intercept with the offset, and its two derivatives (the second expected)."""
    if chunk.weight is not None:
        chunk = chunk.take(np.flatnonzero(chunk.weight > 0))
    w = chunk.weight
    with np.errstate(all="ignore"):
        rows = loss.derivatives(chunk.target.astype(np.float64), level + np.asarray(chunk.offset))
    return np.array([part.sum() if w is None else w @ part for part in rows])


def _null_with_offset(run: Run, problem: GlmProblem, link: Link) -> float:
    """Return the deviance of the intercept-only model with the offset."""

    def evaluate(x: Array, order: int) -> Local:
        derivatives = functools.partial(_derivatives_of_level, problem.loss, float(x[0]))
        value, slope, fisher = run.sum(FunctionSum, derivatives, "intercept alone").value
        return Local(float(value), np.array([slope]), np.array([[fisher]]))

    first = run.first_chunk()
    y, offset = float(run.origin()[-1]), float(np.mean(np.asarray(first.offset)))
    with np.errstate(all="ignore"):
        start = float(link.link(np.array([y]))[0]) - offset
    found = newton(evaluate, np.array([start if np.isfinite(start) else 0.0]), tolerance=1e-14, max_steps=50)
    return 2 * found.value if np.isfinite(found.value) else float("nan")


@dataclass(frozen=True)
class _Classified(Sum):
    """Sums over rows of (4)."""

    loss: float
    chi2: float
    totals: Array
    count: int

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """The sums of one chunk."""
        chunk, w = weighted_rows(chunk, params.class_weight)
        assert chunk.codes is not None
        w = np.ones(len(chunk)) if w is None else w
        eta, y = linear_predictor(chunk, params), chunk.target
        several = isinstance(params.loss, Multinomial)
        value = params.loss.value(y, eta if several else eta[:, 0])
        with np.errstate(over="ignore"):
            chi2 = float(w @ np.minimum(np.expm1(value), 1e300))
        totals = np.bincount(chunk.codes, weights=w, minlength=max(eta.shape[1], 2))
        return cls(float(w @ value), chi2, totals, len(w))


def quality_of_classes(run: Run, fit: GlmFit, problem: GlmProblem) -> Quality:
    """Compute (4) for a classifier on the rows of a run, in one pass."""
    sums = run.sum(_Classified, fit.at(problem), "deviance")
    weight = float(sums.totals.sum())
    present = sums.totals[sums.totals > 0]
    null = -2 * float(present @ np.log(present / weight))
    df = weight - max(problem.outputs - 1, 1) * (int(problem.intercept) + run.source.n_features)
    return Quality(2 * sums.loss, null, sums.chi2, 1.0, -sums.loss, sums.count, weight, df)


def d2_of(run: Run, at: At, family: Family, link: Link) -> float:
    """Return D2 = 1 - D / D_null on the rows of a run, the fraction of the null deviance explained by a model."""
    pilot = _pilot(run, family)
    sums = run.sum(_Fitted, _Point(at, family, link, pilot, np.nan), "deviance")
    null = _null(sums, pilot, family)
    return float(1 - sums.deviance / null) if null > 0 else float("nan")


def _pilot(run: Run, family: Family) -> float:
    """Return a value near the mean of the target, inside the family's range."""
    pilot = float(run.origin()[run.source.n_features])
    low, high = family.mean_range
    return pilot if low < pilot < high else min(max(1.0, low), high) / (1.0 + (high == 1.0))


def _null(sums: _Fitted, pilot: float, family: Family) -> float:
    """Equation (3)."""
    with np.errstate(all="ignore"):
        mean = np.array([sums.total / sums.weight])
        null = sums.pilot - sums.weight * float(family.unit_deviance(mean, np.array([pilot]))[0])
    return max(null, 0.0)
