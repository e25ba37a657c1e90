"""Ridge: the closed form, its limits, every storage, and scikit-learn with each of its solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.linear_model import Ridge as Theirs

from summula import CollinearityWarning, ParameterError, engine
from summula.linear_model import LinearRegression, Ridge
from tests.linear_model.tables import sparse_table
from tests.reference import exact

SOLVERS = ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")


def data(n=50, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.3, 3, d) + 1
    return X, X @ rng.normal(size=d) + rng.normal(size=n) + 2


def closed_form(X, y, alpha, w=None, intercept=True):
    """v = (Xc'W Xc + alpha I)^-1 Xc'W yc, b = ybar - xbar'v."""
    w = np.ones(len(X)) if w is None else w
    xbar, ybar = (np.average(X, axis=0, weights=w), np.average(y, weights=w)) if intercept else (0 * X[0], 0.0)
    Z = X - xbar
    v = np.linalg.solve(Z.T @ (w[:, None] * Z) + alpha * np.eye(X.shape[1]), Z.T @ (w * (y - ybar)))
    return v, ybar - xbar @ v


# ---------------------------------------------------------------------------------------------------------- closed form


@pytest.mark.usefixtures("way")
class TestClosedForm:
    @pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0, 100.0])
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_it_solves_the_normal_equations(self, alpha, intercept, weighted):
        X, y = data()
        w = np.random.default_rng(1).random(50) if weighted else None
        model = Ridge(alpha, fit_intercept=intercept).fit(X, y, w)
        v, b = closed_form(X, y, alpha, w, intercept)
        np.testing.assert_allclose(model.coef_, v, rtol=1e-11)
        assert model.intercept_ == pytest.approx(b, rel=1e-11)
        assert model.certificate_.verify(X, y, w)

    def test_rational_arithmetic_agrees(self):
        X, y = data(20, 3)
        model = Ridge(0.75).fit(X, y)
        v, b, least = exact.least_squares(X, y, alpha=0.75)
        np.testing.assert_allclose(model.coef_, v, rtol=1e-13)
        assert model.intercept_ == pytest.approx(b, rel=1e-13)
        assert model.certificate_.primal == pytest.approx(least, rel=1e-12)

    def test_each_target_has_its_own_penalty(self):
        X, y = data()
        Y, alphas = np.column_stack([y, -y, y**2]), [0.0, 10.0, 1e3]
        model = Ridge(alphas).fit(X, Y)
        for j, alpha in enumerate(alphas):
            v, b = closed_form(X, Y[:, j], alpha)
            np.testing.assert_allclose(model.coef_[j], v, rtol=1e-10)
            assert model.intercept_[j] == pytest.approx(b, rel=1e-10)
        assert model.certificate_.verify(X, Y)

    def test_one_penalty_for_all_targets(self):
        X, y = data()
        Y = np.column_stack([y, y**2])
        np.testing.assert_array_equal(Ridge(2.0).fit(X, Y).coef_, Ridge([2.0, 2.0]).fit(X, Y).coef_)

    @pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_fewer_rows_than_columns(self, n, intercept):
        X, y = data(n, 8)
        v, b = closed_form(X, y, 0.1, intercept=intercept)
        model = Ridge(0.1, fit_intercept=intercept).fit(X, y)
        np.testing.assert_allclose(model.coef_, v, rtol=1e-10, atol=1e-13)
        assert model.intercept_ == pytest.approx(b, rel=1e-10)
        assert model.certificate_.verify(X, y)

    def test_weights_are_repetition(self):
        X, y = data()
        w = np.random.default_rng(1).integers(0, 4, 50)
        model, repeated = Ridge(3.0).fit(X, y, w), Ridge(3.0).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-12)
        assert model.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-12)

    def test_the_penalty_acts_in_the_units_of_the_user(self):
        X, y = data()
        s = np.array([1e-4, 1.0, 1e4, 1.0])
        v, _ = closed_form(X * s, y, 2.0)
        np.testing.assert_allclose(Ridge(2.0).fit(X * s, y).coef_, v, rtol=1e-9)

    @pytest.mark.parametrize("chunk_rows", [1, 7, None])
    def test_chunks_do_not_matter(self, chunk_rows):
        X, y = data()
        with engine("threads", chunk_rows=chunk_rows):
            model = Ridge(2.0).fit(X, y)
        np.testing.assert_allclose(model.coef_, closed_form(X, y, 2.0)[0], rtol=1e-12)

    def test_hard_conditions_are_no_trouble(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 1)) + 1e-8 * rng.normal(size=(40, 3))
        y = X @ [1.0, 2, 3] + rng.normal(size=40)
        for alpha in (1e-6, 1e-3, 1.0):
            v, _, least = exact.least_squares(X, y, alpha=alpha)
            model = Ridge(alpha).fit(X, y)
            # With the penalty the condition number is at most that of sqrt(alpha) against the columns.
            np.testing.assert_allclose(model.coef_, v, rtol=1e-8)
            assert model.certificate_.primal == pytest.approx(least, rel=1e-11)


