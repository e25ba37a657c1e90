"""Leave-one-out errors from a single fit to all rows.

Let H = Xc'W Xc + alpha I, omega = sum w, r_i = y_i - (prediction of the model fitted to all rows), and

    h_i = w_i (1/omega + xc_i'H^-1 xc_i)               the leverage (1/omega only with an intercept)               (1)

The model fitted without row i (intercept included) has at that row the error

    e_i = r_i / (1 - h_i)                                                                                       (2)

(Sherman-Morrison: w_i xc_i xc_i' is removed from H, and the mean shifts accordingly). One pass gives the model, another
the errors: with T of `ridge_path.py` the leverages of all alphas are (Xc T)^2 diag(1 / (1 + (alpha - a0) mu)).

With no more rows than columns every h_i is near 1 and (2) is 0/0; then the dual form is used (`row_space.py`).
For a row of leverage 1 (it alone determines a coefficient) the model is refitted with the weight of the row set to 0.

Reference: Cook and Weisberg, Residuals and Influence in Regression (1982), section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.engine.threads import solving
from summula.core.errors import DataError
from summula.core.numerics.statistics import Gram, TriangularFactor, off_centre
from summula.core.numerics.sums import Sum
from summula.linear_model.cross_validation.folds import Batch, grams_of
from summula.linear_model.cross_validation.held_out_row import HeldOutRowSource
from summula.linear_model.cross_validation.ridge_errors import SquaredErrors, scores_of
from summula.linear_model.cross_validation.ridge_path import (
    ACCURATE,
    FactorSystem,
    GramSystem,
    Path,
    RidgeSystem,
    paths,
)
from summula.linear_model.cross_validation.row_space import RowSpace, all_rows
from summula.linear_model.least_squares.problem import Fit, Problem
from summula.linear_model.least_squares.solver import SPARSE_GRAM_COLUMNS, TINY_CONDITION, TINY_FACTOR, solve

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["LeftOut", "LeftOutPath", "leave_one_out", "leave_one_out_path"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ALONE = 1e-8  # 1 - h below which the model is refitted without the row, if there is no penalty
_BLOCK_ELEMENTS = 2**17  # rows x (columns or alphas) per block: about a megabyte


@dataclass(frozen=True)
class LeftOut:
    """Prediction for each row by the model fitted to all other rows.

    Attributes
    ----------
    mean_squared_error : float, or ndarray of shape (n_targets,)
        Mean of the squared residuals, weighted by the sample weights.
    residuals, predictions : ndarray of shape (n_samples,) or (n_samples, n_targets), or None
        y minus the prediction, and the prediction, of the model fitted without the row; None for rows from files,
        which do not stay in memory.
    leverages : ndarray of shape (n_samples,), or None
        Derivative of the fitted value of each row with respect to its target: between 0 and 1, large for unusual rows.
    """

    mean_squared_error: Any
    residuals: Array | None = field(repr=False)
    predictions: Array | None = field(repr=False)
    leverages: Array | None = field(repr=False)


# ------------------------------------------------------------------------------------------------- equation (2), summed


class LeftOutModel(NamedTuple):
    """Models for several alphas, and the factors of their leverages.

    `coef` has the shape (n_features, n_targets, n_alphas); `mean` is the centre of the rows.
    """

    mean: Array
    weight: float
    fit_intercept: bool
    coef: Array
    paths: tuple[Path, ...]

    @classmethod
    def of(cls, system: RidgeSystem, alphas: Array, n_targets: int, fit_intercept: bool) -> Self:
        """The models of a system of normal equations."""
        some = tuple(paths(system, alphas))
        coef = np.empty((len(some[0].T), n_targets, len(alphas)))
        for path in some:
            coef[:, :, path.places] = path.coef()
        return cls(system.mean, system.weight, fit_intercept, coef, some)

    def errors(self, chunk: Chunk) -> Iterator[tuple[Chunk, Array, Array]]:
        """Rows in blocks, with their e and h of equations (2) and (1)."""
        whole = chunk if chunk.dtype == np.float64 else replace(chunk, dtype=np.dtype(np.float64))
        step = max(1, _BLOCK_ELEMENTS // max(len(self.coef), self.coef[0].size))
        if step < len(chunk) and not (whole.is_sparse or isinstance(whole.rows, tuple)):
            whole = replace(whole, rows=whole.block())
        for start in range(0, len(chunk), step):
            block = whole if step >= len(chunk) else whole.take(slice(start, start + step))
            yield block, *self._errors(block)

    @np.errstate(invalid="ignore", divide="ignore", over="ignore")
    def _errors(self, block: Chunk) -> tuple[Array, Array]:
        d, shape = len(self.coef), self.coef.shape[1:]
        assert block.y is not None
        Xc = block.X if block.is_sparse else block.block(origin=self.mean[:d])
        errors = self._product(Xc, self.coef.reshape(d, -1)).reshape(len(block), *shape)
        np.subtract((block.y - self.mean[d:])[:, :, None], errors, out=errors)
        leverage = self._leverages(Xc)
        leverage += 1.0 / self.weight if self.fit_intercept else 0.0
        if block.weight is not None:
            leverage *= block.weight[:, None]
        errors /= np.maximum(1.0 - leverage, _EPS)[:, None, :]
        return errors, leverage

    def _leverages(self, Xc: Any) -> Array:
        """Return xc'H^-1 xc for every row and alpha."""
        leverage = np.empty((Xc.shape[0], self.coef.shape[2]))
        for path in self.paths:
            Z = aligned(self._product(Xc, path.T))
            Z *= Z
            if len(self.paths) == 1:
                return product(Z, path.shrink[:, np.argsort(path.places)])
            leverage[:, path.places] = product(Z, path.shrink)
        return leverage

    def _product(self, Xc: Any, B: Array) -> Array:
        """Return centred rows times B; sparse rows are centred in the product."""
        return product(Xc, B) if isinstance(Xc, np.ndarray) else product(Xc, B) - self.mean[: len(B)] @ B


