"""One-pass cross-validation has the same scores as refitting."""

from __future__ import annotations

import inspect

import dask.array
import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from summula import model_selection
from summula.core.errors import DataError
from summula.decomposition import PCA
from summula.discriminant_analysis import LinearDiscriminantAnalysis
from summula.linear_model import LinearRegression, Ridge
from summula.model_selection import cross_validation
from summula.naive_bayes import GaussianNB, MultinomialNB

DIABETES, IRIS = load_diabetes(return_X_y=True), load_iris(return_X_y=True)
FEWEST_SAVED = cross_validation._FEWEST_SAVED


@pytest.fixture(autouse=True)
def _merge_small_data(monkeypatch):
    monkeypatch.setattr(cross_validation, "_FEWEST_SAVED", 0)


@pytest.fixture
def fits(monkeypatch):
    """The numbers of rows of all fits of LinearRegression."""
    rows, fit = [], LinearRegression.fit
    monkeypatch.setattr(LinearRegression, "fit", lambda self, X, *a, **k: rows.append(len(X)) or fit(self, X, *a, **k))
    return rows


@pytest.mark.parametrize("as_frame", [False, True])
def test_folds_are_fitted_once(fits, as_frame):
    X, y = DIABETES
    X, y = (pd.DataFrame(X).add_prefix("x"), pd.Series(y)) if as_frame else (X, y)
    model_selection.cross_validate(LinearRegression(), X, y, cv=5)
    assert sorted(fits) == [88, 88, 88, 89, 89]


SPLITTERS = [
    5,
    model_selection.TimeSeriesSplit(4),
    model_selection.ShuffleSplit(6, test_size=0.1, random_state=0),
    model_selection.RepeatedKFold(n_splits=4, n_repeats=2, random_state=1),
]


def test_small_data_are_refitted(fits, monkeypatch):
    monkeypatch.setattr(cross_validation, "_FEWEST_SAVED", FEWEST_SAVED)
    X, y = np.random.default_rng(0).normal(size=(20_000, 20)), np.arange(20_000.0)
    model_selection.cross_validate(LinearRegression(), X, y, cv=5)
    model_selection.cross_validate(LinearRegression(), X[:50], y[:50], cv=5)
    assert fits == [4_000] * 5 + [40] * 5


@pytest.mark.parametrize("name", ["cross_validate", "cross_val_score", "validation_curve", "learning_curve"])
def test_parameters_are_those_of_scikit_learn(name):
    ours, theirs = (
        inspect.signature(getattr(one, name)).parameters for one in (model_selection, sklearn.model_selection)
    )
    assert list(ours) == list(theirs)
    assert [p.kind for p in ours.values()] == [p.kind for p in theirs.values()]
    for key in ours.keys() - {"y", "train_sizes", "error_score"}:
        assert ours[key].default == theirs[key].default
    assert np.isnan(ours["error_score"].default)
    if "train_sizes" in ours:
        np.testing.assert_allclose(ours["train_sizes"].default, theirs["train_sizes"].default)


@pytest.mark.parametrize("cv", SPLITTERS, ids=lambda cv: type(cv).__name__)
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(0.1), PCA(2)], ids=lambda m: type(m).__name__)
def test_scores_are_those_of_refitting(model, cv):
    X, y = DIABETES
    found = model_selection.cross_validate(model, X, y, cv=cv, return_train_score=True)
    peer = sklearn.model_selection.cross_validate(model, X, y, cv=cv, return_train_score=True)
    assert found.keys() == peer.keys()
    for name in ("test_score", "train_score"):
        np.testing.assert_allclose(found[name], peer[name], rtol=1e-9)


@pytest.mark.parametrize("model", [GaussianNB(), LinearDiscriminantAnalysis()], ids=lambda m: type(m).__name__)
def test_classifiers_and_several_scores(model):
    X, y = IRIS
    options = {"scoring": ["accuracy", "neg_log_loss"], "cv": 4, "return_estimator": True, "return_indices": True}
    found = model_selection.cross_validate(model, X, y, return_train_score=True, **options)
    peer = sklearn.model_selection.cross_validate(model, X, y, return_train_score=True, **options)
    assert list(found) == list(peer)
    np.testing.assert_array_equal(found["estimator"][1].predict(X), peer["estimator"][1].predict(X))
    for name in ("test_accuracy", "test_neg_log_loss"):
        np.testing.assert_allclose(found[name], peer[name], rtol=1e-9)
    np.testing.assert_array_equal(found["indices"]["test"][2], peer["indices"]["test"][2])


