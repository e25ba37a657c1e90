"""Losses: every derivative against differences, the Fisher weight against its definition, any eta without a warning."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics import log_loss, mean_tweedie_deviance

from summula import losses
from summula.core.errors import ParameterError
from summula.losses import FamilyLoss, Huber, Logistic, Loss, Multinomial, Squared, TweedieLog, loss_of
from summula.stats import families
from summula.stats.families import Bernoulli, Family, NegativeBinomial, Poisson, Tweedie, family_named
from summula.stats.links import link_named

LINKS = ["identity", "log", "logit", "probit", "cloglog", "loglog", "cauchit", "inverse", "inverse_squared", "sqrt"]
FAMILIES = [
    families.Normal(),
    Bernoulli(),
    families.Binomial(4),
    Poisson(),
    families.Gamma(),
    families.InverseGaussian(),
    NegativeBinomial(0.6),
    *(Tweedie(p) for p in (-1.0, 0.0, 1.0, 1.5, 2.0, 2.5, 3.0)),
]
PAIRS = list(itertools.product(FAMILIES, LINKS))
EXTREMES = np.array([-1e8, -1e3, -50.0, -1e-200, 0.0, 1e-200, 50.0, 1e3, 1e8])

pairs = pytest.mark.parametrize(("family", "link"), PAIRS, ids=lambda x: x if isinstance(x, str) else repr(x))
written = pytest.mark.parametrize(
    ("family", "link"),
    [(f, k) for f, k in PAIRS if not isinstance(loss_of(f, k), FamilyLoss)],
    ids=lambda x: x if isinstance(x, str) else repr(x),
)


def targets(family: Family) -> np.ndarray:
    """Targets of the support, its edge included."""
    for y in ([-1.5, 0.0, 0.7, 3.0], [0.0, 0.7, 2.0, 3.0], [0.0, 0.25, 0.6, 1.0]):
        if family.find_unsupported(np.array(y)) is None:
            return np.array(y)
    return np.array([0.1, 0.7, 2.0, 3.0])


def grid(family: Family, link: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of some targets and some eta well inside the range."""
    low, high = FamilyLoss(family, link_named(link)).eta_range
    low, high = max(low, -2.5), min(high, 2.5)
    eta = np.linspace(low, high, 23)[2:-2]
    y, eta = np.meshgrid(targets(family), eta)
    return y.ravel(), eta.ravel()


def difference(f, eta: np.ndarray, h: float = 1e-3) -> np.ndarray:  # type: ignore[no-untyped-def]
    """A central difference of sixth order: truncation h^6 times a seventh derivative, rounding 1e-16 / h."""
    return sum(c * (f(eta + k * h) - f(eta - k * h)) for k, c in ((1, 45), (2, -9), (3, 1))) / (60 * h)


# ---------------------------------------------------------------------------------------------------- every pair of them


@pairs
def test_slope_and_curvature_are_derivatives_of_the_value(family: Family, link: str) -> None:
    loss = loss_of(family, link)
    y, eta = grid(family, link)
    scale = 1.0 + np.abs(loss.value(y, eta))
    slope, curvature = loss.slope(y, eta), loss.curvature(y, eta)
    assert (np.abs(slope - difference(lambda x: loss.value(y, x), eta)) <= 1e-7 * (scale + np.abs(slope))).all()
    error = np.abs(curvature - difference(lambda x: loss.slope(y, x), eta))
    assert (error <= 1e-6 * (scale + np.abs(slope) + np.abs(curvature))).all()


@pytest.mark.parametrize("loss", [losses.PoissonLog(), losses.GammaLog()], ids=repr)
def test_relative_values_differ_from_the_deviance_by_terms_in_y_alone(loss) -> None:
    y, eta = grid(Poisson() if isinstance(loss, losses.PoissonLog) else families.Gamma(), "log")
    found, whole = loss.relative(y, eta), loss.derivatives(y, eta)
    assert np.array_equal(found.slope, whole.slope)
    assert np.array_equal(found.curvature, loss.curvature(y, eta))
    constant = special.xlogy(y, y) - y if isinstance(loss, losses.PoissonLog) else -1.0 - np.log(y)
    np.testing.assert_allclose(found.value + constant, whole.value, atol=1e-14)


