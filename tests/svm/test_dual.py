"""SVC, SVR and OneClassSVM: closed forms, an interior-point solution of the whole dual, libsvm, certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as libsvm
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.kernels import Gaussian, Linear, Polynomial
from summula.kernels.rows import rows_of
from summula.optimize import quadratic_program
from summula.svm import SVC, SVR, OneClassSVM, dual_ascent, margins
from summula.svm.dual import solver as dual_solver
from summula.svm.dual.certificate import MachineTask, problem_of
from summula.svm.dual.kernel_matrix import CachedKernel

rng = np.random.default_rng(0)


def two_classes(n: int = 300, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.4 * draws.normal(size=n) > 0, 1, -1)


def dual_objective(model: Any, K: Any) -> float:
    """1/2 beta'K beta - sum |beta| of a classifier of two classes."""
    beta = np.zeros(len(K))
    beta[model.support_] = np.asarray(model.dual_coef_)[0]
    return float(0.5 * beta @ K @ beta - np.abs(beta).sum())


# ------------------------------------------------------------------------------------------------------- closed forms


def test_the_hard_margin_of_three_points() -> None:
    # The slab between (0, 0) and the line through (2, 0) and (0, 2): w = (1, 1), b = -1, margin 1 / sqrt(2).
    X, y = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), [0, 1, 1]
    model = SVC(C=np.inf, kernel="linear", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[1.0, 1.0]], rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, [-1.0], rtol=1e-9)
    np.testing.assert_allclose(model.dual_coef_, [[-1.0, 0.5, 0.5]], rtol=1e-9)
    assert margins(model.coef_, model.intercept_, X, y).least == pytest.approx(1 / np.sqrt(2))
    assert model.certificate_.primal == pytest.approx(1.0)
    assert model.certificate_.verify(X, y)


