"""Naive Bayes and discriminant analysis: fits in one pass, judged by the joint likelihood of held rows."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.workload import Contender, FitWorkload, Quality

CHECKED_ROWS = 5_000


class Labelled(NamedTuple):
    """Rows and their classes."""

    X: Any
    y: np.ndarray


def _clusters(classes: int) -> Callable[[int, int], Labelled]:
    def make(rows: int, columns: int) -> Labelled:
        rng = np.random.default_rng(0)
        y = rng.integers(0, classes, rows)
        return Labelled(rng.standard_normal((rows, columns)) + rng.normal(0.0, 0.3, (classes, columns))[y], y)

    return make


def texts(rows: int, columns: int) -> Labelled:
    """Counts of words: 50 different ones per text, of 20 classes."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, rows * 50) - 1, columns - 1) + 0
    shift = np.repeat(rng.integers(0, 20, rows), 50)
    words = (words + shift * 37) % columns
    X = sparse.csr_matrix((np.ones(len(words)), words, np.arange(0, len(words) + 1, 50)), shape=(rows, columns))
    X.sum_duplicates()
    return Labelled(X, shift[::50])


def log_loss(data: Labelled, model: Any) -> float:
    """Minus the mean log probability of the true class, of the leading rows."""
    p = model.predict_log_proba(data.X[:CHECKED_ROWS])
    return -float(np.mean(p[np.arange(len(p)), np.searchsorted(model.classes_, data.y[:CHECKED_ROWS])])) + 1.0


def _fit(module: str, name: str, **options: Any) -> Callable[[], Callable[[Labelled], Any]]:
    def load() -> Callable[[Labelled], Any]:
        found = getattr(import_module(module), name)
        return lambda data: found(**options).fit(data.X, data.y)

    return load


def _workload(
    name: str, title: str, shape: tuple[int, int], make: Any, module: str, model: str, **options: Any
) -> FitWorkload:
    return FitWorkload(
        name=name,
        title=title,
        shape=shape,
        quick_shape=(2_000, min(shape[1], 200)),
        make_data=make,
        contenders=(
            Contender("summula", _fit(f"summula.{module}", model, **options)),
            Contender("scikit-learn", _fit(f"sklearn.{module}", model, **options)),
        ),
        quality=Quality(log_loss, "objective", tolerance=1e-9),
    )


WORKLOADS = (
    _workload("nb-gaussian", "GaussianNB, 5 classes", (1_000_000, 50), _clusters(5), "naive_bayes", "GaussianNB"),
    _workload(
        "nb-multinomial", "MultinomialNB, sparse, 20 classes", (200_000, 50_000), texts, "naive_bayes", "MultinomialNB"
    ),
    _workload(
        "lda",
        "LinearDiscriminantAnalysis, 10 classes",
        (500_000, 50),
        _clusters(10),
        "discriminant_analysis",
        "LinearDiscriminantAnalysis",
        solver="lsqr",
    ),
    _workload(
        "qda",
        "QuadraticDiscriminantAnalysis, 5 classes",
        (300_000, 40),
        _clusters(5),
        "discriminant_analysis",
        "QuadraticDiscriminantAnalysis",
    ),
)
