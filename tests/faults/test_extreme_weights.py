"""Certificates where a few rows have nearly all of the weight, or all weights are far from 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from summula.core.data.labels import Labels
from summula.core.errors import DataError
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Unnamed
from summula.decomposition import PCA, FactorAnalysis
from summula.kernel_ridge import KernelRidge
from summula.kernels import Gaussian
from summula.linear_model import ElasticNet, Lasso, LinearRegression, PolynomialRegression, Ridge
from summula.naive_bayes import ComplementNB
from summula.svm import SVC
from tests.faults.rows import linear_rows

RNG = np.random.default_rng(0)
X, Y, CODES = linear_rows(RNG, 300, [1.0, 2.0, 0.0, -1.0])
COUNTS = RNG.poisson(2.0, (300, 4)).astype(float)


def one_of(weight):
    weights = np.ones(300)
    weights[7] = weight
    return weights


@pytest.mark.filterwarnings("ignore::summula.core.errors.CollinearityWarning")  # one row determines one coefficient
@pytest.mark.parametrize("weight", [1e10, 1e20, 1e38, 1e300])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "model",
    [LinearRegression(), Ridge(), Lasso(alpha=0.1), Lasso(alpha=1e-9), ElasticNet(0.1)],
    ids=["plain", "ridge", "lasso", "small alpha", "elastic net"],
)
def test_one_heavy_row_does_not_break_certificates_of_squared_errors(model, fit_intercept, weight):
    model.set_params(fit_intercept=fit_intercept).fit(X, Y, sample_weight=one_of(weight))
    assert model.certificate_.verify(X, Y, sample_weight=one_of(weight))


@pytest.mark.filterwarnings("ignore::summula.core.errors.CollinearityWarning")
@pytest.mark.parametrize("weight", [1e60, 1e155, 1e300])
@pytest.mark.parametrize("model", [LinearRegression(positive=True), PolynomialRegression()], ids=str)
def test_objectives_that_are_rounding_of_a_heavy_row_are_confirmed(model, weight):
    certificate = model.fit(X, Y, sample_weight=one_of(weight)).certificate_
    assert certificate.verify(X, Y, sample_weight=one_of(weight))
    assert not replace(certificate, intercept=certificate.intercept + 1e-3).verify(X, Y, one_of(weight))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [1e20, 1e160])
def test_a_heavy_row_of_kernel_ridge_is_fitted_beside_the_others(weight):
    model = KernelRidge(0.5, kernel="rbf", gamma=0.1).fit(X, Y, sample_weight=one_of(weight))
    limit = np.full(300, 0.5)
    limit[7] = 0.0  # (2) divided by the weights: that row is interpolated
    expected = np.linalg.solve(Gaussian(gamma=0.1)(X) + np.diag(limit), Y)
    np.testing.assert_allclose(model.dual_coef_, expected, rtol=1e-8, atol=1e-10)
    assert model.certificate_.verify(X, Y, sample_weight=one_of(weight))


def test_a_wrong_point_of_heavy_rows_is_still_refused():
    weights = one_of(1e10)
    for model in (LinearRegression(), Ridge(), Lasso(alpha=1e-9)):
        certificate = model.fit(X, Y, sample_weight=weights).certificate_
        assert not replace(certificate, intercept=certificate.intercept + 1e-3).verify(X, Y, sample_weight=weights)
        assert not replace(certificate, coef=certificate.coef * 1.01).verify(X, Y, sample_weight=weights)


def test_the_lasso_of_a_heavy_row_states_the_objective_of_its_residuals():
    weights = one_of(1e10)
    model = Lasso(alpha=1e-9).fit(X, Y, sample_weight=weights)
    residuals = Y.astype(np.longdouble) - X.astype(np.longdouble) @ model.coef_ - model.intercept_
    value = (weights * residuals**2).sum() / weights.sum() / 2 + 1e-9 * np.abs(model.coef_).sum()
    assert model.certificate_.primal == pytest.approx(float(value), rel=1e-9)


@pytest.mark.parametrize("weight", [1e20, 1e38, 1e300])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_heavy_class_leaves_the_counts_of_the_others(classes, weight):
    y = np.arange(300) % classes
    weights = one_of(weight)
    model = ComplementNB().fit(COUNTS, y, sample_weight=weights)
    assert np.isfinite(model.feature_log_prob_).all()
    assert model.certificate_.verify(COUNTS, y, sample_weight=weights)
    heavy = y[7]
    others = COUNTS[y != heavy].sum(axis=0) + 1.0
    np.testing.assert_allclose(model.feature_log_prob_[heavy], -np.log(others / others.sum()), rtol=1e-12)


@pytest.mark.parametrize("weight", [1.0, 1e10, 1e14])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_heavy_rows_of_support_vector_machines_are_judged_up_to_the_rounding_of_their_scores(weight):
    rows, y, weights = X[:100], CODES[:100], np.full(100, weight)
    model = SVC(gamma=0.5, max_iter=20_000).fit(rows, y, sample_weight=weights)
    certificate = model.certificate_
    assert certificate.verify(rows, y, sample_weight=weights)
    labels = Labels("test", np.array([0, 1]))
    found = certificate._objectives(as_source(Unnamed(), rows, y, weights, needs_y=True, labels=labels))
    (machine,) = certificate.machines
    Z = rows.astype(np.longdouble)
    K = np.exp(-0.5 * np.square(Z[:, None] - Z[None]).sum(axis=2))
    beta = np.zeros(100, np.longdouble)
    beta[machine.support] = machine.beta
    loss = np.maximum(1 - np.where(y == 1, 1, -1) * (K @ beta + machine.intercept), 0)
    exact = beta @ K @ beta / 2 + weight * loss.sum()
    assert abs(found.primal - exact) <= found.rounding
    assert found.rounding <= 1e-3 * weight  # C is 1: negligible relative to the cost of one row that is misclassified
    wrong = replace(certificate, primal=certificate.primal - 2 * found.rounding - 1e-6 * certificate.primal)
    assert not wrong.verify(rows, y, sample_weight=weights)


@pytest.mark.parametrize("model", [FactorAnalysis(1), PCA(1)], ids=["factors", "components"])
def test_weights_that_count_no_rows_are_named(model):
    with pytest.raises(DataError, match="Weights are frequencies, but their sum is 3e-28"):
        model.fit(X, sample_weight=np.full(300, 1e-30))
    with pytest.raises(DataError, match="needs at least 2 rows, but n_samples = 1"):
        model.fit(X[:1])
