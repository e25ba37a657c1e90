"""Standard errors of least squares, from the factor stored by the fit.

With centred rows xc = x - xbar, F F' = (Xc'W Xc)^+ and total weight W, the coordinates u = (1/sqrt(W), F'xc) make the
design orthonormal; intercept and slopes are T gamma with

    T = [ 1/sqrt(W)   -xbar'F ]         Cov(b, v) = T K T'                                                     (1)
        [     0           F   ]

    classical   K = sigma^2 I,   sigma^2 = RSS / (N - p)                                                       (2)
    cluster, HAC: `dependent_rows`
    HC0..HC3    K = c sum_i m_i u_i u_i',   m_i = r_i^2 / (1 - h_i)^k,   h_i = u_i'u_i                          (3)
                HC0: c = 1, k = 0.  HC1: c = N/(N - p), k = 0.  HC2: k = 1.  HC3: k = 2.

Weights as frequencies (a weight of 3 repeats the row three times): N = W and m_i counts w_i times. As precisions
(variance sigma^2 / w_i): N is the number of rows, r_i and u_i are multiplied by sqrt(w_i).
References: White (1980); MacKinnon and White (1985); Greene, Econometric Analysis, ch. 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.core.numerics.sums import Sum
from summula.linear_model.least_squares.dependent_rows import (
    GroupMeat,
    Scores,
    SeriesMeat,
    blocks_of_targets,
    coordinates_of,
    default_lags,
)
from summula.linear_model.least_squares.problem import Fit
from summula.stats.summary import Summary

__all__ = [
    "COVARIANCES",
    "WEIGHTS",
    "Meat",
    "Names",
    "SummaryOptions",
    "standard_errors",
    "summarise",
    "whole",
    "with_interval",
]

Array = NDArray[np.float64]

# and the exponent k of (3)
COVARIANCES = {"classical": 0, "HC0": 0, "HC1": 0, "HC2": 1, "HC3": 2, "cluster": 0, "HAC": 0}
WEIGHTS = ("frequency", "precision")


@dataclass(frozen=True)
class Meat(Sum):
    """The sum in (3), one matrix per target, and the residual sum of squares, to check that the rows are the same."""

    meat: Array
    squares: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Fit, bool, int, bool]) -> Self:
        """Return the sums of a chunk; `params`: fit, intercept, exponent k, and whether weights are precisions."""
        fit, intercept, power, precision = params
        w = chunk.weights
        u, residual = coordinates_of(chunk, fit, intercept)
        leverage = (u * u).sum(axis=1) * (w if precision else 1.0)
        # The residual of a row with leverage 1 is always 0, so it contributes nothing to K.
        complement = np.where(leverage < 1 - 1e-10, 1 - leverage, np.inf)
        share = (w**2 if precision else w)[:, None] * residual**2 / complement[:, None] ** power
        meat = np.stack([(u * m[:, None]).T @ u for m in share.T])
        return cls(meat, (w[:, None] * residual**2).sum(axis=0))


def with_interval(predict: Callable[[Chunk], Array], fit: Fit, intercept: bool, half: float, chunk: Chunk) -> Array:
    """Predictions of the rows of a chunk with the ends of their intervals; `half` is t s."""
    assert fit.half_inverse is not None
    X = chunk.block(np.float64, fit.mean_x)
    u = product(X, fit.half_inverse)
    leverage = (u * u).sum(axis=1) + (1 / fit.weight if intercept else 0.0)
    centre = np.asarray(predict(chunk), np.float64).reshape(len(chunk))
    away = half * np.sqrt(1 + leverage)
    return np.column_stack([centre, centre - away, centre + away])


class SummaryOptions(NamedTuple):
    """Options of standard errors; `lags` are those of HAC, None for the rule of thumb."""

    cov: str = "classical"
    weights: str = "frequency"
    level: float = 0.95
    lags: int | None = None


@dataclass(frozen=True)
class Names:
    """Names in the coefficient table."""

    model: str
    terms: tuple[str, ...]
    targets: tuple[str, ...]
    frame_library: str | None


def summarise(
    fit: Fit,
    names: Names,
    *,
    intercept: bool,
    weighted: bool,
    options: SummaryOptions,
    run: Run | None = None,
    basis: Array | None = None,
) -> Summary:
    """Return the coefficient table of an unpenalised fit.

    `run` reads the training rows with their groups (needed for all but classical errors); `basis` maps (intercept,
    slopes) of the fitted columns to the reported ones, if they differ.
    """
    assert fit.half_inverse is not None
    _, weights, level, _ = options
    N = fit.weight if weights == "frequency" else float(fit.count)
    p = fit.rank + int(intercept)
    df = N - p
    if weighted and weights == "frequency" and df <= 0 < fit.count - p:
        raise DataError(
            f"The weights sum to {fit.weight:g}, too few rows for {p} terms if they are frequencies; "
            'if they are precisions, use summary(weights="precision").'
        )
    T = _coordinates(fit, intercept)
    beta = np.vstack([fit.intercept, fit.coef]) if intercept else fit.coef
    if basis is not None:
        B = basis if intercept else basis[1:, 1:]
        T, beta = (np.asarray(B @ part.astype(B.dtype), dtype=np.float64) for part in (T, beta))
    K, groups = _middle(fit, intercept, options, N, df, run)
    df_t = df if groups is None else groups - 1  # the independent units are the groups
    error = np.stack([standard_errors(T, k, sigma) for k, sigma in zip(K, _sigma(fit, df), strict=True)], axis=1)
    if df <= 0:
        error = np.full_like(error, np.nan)
    error[_undetermined_rows(fit, intercept, basis, len(error))] = np.nan
    t = len(fit.rss)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = beta / error
        # For an exact fit the errors are 0, and 0/0 for a zero coefficient is NaN.
        p_value = 2 * special.stdtr(max(df_t, 1), -np.abs(statistic))
    half = -special.stdtrit(max(df_t, 1), (1 - level) / 2) * error  # the upper quantile would round to 1
    terms = (("intercept",) if intercept else ()) + names.terms
    many = t > 1
    return Summary(
        title=f"{names.model}: {fit.count} rows, {len(names.terms)} columns",
        terms=terms * t,
        targets=tuple(target for target in names.targets for _ in terms) if many else None,
        estimate=beta.T.ravel(),
        std_error=error.T.ravel(),
        statistic=statistic.T.ravel(),
        p_value=p_value.T.ravel(),
        ci_low=(beta - half).T.ravel(),
        ci_high=(beta + half).T.ravel(),
        facts={
            **_facts(fit, intercept, N, p, (df, df_t), K, options if weighted else options._replace(weights="none")),
            **({} if groups is None else {"groups": groups}),
        },
        notes=_notes(fit, options, weighted, df_t, names),
        level=level,
        frame_library=names.frame_library,
    )


def _coordinates(fit: Fit, intercept: bool) -> Array:
    """Return T of equation (1)."""
    F = fit.half_inverse
    assert F is not None
    if not intercept:
        return F
    T = np.zeros((1 + F.shape[0], 1 + F.shape[1]))
    T[0, 0] = fit.weight**-0.5
    T[0, 1:] = -fit.mean_x @ F
    T[1:, 1:] = F
    return T


def _sigma(fit: Fit, df: float) -> Array:
    return np.sqrt(fit.rss / df) if df > 0 else np.full(len(fit.rss), np.nan)


def standard_errors(T: Array, k: Array | None, sigma: float) -> Array:
    """Return the square roots of the diagonal of T K T'; K is sigma^2 I if it is None."""
    largest = np.abs(T).max(axis=1, initial=0.0)
    size = np.where(largest > 0, largest, 1.0)  # factored out so that squares do not overflow or underflow
    unit = T / size[:, None]
    if k is None:
        return np.asarray(sigma * size * np.sqrt((unit * unit).sum(axis=1)))
    return np.asarray(size * np.sqrt(np.maximum(((unit @ k) * unit).sum(axis=1), 0.0)))


