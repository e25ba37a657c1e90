"""Standard errors of generalised linear models, from the information matrix of the fit.

theta are the parameters about the fit's origin, output by output; the reported ones are beta = T theta, where T shifts
the origin to 0 and, for several classes, takes differences to the first. With z_i, s_i and C_i as in `glm/sums.py`,

    I = sum_i w_i E[C_i] (x) z_i z_i',     F F' = I^+                              expected (Fisher) information
    classical   Cov(beta) = phi T F F' T',    phi = 1, or Pearson's chi2 / (N - p)                              (1)

    J = sum_i w_i C_i (x) z_i z_i'                                                 observed information
    robust      Cov(beta) = c T F M^-1 (F'B F) M^-1 F'T',    M = F'J F,    g_i = s_i (x) z_i                    (2)
                HC0: B = sum_i w_i g_i g_i', c = 1.    HC1: c = N / (N - p).
                cluster: B = sum over groups of t t', t = sum of w_i g_i in the group,
                c = G / (G - 1) (N - 1) / (N - p)

F orthonormalises the design, so that (2) is accurate for nearly dependent columns. With the canonical link M is the
identity. z statistics are compared with the normal distribution, also if phi is estimated. The likelihood-ratio
statistic against the intercept-only model is (D_null - D) / phi, with a chi-squared distribution.

Weights as frequencies: N = sum of w. As precisions (variance phi V / w_i): N is the number of rows, and B has w_i^2 in
HC0.
References: McCullagh and Nelder (1989), sections 2.5 and 4.4; White (1982); Liang and Zeger (1986).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.run import Run
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.sums import Sum, merged_by
from summula.linear_model.glm.objective import WIDE, GlmFit, GlmProblem, Objective
from summula.linear_model.glm.statistics.quality import Quality
from summula.linear_model.glm.sums import CANONICAL, At, Slopes, linear_predictor, weighted_rows
from summula.linear_model.least_squares.groups import GroupTotals
from summula.linear_model.least_squares.inference import Names, standard_errors, whole
from summula.losses import Loss, Multinomial
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link
from summula.stats.summary import Summary

__all__ = [
    "COVARIANCES",
    "SummaryInputs",
    "SummaryOptions",
    "blocks",
    "coordinates",
    "expected_information",
    "informed",
    "summarise",
]

Array = NDArray[Any]

COVARIANCES = ("classical", "HC0", "HC1", "cluster")
_BLOCK = 1 << 20  # maximum number of values of a block of rows


class SummaryOptions(NamedTuple):
    """Options of a summary."""

    cov: str
    weights: str
    level: float
    ratios: bool


class SummaryInputs(NamedTuple):
    """Inputs of a summary: a fit, its problem, its goodness of fit, and the names of its terms."""

    fit: GlmFit
    problem: GlmProblem
    quality: Quality
    family: Family
    link: Link
    names: Names
    weighted: bool
    classes: Array | None = None


# --------------------------------------------------------------------------------------------------------- information


def expected_information(run: Run, problem: GlmProblem, fit: GlmFit, *, anyway: bool = False) -> GlmFit:
    """Return the fit with the expected information at the solution; takes a pass if the solver used another matrix."""
    same = isinstance(problem.loss, CANONICAL) or not problem.loss.convex
    if problem.penalised or (not anyway and (same or fit.half_inverse is None)):
        return fit
    sums = run.sum(Slopes, fit.at(problem, 2, expected=True), "information")
    assert sums.hessian is not None
    factor = Objective(run, problem, fit.origin).factor(sums.hessian)
    return replace(
        fit,
        half_inverse=factor.half_inverse(),
        rank=factor.rank,
        free=factor.null_space(),
    )


def informed(fit: GlmFit, problem: GlmProblem, run: Run | None) -> GlmFit:
    """Return the fit with an information matrix, computed from the rows if it has none."""
    if fit.half_inverse is not None:
        return fit
    size = problem.outputs * (fit.coef.shape[1] + int(problem.intercept))
    if size > WIDE:
        raise ParameterError(
            f"summary() needs the inverse of a {size} x {size} matrix, which is too large to compute; "
            "select fewer columns first."
        )
    if run is None:
        raise DataError("The fit has no information matrix, so summary() needs the training rows: summary(X, y).")
    return expected_information(run, problem, fit, anyway=True)


def _reported(A: Array, fit: GlmFit, problem: GlmProblem) -> Array:
    """Return T A for columns of parameters about the origin: differences to the first class, the intercept at 0."""
    A = A.reshape(problem.outputs, len(A) // problem.outputs, A.shape[1])
    A = A[1:] - A[0] if problem.outputs > 1 else A.copy()
    if problem.intercept:
        A[:, 0] -= np.einsum("j,kjr->kr", fit.origin, A[:, 1:])
    return np.asarray(A.reshape(A.shape[0] * A.shape[1], A.shape[2]))


# ------------------------------------------------------------------------------------------------------------ sandwich


class Rows(NamedTuple):
    """Point and options for the sums of (2); `grouped` requests totals of groups of rows."""

    at: At
    half_inverse: Array
    precision: bool
    grouped: bool


@dataclass(frozen=True)
class Sandwich(Sum):
    """The sums of (2) in the coordinates F'g, or the totals of each group; the loss identifies the rows."""

    loss: float
    bread: Array
    meat: Array
    by_group: GroupTotals | None = field(metadata=merged_by(GroupTotals.merge))

    @classmethod
    def map(cls, chunk: Chunk, params: Rows) -> Self:
        """Return the sums over one chunk, computed in blocks of rows."""
        rank = params.half_inverse.shape[1]
        none = np.zeros((rank, rank))
        total = cls(0.0, none, none, GroupTotals(np.empty(0), np.empty((0, rank))) if params.grouped else None)
        for block in blocks(chunk, max(params.half_inverse.shape)):
            total = total.merge(cls._of_block(block, params))
        return total

    @classmethod
    def _of_block(cls, chunk: Chunk, params: Rows) -> Self:
        at, F, precision, grouped = params
        chunk, w = weighted_rows(chunk, at.class_weight)
        w = np.ones(len(chunk)) if w is None else w
        value, slope, curvature = _derivatives(at.loss, chunk.target, linear_predictor(chunk, at))
        parts = list(coordinates(chunk, at, F))
        u = np.sum([s[:, None] * part for s, part in zip(slope.T, parts, strict=True)], axis=0)
        bread = np.zeros((F.shape[1], F.shape[1]))
        if curvature is not None:
            bread = (parts[0] * (w * curvature)[:, None]).T @ parts[0]
        if grouped:
            keys, place = np.unique(np.asarray(chunk.groups), return_inverse=True)
            members = sparse.csr_array((w, (place, np.arange(len(w)))), shape=(len(keys), len(w)))
            totals = np.asarray(members @ u)
            return cls(float(w @ value), bread, np.zeros_like(bread), GroupTotals(keys, totals))
        meat = (u * (w**2 if precision else w)[:, None]).T @ u
        return cls(float(w @ value), bread, meat, None)


