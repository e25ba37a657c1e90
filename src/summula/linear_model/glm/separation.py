"""Detection of separation in unpenalised classification fits, checked only if the fit looks suspicious.

If a direction d has no row on the wrong side, and not all on the boundary, the likelihood increases along it without
bound (Albert and Anderson 1984). A solver stops where the curvature along d is about its tolerance, so the score of
some row, eta = z'theta, has a large standard error, |z'F| with F F' = H^+. Since

    |z'F| <= sum_j max_i |z_ij| |F_j|                                                                          (1)

most fits are cleared by the right-hand side, which is already available; some by one pass for the left-hand side, over
rows with extreme scores; and the linear programs of `optimize/separation.py` decide the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.core.numerics.sums import Sum, merged_by
from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.glm.statistics.inference import blocks, coordinates
from summula.linear_model.glm.sums import At, linear_predictor, row_weights
from summula.losses import BinaryCLogLog, BinaryProbit, Logistic, Multinomial
from summula.optimize.separation import Separation, separation_of_rows

__all__ = ["Found", "separation_of_fit"]

Array = NDArray[Any]

_FAR = 4.0  # minimum score of a separated row, at usual tolerances, for the logit link
_NEAR = 1.3  # the same for other links, which reach the same probability at smaller scores
_BEYOND = 15.0  # suspicious score if no standard error is known
_UNSURE = 5.0  # suspicious standard error of a score
_LOOK_BYTES = 2**26  # size of the leading rows of files that are used
_TIE = 1e-9


class Found(NamedTuple):
    """A separation: its kind, its columns, and the number of leading rows used to find it (all were checked)."""

    kind: str
    columns: tuple[str, ...]
    rows: int


def separation_of_fit(run: Run, problem: GlmProblem, fit: GlmFit) -> Found | None:
    """Return the separation of the classes if the fit is suspicious and they are separated, else None."""
    classes = (Logistic, Multinomial, BinaryProbit, BinaryCLogLog)
    if problem.penalised or problem.low is not None or not isinstance(problem.loss, classes):
        return None
    if not (_may_be_separated(fit, problem) and _is_suspicious(run, problem, fit)):
        return None
    return _decided(run, problem)


def _may_be_separated(fit: GlmFit, problem: GlmProblem) -> bool:
    """Whether (1) does not rule out separation."""
    if fit.half_inverse is None or fit.largest is None or fit.free is None or fit.free.shape[1]:
        return True
    size = np.concatenate([np.ones(int(problem.intercept)), fit.largest])
    error = np.linalg.norm(fit.half_inverse, axis=1)
    return not float(np.tile(size, problem.outputs) @ error) <= (_UNSURE if fit.converged else 1.0)


def _is_suspicious(run: Run, problem: GlmProblem, fit: GlmFit) -> bool:
    doubt = run.sum(_ExtremeScores, (fit.at(problem), fit.half_inverse, fit.free), "far-out scores")
    if fit.half_inverse is None:
        return doubt.score > _BEYOND
    return doubt.error > (_UNSURE if fit.converged else 1.0) or doubt.free > 1e-4


@dataclass(frozen=True)
class _ExtremeScores(Sum):
    """Over rows with extreme scores: the largest score difference, its largest standard error, and its freedom."""

    score: float = field(metadata=merged_by(max))
    error: float = field(metadata=merged_by(max))
    free: float = field(metadata=merged_by(max))

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[At, Array | None, Array | None]) -> Self:
        at, F, N = params
        total = cls(0.0, 0.0, 0.0)
        for block in blocks(chunk, 1 if F is None else max(F.shape)):
            total = total.merge(cls._of_block(block, at, F, N))
        return total

    @classmethod
    def _of_block(cls, chunk: Chunk, at: At, F: Array | None, N: Array | None) -> Self:
        w = row_weights(chunk, at.class_weight)
        eta = linear_predictor(chunk, at)
        # Difference of each score to the best one; a single score is compared with 0.
        below = np.abs(eta) if eta.shape[1] == 1 else eta.max(axis=1, keepdims=True) - eta
        if w is not None:
            below[w == 0] = 0.0
        far = below > (_FAR if isinstance(at.loss, Logistic | Multinomial) else _NEAR)
        rows = np.flatnonzero(far.any(axis=1))
        if not len(rows) or F is None or N is None:
            return cls(float(below.max(initial=0.0)), 0.0, 0.0)
        far, chunk = far[rows], chunk.take(rows)
        u = np.stack(list(coordinates(chunk, at, F)), axis=1)
        error = np.linalg.norm(_gaps_to_best(u, below[rows]), axis=2)
        free = 0.0
        if N.shape[1]:
            moved = np.abs(_gaps_to_best(np.stack(list(coordinates(chunk, at, N)), axis=1), below[rows]))
            size = np.stack(list(coordinates(_absolute(chunk), at._replace(origin=-abs(at.origin)), abs(N))), axis=1)
            free = float((moved[far] / np.maximum(size[far], 1e-300)).max(initial=0.0))
        return cls(float(below.max()), float(error[far].max(initial=0.0)), free)


def _gaps_to_best(u: Array, below: Array) -> Array:
    """Return the values for the differences between each score and the best one."""
    return u if u.shape[1] == 1 else u - u[np.arange(len(u)), below.argmin(axis=1)][:, None]


def _absolute(chunk: Chunk) -> Chunk:
    return replace(chunk, rows=np.abs(chunk.dense()))


# ------------------------------------------------------------------------------------------------------------ decision


def _decided(run: Run, problem: GlmProblem) -> Found | None:
    source, K = run.source, max(problem.outputs, 2)
    rows = source.n_rows
    if source.streams:
        rows = min(rows, max(1, int(_LOOK_BYTES / (8 * source.width))))
    chunk = source.chunk(0, rows)
    w = row_weights(chunk, problem.class_weight)
    if w is not None and not w.all():
        chunk = chunk.take(np.flatnonzero(w > 0))
    X, y = chunk.X if chunk.is_sparse else chunk.block(), chunk.target
    if K == 2 and ((y > 0) & (y < 1)).any():  # a proportion represents rows of both classes
        both = np.concatenate([np.flatnonzero(y > 0), np.flatnonzero(y < 1)])
        X, y = X[both], np.repeat([1.0, 0.0], [np.count_nonzero(y > 0), np.count_nonzero(y < 1)])
    codes = y.astype(np.int64)
    if np.count_nonzero(np.bincount(codes, minlength=K)) < K:
        return None
    try:
        found = separation_of_rows(X, codes, K, problem.intercept)
    except DataError:  # could not be decided
        return None
    if found.kind == "overlap":
        return None
    kind: str = found.kind
    if rows < source.n_rows:
        least = run.sum(_Margin, (found, problem.class_weight), "separation").least
        if least < -_TIE:
            return None
        kind = "complete" if least > _TIE else "quasi"
    return Found(kind, tuple(source.column(int(j)).removeprefix("Column ") for j in found.columns), rows)


@dataclass(frozen=True)
class _Margin(Sum):
    """The smallest margin of a row, relative to the sum of the absolute values of its terms."""

    least: float = field(metadata=merged_by(min))

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Separation, Array | None]) -> Self:
        found, class_weight = params
        w = row_weights(chunk, class_weight)
        W, b = np.atleast_2d(np.asarray(found.coef)), np.atleast_1d(np.asarray(found.intercept))
        y = chunk.target
        X = chunk.X if chunk.is_sparse else chunk.block()
        size = abs(X) if chunk.is_sparse else aligned(np.abs(X))
        score, size = product(X, W.T) + b, product(size, np.abs(W).T) + np.abs(b)
        if len(W) == 1:
            margin = np.where(y >= 1, score[:, 0], np.where(y <= 0, -score[:, 0], -np.abs(score[:, 0])))
            margin = margin / np.where(size[:, 0] > 0, size[:, 0], 1.0)
        else:
            place, own = np.arange(len(y)), y.astype(np.intp)
            difference = score[place, own][:, None] - score
            difference[place, own] = np.inf
            margin = (difference / np.where(size > 0, size + size[place, own][:, None], 1.0)).min(axis=1)
        if w is not None:
            margin = margin[w > 0]
        return cls(float(margin.min(initial=np.inf)))
