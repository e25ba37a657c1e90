"""Validation and learning curves."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
import sklearn.linear_model
import sklearn.model_selection
from sklearn.datasets import load_diabetes, load_iris
from sklearn.neighbors import KNeighborsClassifier

from summula.core.errors import DataError, ParameterError
from summula.linear_model import Ridge
from summula.model_selection import ValidationCurve, learning_curve, validation_curve

matplotlib.use("Agg")
IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    ("model", "data", "name", "values"),
    [
        (KNeighborsClassifier(), IRIS, "n_neighbors", [1, 9, 31, 71]),
        (Ridge(), DIABETES, "alpha", np.logspace(-3, 2, 4)),
    ],
    ids=["neighbours", "ridge"],
)
def test_scores_are_those_of_scikit_learn(model, data, name, values):
    options = {"param_name": name, "param_range": values, "cv": 5}
    curve = validation_curve(model, *data, **options)
    train, test = curve
    peers = sklearn.model_selection.validation_curve(model, *data, **options)
    np.testing.assert_allclose(train, peers[0], rtol=1e-9)
    np.testing.assert_allclose(test, peers[1], rtol=1e-9)
    mean = test.mean(axis=1)
    assert curve.best == values[int(np.argmax(mean))]
    error = test[np.argmax(mean)].std(ddof=1) / np.sqrt(5)
    near = [value for value, score in zip(values, mean, strict=True) if score >= mean.max() - error]
    assert curve.one_standard_error() == near[0]
    assert curve.one_standard_error("last") == near[-1]


def test_results_are_sequences_like_those_of_scikit_learn():
    curve = validation_curve(Ridge(), *DIABETES, param_name="alpha", param_range=[0.1, 1.0], cv=3)
    assert len(curve) == 2
    assert curve[1] is curve.test_scores
    assert np.hstack(curve).shape == (2, 6)
    learned = learning_curve(Ridge(), *DIABETES, train_sizes=[40, 80], cv=3, return_times=True)
    assert len(learned) == len(list(learned)) == 5
    assert learned[3] is learned.fit_times
    assert learned.score_times.shape == (2, 3)


@pytest.mark.parametrize("model", [Ridge(), sklearn.linear_model.Ridge()], ids=["ours", "theirs"])
def test_values_whose_fits_fail_do_not_count(model):
    curve = validation_curve(model, *DIABETES, param_name="alpha", param_range=[-1.0, 1.0], cv=3)
    assert np.isnan(curve.test_scores[0]).all()
    assert curve.best == curve.one_standard_error() == 1.0
    nothing = ValidationCurve("alpha", [1.0], np.full((1, 3), np.nan), np.full((1, 3), np.nan))
    with pytest.raises(DataError, match="No value of 'alpha' has a test score"):
        nothing.best  # noqa: B018


def test_random_splitters_use_the_same_splits_for_all_values():
    cv = sklearn.model_selection.ShuffleSplit(4, test_size=0.3)  # not seeded
    curve = validation_curve(Ridge(), *DIABETES, param_name="alpha", param_range=[1.0, 1.0], cv=cv)
    np.testing.assert_array_equal(curve.test_scores[0], curve.test_scores[1])


def test_plots():
    curve = validation_curve(Ridge(), *DIABETES, param_name="alpha", param_range=[1e-3, 1.0, 10.0], cv=3)
    ax = curve.plot()
    assert ax.get_xlabel() == "alpha"
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(ax.lines[1].get_ydata(), curve.test_scores.mean(axis=1))
    learned = learning_curve(Ridge(), *DIABETES, train_sizes=[40, 80, 200], cv=3)
    ax = learned.plot()
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [40, 80, 200])
    peer = sklearn.model_selection.learning_curve(Ridge(), *DIABETES, train_sizes=[40, 80, 200], cv=3)
    for ours, theirs in zip(learned, peer, strict=True):
        np.testing.assert_allclose(ours, theirs)
    matplotlib.pyplot.close("all")


def test_bad_options():
    with pytest.raises(ParameterError, match="param_range is empty"):
        validation_curve(Ridge(), *DIABETES, param_name="alpha", param_range=[])
    with pytest.raises(ParameterError, match="one score"):
        validation_curve(
            Ridge(), *DIABETES, param_name="alpha", param_range=[1.0], scoring=["r2", "neg_mean_squared_error"]
        )
    with pytest.raises(ParameterError, match="'first' or 'last'"):
        validation_curve(Ridge(), *DIABETES, param_name="alpha", param_range=[1.0]).one_standard_error("middle")
