"""PolynomialLift: dense and sparse monomials against plain products and scikit-learn's PolynomialFeatures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from summula import DataError, ParameterError, engine
from summula.features import PolynomialLift
from summula.features.polynomial_lift import lift, monomials, n_monomials
from summula.features.sparse_lift import lift_sparse
from tests.reference import monomials as reference

shapes = st.tuples(st.integers(1, 7), st.integers(1, 5), st.integers(1, 4), st.booleans())


def rows(n, d, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, d)).astype(float)  # whole numbers: products are exact in any order
    return np.where(rng.random((n, d)) < density, X, 0.0)


# -------------------------------------------------------------------------------------------------------------- kernels


@given(shapes)
def test_the_blocks_of_tails_are_the_monomials_one_by_one(shape):
    n, d, degree, only = shape
    X = rows(n, d)
    out = np.empty((n, n_monomials(d, degree, interaction_only=only)))
    got = lift(X, degree, out, interaction_only=only)
    assert got is out
    want = reference.lift(X, min(degree, d) if only else degree, interaction_only=only)
    np.testing.assert_array_equal(got, want)


@settings(max_examples=50, deadline=None)
@given(shapes, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([np.int32, np.int64]))
def test_the_sparse_kernel_gives_them_in_their_places(shape, density, index):
    n, d, degree, only = shape
    X = rows(n, d, density=density)
    Z = sparse.csr_array(X)
    Z = sparse.csr_array((Z.data, Z.indices.astype(index), Z.indptr.astype(index)), shape=Z.shape)
    n_out = n_monomials(d, degree, interaction_only=only)
    got = lift_sparse(Z, degree, n_out, only)
    want = lift(X, degree, np.empty((n, n_out)), interaction_only=only)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.toarray(), want)
    assert got.nnz == np.count_nonzero(want), "nothing is stored but products of stored values"


def test_unsorted_and_repeated_indices_are_put_in_order_and_the_caller_keeps_his():
    data, indices, indptr = np.array([2.0, 3.0, 4.0, 1.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])
    X = sparse.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(2, 3))
    got = PolynomialLift(2).fit(X).transform(X)
    np.testing.assert_array_equal(got.toarray(), reference.lift(X.toarray(), 2))
    np.testing.assert_array_equal(X.indices, indices)
    np.testing.assert_array_equal(X.data, data)


@given(st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_the_number_of_monomials(d, degree, only):
    assert n_monomials(d, degree, interaction_only=only) == len(list(monomials(d, degree, interaction_only=only)))


# --------------------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_it_is_polynomial_features_without_the_bias(degree, only, kind):
    X = rows(9, 4, density=0.6)
    theirs = PolynomialFeatures(degree, interaction_only=only, include_bias=False).fit(X)
    ours = PolynomialLift(degree, interaction_only=only).fit(kind(X))
    got = ours.transform(kind(X))
    np.testing.assert_allclose(got.toarray() if sparse.issparse(got) else got, theirs.transform(X), rtol=1e-14)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    np.testing.assert_array_equal(ours.powers_, theirs.powers_)
    assert ours.n_output_features_ == theirs.n_output_features_


def test_names_come_from_the_frame(constructor):
    X = rows(5, 2)
    frame = constructor({"a": X[:, 0].copy(), "b": X[:, 1].copy()})
    lifter = PolynomialLift(2).fit(frame)
    assert list(lifter.get_feature_names_out()) == ["a", "b", "a^2", "a b", "b^2"]
    np.testing.assert_array_equal(lifter.transform(frame), reference.lift(X, 2))
    with pytest.raises(ValueError, match="feature_names_in_"):
        lifter.get_feature_names_out(["b", "a"])


def test_names_can_be_given():
    lifter = PolynomialLift(2).fit(rows(3, 2))
    assert list(lifter.get_feature_names_out(["u", "v"])) == ["u", "v", "u^2", "u v", "v^2"]
    with pytest.raises(ValueError, match="length"):
        lifter.get_feature_names_out(["u"])


# -------------------------------------------------------------------------------------------------------------- storage


@pytest.mark.parametrize("chunk_rows", [1, 3, None])
def test_chunks_do_not_matter(chunk_rows):
    X = rows(20, 3)
    with engine("threads", chunk_rows=chunk_rows):
        np.testing.assert_array_equal(PolynomialLift(3).fit(X).transform(X), reference.lift(X, 3))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_float32_stays_float32(kind):
    X = rows(6, 3).astype(np.float32)
    got = PolynomialLift(2).fit(kind(X)).transform(kind(X))
    assert got.dtype == np.float32


def test_both_orders_of_an_array():
    X = rows(6, 3)
    np.testing.assert_array_equal(PolynomialLift(3).fit_transform(np.asfortranarray(X)), reference.lift(X, 3))


def test_the_data_are_left_alone():
    X = rows(6, 3)
    before = X.copy()
    X.flags.writeable = False
    PolynomialLift(3).fit_transform(X)
    np.testing.assert_array_equal(X, before)


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_are_located(kind, bad):
    X = rows(30, 3, density=1.0) + 5
    lifter = PolynomialLift(2).fit(X)
    X[11, 2] = bad
    with pytest.raises(DataError, match=r"Column 2 .*row 11"):
        lifter.transform(kind(X))
    with pytest.raises(DataError, match=r"Column 2 .*row 11"):
        PolynomialLift(2).fit(kind(X))


def test_too_many_monomials_are_refused_before_anything_is_made():
    with pytest.raises(ParameterError, match="reduce the degree"):
        PolynomialLift(40).fit(np.ones((2, 60)))


@pytest.mark.parametrize("degree", [0, 2.0, "2"])
def test_degrees_that_make_no_sense_are_refused(degree):
    with pytest.raises(ParameterError, match="degree"):
        PolynomialLift(degree).fit(rows(3, 2))
