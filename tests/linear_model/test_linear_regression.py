"""LinearRegression: closed forms, invariances, rank deficiency, ill-conditioned and badly scaled, sparse and long data."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

import summula
from summula import CollinearityWarning, engine
from summula.core.errors import DataError
from summula.linear_model import LinearRegression, Ridge, RidgeCV
from summula.linear_model.least_squares import solver as least_squares
from tests.linear_model.tables import sparse_table
from tests.reference import exact

EPS = float(np.finfo(float).eps)


@pytest.fixture
def refinements(monkeypatch):
    """Count how often a Gram solution is refined."""
    calls = []
    refined = least_squares.refined
    monkeypatch.setattr(least_squares, "refined", lambda *args: calls.append(1) or refined(*args))
    return calls


def data(n=40, d=3, *, seed=0, offset=2.0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d) + offset
    return X, X @ np.arange(1.0, d + 1) + 3 + noise * rng.normal(size=n)


def fit(X, y, weight=None, **options):
    return LinearRegression(**options).fit(X, y, weight)


def relative(got, want):
    return np.max(np.abs(got - want)) / np.max(np.abs(want))


# ---------------------------------------------------------------------------------------------------------- closed form


@pytest.mark.usefixtures("way")
class TestClosedForm:
    def test_a_line_through_two_points(self):
        model = fit([[1.0], [3.0]], [2.0, 8.0])
        np.testing.assert_allclose([model.coef_[0], model.intercept_], [3, -1], rtol=1e-14)

    def test_slope_is_covariance_over_variance(self):
        X, y = data(d=1)
        model = fit(X, y)
        slope = np.cov(X[:, 0], y)[0, 1] / X[:, 0].var(ddof=1)
        assert model.coef_[0] == pytest.approx(slope, rel=1e-13)
        assert model.intercept_ == pytest.approx(y.mean() - slope * X.mean(), rel=1e-12)

    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_rational_arithmetic_agrees(self, intercept, weighted):
        X, y = data(30)
        w = np.random.default_rng(1).integers(1, 5, 30) / 4 if weighted else None
        model = fit(X, y, w, fit_intercept=intercept)
        v, b, least = exact.least_squares(X, y, weight=w, intercept=intercept)
        np.testing.assert_allclose(model.coef_, v, rtol=1e-12)
        assert model.intercept_ == pytest.approx(b, rel=1e-12)
        # From the Gram matrix the residual sum is a difference of sums as large as the variation of y.
        assert model.certificate_.primal == pytest.approx(least, abs=100 * EPS * (y @ y))

    def test_residuals_are_orthogonal_to_every_column(self):
        X, y = data()
        w = np.random.default_rng(1).random(40)
        model = fit(X, y, w)
        r = w * (y - model.predict(X))
        np.testing.assert_allclose(np.column_stack([np.ones(40), X]).T @ r, 0, atol=1e-11)

    def test_the_fit_goes_through_the_mean(self):
        X, y = data()
        assert fit(X, y).predict(X.mean(axis=0)[None])[0] == pytest.approx(y.mean(), rel=1e-13)

    def test_singular_values_are_those_of_the_centred_columns(self):
        X, y = data()
        want = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
        np.testing.assert_allclose(fit(X, y).singular_, want, rtol=1e-10)
        want = np.linalg.svd(X, compute_uv=False)
        np.testing.assert_allclose(fit(X, y, fit_intercept=False).singular_, want, rtol=1e-10)

    def test_targets_are_fitted_one_by_one(self):
        X, y = data()
        Y = np.column_stack([y, y**2, X[:, 0]])
        model = fit(X, Y)
        assert model.coef_.shape == (3, 3)
        assert model.intercept_.shape == (3,)
        for j in range(3):
            one = fit(X, Y[:, j])
            np.testing.assert_allclose(model.coef_[j], one.coef_, rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(model.intercept_[j], one.intercept_, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(model.predict(X)[:, j], one.predict(X), rtol=1e-10)

    def test_one_target_in_two_dimensions_keeps_them(self):
        X, y = data()
        model = fit(X, y[:, None])
        assert model.coef_.shape == (1, 3)
        assert model.predict(X).shape == (40, 1)


# ---------------------------------------------------------------------------------------------------------- invariances


@pytest.mark.usefixtures("way")
class TestInvariances:
    @pytest.mark.parametrize("shift", [1.0, -1e4, 1e8])
    def test_moving_the_columns_moves_the_intercept_only(self, shift):
        X, y = data()
        moved = np.round(X * 2**20) / 2**20 + shift  # values that stay exact when they are moved
        base, model = fit(moved - shift, y), fit(moved, y)
        # Rounding of x near 1e8 is none here; what is left is eps times the offset over the spread.
        tolerance = 1e-12 + 100 * EPS * abs(shift)
        np.testing.assert_allclose(model.coef_, base.coef_, rtol=tolerance)
        assert model.intercept_ == pytest.approx(base.intercept_ - shift * base.coef_.sum(), rel=1e-6 + tolerance)

    def test_scaling_columns_by_powers_of_two_scales_coefficients_exactly(self):
        X, y = data()
        s = np.array([2.0**-30, 1.0, 2.0**40])
        np.testing.assert_allclose(fit(X * s, y).coef_ * s, fit(X, y).coef_, rtol=1e-13)

    def test_units_do_not_matter(self):
        X, y = data()
        s = np.array([1e-6, 1.0, 1e6])
        np.testing.assert_allclose(fit(X * s, y).coef_ * s, fit(X, y).coef_, rtol=1e-11)

    @pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (-3.0, 7.0)])
    def test_moving_and_scaling_the_target(self, scale, shift):
        X, y = data()
        base, model = fit(X, y), fit(X, scale * y + shift)
        np.testing.assert_allclose(model.coef_, scale * base.coef_, rtol=1e-12 + EPS * abs(shift) * 100)
        assert model.intercept_ == pytest.approx(scale * base.intercept_ + shift, rel=1e-10)

    def test_the_order_of_rows_and_columns_does_not_matter(self):
        X, y = data()
        rng = np.random.default_rng(1)
        rows, columns = rng.permutation(40), rng.permutation(3)
        model = fit(X[rows][:, columns], y[rows])
        np.testing.assert_allclose(model.coef_, fit(X, y).coef_[columns], rtol=1e-12)

    def test_rotating_the_columns_rotates_the_coefficients(self):
        X, y = data()
        Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
        np.testing.assert_allclose(Q @ fit(X @ Q, y).coef_, fit(X, y).coef_, rtol=1e-10)

    def test_weights_are_repetition(self):
        X, y = data()
        w = np.random.default_rng(0).integers(0, 4, 40)
        model, repeated = fit(X, y, w), fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-12)
        assert model.intercept_ == pytest.approx(repeated.intercept_, rel=1e-12)
        assert model.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-11)

    def test_the_scale_of_the_weights_does_not_matter(self):
        X, y = data()
        w = np.random.default_rng(0).random(40)
        for scale in (1e-12, 1e12):
            np.testing.assert_allclose(fit(X, y, scale * w).coef_, fit(X, y, w).coef_, rtol=1e-11)

    @pytest.mark.parametrize("chunk_rows", [1, 3, 7, 39, 40, 1000])
    def test_chunks_do_not_matter(self, chunk_rows):
        X, y = data()
        with engine("threads", chunk_rows=chunk_rows):
            model = fit(X, y)
        np.testing.assert_allclose(model.coef_, fit(X, y).coef_, rtol=1e-12)

    def test_the_data_are_left_alone(self):
        X, y = data()
        copies = X.copy(), y.copy()
        X.flags.writeable = y.flags.writeable = False
        fit(X, y, copy_X=False)
        assert np.array_equal(X, copies[0])
        assert np.array_equal(y, copies[1])


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), d=st.integers(1, 6), intercept=st.booleans())
def test_any_shape_gives_the_shortest_minimiser(seed, n, d, intercept):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, size=(n, d)).astype(float), rng.integers(-9, 10, n).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearityWarning)
        model = fit(X, y, fit_intercept=intercept)
    v, b, least = exact.least_squares(X, y, intercept=intercept)
    np.testing.assert_allclose(model.coef_, v, atol=1e-9)
    assert model.intercept_ == pytest.approx(b, abs=1e-9)
    assert model.certificate_.primal == pytest.approx(least, abs=1e-9)
    Z = X - X.mean(axis=0) if intercept else X
    assert model.rank_ == np.linalg.matrix_rank(Z, tol=1e-9)


# ----------------------------------------------------------------------------------------------------------- short rank


@pytest.mark.usefixtures("way")
class TestShortRank:
    def test_duplicated_columns_share_the_coefficient(self):
        X, y = data()
        with pytest.warns(CollinearityWarning):
            model = fit(np.column_stack([X, X[:, 0]]), y)
        base = fit(X, y)
        np.testing.assert_allclose(model.coef_[[0, 3]], base.coef_[0] / 2, rtol=1e-12)
        np.testing.assert_allclose(model.coef_[[1, 2]], base.coef_[1:], rtol=1e-12)
        assert model.rank_ == 3

    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.filterwarnings("ignore::summula.CollinearityWarning")
    def test_the_answer_is_that_of_the_pseudo_inverse_in_the_units_of_the_user(self, intercept):
        rng = np.random.default_rng(0)
        A, y = rng.normal(size=(30, 2)) + 1, rng.normal(size=30)
        X = A @ rng.normal(size=(2, 5))
        model = fit(X, y, fit_intercept=intercept)
        Z, t = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
        np.testing.assert_allclose(model.coef_, np.linalg.pinv(Z, rcond=1e-10) @ t, rtol=1e-9)
        assert model.rank_ == 2

    @pytest.mark.filterwarnings("ignore::summula.CollinearityWarning")
    def test_columns_of_a_millionth_and_a_million_have_the_shortest_answer_of_all(self):
        rng = np.random.default_rng(0)
        A = rng.integers(-50, 50, size=(25, 3)).astype(float)
        # Whole numbers times powers of two: the combinations are exact.
        X = np.column_stack(
            [A[:, 0] * 2.0**-20, A[:, 1] * 2.0**20, (A[:, 0] + A[:, 1]) * 2.0**-20, A[:, 2], A[:, 2] * 2.0**20]
        )
        y = A @ [1.0, -2, 3] + rng.integers(-5, 5, 25)
        v, b, least = exact.least_squares(X, y)
        model = fit(X, y)
        assert model.rank_ == 3
        # Along combinations the length is flat: it is right to rounding, coefficients to eps times the ratio of sizes.
        assert model.coef_ @ model.coef_ == pytest.approx(v @ v, rel=1e-14)
        np.testing.assert_allclose(model.coef_, v, rtol=2.0**40 * EPS, atol=2.0**-20 * 2.0**40 * EPS * np.abs(v).max())
        np.testing.assert_allclose(model.predict(X), X @ v + b, rtol=1e-8, atol=1e-8)
        assert model.certificate_.primal == pytest.approx(least, rel=1e-9)

    @pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e6])
    def test_combinations_are_found_in_spite_of_rounding(self, offset):
        for seed in range(40):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(5, 60))
            A = rng.normal(size=(n, 2)) + offset
            X = np.column_stack(
                [A, A @ rng.normal(size=2)]
            )  # rounded: a combination to 16 digits of x, not of x - xbar
            with pytest.warns(CollinearityWarning):
                model = fit(X, rng.normal(size=n))
            assert model.rank_ == 2
            assert np.abs(model.coef_).max() < 1e4, "no wild answer"

    def test_columns_that_are_nearly_but_truly_different_are_kept(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=50)
        X = np.column_stack([x, x + 1e-9 * rng.normal(size=50)])
        model = fit(X, X @ [1.0, 1.0])
        assert model.rank_ == 2
        np.testing.assert_allclose(model.coef_, [1, 1], atol=1e-5)

    def test_a_free_column_is_named_once_by_its_name(self):
        pd = pytest.importorskip("pandas")
        X, y = data()
        frame = pd.DataFrame({"height": X[:, 0], "width": X[:, 1], "both": X[:, 0] + X[:, 1]})
        with pytest.warns(CollinearityWarning) as caught:
            fit(frame, y)
        assert len(caught) == 1
        message = str(caught[0].message)
        assert sum(f"'{name}'" in message for name in frame) == 1
        assert "LinearRegression" in message
        assert caught[0].filename == __file__, "the warning points at the caller's line"

    def test_many_free_columns_are_listed_shortly(self):
        X, y = data()
        with pytest.warns(CollinearityWarning, match="and 4 more"):
            fit(np.hstack([X, X, X, X]), y)

    @pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, 1e8])
    def test_a_constant_column_gets_zero_and_is_named(self, constant):
        X, y = data()
        X = np.column_stack([X, np.full(40, constant)])
        with pytest.warns(CollinearityWarning, match="Column 3 is constant"):
            model = fit(X, y)
        assert model.coef_[3] == 0
        np.testing.assert_allclose(model.coef_[:3], fit(X[:, :3], y).coef_, rtol=1e-12)
        assert model.rank_ == 3

    def test_without_an_intercept_a_constant_column_is_a_column(self):
        X, y = data()
        model = fit(np.column_stack([X, np.full(40, 0.5)]), y, fit_intercept=False)
        assert model.coef_[3] / 2 == pytest.approx(fit(X, y).intercept_, rel=1e-11)

    def test_only_constant_columns_leave_the_mean(self):
        with pytest.warns(CollinearityWarning):
            model = fit(np.full((10, 2), 3.0), np.arange(10.0))
        assert not model.coef_.any()
        assert model.intercept_ == 4.5
        assert model.rank_ == 0

    def test_a_constant_target(self):
        X, _ = data()
        model = fit(X, np.full(40, 0.1))
        np.testing.assert_allclose(model.coef_, 0, atol=1e-17)
        assert model.intercept_ == pytest.approx(0.1, rel=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("intercept", [True, False])
def test_few_rows_are_fitted_exactly_by_the_shortest_answer(n, intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 5)), rng.normal(size=n)
    model = fit(X, y, fit_intercept=intercept)  # no warning: nobody expects more
    np.testing.assert_allclose(model.predict(X), y, atol=1e-13)
    v, _, _ = exact.least_squares(X, y, intercept=intercept)
    np.testing.assert_allclose(model.coef_, v, rtol=1e-11, atol=1e-13)
    assert model.certificate_.primal < 1e-25
    assert model.rank_ == n - intercept


def test_one_row_of_one_column():
    model = fit([[3.0]], [5.0])
    assert model.coef_[0] == 0
    assert model.intercept_ == 5
    assert fit([[2.0]], [5.0], fit_intercept=False).coef_[0] == 2.5


# ------------------------------------------------------------------------------------------------------------ condition


def near_collinear(kappa, seed=0, n=60, noise=0.1):
    """Four columns, each a common one plus an individual one times 1/kappa: their condition number is about kappa."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4)) / kappa + 3.0
    return X, X @ [1.0, 2, 3, 4] + noise * rng.normal(size=n)


