"""An estimator under test: its traits, the data it is fitted on, and how it is used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import clone
from sklearn.metrics import mean_tweedie_deviance
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from summula.core.data import chunks
from summula.core.engine.engine import current_engine

Array = NDArray[Any]


class Data(NamedTuple):
    """What a case is fitted on; y is None where there is no target."""

    X: Array
    y: Array | None
    weight: Array  # whole numbers from 0 to 3

    def rows(self, which: Any) -> Data:
        return Data(self.X[which], None if self.y is None else self.y[which], self.weight[which])


# Rows and columns. Small tables are solved by orthogonal factors, larger ones from sums of products.
SIZES = {"small": (120, 4), "large": (4_200, 16)}


class With:
    """A value of a parameter that has an effect together with some others."""

    def __init__(self, value: Any, **others: Any) -> None:
        self.value, self.others = value, others


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator under test and its traits. Nothing is inferred from its class.

    Attributes
    ----------
    estimator
    kind : what it is to scikit-learn. Regressors and classifiers alone are fitted to a
        target.
    targets : number of columns of y; 0 for one column without a second dimension.
    target : what y is: any "numbers", or "counts", "positive" numbers, "amounts" (positive, many zeros), "shares"
        (from 0 to 1), or class labels: "two classes", "three classes", "words". Without a target: "factors" for columns
        that have a factor in common.
    method : the method whose results are compared between models; by default that of the kind (`Case.output`).
    numbers : names of the fitted arrays that are the model, with the dtype of the rows if `single`.
    objective : what a fit minimises, a function of (case, model, X, y, weight) of public attributes alone
        (`objectives.py`); None where `certificate_` does not bound the distance to the optimum.
    point : fields of the certificate that define the point; "fit.theta" is the field theta of its field fit.
    exact : whether the fit is a closed form; otherwise it stops at a gap.
    likelihood : whether it maximises a likelihood iteratively, and scores by deviance.
    l1 : whether the penalty has an L1 part.
    grid : one parameter with values to choose from, for grid searches.
    changes : for parameters of its own, values that change the fit (tuples; see `test_parameters.CHANGES`).
    idle : parameters without any effect on the fits of its class.
    scale_free : whether the predictions stay the same when columns are rescaled.
    centres : whether the predictions stay the same when all columns are shifted.
    free_intercept : whether a regressor has an intercept without a penalty (if any): the mean, if columns are not
        informative.
    wide_sparse : whether it has a separate solver for sparse data with thousands of columns.
    passes : whether a fit sums over the rows.
    repeats : whether a weight of 3 equals three copies of the row (not if rows are left out together, or drawn).
    unordered : whether the order of the rows makes no difference.
    of_rows : fitted attributes about single training rows (support vectors, their coefficients), which are others where
        rows are repeated or come in another order.
    unscaled : the relative gap that a fit of columns with scales from 1e-6 to 1e6 reaches.
    apart : how far two such fits may be apart, where they stop at a tolerance; 0 is rounding.
    stochastic : whether random draws decide where the fit ends.
    additive : whether rows can be added and forgotten, and models merged.
    streams : whether it supports files and Dask collections; otherwise the error must name an alternative.
    streams_results : whether a model that was fitted in memory supports them anyway.
    finite : whether infinities are rejected.
    flat : whether arrays with three dimensions are rejected.
    single : whether float32 rows give float32 results.
    one_class : whether a classifier accepts targets of a single class.
    needs_spread : whether a single row is rejected.
    late : fitted attributes that come last, which a model that was interrupted before does not have.
    keeps_rows : whether training rows are part of the model (support vectors).
    most_rows : number of rows of the large data it is given, where time grows with their square, every batch is a
        task, many models are fitted, or there are many passes.
    trees : whether the model is trees, whose size depends on the rows.
    counts : whether columns have to be whole numbers from 0 on.
    most_count : the largest of these.
    """

    estimator: Any
    kind: Literal["regressor", "classifier", "transformer", "clusterer", "density", "outlier detector"]
    targets: int = 0
    target: str = "numbers"
    method: str = ""
    numbers: tuple[str, ...] = ("coef_",)
    objective: Callable[..., float] | None = None
    point: tuple[str, ...] = ("coef", "intercept")
    exact: bool = False
    likelihood: bool = False
    l1: bool = False
    grid: Mapping[str, Any] = field(default_factory=lambda: {"fit_intercept": [True, False]})
    changes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    scale_free: bool = False
    centres: bool = False
    free_intercept: bool = True
    wide_sparse: bool = False
    passes: bool = True
    repeats: bool = True
    unordered: bool = True
    of_rows: tuple[str, ...] = ()
    unscaled: float = 1e-10
    apart: float = 0.0
    stochastic: bool = False
    additive: bool = False
    streams: bool = True
    streams_results: bool = False
    finite: bool = True
    flat: bool = True
    single: bool = True
    one_class: bool = False
    needs_spread: bool = False
    late: tuple[str, ...] = ()
    keeps_rows: bool = False
    most_rows: int = SIZES["large"][0]
    trees: bool = False
    counts: bool = False
    most_count: float = np.inf

    def __str__(self) -> str:
        return _named(self)

    # ------------------------------------------------------------------------------------------ what follows from these

    @property
    def regressor(self) -> bool:
        return self.kind == "regressor"

    @property
    def classifier(self) -> bool:
        return self.kind == "classifier"

    @property
    def transformer(self) -> bool:
        return self.kind == "transformer"

    @property
    def clusterer(self) -> bool:
        return self.kind == "clusterer"

    @property
    def density(self) -> bool:
        return self.kind == "density"

    @property
    def supervised(self) -> bool:
        """Whether the case has a target."""
        return self.regressor or self.classifier

    @property
    def infinite(self) -> bool:
        """Whether infinities are treated as the extreme values of a column."""
        return not self.finite

    @property
    def in_double(self) -> bool:
        """Whether float32 rows give float64 results."""
        return not self.single

    @property
    def in_memory(self) -> bool:
        """Whether files are rejected."""
        return not self.streams

    @property
    def certified(self) -> bool:
        """Whether its certificate bounds the distance to the optimum."""
        return self.objective is not None

    @property
    def iterative(self) -> bool:
        return self.certified and not self.exact

    @property
    def takes_any_numbers(self) -> bool:
        return not self.counts

    @property
    def one_target(self) -> bool:
        return self.targets == 0

    @property
    def additive_classes(self) -> bool:
        """Whether rows of additional classes can be added."""
        return self.additive and self.classifier and not self.fixed_classes

    @property
    def fixed_classes(self) -> bool:
        """Whether parameters determine the number of classes."""
        return self.estimator.get_params().get("priors") is not None

    # -------------------------------------------------------------------------------- what scikit-learn's own tags say

    @property
    def weighted(self) -> bool:
        return bool(has_fit_parameter(self.estimator, "sample_weight"))

    @property
    def class_weighted(self) -> bool:
        """Whether classes may have weights."""
        return "class_weight" in self.estimator.get_params()

    @property
    def sparse(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.sparse)

    @property
    def allows_nan(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def complete(self) -> bool:
        """Whether missing values are rejected."""
        return not self.allows_nan

    @property
    def probable(self) -> bool:
        """Whether class probabilities are available."""
        return self.classifier and hasattr(self.estimator, "predict_proba")

    @property
    def numeric(self) -> bool:
        """Whether columns must be numeric; some models encode text by indicators."""
        return not getattr(self.estimator, "_factored", False)

    @property
    def timed(self) -> bool:
        return "max_time" in self.estimator.get_params()

    @property
    def parallel(self) -> bool:
        return "n_jobs" in self.estimator.get_params()

    @property
    def random(self) -> bool:
        return "random_state" in self.estimator.get_params()

    @property
    def in_parts(self) -> bool:
        """Whether classes are passed with the first of several parts of the rows."""
        return self.classifier and hasattr(self.estimator, "partial_fit")

    # ------------------------------------------------------------------------------------------------------- using it

    def data(self, size: str = "small", seed: int = 0) -> Data:
        whole = self._data(size, seed)
        return whole if len(whole.X) <= self.most_rows else whole.rows(slice(self.most_rows))

    def _data(self, size: str, seed: int) -> Data:
        if self.target == "factors":
            return _with_factor(*SIZES[size], seed)
        if self.target != "numbers":
            data = _with_targets(*SIZES[size], self.target, seed)
        else:
            data = _data(*SIZES[size], self.targets if self.supervised else None, seed)
        return Data(_as_counts(data.X, self.most_count), data.y, data.weight) if self.counts else data

    def wide_data(self) -> tuple[Any, Array]:
        """More columns than a matrix of pairs of them is formed for, and enough rows to determine them."""
        X, y = wide_sparse()
        return X, y if self.target == "numbers" else _drawn(y, self.target, seed=4)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return clone(self.estimator).fit(X, y, **weights)

    def model(self, size: str = "small", *, weighted: bool = False) -> Any:
        """Reference model of an array, fitted once for all tests; it must not be modified."""
        engine = current_engine()
        return _fitted(self, size, weighted, type(engine), engine.chunk_rows, chunks._PART_ELEMENTS)

    def wide_model(self) -> Any:
        """The same for `wide_data`."""
        return _fitted_wide(self)

    def first_part(self, data: Data, *, weighted: bool = False) -> Any:
        """A model of the first rows, to which others are added."""
        given: dict[str, Any] = {"sample_weight": data.weight} if weighted else {}
        if self.classifier:
            given["classes"] = np.unique(self.data().y)
        return clone(self.estimator).partial_fit(data.X, data.y, **given)

    def output(self, model: Any, X: Any) -> Any:
        """Outputs of the model for rows: predictions, probabilities for classifiers, or scores without these."""
        if self.method:
            return getattr(model, self.method)(X)
        if self.classifier:
            return model.predict_proba(X) if self.probable else model.decision_function(X)
        methods = {
            "regressor": "predict",
            "transformer": "transform",
            "clusterer": "predict",
            "density": "score_samples",
            "outlier detector": "decision_function",
        }
        return getattr(model, methods[self.kind])(X)

    def other_target(self, y: Any) -> Any:
        """Targets of the same kind of which the first is another one."""
        other = np.array(y)
        other[0] = other[0] + 1.0 if self.target == "numbers" else other[other != other[0]][0]
        return other

    def missing_target(self, y: Any) -> Any:
        """Targets of which one is missing."""
        missing = np.array(y, dtype=object if self.target == "words" else float)
        missing[5] = None if self.target == "words" else np.nan
        return missing

    def loss(self, y: Any, output: Any, weight: Any = None) -> float:
        """The objective without the penalty, squares or half the deviance, computed from predictions."""
        weight = np.ones(len(y)) if weight is None else weight
        if self.classifier:
            return -float(weight @ np.log(output[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]))
        if self.target == "shares":
            return float(weight @ (special.rel_entr(y, output) + special.rel_entr(1 - y, 1 - output)))
        if self.target != "numbers":
            power = {"counts": 1, "positive": 2, "amounts": 1.5}[self.target]
            return float(weight.sum() * mean_tweedie_deviance(y, output, sample_weight=weight, power=power) / 2)
        return float((weight * ((y - output) ** 2).T).sum())

    def constant(self, y: Any) -> Any:
        """Predictions of a model without features."""
        if self.classifier:
            return np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(y), 1))
        return np.broadcast_to(y.mean(axis=0), y.shape)


