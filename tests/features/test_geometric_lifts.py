"""ParabolicLift and QuadricLift: columns against their formulas, and the spheres and quadrics of hyperplanes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from summula import DataError, ParameterError
from summula.features import ParabolicLift, PolynomialLift, QuadricLift
from summula.linear_model import LinearRegression, LogisticRegression
from summula.optimize import is_linearly_separable

KINDS = [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array, sparse.csr_matrix]


def rows(n=20, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, (n, d)) * (rng.random((n, d)) < 0.7).astype(float)  # whole numbers: sums are exact


def dense(lifted):
    return lifted.toarray() if sparse.issparse(lifted) else lifted


# -------------------------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("kind", KINDS)
def test_the_squared_norm_is_appended(kind):
    X = rows()
    np.testing.assert_array_equal(
        dense(ParabolicLift().fit_transform(kind(X))), np.column_stack([X, (X**2).sum(axis=1)])
    )


@pytest.mark.parametrize("kind", KINDS)
def test_squares_are_appended(kind):
    X = rows()
    lifted = QuadricLift(axis_aligned=True).fit_transform(kind(X))
    np.testing.assert_array_equal(dense(lifted), np.column_stack([X, X**2]))


@pytest.mark.parametrize("kind", KINDS)
def test_all_products_of_two_are_the_polynomials_of_degree_two(kind):
    X = rows()
    ours, theirs = QuadricLift().fit(kind(X)), PolynomialLift(2).fit(X)
    np.testing.assert_array_equal(dense(ours.transform(kind(X))), theirs.transform(X))
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert ours.n_output_features_ == 3 * (3 + 3) // 2


def test_names(constructor):
    X = rows(5, 2)
    frame = constructor({"a": X[:, 0].copy(), "b": X[:, 1].copy()})
    assert list(ParabolicLift().fit(frame).get_feature_names_out()) == ["a", "b", "|x|^2"]
    assert list(QuadricLift(axis_aligned=True).fit(frame).get_feature_names_out()) == ["a", "b", "a^2", "b^2"]


@pytest.mark.parametrize("lift", [ParabolicLift(), QuadricLift(axis_aligned=True), QuadricLift()])
def test_float32_stays_float32(lift):
    X = rows().astype(np.float32)
    for kind in (np.asarray, sparse.csr_array):
        assert lift.fit(kind(X)).transform(kind(X)).dtype == np.float32


@pytest.mark.parametrize("lift", [ParabolicLift(), QuadricLift(axis_aligned=True), QuadricLift()])
def test_a_missing_value_is_named(lift):
    X = rows()
    X[7, 1] = np.nan
    with pytest.raises(DataError, match="row 7"):
        lift.fit(X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("lift", [ParabolicLift(), QuadricLift(axis_aligned=True), QuadricLift()])
def test_squares_of_huge_numbers_are_infinite_without_a_warning(lift, kind):
    X = np.array([[1e200, 1.0]])
    assert np.isinf(dense(lift.fit_transform(kind(X)))).any()


# -------------------------------------------------------------------------------------------------------------- spheres

numbers = st.floats(-5.0, 5.0)


@given(st.lists(numbers, min_size=1, max_size=4), st.floats(0.1, 5.0), st.floats(0.1, 3.0), st.booleans())
def test_the_sphere_of_a_hyperplane(center, radius, scale, positive):
    """The score s (|x|^2 - 2 c'x + |c|^2 - r^2) is 0 on the sphere about c with radius r."""
    c, s = np.array(center), scale if positive else -scale
    lift = ParabolicLift().fit(np.zeros((1, len(c))))
    found = lift.sphere(s * np.append(-2.0 * c, 1.0), s * (c @ c - radius**2))
    np.testing.assert_allclose(found.center, c, atol=1e-12)
    assert found.radius == pytest.approx(radius, rel=1e-9, abs=1e-9)
    assert found.sign_inside == (-1 if positive else 1)


def test_what_is_no_sphere():
    lift = ParabolicLift().fit(np.zeros((1, 2)))
    plane = lift.sphere([[1.0, 2.0, 0.0]], [3.0])
    assert plane.radius == math.inf
    assert plane.sign_inside == 0
    assert np.isnan(plane.center).all()
    assert math.isnan(lift.sphere([0.0, 0.0, 1.0], 1.0).radius), "x'x + 1 is positive everywhere"
    assert math.isnan(lift.sphere([0.0, 0.0, 0.0], 1.0).radius)
    assert lift.sphere([0.0, 0.0, 1.0], 0.0).radius == 0.0


@pytest.mark.parametrize(
    ("coef", "intercept", "message"),
    [
        ([1.0, 2.0], 0.0, "each of 3 lifted features"),
        (np.ones((2, 3)), [0.0, 0.0], "one row of coef_ at a time"),
        ([1.0, 2.0, np.nan], 0.0, "coef must contain finite numbers"),
        ([1.0, 2.0, 3.0], [0.0, 1.0], "intercept must be one number"),
        ("abc", 0.0, "coef must contain numbers; got 'abc'"),
    ],
)
def test_bad_coefficients(coef, intercept, message):
    with pytest.raises(ParameterError, match=message):
        ParabolicLift().fit(np.zeros((1, 2))).sphere(coef, intercept)


def test_a_shell_is_separable_after_the_lift_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    radius = np.linalg.norm(X - [1.0, 0.0, -1.0], axis=1)
    X, y = X[abs(radius - 1.5) > 0.1], (radius > 1.5)[abs(radius - 1.5) > 0.1]
    lift = ParabolicLift()
    assert not is_linearly_separable(X, y)
    assert is_linearly_separable(lift.fit_transform(X), y)
    model = LogisticRegression(C=1e4).fit(lift.transform(X), y)
    found = lift.sphere(model.coef_, model.intercept_)
    inside = np.linalg.norm(X - found.center, axis=1) < found.radius
    np.testing.assert_array_equal(model.predict(lift.transform(X)), ~inside)
    assert found.sign_inside == -1


# ------------------------------------------------------------------------------------------------------------- quadrics


@pytest.mark.parametrize("aligned", [False, True])
def test_the_matrix_of_a_quadric(aligned):
    rng = np.random.default_rng(1)
    X, A, v = rng.normal(size=(50, 3)), np.diag([1.0, -2.0, 3.0]), np.array([0.5, 0.0, -1.0])
    A = A if aligned else A + np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0.0]])
    y = np.einsum("ij,jk,ik->i", X, A, X) + X @ v + 4.0
    lift = QuadricLift(axis_aligned=aligned)
    model = LinearRegression().fit(lift.fit_transform(X), y)
    np.testing.assert_allclose(lift.matrix(model.coef_), A, atol=1e-10)
    np.testing.assert_allclose(model.coef_[:3], v, atol=1e-10)
    with pytest.raises(ParameterError, match="one row of coef_ at a time"):
        lift.matrix(np.ones((2, lift.n_output_features_)))