@pytest.mark.parametrize("exponent", range(1, 13))
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_small_data_lose_kappa_eps(exponent, noise):
    """Bjorck, theorem 2.2.6: by orthogonal steps the error is of the order of kappa eps (1 + kappa tan(angle)).

    Refined solutions from the Gram matrix, for small condition numbers, are as accurate.
    """
    X, y = near_collinear(10.0**exponent, noise=noise)
    model, (v, _, least) = fit(X, y), exact.least_squares(X, y)
    assert model._fit.method == ("svd" if exponent > 2 or not noise else "cholesky")
    assert relative(model.coef_, v) < 100 * 10.0**exponent * EPS
    assert model.certificate_.verify(X, y)
    if noise:
        assert model.certificate_.primal == pytest.approx(least, rel=1e-13 + 100 * 10.0**exponent * EPS)


@pytest.mark.usefixtures("by_gram")
@pytest.mark.parametrize("exponent", range(1, 13))
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_condition_number_selects_the_method_for_large_data(exponent, noise, refinements):
    kappa = 10.0**exponent
    X, y = near_collinear(kappa, noise=noise)
    model, (v, _, _) = fit(X, y), exact.least_squares(X, y)
    error = relative(model.coef_, v)
    if model._fit.method == "svd":
        assert kappa > 1e5
        assert error < 100 * kappa * EPS
    elif refinements:
        # One step multiplies the error by kappa^2 eps again; the residual's own rounding leaves kappa eps.
        assert 1e2 < kappa < 1e7 or not noise
        assert error < 100 * (kappa**2 * EPS) ** 2 + 100 * kappa * EPS
    else:
        assert kappa < 1e4
        assert error < 100 * kappa**2 * EPS
    assert model.certificate_.verify(X, y)