def _middle(
    fit: Fit, intercept: bool, options: SummaryOptions, N: float, df: float, run: Run | None
) -> tuple[list[Any], int | None]:
    """Return K of (2) or (3), one per target, where None means sigma^2 I, and the number of groups, if any."""
    cov, weights, _, lags = options
    if cov == "classical" or df <= 0:
        return [None] * len(fit.rss), None
    assert run is not None
    scores = Scores(fit, intercept, default_lags(run.source.n_rows) if lags is None else lags)
    statistic: Any = {"cluster": GroupMeat, "HAC": SeriesMeat}.get(cov, Meat)
    usual = (fit, intercept, COVARIANCES[cov], weights == "precision")
    found = run.sum(statistic, usual if statistic is Meat else scores, "robust covariance")
    if not np.allclose(found.squares, fit.rss, rtol=1e-5, atol=1e-9 * float(fit.tss.max(initial=0.0))):
        raise DataError(
            "These are not the rows the model was fitted on: the residual sum of squares differs; "
            f'pass the training data: summary(X, y, cov="{cov}").'
        )
    if cov == "HAC":
        return blocks_of_targets(found.weighted(), len(fit.rss)), None
    if cov == "cluster":
        G, totals = len(found.totals.groups), found.totals.totals
        if G < 2:
            raise DataError(f'cov="cluster" needs at least 2 groups; got {G}.')
        return blocks_of_targets(G / (G - 1) * (N - 1) / df * (totals.T @ totals), len(fit.rss)), G
    return list(found.meat * (N / df if cov == "HC1" else 1.0)), None


