"""Histogram gradient boosting: a hundred trees of 31 leaves; what counts as equal is the loss on rows held out."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from benchmarks.threads import THREADS
from benchmarks.workload import Contender, FitWorkload, Quality

HELD_OUT_ROWS = 100_000
TREES = 100


class Rows(NamedTuple):
    """Rows X with answers y to learn from, and others to judge by."""

    X: np.ndarray
    y: np.ndarray
    X_fresh: np.ndarray
    y_fresh: np.ndarray


def _drawn(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Normal columns in single precision, and a score with curves and interactions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows + HELD_OUT_ROWS, columns), dtype=np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] ** 2 - 0.5 * np.abs(X[:, 4])
    score += 0.3 * X[:, 5:10].sum(axis=1)
    return X, score.astype(np.float64), rng


def _divided(X: np.ndarray, y: np.ndarray) -> Rows:
    return Rows(X[:-HELD_OUT_ROWS], y[:-HELD_OUT_ROWS], X[-HELD_OUT_ROWS:], y[-HELD_OUT_ROWS:])


def two_classes(rows: int, columns: int) -> Rows:
    """The class by a coin whose odds are the score."""
    X, score, rng = _drawn(rows, columns)
    return _divided(X, (rng.random(len(X)) < special.expit(score)).astype(np.int64))


def five_classes(rows: int, columns: int) -> Rows:
    """The class by the score, with noise, cut into five."""
    X, score, rng = _drawn(rows, columns)
    noisy = score + rng.standard_normal(len(X))
    return _divided(X, np.digitize(noisy, np.quantile(noisy, [0.2, 0.4, 0.6, 0.8])))


def numbers(rows: int, columns: int) -> Rows:
    """The score, with noise."""
    X, score, rng = _drawn(rows, columns)
    return _divided(X, score + rng.standard_normal(len(X)))


def log_loss(data: Rows, model: Any) -> float:
    """The mean of log(1 / P(y)) over the rows held out."""
    p = np.asarray(model.predict_proba(data.X_fresh))
    return float(-np.log(p[np.arange(len(p)), data.y_fresh]).mean())


def squared_error(data: Rows, model: Any) -> float:
    """The mean squared error over the rows held out."""
    return float(np.mean((np.asarray(model.predict(data.X_fresh)) - data.y_fresh) ** 2))


def _of(library: str, module: str, name: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Rows], Any]:
        model = partial(getattr(import_module(module), name), **parameters)
        return lambda data: model().fit(data.X, data.y)

    return Contender(library, load)


def _contenders(kind: str) -> tuple[Contender, ...]:
    """The same trees for everybody: as many, as large, as slow to learn."""
    name, ours = f"HistGradientBoosting{kind}", {"max_iter": TREES, "early_stopping": False}
    shared = {"n_estimators": TREES, "learning_rate": 0.1, "n_jobs": THREADS}
    light = {"num_leaves": 31, "min_child_samples": 20, "verbose": -1, **shared}
    other = {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0, "reg_lambda": 0.0}
    return (
        _of("summula", "summula.ensemble", name, random_state=0, **ours),
        _of("LightGBM", "lightgbm", f"LGBM{kind}", **light),
        _of("LightGBM, quantised", "lightgbm", f"LGBM{kind}", use_quantized_grad=True, **light),
        _of("XGBoost", "xgboost", f"XGB{kind}", **other, **shared),
        _of("scikit-learn", "sklearn.ensemble", name, **ours),
    )


WORKLOADS = (
    FitWorkload(
        name="boosting-binary",
        title=f"HistGradientBoostingClassifier, two classes, {TREES} trees",
        shape=(1_000_000, 28),
        quick_shape=(5_000, 12),
        make_data=two_classes,
        contenders=_contenders("Classifier"),
        quality=Quality(log_loss, "objective", tolerance=2e-3),
        rounds=3,
    ),
    FitWorkload(
        name="boosting-classes",
        title=f"HistGradientBoostingClassifier, five classes, {TREES} trees each",
        shape=(200_000, 28),
        quick_shape=(3_000, 12),
        make_data=five_classes,
        contenders=_contenders("Classifier"),
        quality=Quality(log_loss, "objective", tolerance=5e-3),
        rounds=3,
    ),
    FitWorkload(
        name="boosting-regression",
        title=f"HistGradientBoostingRegressor, {TREES} trees",
        shape=(1_000_000, 28),
        quick_shape=(5_000, 12),
        make_data=numbers,
        contenders=_contenders("Regressor"),
        quality=Quality(squared_error, "objective", tolerance=2e-3),
        rounds=3,
    ),
)