@pytest.mark.usefixtures("by_gram")
def test_every_method_is_chosen_for_some_condition_number(refinements):
    methods = {}
    for exponent in range(1, 9):
        refinements.clear()
        methods[exponent] = fit(*near_collinear(10.0**exponent, noise=10.0))._fit.method, bool(refinements)
    assert methods[1] == ("cholesky", False)
    assert methods[4] == ("cholesky", True)
    assert methods[8] == ("svd", False)
    assert sorted(methods.values()) == list(methods.values()), "from cheap to exact, without going back"


def test_data_of_middling_size_take_orthogonal_steps_when_refinement_would_be_due(monkeypatch):
    monkeypatch.setattr(least_squares, "TINY_FACTOR", 0)
    assert fit(*near_collinear(1e4))._fit.method == "svd"
    assert fit(*near_collinear(1e1))._fit.method == "cholesky"


@pytest.mark.usefixtures("by_gram")
def test_a_close_fit_has_its_residuals_summed(refinements):
    X, y = data(noise=1e-6)
    model = fit(X, y)
    assert refinements
    assert model._fit.method == "cholesky"
    assert model.certificate_.primal == pytest.approx(exact.least_squares(X, y)[2], rel=1e-6)


@pytest.mark.usefixtures("by_gram")
def test_refinement_with_weights_and_several_targets(refinements):
    X, y = near_collinear(1e4)
    Y, w = np.column_stack([y, y**2]), np.random.default_rng(0).integers(1, 9, 60) / 8
    model = fit(X, Y, w)
    assert refinements
    for j in range(2):
        v, b, _ = exact.least_squares(X, Y[:, j], weight=w)
        assert relative(model.coef_[j], v) < 1e-9
        assert model.intercept_[j] == pytest.approx(b, rel=1e-9)