@pairs
def test_the_value_is_half_the_unit_deviance(family: Family, link: str) -> None:
    y, eta = grid(family, link)
    expected = 0.5 * family.unit_deviance(y, link_named(link).inverse(eta))
    np.testing.assert_allclose(loss_of(family, link).value(y, eta), expected, rtol=1e-10, atol=1e-12)


@pairs
def test_fisher_is_the_curvature_at_the_mean(family: Family, link: str) -> None:
    # The curvature is linear in y, equation (4), so its expectation is its value at y = mu.
    loss = loss_of(family, link)
    _, eta = grid(family, link)
    fisher = loss.fisher(link_named(link).inverse(eta), eta)
    np.testing.assert_allclose(fisher, loss.curvature(link_named(link).inverse(eta), eta), rtol=1e-9)
    assert (fisher >= 0).all()


@pairs
def test_derivatives_agree_with_the_single_methods(family: Family, link: str) -> None:
    loss = loss_of(family, link)
    y, eta = grid(family, link)
    before = y.copy(), eta.copy()
    together = loss.derivatives(y, eta)
    for name in ("value", "slope", "fisher"):
        np.testing.assert_array_equal(getattr(together, name), getattr(loss, name)(y, eta))
        assert getattr(together, name).dtype == np.float64
        assert not np.shares_memory(getattr(together, name), eta)
    np.testing.assert_array_equal(before, (y, eta))


@pairs
def test_convex_losses_have_no_negative_curvature(family: Family, link: str) -> None:
    loss = loss_of(family, link)
    y, eta = grid(family, link)
    curvature = loss.curvature(y, eta)
    if loss.convex:
        assert (curvature >= -1e-12).all()
    if loss.self_concordant:
        assert loss.convex
        third = difference(lambda x: loss.curvature(y, x), eta)
        assert (np.abs(third) <= curvature * (1 + 1e-6) + 1e-9).all()


@pairs
def test_any_eta_without_warning_or_nan(family: Family, link: str) -> None:
    loss = loss_of(family, link)
    y, eta = (a.ravel() for a in np.meshgrid(targets(family), EXTREMES))
    with np.errstate(all="raise", under="ignore"):
        value, slope, fisher = loss.derivatives(y, eta)
        curvature = loss.curvature(y, eta)
    assert (value >= 0).all()  # which a NaN is not
    assert np.isfinite([slope, fisher, curvature]).all()
    assert (fisher >= 0).all()
    low, high = loss.eta_range
    assert np.isinf(value[(eta <= low) | (eta >= high)]).all()


@written
def test_the_written_out_losses_agree_with_the_general_one(family: Family, link: str) -> None:
    y, eta = grid(family, link)
    ours, general = loss_of(family, link), FamilyLoss(family, link_named(link))
    np.testing.assert_allclose(ours.value(y, eta), general.value(y, eta), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.slope(y, eta), general.slope(y, eta), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.fisher(y, eta), general.fisher(y, eta), rtol=1e-10)
    np.testing.assert_allclose(ours.curvature(y, eta), general.curvature(y, eta), rtol=1e-9, atol=1e-12)
    assert ours.eta_range == general.eta_range


@pairs
def test_losses_are_values(family: Family, link: str) -> None:
    loss = loss_of(family, link)
    copy = pickle.loads(pickle.dumps(loss))
    assert copy == loss
    assert hash(copy) == hash(loss)


# --------------------------------------------------------------------------------------------------------- one by one