@dataclass(frozen=True)
class LeftOutSums(Sum):
    """Sums over rows of the weighted squared errors w e^2 per target and alpha, of their squares, and the spread of y.

    `joint` are the squares of their means over the targets. `alone` are the row numbers of rows of leverage 1, whose
    errors are excluded from the sums.
    """

    count: int
    weight: float
    total: Array
    square: Array
    joint: Array
    y_total: Array
    y_square: Array
    alone: tuple[tuple[int, Chunk], ...]

    @classmethod
    def of(cls, errors: Array, Y: Array, weight: Array | None) -> Self:
        """The sums of errors of shape (n, n_targets, n_alphas) and of targets about some origin."""
        squares = errors**2 if weight is None else weight[:, None, None] * errors**2
        square = (squares**2).sum(axis=0)
        joint = square[0] if len(square) == 1 else (squares.mean(axis=1) ** 2).sum(axis=0)
        sums = squares.sum(axis=0), square, joint
        Y = aligned(Y)
        if weight is None:
            return cls(len(Y), float(len(Y)), *sums, Y.sum(axis=0), (Y**2).sum(axis=0), ())
        totals = product(weight, Y), product(weight, Y**2)
        return cls(int((weight > 0).sum()), float(weight.sum()), *sums, *totals, ())

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[LeftOutModel, float]) -> Self:
        """Return the sums over one chunk; `params` are the model and the minimum 1 - h for which (2) is used."""
        model, least = params
        d, total, at = len(model.coef), None, chunk.start
        for block, errors, leverage in model.errors(chunk):
            assert block.y is not None
            rows = [] if least == -np.inf else np.flatnonzero(((1.0 - leverage) < least).any(axis=1)).tolist()
            errors[rows] = 0.0
            one = cls.of(errors, block.y - model.mean[d:], block.weight)
            if rows:
                one = replace(one, alone=tuple((at + row, block.take(slice(row, row + 1))) for row in rows))
            total, at = one if total is None else total.merge(one), at + len(block)
        assert total is not None, "a chunk has rows"
        return total

    @property
    def squared_errors(self) -> SquaredErrors:
        """Weighted sums of squared errors, from which scores are computed."""
        spread = self.y_square - self.y_total**2 / self.weight
        flat = spread <= 1e-15 * self.y_square
        return SquaredErrors(self.total, np.where(flat, 0.0, spread), self.weight, self.count)


@dataclass(frozen=True)
class LeftOutRows(Sum):
    """Errors and leverages of every row, with targets and weights, in pieces."""

    pieces: tuple[tuple[Array, Array, Array, Array | None], ...]

    @classmethod
    def map(cls, chunk: Chunk, params: LeftOutModel) -> Self:
        """The pieces of one chunk."""
        return cls(tuple((e, h, np.asarray(block.y), block.weight) for block, e, h in params.errors(chunk)))

    def stacked(self) -> tuple[Array, Array, Array, Array | None]:
        """Errors (n, n_targets, n_alphas), leverages (n, n_alphas), targets, weights."""
        e, h, y = (np.concatenate([np.asarray(piece[k]) for piece in self.pieces]) for k in range(3))
        weights = [piece[3] for piece in self.pieces if piece[3] is not None]
        return e, h, y, np.concatenate(weights) if weights else None