# --------------------------------------------------------------------------------------------------------------- scales


@pytest.mark.usefixtures("way")
class TestScales:
    @pytest.mark.parametrize("rows", ["weightless", "outlying"])
    def test_an_origin_far_from_the_mean_costs_nothing_that_can_be_had(self, rows):
        """The first chunk lies at 1e8, the rest near 0: the pilot origin is useless."""
        X, y = data(400, offset=0.0, noise=0.1)
        X[:8] += 1e8
        w = np.ones(400)
        if rows == "weightless":
            w[:8] = 1e-40
        else:
            y[:8] = X[:8] @ [1.0, 2, 3]
        v, b, _ = exact.least_squares(X, y, weight=w)
        with engine("threads", chunk_rows=8):
            model = fit(X, y, w)
        # Outlying rows: the scaled columns have a condition number of 1e8 themselves.
        assert relative(model.coef_, v) < (1e-11 if rows == "weightless" else 1e8 * EPS)
        assert model.intercept_ == pytest.approx(b, rel=1e-11 if rows == "weightless" else 1e-6)

    @pytest.mark.parametrize("positive", [False, True])
    @pytest.mark.parametrize(
        ("x", "y"), [(1e200, 1), (1e-200, 1), (1, 1e200), (1, 1e-200), (1e200, 1e200), (1e-200, 1e-200)]
    )
    def test_values_whose_squares_are_no_floats(self, x, y, positive):
        X, t = data(30, offset=1.0)
        v, b, _ = exact.least_squares(X, t)
        assert (v > 0).all()
        model = fit(X * x, t * y, positive=positive)
        np.testing.assert_allclose(model.coef_ * x / y, v, rtol=1e-11)
        assert model.intercept_ / y == pytest.approx(b, rel=1e-11)

    @pytest.mark.parametrize("scale", [(1, 1e-170, 1), (1e160, 1, 1), (1e160, 1e-170, 1e-3)])
    def test_columns_of_every_size_together(self, scale):
        X, y = data(30, offset=1.0)
        np.testing.assert_allclose(fit(X * scale, y).coef_ * scale, exact.least_squares(X, y)[0], rtol=1e-11)

    def test_far_offsets_with_small_spread(self):
        X, y = data(100, offset=0.0)
        X = np.round(X * 2**10) / 2**10 + 2.0**33  # exact values near 1e10
        v, b, _ = exact.least_squares(X, y)
        model = fit(X, y)
        np.testing.assert_allclose(model.coef_, v, rtol=1e-10)
        assert model.intercept_ == pytest.approx(b, rel=1e-10)