def test_fisher_is_the_mean_of_the_curvature_over_simulated_counts() -> None:
    rng = np.random.default_rng(0)
    eta = np.full(400_000, 0.4)
    mu = np.exp(eta)
    loss = loss_of(NegativeBinomial(0.5), "log")
    curvature = loss.curvature(rng.negative_binomial(2.0, 2.0 / (2.0 + mu)).astype(float), eta)
    error = curvature.std() / np.sqrt(len(eta))
    assert abs(curvature.mean() - loss.fisher(mu, eta)[0]) < 5 * error


def test_logistic_is_minus_the_log_likelihood_in_both_tails() -> None:
    eta = np.array([-1e8, -800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0, 1e8])
    zero, one = np.zeros(9), np.ones(9)
    value, slope, fisher = Logistic().derivatives(zero, eta)
    np.testing.assert_allclose(value, np.logaddexp(0, eta), rtol=1e-15, atol=1e-200)
    np.testing.assert_allclose(slope, special.expit(eta), rtol=1e-15, atol=1e-200)
    np.testing.assert_allclose(fisher, special.expit(eta) * special.expit(-eta), rtol=1e-15, atol=1e-200)
    np.testing.assert_allclose(Logistic().value(one, eta), np.logaddexp(0, -eta), rtol=1e-15, atol=1e-200)
    assert Logistic().value(np.array([0.3]), special.logit(np.array([0.3])))[0] == pytest.approx(0.0, abs=1e-16)


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_coins_with_other_links_are_exact_in_the_tails(link: str) -> None:
    loss, eta = loss_of("bernoulli", link), np.array([-300.0, -30.0, -9.0, 1.0, 4.0])
    log1 = {"probit": stats.norm.logcdf(eta), "cloglog": np.log(-np.expm1(-np.exp(eta)))}[link]
    log0 = {"probit": stats.norm.logsf(eta), "cloglog": -np.exp(eta)}[link]
    np.testing.assert_allclose(loss.value(np.ones(5), eta), -log1, rtol=1e-12)
    np.testing.assert_allclose(loss.value(np.zeros(5), eta), -log0, rtol=1e-12, atol=1e-200)
    for y in (0.0, 1.0):
        slope = difference(lambda x, y=y: loss.value(np.full(5, y), x), eta)
        np.testing.assert_allclose(loss.slope(np.full(5, y), eta), slope, rtol=1e-6, atol=1e-9)


def test_probit_curvature_is_smooth_where_its_formula_changes() -> None:
    eta = np.linspace(-205.0, -195.0, 101)
    curvature = loss_of("bernoulli", "probit").curvature(np.ones(101), eta)
    np.testing.assert_allclose(curvature, 1 - 1 / eta**2 + 6 / eta**4, rtol=1e-10)  # h + eta cancels: 200^2 roundings


def test_the_linear_parts_go_on_where_the_exponentials_stop() -> None:
    # y = 2, eta = -1e3: Poisson costs y log(y / mu) - y + mu, which is y (log 2 - eta) - y to rounding.
    y, eta = np.array([2.0]), np.array([-1e3])
    assert loss_of("poisson").value(y, eta)[0] == pytest.approx(2 * np.log(2) + 2e3 - 2, rel=1e-14)
    assert loss_of("gamma").value(y, -eta)[0] == pytest.approx(1e3 - 1 - np.log(2), rel=1e-14)
    nb = loss_of(NegativeBinomial(0.5), "log")
    assert nb.value(y, -eta)[0] == pytest.approx(4 * (1e3 + np.log(0.5) - np.log(2)) + 2 * (np.log(2) - 1e3), rel=1e-14)
    assert nb.slope(y, -eta)[0] == pytest.approx(2.0)


