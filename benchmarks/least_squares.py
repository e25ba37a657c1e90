"""Least squares and ridge: dense, single precision, sparse."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.threads import pin_intelex
from benchmarks.workload import Contender, FitWorkload, Quality

ALPHA = 1.0
ALPHAS = np.logspace(-3, 5, 50)
NONZEROS_PER_ROW = 10
BLOCK_ROWS = 65_536


class Regression(NamedTuple):
    """Rows X and targets y."""

    X: Any
    y: np.ndarray


DataMaker = Callable[[int, int], Regression]


def dense_regression(rows: int, columns: int, dtype: type = np.float64) -> Regression:
    """Normal columns of unequal mean and scale, a linear signal, unit noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=dtype)
    X *= np.linspace(0.5, 2.0, columns, dtype=dtype)
    X += np.linspace(-1.0, 3.0, columns, dtype=dtype)
    y = X @ rng.standard_normal(columns, dtype=dtype) + rng.standard_normal(rows, dtype=dtype)
    return Regression(X, y)


def fortran_regression(rows: int, columns: int) -> Regression:
    """The same in Fortran order, as in frames."""
    X, y = dense_regression(rows, columns)
    return Regression(np.asfortranarray(X), y)


def sparse_regression(rows: int, columns: int) -> Regression:
    """Rows with ten normal entries at random columns, a linear signal, unit noise."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, columns, size=(rows, NONZEROS_PER_ROW), dtype=np.int32)
    starts = np.arange(0, places.size + 1, NONZEROS_PER_ROW, dtype=np.int32)
    X = sparse.csr_array((rng.standard_normal(places.size), places.ravel(), starts), shape=(rows, columns))
    X.sum_duplicates()
    return Regression(X, X @ rng.standard_normal(columns) + rng.standard_normal(rows))


def penalised_squares(data: Regression, model: Any, alpha: float) -> float:
    """sum (y - Xw - b)^2 + alpha ||w||^2, in double precision, block by block."""
    w = np.asarray(model.coef_, dtype=np.float64).ravel()
    total = alpha * float(w @ w)
    for start in range(0, len(data.y), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        residual = data.y[block] - data.X[block].astype(np.float64) @ w - float(model.intercept_)
        total += float(residual @ residual)
    return total


def _fit(make_model: Callable[[], Any]) -> Callable[[Regression], Any]:
    return lambda data: make_model().fit(data.X, data.y)


def _summula(name: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Regression], Any]:
        from summula import linear_model

        return _fit(partial(getattr(linear_model, name), **parameters))

    return Contender("summula", load)


def _intelex(name: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Regression], Any]:
        from sklearnex import linear_model

        pin_intelex()
        return _fit(partial(getattr(linear_model, name), **parameters))

    return Contender("scikit-learn-intelex", load)


def _sklearn(name: str, setting: str = "", **parameters: Any) -> Contender:
    def load() -> Callable[[Regression], Any]:
        from sklearn import linear_model

        return _fit(partial(getattr(linear_model, name), **parameters))

    return Contender(f"scikit-learn{setting}", load)


def _dense(
    name: str, model: str, data: str, shape: tuple[int, int], make_data: DataMaker, tolerance: float, **parameters: Any
) -> FitWorkload:
    return FitWorkload(
        name=name,
        title=f"{model}, {data}",
        shape=shape,
        quick_shape=(max(shape[0] // 100, 1_000), shape[1]),
        make_data=make_data,
        contenders=tuple(contender(model, **parameters) for contender in (_summula, _intelex, _sklearn)),
        quality=Quality(partial(penalised_squares, alpha=parameters.get("alpha", 0.0)), "objective", tolerance),
    )


def _linear_regression(rows: int, order: str = "", make_data: DataMaker = dense_regression) -> FitWorkload:
    name = f"linear-regression-{rows // 1000}k{'-fortran' if order else ''}"
    return _dense(name, "LinearRegression", f"float64{order}", (rows, 50), make_data, tolerance=1e-9)


def _ridge_dense(dtype: type, tolerance: float) -> FitWorkload:
    precision = np.dtype(dtype).name
    name, make_data = f"ridge-dense-{precision}", partial(dense_regression, dtype=dtype)
    return _dense(name, "Ridge", precision, (500_000, 100), make_data, tolerance, alpha=ALPHA)


def unexplained(data: Regression, model: Any) -> float:
    """1 - R2, averaged over the folds, at the alpha chosen."""
    return 1.0 - float(model.best_score_)


WORKLOADS = (
    _linear_regression(10_000),
    _linear_regression(100_000),
    _linear_regression(1_000_000),
    _linear_regression(1_000_000, ", Fortran order", fortran_regression),
    _ridge_dense(np.float64, tolerance=1e-9),
    _ridge_dense(np.float32, tolerance=1e-6),
    FitWorkload(
        name="ridge-sparse",
        title="Ridge, sparse float64, 10 entries per row",
        shape=(1_000_000, 10_000),
        quick_shape=(20_000, 200),
        make_data=sparse_regression,
        contenders=(
            _summula("Ridge", alpha=ALPHA),
            _sklearn("Ridge", " sparse_cg", alpha=ALPHA, solver="sparse_cg", tol=1e-3),
            _sklearn("Ridge", " lsqr", alpha=ALPHA, solver="lsqr", tol=1e-3),
        ),
        quality=Quality(partial(penalised_squares, alpha=ALPHA), "objective", tolerance=1e-6),
    ),
    FitWorkload(
        name="ridge-cv",
        title=f"RidgeCV, {len(ALPHAS)} alphas, 5 folds",
        shape=(100_000, 100),
        quick_shape=(2_000, 20),
        make_data=dense_regression,
        contenders=(_summula("RidgeCV", alphas=ALPHAS, cv=5), _sklearn("RidgeCV", alphas=ALPHAS, cv=5)),
        quality=Quality(unexplained, "objective", tolerance=1e-9),
        rounds=3,
    ),
)