# --------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.usefixtures("way")
class TestLimits:
    def test_no_penalty_is_least_squares(self):
        X, y = data()
        ours, plain = Ridge(0.0).fit(X, y), LinearRegression().fit(X, y)
        np.testing.assert_array_equal(ours.coef_, plain.coef_)
        assert ours.intercept_ == plain.intercept_
        np.testing.assert_array_equal(ours.summary().std_error, plain.summary().std_error)

    def test_no_penalty_on_collinear_columns_is_the_shortest_answer(self):
        X, y = data()
        Z = np.column_stack([X, X[:, 0]])
        with pytest.warns(CollinearityWarning, match="Ridge"):
            ours = Ridge(0.0).fit(Z, y)
        with pytest.warns(CollinearityWarning):
            np.testing.assert_array_equal(ours.coef_, LinearRegression().fit(Z, y).coef_)

    def test_a_small_penalty_on_collinear_columns_approaches_it_in_silence(self):
        X, y = data()
        Z = np.column_stack([X, X[:, 0]])
        ours = Ridge(1e-8).fit(Z, y)
        np.testing.assert_allclose(ours.coef_[[0, 4]], LinearRegression().fit(X, y).coef_[0] / 2, rtol=1e-6)

    def test_a_huge_penalty_leaves_the_mean(self):
        X, y = data()
        for alpha in (1e12, 1e200):
            model = Ridge(alpha).fit(X, y)
            Z = X - X.mean(axis=0)
            np.testing.assert_allclose(model.coef_, Z.T @ (y - y.mean()) / alpha, rtol=1e-8)
            assert model.intercept_ == pytest.approx(y.mean(), rel=1e-9)
            assert model.certificate_.verify(X, y)

    def test_a_constant_column_gets_zero_in_silence(self):
        X, y = data()
        model = Ridge(1.0).fit(np.column_stack([X, np.full(50, 7.0)]), y)
        assert model.coef_[4] == 0
        np.testing.assert_allclose(model.coef_[:4], closed_form(X, y, 1.0)[0], rtol=1e-11)

    def test_only_constant_columns(self):
        model = Ridge(1.0).fit(np.full((9, 2), 3.0), np.arange(9.0))
        assert not model.coef_.any()
        assert model.intercept_ == 4.0

    def test_the_objective_falls_with_the_penalty_and_the_length_rises(self):
        X, y = data()
        models = [Ridge(alpha).fit(X, y) for alpha in (100.0, 10.0, 1.0, 0.1, 0.0)]
        lengths = [float(m.coef_ @ m.coef_) for m in models]
        assert lengths == sorted(lengths)
        values = [m.certificate_.primal for m in models]
        assert values == sorted(values, reverse=True)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), d=st.integers(1, 6), intercept=st.booleans())
def test_any_shape(seed, n, d, intercept):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, size=(n, d)).astype(float), rng.integers(-9, 10, n).astype(float)
    v, b, least = exact.least_squares(X, y, intercept=intercept, alpha=0.5)
    model = Ridge(0.5, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, v, atol=1e-11)
    assert model.intercept_ == pytest.approx(b, abs=1e-11)
    assert model.certificate_.primal == pytest.approx(least, abs=1e-10)


# ------------------------------------------------------------------------------------------------------------- positive


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 50.0])
def test_positive_is_lawson_and_hanson_on_stacked_rows(alpha, intercept):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y, w = rng.normal(size=(40, 5)) + 0.5, rng.normal(size=40), rng.random(40)
        model = Ridge(alpha, positive=True, fit_intercept=intercept).fit(X, y, w)
        root = np.sqrt(w)[:, None]
        Z = root * (X - np.average(X, axis=0, weights=w) if intercept else X)
        t = root[:, 0] * (y - np.average(y, weights=w) if intercept else y)
        want, norm = optimize.nnls(np.vstack([Z, np.sqrt(alpha) * np.eye(5)]), np.append(t, np.zeros(5)))
        np.testing.assert_allclose(model.coef_, want, rtol=1e-9, atol=1e-12)
        assert model.certificate_.primal == pytest.approx(norm**2, rel=1e-11)
        assert model.certificate_.verify(X, y, w)


# -------------------------------------------------------------------------------------------------------------- storage


@pytest.mark.usefixtures("way")
def test_float32():
    X, y = (part.astype(np.float32) for part in data(300))
    model = Ridge(2.0).fit(X, y)
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, closed_form(X.astype(float), y.astype(float), 2.0)[0], rtol=1e-4)
    assert model.certificate_.verify(X, y)


