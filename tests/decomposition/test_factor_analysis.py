"""Factor analysis: derivatives, published loadings, both methods, Heywood cases, wide data, weights, bad input."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sklearn.decomposition
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.decomposition import FactorAnalysis
from summula.decomposition.factors import likelihood, sums
from summula.decomposition.factors.expectation import Factors, em_step, log_likelihood
from summula.decomposition.factors.rotation import rotated
from summula.decomposition.factors.spread import of_matrix, of_rows


def table(n=400, d=8, k=2, seed=0):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(k, d))
    return rng.normal(size=(n, k)) @ L + rng.normal(size=(n, d)) * np.sqrt(rng.uniform(0.5, 2.0, d)) + 5.0


def spread_of(X):
    return of_matrix(np.cov(X.T, bias=True), float(len(X)), np.zeros(X.shape[1]))


# ------------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("k", [0, 1, 3])
def test_slope_and_hessian_against_finite_differences(k):
    spread = spread_of(table(k=max(k, 1)))
    x = np.log(np.random.default_rng(1).uniform(0.3, 0.7, 8))

    def at(x):
        return likelihood.value_and_slope(spread.eigen(np.exp(x), None), x, k)

    step = 1e-5 * np.eye(8)
    slope = [(at(x + e)[0] - at(x - e)[0]) / 2e-5 for e in step]
    np.testing.assert_allclose(at(x)[1], slope, atol=1e-8)
    eigen = spread.eigen(np.exp(x), None)
    hessian = np.array([(at(x + e)[1] - at(x - e)[1]) / 2e-5 for e in step])
    assert np.linalg.eigvalsh(hessian)[0] > 0  # so that the whole of it is used
    np.testing.assert_allclose(likelihood._hessian(eigen, k), hessian, atol=1e-7)


def test_the_loadings_are_the_best_at_given_noise():
    spread, rng = spread_of(table()), np.random.default_rng(2)
    psi = rng.uniform(0.3, 0.7, 8)
    best = Factors(likelihood.loadings_at(spread, psi, 2), psi)
    for _ in range(50):
        other = Factors(best.loadings + 0.1 * rng.normal(size=(2, 8)), psi)
        assert log_likelihood(spread, other) < log_likelihood(spread, best)


# ---------------------------------------------------------------------------------------------------------- the maximum


def test_the_maximum_of_lawleys_six_school_subjects():
    """Lawley and Maxwell, Factor Analysis as a Statistical Method (1971): marks of 220 boys, two factors.

    Gaelic, English, history, arithmetic, algebra, geometry: specific variances .510, .594, .644, .377, .431, .628.
    """
    R = np.eye(6)
    R[np.triu_indices(6, 1)] = [
        0.439, 0.410, 0.288, 0.329, 0.248, 0.351, 0.354, 0.320, 0.329, 0.164, 0.190, 0.181, 0.595, 0.470, 0.464,
    ]  # fmt: skip
    R = R + np.triu(R, 1).T
    rows = np.linalg.cholesky(6 * R).T
    fa = FactorAnalysis(n_components=2, tol=1e-10).fit(np.vstack([rows, -rows]), sample_weight=np.full(12, 220 / 12))
    np.testing.assert_allclose(fa.get_covariance().diagonal(), 1.0)
    np.testing.assert_allclose(fa.noise_variance_, [0.510, 0.594, 0.644, 0.377, 0.431, 0.628], atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_is_at_least_that_of_scikit_learn(seed):
    X = table(seed=seed)
    ours = FactorAnalysis(n_components=2).fit(X)
    theirs = sklearn.decomposition.FactorAnalysis(n_components=2, tol=1e-6, svd_method="lapack").fit(X)
    assert ours.loglike_[-1] >= theirs.loglike_[-1] - 1e-9
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-2)
    assert ours.loglike_[-1] == pytest.approx(ours.score_samples(X).sum(), rel=1e-12)
    np.testing.assert_allclose(
        ours.score_samples(X), multivariate_normal(ours.mean_, ours.get_covariance()).logpdf(X), rtol=1e-9
    )


def test_a_stationary_point_is_one():
    X = table()
    fa = FactorAnalysis(n_components=2, tol=0.0).fit(X)
    Sigma, S = fa.get_covariance(), np.cov(X.T, bias=True)
    np.testing.assert_allclose(np.diag(Sigma), np.diag(S), rtol=1e-10)
    slope = np.linalg.solve(Sigma, np.linalg.solve(Sigma, Sigma - S).T)  # of the noise on its diagonal
    np.testing.assert_allclose(np.diag(slope), 0.0, atol=1e-10)
    np.testing.assert_allclose(slope @ fa.components_.T, 0.0, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 3))
def test_em_never_lowers_the_likelihood(seed, k):
    spread, rng = spread_of(table(30, 5, seed=seed)), np.random.default_rng(seed)
    factors = Factors(rng.normal(size=(k, 5)), rng.uniform(0.1, 2.0, 5))
    trace = [log_likelihood(spread, factors)]
    for _ in range(20):
        factors = em_step(spread, factors, 1e-12)
        trace.append(log_likelihood(spread, factors))
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[0])).all()


def test_em_and_newton_reach_the_same_maximum():
    X = table()
    newton = FactorAnalysis(n_components=2, tol=1e-8).fit(X)
    slow = FactorAnalysis(n_components=2, tol=1e-8, method="em", max_iter=10_000).fit(X)
    assert slow.n_iter_ > 5 * newton.n_iter_
    assert slow.loglike_[-1] == pytest.approx(newton.loglike_[-1], abs=1e-4)
    np.testing.assert_allclose(slow.get_covariance(), newton.get_covariance(), atol=1e-3)
    assert (np.diff(slow.loglike_) > -1e-9).all()


def test_one_em_step_is_that_of_the_rows():
    """E[z|x] and Cov[z|x] row by row, then both sums of the M-step, as the notes have them."""
    X = table(50, 4)
    A = X - X.mean(axis=0)
    A /= A.std(axis=0)
    rng = np.random.default_rng(0)
    L, psi = rng.normal(size=(2, 4)), rng.uniform(0.5, 1.0, 4)
    inverse = np.linalg.inv(L.T @ L + np.diag(psi))
    Z, C = A @ inverse @ L.T, np.eye(2) - L @ inverse @ L.T
    new = (A.T @ Z) @ np.linalg.inv(Z.T @ Z + 50 * C)
    noise = np.diag(A.T @ A - new @ (Z.T @ A)) / 50
    found = em_step(spread_of(X), Factors(L, psi), 1e-12)
    np.testing.assert_allclose(found.loadings, new.T, rtol=1e-10)
    np.testing.assert_allclose(found.psi, noise, rtol=1e-10)


# --------------------------------------------------------------------------------------------------- shapes and signs


def test_more_columns_than_rows(monkeypatch):
    X = table(25, 60)
    by_matrix = FactorAnalysis(n_components=2, tol=1e-9).fit(X)
    monkeypatch.setattr(sums, "KEPT_COLUMNS", 10)
    by_rows = FactorAnalysis(n_components=2, tol=1e-9).fit(X)
    assert by_rows._sums is None
    assert by_rows.loglike_[-1] == pytest.approx(by_matrix.loglike_[-1], abs=1e-4)
    assert by_rows.certificate_.verify(X)
    theirs = sklearn.decomposition.FactorAnalysis(n_components=2, tol=1e-8, svd_method="lapack").fit(X)
    assert by_matrix.loglike_[-1] >= theirs.loglike_[-1] - 1e-6


def test_rows_and_matrix_have_the_same_eigenvectors():
    X = table(10, 30)
    A = X - X.mean(axis=0)
    psi = np.random.default_rng(0).uniform(0.2, 1.0, 30)
    rows, matrix = of_rows(A, 10.0, np.zeros(30)), spread_of(X)
    a, b = rows.eigen(psi, 4), matrix.eigen(psi, 4)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-10)
    np.testing.assert_allclose(np.abs(a.vectors), np.abs(b.vectors), atol=1e-9)
    B = np.random.default_rng(1).normal(size=(30, 3))
    np.testing.assert_allclose(rows.times(B), matrix.times(B), atol=1e-10)


@pytest.mark.parametrize("k", [0, 2, 5, None])
def test_any_number_of_factors_has_a_covariance_with_an_inverse(k):
    X = table(60, 5)
    fa = FactorAnalysis(n_components=k).fit(X)
    np.testing.assert_allclose(fa.get_covariance() @ fa.get_precision(), np.eye(5), atol=1e-9)
    assert fa.transform(X).shape == (60, 5 if k is None else k)
    if k is None:
        np.testing.assert_allclose(fa.get_covariance(), np.cov(X.T, bias=True), atol=1e-9)


def test_the_transform_is_the_posterior_mean():
    X = table()
    fa = FactorAnalysis(n_components=2).fit(X)
    want = (X - fa.mean_) @ np.linalg.solve(fa.get_covariance(), fa.components_.T)
    np.testing.assert_allclose(fa.transform(X), want, atol=1e-11)


def test_limited_memory_and_newton_agree(monkeypatch):
    X = table()
    newton = FactorAnalysis(n_components=2, tol=1e-9).fit(X)
    monkeypatch.setattr(likelihood, "NEWTON_COLUMNS", 0)
    other = FactorAnalysis(n_components=2, tol=1e-9).fit(X)
    assert other.loglike_[-1] == pytest.approx(newton.loglike_[-1], abs=1e-6)
    assert other.n_iter_ != newton.n_iter_


# --------------------------------------------------------------------------------------------------------- rotations


@pytest.mark.parametrize("method", ["varimax", "quartimax"])
def test_a_rotation_is_one_and_makes_its_criterion_large(method):
    X = table(k=3)
    plain, turned = (FactorAnalysis(n_components=3, rotation=one).fit(X) for one in (None, method))
    np.testing.assert_allclose(plain.get_covariance(), turned.get_covariance(), atol=1e-9)

    def criterion(L):
        B = L.T**2
        return (B**2).sum() - ((B.sum(axis=0) ** 2).sum() / len(B) if method == "varimax" else 0.0)

    best, rng = criterion(turned.components_), np.random.default_rng(0)
    assert best > criterion(plain.components_)
    for _ in range(100):
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        assert criterion(Q @ turned.components_) <= best + 1e-6


def test_varimax_against_published_loadings():
    """Rotated by R's psych::principal, as in scikit-learn's tests."""
    L = np.array([[0.894, -0.359], [-0.451, -0.891], [0.995, -0.020], [0.968, -0.063]])
    want = [[0.962, 0.052], [-0.141, 0.989], [0.949, -0.300], [0.937, -0.251]]
    np.testing.assert_allclose(np.abs(rotated(L.T, "varimax").T), np.abs(want), atol=2e-3)


# ------------------------------------------------------------------------------------------- Heywood cases, constants


def heywood():
    """Three columns with correlations .8, .8 and .5: one factor would explain .8 x .8 / .5 > 1 of the first."""
    rows = np.linalg.cholesky([[3.0, 2.4, 2.4], [2.4, 3.0, 1.5], [2.4, 1.5, 3.0]]).T
    return np.vstack([rows, -rows])


def test_heywood_cases_are_reported():
    with pytest.warns(summula.AccuracyWarning, match="noise variance of column 0 tends to 0"):
        fa = FactorAnalysis(n_components=1).fit(heywood())
    assert fa.heywood_.tolist() == [0]
    assert fa.noise_variance_[0] == pytest.approx(1e-8 * heywood()[:, 0].var(), rel=1e-6)
    assert fa.certificate_.verify(heywood())
    with pytest.warns(summula.AccuracyWarning, match="bounded below by 0.005"):
        bounded = FactorAnalysis(n_components=1, min_noise=0.005).fit(heywood())
    assert bounded.loglike_[-1] < fa.loglike_[-1]
    assert not len(FactorAnalysis(n_components=2).fit(table()).heywood_)


def test_constant_columns_have_no_loadings():
    X = np.column_stack([table(d=8), np.full(400, 3.0)])
    fa = FactorAnalysis(n_components=2, tol=0.0).fit(X)
    assert not fa.components_[:, 8].any()
    without = FactorAnalysis(n_components=2, tol=0.0).fit(X[:, :8])
    np.testing.assert_allclose(fa.components_[:, :8], without.components_, atol=1e-10)
    assert fa.loglike_[-1] == pytest.approx(fa.score_samples(X).sum(), rel=1e-12)


# -------------------------------------------------------------------------------------- weights, sums, certificate, words


def test_weights_are_repetitions_and_sums_add_up():
    X, w = table(), np.random.default_rng(0).integers(0, 4, 400)
    weighted = FactorAnalysis(n_components=2, tol=0.0).fit(X, sample_weight=w)
    repeated = FactorAnalysis(n_components=2, tol=0.0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)
    whole, first, rest = (FactorAnalysis(n_components=2, tol=0.0).fit(rows) for rows in (X, X[:150], X[150:]))
    np.testing.assert_allclose(first.merge(rest).components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(
        first.forget(X[:30]).components_, FactorAnalysis(n_components=2, tol=0.0).fit(X[30:]).components_, atol=1e-9
    )
    by_em = FactorAnalysis(n_components=2, method="em", tol=1e-10).partial_fit(X[:200]).partial_fit(X[200:])
    assert by_em.loglike_[-1] == pytest.approx(whole.loglike_[-1], abs=1e-6)


def test_columns_of_any_scale_and_origin_give_the_same_factors():
    X = np.round(table() * 1024) / 1024
    plain = FactorAnalysis(n_components=2, tol=0.0).fit(X)
    moved = FactorAnalysis(n_components=2, tol=0.0).fit(X * 2.0 ** np.arange(-20, 20, 5) + 2.0**13)
    np.testing.assert_allclose(
        plain.transform(X), moved.transform(X * 2.0 ** np.arange(-20, 20, 5) + 2.0**13), atol=1e-3
    )
    far = FactorAnalysis(n_components=2, tol=0.0).fit(X + 1e8)
    np.testing.assert_allclose(far.components_, plain.components_, atol=1e-9)


def test_the_certificate_is_stationary_and_checks():
    X = table()
    certificate = FactorAnalysis(n_components=2, rotation="varimax").fit(X).certificate_
    assert certificate.kind == "stationary"
    assert certificate.gap < 1e-4
    assert certificate.verify(X)
    for change in (
        {"loadings": certificate.loadings * 1.01},
        {"psi": certificate.psi * 1.01},
        {"mean": certificate.mean + 0.01},
        {"primal": certificate.primal - 0.01},
    ):
        assert not dataclasses.replace(certificate, **change).verify(X), change
    worse = dataclasses.replace(certificate, loadings=certificate.loadings * 1.01)
    worse = dataclasses.replace(worse, primal=worse.verify(X).primal)
    assert worse.verify(X).gap > 0.01
    assert not worse.verify(X)


def test_the_start_can_be_given_and_steps_limited():
    X = table()
    given_start = FactorAnalysis(n_components=2, noise_variance_init=np.full(8, 2.0)).fit(X)
    assert given_start.loglike_[-1] == pytest.approx(FactorAnalysis(n_components=2).fit(X).loglike_[-1], abs=1e-2)
    for method in ("ml", "em"):
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
            FactorAnalysis(n_components=2, method=method, max_iter=1).fit(X)


def test_bad_input_raises_a_clear_error():
    X = table()
    with pytest.raises(summula.ParameterError, match="n_components=9 must be at most the number of columns, 8"):
        FactorAnalysis(n_components=9).fit(X)
    with pytest.raises(summula.ParameterError, match="noise_variance_init must be 8 positive numbers"):
        FactorAnalysis(noise_variance_init=[1.0]).fit(X)
    with pytest.raises(summula.DataError, match="at least 2 rows"):
        FactorAnalysis(n_components=1).fit(X[:1])
    bad = X.copy()
    bad[7, 3] = np.nan
    for use in (FactorAnalysis(n_components=1).fit, FactorAnalysis(n_components=1).fit(X).transform):
        with pytest.raises(summula.DataError, match="missing.*row 7"):
            use(bad)
    with pytest.raises(summula.ParameterError, match="'rotation' parameter"):
        FactorAnalysis(rotation="oblimin").fit(X)
