"""Mixtures of binomial and Bernoulli distributions: the two coins, the textbook's step, invariances, bad input."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.mixture import BernoulliMixture, BinomialMixture
from tests.reference import mixtures

# Do and Batzoglou (2008): heads in ten tosses of one of two coins.
HEADS = [[5], [9], [8], [4], [7]]
COINS = {"n_trials": 10, "probabilities_init": [0.6, 0.5]}


def test_the_two_coins() -> None:
    with pytest.warns(ConvergenceWarning):
        one = BinomialMixture(2, **COINS, fit_weights=False, max_iter=1).fit(HEADS)
    assert_allclose(one.probabilities_, [0.71, 0.58], atol=0.005)
    fixed = BinomialMixture(2, **COINS, fit_weights=False).fit(HEADS)
    assert_allclose(fixed.probabilities_, [0.797, 0.520], atol=0.0005)
    assert_array_equal(fixed.weights_, [0.5, 0.5])
    free = BinomialMixture(2, **COINS).fit(HEADS)
    assert_allclose(free.probabilities_, [0.793, 0.514], atol=0.0005)
    assert free.lower_bound_ > fixed.lower_bound_
    assert_array_equal(BinomialMixture(2, **COINS).fit(np.ravel(HEADS)).probabilities_, free.probabilities_)


def test_steps_are_the_textbook_s() -> None:
    p, weights = np.array([0.6, 0.5]), np.array([0.3, 0.7])
    for _ in range(4):
        p, weights, before = mixtures.binomial_step(HEADS, 10, p, weights)
    with pytest.warns(ConvergenceWarning):
        model = BinomialMixture(2, **COINS, weights_init=[0.3, 0.7], max_iter=4, tol=0.0).fit(HEADS)
    assert_allclose(model.probabilities_, p, rtol=1e-12)
    assert_allclose(model.weights_, weights, rtol=1e-12)
    assert model.lower_bound_ == pytest.approx(before / 5, rel=1e-12)


def test_densities_are_scipy_s() -> None:
    model = BinomialMixture(2, **COINS).fit(HEADS)
    x = np.arange(11)
    joint = np.log(model.weights_) + stats.binom(10, model.probabilities_).logpmf(x[:, None])
    assert_allclose(model.score_samples(x[:, None]), special.logsumexp(joint, axis=1), rtol=1e-10)
    assert_allclose(model.predict_proba(x), special.softmax(joint, axis=1), rtol=1e-10)
    assert np.exp(model.score_samples(x)).sum() == pytest.approx(1.0, rel=1e-12)


def test_one_component_is_the_share_of_successes() -> None:
    X = np.random.default_rng(0).binomial([10, 3], [0.2, 0.9], (200, 2))
    model = BinomialMixture(1, n_trials=[10, 3]).fit(X)
    assert_allclose(model.probabilities_, [X.mean(axis=0) / [10, 3]], rtol=1e-12)
    ones = (X > 2).astype(int)
    assert_allclose(BernoulliMixture(1).fit(ones).probabilities_, [ones.mean(axis=0)], rtol=1e-12)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 4), d=st.integers(1, 5), trials=st.integers(1, 20))
def test_the_log_likelihood_never_falls(seed: int, k: int, d: int, trials: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.binomial(trials, rng.random((k, d))[rng.integers(0, k, 60)])
    w = rng.integers(1, 4, 60).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BinomialMixture(k, trials, random_state=seed % 1000, tol=0.0, max_iter=30).fit(X, sample_weight=w)
    assert np.diff(model.lower_bounds_).min() > -1e-12


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    X, w = rng.integers(0, 2, (80, 6)), rng.integers(0, 4, 80)
    p = rng.random((3, 6))
    weighted = BernoulliMixture(3, probabilities_init=p).fit(X, sample_weight=w.astype(float))
    repeated = BernoulliMixture(3, probabilities_init=p).fit(np.repeat(X, w, axis=0))
    assert_allclose(weighted.probabilities_, repeated.probabilities_, rtol=1e-8, atol=1e-12)
    assert weighted.aic(X, w.astype(float)) == pytest.approx(repeated.aic(np.repeat(X, w, axis=0)), rel=1e-10)


def test_rows_without_weight_may_hold_anything() -> None:
    wild = np.array([[5], [9], [8], [4], [7], [1e6], [0.5]])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    ours = BinomialMixture(2, **COINS).fit(wild, sample_weight=weight)
    assert_allclose(ours.probabilities_, BinomialMixture(2, **COINS).fit(HEADS).probabilities_, rtol=1e-12)
    assert ours.certificate_.verify(wild, sample_weight=weight)


def test_the_certificate_is_recomputed() -> None:
    loose = BinomialMixture(2, **COINS, tol=1e-3).fit(HEADS)
    tight = BinomialMixture(2, **COINS, tol=1e-15).fit(HEADS)
    assert tight.certificate_.residual < 1e-6 < loose.certificate_.residual
    assert tight.certificate_.verify(HEADS)
    assert not tight.certificate_.verify(HEADS[:-1])
    cut_short = dataclasses.replace(tight.certificate_, residual=np.inf)
    assert "not shown to be stationary" in str(cut_short)
    assert cut_short.verify(HEADS)
    assert not loose.set_params(fit_weights=False).fit(HEADS).certificate_.verify([[4]] * 5)


def test_finds_the_classes_and_draws_from_them() -> None:
    rng = np.random.default_rng(2)
    truth = np.array([[0.9, 0.9, 0.1, 0.1, 0.5], [0.1, 0.2, 0.8, 0.9, 0.5]])
    labels = (rng.random(3000) < 0.3).astype(int)
    X = (rng.random((3000, 5)) < truth[labels]).astype(float)
    model = BernoulliMixture(2, random_state=0, n_init=3).fit(X)
    order = np.argsort(-model.probabilities_[:, 0])
    assert_allclose(model.probabilities_[order], truth, atol=0.05)
    assert_allclose(model.weights_[order], [0.7, 0.3], atol=0.03)
    drawn, which = model.sample(20_000)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert_allclose(drawn[which == 0].mean(axis=0), model.probabilities_[0], atol=0.02)
    assert BernoulliMixture(random_state=0).select(X, range(1, 5)).n_components == 2


def test_bad_input_gets_one_sentence() -> None:
    with pytest.raises(summula.DataError, match="Column 0 contains 2.5 at row 1, which is not an integer from 0 to 10"):
        BinomialMixture(2, **COINS).fit([[1.0], [2.5], [3.0]])
    with pytest.raises(summula.DataError, match="Column 0 contains 11 at row 2, .* 10 trials"):
        BinomialMixture(2, **COINS).fit([[1], [2], [11]])
    with pytest.raises(summula.DataError, match="Negative values .* column 1 contains -1 at row 0, .* neither 0 nor 1"):
        BernoulliMixture(1).fit([[1, -1], [0, 1]])
    with pytest.raises(summula.DataError, match="contains 7 at row 0"):
        BernoulliMixture(1).fit([[1, 0], [0, 1]]).predict([[7, 0]])
    with pytest.raises(summula.DataError, match="Column 0 has 1 missing value"):
        BernoulliMixture(1).fit([[np.nan, 1.0], [0.0, 1.0]])
    with pytest.raises(summula.ParameterError, match="n_trials has shape"):
        BinomialMixture(2, n_trials=[3, 4]).fit(HEADS)
    with pytest.raises(summula.ParameterError, match="integers from 1 to 9,007,199,254,740,992"):
        BinomialMixture(2, n_trials=[2.5]).fit(HEADS)
    with pytest.raises(summula.ParameterError, match="shape of .2, 1."):
        BinomialMixture(2, n_trials=10, probabilities_init=[0.5]).fit(HEADS)
    with pytest.raises(summula.ParameterError, match="range"):
        BinomialMixture(2, n_trials=10, probabilities_init=[0.5, 1.5]).fit(HEADS)


def test_what_is_neither_0_nor_1_is_refused() -> None:
    with pytest.raises(summula.DataError, match="Column 1 contains 0.5 at row 0, which is neither 0 nor 1"):
        BernoulliMixture(2).fit(np.array([[0.0, 0.5], [1.0, 1.0]]))
