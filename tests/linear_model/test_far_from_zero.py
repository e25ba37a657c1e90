"""Certificates of models whose columns lie far from 0: true of the returned coefficients, in exact arithmetic.

The objective at `coef_` and `intercept_`, and its minimum, are computed with 60 digits. A certificate must state the
first, its gap must cover the second, and `verify` must confirm it on the training data.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from summula import linear_model
from tests.reference import decimal_objectives as exact

N = 24
OFFSETS = (1.0, 1e4, 1e8, 1e12, 1e15)
STORAGES = ("float64", "float32", "sparse")
PLACES = [(storage, offset) for storage in STORAGES for offset in (OFFSETS if storage == "float64" else (1e8, 1e15))]


class Case(NamedTuple):
    """A model, the kind of its targets, its loss, and the weights of loss, L1 and half the squared L2 penalty."""

    model: Any
    target: str
    loss: Callable[..., Any]
    weights: Callable[[Any], tuple[float, float, float]]


def squares(penalty: Callable[[Any], float]) -> Callable[[Any], tuple[float, float, float]]:
    """A sum of squares and alpha times the squared length."""
    return lambda model: (2.0, 0.0, 2 * penalty(model))


def mean_squares(alpha: Callable[[Any], float], ratio: float) -> Callable[[Any], tuple[float, float, float]]:
    """Half the mean of squares, and the elastic net."""
    return lambda model: (1 / N, alpha(model) * ratio, alpha(model) * (1 - ratio))


def likelihood(l1: float, l2: float) -> Callable[[Any], tuple[float, float, float]]:
    return lambda model: (1.0, l1, l2)


CASES = {
    "least squares": Case(linear_model.LinearRegression(), "numbers", exact.squared, squares(lambda m: 0.0)),
    "nonnegative": Case(linear_model.LinearRegression(positive=True), "numbers", exact.squared, squares(lambda m: 0.0)),
    "ridge": Case(linear_model.Ridge(0.5), "numbers", exact.squared, squares(lambda m: 0.5)),
    "nonnegative ridge": Case(linear_model.Ridge(0.5, positive=True), "numbers", exact.squared, squares(lambda m: 0.5)),
    "ridge cv": Case(linear_model.RidgeCV(), "numbers", exact.squared, squares(lambda m: m.alpha_)),
    "lasso": Case(linear_model.Lasso(0.1), "numbers", exact.squared, mean_squares(lambda m: 0.1, 1.0)),
    "nonnegative lasso": Case(
        linear_model.Lasso(0.1, positive=True), "numbers", exact.squared, mean_squares(lambda m: 0.1, 1.0)
    ),
    "elastic net": Case(linear_model.ElasticNet(0.1), "numbers", exact.squared, mean_squares(lambda m: 0.1, 0.5)),
    "lasso cv": Case(
        linear_model.LassoCV(alphas=5, cv=3), "numbers", exact.squared, mean_squares(lambda m: m.alpha_, 1.0)
    ),
    "elastic net cv": Case(
        linear_model.ElasticNetCV(alphas=5, cv=3), "numbers", exact.squared, mean_squares(lambda m: m.alpha_, 0.5)
    ),
    "logistic": Case(linear_model.LogisticRegression(), "two classes", exact.logistic, likelihood(0.0, 1.0)),
    "unpenalised logistic": Case(
        linear_model.LogisticRegression(C=np.inf), "two classes", exact.logistic, likelihood(0.0, 0.0)
    ),
    "L1 logistic": Case(
        linear_model.LogisticRegression(l1_ratio=1.0, solver="saga"),
        "two classes",
        exact.logistic,
        likelihood(1.0, 0.0),
    ),
    "elastic net logistic": Case(
        linear_model.LogisticRegression(l1_ratio=0.5, solver="saga"),
        "two classes",
        exact.logistic,
        likelihood(0.5, 0.5),
    ),
    "softmax": Case(linear_model.LogisticRegression(), "three classes", exact.multinomial, likelihood(0.0, 1.0)),
    "L1 softmax": Case(
        linear_model.LogisticRegression(l1_ratio=1.0, solver="saga"),
        "three classes",
        exact.multinomial,
        likelihood(1.0, 0.0),
    ),
    "logistic cv": Case(
        linear_model.LogisticRegressionCV(
            Cs=3, cv=3, scoring="neg_log_loss", l1_ratios=(0.0,), use_legacy_attributes=False
        ),
        "two classes",
        exact.logistic,
        lambda m: (1.0, 0.0, 1 / m.C_),
    ),
    "bayesian": Case(
        linear_model.BayesianLogisticRegression(),
        "two classes",
        exact.logistic,
        lambda m: (1.0, 0.0, 1 / m.prior_scale_**2),
    ),
    "poisson": Case(linear_model.PoissonRegressor(alpha=0.1), "counts", exact.poisson, likelihood(0.0, 0.1 * N)),
    "unpenalised poisson": Case(
        linear_model.PoissonRegressor(alpha=0.0), "counts", exact.poisson, likelihood(0.0, 0.0)
    ),
    "gamma": Case(linear_model.GammaRegressor(alpha=0.1), "amounts", exact.gamma, likelihood(0.0, 0.1 * N)),
    "normal": Case(
        linear_model.GeneralizedLinearRegressor(alpha=0.1), "numbers", exact.squared, likelihood(0.0, 0.1 * N)
    ),
    "L1 poisson": Case(
        linear_model.GeneralizedLinearRegressor(family="poisson", alpha=0.1, l1_ratio=0.9),
        "counts",
        exact.poisson,
        likelihood(0.09 * N, 0.01 * N),
    ),
}

# Descent should not converge here; its steps are so short that it does not diverge either.
STOCHASTIC = {
    "log loss": (linear_model.SGDClassifier(loss="log_loss"), "two classes", exact.logistic),
    "squared": (linear_model.SGDRegressor(), "numbers", exact.squared),
    "several": (linear_model.SGDClassifier(loss="log_loss"), "three classes", exact.logistic),
}


def table(target: str, offset: float, storage: str) -> tuple[Any, Any]:
    """Two columns near multiples of the offset, and one near 0."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    X[:, 0] = np.arange(N)
    signal = (X[:, 0] - X[:, 0].mean()) / 8 + X[:, 1] - 0.5 * X[:, 2]
    X[:, 0] += offset
    X[:, 1] = 3 * X[:, 1] + offset / 1e3
    noisy = signal + rng.normal(size=N)
    y = {
        "numbers": noisy,
        "two classes": (noisy > 0).astype(int),
        "three classes": np.digitize(noisy, [-0.7, 0.7]),
        "counts": rng.poisson(np.exp(signal / 2)).astype(float),
        "amounts": np.exp(noisy / 2),
    }[target]
    dtype = np.float32 if storage == "float32" else np.float64
    return X.astype(dtype), y.astype(dtype) if y.dtype.kind == "f" else y


