"""The one list of estimators. A line in `CASES` puts an estimator under every promise that applies to it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import clone
from sklearn.metrics import mean_tweedie_deviance
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from summula.core.data import chunks
from summula.core.engine.engine import current_engine
from summula.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from summula.features import PolynomialLift
from summula.linear_model import (
    BayesianLogisticRegression,
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    GeneralizedLinearRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    PoissonRegressor,
    PolynomialRegression,
    Ridge,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from summula.preprocessing import StandardScaler

Array = NDArray[Any]


class Data(NamedTuple):
    """What a case is fitted on; y is None for transformers."""

    X: Array
    y: Array | None
    weight: Array  # whole numbers from 0 to 3

    def rows(self, which: Any) -> Data:
        return Data(self.X[which], None if self.y is None else self.y[which], self.weight[which])


# Rows and columns. Small tables are solved by orthogonal factors, larger ones from sums of products.
SIZES = {"small": (120, 4), "large": (4_200, 16)}


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator under test, and what cannot be read off it.

    targets : how many columns y has; 0 for one column without a second dimension.
    target : what y is: any "numbers", or "counts", "positive" numbers, "amounts" (positive, many zeros), "shares"
        (from 0 to 1), or class labels: "two classes", "three classes", "words".
    scale_free : whether the predictions stay the same when columns are rescaled.
    wide_sparse : whether it has a way of its own for sparse data with thousands of columns.
    passes : whether a fit sums over the rows.
    repeats : whether a weight is so many repetitions of a row (not where rows are left out: all of them go together).
    unordered : whether the order of the rows is nothing to it.
    optimal : whether it goes on to the optimum, up to rounding (stochastic descent stops near it).
    """

    estimator: Any
    kind: Literal["regressor", "classifier", "transformer"]
    targets: int = 0
    target: str = "numbers"
    scale_free: bool = False
    wide_sparse: bool = False
    passes: bool = True
    repeats: bool = True
    unordered: bool = True
    optimal: bool = True

    def __str__(self) -> str:
        return _named(self)

    # ---------------------------------------------------------------------------------- what it can do, by its tags

    @property
    def regressor(self) -> bool:
        return self.kind == "regressor"

    @property
    def classifier(self) -> bool:
        return self.kind == "classifier"

    @property
    def trees(self) -> bool:
        """Whether its model is trees, which have no coefficients."""
        return isinstance(self.estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor)

    @property
    def parametric(self) -> bool:
        """Whether its model is some numbers a column."""
        return not self.trees

    @property
    def finite(self) -> bool:
        """Whether infinities are refused; trees, as scikit-learn's, take them for the outermost values of a column."""
        return not self.trees

    @property
    def supervised(self) -> bool:
        """Whether it has a target."""
        return not self.transformer

    @property
    def measured(self) -> bool:
        """Whether its targets are any numbers, and its loss their squared distance."""
        return self.regressor and self.target == "numbers"

    @property
    def likelihood(self) -> bool:
        """Whether it maximises a likelihood step by step."""
        return self.supervised and not self.measured

    @property
    def zeroing(self) -> bool:
        """Whether its penalty makes coefficients exactly zero."""
        return isinstance(self.estimator, ElasticNet | ElasticNetCV)

    @property
    def selective(self) -> bool:
        """Whether some of its penalty is L1."""
        parameters = self.estimator.get_params()
        return self.zeroing or bool(np.any(parameters.get("l1_ratio", parameters.get("l1_ratios", 0.0))))

    @property
    def iterative(self) -> bool:
        """Whether it stops at a gap, having no closed form."""
        return self.likelihood or self.zeroing

    @property
    def transformer(self) -> bool:
        return self.kind == "transformer"

    @property
    def one_target(self) -> bool:
        return self.targets == 0

    @property
    def centres(self) -> bool:
        """Whether its answer does not depend on where the zero of a column lies."""
        parameters = self.estimator.get_params()
        return self.optimal and bool(parameters.get("fit_intercept", parameters.get("with_mean", False)))

    @property
    def weighted(self) -> bool:
        return bool(has_fit_parameter(self.estimator, "sample_weight"))

    @property
    def sparse(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.sparse)

    @property
    def allows_nan(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def complete(self) -> bool:
        """Whether missing values are refused."""
        return not self.allows_nan

    @property
    def certified(self) -> bool:
        """Whether its certificate says that no point is better."""
        return self.supervised and self.optimal

    @property
    def probable(self) -> bool:
        """Whether it gives probabilities of classes."""
        return self.classifier and hasattr(self.estimator, "predict_proba")

    @property
    def numeric(self) -> bool:
        """Whether columns have to be numbers; some models make indicators of text."""
        return not getattr(self.estimator, "_factored", False)

    @property
    def timed(self) -> bool:
        return "max_time" in self.estimator.get_params()

    @property
    def parallel(self) -> bool:
        return "n_jobs" in self.estimator.get_params()

    @property
    def incremental(self) -> bool:
        """Whether rows may be added and taken away."""
        return hasattr(self.estimator, "forget")

    @property
    def random(self) -> bool:
        return "random_state" in self.estimator.get_params()

    # ------------------------------------------------------------------------------------------------- using it

    def data(self, size: str = "small", seed: int = 0) -> Data:
        if self.target != "numbers":
            return _with_targets(*SIZES[size], self.target, seed)
        return _data(*SIZES[size], self.targets if self.supervised else None, seed)

    def wide_data(self) -> tuple[Any, Array]:
        """More columns than a matrix of pairs of them is formed for, and enough rows to determine them."""
        X, y = wide_sparse()
        return X, y if self.target == "numbers" else _drawn(y, self.target, seed=4)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return clone(self.estimator).fit(X, y, **weights)

    def model(self, size: str = "small", *, weighted: bool = False) -> Any:
        """The model of an array, fitted once for all tests, to compare others with: it is not to be changed."""
        engine = current_engine()
        return _fitted(self, size, weighted, type(engine), engine.chunk_rows, chunks._PART_ELEMENTS)

    def wide_model(self) -> Any:
        """The same of `wide_data`."""
        return _fitted_wide(self)

    def output(self, model: Any, X: Any) -> Any:
        """What the model computes for rows: numbers, of classifiers the probabilities, or scores without these."""
        if self.classifier:
            return model.predict_proba(X) if self.probable else model.decision_function(X)
        return model.predict(X) if self.regressor else model.transform(X)

    def other_target(self, y: Any) -> Any:
        """Targets of the same kind of which the first is another one."""
        other = np.array(y)
        other[0] = other[other != other[0]][0] if self.likelihood else other[0] + 1.0
        return other

    def missing_target(self, y: Any) -> Any:
        """Targets of which one is missing."""
        missing = np.array(y, dtype=object if self.target == "words" else float)
        missing[5] = None if self.target == "words" else np.nan
        return missing

    def loss(self, y: Any, output: Any, weight: Any = None) -> float:
        """What the fit makes small, without the penalty: squares, or half the deviance; from what it predicts."""
        weight = np.ones(len(y)) if weight is None else weight
        if self.classifier:
            return -float(weight @ np.log(output[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]))
        if self.target == "shares":
            return float(weight @ (special.rel_entr(y, output) + special.rel_entr(1 - y, 1 - output)))
        if self.likelihood:
            power = {"counts": 1, "positive": 2, "amounts": 1.5}[self.target]
            return float(weight.sum() * mean_tweedie_deviance(y, output, sample_weight=weight, power=power) / 2)
        return float((weight * ((y - output) ** 2).T).sum())

    def constant(self, y: Any) -> Any:
        """What a model without features would predict."""
        if self.classifier:
            return np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(y), 1))
        return np.broadcast_to(y.mean(axis=0), y.shape)


