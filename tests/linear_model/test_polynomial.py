"""PolynomialRegression: the same functions as least squares on monomials, solved in a well-conditioned basis."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from summula import CollinearityWarning, DataError, ParameterError, engine
from summula.features import PolynomialLift
from summula.linear_model import LinearRegression, PolynomialRegression
from tests.reference import exact
from tests.reference.monomials import lift


def data(n=60, d=2, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + offset
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


# ---------------------------------------------------------------------------------------------------------- closed form


def test_a_polynomial_is_found_again():
    x = np.linspace(-2, 5, 30)
    model = PolynomialRegression(4).fit(x[:, None], Polynomial([1.0, -2, 0, 3, 0.5])(x))
    np.testing.assert_allclose([model.intercept_, *model.coef_], [1, -2, 0, 3, 0.5], atol=1e-11)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_is_least_squares_on_the_monomials(degree, interaction_only, intercept):
    X, y = data(d=3)
    w = np.random.default_rng(1).random(60)
    model = PolynomialRegression(degree, interaction_only=interaction_only, fit_intercept=intercept).fit(X, y, w)
    Z = lift(X, degree, interaction_only=interaction_only)
    plain = LinearRegression(fit_intercept=intercept).fit(Z, y, w)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-10)
    assert model.intercept_ == pytest.approx(plain.intercept_, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(model.predict(X), plain.predict(Z), rtol=1e-9, atol=1e-11)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-11)
    assert model.certificate_.verify(X, y, w)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_rational_arithmetic_agrees_far_from_zero(degree):
    """Powers of years: raw columns have a condition number beyond 1e12."""
    x = np.arange(1950.0, 2010, 3)
    y = np.round(np.sin(x / 9) * 64) / 64
    v, b, least = exact.least_squares(lift(x[:, None], degree), y)  # up to the fourth these powers are exact floats
    model = PolynomialRegression(degree).fit(x[:, None], y)
    np.testing.assert_allclose(model.coef_, v, rtol=1e-13)
    assert model.intercept_ == pytest.approx(b, rel=1e-13)
    assert model.certificate_.primal == pytest.approx(least, rel=1e-12)


def test_predictions_do_not_suffer_from_large_coefficients():
    x = np.linspace(2000.0, 2010, 40)
    y = np.cos(x - 2005)
    model = PolynomialRegression(6).fit(x[:, None], y)
    best = Polynomial.fit(x, y, 6)(x)
    np.testing.assert_allclose(model.predict(x[:, None]), best, atol=1e-10)


def test_several_targets():
    X, y = data()
    Y = np.column_stack([y, -3 * y + 1])
    model, one = PolynomialRegression(2).fit(X, Y), PolynomialRegression(2).fit(X, y)
    assert model.coef_.shape == (2, 5)
    np.testing.assert_allclose(model.coef_, np.vstack([one.coef_, -3 * one.coef_]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.predict(X)[:, 1], 1 - 3 * one.predict(X), rtol=1e-10)


def test_powers_name_the_terms():
    X, y = data()
    model = PolynomialRegression(2).fit(X, y)
    assert model.powers_.tolist() == [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    assert model.summary().terms == ("intercept", "x0", "x1", "x0^2", "x0 x1", "x1^2")


# ---------------------------------------------------------------------------------------------------------- invariances


def test_degree_one_is_linear_regression():
    X, y = data()
    model, plain = PolynomialRegression(1).fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.summary().std_error, plain.summary().std_error, rtol=1e-11)


@pytest.mark.parametrize("shift", [1.0, 1e3, 1e6])
def test_moving_and_scaling_x_does_not_change_the_fit(shift):
    X, y = data()
    base = PolynomialRegression(3).fit(X, y)
    moved = PolynomialRegression(3).fit(4 * X + shift, y)
    # x itself is rounded at 1e6: its spread keeps ten digits.
    np.testing.assert_allclose(moved.predict(4 * X + shift), base.predict(X), atol=1e-10 + 1e-15 * shift)


def test_weights_are_repetition():
    X, y = data()
    w = np.random.default_rng(0).integers(0, 4, 60)
    a, b = PolynomialRegression(2).fit(X, y, w), PolynomialRegression(2).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-11)


@pytest.mark.parametrize("chunk_rows", [1, 7, None])
def test_chunks_do_not_matter(chunk_rows):
    X, y = data()
    with engine("threads", chunk_rows=chunk_rows):
        model = PolynomialRegression(3).fit(X, y)
    np.testing.assert_allclose(model.coef_, PolynomialRegression(3).fit(X, y).coef_, rtol=1e-11)


def test_it_is_lift_and_linear_regression_in_a_pipeline():
    from sklearn.pipeline import make_pipeline

    X, y = data()
    both = make_pipeline(PolynomialLift(3), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(PolynomialRegression(3).fit(X, y).predict(X), both.predict(X), rtol=1e-9, atol=1e-11)


def test_float32():
    X, y = (part.astype(np.float32) for part in data())
    model = PolynomialRegression(2).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert model.predict(X).dtype == np.float32
    np.testing.assert_allclose(model.coef_, PolynomialRegression(2).fit(*data()).coef_, atol=1e-5)


# ----------------------------------------------------------------------------------------------------------- short rank


def test_zero_one_columns_have_redundant_squares():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 50), rng.normal(size=50)]).astype(float)
    y = X @ [2.0, 1.0] + rng.normal(size=50)
    with pytest.warns(CollinearityWarning, match="PolynomialRegression"):
        model = PolynomialRegression(2).fit(X, y)
    Z = np.column_stack([X, X[:, 1] * X[:, 0], X[:, 1] ** 2])
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(Z, y).predict(Z), atol=1e-11)
    assert model.certificate_.verify(X, y)


def test_more_terms_than_rows_pass_through_every_point():
    X, y = data(6, 2)
    model = PolynomialRegression(4).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)


def test_a_constant_column():
    X, y = data(60, 1)
    with pytest.warns(CollinearityWarning):
        model = PolynomialRegression(2).fit(np.column_stack([X, np.full(60, 3.0)]), y)
    other = np.column_stack([X, np.full(60, 3.0)])
    np.testing.assert_allclose(model.predict(other), PolynomialRegression(2).fit(X, y).predict(X), atol=1e-10)


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("degree", [0, -1, 1.5, "2"])
def test_degrees_that_make_no_sense_are_refused(degree):
    with pytest.raises(ParameterError, match="degree"):
        PolynomialRegression(degree).fit(*data())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_are_located_in_the_columns_of_the_user(bad):
    X, y = data()
    X[17, 1] = bad
    with pytest.raises(DataError, match=r"Column 1 .*first at row 17"):
        PolynomialRegression(2).fit(X, y)
