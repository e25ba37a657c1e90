"""StandardScaler: mean 0 and variance 1 against NumPy and scikit-learn; NaN, weights, sparse data, partial fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler as Theirs

from summula import DataError, engine
from summula.preprocessing import StandardScaler
from tests.reference import sums


def data(n=50, d=3, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [0.01, 1.0, 100.0][:d] + [5.0, 0.0, -1e4][:d]
    return np.where(rng.random((n, d)) < 0.2, np.nan, X) if missing else X


def check_same(ours, theirs, rtol=1e-12):
    for name in ("mean_", "var_", "scale_", "n_samples_seen_"):
        a, b = getattr(ours, name), getattr(theirs, name)
        if b is None:
            assert a is None, name
        else:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13, err_msg=name)


# --------------------------------------------------------------------------------------------------------- closed form


def test_scaled_columns_have_mean_zero_and_variance_one():
    Z = StandardScaler().fit_transform(data())
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(Z.var(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_mean_and_variance_keep_their_digits_far_from_zero(offset):
    X = data(2000, 1) + offset
    want = sums.moments(X)
    with engine("threads", chunk_rows=64):
        scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(scaler.mean_, want.mean.astype(float), rtol=1e-15)
    np.testing.assert_allclose(scaler.var_, want.variance.astype(float), rtol=1e-12)


def test_missing_values_cost_no_digits_either():
    X = data(2000, 1) + 1e8
    X[::7] = np.nan
    scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(scaler.var_, sums.moments(X).variance.astype(float), rtol=1e-12)
    X = np.where(np.isnan(X), np.nan, 0.1)
    assert StandardScaler().fit(X).var_[0] == 0


# -------------------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("with_std", [True, False])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_it_is_scikit_learn_on_dense_data(with_mean, with_std, missing, weighted):
    X = data(missing=missing)
    w = np.random.default_rng(1).random(50) if weighted else None
    ours = StandardScaler(with_mean=with_mean, with_std=with_std).fit(X, sample_weight=w)
    theirs = Theirs(with_mean=with_mean, with_std=with_std).fit(X, sample_weight=w)
    if not (with_mean or with_std):
        theirs.n_samples_seen_ = ours.n_samples_seen_  # only there scikit-learn counts rows despite weights
    check_same(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, rtol=1e-12)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("with_std", [True, False])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_it_is_scikit_learn_on_sparse_data(kind, with_std, missing, weighted):
    X = data() * (np.random.default_rng(2).random((50, 3)) < 0.4)
    if missing:
        X[[1, 7, 7], [0, 1, 2]] = np.nan
    w = np.random.default_rng(1).random(50) if weighted else None
    Z = kind(X)
    ours = StandardScaler(with_mean=False, with_std=with_std).fit(Z, sample_weight=w)
    theirs = Theirs(with_mean=False, with_std=with_std).fit(Z, sample_weight=w)
    check_same(ours, theirs)
    got = ours.transform(Z)
    assert sparse.issparse(got)
    np.testing.assert_allclose(got.toarray(), theirs.transform(Z).toarray(), rtol=1e-12)
    np.testing.assert_allclose(ours.inverse_transform(got).toarray(), X, rtol=1e-12)
    dense = StandardScaler(with_mean=False, with_std=with_std).fit(X, sample_weight=w)
    np.testing.assert_allclose(got.toarray(), dense.transform(X), rtol=1e-9)


def test_sparse_data_cannot_be_centred():
    Z = sparse.csr_array(data())
    with pytest.raises(DataError, match="with_mean=False"):
        StandardScaler().fit(Z)
    with pytest.raises(DataError, match="with_mean=False"):
        StandardScaler().fit(data()).transform(Z)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, 1e8, 1e-30])
@pytest.mark.parametrize("weighted", [True, False])
def test_constant_columns_become_zero_and_are_divided_by_one(dtype, constant, weighted):
    X = np.column_stack([np.full(100, constant), np.arange(100.0)]).astype(dtype)
    w = np.random.default_rng(0).random(100) if weighted else None
    with engine("threads", chunk_rows=7):
        scaler = StandardScaler().fit(X, sample_weight=w)
    assert scaler.scale_[0] == 1
    assert scaler.var_[0] == 0
    assert not scaler.transform(X)[:, 0].any()


def test_columns_that_vary_by_rounding_only_are_constant():
    X = np.full((1000, 1), 1.0)
    X[::2] += np.finfo(float).eps
    scaler = StandardScaler().fit(X)
    assert scaler.scale_[0] == 1


def test_columns_of_missing_values_only():
    X = data()
    X[:, 1] = np.nan
    ours = StandardScaler().fit(X)
    assert np.isnan(ours.mean_[1])
    assert np.isnan(ours.transform(X)[:, 1]).all()
    np.testing.assert_allclose(ours.mean_[[0, 2]], X[:, [0, 2]].mean(axis=0), rtol=1e-12)


def test_one_row():
    scaler = StandardScaler().fit([[3.0, 4.0]])
    np.testing.assert_array_equal(scaler.transform([[3.0, 5.0]]), [[0.0, 1.0]])


# ---------------------------------------------------------------------------------------------------------- invariances


def test_weights_are_repetition():
    X = data(missing=True)
    w = np.random.default_rng(0).integers(0, 4, 50)
    a, b = StandardScaler().fit(X, sample_weight=w), StandardScaler().fit(np.repeat(X, w, axis=0))
    check_same(a, b)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.booleans(), st.booleans())
def test_rows_by_rows_is_all_at_once(sizes, missing, weighted):
    X = data(sum(sizes), missing=missing)
    w = np.random.default_rng(1).integers(1, 4, len(X)).astype(float) if weighted else None
    X[0] = [5.0, 0.0, -1e4]  # every column has been seen
    by_parts = StandardScaler()
    for part in np.split(np.arange(len(X)), np.cumsum(sizes)[:-1]):
        by_parts.partial_fit(X[part], sample_weight=None if w is None else w[part])
    at_once = StandardScaler().fit(X, sample_weight=w)
    check_same(by_parts, at_once, rtol=1e-9)
    if not missing:  # scikit-learn returns NaN after a part in which a column is entirely missing
        theirs = Theirs()
        for part in np.split(np.arange(len(X)), np.cumsum(sizes)[:-1]):
            theirs.partial_fit(X[part], sample_weight=None if w is None else w[part])
        check_same(by_parts, theirs, rtol=1e-9)


def test_rows_by_rows_on_sparse_data():
    X = sparse.csr_array(data() * (np.random.default_rng(2).random((50, 3)) < 0.4))
    by_parts = StandardScaler(with_mean=False)
    for start in range(0, 50, 10):
        by_parts.partial_fit(X[start : start + 10])
    check_same(by_parts, StandardScaler(with_mean=False).fit(X))


def test_partial_fit_checks_the_columns():
    scaler = StandardScaler().partial_fit(data())
    with pytest.raises(ValueError, match="features"):
        scaler.partial_fit(data(d=2))
    assert scaler.n_samples_seen_ == 50, "what was there is still there"


def test_fit_forgets_what_was_before():
    X = data()
    scaler = StandardScaler().fit(X + 100)
    scaler.fit(X)
    check_same(scaler, StandardScaler().fit(X))


@pytest.mark.parametrize("chunk_rows", [1, 7, None])
def test_chunks_do_not_matter(chunk_rows):
    X = data(missing=True)
    with engine("threads", chunk_rows=chunk_rows):
        scaler = StandardScaler().fit(X)
        Z = scaler.transform(X)
    check_same(scaler, StandardScaler().fit(X))
    np.testing.assert_allclose(Z, (X - scaler.mean_) / scaler.scale_, rtol=1e-12)


def test_frames(constructor):
    X = data()
    frame = constructor({"a": X[:, 0].copy(), "b": X[:, 1].copy(), "c": X[:, 2].copy()})
    scaler = StandardScaler().fit(frame)
    check_same(scaler, StandardScaler().fit(X))
    np.testing.assert_array_equal(scaler.transform(frame), (X - scaler.mean_) / scaler.scale_)
    assert list(scaler.get_feature_names_out()) == ["a", "b", "c"]


# ------------------------------------------------------------------------------------------------------------ in place


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_copy_an_array_is_scaled_in_place(order, dtype):
    X = np.asarray(data(), dtype, order=order)
    want = StandardScaler().fit_transform(X.copy())
    scaler = StandardScaler(copy=False).fit(X)
    Z = scaler.transform(X)
    assert Z is X
    np.testing.assert_array_equal(X, want)
    back = scaler.inverse_transform(X)
    assert back is X
    np.testing.assert_allclose(X, data().astype(dtype), rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_the_argument_outdoes_the_parameter():
    X = data()
    scaler = StandardScaler().fit(X)
    assert scaler.transform(X, copy=False) is X
    Y = data()
    assert not np.shares_memory(StandardScaler(copy=False).fit(Y).transform(Y, copy=True), Y)


def test_with_copy_the_data_are_left_alone():
    X = data()
    before = X.copy()
    scaler = StandardScaler().fit(X)
    scaler.inverse_transform(scaler.transform(X))
    np.testing.assert_array_equal(X, before)


def test_what_cannot_be_scaled_in_place_is_copied():
    scaler = StandardScaler(copy=False).fit(data())
    for X in (np.arange(6).reshape(2, 3), [[1, 2, 3], [4, 5, 6]]):
        before = np.array(X)
        Z = scaler.transform(X)
        np.testing.assert_allclose(Z, (before - scaler.mean_) / scaler.scale_, rtol=1e-12)
        np.testing.assert_array_equal(X, before)
    locked = data()
    locked.flags.writeable = False
    assert not np.shares_memory(scaler.transform(locked), locked)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_infinite_values_are_located(kind):
    X = data()
    X[31, 1] = np.inf
    with pytest.raises(DataError, match=r"Column 1 has 1 infinite value .*row 31"):
        StandardScaler(with_mean=False).fit(kind(X))


def test_an_unfitted_scaler_raises_not_fitted_error():
    with pytest.raises(NotFittedError):
        StandardScaler().transform(data())


def test_float32_stays_float32():
    X = data().astype(np.float32)
    scaler = StandardScaler().fit(X)
    assert scaler.transform(X).dtype == np.float32
    np.testing.assert_allclose(scaler.mean_, data().mean(axis=0), rtol=1e-5, atol=1e-5)