def test_two_points_without_an_intercept() -> None:
    # Rows 1 and -1 (labels 1, -1): w = 1 where C >= 1/2; with C = 1/4 both rows are at the bound, so w = 1/2.
    X, y = np.array([[1.0], [-1.0]]), [1, -1]
    for C, w in ((10.0, 1.0), (0.25, 0.5)):
        model = SVC(C=C, kernel="linear", fit_intercept=False, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(model.coef_, w)
        assert model.intercept_[0] == 0.0
        np.testing.assert_allclose(dual_ascent(X @ X.T, y, C).x, w / 2, rtol=1e-5)


# -------------------------------------------------------------------------------------------------- independent solvers


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(2), Linear()], ids=repr)
def test_the_whole_dual_by_an_interior_point(kernel: Any, intercept: bool) -> None:
    X, y = two_classes(60)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    Q = np.outer(y, y) * kernel(X)
    box = np.vstack([np.eye(60), -np.eye(60)])
    bounds = np.append(3.0 * w, np.zeros(60))
    equal: dict[str, Any] = {"A": y[None, :].astype(float), "b": np.zeros(1)} if intercept else {}
    best = quadratic_program(Q + 1e-12 * np.eye(60), -np.ones(60), G=box, h=bounds, **equal)
    model = SVC(C=3.0, kernel=kernel, tol=1e-8, fit_intercept=intercept).fit(X, y, w)
    assert model.certificate_.dual == pytest.approx(-best.value, rel=1e-6)
    assert model.certificate_.gap <= 1e-5 * model.certificate_.primal


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(2)], ids=repr)
def test_regression_and_one_class_by_an_interior_point(kernel: Any) -> None:
    X, _ = two_classes(50)
    y, K = np.sin(2 * X[:, 0]) + X[:, 1], kernel(X)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 50)
    # SVR: beta = a - b with a, b from 0 to C w, and the dual value of 1/2 beta'K beta + eps sum (a + b) - y'beta.
    P = np.block([[K, -K], [-K, K]]) + 1e-10 * np.eye(100)
    box, bounds = np.vstack([np.eye(100), -np.eye(100)]), np.append(np.tile(2.0 * w, 2), np.zeros(100))
    balance = np.append(np.ones(50), -np.ones(50))[None, :]
    best = quadratic_program(P, np.append(0.1 - y, 0.1 + y), G=box, h=bounds, A=balance, b=np.zeros(1))
    model = SVR(C=2.0, kernel=kernel, tol=1e-8).fit(X, y, w)
    assert model.certificate_.dual == pytest.approx(-best.value, rel=1e-6)
    # One class: 1/2 a'K a with a from 0 to w and the sum nu sum w.
    box, bounds = np.vstack([np.eye(50), -np.eye(50)]), np.append(w, np.zeros(50))
    total = np.array([0.3 * w.sum()])
    best = quadratic_program(K + 1e-10 * np.eye(50), np.zeros(50), G=box, h=bounds, A=np.ones((1, 50)), b=total)
    region = OneClassSVM(nu=0.3, kernel=kernel, tol=1e-8).fit(X, sample_weight=w)
    beta = region.dual_coef_[0]
    assert beta.sum() == pytest.approx(float(total[0]))
    assert 0.5 * beta @ K[np.ix_(region.support_, region.support_)] @ beta == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_very_small_and_very_large_prices_end_with_a_true_certificate(C: float) -> None:
    X, y = two_classes(100)
    model = SVC(C=C, gamma=0.5).fit(X, y)
    assert model.fit_status_ == 0
    assert model.certificate_.verify(X, y)
    sign, f = np.where(y > 0, 1.0, -1.0), model.decision_function(X)
    beta = np.zeros(100)
    beta[model.support_] = model.dual_coef_[0]
    # Rows with beta = C are within the margin, rows with beta = 0 outside of it, up to tol.
    assert (sign * f)[np.abs(beta) >= C * (1 - 1e-12)].max(initial=-np.inf) <= 1 + 2e-3
    assert (sign * f)[beta == 0].min(initial=np.inf) >= 1 - 2e-3


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_dual_objective_and_support_of_libsvm(kernel: str, C: float) -> None:
    X, y = two_classes()
    settings: dict[str, Any] = {"C": C, "kernel": kernel, "gamma": 0.3, "coef0": 1.0, "tol": 1e-6}
    theirs, ours = libsvm.SVC(**settings).fit(X, y), SVC(**settings).fit(X, y)
    K = ours._kernel()(X)
    assert dual_objective(ours, K) == pytest.approx(dual_objective(theirs, K), rel=1e-7)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_several_classes_as_libsvm(load: Any) -> None:
    X, y = load(return_X_y=True)
    X, y = X[::3], y[::3]
    theirs, ours = libsvm.SVC(tol=1e-5).fit(X, y), SVC(tol=1e-5).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    pairs, others = clone_as(ours, "ovo").decision_function(X), clone_as(theirs, "ovo").decision_function(X)
    np.testing.assert_allclose(pairs, others, atol=1e-4)
    assert ours.dual_coef_.shape == (len(ours.classes_) - 1, len(ours.support_))
    assert ours.certificate_.verify(X, y)


