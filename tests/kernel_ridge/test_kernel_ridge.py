"""KernelRidge and KernelLMS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import kernel_ridge as rival

import summula
from summula.kernel_ridge import KernelLMS, KernelRidge
from summula.kernel_ridge import kernel_ridge_regression as solving
from summula.kernels import Gaussian, Linear
from summula.linear_model import Ridge

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=90)


def test_a_linear_kernel_is_ridge_without_an_intercept() -> None:
    expected = Ridge(alpha=2.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(KernelRidge(alpha=2.0).fit(X, y).predict(X), expected.predict(X), rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "cosine"])
def test_the_equations_of_scikit_learn(kernel: str) -> None:
    w, targets = rng.integers(0, 3, 90).astype(float), np.column_stack([y, -2.0 * y])
    settings: dict[str, Any] = {"kernel": kernel, "alpha": [0.5, 2.0], "gamma": 0.2}
    ours, theirs = KernelRidge(**settings).fit(X, targets, w), rival.KernelRidge(**settings).fit(X, targets, w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7, atol=1e-9)
    assert ours.certificate_.verify(X, targets, w)
    assert not ours.certificate_.verify(X + 0.1, targets + 0.1, w)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("alpha", [3.0, [0.1, 50.0], 1e-12])
def test_few_columns_of_a_linear_kernel_give_the_same_coefficients(stored: Any, alpha: Any, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    X, Y, weight = rng.normal(size=(60, 3)), rng.normal(size=(60, 2)), rng.integers(0, 3, 60).astype(float)
    X[:, 0] *= 1e3
    model = KernelRidge(alpha=alpha).fit(stored(X), Y, weight)
    assert model.certificate_.verify(stored(X), Y, weight)
    monkeypatch.setattr("summula.kernel_ridge.kernel_ridge_regression._NARROW", 10**9)
    whole = KernelRidge(alpha=alpha).fit(stored(X), Y, weight)
    size = np.abs(whole.dual_coef_).max()
    np.testing.assert_allclose(model.dual_coef_, whole.dual_coef_, rtol=0, atol=1e-10 * size)
    assert (model.dual_coef_[weight == 0] == 0).all()


def test_single_precision_factors_are_corrected_to_double(monkeypatch: Any) -> None:
    expected = KernelRidge(alpha=1e-3, kernel=Gaussian()).fit(X, y)
    monkeypatch.setattr(solving, "_SINGLE", 10)
    corrected = KernelRidge(alpha=1e-3, kernel=Gaussian()).fit(X, y)
    np.testing.assert_allclose(corrected.dual_coef_, expected.dual_coef_, rtol=1e-8)
    assert corrected.certificate_.gap <= 1e-12
    # A matrix that is singular in single precision is factored in double.
    nearly = KernelRidge(alpha=1e-9, kernel=Gaussian(10.0)).fit(X, y)
    assert np.isfinite(nearly.dual_coef_).all()


def test_sparse_precomputed_and_callable_metrics_match_scikit_learn() -> None:
    expected = KernelRidge(kernel="rbf", gamma=0.3).fit(X, y).predict(X)
    K = Gaussian(gamma=0.3)(X)
    np.testing.assert_allclose(KernelRidge(kernel="precomputed").fit(K, y).predict(K), expected)
    np.testing.assert_allclose(KernelRidge(kernel="rbf", gamma=0.3).fit(sparse.csr_array(X), y).predict(X), expected)
    by_rows = KernelRidge(kernel=lambda a, b: np.exp(-0.3 * ((a - b) ** 2).sum())).fit(X, y)
    np.testing.assert_allclose(by_rows.predict(X), expected)


def test_an_indefinite_matrix_has_no_bound_when_verified_either() -> None:
    """With eigenvalues below -alpha the objective has no minimum, and a small residual proves nothing about it."""
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0]
    K = V * np.linspace(-9.5, 10.0, 20) @ V.T
    certificate = KernelRidge(kernel="precomputed").fit(K, y[:20]).certificate_
    checked = certificate.verify(K, y[:20])
    assert (certificate.kind, certificate.gap) == ("stationary", np.inf)
    assert (checked.gap, checked.dual) == (np.inf, -np.inf)
    assert checked
    assert not certificate.verify(K, y[20:40])


def test_streams_raise_with_an_alternative(tmp_path: Any) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,1\n3,0\n")
    with pytest.raises(summula.DataError, match="Nystroem"):
        KernelRidge().fit(summula.scan(tmp_path / "rows.csv"), "y")


# ----------------------------------------------------------------------------------------------------------- KernelLMS


def test_steps_are_those_of_lms_in_feature_space() -> None:
    theta = np.zeros(3)
    for row, target in zip(X, y, strict=True):
        theta += 0.05 * (target - theta @ row) * row
    model = KernelLMS(Linear(), eta=0.05).fit(X, y)
    np.testing.assert_allclose(model.predict(np.eye(3)), theta, rtol=1e-10)


def test_steps_of_columns_far_from_zero_are_those_near_zero() -> None:
    rows = np.round(X * 2**10) / 2**10  # so that the shifted rows are exact
    near = KernelLMS(kernel="rbf", gamma=0.5, eta=0.3).fit(rows, y)
    for shift in (2.0**24, 2.0**40 * np.eye(3)[0]):
        far = KernelLMS(kernel="rbf", gamma=0.5, eta=0.3).fit(rows + shift, y)
        np.testing.assert_allclose(far.predict(rows + shift), near.predict(rows), rtol=1e-9, atol=1e-12)


def test_parts_continue_and_chunks_do_not_matter() -> None:
    whole = KernelLMS(gamma=0.5).fit(X, y)
    parts = KernelLMS(gamma=0.5).partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-10)
    assert parts.t_ == 90
    with summula.engine("threads", chunk_rows=16):
        np.testing.assert_allclose(KernelLMS(gamma=0.5).fit(X, y).beta_, whole.beta_, rtol=1e-10)


def test_a_second_pass_updates_the_same_centres_and_budgets_hold() -> None:
    model = KernelLMS(gamma=0.5, max_iter=30).fit(X, y)
    assert len(model.centres_) == 90
    assert model.score(X, y) > KernelLMS(gamma=0.5).fit(X, y).score(X, y)
    assert len(KernelLMS(gamma=0.5, budget=25, max_iter=3).fit(X, y).beta_) == 25


def test_steps_that_diverge_are_refused() -> None:
    with pytest.raises(summula.DataError, match="eta"), np.errstate(all="ignore"):
        KernelLMS(Linear(), eta=1e6, max_iter=40).fit(X, y)