class TestSparse:
    table = staticmethod(sparse_table)

    @pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_it_is_the_dense_answer(self, width, alpha, intercept, weighted):
        X, y = self.table()
        w = np.random.default_rng(0).random(300) if weighted else None
        model = Ridge(alpha, fit_intercept=intercept).fit(X, y, w)
        v, b = closed_form(X.toarray(), y, alpha, w, intercept)
        np.testing.assert_allclose(model.coef_, v, rtol=1e-7, atol=1e-9)
        assert model.intercept_ == pytest.approx(b, rel=1e-8, abs=1e-12)
        assert model.certificate_.verify(X, y, w)
        assert (model.solver_ == "sparse_cg") == (width == "wide")
        assert (model.n_iter_[0] > 1) == (width == "wide"), "a direct solution is one step"

    def test_the_gap_bounds_the_distance_to_the_best(self, width):
        X, y = self.table()
        model = Ridge(0.5).fit(X, y)
        best = Ridge(0.5).fit(X.toarray(), y).certificate_.primal
        assert model.certificate_.primal - best <= model.certificate_.gap + 1e-11 * best
        assert model.certificate_.gap < 1e-9 * best

    def test_fewer_rows_than_columns_and_several_targets(self, width):
        X, y = self.table(25, 60)
        Y = np.column_stack([y, -2 * y])
        model = Ridge([0.1, 5.0]).fit(X, Y)
        for j, alpha in enumerate([0.1, 5.0]):
            v, b = closed_form(X.toarray(), Y[:, j], alpha)
            np.testing.assert_allclose(model.coef_[j], v, rtol=1e-6, atol=1e-8)
            assert model.intercept_[j] == pytest.approx(b, rel=1e-7)

    def test_positive(self, width):
        X, y = self.table()
        model, dense = (Ridge(1.0, positive=True).fit(Z, y) for Z in (X, X.toarray()))
        assert (model.coef_ >= 0).all()
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-5)
        assert model.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-9)

    def test_a_looser_tolerance_takes_fewer_steps(self, by_conjugate_gradients):
        X, y = self.table()
        loose, tight = Ridge(1e-3, tol=1.0).fit(X, y), Ridge(1e-3, tol=1e-6).fit(X, y)
        assert loose.n_iter_[0] < tight.n_iter_[0]
        assert loose.certificate_.gap > tight.certificate_.gap
        assert loose.certificate_.verify(X, y)

    def test_too_few_steps_warn_with_gap_and_parameter(self, by_conjugate_gradients):
        from sklearn.exceptions import ConvergenceWarning

        X, y = self.table()
        with pytest.warns(ConvergenceWarning, match=r"max_iter \(2\)") as caught:
            model = Ridge(1e-3, max_iter=2).fit(X, y)
        assert len(caught) == 1
        assert "above the best objective" in str(caught[0].message)
        best = Ridge(1e-3).fit(X.toarray(), y).certificate_.primal
        assert 0 < model.certificate_.primal - best <= model.certificate_.gap < np.inf


# --------------------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [True, False])
def test_it_agrees_with_every_solver_of_scikit_learn(solver, intercept):
    X, y = data()
    positive = solver == "lbfgs"
    options = {"alpha": 2.0, "fit_intercept": intercept, "positive": positive, "solver": solver}
    theirs = Theirs(**options, tol=1e-12, max_iter=100_000, random_state=0).fit(X, y)
    ours = Ridge(**options).fit(X, y)
    # scikit-learn's iterative solvers stop when a step is small; Ridge is the reference here.
    tolerance = {"sag": 1e-5, "saga": 1e-5, "lbfgs": 1e-5}.get(solver, 1e-8)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=tolerance, atol=tolerance)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=tolerance, abs=tolerance)


def test_the_solver_is_a_hint_that_never_changes_the_answer():
    X, y = data()
    answers = {Ridge(2.0, solver=solver).fit(X, y).coef_.tobytes() for solver in SOLVERS}
    assert len(answers) == 1


# -------------------------------------------------------------------------------------------------------- bad penalties


@pytest.mark.parametrize(
    ("alpha", "words"),
    [(-1.0, "alpha"), ([1.0, 2.0, 3.0], "3 != 2"), ([1.0, -2.0], "non-negative"), (np.nan, "alpha"), (np.inf, "alpha"),
     ("1", "alpha"), (None, "alpha")],
)  # fmt: skip
def test_penalties_that_make_no_sense_are_refused(alpha, words):
    X, y = data()
    model = Ridge(alpha)
    with pytest.raises(ParameterError, match=words):
        model.fit(X, np.column_stack([y, y]))
    assert not hasattr(model, "coef_")
