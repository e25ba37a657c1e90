"""Cross-validated scores of least squares on any subset of the columns, from one pass over the rows.

The pass sums the products of all columns of each fold. For a split with centred training products G, and products M of
the test rows about the training means, the ridge coefficients of a subset S and its squared error on the test rows are

    w_S = (G_SS + alpha I)^-1 G_Sy                                                                              (1)
    sum of squared errors = M_yy - 2 w_S' M_Sy + w_S' M_SS w_S                                                  (2)

so every further subset costs |S|^3, for any number of rows. The systems of all candidates of a step have the same
size and are solved together. By interlacing, no subset is worse conditioned than all columns together; if these are
nearly collinear, or (2) cancels, nothing is returned, and the caller fits the subsets one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from summula.core.estimator.input.splits import splits_of
from summula.linear_model.cross_validation.folds import batches_of, combined, grams_of, most_groups
from summula.linear_model.cross_validation.ridge_errors import FROM_SUMS, SquaredErrors, scores_of
from summula.linear_model.linear_regression import LinearRegression
from summula.linear_model.ridge import Ridge

__all__ = ["SubsetScores", "subset_scores"]

Array = NDArray[np.float64]

_SMALLEST = 1e-8  # smallest eigenvalue of the correlations for accurate products
_RESIDUAL = 1e-6  # fraction of the total sum of squares below which (2) cancels


class SplitProducts(NamedTuple):
    """Products of one split: G + alpha I and G_y of scaled columns, M_xx, M_xy and M_yy, and the test rows."""

    train: Array
    train_y: Array
    test: Array
    test_y: Array
    around: float
    spread: float
    weight: float
    rows: int


class SubsetScores(NamedTuple):
    """Products of all splits; called with subsets it returns their mean scores."""

    splits: list[SplitProducts]
    scoring: str

    def __call__(self, subsets: NDArray[np.intp]) -> Array | None:
        """Return the mean score of each subset (rows of column numbers); None if digits are lost."""
        total = np.zeros(len(subsets))
        for split in self.splits:
            squares = _squared_errors(split, subsets)
            if (squares < _RESIDUAL * split.around).any():
                return None
            errors = SquaredErrors(squares[None, :], np.array([split.spread]), split.weight, split.rows)
            total += scores_of(self.scoring, errors)[0]
        return total / len(self.splits)


def _squared_errors(split: SplitProducts, subsets: NDArray[np.intp]) -> Array:
    """Equations (1) and (2) for subsets of one size."""
    rows, columns = subsets[:, :, None], subsets[:, None, :]
    w = np.linalg.solve(split.train[rows, columns], split.train_y[subsets][:, :, None])[:, :, 0]
    explained = 2 * (w * split.test_y[subsets]).sum(axis=1)
    return np.asarray(split.around - explained + (w * (split.test[rows, columns] @ w[:, :, None])[:, :, 0]).sum(axis=1))


def subset_scores(estimator: Any, X: Any, y: Any, scoring: Any, cv: Any) -> SubsetScores | None:
    """Sum the products of all folds; None for other estimators and scores, or where products lose too many digits."""
    name = "r2" if scoring is None else scoring
    if type(estimator) not in (LinearRegression, Ridge) or not isinstance(name, str) or name not in FROM_SUMS:
        return None
    alpha = getattr(estimator, "alpha", 0.0)
    if getattr(estimator, "positive", False) or np.ndim(alpha) != 0 or getattr(estimator, "formula", None) is not None:
        return None
    assert is_regressor(estimator)
    splits = list(splits_of(cv, X, y))
    with clone(estimator)._fitting(X, y, None) as run:
        source, d = run.source, run.source.n_features
        if source.is_sparse or source.n_targets != 1 or source.n_rows <= d or source.dtype != np.float64:
            return None
        batches = batches_of(splits, source.n_rows, most_groups(d + 1))
        origin = run.origin() if estimator.fit_intercept else np.zeros(d + 1)
        sums, total = grams_of(run, batches, origin)
        if not total.is_finite():
            return None
        found = []
        for one in sums:
            for number in range(len(one.batch.train)):
                train = combined(one.groups, one.batch.train[number], total)
                test = combined(one.groups, one.batch.test[number], total)
                products = _products(train, test, d, float(alpha), bool(estimator.fit_intercept))
                if products is None:
                    return None
                found.append(products)
    return SubsetScores(found, name)


def _products(train: Any, test: Any, d: int, alpha: float, fit_intercept: bool) -> SplitProducts | None:
    """Return the products of one split, scaled by the training columns; None if columns are constant or collinear."""
    mean = train.mean if fit_intercept else np.zeros(d + 1)
    G = train.centred() if fit_intercept else train.products
    diagonal = np.diag(G)[:d] + alpha
    noise = np.finfo(np.float64).eps * np.diag(train.products)[:d] * 64
    if (diagonal <= noise).any() or train.count <= d:
        return None
    unit = 1 / np.sqrt(diagonal)
    A = (G[:d, :d] + alpha * np.eye(d)) * unit * unit[:, None]
    if np.linalg.eigvalsh(A)[0] < _SMALLEST:
        return None
    M = test.recentre(mean).products
    spread = float(test.centred()[d, d])
    spread = spread if spread > 1e-15 * float(test.products[d, d]) else 0.0
    return SplitProducts(
        A, G[:d, d] * unit, M[:d, :d] * unit * unit[:, None], M[:d, d] * unit, float(M[d, d]), spread, test.weight,
        test.count,
    )  # fmt: skip