def blocks(chunk: Chunk, width: int) -> Iterator[Chunk]:
    """Yield pieces of a chunk with a bounded number of rows times `width`."""
    size = max(1, _BLOCK // max(width, 1))
    if len(chunk) <= size:
        yield chunk
        return
    for start in range(0, len(chunk), size):
        some = chunk.take(slice(start, start + size))
        yield replace(some, start=chunk.start + start, stop=chunk.start + start + len(some))


def _derivatives(loss: Loss, y: Array, eta: Array) -> tuple[Array, Array, Array | None]:
    """Return value, slope (n, K) and observed curvature of each row; None if it equals the expected one."""
    if isinstance(loss, Multinomial):
        value, slope, _ = loss.derivatives(y, eta)
        return value, slope, None
    value, s, _ = loss.derivatives(y, eta[:, 0])
    return value, s[:, None], None if isinstance(loss, CANONICAL) else loss.curvature(y, eta[:, 0])


def coordinates(chunk: Chunk, at: At, F: Array) -> Iterator[Array]:
    """Yield z_i'F_k of the rows for each output."""
    first, outputs = int(at.intercept), at.theta.shape[1]
    X: Any = chunk.block(np.float64, at.origin) if not chunk.is_sparse else chunk.rows.about(at.origin).csr()
    for part in F.reshape(outputs, -1, F.shape[1]):
        u = product(X, part[first:])
        yield u + part[0] if first else u


def _robust(
    inputs: SummaryInputs, fit: GlmFit, options: SummaryOptions, run: Run, N: float, p: int
) -> tuple[Array, int]:
    """Return K of Cov = (T F) K (T F)' in (2), and the number of groups."""
    assert fit.half_inverse is not None
    grouped = options.cov == "cluster"
    rows = Rows(fit.at(inputs.problem), fit.half_inverse, options.weights == "precision", grouped)
    sums = run.sum(Sandwich, rows, "robust covariance")
    if not np.isclose(sums.loss, fit.loss, rtol=1e-5, atol=1e-9 * inputs.quality.weight):
        raise DataError(
            "These are not the rows the model was fitted on: the deviance differs; pass the training data, including "
            f'weights and offsets: summary(X, y, cov="{options.cov}").'
        )
    meat, factor = sums.meat, 1.0
    G = 0
    if sums.by_group is not None:
        G, totals = len(sums.by_group.groups), sums.by_group.totals
        if G < 2:
            raise DataError(f'cov="cluster" needs at least 2 groups; got {G}.')
        meat = totals.T @ totals
        factor = G / (G - 1) * (N - 1) / (N - p)
    elif options.cov == "HC1":
        factor = N / (N - p)
    if not isinstance(inputs.problem.loss, CANONICAL):
        half = np.linalg.solve(sums.bread, meat)
        meat = np.linalg.solve(sums.bread, half.T)
    return factor * meat, G


# ------------------------------------------------------------------------------------------------------------- summary


def summarise(inputs: SummaryInputs, options: SummaryOptions, run: Run | None) -> Summary:
    """Return the coefficient table of a fit; `run` reads the training rows, with groups, if they are needed."""
    fit, problem, quality = inputs.fit, inputs.problem, inputs.quality
    assert fit.half_inverse is not None
    p = _estimated(fit, problem)
    N = quality.weight if options.weights == "frequency" else float(quality.n_rows)
    _check_degrees(inputs, options, N, p)
    phi = _dispersion(inputs, N, p)
    TF = _reported(fit.half_inverse, fit, problem)
    K, G = None, 0
    if options.cov != "classical":
        assert run is not None
        K, G = _robust(inputs, fit, options, run, N, p)
    error = standard_errors(TF, K, float(np.sqrt(phi)))
    unknown = _undetermined(TF, fit, problem)
    error[unknown] = np.nan
    beta = _estimates(fit, problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = beta / error
    half = -special.ndtri((1 - options.level) / 2) * error
    terms = (("intercept",) if problem.intercept else ()) + inputs.names.terms
    several = problem.outputs > 1
    summary = Summary(
        f"{inputs.names.model}: {quality.n_rows} rows, {len(inputs.names.terms)} columns",
        terms * (problem.outputs - 1 if several else 1),
        tuple(str(label) for label in inputs.classes[1:] for _ in terms) if several else None,  # type: ignore[index]
        estimate=beta,
        std_error=error,
        statistic=z,
        p_value=2 * special.ndtr(-np.abs(z)),
        ci_low=beta - half,
        ci_high=beta + half,
        facts=_facts(inputs, options, N, p, phi, G, run),
        notes=_notes(inputs, options, terms, unknown),
        statistic_name="z",
        level=options.level,
        frame_library=inputs.names.frame_library,
    )
    return _as_ratios(summary) if options.ratios else summary


def _estimated(fit: GlmFit, problem: GlmProblem) -> int:
    """Return the number of parameters determined by the data (for softmax one direction per column is not)."""
    return fit.rank if problem.outputs == 1 else fit.rank - fit.coef.shape[1] - int(problem.intercept)


def _estimates(fit: GlmFit, problem: GlmProblem) -> Array:
    beta = np.column_stack([fit.intercept, fit.coef]) if problem.intercept else fit.coef
    return np.asarray((beta[1:] - beta[0] if problem.outputs > 1 else beta).ravel(), dtype=np.float64)


def _undetermined(TF: Array, fit: GlmFit, problem: GlmProblem) -> NDArray[np.bool_]:
    """Return a mask of the terms that are not determined by the data."""
    if fit.free is None or not fit.free.shape[1]:
        return np.zeros(len(TF), bool)
    moves = np.linalg.norm(_reported(fit.free, fit, problem), axis=1)
    away = replace(fit, origin=-np.abs(fit.origin))
    rounding = 1e-9 * np.linalg.norm(_reported(np.abs(fit.free), away, problem), axis=1)
    return np.asarray((moves > 1e-6 * (np.linalg.norm(TF, axis=1) + moves)) & (moves > rounding))


def _check_degrees(inputs: SummaryInputs, options: SummaryOptions, N: float, p: int) -> None:
    enough = N - p > 0
    if enough or (options.cov in ("classical", "HC0") and inputs.family.fixed_dispersion):
        return
    if inputs.weighted and options.weights == "frequency" and inputs.quality.n_rows > p:
        raise DataError(
            f"The weights sum to {N:g}, too few rows for {p} terms if they are frequencies; "
            'if they are precisions, use summary(weights="precision").'
        )
    raise DataError(f"There are {N:g} rows for {p} terms, so errors cannot be estimated; use more rows.")


def _dispersion(inputs: SummaryInputs, N: float, p: int) -> float:
    return 1.0 if inputs.family.fixed_dispersion else float(inputs.quality.pearson_chi2 / (N - p))


def _as_ratios(table: Summary) -> Summary:
    """Return exp of estimates and intervals; errors by the delta method; tests remain those of a coefficient of 0."""
    with np.errstate(over="ignore"):
        ratio = np.exp(table.estimate)
        low, high = np.exp(table.ci_low), np.exp(table.ci_high)
    return replace(table, estimate=ratio, std_error=ratio * table.std_error, ci_low=low, ci_high=high)


def _facts(
    inputs: SummaryInputs, options: SummaryOptions, N: float, p: int, phi: float, G: int, run: Run | None
) -> dict[str, Any]:
    problem, quality = inputs.problem, inputs.quality
    likelihood = _likelihood(inputs, options, phi, run)
    lr, slopes = np.nan, p - (max(problem.outputs - 1, 1) if problem.intercept else 0)
    if problem.intercept:  # otherwise the intercept-only model is not nested
        lr = (quality.null_deviance - quality.deviance) / phi
    pseudo = np.nan
    if inputs.family.fixed_dispersion and likelihood != 0:
        null = likelihood - (quality.null_deviance - quality.deviance) / 2
        pseudo = 1 - likelihood / null if null != 0 else np.nan
    facts = {
        "n": quality.n_rows,
        "df_residual": whole(N - p),
        "deviance": quality.deviance,
        "null_deviance": quality.null_deviance,
        "pearson_chi2": quality.pearson_chi2,
        "dispersion": phi,
        "log_likelihood": likelihood,
        "aic": -2 * likelihood + 2 * p,
        "bic": -2 * likelihood + np.log(N) * p,
        "pseudo_r2": pseudo,
        "lr_statistic": lr,
        "lr_p_value": float(special.chdtrc(slopes, max(lr, 0.0))) if slopes and np.isfinite(lr) else np.nan,
        "iterations": inputs.fit.n_iter,
        "covariance": options.cov,
        "weights": options.weights if inputs.weighted else "none",
    }
    return {**facts, "groups": G} if options.cov == "cluster" else facts


def _log_likelihood(at: At, family: Family, link: Link, dispersion: float, chunk: Chunk) -> Array:
    """Return the log-likelihood of a chunk with weights as precisions."""
    mu = link.inverse(linear_predictor(chunk, at)[:, 0])
    y = chunk.target.astype(np.float64)
    return np.asarray(family.log_likelihood(y, mu, dispersion, weight=chunk.weight))


def _likelihood(inputs: SummaryInputs, options: SummaryOptions, phi: float, run: Run | None) -> float:
    """Return the log-likelihood: stored for frequency weights, and the same for precisions with fixed dispersion."""
    if not inputs.weighted or options.weights == "frequency" or inputs.family.fixed_dispersion:
        return inputs.quality.log_likelihood
    if run is None:
        return float("nan")
    density = functools.partial(_log_likelihood, inputs.fit.at(inputs.problem), inputs.family, inputs.link, phi)
    return float(run.sum(FunctionSum, density, "likelihood").value)


def _notes(
    inputs: SummaryInputs, options: SummaryOptions, terms: tuple[str, ...], unknown: NDArray[np.bool_]
) -> tuple[str, ...]:
    classes, family = inputs.classes, inputs.family
    from_information = "expected information" if options.cov == "classical" else "sandwich"
    notes = [f"Standard errors: {options.cov} ({from_information}); z from the normal distribution."]
    if not family.fixed_dispersion:
        notes.append("Dispersion: Pearson's chi-squared over residual degrees of freedom.")
    if classes is not None:
        about, base = ("Log-odds" if not options.ratios else "Odds ratios"), str(classes[0])
        notes.append(f"{about} of {classes[1]!s} against {base}." if len(classes) == 2 else f"{about} against {base}.")
    if options.ratios:
        what = "Odds ratios" if inputs.link.name == "logit" else "Rate ratios"
        notes.append(f"{what}: exp(coefficient) and its interval; errors by the delta method, z of a ratio of 1.")
    if inputs.weighted:
        meant = (
            "frequencies: a weight of 3 is equivalent to repeating the row three times"
            if options.weights == "frequency"
            else "precisions: Var(y) = dispersion V(mu) / weight"
        )
        notes.append(f"Weights taken as {meant}.")
    if unknown.any():
        names = list(dict.fromkeys(terms[j % len(terms)] for j in np.flatnonzero(unknown)))
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        notes.append(f"Not determined by these data (collinear or constant columns): {some}.")
    if not inputs.fit.settled:
        notes.append("The solver did not converge; the values refer to the point where it stopped.")
    return tuple(notes)
