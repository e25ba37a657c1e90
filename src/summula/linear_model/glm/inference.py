"""Standard errors of generalised linear models, from the information the fit kept.

theta are the parameters about the fit's origin, output by output; what is reported is beta = T theta, where T undoes
the origin and, for several classes, takes differences to the first. With z_i, s_i and C_i as in `glm/sums.py`,

    I = sum_i w_i E[C_i] (x) z_i z_i',     F F' = I^+                              expected (Fisher) information
    classical   Cov(beta) = phi T F F' T',    phi = 1, or Pearson's chi2 / (N - p)                              (1)

    J = sum_i w_i C_i (x) z_i z_i'                                                 observed information
    robust      Cov(beta) = c T F M^-1 (F'B F) M^-1 F'T',    M = F'J F,    g_i = s_i (x) z_i                    (2)
                HC0: B = sum_i w_i g_i g_i', c = 1.    HC1: c = N / (N - p).
                cluster: B = sum over groups of t t', t = sum of w_i g_i in the group,
                c = G / (G - 1) (N - 1) / (N - p)

F makes the design round, so that (2) keeps its digits when columns are nearly dependent. Under the canonical link
M is the identity. Estimates over errors are compared with the normal distribution, also where phi is estimated. The
likelihood-ratio statistic against an intercept alone is (D_null - D) / phi, in chi-squared.

Weights as frequencies: N = sum of w. As precisions (variance phi V / w_i): N counts rows, and B has w_i^2 in HC0.
References: McCullagh and Nelder (1989), sections 2.5 and 4.4; White (1982); Liang and Zeger (1986).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from summula.core.data.blocks import product
from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.run import Run
from summula.core.numerics.sums import Sum, merged_by
from summula.linear_model.glm.objective import WIDE, GlmFit, GlmProblem, Objective
from summula.linear_model.glm.quality import Quality
from summula.linear_model.glm.sums import CANONICAL, At, Slopes, linear_predictor, weighted_rows
from summula.linear_model.least_squares.inference import Names, standard_errors, whole
from summula.losses import Loss, Multinomial
from summula.stats.exponential_family import Family
from summula.stats.links import Link
from summula.stats.summary import Summary

__all__ = ["COVARIANCES", "Asked", "Subject", "blocks", "coordinates", "expected_information", "informed", "summarise"]

Array = NDArray[Any]

COVARIANCES = ("classical", "HC0", "HC1", "cluster")
_BLOCK = 1 << 20  # numbers of a block of rows


class Asked(NamedTuple):
    """What a summary is asked for."""

    cov: str
    weights: str
    level: float
    ratios: bool


class Subject(NamedTuple):
    """What a summary is about: a fit, its problem, how well it does, and what things are called."""

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
    """The fit with the expected information at its answer; costs a pass where the solver used another curvature."""
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
    """The fit with an information matrix, from the rows when it kept none."""
    if fit.half_inverse is not None:
        return fit
    size = problem.outputs * (fit.coef.shape[1] + int(problem.intercept))
    if size > WIDE:
        raise ParameterError(
            f"summary() needs the inverse of a {size} x {size} matrix, which a fit this wide never forms; "
            "select fewer columns first."
        )
    if run is None:
        raise DataError("The fit kept no information matrix, so summary() needs the training rows: summary(X, y).")
    return expected_information(run, problem, fit, anyway=True)


def _reported(A: Array, fit: GlmFit, problem: GlmProblem) -> Array:
    """T A, for columns of parameters about the origin: differences to the first class, the intercept at 0."""
    A = A.reshape(problem.outputs, -1, A.shape[1])
    A = A[1:] - A[0] if problem.outputs > 1 else A.copy()
    if problem.intercept:
        A[:, 0] -= np.einsum("j,kjr->kr", fit.origin, A[:, 1:])
    return np.asarray(A.reshape(-1, A.shape[2]))


# ------------------------------------------------------------------------------------------------------------ sandwich


class Rows(NamedTuple):
    """Where and how the sums of (2) are taken; `grouped` asks for the totals of groups of rows."""

    at: At
    half_inverse: Array
    precision: bool
    grouped: bool


@dataclass(frozen=True)
class GroupTotals:
    """Totals of groups of rows by the numbers of the groups, sorted."""

    groups: Array
    totals: Array

    def merge(self, other: Self) -> Self:
        """The totals of both sets of rows."""
        groups = np.union1d(self.groups, other.groups)
        totals = np.zeros((len(groups), self.totals.shape[1]))
        totals[np.searchsorted(groups, self.groups)] = self.totals
        totals[np.searchsorted(groups, other.groups)] += other.totals
        return type(self)(groups, totals)


@dataclass(frozen=True)
class Sandwich(Sum):
    """The sums of (2) in the coordinates F'g, or the totals of each group; the loss shows which rows they were."""

    loss: float
    bread: Array
    meat: Array
    by_group: GroupTotals | None = field(metadata=merged_by(GroupTotals.merge))

    @classmethod
    def map(cls, chunk: Chunk, params: Rows) -> Self:
        """The sums of one chunk, a block of rows at a time."""
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
    """A chunk, in pieces whose rows times `width` are not too many numbers."""
    size = max(1, _BLOCK // max(width, 1))
    if len(chunk) <= size:
        yield chunk
        return
    for start in range(0, len(chunk), size):
        some = chunk.take(slice(start, start + size))
        yield replace(some, start=chunk.start + start, stop=chunk.start + start + len(some))


def _derivatives(loss: Loss, y: Array, eta: Array) -> tuple[Array, Array, Array | None]:
    """Value, slope (n, K) and observed curvature of each row; None where that is the expected one."""
    if isinstance(loss, Multinomial):
        value, slope, _ = loss.derivatives(y, eta)
        return value, slope, None
    value, s, _ = loss.derivatives(y, eta[:, 0])
    return value, s[:, None], None if isinstance(loss, CANONICAL) else loss.curvature(y, eta[:, 0])


def coordinates(chunk: Chunk, at: At, F: Array) -> Iterator[Array]:
    """z_i'F_k of each row, output by output."""
    first, outputs = int(at.intercept), at.theta.shape[1]
    X: Any = chunk.block(np.float64, at.origin) if not chunk.is_sparse else chunk.rows.about(at.origin).csr()
    for part in F.reshape(outputs, -1, F.shape[1]):
        u = product(X, part[first:])
        yield u + part[0] if first else u


def _robust(subject: Subject, fit: GlmFit, asked: Asked, run: Run, N: float, p: int) -> tuple[Array, int]:
    """K of Cov = (T F) K (T F)' in (2), and the number of groups."""
    assert fit.half_inverse is not None
    grouped = asked.cov == "cluster"
    rows = Rows(fit.at(subject.problem), fit.half_inverse, asked.weights == "precision", grouped)
    sums = run.sum(Sandwich, rows, "robust covariance")
    if not np.isclose(sums.loss, fit.loss, rtol=1e-5, atol=1e-9 * subject.quality.weight):
        raise DataError(
            "These are not the rows the model was fitted on: the deviance differs; give the training data, weights "
            f'and offsets included: summary(X, y, cov="{asked.cov}").'
        )
    meat, factor = sums.meat, 1.0
    G = 0
    if sums.by_group is not None:
        G, totals = len(sums.by_group.groups), sums.by_group.totals
        if G < 2:
            raise DataError(f'cov="cluster" needs rows of at least 2 groups; groups names {G}.')
        meat = totals.T @ totals
        factor = G / (G - 1) * (N - 1) / (N - p)
    elif asked.cov == "HC1":
        factor = N / (N - p)
    if not isinstance(subject.problem.loss, CANONICAL):
        half = np.linalg.solve(sums.bread, meat)
        meat = np.linalg.solve(sums.bread, half.T)
    return factor * meat, G


# ------------------------------------------------------------------------------------------------------------- summary


class _Table(NamedTuple):
    estimate: Array
    std_error: Array
    statistic: Array
    p_value: Array
    ci_low: Array
    ci_high: Array


def summarise(subject: Subject, asked: Asked, run: Run | None) -> Summary:
    """The coefficient table of an informed fit; `run` reads the training rows, with groups, where errors need them."""
    fit, problem, quality = subject.fit, subject.problem, subject.quality
    assert fit.half_inverse is not None
    p = _estimated(fit, problem)
    N = quality.weight if asked.weights == "frequency" else float(quality.n_rows)
    _check_degrees(subject, asked, N, p)
    phi = _dispersion(subject, N, p)
    TF = _reported(fit.half_inverse, fit, problem)
    K, G = None, 0
    if asked.cov != "classical":
        assert run is not None
        K, G = _robust(subject, fit, asked, run, N, p)
    error = standard_errors(TF, K, float(np.sqrt(phi)))
    unknown = _undetermined(TF, fit, problem)
    error[unknown] = np.nan
    beta = _estimates(fit, problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = beta / error
    half = special.ndtri(0.5 + asked.level / 2) * error
    table = _Table(beta, error, z, 2 * special.ndtr(-np.abs(z)), beta - half, beta + half)
    if asked.ratios:
        table = _as_ratios(table)
    terms = (("intercept",) if problem.intercept else ()) + subject.names.terms
    several = problem.outputs > 1
    return Summary(
        f"{subject.names.model}: {quality.n_rows} rows, {len(subject.names.terms)} columns",
        terms * (problem.outputs - 1 if several else 1),
        tuple(str(label) for label in subject.classes[1:] for _ in terms) if several else None,  # type: ignore[index]
        **table._asdict(),
        facts=_facts(subject, asked, N, p, phi, G, run),
        notes=_notes(subject, asked, terms, unknown),
        statistic_name="z",
        level=asked.level,
        frame_library=subject.names.frame_library,
    )


def _estimated(fit: GlmFit, problem: GlmProblem) -> int:
    """How many parameters the data determine (softmax is factored with one direction a column that they cannot)."""
    return fit.rank if problem.outputs == 1 else fit.rank - fit.coef.shape[1] - int(problem.intercept)


def _estimates(fit: GlmFit, problem: GlmProblem) -> Array:
    beta = np.column_stack([fit.intercept, fit.coef]) if problem.intercept else fit.coef
    return np.asarray((beta[1:] - beta[0] if problem.outputs > 1 else beta).ravel(), dtype=np.float64)


def _undetermined(TF: Array, fit: GlmFit, problem: GlmProblem) -> NDArray[np.bool_]:
    """Terms that move along a direction the data leave free."""
    if fit.free is None or not fit.free.shape[1]:
        return np.zeros(len(TF), bool)
    moves = np.linalg.norm(_reported(fit.free, fit, problem), axis=1)
    away = replace(fit, origin=-np.abs(fit.origin))
    rounding = 1e-9 * np.linalg.norm(_reported(np.abs(fit.free), away, problem), axis=1)
    return np.asarray((moves > 1e-6 * (np.linalg.norm(TF, axis=1) + moves)) & (moves > rounding))


def _check_degrees(subject: Subject, asked: Asked, N: float, p: int) -> None:
    enough = N - p > 0
    if enough or (asked.cov in ("classical", "HC0") and subject.family.fixed_dispersion):
        return
    if subject.weighted and asked.weights == "frequency" and subject.quality.n_rows > p:
        raise DataError(
            f"The weights sum to {N:g}, too few rows for {p} terms if they are frequencies; "
            'if they are precisions, ask for summary(weights="precision").'
        )
    raise DataError(f"There are {N:g} rows for {p} terms, so nothing is left to estimate errors from; give more rows.")


def _dispersion(subject: Subject, N: float, p: int) -> float:
    return 1.0 if subject.family.fixed_dispersion else float(subject.quality.pearson_chi2 / (N - p))


def _as_ratios(table: _Table) -> _Table:
    """exp of estimates and interval ends; errors by the delta method; the tests stay those of a coefficient of 0."""
    with np.errstate(over="ignore"):
        ratio = np.exp(table.estimate)
        low, high = np.exp(table.ci_low), np.exp(table.ci_high)
    return table._replace(estimate=ratio, std_error=ratio * table.std_error, ci_low=low, ci_high=high)


def _facts(subject: Subject, asked: Asked, N: float, p: int, phi: float, G: int, run: Run | None) -> dict[str, Any]:
    problem, quality = subject.problem, subject.quality
    likelihood = _likelihood(subject, asked, phi, run)
    lr, slopes = np.nan, p - (max(problem.outputs - 1, 1) if problem.intercept else 0)
    if problem.intercept:  # without one, an intercept alone is not a special case of the model
        lr = (quality.null_deviance - quality.deviance) / phi
    pseudo = np.nan
    if subject.family.fixed_dispersion and likelihood != 0:
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
        "iterations": subject.fit.n_iter,
        "covariance": asked.cov,
        "weights": asked.weights if subject.weighted else "none",
    }
    return {**facts, "groups": G} if asked.cov == "cluster" else facts


class _Density(NamedTuple):
    at: At
    family: Family
    link: Link
    dispersion: float


@dataclass(frozen=True)
class _Likelihood(Sum):
    """The log likelihood with weights as precisions."""

    total: float

    @classmethod
    def map(cls, chunk: Chunk, params: _Density) -> Self:
        mu = params.link.inverse(linear_predictor(chunk, params.at)[:, 0])
        y = chunk.target.astype(np.float64)
        return cls(params.family.log_likelihood(y, mu, params.dispersion, weight=chunk.weight))


def _likelihood(subject: Subject, asked: Asked, phi: float, run: Run | None) -> float:
    """Kept by the fit for weights that are frequencies; with fixed dispersion the other kind has the same."""
    if not subject.weighted or asked.weights == "frequency" or subject.family.fixed_dispersion:
        return subject.quality.log_likelihood
    if run is None:
        return float("nan")
    at = subject.fit.at(subject.problem)
    return run.sum(_Likelihood, _Density(at, subject.family, subject.link, phi), "likelihood").total


def _notes(subject: Subject, asked: Asked, terms: tuple[str, ...], unknown: NDArray[np.bool_]) -> tuple[str, ...]:
    classes, family = subject.classes, subject.family
    from_information = "expected information" if asked.cov == "classical" else "sandwich"
    notes = [f"Standard errors: {asked.cov} ({from_information}); z from the normal distribution."]
    if not family.fixed_dispersion:
        notes.append("Dispersion: Pearson's chi-squared over residual degrees of freedom.")
    if classes is not None:
        about, base = ("Log-odds" if not asked.ratios else "Odds ratios"), str(classes[0])
        notes.append(f"{about} of {classes[1]!s} against {base}." if len(classes) == 2 else f"{about} against {base}.")
    if asked.ratios:
        what = "Odds ratios" if subject.link.name == "logit" else "Rate ratios"
        notes.append(f"{what}: exp(coefficient) and its interval; errors by the delta method, z of a ratio of 1.")
    if subject.weighted:
        meant = (
            "frequencies: a weight of 3 is the row three times"
            if asked.weights == "frequency"
            else "precisions: Var(y) = dispersion V(mu) / weight"
        )
        notes.append(f"Weights taken as {meant}.")
    if unknown.any():
        names = list(dict.fromkeys(terms[j % len(terms)] for j in np.flatnonzero(unknown)))
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        notes.append(f"Not determined by these data (collinear or constant columns): {some}.")
    if not subject.fit.settled:
        notes.append("The solver did not converge; the numbers belong to the point where it stopped.")
    return tuple(notes)
