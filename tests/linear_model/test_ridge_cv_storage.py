"""RidgeCV: scorers, routed metadata, and every storage of the same rows."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import RidgeCV as Theirs
from sklearn.metrics import get_scorer, mean_absolute_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
)

import summula
from summula import ParameterError
from summula.linear_model import Ridge, RidgeCV
from summula.linear_model.cross_validation import leave_one_out, row_space
from summula.linear_model.cross_validation import ridge_errors as cross_validation
from tests.linear_model.ridge_refits import (
    ALPHAS,
    SPLITTERS,
    data,
)

# -------------------------------------------------------------------------------------------------------------- scorers


def size_of_model(estimator, X, y):
    return -np.abs(estimator.coef_).sum() - mean_absolute_error(y, estimator.predict(X))


class TestScorers:
    @pytest.mark.parametrize("targets", [0, 2])
    @pytest.mark.parametrize("keep", [np.asarray, sparse.csr_array])
    def test_a_scorer_is_given_what_grid_search_gives_it(self, targets, keep):
        X, y, _ = data(targets=targets)
        for scoring in ("neg_median_absolute_error", size_of_model):
            model = RidgeCV(ALPHAS, cv=4, scoring=scoring).fit(keep(X), y)
            search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=KFold(4), scoring=scoring).fit(X, y)
            np.testing.assert_allclose(model.scores_, search.cv_results_["mean_test_score"], rtol=1e-10)
            assert model.alpha_ == search.best_params_["alpha"]

    def test_weights_reach_a_scorer_that_takes_them(self):
        X, y, w = data()
        model, theirs = (
            kind(ALPHAS, cv=4, scoring="neg_mean_absolute_error").fit(X, y, w) for kind in (RidgeCV, Theirs)
        )
        assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-10)

    def test_an_estimator_without_weights_raises(self):
        X, y, w = data()
        with pytest.warns(UserWarning, match="does not support sample_weight, so test rows are not weighted"):
            model = RidgeCV(ALPHAS, cv=4, scoring=size_of_model).fit(X, y, w)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=KFold(4), scoring=size_of_model)
            search.fit(X, y, sample_weight=w)
        np.testing.assert_allclose(model.scores_, search.cv_results_["mean_test_score"], rtol=1e-10)

    def test_r2_of_single_rows_raises(self):
        X, y, _ = data()
        with pytest.warns(UndefinedMetricWarning, match="All mean scores are NaN.*neg_mean_squared_error") as caught:
            model = RidgeCV([3.0, 1.0], cv=LeaveOneOut()).fit(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert model.alpha_ == 3.0
        assert np.isnan(model.best_score_)


class TestRouting:
    def test_groups_and_weights_are_routed(self):
        X, y, w = data()
        groups = np.arange(90) % 11
        for kind in (RidgeCV, Theirs):
            with config_context(enable_metadata_routing=True):
                scorer = get_scorer("neg_mean_absolute_error").set_score_request(sample_weight=True)
                routed = kind(ALPHAS, cv=GroupKFold(5), scoring=scorer).set_fit_request(sample_weight=True)
                routed.fit(X, y, sample_weight=w, groups=groups)
            plain = RidgeCV(ALPHAS, cv=GroupKFold(5), scoring="neg_mean_absolute_error").fit(X, y, w, groups=groups)
            assert routed.alpha_ == plain.alpha_
            assert routed.best_score_ == pytest.approx(plain.best_score_, rel=1e-10)

    def test_weights_can_be_kept_from_the_scorer(self):
        X, y, w = data()
        for cv in (None, 5):
            with config_context(enable_metadata_routing=True):
                scorer = get_scorer("neg_mean_squared_error").set_score_request(sample_weight=False)
                model, theirs = (
                    kind(ALPHAS, cv=cv, scoring=scorer).fit(X, y, sample_weight=w) for kind in (RidgeCV, Theirs)
                )
            assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)

    def test_without_routing_other_parameters_are_refused(self):
        X, y, _ = data()
        with pytest.raises(ParameterError, match="supports colour= only if scikit-learn's metadata routing is enabled"):
            RidgeCV().fit(X, y, colour="red")


# -------------------------------------------------------------------------------------------------------------- storage


CVS = {"rows": None, "folds": 5, "shuffled": SPLITTERS["KFold, shuffled"], "repeated": SPLITTERS["RepeatedKFold"]}
cvs = pytest.mark.parametrize("cv", CVS.values(), ids=CVS.keys())


def assert_same(model, expected, rtol=1e-10):
    assert np.array_equal(model.alpha_, expected.alpha_)
    for name in ("scores_", "standard_errors_", "coef_", "intercept_", "best_score_"):
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=rtol, err_msg=name)


@pytest.mark.usefixtures("ridge_cv_way")
class TestStorage:
    @cvs
    @pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
    def test_sparse(self, cv, kind):
        X, y, w = data(targets=2)
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0)
        assert_same(RidgeCV(ALPHAS, cv=cv).fit(kind(X), y, w), RidgeCV(ALPHAS, cv=cv).fit(X, y, w))

    @cvs
    def test_frames_with_target_and_weight_by_name(self, cv, constructor):
        X, y, w = data()
        columns = {f"x{j}": column for j, column in enumerate(X.T)}
        model = RidgeCV(ALPHAS, cv=cv).fit(constructor({"y": y, **columns, "w": w}), "y", "w")
        assert model.feature_names_in_.tolist() == list(columns)
        assert_same(model, RidgeCV(ALPHAS, cv=cv).fit(X, y, w))

    @cvs
    @pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
    @pytest.mark.parametrize("targets", [1, 2])
    def test_parquet(self, cv, scoring, targets, tmp_path):
        X, y, w = data(targets=targets)
        names = [f"y{j}" for j in range(targets)]
        columns = {f"x{j}": column for j, column in enumerate(X.T)} | dict(zip(names, y.T, strict=True)) | {"w": w}
        parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=13)
        y, named = (y[:, 0], "y0") if targets == 1 else (y, names)
        with summula.engine("threads", chunk_rows=20):
            options = {"alphas": ALPHAS, "cv": cv, "scoring": scoring, "store_cv_results": cv is None}
            model = RidgeCV(**options).fit(summula.scan(tmp_path / "rows.parquet"), named, "w")
            expected = RidgeCV(**options).fit(X, y, w)
        assert_same(model, expected)
        if cv is None:
            np.testing.assert_allclose(model.cv_results_, expected.cv_results_, rtol=1e-11)

    def test_parquet_with_fewer_rows_than_columns(self, tmp_path):
        X, y, w = data(15, 30)
        columns = {f"x{j}": column for j, column in enumerate(X.T)} | {"y": y, "w": w}
        parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=4)
        with summula.engine("threads", chunk_rows=4):
            model = RidgeCV(ALPHAS).fit(summula.scan(tmp_path / "rows.parquet"), "y", "w")
        assert_same(model, RidgeCV(ALPHAS).fit(X, y, w))

    @cvs
    def test_float32_is_judged_in_double_precision(self, cv):
        X, y, _ = data()
        single = X.astype(np.float32)
        model, expected = RidgeCV(ALPHAS, cv=cv).fit(single, y), RidgeCV(ALPHAS, cv=cv).fit(single.astype(float), y)
        np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-11)
        assert model.coef_.dtype == np.float32
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)


@pytest.fixture
def narrow(monkeypatch, by_conjugate_gradients):
    for module in (cross_validation, leave_one_out, row_space):
        monkeypatch.setattr(module, "SPARSE_GRAM_COLUMNS", 10)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_mean_absolute_error"])
@pytest.mark.parametrize(("shape", "cv"), [((90, 20), None), ((90, 20), 5), ((15, 20), None), ((15, 20), 3)], ids=str)
def test_wide_sparse_data(shape, cv, scoring, weighted):
    X, y, w = data(*shape, targets=2)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0)
    w = w if weighted else None
    alphas = np.logspace(0, 4, 5)
    model = RidgeCV(alphas, cv=cv, scoring=scoring).fit(sparse.csr_array(X), y, w)
    expected = RidgeCV(alphas, cv=cv, scoring=scoring).fit(X, y, w)
    # Conjugate gradients stop at a relative gradient of 1e-10; with so few rows the condition number is about 1e3.
    assert_same(model, expected, rtol=1e-6)
