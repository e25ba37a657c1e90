"""Small tables, where fixed overhead dominates: a fit with the prediction of one row, and grid searches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.workload import Contender, FitWorkload, Quality

SHAPES = ((150, 4), (2_000, 20))
BOOSTING_SHAPE = (1_000, 10)
FOLDS, SETTINGS = 5, 20
TIMED_SEEDS = 5  # seeds, in turn: the number of epochs of a fit depends on the order of its rows


class Table(NamedTuple):
    """Rows, a numeric target, its sign and terciles as labels, and counts and positive numbers increasing in it."""

    X: np.ndarray
    y: np.ndarray
    label: np.ndarray
    third: np.ndarray
    count: np.ndarray
    positive: np.ndarray


@dataclass(frozen=True)
class Model:
    """An estimator with the same name in both libraries."""

    row: str
    package: str
    name: str
    target: str = "y"
    options: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-3
    seeds: int = 0  # seeds over which errors are averaged, if a fit depends on the order of the rows


_LOGISTIC_CV = {"l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": False}

MODELS = (
    Model("linear", "linear_model", "LinearRegression"),
    Model("ridge", "linear_model", "Ridge"),
    Model("ridge-cv", "linear_model", "RidgeCV"),
    Model("lasso", "linear_model", "Lasso", options={"alpha": 0.05}),
    Model("elastic-net", "linear_model", "ElasticNet", options={"alpha": 0.05}),
    Model("lasso-cv", "linear_model", "LassoCV"),
    Model("elastic-net-cv", "linear_model", "ElasticNetCV"),
    Model("logistic", "linear_model", "LogisticRegression", "label"),
    Model("logistic-3", "linear_model", "LogisticRegression", "third"),
    Model("logistic-cv", "linear_model", "LogisticRegressionCV", "label", _LOGISTIC_CV, tolerance=0.05),
    Model("sgd", "linear_model", "SGDClassifier", "label", {"random_state": 0}, tolerance=0.05, seeds=100),
    Model("sgd-regressor", "linear_model", "SGDRegressor", "y", {"random_state": 0}, tolerance=0.05, seeds=100),
    Model("perceptron", "linear_model", "Perceptron", "label", {"random_state": 0}, tolerance=0.05, seeds=100),
    Model("poisson", "linear_model", "PoissonRegressor", "count"),
    Model("gamma", "linear_model", "GammaRegressor", "positive"),
    Model("tweedie", "linear_model", "TweedieRegressor", "count", {"power": 1.5}),
    Model("linear-svc", "svm", "LinearSVC", "label", tolerance=0.05),
    Model("linear-svr", "svm", "LinearSVR", tolerance=0.05),
    Model("svc", "svm", "SVC", "label", tolerance=0.05),
    Model("lda", "discriminant_analysis", "LinearDiscriminantAnalysis", "label"),
    Model("qda", "discriminant_analysis", "QuadraticDiscriminantAnalysis", "label"),
    Model("gaussian-nb", "naive_bayes", "GaussianNB", "label"),
    Model("k-neighbors", "neighbors", "KNeighborsClassifier", "label"),
    Model("k-neighbors-regressor", "neighbors", "KNeighborsRegressor"),
    Model("nearest-centroid", "neighbors", "NearestCentroid", "label"),
    Model("tree", "tree", "DecisionTreeClassifier", "label"),
    Model("k-means", "cluster", "KMeans", options={"n_clusters": 4, "random_state": 0}, tolerance=0.05, seeds=100),
    Model("pca", "decomposition", "PCA", options={"n_components": 2}),
    Model("factor-analysis", "decomposition", "FactorAnalysis", options={"n_components": 2}),
    Model("scaler", "preprocessing", "StandardScaler"),
)


def table(rows: int, columns: int) -> Table:
    """Normal columns; a linear target with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = X @ rng.standard_normal(columns) + rng.standard_normal(rows)
    count = rng.poisson(np.exp(0.1 * y)).astype(float)
    third = np.searchsorted(np.quantile(y, (1 / 3, 2 / 3)), y)
    return Table(X, y, (y > 0).astype(int), third, count, rng.gamma(2.0, np.exp(0.1 * y)))