# --------------------------------------------------------------------------------------------------------- many alphas


class LeftOutPath(NamedTuple):
    """Sums of the errors for all alphas, errors of each row if requested, and the Gram matrix if it was computed."""

    sums: LeftOutSums
    errors: Array | None
    y: Array | None
    weight: Array | None
    gram: Gram | None

    def scores(self, name: str | None, apart: bool) -> Array:
        """Return a score of `FROM_SUMS` per alpha, and per target if `apart`; None is minus the mean of w e^2."""
        if name is None:
            each = -self.sums.total / self.sums.count
        else:
            each = scores_of(name, self.sums.squared_errors)
        return each.T if apart else each.mean(axis=0)

    @np.errstate(divide="ignore", invalid="ignore")
    def standard_errors(self, name: str | None, apart: bool) -> Array:
        """Return the standard errors of the scores for independent rows, by the delta method."""
        sums = self.sums
        n, mean = sums.count, sums.total / sums.count
        slope = np.ones_like(mean)  # derivative of the score with respect to the weighted mean of the squared errors
        if name == "r2":
            spread = sums.squared_errors.spread[:, None]
            slope = np.broadcast_to(np.where(spread > 0, sums.weight / spread, 0.0), mean.shape)
        elif name == "neg_root_mean_squared_error":
            slope = 0.5 / np.sqrt(sums.total / sums.weight)
        if apart or len(mean) == 1:
            variance = slope**2 * (sums.square / n - mean**2)
            variance = variance.T if apart else variance[0]
        elif self.errors is None:
            variance = slope[0] ** 2 * (sums.joint / n - mean.mean(axis=0) ** 2)
        else:
            w = np.ones(len(self.errors)) if self.weight is None else self.weight
            variance = (slope * (w[:, None, None] * self.errors**2)[w > 0]).mean(axis=1).var(axis=0)
        divisor = float(n) if name is None else sums.weight
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) * n / max(n - 1, 1) * n) / divisor)


def leave_one_out_path(run: Run, alphas: Array, fit_intercept: bool, by_row: bool) -> LeftOutPath:
    """Compute leave-one-out errors of ridge for every alpha; `by_row` also returns those of every row."""
    source = run.source
    d, t = source.n_features, source.n_targets
    if source.n_rows <= d:
        return _path_by_rows(run, alphas, fit_intercept)
    system, count, gram = _system(run, alphas, fit_intercept)
    if count <= d and not source.streams:  # the other rows have weight 0
        return _path_by_rows(run, alphas, fit_intercept)
    with solving(d):
        model = LeftOutModel.of(system, alphas, t, fit_intercept)
    if not by_row:
        return LeftOutPath(run.sum(LeftOutSums, (model, -np.inf), "leave-one-out errors"), None, None, None, gram)
    errors, _, y, weight = run.sum(LeftOutRows, model, "leave-one-out errors").stacked()
    return LeftOutPath(LeftOutSums.of(errors, y - model.mean[d:], weight), errors, y, weight, gram)


def _path_by_rows(run: Run, alphas: Array, fit_intercept: bool) -> LeftOutPath:
    source = run.source
    chunk = all_rows(run)
    _check_complete(run, chunk)
    _check_enough(run, source.n_rows if chunk.weight is None else int((chunk.weight > 0).sum()), fit_intercept)
    with solving(source.n_rows):
        space = RowSpace.of(chunk, fit_intercept)
        errors = space.errors(alphas)
    return LeftOutPath(LeftOutSums.of(errors, space.Yc, chunk.weight), errors, chunk.y, chunk.weight, None)


def _check_complete(run: Run, chunk: Chunk) -> None:
    X = chunk.X
    if not (np.isfinite(X.data if chunk.is_sparse else X).all() and np.isfinite(np.asarray(chunk.y)).all()):
        run.raise_if_not_finite()


def _check_enough(run: Run, count: int, fit_intercept: bool) -> None:
    if count < 1 + int(fit_intercept):
        raise DataError(
            f"Leave-one-out cross-validation of {type(run.estimator).__name__} needs at least 2 rows with positive "
            "weight; got 1 sample."
        )


