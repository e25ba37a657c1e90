"""Bayes estimates: conjugate closed forms, quadrature, and the definition of the expected loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from summula.bayes import (
    BetaBernoulli,
    BetaBinomial,
    DirichletMultinomial,
    GammaExponential,
    GammaPoisson,
    NormalInverseGamma,
    NormalKnownVariance,
    bayes_estimator,
)
from summula.core.errors import DataError, ParameterError

# A prior, data, the log likelihood of data as a function of the parameter, and its support.
CASES: dict[str, tuple[Any, Any, Any, tuple[float, float]]] = {
    "bernoulli": (BetaBernoulli(2.0, 3.0), [1, 0, 1, 1, 1], lambda t, x: stats.bernoulli.logpmf(x, t), (0, 1)),
    "binomial": (BetaBinomial(1.5, 2.0, 4), [1, 4, 2], lambda t, x: stats.binom.logpmf(x, 4, t), (0, 1)),
    "poisson": (GammaPoisson(3.0, 1.5), [0, 4, 2, 2], lambda t, x: stats.poisson.logpmf(x, t), (0, np.inf)),
    "exponential": (
        GammaExponential(2.0, 0.5),
        [0.3, 2.0, 1.1],
        lambda t, x: np.log(t) - t * np.asarray(x),
        (0, np.inf),
    ),
    "normal": (
        NormalKnownVariance(1.0, 4.0, 2.0),
        [3.0, -1.0, 0.5],
        lambda t, x: stats.norm.logpdf(x, t, np.sqrt(2.0)),
        (-np.inf, np.inf),
    ),
}
cases = pytest.mark.parametrize("case", CASES, ids=str)


@cases
def test_posterior_is_prior_times_likelihood(case: str) -> None:
    prior, data, log_likelihood, _ = CASES[case]
    after = prior.posterior(data).distribution()
    points = after.ppf([0.1, 0.3, 0.5, 0.8])
    joint = [prior.distribution().logpdf(t) + np.sum(log_likelihood(t, data)) for t in points]
    np.testing.assert_allclose(np.diff(joint), np.diff(after.logpdf(points)), rtol=1e-9)  # up to the log evidence


@cases
def test_seeing_data_in_two_parts_is_seeing_them_at_once(case: str) -> None:
    prior, data, _, _ = CASES[case]
    whole, parts = prior.posterior(data), prior.posterior(data[:1]).posterior(data[1:])
    assert type(whole) is type(prior)
    assert vars(whole) == pytest.approx(vars(parts), rel=1e-12)


@cases
@pytest.mark.parametrize("loss", ["square", "zero_one", "absolute"])
def test_closed_forms_agree_with_quadrature(case: str, loss: str) -> None:
    prior, data, log_likelihood, support = CASES[case]
    frozen, x = prior.distribution(), np.array(data)
    by_quadrature = bayes_estimator(log_likelihood, frozen.logpdf, x, loss, support=support)
    assert prior.posterior(data).estimate(loss) == pytest.approx(by_quadrature, rel=1e-6)


@cases
def test_a_function_as_loss_gives_the_least_expected_loss(case: str) -> None:
    after = CASES[case][0].posterior(CASES[case][1])

    def pinball(a: Any, t: Any) -> Any:  # its minimum is the 0.8-quantile
        return np.where(t > a, 0.8 * (t - a), 0.2 * (a - t))

    assert after.estimate(pinball) == pytest.approx(after.distribution().ppf(0.8), rel=2e-4)
    assert after.estimate(lambda a, t: (a - t) ** 2) == pytest.approx(after.estimate("square"), rel=1e-4)


@cases
def test_most_likely_parameter(case: str) -> None:
    prior, data, log_likelihood, _ = CASES[case]
    best = prior.mle(data)
    for step in (-1e-4, 1e-4):
        assert np.sum(log_likelihood(best + step, data)) < np.sum(log_likelihood(best, data))


@cases
def test_predictive_averages_the_likelihood(case: str) -> None:
    prior, data, log_likelihood, _ = CASES[case]
    after, x = prior.posterior(data), data[0]
    frozen = after.distribution()
    low, high = frozen.ppf([1e-12, 1 - 1e-12])
    averaged, _ = integrate.quad(lambda t: np.exp(log_likelihood(t, x)) * frozen.pdf(t), low, high)
    discrete = case in ("bernoulli", "binomial", "poisson")
    assert (after.predictive().pmf(x) if discrete else after.predictive().pdf(x)) == pytest.approx(averaged, rel=1e-6)


@cases
def test_interval_holds_the_level(case: str) -> None:
    after = CASES[case][0].posterior(CASES[case][1])
    low, high = after.interval(0.9)
    cdf = after.distribution().cdf
    assert (cdf(low), cdf(high)) == pytest.approx((0.05, 0.95), abs=1e-9)


def test_intervals_at_extreme_levels_are_finite() -> None:
    level = 1 - 2.0**-53
    low, high = NormalKnownVariance(0.0, 1.0, 1.0).interval(level)
    assert high == pytest.approx(-low, rel=1e-12)
    assert high == pytest.approx(-stats.norm.ppf(2.0**-54), rel=1e-12)
    assert np.isfinite(NormalInverseGamma(0, 1, 2, 2).interval(level)).all()
    assert (DirichletMultinomial([2.0, 3.0]).interval(level) < 1).all()


def test_intervals_cover_parameters_drawn_from_the_prior() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        t = rng.gamma(2.0, 1.0)
        low, high = GammaPoisson(2.0, 1.0).posterior(rng.poisson(t, 5)).interval(0.8)
        hits += low <= t <= high
    assert abs(hits - 240) <= 3 * np.sqrt(300 * 0.8 * 0.2)


def test_the_exponential_example_of_the_lecture() -> None:
    x = np.random.default_rng(0).exponential(1.0, 7)
    mode = GammaExponential(1, 1).posterior(x).estimate("zero_one")
    assert mode == pytest.approx(7 / (x.sum() + 1), rel=1e-14)
    numeric = bayes_estimator(
        lambda t, d: len(d) * np.log(t) - t * d.sum(), lambda t: -t, x, loss="zero_one", support=(0, np.inf)
    )
    assert numeric == pytest.approx(7 / (x.sum() + 1), rel=1e-8)


def test_modes_at_the_ends() -> None:
    assert BetaBernoulli(1, 1).mode() == 0.5
    assert BetaBernoulli(1, 3).mode() == 0.0
    assert BetaBernoulli(3, 1).mode() == 1.0
    assert GammaPoisson(0.5, 1).mode() == 0.0
    np.testing.assert_allclose(DirichletMultinomial([1.0, 3.0, 2.0]).mode(), [0, 2 / 3, 1 / 3])


class TestNormalInverseGamma:
    prior, data = NormalInverseGamma(1.0, 2.0, 3.0, 4.0), np.array([0.5, 2.5, 3.0, -1.0])

    def log_joint(self, model: Any, mean: float, variance: float) -> float:
        normal = stats.norm.logpdf(mean, model.mean, np.sqrt(variance / model.strength))
        return float(normal + stats.invgamma.logpdf(variance, model.shape, scale=model.rate))

    def test_posterior_is_prior_times_likelihood(self) -> None:
        after, points = self.prior.posterior(self.data), [(0.0, 1.0), (1.0, 2.0), (2.0, 0.7)]
        likelihood = [stats.norm.logpdf(self.data, m, np.sqrt(v)).sum() for m, v in points]
        direct = np.array([self.log_joint(self.prior, m, v) for m, v in points]) + likelihood
        ours = [self.log_joint(after, m, v) for m, v in points]
        np.testing.assert_allclose(np.diff(direct), np.diff(ours), rtol=1e-10)

    def test_mode_is_the_largest_point(self) -> None:
        after = self.prior.posterior(self.data)
        m, v = after.estimate("zero_one")
        for dm, dv in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
            assert self.log_joint(after, m + dm, v + dv) < self.log_joint(after, m, v)

    def test_in_two_parts(self) -> None:
        parts = self.prior.posterior(self.data[:3]).posterior(self.data[3:])
        assert vars(parts) == pytest.approx(vars(self.prior.posterior(self.data)), rel=1e-12)

    def test_marginals_by_simulation(self) -> None:
        after, rng = self.prior.posterior(self.data), np.random.default_rng(1)
        variance = stats.invgamma(after.shape, scale=after.rate).rvs(200_000, random_state=rng)
        mean = rng.normal(after.mean, np.sqrt(variance / after.strength))
        expected = after.estimate("square")
        assert (mean.mean(), variance.mean()) == pytest.approx((expected.mean, expected.variance), rel=0.02)
        low, high = after.interval(0.9).mean
        assert np.mean((mean > low) & (mean < high)) == pytest.approx(0.9, abs=0.005)
        nexts = rng.normal(mean, np.sqrt(variance))
        assert np.mean(nexts < after.predictive().ppf(0.2)) == pytest.approx(0.2, abs=0.005)
        assert np.median(variance) == pytest.approx(after.estimate("absolute").variance, rel=0.02)


class TestDirichlet:
    def test_against_the_evidence(self) -> None:
        prior, counts = DirichletMultinomial([1.0, 2.0, 0.5]), np.array([3.0, 0.0, 2.0])
        after = prior.posterior([0, 2, 0, 0, 2])
        np.testing.assert_allclose(after.concentration, prior.concentration + counts)
        np.testing.assert_allclose(prior.posterior([counts]).concentration, after.concentration)
        np.testing.assert_allclose(prior.mle([0, 2, 0, 0, 2]), counts / 5)

        def log_beta(a: Any) -> float:
            return float(gammaln(a).sum() - gammaln(a.sum()))

        # The probability of the next outcome is a ratio of evidences.
        ratio = [np.exp(log_beta(after.concentration + e) - log_beta(after.concentration)) for e in np.eye(3)]
        np.testing.assert_allclose([after.predictive().pmf(e) for e in np.eye(3)], ratio, rtol=1e-12)

    def test_two_outcomes_are_a_beta(self) -> None:
        pair, single = DirichletMultinomial([2.0, 3.0]), BetaBernoulli(2.0, 3.0)
        for loss in ("square", "zero_one", "absolute"):
            assert pair.estimate(loss)[0] == pytest.approx(single.estimate(loss), rel=1e-12)
        np.testing.assert_allclose(pair.interval(0.8)[0], single.interval(0.8))

    def test_a_function_as_loss(self) -> None:
        squares = DirichletMultinomial([2.0, 3.0, 5.0]).estimate(lambda a, t: ((a - t) ** 2).sum(axis=1))
        # The mean of 4,000 draws: standard errors of about 0.002.
        np.testing.assert_allclose(squares, [0.2, 0.3, 0.5], atol=0.01)


class TestQuadrature:
    def test_a_narrow_posterior_far_from_zero(self) -> None:
        found = bayes_estimator(lambda t, x: -0.5 * ((t - x) / 0.01) ** 2, lambda t: 0.0, 12_345.678)
        assert found == pytest.approx(12_345.678, abs=1e-7)

    def test_two_modes(self) -> None:
        def density(t: float) -> Any:
            left, right = stats.norm.logpdf(t, -3, 0.5), stats.norm.logpdf(t, 4, 0.5)
            return np.logaddexp(np.log(0.7) + left, np.log(0.3) + right)

        args = (lambda t, x: 0.0, density, None)
        assert bayes_estimator(*args, loss="square") == pytest.approx(0.7 * -3 + 0.3 * 4, rel=1e-6)
        assert bayes_estimator(*args, loss="zero_one") == pytest.approx(-3.0, abs=1e-4)
        assert bayes_estimator(*args, loss="absolute") == pytest.approx(-3 + 0.5 * stats.norm.ppf(0.5 / 0.7), abs=1e-4)

    def test_heavy_tails_and_narrow_peaks(self) -> None:
        # The posterior mean of the centre of a Cauchy distribution after 1, 2, 9 is 47/23, by residues.
        args = (lambda t, x: stats.cauchy.logpdf(x, t), lambda t: 0.0, np.array([1.0, 2.0, 9.0]))
        assert bayes_estimator(*args, loss="square") == pytest.approx(47 / 23, rel=1e-11)
        pareto = (lambda t, x: -np.inf if t < 2 else -3 * np.log(t), lambda t: 0.0, None)
        assert bayes_estimator(*pareto, support=(0, np.inf)) == pytest.approx(4.0, rel=1e-10)
        lognormal = (lambda t, x: stats.lognorm.logpdf(t, 2.0), lambda t: 0.0, None)
        assert bayes_estimator(*lognormal, support=(0, np.inf)) == pytest.approx(math.exp(2), rel=1e-10)
        assert bayes_estimator(*lognormal, loss="absolute", support=(0, np.inf)) == pytest.approx(1.0, rel=1e-10)

    def test_a_prior_that_is_a_distribution(self) -> None:
        args = (lambda t, x: stats.norm.logpdf(x, t, 1.0), stats.norm(0, 1), np.array([3.0, 3.0, 3.0]))
        assert bayes_estimator(*args) == pytest.approx(2.25, rel=1e-12)
        with pytest.raises(ParameterError, match="log_prior must be a function that returns a log density; got None"):
            bayes_estimator(args[0], None, args[2])

    def test_bad_input(self) -> None:
        with pytest.raises(ParameterError, match="loss must be one of square, zero_one, absolute"):
            bayes_estimator(lambda t, x: 0.0, lambda t: -(t**2), None, loss="cubic")
        with pytest.raises(DataError, match="does not decay"):
            bayes_estimator(lambda t, x: 0.0, lambda t: 0.0, None)
        with pytest.raises(DataError, match="0 or infinite wherever"):
            bayes_estimator(lambda t, x: -np.inf, lambda t: 0.0, None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: BetaBernoulli(-1, 1),
            "a of BetaBernoulli must be a positive number, or 0 for an improper prior; got -1",
        ),
        (lambda: NormalKnownVariance(0, 0, 1), "variance of NormalKnownVariance must be a positive number; got 0"),
        (
            lambda: NormalInverseGamma(0, 1, -1, 1),
            "shape of NormalInverseGamma must be a positive number, or -1/2 to 0",
        ),
        (lambda: GammaPoisson(1, -1), "rate of GammaPoisson"),
        (lambda: DirichletMultinomial([1.0]), "two or more positive numbers"),
        (lambda: GammaPoisson("x", 1), "shape of GammaPoisson must be a positive number"),
        (lambda: bayes_estimator(lambda t, x: 0, lambda t: 0, 0, support="ab"), "support must be two numbers"),
        (lambda: bayes_estimator(lambda t, x: 0, lambda t: 0, 0, support=(1, 2, 3)), "support must be two numbers"),
        (lambda: BetaBernoulli(1, 1).interval(95), "level must be a probability"),
        (lambda: BetaBernoulli(1, 1).estimate("median"), "loss must be one of"),
    ],
)
def test_bad_parameters(make: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BetaBernoulli(1, 1).posterior([1, 0, 2]), "data must be 0 or 1; value 2 is 2"),
        (lambda: BetaBinomial(1, 1, 3).posterior([4]), "from 0 to n = 3"),
        (lambda: GammaPoisson(1, 1).posterior([1.5]), "non-negative integers"),
        (lambda: GammaExponential(1, 1).posterior([-1.0]), "value 0 is -1"),
        (lambda: NormalKnownVariance(0, 1, 1).posterior([np.nan]), "finite numbers; value 0 is nan"),
        (lambda: BetaBernoulli(1, 1).posterior(["heads"]), r"data must be 0 or 1; got \['heads'\]"),
        (lambda: GammaPoisson(1, 1).mle([]), "data is empty"),
        (lambda: DirichletMultinomial([1.0, 1.0]).posterior([0, 2]), "from 0 to 1"),
        (lambda: DirichletMultinomial([1.0, 1.0]).posterior([[1, -2]]), "2 non-negative numbers"),
    ],
)
def test_bad_data(make: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make()


ONE_PARAMETER = (
    BetaBernoulli(2, 3),
    BetaBinomial(0.5, 2.5, n=4),
    GammaPoisson(1, 2),
    GammaExponential(4, 0.5),
    NormalKnownVariance(1, 2, 3),
)


@pytest.mark.parametrize("prior", ONE_PARAMETER, ids=repr)
def test_a_loss_given_as_a_function_has_the_estimate_of_its_name(prior: Any) -> None:
    law = prior.distribution()
    assert prior.estimate(lambda a, t: (a - t) ** 2) == pytest.approx(law.mean(), rel=1e-6)
    # Between two of 20,000 quantiles the expected loss is linear.
    assert law.cdf(prior.estimate(lambda a, t: np.abs(a - t))) == pytest.approx(0.5, abs=5e-5)
    # Falling short costs three times as much: the third quartile.
    short = prior.estimate(lambda a, t: np.where(t > a, 3 * (t - a), a - t))
    assert law.cdf(short) == pytest.approx(0.75, abs=5e-5)


def test_heavy_tails_count_in_the_expected_loss() -> None:
    # An inverse gamma variance of shape 3: its mean is rate / 2, its second moment comes from far quantiles.
    found = NormalInverseGamma(1.0, 2.0, 3.0, 4.0).estimate(lambda a, t: (a - t) ** 2)
    assert found.mean == pytest.approx(1.0, rel=1e-6)
    assert found.variance == pytest.approx(2.0, rel=1e-6)


def test_probabilities_by_a_loss_that_is_a_function() -> None:
    prior = DirichletMultinomial([1.0, 2.0, 3.0])
    found = prior.estimate(lambda a, draws: ((a - draws) ** 2).sum(axis=1))
    np.testing.assert_allclose(found, [1 / 6, 1 / 3, 1 / 2], atol=2e-4)


class TestImproperPriors:
    data = np.array([1.5, 0.2, 2.9, 1.1])

    def test_their_estimates_are_those_of_the_data_alone(self) -> None:
        counts = [3, 0, 4]
        assert BetaBernoulli(0, 0).posterior([1, 0, 1, 1]).estimate() == 0.75
        assert BetaBinomial(0, 0, 5).posterior(counts).estimate() == pytest.approx(7 / 15)
        assert GammaPoisson(0, 0).posterior(counts).estimate() == pytest.approx(7 / 3)
        assert GammaExponential(0, 0).posterior(self.data).estimate() == pytest.approx(4 / self.data.sum())
        np.testing.assert_allclose(DirichletMultinomial([0, 0]).posterior([0, 1, 1]).estimate(), [1 / 3, 2 / 3])

    def test_credible_intervals_of_means_are_confidence_intervals(self) -> None:
        flat = NormalKnownVariance(0.0, np.inf, 4.0).posterior(self.data)
        expected = stats.norm(self.data.mean(), 1.0).interval(0.9)
        assert flat.interval(0.9) == pytest.approx(expected, rel=1e-12)
        reference = NormalInverseGamma(0.0, 0.0, -0.5, 0.0).posterior(self.data)
        expected = stats.t(3, self.data.mean(), self.data.std(ddof=1) / 2).interval(0.9)
        assert reference.interval(0.9).mean == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        "prior",
        [
            BetaBernoulli(0, 1),
            GammaPoisson(0, 0),
            NormalKnownVariance(0, np.inf, 1),
            NormalInverseGamma(0, 0, -0.5, 0).posterior([1.0]),
            DirichletMultinomial([0, 1]),
        ],
        ids=repr,
    )
    def test_they_have_no_distribution(self, prior: Any) -> None:
        for use in (prior.distribution, prior.predictive, prior.interval, prior.estimate):
            with pytest.raises(DataError, match="is improper, so it has no distribution"):
                use()
