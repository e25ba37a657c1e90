"""Lasso: dense and wide, sparse and wider, with alpha chosen by cross-validation; L1-penalised logistic regression."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.workload import Contender, FitWorkload, Quality

NONZEROS_PER_ROW = 50


class Regression(NamedTuple):
    """Rows X, targets y, and the penalty."""

    X: Any
    y: np.ndarray
    alpha: float


def _penalty(X: Any, y: np.ndarray) -> float:
    return float(np.abs(X.T @ (y - y.mean())).max()) / len(y) / 50


def dense_columns(rows: int, columns: int) -> Regression:
    """Many normal columns, a hundred of which are relevant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = X[:, :100] @ rng.standard_normal(100) + 3 * rng.standard_normal(rows)
    return Regression(X, y, _penalty(X, y))


def sparse_columns(rows: int, columns: int) -> Regression:
    """Fifty entries per row; two hundred columns are relevant."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((rows, columns), density=NONZEROS_PER_ROW / columns, format="csc", rng=rng)
    signal = np.zeros(columns)
    signal[rng.choice(columns, min(200, columns), replace=False)] = 5 * rng.standard_normal(min(200, columns))
    y = X @ signal + 0.3 * rng.standard_normal(rows)
    return Regression(X, y, _penalty(X, y))


def objective(data: Regression, model: Any, alpha: float | None = None) -> float:
    """||y - Xw - b||^2 / (2 n) + alpha |w|_1."""
    w = np.asarray(model.coef_, np.float64).ravel()
    r = data.y - data.X @ w - float(np.ravel(model.intercept_)[0])
    return float(r @ r) / (2 * len(r)) + (data.alpha if alpha is None else alpha) * float(np.abs(w).sum())


def chosen_objective(data: Regression, model: Any) -> float:
    """The smallest mean squared error over the alphas, the criterion of the choice."""
    return float(np.mean(model.mse_path_, axis=1).min())


def dense_classes(rows: int, columns: int) -> Regression:
    """Two classes that depend on a hundred of many normal columns; the penalty is a tenth of the largest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = (X[:, :100] @ rng.standard_normal(100) + 3 * rng.standard_normal(rows) > 0).astype(int)
    return Regression(X, y, float(np.abs(X.T @ (y - 0.5)).max()) / 10)


def logistic_objective(data: Regression, model: Any) -> float:
    """sum of log(1 + e^-margin) + alpha |w|_1, without an intercept."""
    w = np.asarray(model.coef_, np.float64).ravel()
    return float(np.logaddexp(0, (1 - 2 * data.y) * (data.X @ w)).sum()) + data.alpha * float(np.abs(w).sum())


def _fit(library: str, module: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Regression], Any]:
        Lasso = import_module(module).Lasso
        return lambda data: Lasso(alpha=data.alpha, **parameters).fit(data.X, data.y)

    return Contender(library, load)


def _fit_cv(library: str, module: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Regression], Any]:
        LassoCV = import_module(module).LassoCV
        return lambda data: LassoCV(cv=5, **parameters).fit(data.X, data.y)

    return Contender(library, load)


def _fit_classes(library: str, module: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Regression], Any]:
        Logistic = import_module(module).LogisticRegression
        return lambda data: Logistic(C=1 / data.alpha, fit_intercept=False, **parameters).fit(data.X, data.y)

    return Contender(library, load)


def _workload(name: str, title: str, shape: tuple[int, int], make_data: Callable[..., Regression]) -> FitWorkload:
    return FitWorkload(
        name=name,
        title=title,
        shape=shape,
        quick_shape=(200, 1_000),
        make_data=make_data,
        contenders=(
            _fit("summula", "summula.linear_model"),
            _fit("skglm", "skglm", tol=1e-6),
            _fit("celer", "celer", tol=1e-6),
        ),
        quality=Quality(partial(objective), "objective", tolerance=1e-6),
    )


WORKLOADS = (
    _workload("lasso-dense", "Lasso at a fiftieth of the largest alpha", (2_000, 10_000), dense_columns),
    _workload("lasso-sparse", f"Lasso, sparse, {NONZEROS_PER_ROW} entries per row", (20_000, 100_000), sparse_columns),
    FitWorkload(
        name="lasso-cv",
        title="LassoCV, 100 alphas, 5 folds",
        shape=(2_000, 3_000),
        quick_shape=(200, 150),
        make_data=dense_columns,
        contenders=(
            _fit_cv("summula", "summula.linear_model"),
            _fit_cv("scikit-learn", "sklearn.linear_model"),
        ),
        quality=Quality(chosen_objective, "objective", tolerance=1e-3),
        rounds=3,
    ),
    FitWorkload(
        name="logistic-l1",
        title="Logistic regression, L1, at a tenth of the largest penalty",
        shape=(3_000, 5_000),
        quick_shape=(200, 1_000),
        make_data=dense_classes,
        contenders=(
            _fit_classes("summula", "summula.linear_model", l1_ratio=1.0),
            _fit_classes("celer", "celer", tol=1e-6),
            _fit_classes("scikit-learn", "sklearn.linear_model", l1_ratio=1.0, solver="liblinear"),
        ),
        quality=Quality(logistic_objective, "objective", tolerance=1e-6),
    ),
)
