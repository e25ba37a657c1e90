"""Data, splits and refits with which scores and selections of `RidgeCV` are compared."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import linalg
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from threadpoolctl import threadpool_limits

ALPHAS = np.logspace(-3, 5, 9)
SPLITTERS = {
    "KFold": KFold(5),
    "KFold, shuffled": KFold(4, shuffle=True, random_state=0),
    "RepeatedKFold": RepeatedKFold(n_splits=3, n_repeats=2, random_state=1),
    "ShuffleSplit": ShuffleSplit(4, random_state=2),
    "ShuffleSplit, some rows in neither": ShuffleSplit(3, test_size=0.2, train_size=0.3, random_state=3),
    "TimeSeriesSplit": TimeSeriesSplit(4),
    "PredefinedSplit": PredefinedSplit(np.arange(90) % 7 - 1),
    "LeaveOneOut": LeaveOneOut(),
}
splitters = pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS.keys())


def data(n=90, d=6, targets=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.3, 3, d) + np.arange(d)
    y = X @ rng.normal(size=(d, max(targets, 1))) + 4 * rng.normal(size=(n, max(targets, 1))) + 3
    return X, y if targets else y[:, 0], rng.uniform(0.1, 3.0, n)


def ridge(X, y, w, alpha, intercept):
    """Return coefficients and intercept by a QR factorisation of the rows, robust to units and collinearity."""
    w = np.ones(len(X)) if w is None else w
    xbar, ybar = (np.average(a, axis=0, weights=w) if intercept else np.zeros(a.shape[1:]) for a in (X, y))
    root = np.sqrt(w).reshape(-1, *[1] * (y.ndim - 1))
    A = np.vstack([np.sqrt(w)[:, None] * (X - xbar), np.sqrt(alpha) * np.eye(X.shape[1])])
    b = np.concatenate([root * (y - ybar), np.zeros((X.shape[1], *y.shape[1:]))])
    Q, R = linalg.qr(A, mode="economic")
    v = linalg.solve_triangular(R, Q.T @ b)
    return v, ybar - xbar @ v


def remembered(refits):
    """The same refits are the reference for every solver; being small, they are faster on one BLAS thread."""
    known = {}

    @functools.wraps(refits)
    def once(*given, **options):
        given = [list(value) if isinstance(value, Iterator) else value for value in given]
        key = pickle.dumps((given, options))
        if key not in known:
            with threadpool_limits(1, "blas"):
                known[key] = refits(*given, **options)
        return known[key]

    return once


@remembered
def refitted_scores(X, y, w, alphas, splits, intercept=True, score=r2_score):
    """Shape (n_splits, n_alphas), one refit for each."""
    scores = []
    for train, test in splits:
        row = []
        for alpha in alphas:
            v, b = ridge(X[train], y[train], None if w is None else w[train], alpha, intercept)
            row.append(score(y[test], X[test] @ v + b, sample_weight=None if w is None else w[test]))
        scores.append(row)
    return np.array(scores)


@remembered
def refitted_errors(X, y, w, alphas, intercept=True):
    """Leave-one-out errors, shape (n, n_alphas) or (n, n_targets, n_alphas)."""
    errors = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        fits = (ridge(X[rest], y[rest], None if w is None else w[rest], alpha, intercept) for alpha in alphas)
        errors.append([y[i] - X[i] @ v - b for v, b in fits])
    return np.moveaxis(np.array(errors), 1, -1)


def minus_mse(y, predicted, sample_weight=None):
    return -mean_squared_error(y, predicted, sample_weight=sample_weight)
