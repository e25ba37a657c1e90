"""The one list of estimators. A line in `CASES` puts an estimator under every promise that applies to it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from summula.features import PolynomialLift
from summula.linear_model import LinearRegression, PolynomialRegression, Ridge, RidgeCV
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
    scale_free : whether the predictions stay the same when columns are rescaled.
    wide_sparse : whether it has a way of its own for sparse data with thousands of columns.
    passes : whether a fit sums over the rows.
    repeats : whether a weight is so many repetitions of a row (not where rows are left out: all of them go together).
    unordered : whether the order of the rows is nothing to it.
    """

    estimator: Any
    kind: Literal["regressor", "transformer"]
    targets: int = 0
    scale_free: bool = False
    wide_sparse: bool = False
    passes: bool = True
    repeats: bool = True
    unordered: bool = True

    def __str__(self) -> str:
        return repr(self.estimator).replace(" ", "")

    # ---------------------------------------------------------------------------------- what it can do, by its tags

    @property
    def regressor(self) -> bool:
        return self.kind == "regressor"

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
        return bool(parameters.get("fit_intercept", parameters.get("with_mean", False)))

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
        return self.regressor

    @property
    def timed(self) -> bool:
        return "max_time" in self.estimator.get_params()

    @property
    def parallel(self) -> bool:
        return "n_jobs" in self.estimator.get_params()

    @property
    def incremental(self) -> bool:
        return hasattr(self.estimator, "partial_fit")

    @property
    def random(self) -> bool:
        return "random_state" in self.estimator.get_params()

    # ------------------------------------------------------------------------------------------------- using it

    def data(self, size: str = "small", seed: int = 0) -> Data:
        return _data(*SIZES[size], self.targets if self.regressor else None, seed)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return clone(self.estimator).fit(X, y, **weights)

    def output(self, model: Any, X: Any) -> Any:
        return model.predict(X) if self.regressor else model.transform(X)


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
def wide_sparse() -> tuple[Any, Array]:
    """More columns than a Gram matrix is formed for, and enough rows to determine them."""
    rng = np.random.default_rng(3)
    X = sparse.random_array((4_000, 2_100), density=0.01, rng=rng, format="csr")
    return X, X @ rng.normal(size=2_100) + 1.0 + 0.1 * rng.normal(size=4_000)


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
    Case(StandardScaler(), "transformer", scale_free=True),
    Case(StandardScaler(with_mean=False), "transformer", scale_free=True),
    Case(PolynomialLift(), "transformer", passes=False),
]


def over(*properties: str, cases: Iterable[Case] = CASES) -> pytest.MarkDecorator:
    """Run a test for every case that has these properties: `@over("regressor", "weighted")`."""
    chosen = [case for case in cases if all(getattr(case, name) for name in properties)]
    return pytest.mark.parametrize("case", chosen, ids=str)
