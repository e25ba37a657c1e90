"""Random forests, judged by rows held out; scikit-learn-intelex takes part where it is installed."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.threads import THREADS
from benchmarks.trees import Rows, minus_area, numbers, squared_error, two_classes
from benchmarks.workload import Contender, FitWorkload, Quality

TREES = 50
LEAF = 2
LIBRARIES = (("summula", "summula.ensemble"), ("scikit-learn", "sklearn.ensemble"), ("intelex", "sklearnex.ensemble"))


def _model(module: str, kind: str) -> Any:
    found = getattr(import_module(module), f"RandomForest{kind}")
    return found(TREES, min_samples_leaf=LEAF, random_state=0, n_jobs=THREADS)


def _fit(module: str, kind: str) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        _model(module, kind)

        def work(data: Rows) -> Any:
            return _model(module, kind).fit(data.X, data.y)

        return work

    return load


def _predict(module: str, kind: str) -> Callable[[], Callable[[Rows], Any]]:
    fitted: dict[tuple[int, ...], Any] = {}  # by the shape of the rows: memory is measured after small rows

    def load() -> Callable[[Rows], Any]:
        _model(module, kind)

        def work(data: Rows) -> Any:
            if data.X.shape not in fitted:
                fitted[data.X.shape] = _model(module, kind).fit(data.X_test, data.y_test)
            return fitted[data.X.shape].predict(data.X)

        return work

    return load


def mean_error(data: Rows, predicted: np.ndarray) -> float:
    """The mean squared error of the predictions."""
    return float(np.mean((data.y - predicted) ** 2))


def _contenders(make: Any, kind: str) -> tuple[Contender, ...]:
    return tuple(Contender(name, make(module, kind)) for name, module in LIBRARIES)


def _fit_workload(name: str, title: str, shape: tuple[int, int], kind: str, data: Any, quality: Quality) -> FitWorkload:
    title = f"RandomForest{kind}, {title}{TREES} trees, at least {LEAF} rows per leaf"
    return FitWorkload(name, title, shape, (2_000, 12), data, _contenders(_fit, kind), quality)


WORKLOADS = (
    _fit_workload(
        "forest-classes",
        "two classes, ",
        (50_000, 30),
        "Classifier",
        two_classes,
        Quality(minus_area, "objective", tolerance=3e-3),
    ),
    _fit_workload(
        "forest-regression",
        "",
        (100_000, 20),
        "Regressor",
        numbers,
        Quality(squared_error, "objective", tolerance=1e-2),
    ),
    FitWorkload(
        name="forest-predict",
        title=f"RandomForestRegressor of {TREES} trees, fitted to 20,000 rows: predict",
        shape=(1_000_000, 20),
        quick_shape=(5_000, 12),
        make_data=numbers,
        contenders=_contenders(_predict, "Regressor"),
        quality=Quality(mean_error, "objective", tolerance=1e-2),
    ),
)