def stored(X: Any, storage: str) -> Any:
    return sparse.csr_array(X) if storage == "sparse" else X


@pytest.mark.parametrize(("storage", "offset"), PLACES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::summula.CollinearityWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_certificates_are_true_of_the_returned_model(name: str, storage: str, offset: float) -> None:
    case = CASES[name]
    X, y = table(case.target, offset, storage)
    model = case.model.fit(stored(X, storage), y)
    certificate = model.certificate_
    assert certificate.verify(stored(X, storage), y)

    share, l1, l2 = case.weights(model)
    weight, coef = np.full(N, share), np.atleast_2d(model.coef_)
    here = exact.objective(case.loss, X, y, weight, coef, np.atleast_1d(model.intercept_), l1, l2)
    positive = getattr(model, "positive", False)
    least = exact.minimum(case.loss, X, y, weight, coef, l1, l2, positive=positive)
    primal, gap = Decimal(certificate.primal), Decimal(certificate.gap)
    # In single precision the objective has seven digits, which the gap includes.
    known = Decimal("1e-5" if storage == "float32" else "1e-11")
    assert abs(primal - here) <= known * here
    assert here - least <= gap < Decimal("inf")
    assert primal - gap <= least
    # The bound is not vacuous: about the cost of rounding.
    assert gap <= 2 * (here - least) + (Decimal("1e-4") if storage == "float32" else Decimal("1e-7")) * here


@pytest.mark.parametrize(("storage", "offset"), PLACES)
@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stochastic_descent(name: str, storage: str, offset: float) -> None:
    model, target, loss = STOCHASTIC[name]
    X, y = table(target, offset, storage)
    options = {"alpha": 1e-3, "learning_rate": "constant", "eta0": 0.05 / offset**2, "max_iter": 5, "random_state": 0}
    model.set_params(**options).fit(stored(X, storage), y)
    certificate = model.certificate_
    assert certificate.verify(stored(X, storage), y)
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    whole = least = Decimal(0)
    for k, (v, b) in enumerate(zip(coef, intercept, strict=True)):
        mine = y if target == "numbers" else (y == model.classes_[k if len(coef) > 1 else 1]).astype(float)
        weight = np.full(N, 1 / N)
        whole += exact.objective(loss, X, mine, weight, [v], [b], 0.0, 1e-3)
        least += exact.minimum(loss, X, mine, weight, [v], 0.0, 1e-3)
    known = Decimal("1e-5" if storage == "float32" else "1e-11")
    assert abs(Decimal(certificate.primal) - whole) <= known * whole
    assert Decimal(certificate.primal) - Decimal(certificate.gap) <= least
    assert whole - least <= Decimal(certificate.gap) < Decimal("inf")


@pytest.mark.parametrize(("storage", "offset"), PLACES)
def test_perceptron(storage: str, offset: float) -> None:
    X, y = table("two classes", offset, storage)
    model = linear_model.Perceptron(max_iter=20, random_state=0).fit(stored(X, storage), y)
    assert model.certificate_.verify(stored(X, storage), y)
    # A margin is the difference of numbers as large as the offset times the coefficients.
    scores = [
        sum(Decimal(float(x)) * Decimal(float(v)) for x, v in zip(row, model.coef_[0], strict=True))
        + Decimal(float(model.intercept_[0]))
        for row in X
    ]
    least = min(score if label else -score for score, label in zip(scores, y, strict=True))
    size = offset * float(np.abs(model.coef_).sum())
    known = 1e-6 if storage == "float32" and offset < 1e3 else 1e-13
    assert model.certificate_.functional_margin[0] == pytest.approx(float(least), rel=1e-9, abs=known * size)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lasso_fits_do_not_lie_above_their_gap(seed: int, dtype: Any) -> None:
    """Columns of any scale, up to 1e8 away from 0; any penalty."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 20)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d) + 10.0 ** rng.uniform(-1, 8, d) * rng.choice([0, 1], d)
    y = rng.normal(size=n) + (X - X.mean(axis=0)) @ (rng.normal(size=d) / X.std(axis=0)) * rng.choice([0.1, 1.0, 10.0])
    X, y = X.astype(dtype), (y + rng.choice([0.0, 1e3, 1e6])).astype(dtype)
    largest = float(np.abs((X - X.mean(axis=0)).T.astype(float) @ (y - y.mean())).max()) / n
    alpha, positive = largest * 10.0 ** rng.uniform(-4, -0.1), bool(rng.integers(2))
    model = linear_model.Lasso(alpha, positive=positive).fit(X, y)
    assert model.certificate_.verify(X, y)
    weight = np.full(n, 1 / n)
    here = exact.objective(exact.squared, X, y, weight, [model.coef_], [model.intercept_], alpha)
    least = exact.minimum(exact.squared, X, y, weight, [model.coef_], alpha, positive=positive)
    primal, gap = Decimal(model.certificate_.primal), Decimal(model.certificate_.gap)
    assert here - least <= gap < Decimal("inf")
    assert primal - gap <= least


@pytest.mark.parametrize("seed", [6, 15, 21, 51, 58])
@pytest.mark.parametrize("storage", ["float64", "float32", "sparse"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_lasso_without_intercept_does_not_lie_above_its_gap(seed: int, storage: str) -> None:
    """The objective is much smaller than the squares of columns and target that are far from 0."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 16)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d) + 10.0 ** rng.uniform(4, 12, d) * rng.choice([0, 1], d)
    y = rng.normal(size=n) + rng.choice([0.0, 1e6, 1e9])
    X, y = X.astype("float32" if storage == "float32" else "float64"), y.astype(X.dtype)
    alpha = float(np.abs(X.T.astype(float) @ y).max()) / n * 10.0 ** rng.uniform(-12, -2)
    model = linear_model.Lasso(alpha, fit_intercept=False).fit(stored(X, storage), y)
    assert model.certificate_.verify(stored(X, storage), y)
    weight = np.full(n, 1 / n)
    here = exact.objective(exact.squared, X, y, weight, [model.coef_], [0.0], alpha)
    least = exact.minimum(exact.squared, X, y, weight, [model.coef_], alpha, intercept=False)
    primal, gap = Decimal(model.certificate_.primal), Decimal(model.certificate_.gap)
    assert abs(primal - here) <= Decimal("1e-5" if storage == "float32" else "1e-8") * here
    assert here - least <= gap == Decimal(model.dual_gap_)
    assert primal - gap <= least


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_lasso_without_intercept_in_single_precision(seed: int, positive: bool) -> None:
    """Squares of the columns, about 0, have fewer digits than the objective."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) * 10.0 ** rng.uniform(-2, 3, 3) + 10.0 ** rng.uniform(4, 8, 3) * rng.choice([0, 1], 3)
    y = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + rng.normal(size=60) + 2.0
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = linear_model.Lasso(0.05, fit_intercept=False, positive=positive).fit(X, y)
    assert model.certificate_.verify(X, y)
    weight = np.full(60, 1 / 60)
    here = exact.objective(exact.squared, X, y, weight, [model.coef_], [0.0], 0.05)
    assert abs(Decimal(model.certificate_.primal) - here) <= Decimal("1e-5") * here
    assert 0 <= Decimal(model.certificate_.gap) <= here * Decimal("1.00001")


@pytest.mark.parametrize("seed", [3, 15, 18, 29, 31])
@pytest.mark.parametrize("storage", ["float64", "float32", "sparse"])
@pytest.mark.filterwarnings("ignore::summula.CollinearityWarning", "ignore::summula.AccuracyWarning")
def test_least_squares_do_not_lie_above_their_gap(seed: int, storage: str) -> None:
    """The residuals of a nearly perfect fit are much smaller than their terms, whose rounding the gap contains."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 16)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d) + 10.0 ** rng.uniform(-1, 8, d) * rng.choice([0, 1], d)
    y = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=d) + rng.choice([1e-6, 1.0]) * rng.normal(size=n)
    X = X.astype("float32" if storage == "float32" else "float64")
    y = (y + rng.choice([0.0, 1e3, 1e9])).astype(X.dtype)
    options = {"fit_intercept": bool(rng.integers(2)), "positive": bool(rng.integers(2))}
    alpha = float(rng.choice([0.0, 1e-3, 10.0]))
    model = (linear_model.Ridge(alpha, **options) if alpha else linear_model.LinearRegression(**options)).fit(
        stored(X, storage), y
    )
    assert model.certificate_.verify(stored(X, storage), y)
    weight, point = np.full(n, 2.0), ([model.coef_], [model.intercept_])
    here = exact.objective(exact.squared, X, y, weight, *point, 0.0, 2 * alpha)
    least = exact.minimum(
        exact.squared, X, y, weight, point[0], 0.0, 2 * alpha,
        intercept=options["fit_intercept"], positive=options["positive"],
    )  # fmt: skip
    primal, gap = Decimal(model.certificate_.primal), Decimal(model.certificate_.gap)
    assert here - least <= gap < Decimal("inf")
    assert primal - gap <= least