def test_squared_and_huber() -> None:
    y, eta = np.zeros(5), np.array([-3.0, -0.5, 0.0, 1.0, 1e200])
    np.testing.assert_array_equal(Squared().value(y, eta), [4.5, 0.125, 0.0, 0.5, np.inf])
    huber = Huber(1.0)
    np.testing.assert_array_equal(huber.value(y, eta), [2.5, 0.125, 0.0, 0.5, 1e200])
    np.testing.assert_array_equal(huber.slope(y, eta), [-1.0, -0.5, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(huber.curvature(y, eta), [0.0, 1.0, 1.0, 1.0, 0.0])
    inner = np.array([-3.0, -0.5, 0.3, 1.7])
    np.testing.assert_allclose(
        huber.slope(y[:4], inner), difference(lambda x: huber.value(y[:4], x), inner), atol=1e-10
    )
    np.testing.assert_array_equal(Squared().curvature(y, eta), np.ones(5))
    with pytest.raises(ParameterError, match="The 'threshold' of Huber must be a number > 0"):
        Huber(0.0)


def test_scikit_learn_agrees() -> None:
    """Values row by row; slopes are differences of the values (tested above)."""
    rng = np.random.default_rng(3)
    n = 60
    eta = rng.normal(size=n)
    powers = {"poisson": 1.0, "gamma": 2.0, Tweedie(1.4): 1.4}
    targets = (rng.poisson(2, n).astype(float), rng.gamma(2, size=n), rng.poisson(2, n) * 0.5)
    for (family, power), y in zip(powers.items(), targets, strict=True):
        value = loss_of(family).derivatives(y, eta)[0]
        theirs = [mean_tweedie_deviance(y[[i]], np.exp(eta[[i]]), power=power) / 2 for i in range(n)]
        np.testing.assert_allclose(value, theirs, rtol=1e-9, atol=1e-12)
    y = rng.integers(0, 2, n).astype(float)
    theirs = [log_loss(y[[i]], special.expit(eta[[i]]), labels=[0, 1]) for i in range(n)]
    np.testing.assert_allclose(Logistic().derivatives(y, eta)[0], theirs, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------- classes


def test_multinomial_derivatives() -> None:
    rng = np.random.default_rng(4)
    loss, eta, y = Multinomial(4), rng.normal(size=(9, 4)), rng.integers(0, 4, 9)
    value, slope, fisher = loss.derivatives(y, eta)
    np.testing.assert_allclose(value, -np.log(special.softmax(eta, axis=1)[np.arange(9), y]), rtol=1e-12)
    P = loss.probabilities(eta)
    np.testing.assert_allclose(P, special.softmax(eta, axis=1), rtol=1e-13)
    for j in range(4):
        e = np.eye(4)[j]
        steps = difference(lambda t, e=e: loss.value(y, eta + t * e), np.zeros(1))
        np.testing.assert_allclose(slope[:, j], steps, atol=1e-10)
        second = difference(lambda t, e=e: loss.slope(y, eta + t * e), np.zeros((1, 1)))
        for i in range(4):
            np.testing.assert_allclose(loss.block(P, i, j), second[:, i], atol=1e-10)
        np.testing.assert_allclose(fisher[:, j], loss.block(P, j, j), rtol=1e-10)
    np.testing.assert_array_equal(loss.curvature(y, eta), fisher)
    np.testing.assert_array_equal(loss.value(y.astype(float), eta), value)


def test_multinomial_is_self_concordant_up_to_the_width_of_the_direction() -> None:
    rng = np.random.default_rng(6)
    p = special.softmax(4 * rng.normal(size=(1_000, 4)), axis=1)
    v = rng.normal(size=(1_000, 4))
    centred = v - np.sum(p * v, axis=1, keepdims=True)
    second, third = np.sum(p * centred**2, axis=1), np.sum(p * centred**3, axis=1)
    assert Multinomial(4).self_concordant
    assert (np.abs(third) <= np.ptp(v, axis=1) * second).all()
    eta, t = np.log(p[:1]), np.zeros((1, 1))
    along = difference(lambda s: np.sum(v[:1] * Multinomial(4).slope(np.zeros(1), eta + s * v[:1]), axis=1), t)
    assert along.item() == pytest.approx(second[0], rel=1e-8)


def test_two_classes_are_the_logistic_loss() -> None:
    eta = np.linspace(-30, 30, 41)
    y = np.arange(41) % 2
    value, slope, fisher = Multinomial(2).derivatives(y, np.column_stack([np.zeros(41), eta]))
    expected = Logistic().derivatives(y.astype(float), eta)
    np.testing.assert_allclose(value, expected.value, atol=1e-15, rtol=1e-14)
    np.testing.assert_allclose(slope[:, 1], expected.slope, atol=1e-15)
    np.testing.assert_allclose(fisher[:, 1], expected.fisher, atol=1e-15)


def test_multinomial_at_any_eta() -> None:
    eta = np.array([[1e8, -1e8, 0.0], [1e3, 1e3, -1e3], [-1e8, -1e8, -1e8]])
    with np.errstate(all="raise", under="ignore"):
        value, slope, fisher = Multinomial(3).derivatives(np.array([1, 0, 2]), eta)
    np.testing.assert_allclose(value, [2e8, np.log(2), np.log(3)], rtol=1e-14)
    assert np.isfinite(slope).all()
    assert (fisher >= 0).all()


# ------------------------------------------------------------------------------------------------------------- choosing


def test_loss_of_picks_the_written_out_loss() -> None:
    assert loss_of("normal") == Squared()
    assert loss_of("bernoulli") == loss_of("binomial", "logit") == Logistic()
    assert loss_of("poisson") == loss_of(Tweedie(1.0)) == losses.PoissonLog()
    assert loss_of("gamma") == loss_of(Tweedie(2)) == losses.GammaLog()
    assert loss_of("inverse_gaussian", "log") == loss_of(Tweedie(3.0), "log") == losses.InverseGaussianLog()
    assert loss_of(Tweedie(0.0)) == Squared()
    assert loss_of("tweedie") == TweedieLog(1.5)
    assert loss_of(NegativeBinomial(2.0)) == losses.NegativeBinomialLog(2.0)
    assert loss_of(families.Multinomial(3)) == Multinomial(3)
    assert loss_of("gamma", "inverse") == FamilyLoss(families.Gamma(), link_named("inverse"))


def test_impossible_choices_are_refused() -> None:
    with pytest.raises(ParameterError, match="supports only the 'logit' link"):
        loss_of(families.Multinomial(3), "log")
    with pytest.raises(ParameterError, match="The 'family' parameter"):
        loss_of("cauchy")
    with pytest.raises(ParameterError, match="The 'link' parameter"):
        loss_of("poisson", "square")
    with pytest.raises(ParameterError, match="TweedieLog has no power 2"):
        TweedieLog(2.0)
    with pytest.raises(ParameterError, match="The 'power' of Tweedie"):
        TweedieLog(0.5)


def test_convexity_is_claimed_where_it_is_known() -> None:
    for family, link in (("gamma", "identity"), ("normal", "log"), ("poisson", "inverse"), ("inverse_gaussian", "log")):
        assert not loss_of(family, link).convex
    for family, link in (("gamma", "inverse"), ("poisson", "sqrt"), ("binomial", "loglog"), ("bernoulli", "probit")):
        assert loss_of(family, link).convex
    assert loss_of(Tweedie(1.5)).self_concordant
    assert not loss_of(Tweedie(2.5)).convex


def test_threads_may_share_a_loss() -> None:
    rng = np.random.default_rng(5)
    eta = [rng.uniform(0.1, 3.0, 5_000) for _ in range(16)]
    y = [rng.uniform(0.0, 1.0, 5_000) for _ in range(16)]
    for loss in (Logistic(), loss_of("poisson"), loss_of("gamma", "identity")):
        alone = [loss.derivatives(a, b) for a, b in zip(y, eta, strict=True)]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(loss.derivatives, y, eta))
        np.testing.assert_array_equal(alone, together)


def test_the_base_class_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Loss()  # type: ignore[abstract]
    assert family_named("poisson") == Poisson()