# -------------------------------------------------------------------------------------------------------------- storage


@pytest.mark.usefixtures("way")
class TestStorage:
    def test_float32_data_give_a_float32_model(self):
        X, y = data(200)
        X32, y32 = X.astype(np.float32), y.astype(np.float32)
        model = fit(X32, y32)
        assert model.coef_.dtype == np.float32
        assert model.predict(X32).dtype == np.float32
        v, b, _ = exact.least_squares(X32, y32)
        # Values and products have 24 bits; the columns' condition number is about 1.
        np.testing.assert_allclose(model.coef_, v, rtol=2e-5)
        assert model.intercept_ == pytest.approx(b, rel=1e-4)
        assert model.certificate_.verify(X32, y32)

    @pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_narrow_sparse_is_dense(self, kind, intercept):
        rng = np.random.default_rng(0)
        X = sparse.random_array((200, 8), density=0.3, rng=rng).toarray()
        y, w = rng.normal(size=200) + 5, rng.random(200)
        dense, thin = (fit(Z, y, w, fit_intercept=intercept) for Z in (X, kind(X)))
        np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-11)
        assert thin.intercept_ == pytest.approx(dense.intercept_, rel=1e-12)
        np.testing.assert_allclose(thin.predict(kind(X)), dense.predict(X), rtol=1e-12)
        assert thin.certificate_.verify(kind(X), y, w)
        assert thin.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-12)

    def test_a_memory_map_is_an_array(self, tmp_path):
        X, y = data(300)
        np.save(tmp_path / "X.npy", X)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        with engine("threads", chunk_rows=16):
            a, b = fit(mapped, y), fit(X, y)
        assert np.array_equal(a.coef_, b.coef_)

    def test_both_orders_and_strides(self):
        X, y = data(100)
        for Z in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], np.repeat(X, 2, axis=1)[:, ::2]):
            np.testing.assert_allclose(fit(Z, y).coef_, fit(X, y).coef_, rtol=1e-12)


