"""Least squares under v >= 0: KKT conditions, and SciPy's routine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from summula.optimize.solvers.nonnegative import nonnegative_least_squares

shapes = st.tuples(st.integers(1, 12), st.integers(1, 8), st.integers(1, 3), st.integers(0, 1000))


def problem(k, d, t, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(k, d)), rng.normal(size=(k, t))


@given(shapes)
def test_the_conditions_of_karush_kuhn_and_tucker_hold(shape):
    A, B = problem(*shape)
    v = nonnegative_least_squares(A, B)
    slope = A.T @ (B - A @ v)
    assert v.shape == (A.shape[1], B.shape[1])
    assert (v >= 0).all()
    assert (slope <= 1e-10).all()
    np.testing.assert_allclose(slope[v > 0], 0, atol=1e-10)


@given(shapes)
def test_the_residual_is_that_of_lawson_and_hanson(shape):
    A, B = problem(*shape)
    v = nonnegative_least_squares(A, B)
    for j in range(B.shape[1]):
        assert np.linalg.norm(B[:, j] - A @ v[:, j]) == pytest.approx(optimize.nnls(A, B[:, j])[1], abs=1e-10)


def test_when_nothing_binds_it_is_plain_least_squares():
    A, _ = problem(20, 4, 1, 0)
    want = np.arange(1.0, 5)[:, None]
    np.testing.assert_allclose(nonnegative_least_squares(A, A @ want), want, rtol=1e-12)


def test_when_everything_binds_it_is_zero():
    A = np.eye(3)
    assert not nonnegative_least_squares(A, -np.ones((3, 2))).any()


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_units_do_not_matter(scale, size):
    A, B = problem(15, 4, 2, 3)
    s = np.array([1.0, scale, 1.0, scale])
    base = nonnegative_least_squares(A, B)
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(
            nonnegative_least_squares(A * s, B * size) * s[:, None] / size, base, rtol=1e-10, atol=1e-14
        )


def test_columns_of_zeros_get_zero():
    A, B = problem(10, 3, 1, 0)
    A[:, 1] = 0
    assert nonnegative_least_squares(A, B)[1, 0] == 0


def test_no_rows():
    assert not nonnegative_least_squares(np.empty((0, 3)), np.empty((0, 2))).any()
