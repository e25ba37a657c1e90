"""Cross-validation and feature selection."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Contender, FitWorkload, Quality

Data = tuple[np.ndarray, np.ndarray]


def regression(rows: int, columns: int) -> Data:
    """Correlated columns, a third of which are relevant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) @ (np.eye(columns) + 0.3 * rng.standard_normal((columns, columns)))
    w = rng.standard_normal(columns) * (np.arange(columns) % 3 == 0)
    return X, X @ w + 3.0 * rng.standard_normal(rows)


def _summula_folds() -> Callable[[Data], Any]:
    from summula.linear_model import LinearRegression
    from summula.model_selection import cross_val_score

    return lambda data: cross_val_score(LinearRegression(), *data, cv=10)


def _sklearn_folds() -> Callable[[Data], Any]:
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score

    return lambda data: cross_val_score(LinearRegression(), *data, cv=10)


def _summula_search() -> Callable[[Data], Any]:
    from summula.feature_selection import SequentialFeatureSelector
    from summula.linear_model import LinearRegression

    return lambda data: SequentialFeatureSelector(LinearRegression(), n_features_to_select=10).fit(*data).support_


def _sklearn_search() -> Callable[[Data], Any]:
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression

    return lambda data: SequentialFeatureSelector(LinearRegression(), n_features_to_select=10).fit(*data).support_


def unexplained(data: Data, support: Any) -> float:
    """Fraction of the variance of y that the selected columns do not explain."""
    X, y = data
    A = X[:, support] - X[:, support].mean(axis=0)
    b = y - y.mean()
    residual = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
    return float(residual @ residual / (b @ b))


WORKLOADS = (
    FitWorkload(
        "cross-validation",
        "LinearRegression, 10-fold cross-validation",
        (200_000, 40),
        (2_000, 10),
        regression,
        (Contender("summula", _summula_folds), Contender("scikit-learn", _sklearn_folds)),
        Quality(lambda data, scores: 1.0 - float(np.mean(scores)), "objective", tolerance=1e-6),
    ),
    FitWorkload(
        "sequential-selection",
        "SequentialFeatureSelector, forward to 10 columns, cv=5",
        (20_000, 40),
        (500, 14),
        regression,
        (Contender("summula", _summula_search), Contender("scikit-learn", _sklearn_search)),
        Quality(unexplained, "objective", tolerance=1e-6),
        rounds=3,
    ),
)