def _undetermined_rows(fit: Fit, intercept: bool, basis: Array | None, n: int) -> NDArray[np.bool_]:
    """Return a mask of the terms that the data do not determine."""
    rows = np.zeros(n, bool)
    if len(fit.undetermined):
        rows[fit.undetermined + int(intercept)] = True
        rows[0] |= intercept and fit.intercept_free
        if basis is not None:
            rows = (np.abs(basis if intercept else basis[1:, 1:]) @ rows) > 0
    return rows


def _facts(
    fit: Fit, intercept: bool, N: float, p: int, dfs: tuple[float, float], K: list[Any], options: SummaryOptions
) -> dict[str, Any]:
    df, df_t = dfs
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(fit.tss > 0, 1 - fit.rss / fit.tss, np.nan)
        adjusted = 1 - (1 - r2) * (N - int(intercept)) / df if df > 0 else np.full_like(r2, np.nan)
        slopes = p - int(intercept)
        f = _f_statistic(fit, intercept, slopes, df, K)
        log_likelihood = -N / 2 * (np.log(2 * np.pi * fit.rss / N) + 1)
        if options.weights == "precision":
            log_likelihood = log_likelihood + fit.log_weight / 2
    facts = {
        "n": fit.count,
        "df_residual": whole(df),
        "r2": r2,
        "adjusted_r2": adjusted,
        "residual_sd": _sigma(fit, df),
        "f_statistic": f,
        "f_p_value": special.fdtrc(slopes, df_t, f) if slopes and df > 0 else np.full_like(r2, np.nan),
        "log_likelihood": log_likelihood,
        "aic": -2 * log_likelihood + 2 * p,
        "bic": -2 * log_likelihood + np.log(N) * p,
        "covariance": options.cov,
        "weights": options.weights,
    }
    one_target = len(fit.rss) == 1
    return {k: v.item() if isinstance(v, np.ndarray) and one_target else v for k, v in facts.items()}


def _f_statistic(fit: Fit, intercept: bool, slopes: int, df: float, K: list[Any]) -> Array:
    """Return the Wald test statistic that all slopes are 0, in the orthonormal coordinates."""
    F, first = fit.half_inverse, int(intercept)
    assert F is not None
    if not slopes or df <= 0:
        return np.full(len(fit.rss), np.nan)
    values = []
    for j, (k, sigma) in enumerate(zip(K, _sigma(fit, df), strict=True)):
        if k is None:
            values.append((fit.tss[j] - fit.rss[j]) / slopes / sigma**2)
            continue
        gamma = np.linalg.lstsq(F, fit.coef[:, j], rcond=None)[0]
        values.append(float(gamma @ np.linalg.lstsq(k[first:, first:], gamma, rcond=None)[0]) / slopes)
    return np.asarray(values)


def whole(value: float) -> float | int:
    """Return a count as an int if it is an integer."""
    return int(value) if float(value).is_integer() else value


def _notes(fit: Fit, options: SummaryOptions, weighted: bool, df: float, names: Names) -> tuple[str, ...]:
    cov, weights, _, lags = options
    how = f"{cov} with {default_lags(fit.count) if lags is None else lags} lags" if cov == "HAC" else cov
    notes = [f"Standard errors: {how}; t with {whole(df):g} degrees of freedom."]
    if weighted:
        meant = (
            "frequencies: a weight of 3 is equivalent to repeating the row three times"
            if weights == "frequency"
            else "precisions: Var(y) = sigma^2 / weight"
        )
        notes.append(f"Weights taken as {meant}.")
    if len(fit.undetermined):
        some = ", ".join(names.terms[j] for j in fit.undetermined[:5]) + (", ..." if len(fit.undetermined) > 5 else "")
        notes.append(f"Not determined by these data (collinear or constant columns): {some}.")
    if df <= 0:
        notes.append("No residual degrees of freedom: no standard errors.")
    return tuple(notes)