@pytest.mark.usefixtures("by_conjugate_gradients")
class TestWideSparse:
    """More columns than `SPARSE_GRAM_COLUMNS`: conjugate gradients."""

    table = staticmethod(sparse_table)

    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_it_is_the_dense_answer(self, intercept, weighted):
        X, y = self.table()
        w = np.random.default_rng(0).random(300) if weighted else None
        model, dense = fit(X, y, w, fit_intercept=intercept), fit(X.toarray(), y, w, fit_intercept=intercept)
        assert model._fit.method == "sparse_cg"
        assert model.n_iter_ > 0
        assert len(model.trace_) > model.n_iter_
        # The gradient is 1e-10 of what it was; the condition number here is about 3.
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(model.intercept_, dense.intercept_, rtol=1e-8, atol=1e-12)
        assert model.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-12)
        assert model.certificate_.kind == "global"

    def test_several_targets(self):
        X, y = self.table()
        Y = np.column_stack([y, 2 * y + 1, np.ones(300)])
        model, dense = fit(X, Y), fit(X.toarray(), Y)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, dense.intercept_, rtol=1e-7)

    def test_more_columns_than_rows_give_the_shortest_answer(self):
        X, y = self.table(30, 60)
        np.testing.assert_allclose(fit(X, y).coef_, fit(X.toarray(), y).coef_, rtol=1e-5, atol=1e-6)

    def test_columns_of_very_different_sizes_converge(self):
        X, y = self.table()
        s = np.geomspace(1e-6, 1e6, 40)
        model = fit(sparse.csr_array(X.multiply(s)), y)
        np.testing.assert_allclose(model.coef_ * s, fit(X.toarray(), y).coef_, rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("chunk_rows", [1, 37, None])
    def test_chunks_do_not_matter(self, chunk_rows):
        X, y = self.table()
        with engine("threads", chunk_rows=chunk_rows):
            model = fit(X, y)
        np.testing.assert_allclose(model.coef_, fit(X, y).coef_, rtol=1e-9, atol=1e-10)

    def test_positive(self):
        X, y = self.table()
        model, dense = fit(X, y, positive=True), fit(X.toarray(), y, positive=True)
        assert (model.coef_ >= 0).all()
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-5)
        assert model.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-9)

    def test_float32(self):
        X, y = self.table()
        model = fit(X.astype(np.float32), y)
        assert model.coef_.dtype == np.float32
        np.testing.assert_allclose(model.coef_, fit(X.toarray(), y).coef_, rtol=1e-4, atol=1e-4)

    def test_there_are_no_standard_errors(self):
        with pytest.raises(ValueError, match="wide sparse"):
            fit(*self.table()).summary()