def clone_as(model: Any, shape: str) -> Any:
    return model.set_params(decision_function_shape=shape)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_regression_and_one_class_as_libsvm(kernel: str) -> None:
    X, _ = two_classes()
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=len(X))
    w = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    settings: dict[str, Any] = {"kernel": kernel, "gamma": 0.5, "tol": 1e-5}
    theirs, ours = libsvm.SVR(**settings).fit(X, y, w), SVR(**settings).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    assert ours.certificate_.gap <= 1e-4 * ours.certificate_.primal
    assert ours.certificate_.verify(X, y, w)
    region, other = OneClassSVM(nu=0.2, **settings).fit(X, sample_weight=w), libsvm.OneClassSVM(nu=0.2, **settings)
    other.fit(X, sample_weight=w)
    np.testing.assert_allclose(region.decision_function(X), other.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(region.score_samples(X) - region.offset_, region.decision_function(X))
    assert region.certificate_.verify(X, sample_weight=w)


# ------------------------------------------------------------------------------------- rounds, shrinking, cache, precision


def wide_dual(C: float = 10.0) -> tuple[Any, Any]:
    X, y = two_classes(700, 6, seed=5)
    task = MachineTask("classes", C, 0.0, 0.0, True, np.ones(2))
    return X, problem_of(task, (0, 1), (y > 0).astype(float), np.ones(len(y)))


@pytest.mark.parametrize(
    ("dtype", "cache", "shrinking"), [("f8", 1e9, True), ("f8", 0.0, False), ("f8", 6e5, True), ("f4", 1e9, True)]
)
def test_small_working_sets_reach_the_same_optimum(dtype: str, cache: float, shrinking: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(dual_solver, "_SHRINK_AFTER", 2)
    monkeypatch.setattr(dual_solver, "_SHRINK_SHARE", 0.05)
    X, problem = wide_dual()
    rows = rows_of(X, None, np.dtype(dtype))
    K = Gaussian(gamma=0.3)(X)
    matrix = CachedKernel(Gaussian(gamma=0.3), rows, cache)
    shrunk: list[int] = []
    found = dual_solver.solve_dual(
        matrix,
        problem,
        dual_solver.Options(1e-5, working_set=64, shrinking=shrinking),
        on_round=lambda rounds: bool(shrunk.append(rounds.K.n)),
    )
    np.testing.assert_allclose(found.f, K @ found.beta + problem.q, atol=1e-9 if dtype == "f8" else 2e-4)
    expected = libsvm.SVC(C=10.0, gamma=0.3, tol=1e-7).fit(X, problem.q < 0)
    best = dual_objective(expected, K)
    assert found.converged
    assert 0.5 * found.beta @ K @ found.beta + problem.q @ found.beta == pytest.approx(best, rel=1e-6)
    assert (min(shrunk) < len(X)) == shrinking
    assert abs(found.beta.sum()) <= 1e-9


def test_threads_and_cache_do_not_change_the_bits() -> None:
    X, y = make_classification(3_000, 8, random_state=0)
    expected = SVC(gamma=0.1).fit(X, y)
    with summula.engine("serial"):
        other = SVC(gamma=0.1).fit(np.asfortranarray(X), y)
    np.testing.assert_array_equal(other.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(other.decision_function(X[:500]), expected.decision_function(X[:500]))
    assert expected.certificate_.gap <= 1e-3 * expected.certificate_.primal
    assert expected.certificate_.verify(X, y)


def test_a_weight_is_a_repetition() -> None:
    X, y = two_classes(120)
    w = np.random.default_rng(7).integers(0, 4, 120)
    weighted = SVC(tol=1e-9).set_params(gamma=0.4).fit(X, y, w)
    repeated = SVC(tol=1e-9, gamma=0.4).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("make", [SVC, SVR])
def test_precomputed_callable_sparse_and_kernel_objects_agree(make: Any) -> None:
    X, y = two_classes(150)
    X = np.where(np.abs(X) > 0.4, X, 0.0)
    expected = make(kernel="rbf", gamma=0.3, tol=1e-8).fit(X, y).predict(X)
    K = Gaussian(gamma=0.3)(X)
    np.testing.assert_allclose(make(kernel="precomputed", tol=1e-8).fit(K, y).predict(K), expected, atol=1e-6)
    for kernel, rows in (
        (Gaussian(gamma=0.3), X),
        (lambda A, B: Gaussian(gamma=0.3)(A, B), X),
        ("rbf", sparse.csr_array(X)),
    ):
        model = make(kernel=kernel, gamma=0.3, tol=1e-8).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), expected, atol=1e-6)


def test_certificates_find_a_change_of_the_data() -> None:
    X, y = two_classes(100)
    model = SVC(tol=1e-6).fit(X, y)
    assert model.certificate_.verify(X, y)
    assert not model.certificate_.verify(X + 0.1 * rng.normal(size=X.shape), y)
    assert not model.certificate_.verify(X, -y)


def test_the_certificate_bounds_the_distance_of_an_early_stop() -> None:
    X, y = two_classes(200)
    best = SVC(C=10.0, gamma=0.5, tol=1e-9).fit(X, y).certificate_
    with pytest.warns(ConvergenceWarning, match="max_iter=30"):
        early = SVC(C=10.0, gamma=0.5, max_iter=30).fit(X, y)
    assert early.fit_status_ == 1
    assert early.n_iter_[0] == 30
    assert early.certificate_.primal - best.primal <= early.certificate_.gap < np.inf
    assert early.certificate_.dual <= best.dual + 1e-9


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("kernel", ["linear", Polynomial(2)], ids=str)
def test_a_hard_margin_of_overlapping_classes_is_refused_at_once(kernel: Any) -> None:
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0], [9.0, 9.0], [-5.0, 2.0], [3.0, -7.0], [1.0, 0.5]])
    y = [0, 0, 0, 1, 1, 1, 0, 0] if kernel == "linear" else [0, 1, 0, 1, 0, 1, 0, 1]
    X = X if kernel == "linear" else np.arange(8.0)[:, None]
    with pytest.raises(summula.DataError, match=r"hulls of the rows .*\d"):
        SVC(C=np.inf, kernel=kernel).fit(X, y)


