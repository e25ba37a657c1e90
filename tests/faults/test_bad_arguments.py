"""Arguments other than X that are no numbers, no labels or no names: one sentence says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import summula
from summula import linear_model as linear
from summula.cluster import KMeans, MiniBatchKMeans
from summula.core.errors import DataError, ParameterError
from summula.discriminant_analysis import LinearDiscriminantAnalysis
from summula.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from summula.mixture import BernoulliMixture, GaussianMixture
from summula.model_selection import cross_validate
from summula.naive_bayes import BernoulliNB, GaussianNB
from summula.preprocessing import TableEncoder
from summula.tree import DecisionTreeClassifier
from tests.faults.sentences import one_sentence

N = 24
X = np.random.default_rng(0).normal(size=(N, 2))
Y = X @ [1.0, -2.0] + 0.1 * X[:, 0] ** 2
C = (Y > 0).astype(int)

ODD: dict[str, Any] = {
    "dates": np.array(["2020-01-01", "NaT"], "datetime64[D]"),
    "durations": np.array([1, 2], "timedelta64[h]"),
    "complex": np.array([1j, 2]),
    "text": np.array(["a", "b"]),
    "objects": np.array([{}, {}], object),
    "records": np.zeros(2, [("a", "f8")]),
    "ragged": [[1.0], [1.0, 2.0]],
}
USES: dict[str, Callable[[Any], Any]] = {
    "Ridge(alpha)": lambda odd: linear.Ridge(alpha=odd).fit(X, Y),
    "RidgeCV(alphas)": lambda odd: linear.RidgeCV(alphas=odd).fit(X, Y),
    "LassoCV(alphas)": lambda odd: linear.LassoCV(alphas=odd).fit(X, Y),
    "RidgeCV(cv)": lambda odd: linear.RidgeCV(cv=odd).fit(X, Y),
    "cross_validate(cv)": lambda odd: cross_validate(linear.Ridge(), X, Y, cv=odd),
    "GeneralizedLinearRegressor(lower)": lambda odd: linear.GeneralizedLinearRegressor(lower=odd).fit(X, Y),
    "fit(coef_init)": lambda odd: linear.SGDClassifier().fit(X, C, coef_init=odd),
    "fit(intercept_init)": lambda odd: linear.SGDRegressor().fit(X, Y, intercept_init=odd),
    "predict(offset)": lambda odd: linear.PoissonRegressor().fit(X, C).predict(X[:2], offset=odd),
    "predict(interval)": lambda odd: linear.LinearRegression().fit(X, Y).predict(X, interval=odd),
    "summary(level)": lambda odd: linear.LinearRegression().fit(X, Y).summary(level=odd),
    "summary(cov)": lambda odd: linear.LogisticRegression(C=np.inf).fit(X, C[::-1]).summary(cov=odd),
    "residuals(kind)": lambda odd: linear.PoissonRegressor().fit(X, C).residuals(X, C, kind=odd),
    "test_terms(kind)": lambda odd: linear.PoissonRegressor(alpha=0).fit(X, abs(Y)).test_terms(odd),
    "KMeans(init)": lambda odd: KMeans(2, init=odd).fit(X),
    "GaussianMixture(means_init)": lambda odd: GaussianMixture(2, means_init=odd).fit(X),
    "GaussianMixture(precisions_init)": lambda odd: GaussianMixture(2, precisions_init=odd).fit(X),
    "BernoulliMixture(weights_init)": lambda odd: BernoulliMixture(2, weights_init=odd).fit((X > 0) * 1.0),
    "GaussianNB(priors)": lambda odd: GaussianNB(priors=odd).fit(X, C),
    "BernoulliNB(class_prior)": lambda odd: BernoulliNB(class_prior=odd).fit(X, C),
    "LinearDiscriminantAnalysis(priors)": lambda odd: LinearDiscriminantAnalysis(priors=odd).fit(X, C),
    "RandomForestClassifier(class_weight)": lambda odd: RandomForestClassifier(2, class_weight=odd).fit(X, C),
    "monotonic_cst": lambda odd: RandomForestRegressor(2, monotonic_cst=odd).fit(X, Y),
    "partial_dependence(points)": lambda odd: _boosted().partial_dependence(X, 0, points=odd),
    "score(y), regressor": lambda odd: linear.LinearRegression().fit(X, Y).score(X[:2], odd),
    "score(y), classifier": lambda odd: linear.LogisticRegression().fit(X, C).score(X[:2], odd),
    "score(sample_weight)": lambda odd: linear.LogisticRegression().fit(X, C).score(X[:2], C[:2], odd),
    "summary(groups)": lambda odd: linear.LinearRegression().fit(X, Y).summary(cov="cluster", groups=odd),
    "partial_fit(y)": lambda odd: linear.Perceptron().fit(X, C).partial_fit(X[:2], odd),
}


def _boosted() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(max_iter=2).fit(X, Y)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.filterwarnings("ignore")
def test_unusual_arguments_raise_one_sentence(use: str, odd: str) -> None:
    with pytest.raises((DataError, ParameterError)) as caught:
        USES[use](ODD[odd])
    one_sentence(caught.value)


def test_targets_that_cannot_be_scored_are_named() -> None:
    model = linear.LinearRegression().fit(X, Y)
    with pytest.raises(DataError, match="The target y is NaN or infinite at row 3, so there is no score"):
        model.score(X, np.where(np.arange(N) == 3, np.nan, Y))
    with pytest.raises(DataError, match="The target y is None at row 0"):
        linear.LogisticRegression().fit(X, C).score(X, np.full(N, None, object))


def test_options_of_partial_dependence() -> None:
    for options in ({"output": 1}, {"output": -1}, {"points": 0}, {"column": 0.5}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            _boosted().partial_dependence(**{"X": X, "column": 0, **options})


def test_classes_and_class_weights() -> None:
    for classes in ([None, None], [[1], [2, 3]]):
        with pytest.raises(ParameterError, match="classes must be a list of labels"):
            linear.SGDClassifier().partial_fit(X, C, classes=classes)
    with pytest.raises(ParameterError, match="class_weight must be 'balanced', or a dict from labels to numbers"):
        DecisionTreeClassifier(class_weight={0: "much"}).fit(X, C)


@pytest.mark.parametrize(
    "model", [linear.ElasticNet(), RandomForestRegressor(2), HistGradientBoostingRegressor()], ids=str
)
def test_a_warm_start_that_is_no_boolean(model: Any) -> None:
    with pytest.raises(ParameterError, match="The 'warm_start' parameter of .* must be an instance of 'bool'"):
        model.set_params(warm_start=np.ones(2)).fit(X, Y)


def test_centres_too_far_for_squared_distances() -> None:
    with pytest.raises(DataError, match="Squared distances from rows to the initial centres exceed"):
        MiniBatchKMeans(2, init=np.full((2, 2), 1e308)).fit(X)


def test_other_targets_for_out_of_bag_importances() -> None:
    forest = RandomForestRegressor(5, random_state=0).fit(X, np.column_stack([Y, -Y]))
    with pytest.raises(DataError, match="y has 1 targets, and the forest was fitted to 2"):
        forest.oob_importances(X, Y)


def test_more_draws_than_any_forest_needs() -> None:
    with pytest.raises(ParameterError, match="max_samples=4294967296 draws far more rows for each tree"):
        RandomForestRegressor(1, max_samples=2**32).fit(X, Y)


def test_wide_integers_of_a_scanned_frame_are_those_of_the_frame() -> None:
    wide = pl.Series("b", [2**100 + 7 * k for k in range(N)], dtype=pl.Int128) // 2**90
    frame = pl.DataFrame({"a": X[:, 0], "y": Y}).with_columns(wide)
    model, scanned = linear.Ridge().fit(frame, "y"), linear.Ridge().fit(summula.scan(frame), "y")
    np.testing.assert_array_equal(scanned.coef_, model.coef_)


def test_unions_and_arrays_in_columns() -> None:
    union = pa.UnionArray.from_dense(pa.array([0] * N, pa.int8()), pa.array(range(N), pa.int32()), [pa.array(range(N))])
    table = pa.table({"a": X[:, 0], "u": union})
    with pytest.raises(DataError, match="Column 'u' contains"):
        linear.Ridge().fit(table, "a")
    with pytest.raises(DataError, match="union"):
        TableEncoder().fit(summula.scan(table))
    lists = pa.table({"a": X[:, 0], "f": pa.array([[1, 2]] * N, pa.list_(pa.int32(), 2))}).to_pandas()
    with pytest.raises(DataError, match="'f'"):
        TableEncoder().fit(lists)
