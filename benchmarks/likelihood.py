"""Logistic, softmax and generalised linear models: dense, sparse, from a stream."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from benchmarks.threads import pin_intelex
from benchmarks.workload import Contender, FitWorkload, Quality

Shape = tuple[int, int]

NONZEROS_PER_ROW = 50
WORDS_PER_ROW = 4.7  # logarithm of the median number of words of a text
BLOCK_ROWS = 65_536
ALPHA = 1e-4  # penalty of the GLMs, added to the mean of half the deviance


class Rows(NamedTuple):
    """Rows X and targets y."""

    X: Any
    y: np.ndarray


def _columns(rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    X *= np.linspace(0.5, 2.0, columns)
    X += np.linspace(-1.0, 1.0, columns)
    return X


def classes(rows: int, columns: int, kinds: int) -> Rows:
    """Normal columns of unequal mean and scale; classes by a noisy linear score."""
    rng = np.random.default_rng(1)
    X = _columns(rows, columns)
    scores = (X - X.mean(axis=0)) @ rng.standard_normal((columns, kinds)) / np.sqrt(columns)
    return Rows(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))


def sparse_classes(rows: int, columns: int) -> Rows:
    """Text-like rows: fifty positive values each, in columns of unequal frequency."""
    rng = np.random.default_rng(0)
    places = (columns * rng.random((rows, NONZEROS_PER_ROW)) ** 3).astype(np.int32)
    starts = np.arange(0, places.size + 1, NONZEROS_PER_ROW, dtype=np.int32)
    values = rng.exponential(size=places.size) / np.sqrt(NONZEROS_PER_ROW)
    X = sparse.csr_array((values, places.ravel(), starts), shape=(rows, columns))
    X.sum_duplicates()
    scores = X @ (3 * rng.standard_normal(columns))
    return Rows(X, (rng.random(rows) < special.expit(scores)).astype(np.int64))


def texts(rows: int, columns: int, kinds: int) -> Rows:
    """Word counts with Zipf's frequencies, an eighth of the words typical of each class, as tf-idf rows of length 1."""
    rng = np.random.default_rng(0)
    y = rng.integers(kinds, size=rows)
    lengths = np.maximum(rng.lognormal(WORDS_PER_ROW, 0.7, rows), 10).astype(np.int64)
    words = np.empty(lengths.sum(), np.int64)
    kind_of_word = np.repeat(y, lengths)
    for kind in range(kinds):
        frequency = 1.0 / np.arange(1, columns + 1)
        frequency[rng.permutation(columns)[: columns // 8]] *= 3.0
        mine = kind_of_word == kind
        words[mine] = rng.choice(columns, size=mine.sum(), p=frequency / frequency.sum())
    X = sparse.csr_array((np.ones(len(words)), words, np.append(0, np.cumsum(lengths))), shape=(rows, columns))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=columns)
    X.data *= np.log((1 + rows) / (1 + documents))[X.indices] + 1.0
    X.data /= np.sqrt(np.repeat(np.add.reduceat(X.data**2, X.indptr[:-1]), np.diff(X.indptr)))
    return Rows(X, y)


def counts(rows: int, columns: int) -> Rows:
    """Poisson counts with a log-linear mean."""
    rng = np.random.default_rng(1)
    X = _columns(rows, columns)
    eta = (X - X.mean(axis=0)) @ rng.standard_normal(columns) / (2 * np.sqrt(columns))
    return Rows(X, rng.poisson(np.exp(eta)).astype(float))


def amounts(rows: int, columns: int) -> Rows:
    """Gamma amounts with a log-linear mean."""
    rng = np.random.default_rng(1)
    X = _columns(rows, columns)
    eta = (X - X.mean(axis=0)) @ rng.standard_normal(columns) / (2 * np.sqrt(columns))
    return Rows(X, rng.gamma(2.0, np.exp(eta) / 2.0))


def counts_with_factors(rows: int, columns: int) -> Rows:
    """The same with three factors of a hundred levels, in a frame."""
    import pandas as pd

    rng = np.random.default_rng(2)
    X = _columns(rows, columns)
    eta = (X - X.mean(axis=0)) @ rng.standard_normal(columns) / (2 * np.sqrt(columns))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    for k in range(3):
        codes = rng.integers(0, 100, rows)
        frame[f"factor{k}"] = pd.Categorical.from_codes(codes, [f"level {i:02d}" for i in range(100)])
        eta = eta + 0.2 * rng.standard_normal(100)[codes]
    return Rows(frame, rng.poisson(np.exp(eta)).astype(float))


# ----------------------------------------------------------------------------------------------------------- objectives


def _blocks(data: Rows, model: Any) -> Any:
    W = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    for start in range(0, len(data.y), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        yield data.X[block] @ W.T + b, data.y[block]


def log_loss(data: Rows, model: Any) -> float:
    """sum log(1 / P(y)) + ||W||^2 / 2."""
    total = float(np.square(model.coef_).sum()) / 2
    for eta, y in _blocks(data, model):
        if eta.shape[1] == 1:
            total -= float(special.log_expit(np.where(y == 1, eta[:, 0], -eta[:, 0])).sum())
        else:
            total -= float(special.log_softmax(eta, axis=1)[np.arange(len(y)), y].sum())
    return total


def half_deviance(data: Rows, model: Any, family: str) -> float:
    """The mean of half the deviance, plus ALPHA ||w||^2 / 2."""
    total = 0.0
    for eta, y in _blocks(data, model):
        mu = np.exp(eta[:, 0])
        if family == "poisson":
            total += float((special.xlogy(y, y / mu) - y + mu).sum())
        else:
            total += float((y / mu - 1 - np.log(y / mu)).sum())
    return total / len(data.y) + ALPHA / 2 * float(np.square(model.coef_).sum())


def predicted_half_deviance(data: Rows, model: Any) -> float:
    """The same for counts, from predictions: libraries order the levels of factors differently."""
    mu, y = np.asarray(model.predict(data.X)), data.y
    total = float((special.xlogy(y, y / mu) - y + mu).sum())
    return total / len(y) + ALPHA / 2 * float(np.square(model.coef_).sum())


# ----------------------------------------------------------------------------------------------------------- contenders


def _fit(make_model: Callable[[], Any]) -> Callable[[Rows], Any]:
    return lambda data: make_model().fit(data.X, data.y)


def _of(library: str, module: str, name: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Rows], Any]:
        from importlib import import_module

        found = getattr(import_module(module), name)
        if module.startswith("sklearnex"):
            pin_intelex()
        return _fit(partial(found, **parameters))

    return Contender(library, load)


def _summula(name: str, **parameters: Any) -> Contender:
    return _of("summula", "summula.linear_model", name, **parameters)


def _sklearn(name: str, setting: str = "", **parameters: Any) -> Contender:
    return _of(f"scikit-learn{setting}", "sklearn.linear_model", name, **parameters)


def _glum(**parameters: Any) -> Contender:
    return _of("glum", "glum", "GeneralizedLinearRegressor", **parameters)


def _family(name: str, title: str, make_data: Callable[..., Rows], estimator: str, family: str) -> FitWorkload:
    return FitWorkload(
        name=name,
        title=title,
        shape=(1_000_000, 30),
        quick_shape=(10_000, 10),
        make_data=make_data,
        contenders=(
            _summula(estimator, alpha=ALPHA),
            _sklearn(estimator, " newton-cholesky", alpha=ALPHA, solver="newton-cholesky"),
            _glum(family=family, alpha=ALPHA, l1_ratio=0),
        ),
        quality=Quality(partial(half_deviance, family=family), "objective", tolerance=1e-6),
    )


def _logistic(
    name: str, title: str, shape: Shape, quick_shape: Shape, data: Any, *others: Contender, rounds: int = 3
) -> FitWorkload:
    quality = Quality(log_loss, "objective", tolerance=1e-6)
    contenders = (_summula("LogisticRegression"), *others)
    return FitWorkload(name, f"LogisticRegression, {title}", shape, quick_shape, data, contenders, quality, rounds)


_LBFGS = _sklearn("LogisticRegression", " lbfgs", tol=1e-6, max_iter=1_000)

WORKLOADS = (
    _logistic(
        "logistic-dense",
        "two classes",
        (500_000, 50),
        (5_000, 20),
        partial(classes, kinds=2),
        _of("scikit-learn-intelex", "sklearnex.linear_model", "LogisticRegression", tol=1e-6),
        _sklearn("LogisticRegression", " lbfgs", tol=1e-6),
        rounds=7,
    ),
    _logistic(
        "logistic-sparse",
        f"sparse, {NONZEROS_PER_ROW} entries per row",
        (200_000, 50_000),
        (5_000, 500),
        sparse_classes,
        _LBFGS,
    ),
    _logistic(
        "logistic-text",
        "wide sparse text, four classes",
        (4_500, 19_188),
        (500, 2_000),
        partial(texts, kinds=4),
        _LBFGS,
        _sklearn("LogisticRegression", " lbfgs, default tol"),
    ),
    _logistic("softmax", "ten classes", (200_000, 50), (5_000, 20), partial(classes, kinds=10), _LBFGS),
    _family("glm-poisson", "Poisson GLM, log link", counts, "PoissonRegressor", "poisson"),
    _family("glm-gamma", "gamma GLM, log link", amounts, "GammaRegressor", "gamma"),
    FitWorkload(
        name="glm-factors",
        title="Poisson GLM, log link, and three factors of 100 levels",
        shape=(1_000_000, 30),
        quick_shape=(20_000, 5),
        make_data=counts_with_factors,
        contenders=(
            _summula("GeneralizedLinearRegressor", family="poisson", alpha=ALPHA, tol=1e-4),
            _glum(family="poisson", alpha=ALPHA, l1_ratio=0, drop_first=True),
        ),
        quality=Quality(predicted_half_deviance, "objective", tolerance=1e-6),
    ),
)