@functools.cache
def _named(case: Case) -> str:
    return repr(case.estimator).replace(" ", "")


@functools.cache
def _fitted(case: Case, size: str, weighted: bool, *grid: Any) -> Any:
    """The fit of `Case.model`; `grid` is what its bits depend on besides the data."""
    X, y, weight = case.data(size)
    return case.fit(X, y, weight if weighted else None)


@functools.cache
def _fitted_wide(case: Case) -> Any:
    return case.fit(*case.wide_data())


@functools.cache
def _data(n: int, d: int, targets: int | None, seed: int) -> Data:
    """Well-conditioned columns: small whole numbers first, then numbers that float32 can hold, then any."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(1.0, 1.0, (n, d))
    X[:, 0] = rng.integers(-5, 6, n)
    X[:, 1] = rng.integers(0, 10, n)
    X[:, 2] = X[:, 2].astype(np.float32)
    weight = rng.integers(0, 4, n).astype(float)
    y = None
    if targets is not None:
        # Slopes of both signs, so that positive=True has something to hold at 0.
        slopes = rng.normal(0.0, 1.0, (d, max(targets, 1)))
        y = X @ slopes + 2.0 + rng.normal(0.0, 0.5, (n, max(targets, 1)))
        y = y if targets else y[:, 0]
        y.flags.writeable = False
    X.flags.writeable = weight.flags.writeable = False
    return Data(X, y, weight)


@functools.cache
def _with_targets(n: int, d: int, target: str, seed: int) -> Data:
    """The same rows with targets of another kind, which depend on all columns."""
    X, _, weight = _data(n, d, None, seed)
    rng = np.random.default_rng([seed, 7])
    score = (X - X.mean(axis=0)) @ rng.normal(0.0, 1.0, X.shape[1])
    y = _drawn(score, target, seed)
    y.flags.writeable = False
    return Data(X, y, weight)


def _drawn(score: Array, target: str, seed: int) -> Array:
    """Targets whose mean, or whose class, depends on a score."""
    rng = np.random.default_rng([seed, 8])
    eta = 0.7 * score / score.std()
    if target == "counts":
        return rng.poisson(np.exp(eta + 0.5)).astype(float)
    if target == "positive":
        return np.exp(eta) * rng.gamma(2.0, 0.5, len(eta))
    if target == "amounts":
        return rng.gamma(2.0 * np.maximum(counts := rng.poisson(np.exp(eta)), 1)) * (counts > 0)
    if target == "shares":
        return rng.binomial(10, special.expit(eta)) / 10
    classes = 3 if target == "three classes" else 2
    scores = np.outer(eta, np.linspace(-1.0, 1.0, classes)) + rng.gumbel(size=(len(eta), classes))
    codes = scores.argmax(axis=1)
    return np.array(["no", "yes"], dtype=object)[codes] if target == "words" else 2 * codes - 1


@functools.cache
def wide_sparse() -> tuple[Any, Array]:
    """More columns than a Gram matrix is formed for, and enough rows to determine them."""
    rng = np.random.default_rng(3)
    X = sparse.random_array((4_000, 2_100), density=0.01, rng=rng, format="csr")
    return X, X @ rng.normal(size=2_100) + 1.0 + 0.1 * rng.normal(size=4_000)


# Rows come in a random order, and descent stops near the optimum.
# (Long first steps would enlarge rounding.)
STEPS: dict[str, Any] = {"learning_rate": "invscaling", "eta0": 0.02, "random_state": 0}
STOCHASTIC: dict[str, Any] = {"repeats": False, "unordered": False, "optimal": False}

# Leaves have a least number of rows, whatever their weights; rounding is drawn by the number of a row.
BOOSTED: dict[str, Any] = {"repeats": False, "unordered": False, "optimal": False, "scale_free": True}

CASES = [
    Case(LinearRegression(), "regressor", scale_free=True, wide_sparse=True),
    Case(LinearRegression(positive=True), "regressor", scale_free=True),
    Case(LinearRegression(fit_intercept=False), "regressor", scale_free=True),
    Case(Ridge(), "regressor", wide_sparse=True),
    Case(Ridge(alpha=[0.5, 30.0]), "regressor", targets=2),
    Case(Ridge(positive=True), "regressor"),
    Case(RidgeCV(), "regressor", repeats=False),
    Case(RidgeCV(alphas=[0.3, 30.0, 3.0], cv=4), "regressor", targets=2, repeats=False, unordered=False),
    Case(PolynomialRegression(degree=2), "regressor", scale_free=True),
    # Iterations stop at a tolerance; a small one makes their answers comparable to rounding.
    Case(Lasso(alpha=0.002, tol=1e-10), "regressor", wide_sparse=True),
    Case(Lasso(alpha=0.05, tol=1e-10, positive=True, fit_intercept=False), "regressor"),
    Case(ElasticNet(alpha=0.1, tol=1e-10), "regressor", targets=2),
    Case(LassoCV(cv=3, alphas=10, tol=1e-10), "regressor", repeats=False, unordered=False),
    Case(LogisticRegression(tol=1e-10, max_iter=1_000), "classifier", target="two classes", wide_sparse=True),
    Case(LogisticRegression(C=np.inf, tol=1e-10), "classifier", target="two classes", scale_free=True),
    Case(LogisticRegression(C=0.5, tol=1e-10), "classifier", target="three classes"),
    Case(LogisticRegression(class_weight="balanced", tol=1e-10), "classifier", target="words"),
    Case(LogisticRegression(l1_ratio=1.0, C=0.5, tol=1e-10), "classifier", target="two classes", wide_sparse=True),
    Case(LogisticRegression(l1_ratio=0.5, C=0.5, tol=1e-10), "classifier", target="three classes"),
    Case(
        LogisticRegressionCV(
            l1_ratios=(0.9,), Cs=[0.05, 0.5], cv=2, scoring=None, use_legacy_attributes=False, tol=1e-10
        ),
        "classifier",
        target="two classes",
        repeats=False,
        unordered=False,
    ),
    Case(GeneralizedLinearRegressor("poisson", alpha=0.03, l1_ratio=0.7, tol=1e-10), "regressor", target="counts"),
    Case(PoissonRegressor(tol=1e-10, max_iter=1_000), "regressor", target="counts", wide_sparse=True),
    Case(GammaRegressor(tol=1e-10), "regressor", target="positive"),
    Case(TweedieRegressor(power=1.5, tol=1e-10), "regressor", target="amounts"),
    Case(GeneralizedLinearRegressor("gamma", "log", tol=1e-10), "regressor", target="positive", scale_free=True),
    Case(GeneralizedLinearRegressor("binomial", tol=1e-10), "regressor", target="shares", scale_free=True),
    Case(BayesianLogisticRegression(tol=1e-10), "classifier", target="two classes"),
    Case(SGDClassifier("log_loss", **STEPS), "classifier", target="two classes", **STOCHASTIC),
    Case(SGDClassifier("log_loss", batch_size=5, **STEPS), "classifier", target="three classes", **STOCHASTIC),
    Case(SGDClassifier("log_loss", penalty="l1", **STEPS), "classifier", target="words", **STOCHASTIC),
    Case(SGDRegressor(random_state=0), "regressor", **STOCHASTIC),
    Case(SGDRegressor(average=True, random_state=0), "regressor", **STOCHASTIC),
    Case(Perceptron(max_iter=20, tol=None), "classifier", target="three classes", **STOCHASTIC),
    Case(Perceptron(max_iter=20, tol=None, batch=True), "classifier", target="two classes", **STOCHASTIC),
    Case(HistGradientBoostingRegressor(max_iter=8, random_state=0), "regressor", **BOOSTED),
    Case(
        HistGradientBoostingRegressor(
            "absolute_error", max_iter=5, learning_rate=0.5, max_features=0.8, random_state=0
        ),
        "regressor",
        **BOOSTED,
    ),
    Case(HistGradientBoostingClassifier(max_iter=8, random_state=0), "classifier", target="words", **BOOSTED),
    Case(
        HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=6, random_state=0),
        "classifier",
        target="three classes",
        **BOOSTED,
    ),
    Case(StandardScaler(), "transformer", scale_free=True),
    Case(StandardScaler(with_mean=False), "transformer", scale_free=True),
    Case(PolynomialLift(), "transformer", passes=False),
]


def chosen(*properties: str, cases: Iterable[Case] = CASES) -> list[Case]:
    """The cases that have these properties."""
    return [case for case in cases if all(getattr(case, name) for name in properties)]


def over(*properties: str, cases: Iterable[Case] = CASES) -> pytest.MarkDecorator:
    """Run a test for every case that has these properties: `@over("regressor", "weighted")`."""
    return pytest.mark.parametrize("case", chosen(*properties, cases=cases), ids=str)


# Where every case meets every container and both sizes, not every triple of them is another way through the library:
# the third thing takes turns, so that each pair comes together.
_in_turn: dict[str, list[str]] = {}
SELDOM_LARGE = ("small", "small", "large")


def over_frames(*properties: str) -> Callable[[Any], Any]:
    """The same with a frame of one library each (`constructor`): in three tests of a file a case meets all of them."""

    def decorate(test: Any) -> Any:
        before = _in_turn.setdefault(test.__module__, [])
        if test.__name__ not in before:
            before.append(test.__name__)
        turn, libraries = before.index(test.__name__), ("pandas", "polars", "pyarrow")
        pairs = [(case, libraries[(CASES.index(case) + turn) % 3]) for case in chosen(*properties)]
        mark = pytest.mark.parametrize(("case", "constructor"), pairs, ids=_joined(pairs), indirect=["constructor"])
        return mark(test)

    return decorate


def over_ways(
    name: str, ways: Mapping[str, Any], *properties: str, third: str = "size", values: Iterable[Any] = SELDOM_LARGE
) -> pytest.MarkDecorator:
    """The same for every one of some `ways`, called `name`, with the values of a third argument in turn."""
    turns, pairs = tuple(values), itertools.product(chosen(*properties), enumerate(ways))
    triples = [(case, way, turns[(CASES.index(case) + place) % len(turns)]) for case, (place, way) in pairs]
    given = [(case, ways[way], value) for case, way, value in triples]
    return pytest.mark.parametrize(("case", name, third), given, ids=_joined(triples))


def in_turn(name: str, values: Iterable[Any], *properties: str) -> pytest.MarkDecorator:
    """The same with one of some values for each case, in turn."""
    turns = tuple(values)
    pairs = [(case, turns[CASES.index(case) % len(turns)]) for case in chosen(*properties)]
    return pytest.mark.parametrize(("case", name), pairs, ids=_joined(pairs))


def _joined(tuples: Iterable[tuple[Any, ...]]) -> list[str]:
    return ["-".join(map(str, values)) for values in tuples]
