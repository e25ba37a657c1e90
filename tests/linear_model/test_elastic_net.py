"""Lasso, elastic net, their paths and selection of alpha: scikit-learn, files, weights, certificates, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as theirs
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, ShuffleSplit

import summula
from summula import DataError, ParameterError
from summula.linear_model import ElasticNet, ElasticNetCV, Lasso, LassoCV, enet_path, lasso_path

EXACT = {"tol": 1e-12, "max_iter": 100_000}


def data(n=150, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(0.1, 10, d) + 2
    y = X[:, :4] @ np.array([3.0, -2.0, 1.0, 0.5]) + rng.standard_normal(n)
    return X, y, rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"positive": True}])
@pytest.mark.parametrize("shape", [(150, 12), (40, 90)])
@pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
def test_scikit_learn_agrees(name, shape, options):
    X, y, w = data(*shape)
    ours = getattr(summula.linear_model, name)(alpha=0.1, **options).fit(X, y, w)
    other = getattr(theirs, name)(alpha=0.1, **options, **EXACT).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), other.predict(X), atol=1e-5)
    assert ours.certificate_.verify(X, y, w)
    np.testing.assert_allclose(ours.score(X, y), other.score(X, y), rtol=1e-6)


def test_storage(tmp_path):
    X, y, w = data()
    expected = Lasso(0.1).fit(X, y, w)
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=y, w=w)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=40)
    by_file = Lasso(0.1).fit(summula.scan(tmp_path / "rows.parquet"), "y", sample_weight="w")
    by_frame = Lasso(0.1).fit(frame, "y", sample_weight="w")
    np.testing.assert_array_equal(by_file.coef_, expected.coef_)
    np.testing.assert_array_equal(by_frame.coef_, expected.coef_)
    np.testing.assert_allclose(Lasso(0.1).fit(sparse.csc_matrix(X), y, w).coef_, expected.coef_, atol=1e-10)
    assert Lasso(0.1).fit(X.astype(np.float32), y).coef_.dtype == np.float32
    alphas, coefs, _ = lasso_path(summula.scan(tmp_path / "rows.parquet"), "y", alphas=5)
    assert coefs.shape == (len(names) + 1, 5)  # w is a column here


def test_wide_sparse():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 5_000), density=0.01, rng=rng, format="csr")
    y = X[:, :10] @ np.ones(10) * 5 + 0.1 * rng.standard_normal(300)
    ours, other = Lasso(0.001).fit(X, y), theirs.Lasso(alpha=0.001, **EXACT).fit(X.tocsc(), y)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-6)
    assert ours.certificate_.verify(X, y)


def test_several_targets():
    X, y, _ = data()
    Y = np.column_stack([y, -y, X[:, 0]])
    model = Lasso(0.1).fit(X, Y)
    other = theirs.Lasso(alpha=0.1, **EXACT).fit(X, Y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-5)
    assert model.certificate_.verify(X, Y)
    assert model.certificate_.gap == sum(model.dual_gap_)


def test_certified_zeros_are_zero_in_any_better_fit():
    X, y, _ = data(60, 100)
    rough = Lasso(0.2, max_iter=10, tol=1e-2)
    with pytest.warns(ConvergenceWarning) if _cut_short(rough, X, y) else _nothing():
        rough.fit(X, y)
    exact = Lasso(0.2).fit(X, y)
    assert not exact.coef_[rough.certificate_.zeros[0]].any()
    np.testing.assert_array_equal(exact.certificate_.zeros[0], exact.coef_ == 0)


def _cut_short(model, X, y):
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        type(model)(**model.get_params()).fit(X, y)
    return bool(caught)


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_paths():
    X, y, _ = data()
    alphas, coefs, gaps = lasso_path(X, y, alphas=30)
    grid, other, _ = theirs.lasso_path(X, y, alphas=30, **EXACT)
    np.testing.assert_allclose(alphas, grid)
    np.testing.assert_allclose(coefs, other, atol=1e-5)
    assert gaps.max() < 1e-8 * (y @ y) / len(y)
    _, coefs, _, counts = enet_path(X, y, l1_ratio=0.3, alphas=[1.0, 0.1], return_n_iter=True)
    np.testing.assert_allclose(coefs, theirs.enet_path(X, y, l1_ratio=0.3, alphas=[1.0, 0.1], **EXACT)[1], atol=1e-6)
    assert len(counts) == 2


@pytest.mark.parametrize("shape", [(150, 12), (60, 90)])
def test_choosing_alpha(shape):
    X, y, w = data(*shape)
    ours = LassoCV(cv=4, tol=1e-8).fit(X, y, w)
    other = theirs.LassoCV(cv=4, tol=1e-8, max_iter=100_000).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.alphas_, other.alphas_)
    np.testing.assert_allclose(ours.mse_path_, other.mse_path_, rtol=1e-3)
    np.testing.assert_allclose(ours.alpha_, other.alpha_)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-5)
    wide = LassoCV(cv=4, select="1se").fit(X, y)
    assert wide.alpha_ >= LassoCV(cv=4).fit(X, y).alpha_
    mean, place = wide.mse_path_.mean(axis=1), int(np.flatnonzero(wide.alphas_ == wide.alpha_)[0])
    best = int(mean.argmin())
    limit = mean[best] + wide.mse_path_[best].std(ddof=1) / 2
    assert mean[place] <= limit
    assert place == 0 or mean[place - 1] > limit


@pytest.mark.parametrize("seed", range(3))
def test_paths_of_splits_of_two_rows_are_those_of_scikit_learn_with_a_small_tol(seed):
    rng = np.random.default_rng(seed)
    X, y, alphas = rng.normal(size=(3, 2)), rng.normal(size=3), [1.0, 0.1, 1e-3]
    ours = LassoCV(cv=3, alphas=alphas, tol=1e-12).fit(X, y)
    other = theirs.LassoCV(cv=3, alphas=alphas, tol=1e-13, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(ours.mse_path_, other.mse_path_, rtol=1e-9)


def test_choosing_the_ratio_and_splitters():
    X, y, _ = data()
    ours = ElasticNetCV(l1_ratio=[0.2, 0.9], cv=3, tol=1e-8, alphas=20).fit(X, y)
    other = theirs.ElasticNetCV(l1_ratio=[0.2, 0.9], cv=3, tol=1e-8, alphas=20, max_iter=100_000).fit(X, y)
    assert ours.l1_ratio_ == other.l1_ratio_
    np.testing.assert_allclose(ours.alpha_, other.alpha_)
    np.testing.assert_allclose(ours.mse_path_, other.mse_path_, rtol=1e-4)
    assert LassoCV(cv=ShuffleSplit(3, random_state=0)).fit(X, y).mse_path_.shape == (100, 3)
    groups = np.arange(len(y)) % 6
    assert LassoCV(cv=GroupKFold(3)).fit(X, y, groups=groups).mse_path_.shape == (100, 3)


def test_choosing_from_a_file(tmp_path):
    X, y, _ = data(400, 6)
    pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_parquet(tmp_path / "r.parquet", row_group_size=90)
    by_file = LassoCV(cv=4).fit(summula.scan(tmp_path / "r.parquet"), "y")
    expected = LassoCV(cv=4).fit(X, y)
    np.testing.assert_array_equal(by_file.mse_path_, expected.mse_path_)
    np.testing.assert_array_equal(by_file.coef_, expected.coef_)


def test_saving(tmp_path):
    X, y, _ = data()
    for model in (Lasso(0.1), ElasticNet(0.1), LassoCV(cv=3, alphas=10)):
        model.fit(X, y)
        summula.save(model, tmp_path / "m.summula")
        loaded = summula.load(tmp_path / "m.summula")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.certificate_.verify(X, y)


def test_bad_input():
    X, y, _ = data()
    with pytest.raises(ParameterError, match="alpha"):
        Lasso(-1.0).fit(X, y)
    with pytest.raises(ParameterError, match="l1_ratio"):
        ElasticNet(l1_ratio=1.5).fit(X, y)
    bad = X.copy()
    bad[5, 3] = np.nan
    with pytest.raises(DataError, match="Column 3 has 1 missing value"):
        Lasso().fit(bad, y)
    with pytest.raises(ParameterError, match="l1_ratio=0"):
        enet_path(X, y, l1_ratio=0)
    with pytest.warns(UserWarning, match="LinearRegression"):
        plain = Lasso(0.0).fit(X, y)
    np.testing.assert_allclose(plain.coef_, summula.linear_model.LinearRegression().fit(X, y).coef_, atol=1e-6)


def test_no_l1_is_ridge():
    X, y, _ = data()
    model = ElasticNet(alpha=0.3, l1_ratio=0.0).fit(X, y)
    ridge = summula.linear_model.Ridge(alpha=0.3 * len(y)).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-7)
    assert model.certificate_.verify(X, y)
