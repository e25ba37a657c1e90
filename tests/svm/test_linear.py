"""LinearSVC, LinearSVR and PegasosSVC: liblinear's objective, certificates, textbook intercepts, streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as liblinear
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.svm import SVC, LinearSVC, LinearSVR, PegasosSVC
from summula.svm.linear import interior_point, newton

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=300) + 0.4 > 0, 1, -1)
Y = 2.0 * X[:, 0] - X[:, 3] + 1.0 + 0.2 * rng.normal(size=300)


def objective(model: Any, penalty: str, loss: str, C: float, *, penalised: bool = True) -> float:
    w, b = (
        np.append(model.coef_.ravel(), model.intercept_.ravel()[0] if penalised else 0.0),
        model.intercept_.ravel()[0],
    )
    short = np.maximum(1 - y * (X @ model.coef_.ravel() + b), 0.0)
    size = 0.5 * w @ w if penalty == "l2" else np.abs(w).sum()
    return float(size + C * (short**2 if loss == "squared_hinge" else short).sum())


@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize(("penalty", "loss"), [("l2", "squared_hinge"), ("l2", "hinge"), ("l1", "squared_hinge")])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_objective_of_liblinear(penalty: str, loss: str, C: float, kind: Any) -> None:
    settings: dict[str, Any] = {"penalty": penalty, "loss": loss, "C": C}
    theirs = liblinear.LinearSVC(dual=loss == "hinge", tol=1e-8, max_iter=1_000_000, **settings).fit(X, y)
    ours = LinearSVC(tol=1e-5, max_iter=20_000, random_state=0, **settings).fit(kind(X), y)
    value = objective(ours, **settings)
    assert value == pytest.approx(objective(theirs, **settings), rel=2e-5)
    assert ours.certificate_.primal == pytest.approx(value, rel=1e-9)
    assert ours.certificate_.gap <= 1e-5 * value
    assert ours.certificate_.verify(kind(X), y)
    assert not ours.certificate_.verify(kind(X), -y)


def test_the_textbook_objective_is_that_of_svc() -> None:
    ours = LinearSVC(loss="squared_hinge", penalize_intercept=False, C=0.5, tol=1e-8).fit(X, y)
    w, b = ours.coef_[0], ours.intercept_[0]
    short = np.maximum(1 - y * (X @ w + b), 0.0)
    # The gradient is zero, for w and for the unpenalised intercept.
    np.testing.assert_allclose(w - X.T @ (y * short), 0.0, atol=1e-8)
    assert abs(float(y @ short)) <= 1e-8
    assert ours.certificate_.gap <= 1e-8 * ours.certificate_.primal
    hinge = LinearSVC(loss="hinge", penalize_intercept=False, C=0.5, tol=1e-3, random_state=0).fit(X, y)
    best = SVC(kernel="linear", C=0.5, tol=1e-7).fit(X, y).certificate_
    assert hinge.certificate_.primal == pytest.approx(best.primal, rel=1e-3)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_regression_of_liblinear(loss: str, epsilon: float) -> None:
    w = rng.uniform(0.5, 2.0, len(Y))
    settings: dict[str, Any] = {"loss": loss, "epsilon": epsilon, "C": 0.5}
    theirs = liblinear.LinearSVR(dual=True, tol=1e-9, max_iter=1_000_000, **settings).fit(X, Y, w)
    ours = LinearSVR(tol=1e-7, max_iter=50_000, random_state=0, **settings).fit(X, Y, w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    assert ours.certificate_.verify(X, Y, w)


def test_several_classes_and_class_weights() -> None:
    rows, labels = load_iris(return_X_y=True)
    settings: dict[str, Any] = {"class_weight": {0: 2.0, 1: 0.5, 2: 1.0}, "C": 0.7}
    theirs = liblinear.LinearSVC(tol=1e-9, max_iter=100_000, dual=False, **settings).fit(rows, labels)
    ours = LinearSVC(tol=1e-8, **settings).fit(rows, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    assert ours.certificate_.verify(rows, labels)


def test_newton_on_files_gives_the_bits_of_the_array(tmp_path: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = LinearSVC().fit(X, y)
    streamed = LinearSVC().fit(summula.scan(tmp_path / "rows.parquet"), "y")
    np.testing.assert_array_equal(streamed.coef_, expected.coef_)
    with pytest.raises(summula.DataError, match="SGDClassifier"):
        LinearSVC(loss="hinge").fit(summula.scan(tmp_path / "rows.parquet"), "y")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("model", "has_classes"),
    [
        (LinearSVC(), True),
        (LinearSVC(penalty="l1"), True),
        (LinearSVC(loss="hinge", tol=1e-8), True),
        (LinearSVC(loss="hinge", tol=1e-8, penalize_intercept=False), True),
        (LinearSVR(tol=1e-8), False),
        (LinearSVR(epsilon=0.3, tol=1e-8, penalize_intercept=False), False),
        (LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.3), False),
    ],
)
def test_steps_of_small_tables_in_one_kernel_are_those_of_large_ones(
    model: Any, has_classes: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4)) * [1.0, 10.0, 0.1, 1.0]
    y: Any = X @ [1.0, 0.1, 5.0, 0.0] + rng.standard_normal(90)
    y = y > 0 if has_classes else y
    weight = rng.integers(0, 3, 90) if weighted else None
    small = clone(model).fit(X, y, sample_weight=weight)
    for module in (newton, interior_point):
        monkeypatch.setattr(module, "is_small", lambda Z: False)
    large = clone(model).fit(X, y, sample_weight=weight)
    assert small.n_iter_ == large.n_iter_
    np.testing.assert_allclose(small.coef_, large.coef_, rtol=1e-6, atol=1e-9)
    assert small.certificate_.gap <= 1e-4 * small.certificate_.primal
    assert small.certificate_.verify(X, y, sample_weight=weight)


def test_a_singular_small_problem_is_solved() -> None:
    X = np.repeat(np.arange(6.0)[:, None], 2, axis=1)
    model = LinearSVR(C=1e6, penalize_intercept=False).fit(X, 2.0 * X[:, 0] + 1.0)
    np.testing.assert_allclose(model.predict(X), 2.0 * X[:, 0] + 1.0, atol=1e-3)


def test_columns_of_very_different_scales_converge() -> None:
    scales = np.geomspace(1e-3, 1e5, 5)
    model = LinearSVC(C=1.0).fit(X * scales, y)
    assert model.certificate_.gap <= 1e-4 * model.certificate_.primal
    assert model.n_iter_ < 60


@pytest.mark.parametrize("weight", [1e6, 1e10, 1e38, 1e300])
@pytest.mark.parametrize(
    ("model", "target"),
    [(LinearSVR(), Y), (LinearSVR(epsilon=0.1, penalize_intercept=False), Y), (LinearSVC(loss="hinge"), y)],
)
def test_one_row_of_nearly_all_weight_is_fitted_and_the_others_as_well_as_can_be(
    model: Any, target: Any, weight: float
) -> None:
    """Above some weight the row is a constraint, and a larger weight has no effect."""
    w = np.ones(300)
    w[7] = weight
    model.fit(X, target, sample_weight=w)
    found = model.certificate_.verify(X, target, sample_weight=w)
    assert found.confirms
    assert found.gap <= 1e-4 * found.primal
    limit = type(model)(**{**model.get_params(), "tol": 1e-7}).fit(X, target, np.where(w > 1, 3e4, w))
    np.testing.assert_allclose(model.coef_, limit.coef_, atol=2e-3)
    if isinstance(model, LinearSVR):
        assert abs(model.predict(X[7:8])[0] - Y[7]) <= model.epsilon + 1e-8
    else:
        assert model.decision_function(X[7:8])[0] * y[7] >= 1 - 1e-5


def test_a_gap_is_a_number_where_squares_overflow() -> None:
    w = np.ones(300)
    w[7] = 1e300
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        model = LinearSVC().fit(X, y, sample_weight=w)
    assert 0 <= model.certificate_.gap <= model.certificate_.primal
    assert model.certificate_.verify(X, y, sample_weight=w)


def test_heavy_rows_in_conflict_share_what_they_lose() -> None:
    Z, target, w = X.copy(), Y.copy(), np.ones(300)
    Z[4], w[3:5] = Z[3], (1e20, 3e20)
    model = LinearSVR().fit(Z, target, sample_weight=w)
    assert model.certificate_.verify(Z, target, sample_weight=w)
    assert model.certificate_.primal == pytest.approx(1e20 * abs(target[3] - target[4]), rel=1e-3)


def test_wide_sparse_rows_are_descended_by_coordinates() -> None:
    draws = np.random.default_rng(4)
    S = sparse.random_array((400, 3_000), density=0.01, rng=draws, format="csr")
    labels = np.where(S @ draws.normal(size=3_000) > 0, 1, 0)
    model = LinearSVC(random_state=0).fit(S, labels)
    assert model.certificate_.gap <= 1e-4 * model.certificate_.primal
    again = LinearSVC(random_state=0).fit(S, labels)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    free = LinearSVC(random_state=0, penalize_intercept=False, tol=1e-3).fit(S, labels)
    assert free.certificate_.gap <= 1e-3 * free.certificate_.primal


def test_pegasos_comes_near_the_svm_of_its_scale() -> None:
    lam = 0.05
    exact = SVC(kernel="linear", C=1 / (lam * len(y)), fit_intercept=False, tol=1e-7).fit(X, y)
    model = PegasosSVC(lam, max_iter=100, random_state=0).fit(X, y)
    assert model.intercept_[0] == 0.0
    best = exact.certificate_.primal * lam
    assert best - 1e-9 <= model.certificate_.primal <= best * 1.01
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.05)
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearSVC(C=0.0), "'C'"),
        (LinearSVC(C=np.inf), "finite C"),
        (LinearSVC(penalty="l1", loss="hinge"), "penalty='l1' and loss='hinge'"),
        (LinearSVC(multi_class="crammer_singer"), "crammer_singer"),
        (PegasosSVC(0.0), "lambda_"),
    ],
)
def test_parameters_are_refused_by_name(model: Any, message: str) -> None:
    with pytest.raises(summula.ParameterError, match=message):
        model.fit(X, y)
