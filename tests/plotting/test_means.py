"""The fitted mean: the curve is what the model predicts, the points are the data."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import PoissonRegressor as Theirs
from sklearn.svm import LinearSVC

from summula import DataError, ParameterError
from summula.linear_model import GeneralizedLinearRegressor, LinearRegression, LogisticRegression, PoissonRegressor
from summula.plotting import fitted_mean


def data(d=1, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, size=(n, d))
    return X, rng.poisson(np.exp(0.5 * X[:, 0]))


def drawn(ax):
    """The points and the curve."""
    (points,), (line,) = ax.collections, ax.get_lines()
    return points.get_offsets(), line.get_xydata()


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("Model", [PoissonRegressor, Theirs])
def test_data_and_curve(Model):
    X, y = data()
    model = Model(alpha=0).fit(X, y)
    ax = fitted_mean(model, X, y)
    points, curve = drawn(ax)
    np.testing.assert_array_equal(points, np.column_stack([X, y]))
    np.testing.assert_allclose(curve[:, 1], np.exp(model.intercept_ + model.coef_[0] * curve[:, 0]), rtol=1e-9)
    assert (curve[0, 0], curve[-1, 0]) == (X.min(), X.max())
    assert legend(ax) == ["data", "fitted mean"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("x0", "y", "")


def test_other_columns_are_fixed_at_their_median():
    X, y = data(3)
    model = PoissonRegressor(alpha=0).fit(X, y)
    ax = fitted_mean(model, X, y, column=2)
    points, curve = drawn(ax)
    np.testing.assert_array_equal(points[:, 0], X[:, 2])
    rows = np.tile(np.median(X, axis=0), (len(curve), 1))
    rows[:, 2] = curve[:, 0]
    np.testing.assert_allclose(curve[:, 1], model.predict(rows))
    assert (ax.get_xlabel(), ax.get_title()) == ("x2", "other columns at their median")


def test_two_classes_have_the_probability_of_the_second():
    X, y = data()
    labels = np.where(y > 2, "many", "few")
    for model in (LogisticRegression().fit(X, labels), TheirLogistic().fit(X, labels)):
        ax = fitted_mean(model, X, labels)
        points, curve = drawn(ax)
        np.testing.assert_array_equal(points[:, 1], labels == "many")
        np.testing.assert_allclose(curve[:, 1], model.predict_proba(curve[:, :1])[:, 1])
        assert ax.get_ylabel() == "P(y = many)"


def test_frames_have_names(constructor):
    X, y = data(2)
    frame = constructor({"hours": X[:, 0], "calls": y, "age": X[:, 1]})
    model = PoissonRegressor().fit(frame, "calls")
    ax = fitted_mean(model, frame, "calls", column="hours")
    points, curve = drawn(ax)
    np.testing.assert_array_equal(points, np.column_stack([X[:, 0], y]))
    rows = np.column_stack([curve[:, 0], np.full(len(curve), np.median(X[:, 1]))])
    np.testing.assert_allclose(curve[:, 1], PoissonRegressor().fit(X, y).predict(rows))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("hours", "calls", "the other column at its median")


def test_factors_are_fixed_at_the_most_frequent_level(constructor):
    X, y = data()
    kind = ["a"] * 10 + ["b"] * 30 + ["c"] * 20
    frame = constructor({"hours": X[:, 0], "kind": kind})
    model = GeneralizedLinearRegressor(family="poisson").fit(frame, y)
    ax = fitted_mean(model, frame, y)
    curve = drawn(ax)[1]
    same = constructor({"hours": curve[:, 0], "kind": ["b"] * len(curve)})
    np.testing.assert_allclose(curve[:, 1], model.predict(same))
    assert ax.get_title() == "the other column at its median or most frequent value"


def test_missing_numbers_in_a_frame(constructor):
    X, y = data(2)
    model = LinearRegression().fit(constructor({"a": X[:, 0], "b": X[:, 1]}), y)
    holes = [None if i % 9 == 0 else float(x) for i, x in enumerate(X[:, 1])]
    curve = drawn(fitted_mean(model, constructor({"a": X[:, 0], "b": holes}), y))[1]
    rows = np.column_stack([curve[:, 0], np.full(len(curve), np.median([x for x in holes if x is not None]))])
    np.testing.assert_allclose(curve[:, 1], rows @ model.coef_ + model.intercept_)


def test_the_legend_covers_no_data():
    X, y = data()
    rising = fitted_mean(PoissonRegressor().fit(X, y), X, y)
    falling = fitted_mean(PoissonRegressor().fit(-X, y), -X, y)
    assert rising.get_legend()._loc == 2  # upper left
    assert falling.get_legend()._loc == 1


def test_a_column_target_is_one_target():
    X, y = data()
    model = LinearRegression().fit(X, y[:, None])
    points, curve = drawn(fitted_mean(model, X, y[:, None]))
    np.testing.assert_allclose(curve[:, 1], model.predict(curve[:, :1])[:, 0])


def test_it_draws_on_the_given_axes():
    X, y = data()
    figure, ax = pyplot.subplots()
    assert fitted_mean(LinearRegression().fit(X, y), X, y, ax=ax) is ax
    assert pyplot.get_fignums() == [figure.number]


def test_errors_are_one_sentence():
    X, y = data()
    line = LinearRegression().fit(X, y)
    cases = [
        (line, X, y, {"column": 1}, ParameterError, "A column of fitted_mean must be a name or an int from 0 to 0"),
        (line, X, y[:5], {}, DataError, "X has 60 rows but y has 5; y must have one value per row"),
        (line, X, ["a"] * 60, {}, DataError, "y is not numeric"),
        (LinearRegression().fit(X, np.column_stack([y, y])), X, y, {}, ParameterError, "LinearRegression predicts 2"),
        (LogisticRegression().fit(X, y % 3), X, y % 3, {}, ParameterError, "plots at most two classes"),
        (LinearSVC().fit(X, y > 2), X, y > 2, {}, ParameterError, "LinearSVC has no predict_proba"),
    ]
    for model, rows, targets, options, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            fitted_mean(model, rows, targets, **options)
    with pytest.raises(NotFittedError, match="not fitted"):
        fitted_mean(LinearRegression(), X, y)
    assert not pyplot.get_fignums()
