"""Confidence intervals of metrics: published and brute-force values, coverage, bad input."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from summula import metrics
from summula.core.errors import DataError, ParameterError
from summula.metrics.delong import delong_variance


def test_metrics_are_those_of_scikit_learn():
    assert metrics.roc_auc_score is sklearn.metrics.roc_auc_score
    assert {"interval", "f1_score", "confusion_matrix"} <= set(dir(metrics))
    with pytest.raises(AttributeError, match="no attribute 'f7_score'"):
        metrics.f7_score  # noqa: B018


@pytest.mark.parametrize(
    ("metric", "k", "n"),
    [("accuracy", 17, 20), ("error", 3, 20), ("recall", 6, 8), ("tpr", 6, 8), ("fnr", 2, 8), ("specificity", 11, 12),
     ("fpr", 1, 12), ("precision", 6, 7)],
)  # fmt: skip
def test_proportions_are_exact(metric, k, n):
    y = np.array([1] * 8 + [0] * 12)
    p = np.array([1] * 6 + [0] * 2 + [1] + [0] * 11)
    found = metrics.interval(metric, y, p)
    peer = scipy.stats.binomtest(k, n).proportion_ci(0.95, "exact")
    assert found.estimate == k / n
    assert found.n == n
    np.testing.assert_allclose([found.lower, found.upper], [peer.low, peer.high], rtol=1e-9)


def test_words_and_positive_labels():
    y, p = np.array(["ill", "ill", "well", "well"]), np.array(["ill", "well", "well", "well"])
    assert metrics.interval("recall", y, p, pos_label="ill").estimate == 0.5
    assert metrics.interval("recall", y, p).estimate == 1.0  # "well" is the larger label
    assert metrics.interval(metrics.accuracy_score, y, p).method == "clopper-pearson"


@pytest.mark.parametrize("decimals", [8, 0])
def test_delong_is_the_u_statistic(decimals):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    s = np.round(rng.normal(size=60) + y, decimals)  # rounded: many ties
    x, z = s[y == 1], s[y == 0]
    psi = np.sign(x[:, None] - z[None, :]) / 2 + 0.5
    variance = psi.mean(axis=1).var(ddof=1) / len(x) + psi.mean(axis=0).var(ddof=1) / len(z)
    found = delong_variance(y, s)
    assert found.area == pytest.approx(sklearn.metrics.roc_auc_score(y, s), abs=1e-12)
    assert found.area == pytest.approx(psi.mean(), abs=1e-12)
    assert found.variance == pytest.approx(variance, rel=1e-10)
    limits = metrics.interval("auc", y, s)
    half = 1.959963984540054 * np.sqrt(variance) / (found.area * (1 - found.area))
    np.testing.assert_allclose(
        np.log(limits.upper / (1 - limits.upper)) - np.log(limits.lower / (1 - limits.lower)), 2 * half
    )


def test_perfect_ranking_has_no_interval_of_length_0():
    found = metrics.interval("auc", [0] * 10 + [1] * 10, np.arange(20.0))
    assert found.estimate == found.upper == 1.0
    assert found.lower == pytest.approx(0.025**0.1)
    assert metrics.interval("auc", [1] * 10 + [0] * 10, np.arange(20.0)).upper == pytest.approx(1 - 0.025**0.1)


def test_bca_agrees_with_scipy():
    rng = np.random.default_rng(3)
    y = rng.normal(size=80)
    p = y + rng.exponential(size=80)
    found = metrics.interval("rmse", y, p, n_resamples=9_999)
    peer = scipy.stats.bootstrap(
        (y, p), lambda a, b: np.sqrt(np.mean((a - b) ** 2)), paired=True, vectorized=False, n_resamples=9_999, rng=0
    )
    # Two sets of 9,999 resamples: a 2.5 % quantile has a standard error of about 0.0016 / density, 3 % of the length.
    length = peer.confidence_interval.high - peer.confidence_interval.low
    np.testing.assert_allclose([found.lower, found.upper], peer.confidence_interval, atol=0.06 * length)
    assert found.estimate == pytest.approx(metrics.root_mean_squared_error(y, p))


@pytest.mark.parametrize("name", ["f1", "balanced_accuracy", "matthews"])
def test_estimates_agree_with_scikit_learn(name):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 90)
    p = np.where(rng.random(90) < 0.3, 1 - y, y)
    function = {"f1": "f1_score", "balanced_accuracy": "balanced_accuracy_score", "matthews": "matthews_corrcoef"}[name]
    found = metrics.interval(name, y, p, n_resamples=200)
    assert found.estimate == pytest.approx(getattr(metrics, function)(y, p), abs=1e-12)
    by_call = metrics.interval(getattr(metrics, function), y, p, n_resamples=200)
    np.testing.assert_allclose([by_call.lower, by_call.upper], [found.lower, found.upper])
    assert metrics.interval(functools.partial(metrics.fbeta_score, beta=2), y, p, n_resamples=100).method == "bca"


def covered(draw, interval, truth, trials):
    """How many intervals of independent samples contain the truth."""
    found = [interval(*draw(np.random.default_rng([7, trial]))) for trial in range(trials)]
    return sum(one.lower <= truth <= one.upper for one in found)


def test_coverage_of_clopper_pearson():
    def draw(rng):
        return np.zeros(50, int), (rng.random(50) < 0.1).astype(int)

    hits = covered(draw, lambda y, p: metrics.interval("error", y, p), 0.1, 400)
    assert hits >= scipy.stats.binom.ppf(1e-4, 400, 0.95)  # at least 95 %, so fewer with probability 1e-4 at most


def test_coverage_of_delong():
    truth = float(scipy.stats.norm.cdf(1 / np.sqrt(2)))

    def draw(rng):
        y = np.arange(120) % 2
        return y, rng.normal(size=120) + y

    hits = covered(draw, lambda y, s: metrics.interval("auc", y, s), truth, 400)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 400, [0.93, 0.97])  # asymptotic: within 2 % of 95 %
    assert low <= hits <= high


def test_coverage_of_bca():
    def draw(rng):
        y = rng.normal(size=100)
        return y, y + rng.normal(size=100)

    hits = covered(draw, lambda y, p: metrics.interval("rmse", y, p, n_resamples=300), 1.0, 200)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 200, [0.91, 0.97])  # second-order accurate; 300 resamples
    assert low <= hits <= high


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kappa", [0, 1], [0, 1]), "one of accuracy"),
        (("accuracy", [0, 1], [0]), "one value per row"),
        (("accuracy", [], []), "at least one row"),
        (("rmse", [0.0, np.nan], [0.0, 1.0]), "y_true is missing or infinite at row 1"),
        (("recall", [0, 1, 2], [0, 1, 2]), "there are 3: give pos_label"),
        (("recall", [0, 0], [0, 0]), "no row is positive"),
        (("auc", [1, 1], [0.1, 0.2]), "rows of both classes"),
        (("r2", [1.0, 1.0], [1.0, 2.0]), "undefined for these rows"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises((DataError, ParameterError), match=words):
        metrics.interval(*arguments)


def test_bad_options():
    with pytest.raises(ParameterError, match="confidence must be"):
        metrics.interval("accuracy", [0, 1], [0, 1], confidence=95)
    with pytest.raises(ParameterError, match="does not apply to 'rmse'"):
        metrics.interval("rmse", [0.0, 1.0], [0.0, 1.0], method="delong")
    with pytest.raises(ParameterError, match="n_resamples must be an int >= 100"):
        metrics.interval("rmse", [0.0, 1.0], [0.0, 1.0], n_resamples=5)