@functools.cache
def _named(case: Case) -> str:
    return repr(case.estimator).replace(" ", "")


@functools.cache
def _fitted(case: Case, size: str, weighted: bool, *grid: Any) -> Any:
    """The fit of `Case.model`; `grid` affects its bits in addition to the data."""
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
        # Slopes of both signs, so that positive=True is active.
        slopes = rng.normal(0.0, 1.0, (d, max(targets, 1)))
        y = X @ slopes + 2.0 + rng.normal(0.0, 0.5, (n, max(targets, 1)))
        y = y if targets else y[:, 0]
        y.flags.writeable = False
    X.flags.writeable = weight.flags.writeable = False
    return Data(X, y, weight)


@functools.cache
def _with_factor(n: int, d: int, seed: int) -> Data:
    """Columns that share a factor; small whole numbers first, then numbers that float32 can hold, then any."""
    rng = np.random.default_rng([seed, n, d, 1])
    X = np.outer(rng.normal(size=n), np.linspace(2.0, 3.5, d)) + rng.normal(0.0, 1.0, (n, d))
    X[:, :2] = np.clip(np.round(X[:, :2] + [0, 3]), [-5, 0], [5, 9])
    X[:, 2] = X[:, 2].astype(np.float32)
    weight = rng.integers(0, 4, n).astype(float)
    X.flags.writeable = weight.flags.writeable = False
    return Data(X, None, weight)


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


def _as_counts(X: Array, most: float) -> Array:
    counts = np.minimum(np.abs(np.round(X)), most)
    counts.flags.writeable = False
    return counts
