"""GLMs on textbook tables against statsmodels (tests/data/glm/references.json) and, with offsets and weights, glum."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import special

from summula.linear_model import GammaRegressor, GeneralizedLinearRegressor, LogisticRegression, PoissonRegressor
from tests.data import rival_cases
from tests.data.glm_cases import CASES, OWN, REFERENCES, fingerprint, path

WANTED = json.loads(REFERENCES.read_text())["cases"]
SINGLE = [name for name in CASES if WANTED[name]["family"] != "multinomial"]
MULTINOMIAL = [name for name in CASES if WANTED[name]["family"] == "multinomial"]
GROUPED = [name for name in SINGLE if "cluster" in WANTED[name]]
TIGHT = {"tol": 1e-8, "max_iter": 1000}

# The inner matrix of HC0 is the same everywhere; the outer ones hold the observed information in statsmodels, the expected one
# in R's sandwich. They differ only where the link is not the canonical one.
OBSERVED, EXPECTED = "HC0", "HC0_expected"


def case(name):
    """The model to fit and the results of statsmodels."""
    want = WANTED[name]
    if want["table"] not in OWN and path(want["table"]) is None:
        pytest.skip("statsmodels, which has the table, is not installed")
    assert fingerprint(want["table"]) == want["fingerprint"], "another version of the table than that of the references"
    return CASES[name](), want


def fitted(model, **options):
    family = "binomial" if model.family == "bernoulli" else model.family
    regressor = GeneralizedLinearRegressor(family=family, link=model.link, alpha=0, **TIGHT, **options)
    return regressor.fit(model.X, model.y, sample_weight=model.weight, exposure=model.exposure)


def check_table(summary, want, errors, rtol=1e-7):
    """Compare estimates to a millionth of their standard errors; errors, z and p."""
    error = np.array(want[errors]["std_error"])
    assert np.abs((summary.estimate - want["estimate"]) / want["classical"]["std_error"]).max() < 1e-6
    np.testing.assert_allclose(summary.std_error, error, rtol=rtol)
    np.testing.assert_allclose(summary.statistic, want[errors]["statistic"], rtol=10 * rtol, atol=1e-6)
    return error


@pytest.mark.parametrize("name", SINGLE)
def test_estimates_and_classical_errors(name):
    model, want = case(name)
    ours = fitted(model)
    summary = ours.summary()
    assert summary.terms[0] == "intercept"
    assert len(summary) == len(want["terms"])
    np.testing.assert_allclose([ours.intercept_, *ours.coef_], summary.estimate, rtol=1e-12)
    check_table(summary, want, "classical")
    if model.family != "gamma":  # with an estimated dispersion the statistic may be taken for a t
        np.testing.assert_allclose(summary.p_value, want["classical"]["p_value"], rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("name", SINGLE)
def test_facts(name):
    model, want = case(name)
    ours = fitted(model)
    assert ours.deviance_ == pytest.approx(want["deviance"], rel=1e-9)
    assert ours.null_deviance_ == pytest.approx(want["null_deviance"], rel=1e-9)
    assert ours.pearson_chi2_ == pytest.approx(want["pearson_chi2"], rel=1e-7)
    assert ours.dispersion_ == pytest.approx(want["dispersion"], rel=1e-7)
    assert ours.n_iter_ >= 1


@pytest.mark.parametrize("name", SINGLE)
def test_likelihood_and_aic(name):
    model, want = case(name)
    ours = fitted(model)
    assert ours.log_likelihood_ == pytest.approx(want["log_likelihood"], rel=1e-9)
    facts = ours.summary().facts
    assert facts["log_likelihood"] == pytest.approx(want["log_likelihood"], rel=1e-9)
    assert facts["aic"] == pytest.approx(want["aic"], rel=1e-9)  # the dispersion is not counted, as in statsmodels


@pytest.mark.parametrize("name", SINGLE)
def test_robust_errors(name):
    model, want = case(name)
    ours = fitted(model)
    error = check_table(ours.summary(cov="HC0"), want, OBSERVED)
    n, k = want["n"], len(want["terms"])
    np.testing.assert_allclose(ours.summary(cov="HC1").std_error, error * np.sqrt(n / (n - k)), rtol=1e-7)


@pytest.mark.parametrize("name", GROUPED)
def test_errors_of_grouped_rows(name):
    model, want = case(name)
    # What is left of sums over few groups is small against its parts: star98 has columns nearly dependent.
    check_table(fitted(model).summary(cov="cluster", groups=model.groups), want, "cluster", rtol=1e-6)


def test_the_two_forms_of_the_same_counts_agree():
    """Proportions with numbers of pupils as weights, and one row per kind of pupil."""
    shares, want = case("star98-shares")
    pupils, _ = case("star98-pupils")
    one, two = fitted(shares), fitted(pupils)
    np.testing.assert_allclose(one.summary().std_error, two.summary().std_error, rtol=1e-6)
    assert np.abs((one.summary().estimate - two.summary().estimate) / want["classical"]["std_error"]).max() < 1e-6
    assert one.log_likelihood_ == pytest.approx(two.log_likelihood_, rel=1e-9)


def test_exposure_is_the_logarithm_of_an_offset():
    model, want = case("cpunish-exposure")
    by_offset = GeneralizedLinearRegressor(family="poisson", link="log", alpha=0, **TIGHT)
    by_offset.fit(model.X, model.y, offset=np.log(model.exposure))
    check_table(by_offset.summary(), want, "classical")
    again = PoissonRegressor(alpha=0, **TIGHT).fit(model.X, model.y, exposure=model.exposure)
    check_table(again.summary(), want, "classical")


@pytest.mark.parametrize(
    ("name", "regressor"),
    [
        ("scotland-log", GammaRegressor),
        ("stackloss-log", GammaRegressor),
        ("cpunish", PoissonRegressor),
        ("fair-poisson", PoissonRegressor),
        ("anes96-poisson", PoissonRegressor),
    ],
)
def test_regressors_named_after_their_family(name, regressor):
    model, want = case(name)
    ours = regressor(alpha=0, **TIGHT).fit(model.X, model.y)
    check_table(ours.summary(), want, "classical")
    check_table(ours.summary(cov="HC0"), want, OBSERVED)


@pytest.mark.parametrize("name", ["spector-logit", "star98-pupils", "fair-logit", "anes96-logit"])
def test_logistic_regression(name):
    model, want = case(name)
    ours = LogisticRegression(C=np.inf, **TIGHT).fit(model.X, model.y.astype(int), sample_weight=model.weight)
    summary = ours.summary()
    np.testing.assert_allclose(np.append(ours.intercept_, ours.coef_), summary.estimate, rtol=1e-12)
    check_table(summary, want, "classical")
    np.testing.assert_allclose(summary.p_value, want["classical"]["p_value"], rtol=1e-5, atol=1e-12)
    check_table(ours.summary(cov="HC0"), want, OBSERVED)
    if model.groups is not None:
        check_table(ours.summary(cov="cluster", groups=model.groups), want, "cluster", rtol=1e-6)
    assert summary.facts["log_likelihood"] == pytest.approx(want["log_likelihood"], rel=1e-9)
    assert summary.facts["aic"] == pytest.approx(want["aic"], rel=1e-9)


@pytest.mark.parametrize("name", MULTINOMIAL)
def test_multinomial_coefficients(name):
    """Differences to the first class, which is all that the data determine."""
    model, want = case(name)
    ours = LogisticRegression(C=np.inf, **TIGHT).fit(model.X, model.y)
    assert ours.classes_.tolist() == want["classes"]
    beta = np.column_stack([ours.intercept_, ours.coef_])
    beta = (beta - beta[0])[1:].ravel()
    assert np.abs((beta - want["estimate"]) / want["classical"]["std_error"]).max() < 1e-6
    scores = np.column_stack(
        [np.zeros(len(model.y)), model.X @ np.reshape(want["estimate"], (-1, 1 + model.X.shape[1]))[:, 1:].T]
    )
    scores[:, 1:] += np.reshape(want["estimate"], (-1, 1 + model.X.shape[1]))[:, 0]
    np.testing.assert_allclose(ours.predict_proba(model.X), special.softmax(scores, axis=1), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cov", ["classical", "HC0", "cluster"])
@pytest.mark.parametrize("name", MULTINOMIAL)
def test_multinomial_summary(name, cov):
    """Rows of the second class, then those of the third, each against the first; the intercept first."""
    model, want = case(name)
    if cov not in want:
        pytest.skip("the table has no groups")
    ours = LogisticRegression(C=np.inf, **TIGHT).fit(model.X, model.y)
    summary = ours.summary(cov=cov, **({"groups": model.groups} if cov == "cluster" else {}))
    check_table(summary, want, cov, rtol=1e-6)
    assert summary.facts["log_likelihood"] == pytest.approx(want["log_likelihood"], rel=1e-9)
    assert summary.facts["aic"] == pytest.approx(want["aic"], rel=1e-9)


# ------------------------------------------------------------------------------------------------------------------ glum


def objective(intercept, coef, X, y, offset, weight, alpha):
    """Half the mean deviance and the penalty, as scikit-learn and glum have it."""
    eta = intercept + X @ coef + offset
    deviance = 2 * (special.xlogy(y, y) - y * eta - y + np.exp(eta))
    return np.average(deviance, weights=weight) / 2 + alpha / 2 * coef @ coef


@pytest.mark.parametrize("name", rival_cases.COUNTS)
def test_glum_reaches_the_same_objective(name):
    alpha, weighted, shifted = rival_cases.COUNTS[name]
    rows = rival_cases.counts()
    intercept, *coef = rival_cases.answer("glum", name, *rows)
    X, y, offset, weight = rows
    given = {"sample_weight": weight if weighted else None, "offset": offset if shifted else None}
    ours = GeneralizedLinearRegressor(family="poisson", link="log", alpha=alpha, **TIGHT).fit(X, y, **given)
    data = (X, y, offset if shifted else np.zeros_like(y), weight if weighted else np.ones_like(y), alpha)
    least = objective(intercept, np.array(coef), *data)
    assert objective(ours.intercept_, ours.coef_, *data) == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, coef, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_the_slope_is_zero_at_the_optimum(alpha):
    """The same without another library: the gradient of the objective vanishes."""
    X, y, offset, weight = rival_cases.counts()
    ours = GeneralizedLinearRegressor(family="poisson", link="log", alpha=alpha, **TIGHT)
    ours.fit(X, y, sample_weight=weight, offset=offset)
    residual = weight / weight.sum() * (np.exp(ours.intercept_ + X @ ours.coef_ + offset) - y)
    slope = np.append(residual.sum(), X.T @ residual + alpha * ours.coef_)
    size = np.append(np.abs(residual).sum(), np.abs(X).T @ np.abs(residual))
    assert (np.abs(slope) < 1e-6 * size).all()