def test_equal_rows_of_different_classes_have_no_hard_margin() -> None:
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    for rows in (X, sparse.csr_array(X)):
        with pytest.raises(summula.DataError, match="rows 1 and 2 are equal"):
            SVC(C=np.inf).fit(rows, [0, 0, 1, 1])
    soft = SVC(C=1e4).fit(X, [0, 0, 1, 1])
    assert soft.certificate_.verify(X, [0, 0, 1, 1])


def test_a_hard_margin_by_a_gaussian_kernel() -> None:
    X, y = two_classes(80)
    model = SVC(C=np.inf, gamma=1.0, tol=1e-7).fit(X, y)
    assert (y * model.decision_function(X)).min() >= 1 - 1e-6
    assert model.certificate_.gap <= 1e-5 * model.certificate_.primal
    assert model.certificate_.verify(X, y)


def test_kernels_that_are_not_positive_semidefinite_are_warned_of() -> None:
    X, y = two_classes(150)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = SVC(kernel="sigmoid", gamma=2.0, coef0=-3.0, C=10.0).fit(X, y)
    assert model.certificate_.kind == "stationary"
    assert "without a bound" in str(model.certificate_)
    assert np.isfinite(model.decision_function(X)).all()


def test_gamma_zero_knows_the_larger_class_only() -> None:
    X, y = two_classes(50)
    y[:30] = 1
    assert set(SVC(gamma=0.0).fit(X, y).predict(X)) == {1}