# ------------------------------------------------------------------------------------------------------------- positive


@pytest.mark.usefixtures("way")
class TestPositive:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("intercept", [True, False])
    def test_it_is_the_answer_of_lawson_and_hanson(self, seed, intercept):
        rng = np.random.default_rng(seed)
        X, y, w = rng.normal(size=(50, 6)) + 0.5, rng.normal(size=50), rng.random(50)
        model = fit(X, y, w, positive=True, fit_intercept=intercept)
        root = np.sqrt(w)[:, None]
        Z = X - np.average(X, axis=0, weights=w) if intercept else X
        t = y - np.average(y, weights=w) if intercept else y
        want, norm = optimize.nnls(root * Z, root[:, 0] * t)
        np.testing.assert_allclose(model.coef_, want, rtol=1e-9, atol=1e-12)
        assert model.certificate_.primal == pytest.approx(norm**2, rel=1e-11)
        assert (model.coef_ == 0).any(), "the data are such that the constraint binds"

    def test_the_conditions_of_karush_kuhn_and_tucker_hold(self):
        rng = np.random.default_rng(3)
        X, Y = rng.normal(size=(60, 7)), rng.normal(size=(60, 3))
        model = fit(X, Y, positive=True)
        slope = (X - X.mean(axis=0)).T @ (Y - model.predict(X))
        v = model.coef_.T
        assert (v >= 0).all()
        np.testing.assert_allclose(slope[v > 0], 0, atol=1e-11)
        assert (slope[v == 0] <= 1e-11).all()
        assert model.certificate_.gap < 1e-11

    def test_when_nothing_binds_it_is_plain_least_squares(self):
        X, y = data()
        np.testing.assert_allclose(fit(X, y, positive=True).coef_, fit(X, y).coef_, rtol=1e-10)

    def test_when_everything_binds_it_is_the_mean(self):
        x = np.arange(10.0)[:, None]
        model = fit(x, -x[:, 0], positive=True)
        assert model.coef_[0] == 0
        assert model.intercept_ == -4.5


@pytest.mark.parametrize("rows", [200, 50_000])
@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e-310), ("float64", 5e-324), ("float32", 1e-40)])
def test_a_column_whose_coefficient_would_be_infinite_is_refused(rows, dtype, size):
    X, y = data(rows)
    X = (X * [1.0, size, 1.0]).astype(dtype)
    for positive in (False, True):
        with pytest.raises(DataError, match=rf"Column 1 has values so small.*overflows {dtype}; rescale"):
            LinearRegression(positive=positive).fit(X, y.astype(dtype))
    assert np.isfinite(Ridge().fit(X, y.astype(dtype)).coef_).all()


@pytest.mark.parametrize("rows", [200, 50_000])
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_targets_whose_squares_overflow_have_a_certificate_that_knows_nothing(rows, size):
    X, y = data(rows)
    for model in (LinearRegression(), LinearRegression(positive=True), Ridge(), Ridge(positive=True), RidgeCV(cv=3)):
        model.fit(X, y * size)
        assert model.certificate_.gap == np.inf
        assert model.certificate_.verify(X, y * size)
        np.testing.assert_allclose(model.coef_ / size, model.fit(X, y).coef_, rtol=1e-9, atol=1e-12)


def test_a_fit_of_fewer_rows_than_columns_is_saved_and_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    model = LinearRegression().fit(X, y)
    summula.save(model, tmp_path / "wide.summula")
    np.testing.assert_array_equal(summula.load(tmp_path / "wide.summula").predict(X), model.predict(X))
