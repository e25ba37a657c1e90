"""How well a generalised linear model fits: deviance, Pearson's chi-squared, dispersion, likelihood.

    deviance  D = sum_i w_i d(y_i, mu_i)                                                                       (1)
    Pearson   chi2 = sum_i w_i (y_i - mu_i)^2 / V(mu_i),    dispersion = chi2 / (N - p)                        (2)

N is the sum of weights, p the rank. The deviance of an intercept alone follows from one number summed on the way: the
deviance is a Bregman divergence, so for any m

    sum_i w_i d(y_i, ybar) = sum_i w_i d(y_i, m) - W d(ybar, m)                                                (3)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.chunks import Chunk
from summula.core.estimator import Run
from summula.linear_model.glm_solver import GlmFit, GlmProblem
from summula.linear_model.glm_sums import At, linear_predictor
from summula.stats.exponential_family import Family
from summula.stats.links import Link

__all__ = ["Quality", "d2_of", "mean_of", "quality_of"]

Array = NDArray[Any]


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


def mean_of(family: Family, link: Link, eta: Array) -> Array:
    """mu at linear predictors, inside the range of the family's means."""
    return np.asarray(link.inverse(eta))


class _Point(NamedTuple):
    at: At
    family: Family
    link: Link
    pilot: float
    dispersion: float


@dataclass(frozen=True)
class _Fitted:
    """Sums over rows of (1), (2), what (3) needs, and the likelihood at a dispersion (NaN where it is not known)."""

    deviance: float
    pilot: float
    chi2: float
    likelihood: float
    count: int
    weight: float
    total: float

    @classmethod
    def map(cls, chunk: Chunk, params: _Point) -> Self:
        """The sums of one chunk."""
        at, family, link, pilot, dispersion = params
        assert chunk.y is not None
        y = chunk.y[:, 0].astype(np.float64)
        w = np.ones(len(y)) if chunk.weight is None else chunk.weight
        if not w.all():
            chunk = chunk.take(np.flatnonzero(w > 0))
            assert chunk.y is not None
            y, w = chunk.y[:, 0].astype(np.float64), w[w > 0]
        if not len(y):
            return cls(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0)
        with np.errstate(all="ignore"):
            mu = mean_of(family, link, linear_predictor(chunk, at)[:, 0])
            likelihood = np.nan
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
            )

    def merge(self, other: Self) -> Self:
        """The sums of both sets of rows."""
        return replace(self, **{name: value + getattr(other, name) for name, value in vars(self).items()})


def quality_of(run: Run, fit: GlmFit, problem: GlmProblem, family: Family, link: Link) -> Quality:
    """The quality of a fit on the rows of a run: one pass, or two where the dispersion is estimated first."""
    d = run.source.n_features
    origin = fit.origin
    coef, intercept = fit.coef[0], float(fit.intercept[0])
    lead = [intercept + float(origin @ coef)] if problem.intercept else []
    theta = np.concatenate([lead, coef])[:, None]
    at = At(problem.loss, origin, theta, problem.intercept, 1)
    pilot = _pilot(run, family)
    point = _Point(at, family, link, pilot, 1.0 if family.fixed_dispersion else np.nan)
    sums = run.sum(_Fitted, point, "deviance")
    # The rank of a penalised fit is that of the columns; they are few beside the rows, or the dispersion means little.
    p = fit.rank or d + int(problem.intercept)
    df = sums.weight - p
    with np.errstate(all="ignore"):
        dispersion = 1.0 if family.fixed_dispersion else (sums.chi2 / df if df > 0 else np.nan)
    null = _null(sums, pilot, family)
    likelihood = sums.likelihood
    if not family.fixed_dispersion and np.isfinite(dispersion) and dispersion > 0:
        likelihood = run.sum(_Fitted, point._replace(dispersion=dispersion), "likelihood").likelihood
    return Quality(sums.deviance, null, sums.chi2, dispersion, likelihood, sums.count, sums.weight, df)


def d2_of(run: Run, at: At, family: Family, link: Link) -> float:
    """1 - D / D_null on the rows of a run: the share of the deviance of the mean that a model explains."""
    pilot = _pilot(run, family)
    sums = run.sum(_Fitted, _Point(at, family, link, pilot, np.nan), "deviance")
    null = _null(sums, pilot, family)
    return float(1 - sums.deviance / null) if null > 0 else float("nan")


def _pilot(run: Run, family: Family) -> float:
    """A mean near that of the target, inside the family's range."""
    pilot = float(run.origin()[run.source.n_features])
    low, high = family.mean_range
    return pilot if low < pilot < high else min(max(1.0, low), high) / (1.0 + (high == 1.0))


def _null(sums: _Fitted, pilot: float, family: Family) -> float:
    """Equation (3)."""
    with np.errstate(all="ignore"):
        mean = np.array([sums.total / sums.weight])
        null = sums.pilot - sums.weight * float(family.unit_deviance(mean, np.array([pilot]))[0])
    return max(null, 0.0)