def breast_cancer(rows: int, columns: int) -> Table:
    """The table from scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    X, label = load_breast_cancer(return_X_y=True)
    X, label, number = X[:rows, :columns], label[:rows], label[:rows].astype(float)
    return Table(X, number, label, label, number, number)


def _fit(library: str, model: Model) -> Callable[[], Callable[[Table], Any]]:
    def load() -> Callable[[Table], Any]:
        found = getattr(import_module(f"{library}.{model.package}"), model.name)
        seeds = cycle(range(TIMED_SEEDS))

        def work(data: Table) -> Any:
            drawn = {"random_state": next(seeds)} if model.seeds else {}
            fitted = found(**{**model.options, **drawn}).fit(data.X, getattr(data, model.target))
            if hasattr(fitted, "predict"):
                fitted.predict(data.X[:1])
            else:
                fitted.transform(data.X[:1])
            return fitted

        return work

    return load


def _search(library: str, name: str, parameter: str, target: str) -> Callable[[], Callable[[Table], Any]]:
    def load() -> Callable[[Table], Any]:
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        found = getattr(import_module(f"{library}.linear_model"), name)
        grid = {f"{name.lower()}__{parameter}": np.logspace(-3, 3, SETTINGS)}

        def work(data: Table) -> Any:
            search = GridSearchCV(make_pipeline(StandardScaler(), found()), grid, cv=FOLDS)
            return search.fit(data.X, getattr(data, target))

        return work

    return load


def _error(target: str, seeds: int = 0) -> Callable[[Table, Any], float]:
    """Mean squared error, or error rate, on the training rows; inertia of clusters; 0 for a scaler.

    For latent variable models it is the negative log-likelihood.

    With `seeds` it is the mean over fits with that many seeds: errors of gradient descent over 150 rows in different
    orders differ by a third.
    """

    def error(data: Table, fitted: Any) -> float:
        y = getattr(data, target)
        fits = [clone(fitted).set_params(random_state=seed).fit(data.X, y) for seed in range(seeds)] or [fitted]
        return float(np.mean([one_error(data.X, y, one) for one in fits]))

    def one_error(X: np.ndarray, y: np.ndarray, fitted: Any) -> float:
        if hasattr(fitted, "inertia_"):
            return float(fitted.inertia_)
        if hasattr(fitted, "predict"):
            return float(np.mean((fitted.predict(X) - y) ** 2))
        return -float(fitted.score(X)) if hasattr(fitted, "score") else 0.0

    return error


def _boosting(package: str, name: str) -> Callable[[], Callable[[Table], Any]]:
    def load() -> Callable[[Table], Any]:
        found = getattr(import_module(package), name)
        options = {"verbose": -1} if package == "lightgbm" else {}

        def work(data: Table) -> Any:
            fitted = found(**options).fit(data.X, data.label)
            fitted.predict(data.X[:1])
            return fitted

        return work

    return load


def _small(model: Model, rows: int, columns: int) -> FitWorkload:
    return FitWorkload(
        f"small-{model.row}-{rows}",
        f"{model.name}, fit and one row predicted",
        (rows, columns),
        (rows, columns),
        table,
        (
            Contender("summula", _fit("summula", model)),
            Contender("scikit-learn", _fit("sklearn", model)),
        ),
        Quality(_error(model.target, model.seeds), "objective", model.tolerance),
    )


def _grid(row: str, name: str, parameter: str, target: str) -> FitWorkload:
    return FitWorkload(
        f"small-grid-{row}",
        f"GridSearchCV of {name}, breast cancer, {FOLDS} folds x {SETTINGS} settings",
        (569, 30),
        (569, 30),
        breast_cancer,
        (
            Contender("summula", _search("summula", name, parameter, target)),
            Contender("scikit-learn", _search("sklearn", name, parameter, target)),
        ),
        Quality(lambda data, search: -float(search.best_score_), "objective", 1e-3),
        rounds=3,
    )


WORKLOADS = (
    *(_small(model, *shape) for model in MODELS for shape in SHAPES),
    FitWorkload(
        "small-boosting",
        "100 boosted trees, fit and one row predicted",
        BOOSTING_SHAPE,
        BOOSTING_SHAPE,
        table,
        (
            Contender("summula", _boosting("summula.ensemble", "HistGradientBoostingClassifier")),
            Contender("lightgbm", _boosting("lightgbm", "LGBMClassifier")),
        ),
        Quality(_error("label"), "objective", 0.05),
    ),
    _grid("ridge", "Ridge", "alpha", "y"),
    _grid("logistic", "LogisticRegression", "C", "label"),
)