def test_warnings_are_those_of_the_models_of_the_splits():
    X, y = IRIS
    with pytest.warns(UserWarning, match="alpha too small") as caught:
        model_selection.cross_validate(MultinomialNB(alpha=0.0, force_alpha=False), X, y, cv=4)
    assert len(caught) == 4  # one per split, and none of groups that were fitted alone


class ListClassifier(DummyClassifier):
    """Accept lists only."""

    def fit(self, X, y):
        assert isinstance(X, list)
        assert isinstance(y, list)
        return super().fit(X, y)

    def predict(self, X):
        assert isinstance(X, list)
        return super().predict(X)


def test_lists_reach_other_estimators_as_they_are():
    X, y = IRIS
    model_selection.cross_validate(ListClassifier(), X.tolist(), y.tolist(), cv=3, error_score="raise")


def test_dask_collections_are_refused():
    X, y = DIABETES
    with pytest.raises(DataError, match=r"X.compute\(\)"):
        model_selection.cross_validate(LinearRegression(), dask.array.from_array(X), y)


def test_classes_missing_from_folds():
    X, y = IRIS
    cv = model_selection.KFold(3)  # unshuffled: each fold is one class
    found = model_selection.cross_val_score(GaussianNB(), X, y, cv=cv)
    np.testing.assert_array_equal(found, 0.0)


def test_weights(fits):
    X, y = DIABETES
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    options = {"cv": 4, "params": {"sample_weight": weight}}
    found = model_selection.cross_validate(LinearRegression(), X, y, **options)["test_score"]
    assert max(fits) < 200
    peer = sklearn.model_selection.cross_validate(LinearRegression(), X, y, **options)["test_score"]
    np.testing.assert_allclose(found, peer, rtol=1e-9)
    assert np.abs(found - model_selection.cross_val_score(LinearRegression(), X, y, cv=4)).max() > 1e-4


def test_ill_conditioned_columns_are_refitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 2] = X[:, 1] + 1e-7 * X[:, 2]  # condition about 1e7: products of columns lose the digits
    y = X @ [1.0, 2.0, 3.0] + 1e-6 * rng.normal(size=300)
    found = model_selection.cross_val_score(LinearRegression(), X, y, cv=3, scoring="neg_mean_squared_error")
    peer = sklearn.model_selection.cross_val_score(LinearRegression(), X, y, cv=3, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(found, peer, rtol=1e-6)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(1e-6), Ridge(1.0)], ids=str)
def test_columns_with_a_common_trend_are_refitted(model):
    """Products of columns lose the difference of these columns, and least squares would treat them as dependent."""
    X, y = DIABETES
    A = X + 1e4 * np.arange(len(y))[:, None]
    found = model_selection.cross_val_score(model, A, y, cv=3)
    np.testing.assert_allclose(found, sklearn.model_selection.cross_val_score(model, A, y, cv=3), rtol=1e-6)


def test_other_estimators_go_to_scikit_learn():
    X, y = IRIS
    model = LogisticRegression(max_iter=500)
    found = model_selection.cross_val_score(model, X, y, cv=3, scoring="accuracy")
    np.testing.assert_array_equal(found, sklearn.model_selection.cross_val_score(model, X, y, cv=3, scoring="accuracy"))


def test_errors_are_those_of_refitting():
    X, y = DIABETES
    with pytest.raises(ValueError, match="NaN|missing"):
        model_selection.cross_validate(LinearRegression(), np.full_like(X, np.nan), y, error_score="raise")
    with pytest.raises(DataError, match="load the rows first"):
        model_selection.cross_validate(LinearRegression(), X, "target")


def test_splitters_are_those_of_scikit_learn():
    assert model_selection.KFold is sklearn.model_selection.KFold
    assert set(model_selection.__all__) <= set(dir(model_selection))
    for name in model_selection.__all__:
        assert getattr(model_selection, name) is not None
    assert cross_validation.cross_validate is model_selection.cross_validate
