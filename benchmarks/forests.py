"""Random forests, evaluated on held-out rows; scikit-learn-intelex is included if it is installed."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.threads import THREADS
from benchmarks.trees import Rows, minus_area, numbers, squared_error, two_classes
from benchmarks.workload import Contender, FitWorkload, Quality

TREES = 50
FEW_TREES, FEW_ROUNDS = 10, 2  # for regression, where scikit-learn tries all columns at every node
LEAF = 2
LIBRARIES = (("summula", "summula.ensemble"), ("scikit-learn", "sklearn.ensemble"), ("intelex", "sklearnex.ensemble"))


def _model(module: str, kind: str, n_trees: int) -> Any:
    found = getattr(import_module(module), f"RandomForest{kind}")
    return found(n_trees, min_samples_leaf=LEAF, random_state=0, n_jobs=THREADS)


def _fit(module: str, kind: str, n_trees: int) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        _model(module, kind, n_trees)

        def work(data: Rows) -> Any:
            return _model(module, kind, n_trees).fit(data.X, data.y)

        return work

    return load


def _predict(module: str, kind: str, n_trees: int) -> Callable[[], Callable[[Rows], Any]]:
    fitted: dict[tuple[int, ...], Any] = {}  # keyed by shape: memory is measured after a run on small data

    def load() -> Callable[[Rows], Any]:
        _model(module, kind, n_trees)

        def work(data: Rows) -> Any:
            if data.X.shape not in fitted:
                fitted[data.X.shape] = _model(module, kind, n_trees).fit(data.X_test, data.y_test)
            return fitted[data.X.shape].predict(data.X)

        return work

    return load


def mean_error(data: Rows, predicted: np.ndarray) -> float:
    """The mean squared error of the predictions."""
    return float(np.mean((data.y - predicted) ** 2))


def _contenders(make: Any, kind: str, n_trees: int = TREES) -> tuple[Contender, ...]:
    return tuple(Contender(name, make(module, kind, n_trees)) for name, module in LIBRARIES)


def _fit_workload(name: str, kind: str, what: str, shape: tuple[int, int], n_trees: int, rounds: int) -> FitWorkload:
    is_classifier = kind == "Classifier"
    return FitWorkload(
        name=f"forest-{name}",
        title=f"RandomForest{kind}, {what}{n_trees} trees, at least {LEAF} rows per leaf",
        shape=shape,
        quick_shape=(2_000, 12),
        make_data=two_classes if is_classifier else numbers,
        contenders=_contenders(_fit, kind, n_trees),
        quality=Quality(minus_area, "objective", 3e-3) if is_classifier else Quality(squared_error, "objective", 1e-2),
        rounds=rounds,
    )


WORKLOADS = (
    _fit_workload("classes", "Classifier", "two classes, ", (50_000, 30), TREES, rounds=7),
    _fit_workload("regression", "Regressor", "", (100_000, 20), FEW_TREES, FEW_ROUNDS),
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