def _system(run: Run, alphas: Array, fit_intercept: bool) -> tuple[RidgeSystem, int, Gram | None]:
    """Return the normal equations of all rows, from products or (if inaccurate) a factor, and the number of rows."""
    source = run.source
    d, p = source.n_features, source.n_features + source.n_targets
    origin = run.origin() if fit_intercept else np.zeros(p)
    wide = source.is_sparse and d > SPARSE_GRAM_COLUMNS
    limit = TINY_CONDITION if source.n_rows * d**2 <= TINY_FACTOR else ACCURATE
    gram = _gram(run, origin, wide)
    is_finite = gram.is_finite()  # if squares overflow: orthogonal transformations do not square the data
    if is_finite:
        if fit_intercept and not source.is_sparse and off_centre(gram):
            gram = _gram(run, gram.mean, wide)
        _check_enough(run, gram.count, fit_intercept)
        with solving(d):
            system = GramSystem.of(gram, d, fit_intercept)
            if wide or system.condition(float(alphas.min())) <= limit:
                return system, gram.count, gram
        origin = gram.mean if fit_intercept else origin
    factor = run.sum(TriangularFactor, (origin, True), "triangular factor")
    _check_enough(run, factor.count, fit_intercept)
    with solving(d):
        system_of_factor = FactorSystem.of(factor.R, factor.count, origin, d, fit_intercept)
    return system_of_factor, factor.count, gram if is_finite else None


def _gram(run: Run, origin: Array, wide: bool) -> Gram:
    """Return the Gram matrix of all rows in double precision; one shared sum if several would not fit into memory."""
    source = run.source
    if wide:
        return Gram.map(all_rows(run), origin)
    if source.dtype == np.float64:
        return run.sum(Gram, origin, "Gram matrix")
    return grams_of(run, [Batch.whole(source.n_rows)], origin)[1]


# --------------------------------------------------------------------------------------------- plain least squares


def leave_one_out(run: Run, fit: Fit, fit_intercept: bool) -> LeftOut:
    """Compute leave-one-out errors of a least-squares fit on its training rows."""
    source = run.source
    d, t, one = source.n_features, source.n_targets, source.one_target
    _check_enough(run, fit.count, fit_intercept)
    assert fit.half_inverse is not None
    every = np.arange(1)
    path = Path(fit.half_inverse, np.empty((0, t)), np.ones((fit.half_inverse.shape[1], 1)), every)
    mean = np.concatenate([fit.mean_x, fit.mean_y + fit.correction])
    model = LeftOutModel(mean, fit.weight, fit_intercept, fit.coef[:, :, None], (path,))
    if source.streams:
        sums = run.sum(LeftOutSums, (model, _ALONE), "leave-one-out errors")
        total = sums.total[:, 0]
        for row, chunk in sums.alone:
            w = 1.0 if chunk.weight is None else float(chunk.weight[0])
            total = total + w * _error_without(run, row, chunk, fit_intercept) ** 2
        mse = total / sums.weight
        return LeftOut(float(mse[0]) if one else mse, None, None, None)
    e, h, y, weight = run.sum(LeftOutRows, model, "leave-one-out errors").stacked()
    errors, leverage = e[:, :, 0], np.minimum(h[:, 0], 1.0)
    alone = np.flatnonzero(1.0 - h[:, 0] < _ALONE).tolist()
    space = RowSpace.of(all_rows(run), fit_intercept) if alone and source.n_rows <= d else None
    if space is not None and space.regular:
        errors = space.errors(np.zeros(1))[:, :, 0]
    else:
        for row in alone:
            errors[row] = _error_without(run, row, source.chunk(row, row + 1), fit_intercept)
    mse = np.average(errors**2, axis=0, weights=weight)
    if one:
        return LeftOut(float(mse[0]), errors[:, 0], y[:, 0] - errors[:, 0], leverage)
    return LeftOut(mse, errors, y - errors, leverage)


def _error_without(run: Run, row: int, chunk: Chunk, fit_intercept: bool) -> Array:
    """Return the errors at a row (the one in `chunk`) of the model fitted to all other rows."""
    from summula.core.estimator.run import Run

    problem = Problem(fit_intercept, np.zeros(run.source.n_targets), False)
    fit = solve(Run(run.estimator, HeldOutRowSource(run.source, row), quiet=True), problem, lambda fit: None)
    assert chunk.y is not None
    predicted = product(chunk.block(np.float64), fit.coef)[0] + (fit.intercept if fit_intercept else 0.0)
    return np.asarray(chunk.y[0] - predicted)
