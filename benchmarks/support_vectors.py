"""Support vector machines and kernels, with equal problem, tolerance and cache size."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.likelihood import NONZEROS_PER_ROW, Rows, _of, classes, sparse_classes
from benchmarks.threads import pin_intelex
from benchmarks.workload import Contender, FitWorkload, Quality


def clusters(rows: int, columns: int) -> Rows:
    """Several clusters per class, standardised, with five percent of the labels redrawn."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((8, columns))
    which = rng.integers(0, 8, rows)
    X = centres[which] + 1.5 * rng.standard_normal((rows, columns))
    y = np.where(rng.random(rows) < 0.05, rng.integers(0, 2, rows), which % 2)
    return Rows((X - X.mean(axis=0)) / X.std(axis=0), y)


def waves(rows: int, columns: int) -> Rows:
    """A smooth target with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return Rows(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 4 + 0.1 * rng.standard_normal(rows))


def dual_objective(data: Rows, model: Any) -> float:
    """1/2 beta'K beta - sum |beta| of a classifier of two classes; beta'K is f minus the intercept."""
    beta = np.asarray(model.dual_coef_)[0]
    scores = model.decision_function(data.X[model.support_]) - float(np.asarray(model.intercept_)[0])
    return float(0.5 * beta @ scores - np.abs(beta).sum())


def squared_hinge(data: Rows, model: Any) -> float:
    """The objective of LinearSVC, whose intercept is penalised."""
    w, b = model.coef_[0], float(model.intercept_[0])
    short = np.maximum(1.0 - (2 * data.y - 1) * (data.X @ w + b), 0.0)
    return float(0.5 * (w @ w + b * b) + short @ short)


def hinge(data: Rows, model: Any) -> float:
    """The same with the hinge loss."""
    w, b = model.coef_[0], float(model.intercept_[0])
    short = np.maximum(1.0 - (2 * data.y - 1) * (data.X @ w + b), 0.0)
    return float(0.5 * (w @ w + b * b) + short.sum())


def _training_error(data: Rows, model: Any) -> float:
    """The training error rate."""
    return float(1.0 - model.score(data.X, data.y))


def residual(data: Rows, model: Any) -> float:
    """The residual of the equations of kernel ridge: predictions minus (y - alpha c)."""
    some = slice(0, 500)
    wanted = data.y[some] - model.dual_coef_[some]
    return float(np.abs(model.predict(data.X[some]) - wanted).max())


LIBRARIES = {"summula.svm": "summula", "sklearn.svm": "scikit-learn", "sklearnex.svm": "scikit-learn-intelex"}


def _prediction(module: str, gamma: float) -> Contender:
    """Predict 100,000 rows by a machine fitted before the timing."""

    def load() -> Any:
        from importlib import import_module

        if module.startswith("sklearnex"):
            pin_intelex()
        fitted: dict[tuple[int, ...], Any] = {}  # keyed by shape: memory is measured after a run on small data

        def work(data: Rows) -> Any:
            if data.X.shape not in fitted:
                fitted[data.X.shape] = import_module(module).SVC(gamma=gamma).fit(data.X[:6_000], data.y[:6_000])
            return fitted[data.X.shape].decision_function(data.X)

        return work

    return Contender(LIBRARIES[module], load)


def _margin_error(data: Rows, scores: Any) -> float:
    """The fraction of rows on the wrong side."""
    return float(((scores > 0) != (data.y == 1)).mean())


def _svc(name: str, title: str, shape: tuple[int, int], rounds: int, **settings: Any) -> FitWorkload:
    return FitWorkload(
        name=name,
        title=title,
        shape=shape,
        quick_shape=(1_500, 5),
        make_data=clusters,
        contenders=(
            _of("summula", "summula.svm", "SVC", **settings),
            _of("scikit-learn", "sklearn.svm", "SVC", **settings),
            _of("scikit-learn-intelex", "sklearnex.svm", "SVC", **settings),
        ),
        quality=Quality(dual_objective, "objective", tolerance=1e-4),
        rounds=rounds,
    )


def _linear_svc(
    name: str,
    title: str,
    shape: tuple[int, int],
    quick_shape: tuple[int, int],
    make_data: Callable[[int, int], Any],
    rounds: int,
    other: dict[str, Any] | None = None,
    **settings: Any,
) -> FitWorkload:
    """A fit of LinearSVC; scikit-learn also receives the settings `other`."""
    is_hinge = settings.get("loss") == "hinge"
    quality = Quality(hinge, "objective", 1e-3) if is_hinge else Quality(squared_hinge, "objective", 1e-4)
    contenders = (
        _of("summula", "summula.svm", "LinearSVC", **settings),
        _of("scikit-learn", "sklearn.svm", "LinearSVC", **settings, **(other or {})),
    )
    return FitWorkload(name, f"LinearSVC, {title}", shape, quick_shape, make_data, contenders, quality, rounds)


_two_classes = partial(classes, kinds=2)
_SPARSE_TITLE = f"squared hinge, sparse, {NONZEROS_PER_ROW} entries per row"

WORKLOADS = (
    _svc("svc-gaussian", "SVC, Gaussian kernel, C=1", (15_000, 30), 3, C=1.0, gamma=1 / 30),
    _svc("svc-large-c", "SVC, Gaussian kernel, C=100", (6_000, 10), 3, C=100.0, gamma=0.1),
    FitWorkload(
        name="svc-memory",
        title="SVC, Gaussian kernel, memory with a cache of 200 MB",
        shape=(50_000, 30),
        quick_shape=(1_500, 5),
        make_data=clusters,
        contenders=(_of("summula", "summula.svm", "SVC", gamma=1 / 30, cache_size=200),),
        quality=Quality(dual_objective, "objective", tolerance=1e-4),
        rounds=1,
    ),
    FitWorkload(
        name="svc-small",
        title="SVC, Gaussian kernel, three classes",
        shape=(150, 4),
        quick_shape=(150, 4),
        make_data=partial(classes, kinds=3),
        contenders=(_of("summula", "summula.svm", "SVC"), _of("scikit-learn", "sklearn.svm", "SVC")),
        quality=Quality(_training_error, "error", tolerance=1e-6),
    ),
    _linear_svc(
        "linear-svc-hinge", "hinge loss", (50_000, 20), (2_000, 5), _two_classes, 3, {"max_iter": 2_000}, loss="hinge"
    ),
    FitWorkload(
        name="svc-predict",
        title="SVC, decision function of a machine of 6,000 rows",
        shape=(100_000, 30),
        quick_shape=(2_000, 5),
        make_data=clusters,
        contenders=tuple(_prediction(module, 1 / 30) for module in LIBRARIES),
        quality=Quality(_margin_error, "objective", tolerance=1e-3),
        rounds=3,
    ),
    _linear_svc("linear-svc", "squared hinge", (200_000, 50), (5_000, 10), _two_classes, 5, {"max_iter": 10_000}),
    _linear_svc(
        "linear-svc-sparse", _SPARSE_TITLE, (100_000, 50_000), (2_000, 3_000), sparse_classes, 5, random_state=0
    ),
    FitWorkload(
        name="kernel-ridge",
        title="KernelRidge, Gaussian kernel",
        shape=(8_000, 20),
        quick_shape=(1_500, 5),
        make_data=waves,
        contenders=(
            _of("summula", "summula.kernel_ridge", "KernelRidge", alpha=1.0, kernel="rbf"),
            _of("scikit-learn", "sklearn.kernel_ridge", "KernelRidge", alpha=1.0, kernel="rbf"),
        ),
        quality=Quality(residual, "error", tolerance=1e-6),
        rounds=3,
    ),
)
