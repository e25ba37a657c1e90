"""Decision trees with exact thresholds, and boosting of such trees, evaluated on held-out rows."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import mean_squared_error, roc_auc_score

from benchmarks.workload import Contender, FitWorkload, Quality

Shape = tuple[int, int]

LEAF = 20
STAGES = 100
FEW_ROUNDS = 2  # rounds of boosting, for which scikit-learn needs half a minute
TEST_ROWS = 20_000


class Rows(NamedTuple):
    """Training rows and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def _numbers(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows)


def numbers(rows: int, columns: int) -> Rows:
    """A sum and a product of columns, with noise."""
    return Rows(*_numbers(rows, columns, 0), *_numbers(TEST_ROWS, columns, 1))


def two_classes(rows: int, columns: int) -> Rows:
    """Whether that target is positive."""
    X, y, X_test, y_test = numbers(rows, columns)
    return Rows(X, y > 0, X_test, y_test > 0)


def _fit(module: str, kind: str) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        found = getattr(import_module(module), f"DecisionTree{kind}")

        def work(data: Rows) -> Any:
            return found(min_samples_leaf=LEAF, random_state=0).fit(data.X, data.y)

        return work

    return load


def minus_area(data: Rows, model: Any) -> float:
    """The negative area under the ROC curve of the test rows."""
    return -float(roc_auc_score(data.y_test, model.predict_proba(data.X_test)[:, 1]))


def squared_error(data: Rows, model: Any) -> float:
    """The mean squared error over the test rows."""
    return float(mean_squared_error(data.y_test, model.predict(data.X_test)))


def _fit_stages(module: str, name: str, options: dict[str, Any]) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        found = getattr(import_module(module), name)

        def work(data: Rows) -> Any:
            return found(n_estimators=STAGES, random_state=0, **options).fit(data.X, data.y)

        return work

    return load


def _against_sklearn(
    name: str, title: str, shape: Shape, quick_shape: Shape, data: Any, fit: Any, judge: Any, rounds: int
) -> FitWorkload:
    contenders = (Contender("summula", fit("summula")), Contender("scikit-learn", fit("sklearn")))
    quality = Quality(judge, "objective", tolerance=3e-3)
    return FitWorkload(name, title, shape, quick_shape, data, contenders, quality, rounds)


def _workload(name: str, title: str, data: Any, kind: str, judge: Any) -> FitWorkload:
    title = f"DecisionTree{kind}, {title}, at least {LEAF} rows per leaf"

    def fit(library: str) -> Any:
        return _fit(f"{library}.tree", kind)

    return _against_sklearn(f"tree-{name}", title, (100_000, 20), (3_000, 12), data, fit, judge, 7)


def _stages(name: str, title: str, data: Any, judge: Any, **options: Any) -> FitWorkload:
    def fit(library: str) -> Any:
        return _fit_stages(f"{library}.ensemble", name, options)

    title = f"{name}, {title}"
    return _against_sklearn(f"stages-{name}", title, (50_000, 20), (2_000, 8), data, fit, judge, FEW_ROUNDS)


WORKLOADS = (
    _workload("classes", "two classes", two_classes, "Classifier", minus_area),
    _workload("regression", "squared error", numbers, "Regressor", squared_error),
    _stages("AdaBoostClassifier", f"{STAGES} stumps", two_classes, minus_area),
    _stages("GradientBoostingClassifier", f"{STAGES} trees of depth 3", two_classes, minus_area),
    _stages("GradientBoostingRegressor", f"{STAGES} trees of depth 3", numbers, squared_error),
)
