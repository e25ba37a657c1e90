"""Families: the log partition against its derivatives, normalised densities, deviances against other libraries."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.metrics import mean_tweedie_deviance

from summula.core.errors import ParameterError
from summula.stats.families import (
    Bernoulli,
    Binomial,
    Family,
    Gamma,
    InverseGaussian,
    Multinomial,
    NegativeBinomial,
    Normal,
    Poisson,
    Tweedie,
    family_named,
)
from summula.stats.links import link_named

TWEEDIES = [Tweedie(p) for p in (-1.0, 0.0, 1.0, 1.3, 1.5, 1.9, 2.0, 2.5, 3.0)]
ONE_MEAN = [
    Normal(),
    Bernoulli(),
    Binomial(7),
    Poisson(),
    Gamma(),
    InverseGaussian(),
    NegativeBinomial(0.7),
    *TWEEDIES,
]
families = pytest.mark.parametrize("family", ONE_MEAN, ids=repr)


def means(family: Family) -> np.ndarray:
    """Means E[T] inside the range."""
    unit = np.linspace(0.05, 0.95, 19)
    return unit * getattr(family, "trials", 1) if family.mean_range[1] == 1.0 else 0.2 + 4 * unit


def targets(family: Family, rng: np.random.Generator, n: int = 50) -> np.ndarray:
    """Targets a model may have, the edge of the support included."""
    if family.mean_range[1] == 1.0:
        return rng.integers(0, getattr(family, "trials", 1) + 1, n) / getattr(family, "trials", 1)
    if family.find_unsupported(np.array([-1.0])) is None:
        return rng.normal(size=n)
    y = rng.poisson(2.0, n) + rng.integers(0, 2, n) * 0.25
    return y if family.find_unsupported(np.array([0.0])) is None else y + 0.1


# -------------------------------------------------------------------------------------------------- exponential family


@families
def test_mean_and_variance_are_derivatives_of_the_log_partition(family: Family) -> None:
    eta = family.natural(means(family))
    h = 1e-4 * np.minimum(1.0, np.abs(eta)) + 1e-5
    a = [family.log_partition(eta + step * h) for step in (-2, -1, 1, 2)]
    m = [family.mean(eta + step * h) for step in (-2, -1, 1, 2)]
    # Five-point differences: truncation h^4, rounding 1e-16 / h.
    np.testing.assert_allclose(family.mean(eta), (a[0] - 8 * a[1] + 8 * a[2] - a[3]) / (12 * h), rtol=1e-7)
    np.testing.assert_allclose(family.variance(eta), (m[0] - 8 * m[1] + 8 * m[2] - m[3]) / (12 * h), rtol=1e-7)


@families
def test_natural_undoes_mean_and_lies_in_its_range(family: Family) -> None:
    mean = means(family)
    eta = family.natural(mean)
    assert (family.natural_range[0] < eta).all()
    assert (eta < family.natural_range[1]).all()
    np.testing.assert_allclose(family.mean(eta), mean, rtol=1e-12)


@pytest.mark.parametrize("family", [Bernoulli(), Binomial(7), Poisson(), NegativeBinomial(0.7)], ids=repr)
def test_discrete_densities_sum_to_one_with_the_right_moments(family: Family) -> None:
    y = np.arange({"bernoulli": 2, "binomial": 8}.get(family.name, 400), dtype=float)
    for eta in family.natural(means(family)):
        p = np.exp(family.log_density(y, eta))
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        few = y[:30]  # later b(y) underflows
        np.testing.assert_allclose(p[:30], family.base(few) * np.exp(eta * few - family.log_partition(eta)), rtol=1e-11)
        assert p @ y == pytest.approx(family.mean(eta), rel=1e-10)
        assert p @ (y - p @ y) ** 2 == pytest.approx(family.variance(eta), rel=1e-9)


@pytest.mark.parametrize("family", [Normal(), Gamma(), InverseGaussian(), Tweedie(1.5), Tweedie(3)], ids=repr)
@pytest.mark.parametrize("phi", [0.3, 1.0])
def test_continuous_densities_integrate_to_one_with_the_right_moments(family: Family, phi: float) -> None:
    low, high = (-20.0, 20.0) if family.name == "normal" else (1e-12, 400.0)
    for mu in (0.7, 2.0):
        eta = family.natural(np.array(mu))

        def moment(power: int, eta: np.ndarray = eta) -> float:
            def f(y: float) -> float:
                return float(np.exp(family.log_density(np.array(y), eta, phi))) * y**power

            cuts = [low, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, high]
            parts = [integrate.quad(f, a, b, epsabs=1e-11, limit=200)[0] for a, b in itertools.pairwise(sorted(cuts))]
            return sum(parts) + (f(0.0) if family.name == "tweedie" and 1 < family.power < 2 else 0.0)  # type: ignore[attr-defined]

        mean = moment(1)
        # The integral leaves out (0, 1e-12), where gamma and Tweedie densities may be unbounded.
        assert moment(0) == pytest.approx(1.0, abs=2e-6)
        assert mean == pytest.approx(mu, rel=1e-6)
        assert moment(2) - mean**2 == pytest.approx(phi * family.variance(eta), rel=1e-5)


def test_densities_of_scipy() -> None:
    y, mu, phi = np.array([1.0, 2.0, 5.0]), 1.7, 0.4
    near = {"rtol": 1e-12, "atol": 1e-13}
    normal, gamma, wald = Normal(), Gamma(), InverseGaussian()
    np.testing.assert_allclose(normal.log_density(y, mu, phi), stats.norm.logpdf(y, mu, phi**0.5), **near)
    expected = stats.gamma.logpdf(y, 1 / phi, scale=mu * phi)
    np.testing.assert_allclose(gamma.log_density(y, gamma.natural(mu), phi), expected, **near)
    expected = stats.invgauss.logpdf(y, mu * phi, scale=1 / phi)
    np.testing.assert_allclose(wald.log_density(y, wald.natural(mu), phi), expected, **near)
    np.testing.assert_allclose(Poisson().log_density(y, np.log(mu)), stats.poisson.logpmf(y, mu), **near)
    nb = NegativeBinomial(phi)
    expected = stats.nbinom.logpmf(y, 1 / phi, 1 / (1 + phi * mu))
    np.testing.assert_allclose(nb.log_density(y, nb.natural(mu)), expected, **near)
    coin = Binomial(5)
    np.testing.assert_allclose(coin.log_density(y, coin.natural(mu)), stats.binom.logpmf(y, 5, mu / 5), **near)


def test_a_tweedie_between_one_and_two_is_a_sum_of_gammas() -> None:
    # P(y = 0) of a Poisson number of gammas is e^-lambda with lambda = mu^(2-p) / (phi (2-p)).
    family, mu, phi = Tweedie(1.4), 1.3, 0.8
    log_zero = family.log_density(np.zeros(1), family.natural(np.array(mu)), phi)[0]
    assert log_zero == pytest.approx(-(mu**0.6) / (phi * 0.6), rel=1e-12)
    assert np.isnan(Tweedie(2.5).log_base(np.ones(1))).all()
    assert np.isnan(Tweedie(2.5).log_likelihood(np.ones(3), np.ones(3)))


def test_the_multinomial() -> None:
    family, eta = Multinomial(3), np.array([[0.3, -1.0, 2.0], [0.0, 0.0, 1000.0]])
    p = family.mean(eta)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    h = 1e-6
    for j in range(3):
        e = h * np.eye(3)[j]
        slope = (family.log_partition(eta + e) - family.log_partition(eta - e)) / (2 * h)
        np.testing.assert_allclose(p[:, j], slope, atol=1e-6)
        second = (family.mean(eta + e) - family.mean(eta - e)) / (2 * h)
        np.testing.assert_allclose(family.variance(eta)[:, j], second, atol=1e-9)
    y = np.arange(3)
    np.testing.assert_array_equal(family.statistic(y), np.eye(3))
    density = family.log_density(y, eta[0])
    assert np.exp(density).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(family.log_density(y, family.natural(p[0])), density)
    np.testing.assert_allclose(family.unit_deviance(y, p[[0, 0, 0]]), -2 * density)
    assert family.log_likelihood(y, p[[0, 0, 0]], weight=np.array([1.0, 2.0, 0.0])) == pytest.approx(
        density[0] + 2 * density[1]
    )


# ------------------------------------------------------------------------------------------------------- linear models


@families
def test_unit_variance_is_the_variance_at_the_natural_parameter(family: Family) -> None:
    mean, trials = means(family), getattr(family, "trials", 1)
    # The variance of a proportion: that of the count over trials squared, and V / trials.
    np.testing.assert_allclose(
        family.unit_variance(mean / trials), family.variance(family.natural(mean)) / trials, rtol=1e-10
    )
    mu, h = mean / trials, 1e-6
    slope = (family.unit_variance(mu + h) - family.unit_variance(mu - h)) / (2 * h)
    np.testing.assert_allclose(family.unit_variance_slope(mu), slope, rtol=1e-6, atol=1e-8)


@families
def test_unit_deviance_is_the_integral_of_the_score(family: Family) -> None:
    y, mu = (0.3, 0.6) if family.mean_range[1] == 1.0 else (0.5, 1.7)
    for a, b in ((y, mu), (mu, y)):
        d, _ = integrate.quad(lambda t, a=a: 2 * (a - t) / float(family.unit_variance(np.array(t))), b, a)
        assert family.unit_deviance(np.array(a), np.array(b)) == pytest.approx(d, rel=1e-9)
    assert family.unit_deviance(np.array(y), np.array(y)) == pytest.approx(0.0, abs=1e-14)


def test_unit_deviance_at_the_edge_of_the_support() -> None:
    mu, zero = np.array([0.3]), np.zeros(1)
    with np.errstate(all="raise"):
        assert Poisson().unit_deviance(zero, mu) == pytest.approx(0.6)
        assert Bernoulli().unit_deviance(zero, mu) == pytest.approx(-2 * np.log(0.7))
        assert Bernoulli().unit_deviance(zero + 1, mu) == pytest.approx(-2 * np.log(0.3))
        assert NegativeBinomial(0.5).unit_deviance(zero, mu) == pytest.approx(4 * np.log1p(0.15))
        assert Tweedie(1.5).unit_deviance(zero, mu) == pytest.approx(4 * 0.3**0.5)


@pytest.mark.parametrize("family", TWEEDIES, ids=repr)
def test_deviance_of_scikit_learn(family: Tweedie) -> None:
    rng = np.random.default_rng(0)
    y = targets(family, rng)
    mu = rng.uniform(0.1, 4.0, len(y))
    ours = family.unit_deviance(y, mu).mean()
    assert ours == pytest.approx(mean_tweedie_deviance(y, mu, power=family.power), rel=1e-12)


STATSMODELS = {
    "normal": "Gaussian",
    "bernoulli": "Binomial",
    "binomial": "Binomial",
    "poisson": "Poisson",
    "gamma": "Gamma",
    "inverse_gaussian": "InverseGaussian",
    "negative_binomial": "NegativeBinomial",
    "tweedie": "Tweedie",
}


@pytest.mark.parametrize(
    "family", [f for f in ONE_MEAN if f not in TWEEDIES or 1 <= getattr(f, "power", 9) <= 2], ids=repr
)
def test_deviance_and_likelihood_of_statsmodels(family: Family) -> None:
    theirs = pytest.importorskip("statsmodels.genmod.families")
    rng = np.random.default_rng(1)
    y = targets(family, rng)
    if family.name == "tweedie":
        other = theirs.Tweedie(var_power=family.power, eql=False)  # type: ignore[attr-defined]
    elif family.name == "negative_binomial":
        other = theirs.NegativeBinomial(alpha=0.7)
    else:
        other = getattr(theirs, STATSMODELS[family.name])()
    trials = getattr(family, "trials", 1)
    other.n = trials
    mu = rng.uniform(0.1, 0.9, len(y)) * (1.0 if family.mean_range[1] == 1.0 else 4.0)
    weight, frequency = rng.uniform(0.5, 2.0, len(y)), rng.integers(1, 4, len(y)).astype(float)
    phi = 1.0 if family.fixed_dispersion else 0.6
    deviance = trials * np.sum(weight * family.unit_deviance(y, mu))
    with np.errstate(divide="ignore", invalid="ignore"):  # the reference computes log(0) and drops it
        assert deviance == pytest.approx(other.deviance(y, mu, var_weights=weight), rel=1e-8)
    expected = other.loglike(y, mu, var_weights=weight, freq_weights=frequency, scale=phi)
    assert family.log_likelihood(y, mu, phi, weight, frequency) == pytest.approx(expected, rel=1e-9)
    expected = other.loglike(y, mu, scale=phi)
    assert family.log_likelihood(y, mu, phi) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("family", [f for f in ONE_MEAN if not np.isnan(f.log_base(np.ones(1))).any()], ids=repr)
def test_likelihood_and_deviance_differ_by_what_does_not_depend_on_the_mean(family: Family) -> None:
    rng = np.random.default_rng(2)
    y, phi = targets(family, rng), 1.0 if family.fixed_dispersion else 0.5
    high = 0.9 if family.mean_range[1] == 1.0 else 3.0
    first, second = rng.uniform(0.1, high, (2, len(y)))
    change = family.log_likelihood(y, first, phi) - family.log_likelihood(y, second, phi)
    deviance = np.sum(family.unit_deviance(y, first) - family.unit_deviance(y, second)) * getattr(family, "trials", 1)
    assert change == pytest.approx(-deviance / (2 * phi), rel=1e-9)


def test_rows_of_weight_zero_are_left_out_and_frequencies_are_repeats() -> None:
    y, mu = np.array([1.0, 2.0, 4.0]), np.array([1.5, 1.5, 3.0])
    for family in (Normal(), Poisson(), Gamma()):
        without = family.log_likelihood(y[:2], mu[:2], 0.5)
        assert family.log_likelihood(y, mu, 0.5, weight=np.array([1.0, 1.0, 0.0])) == pytest.approx(without)
        repeated = family.log_likelihood(y[[0, 0, 2]], mu[[0, 0, 2]], 0.5)
        assert family.log_likelihood(y, mu, 0.5, frequency=np.array([2.0, 0.0, 1.0])) == pytest.approx(repeated)


def test_the_likelihood_of_normal_rows_far_from_zero() -> None:
    y = 1e9 + np.array([0.0, 1.0])
    exact = -0.5 * (0.5 + 2 * np.log(2 * np.pi))
    assert Normal().log_likelihood(y, np.full(2, 1e9 + 0.5)) == pytest.approx(exact, rel=1e-12)


# ------------------------------------------------------------------------------------------------------ names, support


@pytest.mark.parametrize(
    ("family", "good", "bad"),
    [
        (Normal(), [-1e9, 0, 3.5], np.nan),
        (Bernoulli(), [0, 1, 0.4], 1.2),
        (Binomial(5), [0, 1, 0.2], -0.1),
        (Poisson(), [0, 2, 2.5], -1),
        (Gamma(), [1e-9, 2], 0),
        (InverseGaussian(), [1e-9, 2], 0),
        (NegativeBinomial(), [0, 2, 2.5], -1),
        (Tweedie(0), [-3, 0, 3], np.inf),
        (Tweedie(1.5), [0, 3], -0.1),
        (Tweedie(2), [0.1, 3], 0),
        (Multinomial(3), [0, 1, 2], 3),
        (Multinomial(3), [0, 1, 2], 0.5),
    ],
    ids=repr,
)
def test_the_first_target_outside_the_support_is_named(family: Family, good: list[float], bad: float) -> None:
    assert family.find_unsupported(np.array(good)) is None
    found = family.find_unsupported(np.array([*good, bad, good[0], bad]))
    assert found is not None
    assert found.row == len(good)
    assert found.needs.startswith(f"family '{family.name}' needs ")


def test_default_links_and_dispersions() -> None:
    links = {f: f.default_link for f in [*ONE_MEAN, Multinomial(3)]}
    for family, link in links.items():
        link_named(link)
        assert family.fixed_dispersion == (
            family.name in ("bernoulli", "binomial", "poisson", "negative_binomial", "multinomial")
        )
    assert links[Normal()] == links[Tweedie(0.0)] == links[Tweedie(-1.0)] == "identity"
    assert links[Bernoulli()] == links[Binomial(7)] == links[Multinomial(3)] == "logit"
    logs = [Poisson(), Gamma(), InverseGaussian(), NegativeBinomial(0.7), Tweedie(1.0), Tweedie(1.5), Tweedie(3.0)]
    assert {links[family] for family in logs} == {"log"}


@pytest.mark.parametrize("family", [*ONE_MEAN, Multinomial(3)], ids=repr)
def test_families_are_values(family: Family) -> None:
    assert family_named(family) is family
    copy = pickle.loads(pickle.dumps(family))
    assert copy == family
    assert hash(copy) == hash(family)


def test_names() -> None:
    for name in STATSMODELS:
        assert family_named(name).name == name
    for wrong in ("gaussian", "multinomial", None, Poisson):
        with pytest.raises(ParameterError, match=r"The 'family' parameter must be one of 'normal', .* Got"):
            family_named(wrong)


@pytest.mark.parametrize(
    ("make", "value", "word"),
    [
        (Binomial, 0, "trials"),
        (Binomial, 1.5, "trials"),
        (NegativeBinomial, 0.0, "alpha"),
        (NegativeBinomial, np.inf, "alpha"),
        (Tweedie, 0.5, "power"),
        (Tweedie, np.nan, "power"),
        (Multinomial, 1, "k"),
    ],
)
def test_impossible_parameters_are_refused(make: type, value: float, word: str) -> None:
    with pytest.raises(ParameterError, match=f"The '{word}' of {make.__name__} must be .* Got {value!r} instead"):
        make(value)


def test_the_families_are_an_attribute_of_the_package_in_a_fresh_process() -> None:
    code = "import summula.stats; print(summula.stats.families.Poisson().name)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "poisson\n"
    )


@pytest.mark.parametrize("family", [*ONE_MEAN, Multinomial(3)], ids=repr)
def test_lists_are_arrays(family: Family) -> None:
    multinomial = isinstance(family, Multinomial)
    mu = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]) if multinomial else np.array([0.3, 0.6])
    y, eta = np.array([1.0, 1.0]), family.natural(mu)
    for of_mean in (family.natural, family.unit_variance, family.unit_variance_slope):
        np.testing.assert_array_equal(of_mean(mu.tolist()), of_mean(mu))
    for of_eta in (family.mean, family.variance, family.log_partition):
        np.testing.assert_array_equal(of_eta(eta.tolist()), of_eta(eta))
    np.testing.assert_array_equal(family.unit_deviance(y.tolist(), mu.tolist()), family.unit_deviance(y, mu))
    np.testing.assert_array_equal(family.log_density(y.tolist(), eta.tolist()), family.log_density(y, eta))
