"""Errors of ridge on the test rows of every split, for every alpha, from sums.

With the training sums of a split (`folds.py`) equation (3) of `ridge_path.py` gives v(alpha) for all alphas; about the
training means m the test rows have the products M = sum (z - m)(z - m)', and

    sum of squared errors = M_yy - 2 v'M_xy + v'M_xx v                                                            (1)

R2 compares it with the sum of squares of y about its mean in the test rows. Where (1) would cancel, or products have
lost too many digits, triangular factors of the groups replace the products, and (1) is the squared length of
R (y - m_y) - R (x - m_x) v. Squared errors need no further pass over the rows; other scores need predictions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.data.sources import MemorySource
from summula.core.engine.engine import ThreadEngine
from summula.core.errors import DataError
from summula.core.numerics.statistics import Gram, off_centre
from summula.core.numerics.sums import Sum, merged_by
from summula.linear_model.cross_validation.folds import (
    Batch,
    BatchSums,
    batches_of,
    combined,
    factors_of,
    grams_of,
    most_groups,
    stacked,
)
from summula.linear_model.cross_validation.ridge_path import FactorSystem, GramSystem, coefficients
from summula.linear_model.least_squares.problem import Problem
from summula.linear_model.least_squares.solver import SPARSE_GRAM_COLUMNS, TINY_FACTOR, solve

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["FROM_SUMS", "Curve", "Predicted", "Scoring", "SquaredErrors", "cross_validate", "scores_of"]

Array = NDArray[np.float64]

FROM_SUMS = ("r2", "neg_mean_squared_error", "neg_root_mean_squared_error")  # scores computed from sums of squares

_EPS = float(np.finfo(np.float64).eps)
_RESIDUAL = 1e-6  # fraction of the variation below which squared errors are not computed from products


class Scoring(NamedTuple):
    """Scoring of predictions: a score of `FROM_SUMS`, weighted by the sample weights, or a scikit-learn scorer.

    `params` are the other arguments of the scorer.
    """

    name: str | None
    scorer: Callable[..., Any] | None
    params: Mapping[str, Any]


class SquaredErrors(NamedTuple):
    """Sums of squared errors, shape (n_targets, n_alphas), sum of squares of each target, weight and number of rows."""

    squares: Array
    spread: Array
    weight: float
    rows: int


class Curve(NamedTuple):
    """Scores of every split and alpha, and the Gram matrix of all rows if it was computed."""

    scores: Array
    gram: Gram | None


def scores_of(name: str, errors: SquaredErrors) -> Array:
    """Return a score per target and alpha; larger is better."""
    mean = errors.squares / errors.weight
    if name == "neg_mean_squared_error":
        return -mean
    if name == "neg_root_mean_squared_error":
        return np.asarray(-np.sqrt(mean))
    if errors.rows < 2:
        return np.full_like(mean, np.nan)
    # As in scikit-learn, a constant target scores 1 if it is predicted exactly, else 0.
    flat = errors.spread[:, None] == 0
    ratio = errors.squares / np.where(flat, 1.0, errors.spread[:, None])
    return np.where(flat, np.where(errors.squares == 0, 1.0, 0.0), 1.0 - ratio)


# ------------------------------------------------------------------------------------------------------- one split


class Split(NamedTuple):
    """A split, by the sums of its batch and its index in the batch."""

    sums: BatchSums
    number: int


class SplitFit(NamedTuple):
    """The models of a split, one per alpha, and their errors on its test rows."""

    coef: Array
    mean: Array
    errors: SquaredErrors


class Setting(NamedTuple):
    """Models to compare."""

    alphas: Array
    fit_intercept: bool
    n_features: int


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _by_grams(setting: Setting, total: Gram, split: Split) -> SplitFit | None:
    """Compute (1) from products; None if they have lost too many digits."""
    d, (sums, number) = setting.n_features, split
    train = combined(sums.groups, sums.batch.train[number], total)
    test = combined(sums.groups, sums.batch.test[number], total)
    if not train.weight > 0:
        raise _no_weight(number)
    system = GramSystem.of(train, d, setting.fit_intercept)
    if not system.accurate(float(setting.alphas.min())):
        return None
    coef = coefficients(system, setting.alphas, len(total.origin) - d)
    about = test.recentre(system.mean).products
    flat = coef.reshape(d, -1)
    around = np.diag(about)[d:]
    explained = (2 * about[:d, d:, None] * coef).sum(axis=0)
    squares = around[:, None] - explained + (flat * (about[:d, :d] @ flat)).sum(axis=0).reshape(explained.shape)
    if (squares < _RESIDUAL * around[:, None]).any():
        return None
    spread, noise = np.diag(test.centred())[d:], 8 * _EPS * np.diag(test.products)[d:]
    errors = SquaredErrors(squares, np.where(spread > noise, spread, 0.0), test.weight, test.count)
    return SplitFit(coef, system.mean, errors)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _by_factors(setting: Setting, origin: Array, split: Split) -> SplitFit:
    """Compute (1) from triangular factors."""
    d, (sums, number) = setting.n_features, split
    rows, count = stacked(sums.groups, sums.batch.train[number])
    if not (rows[:, 0] ** 2).sum() > 0:
        raise _no_weight(number)
    system = FactorSystem.of(rows, count, origin, d, setting.fit_intercept)
    coef = coefficients(system, setting.alphas, len(origin) - d)
    test, tested = stacked(sums.groups, sums.batch.test[number])
    one, X, Y = test[:, :1], test[:, 1 : d + 1], test[:, d + 1 :]
    drift = system.mean - origin
    flat = coef.reshape(d, -1)
    offset = drift[d:, None] - (drift[:d] @ flat).reshape(coef.shape[1:])
    residual = Y[:, :, None] - (X @ flat).reshape(len(X), *coef.shape[1:]) - one[:, :, None] * offset
    weight = float((one**2).sum())
    centred = Y - one * ((one * Y).sum(axis=0) / weight)
    spread, noise = (centred**2).sum(axis=0), (8 * _EPS) ** 2 * weight * (Y**2).sum(axis=0)
    errors = SquaredErrors((residual**2).sum(axis=0), np.where(spread > noise, spread, 0.0), weight, tested)
    return SplitFit(coef, system.mean, errors)


def _no_weight(number: int) -> DataError:
    return DataError(f"In split {number} every training row has weight 0; pass splits with positive weights.")


# ------------------------------------------------------------------------------------------------------ all splits


def cross_validate(
    run: Run, splits: Iterable[tuple[Any, Any]], alphas: Array, fit_intercept: bool, scoring: Scoring
) -> Curve:
    """Return the score of every alpha on every split, shape (n_splits, n_alphas)."""
    source = run.source
    d, t = source.n_features, source.n_targets
    setting = Setting(alphas, fit_intercept, d)
    batches = batches_of(splits, source.n_rows, most_groups(d + t))
    gram: Gram | None = None
    if source.is_sparse and d > SPARSE_GRAM_COLUMNS:
        fits = [fit for batch in batches for fit in _one_by_one(run, batch, setting)]
    else:
        fits, gram = _fits(run, batches, setting)
    if scoring.name is None:
        return Curve(_scored(run, batches, fits, setting, scoring), gram)
    _check_tested(fits)
    return Curve(np.array([scores_of(scoring.name, fit.errors).mean(axis=0) for fit in fits]), gram)


def _fits(run: Run, batches: Sequence[Batch], setting: Setting) -> tuple[list[SplitFit], Gram | None]:
    """Return the models of every split, from Gram matrices, or from factors if those are not accurate enough."""
    source, d = run.source, setting.n_features
    origin = run.origin() if setting.fit_intercept else np.zeros(d + source.n_targets)
    gram: Gram | None = None
    if source.n_rows > d and source.n_rows * d**2 > TINY_FACTOR:
        sums, gram = grams_of(run, batches, origin)
        if not gram.is_finite():  # squares overflow, and orthogonal transformations do not square the data
            gram = None
        else:
            if setting.fit_intercept and not source.is_sparse and off_centre(gram):
                sums, gram = grams_of(run, batches, gram.mean)
            fits = _gram_fits(sums, gram, setting)
            if fits is not None:
                return fits, gram
            origin = gram.mean if setting.fit_intercept else origin
    factors = factors_of(run, batches, origin)
    return list(ThreadEngine().map_ordered(functools.partial(_by_factors, setting, origin), _splits(factors))), gram


def _gram_fits(sums: list[BatchSums], gram: Gram, setting: Setting) -> list[SplitFit] | None:
    fits = []
    with closing(ThreadEngine().map_ordered(functools.partial(_by_grams, setting, gram), _splits(sums))) as results:
        for fit in results:
            if fit is None:
                return None
            fits.append(fit)
    return fits


def _splits(sums: Iterable[BatchSums]) -> list[Split]:
    return [Split(one, number) for one in sums for number in range(len(one.batch.train))]


def _check_tested(fits: Sequence[SplitFit]) -> None:
    rows = [fit.errors.rows for fit in fits]
    if min(rows) == 0:
        raise DataError(f"In split {rows.index(0)} every test row has weight 0; pass splits with positive weights.")


def _one_by_one(run: Run, batch: Batch, setting: Setting) -> Iterator[SplitFit]:
    """Fit every split and alpha separately by conjugate gradients, for sparse data too wide for Gram matrices."""
    from summula.core.estimator.run import Run

    source, t = run.source, run.source.n_targets
    if not isinstance(source, MemorySource):
        raise DataError(
            f"Cross-validation on {source.n_features} sparse columns fits each fold separately and needs the rows in "
            "memory; pass a SciPy matrix, or select fewer columns."
        )
    assert source.y is not None
    for number in range(len(batch.train)):
        rows, test = batch.trained(number), batch.tested(number)
        weight = None if source.weight is None else source.weight[rows]
        alone = Run(run.estimator, replace(source, rows=source.rows[rows], y=source.y[rows], weight=weight), quiet=True)
        coef = np.empty((setting.n_features, t, len(setting.alphas)))
        for a, alpha in enumerate(setting.alphas):
            fit = solve(alone, Problem(setting.fit_intercept, np.full(t, alpha), False), lambda fit: None)
            coef[:, :, a] = fit.coef
            run.step("fit of a split")
        w = np.ones(len(test)) if source.weight is None else source.weight[test]
        residual = (source.y[test] - fit.mean_y)[:, :, None] + (fit.mean_x @ coef.reshape(len(coef), -1)).reshape(t, -1)
        residual -= (source.rows[test] @ coef.reshape(len(coef), -1)).reshape(residual.shape)
        y = source.y[test] - np.average(source.y[test], axis=0, weights=w if w.any() else None)
        squares = np.einsum("i,ita->ta", w, residual**2)
        errors = SquaredErrors(squares, w @ y**2, float(w.sum()), int((w > 0).sum()))
        yield SplitFit(coef, np.concatenate([fit.mean_x, fit.mean_y]), errors)


# --------------------------------------------------------------------------------------- scores that need predictions


class Predicted(RegressorMixin, BaseEstimator):
    """Estimator whose `predict` returns its input, so that a scorer can score precomputed predictions."""

    def predict(self, X: Any) -> Any:
        """Return X."""
        return X


def _scored(run: Run, batches: Sequence[Batch], fits: Sequence[SplitFit], setting: Setting, scoring: Scoring) -> Array:
    """Return the score of every split and alpha."""
    if run.source.streams:
        return _scored_stream(run, batches, fits, scoring)
    scores, rest = [], iter(fits)
    for batch in batches:
        for number in range(len(batch.train)):
            scores.append(_scores_in_memory(run, batch.tested(number), next(rest), setting, scoring))
            run.step("split")
    return np.array(scores)


def _scores_in_memory(
    run: Run, test: NDArray[np.intp], fit: SplitFit, setting: Setting, scoring: Scoring
) -> list[float]:
    source, d, coef = run.source, setting.n_features, fit.coef
    chunk = source.chunk(0, source.n_rows).take(test)
    assert scoring.scorer is not None
    assert chunk.y is not None
    y = chunk.y[:, 0] if source.one_target else chunk.y
    params = {name: _rows_of_param(value, test, source.n_rows) for name, value in scoring.params.items()}
    intercept = fit.mean[d:, None] - np.einsum("j,jta->ta", fit.mean[:d], coef)
    scores = []
    for a, alpha in enumerate(setting.alphas.tolist()):
        model = _ridge(alpha, coef[:, :, a], intercept[:, a], source.one_target, setting.fit_intercept)
        scores.append(float(scoring.scorer(model, chunk.X, y, **params)))
    return scores


def _ridge(alpha: float, coef: Array, intercept: Array, one_target: bool, fit_intercept: bool) -> Any:
    """Return the Ridge estimator that fitting the split separately would have produced, for a scorer."""
    from summula.linear_model.ridge import Ridge

    model = Ridge(alpha, fit_intercept=fit_intercept)
    model.n_features_in_ = len(coef)
    model.coef_ = coef[:, 0] if one_target else coef.T
    model.intercept_ = intercept[0] if one_target else intercept
    return model


def _rows_of_param(value: Any, rows: NDArray[np.intp], n_rows: int) -> Any:
    one_a_row = hasattr(value, "__len__") and len(value) == n_rows
    return np.asarray(value)[rows] if one_a_row else value


def _joined_pieces(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(operator.add, a, b))


@dataclass(frozen=True)
class TestPredictions(Sum):
    """Predictions, targets and weights of the test rows of every split, in pieces."""

    splits: tuple[tuple[tuple[Array, Array, Any], ...], ...] = field(metadata=merged_by(_joined_pieces))

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Sequence[tuple[Batch, int]], Sequence[SplitFit]]) -> Self:
        """The pieces of one chunk; `params` are the splits and their models."""
        chunk = replace(chunk, dtype=np.dtype(np.float64))
        assert chunk.y is not None
        X, pieces = chunk.block(), []
        for (batch, number), (coef, mean, _) in zip(*params, strict=True):
            times = batch.test[number][batch.of(chunk.start, chunk.stop)]
            rows, d = np.repeat(np.arange(len(times)), times), len(coef)
            predicted = product(aligned(X[rows] - mean[:d]), coef.reshape(d, -1)).reshape(len(rows), *coef.shape[1:])
            weight = None if chunk.weight is None else chunk.weight[rows]
            piece = (predicted + mean[d:, None], chunk.y[rows], weight)
            pieces.append((piece,) if len(rows) else ())
        return cls(tuple(pieces))


def _scored_stream(run: Run, batches: Sequence[Batch], fits: Sequence[SplitFit], scoring: Scoring) -> Array:
    """Score rows that are not in memory: the scorer receives predictions instead of a model."""
    assert scoring.scorer is not None
    if set(scoring.params) - {"sample_weight"}:
        raise DataError("The rows are in files, so a scorer can only use their weights.")
    numbered = [(batch, number) for batch in batches for number in range(len(batch.train))]
    scores, one = [], run.source.one_target
    for pieces in run.sum(TestPredictions, (numbered, fits), "predictions").splits:
        predicted, y = (np.concatenate([piece[k] for piece in pieces]) for k in (0, 1))
        params = {"sample_weight": np.concatenate([piece[2] for piece in pieces])} if scoring.params else {}
        columns = (predicted[:, 0, a] if one else predicted[:, :, a] for a in range(predicted.shape[2]))
        y = y[:, 0] if one else y
        scores.append([float(scoring.scorer(Predicted(), column, y, **params)) for column in columns])
    return np.array(scores)