def _unscaled(n: int, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(int)
    return X * np.geomspace(1e-3, 1e5, d), y


@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_linear_machines_on_columns_of_very_different_scales_converge(C: float, stored: Any, tmp_path: Any) -> None:
    # Steps of pairs alone leave a gap of the size of the objective after any number of steps.
    X, y = _unscaled(200)
    X = stored(X)
    model = SVC(kernel="linear", C=C).fit(X, y)
    assert model.fit_status_ == 0
    assert model.certificate_.gap <= 1e-6 * model.certificate_.primal
    assert model.certificate_.verify(X, y)
    # The objective, from what predictions are made of.
    coef = np.asarray(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    short = np.maximum(1.0 - (2 * y - 1) * model.decision_function(X), 0.0)
    assert 0.5 * float((coef**2).sum()) + C * float(short.sum()) == pytest.approx(model.certificate_.primal, rel=1e-9)
    summula.save(model, tmp_path / "model")
    np.testing.assert_array_equal(summula.load(tmp_path / "model").decision_function(X), model.decision_function(X))


def test_linear_regression_machines_on_such_columns_converge() -> None:
    X, _ = _unscaled(200)
    y = X @ (1.0 / np.geomspace(1e-3, 1e5, 4)) + np.random.default_rng(1).normal(size=200)
    model = SVR(kernel="linear", C=1e5).fit(X, y)
    assert model.fit_status_ == 0
    assert model.certificate_.gap <= 1e-6 * model.certificate_.primal
    assert model.certificate_.verify(X, y)
    loss = np.maximum(np.abs(y - model.predict(X)) - 0.1, 0.0).sum()
    assert 0.5 * float((model.coef_**2).sum()) + 1e5 * loss == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_other_kernels_on_such_columns_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _unscaled(200)
    monkeypatch.setattr("summula.svm.dual.direct._MOST_VALUES", 0)  # steps of pairs alone
    ticks = iter(range(10**9))
    monkeypatch.setattr("summula.core.estimator.run.time.monotonic", lambda: float(next(ticks)))
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(kernel="poly", degree=2, C=1e6, tol=1e-9, max_time=20).fit(X, y)
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3, coef0=0.0), "rbf"], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_machines_with_large_prices_are_solved_through_features(
    kernel: Any, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Overlapping classes at C = 1e6: steps of pairs alone are 80 % above the optimum after millions."""
    X, y = two_classes(n=150)
    if kernel == "rbf":
        monkeypatch.setattr("summula.svm.dual.kernel_machine._MANY_STEPS", 10_000)
        monkeypatch.setattr("summula.svm.dual.solver._MOST", 1_000)
    model = SVC(C=1e6, kernel=kernel, fit_intercept=intercept, tol=1e-3 if kernel != "rbf" else 1e-7).fit(X, y)
    assert model.fit_status_ == 0
    K = (Gaussian(gamma=model.gamma_) if kernel == "rbf" else kernel)(X)
    n = len(y)
    # The primal in a factor of K: minimise 1/2 |v|^2 + C sum xi.
    values, vectors = np.linalg.eigh(K)
    phi = vectors * np.sqrt(np.maximum(values, 0.0))
    columns = [y[:, None] * phi, y[:, None] * np.ones((n, 1)), np.eye(n)]
    P = np.diag(np.concatenate([np.ones(n), [0.0], np.zeros(n)]))
    G = -np.block([columns, [np.zeros((n, n)), np.zeros((n, 1)), np.eye(n)]])
    A = None if intercept else np.eye(1, 2 * n + 1, n)
    found = quadratic_program(
        P,
        np.concatenate([np.zeros(n + 1), np.full(n, 1e6)]),
        G=G,
        h=np.append(-np.ones(n), np.zeros(n)),
        A=A,
        b=None if intercept else np.zeros(1),
    )
    certificate = model.certificate_
    assert certificate.primal - certificate.gap <= found.value * (1 + 1e-6)
    assert certificate.gap <= 1e-2 * found.value  # tol bounds the violation of each pair; the gap adds up 150 rows
    assert certificate.primal == pytest.approx(found.value, rel=1e-3)
    assert certificate.verify(X, y)


def test_polynomial_regression_with_a_large_price_converges() -> None:
    X, _ = two_classes(n=150)
    t = X[:, 0] ** 2 - X[:, 1] + 0.3 * np.random.default_rng(1).normal(size=150)
    model = SVR(C=1e6, kernel="poly", degree=2, coef0=1.0).fit(X, t)
    assert model.fit_status_ == 0
    assert model.certificate_.gap < 1e-3 * model.certificate_.primal
    assert model.score(X, t) > 0.9
    assert model.certificate_.verify(X, t)


def test_a_fit_ends_when_its_work_is_more_than_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("summula.svm.dual.kernel_machine._MOST_WORK", 1e6)
    monkeypatch.setattr("summula.svm.dual.solver._MOST", 100)
    X, y = two_classes()
    with pytest.warns(ConvergenceWarning, match="was stopped after [0-9,]+ steps, the limit for fits of this size"):
        model = SVC(C=1e6).fit(X, y)
    assert model.fit_status_ == 1
    assert model.certificate_.verify(X, y)


def test_steps_end_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("summula.svm.dual.kernel_machine._MOST_STEPS", 1_000)
    monkeypatch.setattr("summula.svm.dual.kernel_machine._MOST_STEP_WORK", 1_000)
    monkeypatch.setattr("summula.svm.dual.direct._MOST_VALUES", 0)
    X, y = _unscaled(60)
    with pytest.warns(ConvergenceWarning, match="was stopped after 50,000 steps|no further progress"):
        model = SVC(kernel="poly", degree=2, C=1e6, tol=1e-9).fit(X, y)
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0.0}, "'C'"),
        ({"C": -1.0}, "'C'"),
        ({"gamma": -0.1}, "'gamma'"),
        ({"kernel": "rbs"}, "'kernel'"),
        ({"tol": 0.0}, "'tol'"),
    ],
)
def test_parameters_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(summula.ParameterError, match=message):
        SVC(**settings).fit([[0.0], [1.0]], [0, 1])


def test_one_class_and_files_are_refused(tmp_path: Any) -> None:
    with pytest.raises(summula.DataError, match="one class"):
        SVC().fit([[0.0], [1.0]], [1, 1])
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,1\n3,0\n")
    with pytest.raises(summula.DataError, match="Nystroem or RBFSampler"):
        SVC().fit(summula.scan(tmp_path / "rows.csv"), "y")


def test_models_are_saved_with_their_kernels(tmp_path: Any) -> None:
    X, y = two_classes(60)
    for model in (SVC(kernel=Gaussian(2.0) + 0.5 * Linear()), SVR(), SVC(kernel="linear")):
        model.fit(X, y)
        summula.save(model, tmp_path / "model.safetensors")
        np.testing.assert_array_equal(summula.load(tmp_path / "model.safetensors").predict(X), model.predict(X))
