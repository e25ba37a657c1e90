"""Links: inverses and derivatives against differences, and good behaviour at any eta."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from summula.core.errors import ParameterError
from summula.stats.links import (
    Cauchit,
    CLogLog,
    Identity,
    Inverse,
    InverseSquared,
    Link,
    Log,
    Logit,
    LogLog,
    Probit,
    Sqrt,
    link_named,
)

LINKS = [
    *(Identity(), Log(), Logit(), Probit(), CLogLog(), LogLog(), Cauchit()),
    *(Inverse(), InverseSquared(), Sqrt()),
]
EXTREMES = np.array([-1e300, -1e8, -1e3, -40.0, -1e-300, 0.0, 1e-300, 40.0, 1e3, 1e8, 1e300])

links = pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)


def inner(link: Link) -> np.ndarray:
    """Points well inside the range of eta, where differences are accurate."""
    return np.linspace(0.2, 5.0, 41) if link.eta_range[0] == 0.0 else np.linspace(-5.0, 2.5, 41)


@links
def test_link_and_inverse_undo_each_other(link: Link) -> None:
    eta = inner(link)
    np.testing.assert_allclose(link.link(link.inverse(eta)), eta, rtol=1e-9, atol=1e-12)


@links
def test_slope_and_curvature_are_derivatives(link: Link) -> None:
    eta, h = inner(link), 1e-5
    slope = (link.inverse(eta + h) - link.inverse(eta - h)) / (2 * h)
    curvature = (link.slope(eta + h) - link.slope(eta - h)) / (2 * h)
    # Central differences: rounding 1e-16 / h, truncation h^2 times a third derivative (below 5,000 here).
    np.testing.assert_allclose(link.slope(eta), slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(link.curvature(eta), curvature, rtol=1e-6, atol=1e-9)


@links
def test_any_eta_gives_normal_numbers_without_a_warning(link: Link) -> None:
    with np.errstate(all="raise", under="ignore"):
        mu, slope, curvature = link.inverse(EXTREMES), link.slope(EXTREMES), link.curvature(EXTREMES)
    assert np.isfinite([mu, slope, curvature]).all()
    assert (link.mu_range[0] < mu).all()
    assert (mu < link.mu_range[1]).all()
    steps = np.diff(mu)
    assert (steps >= 0).all() or (steps <= 0).all()


@links
def test_the_ends_of_the_range_are_reached_in_the_limit(link: Link) -> None:
    with np.errstate(all="raise"):
        assert link.interval(-np.inf, np.inf) == link.eta_range


def test_values_known_in_closed_form() -> None:
    assert Logit().inverse(np.log(3.0)) == pytest.approx(0.75, rel=1e-15)
    assert Probit().inverse(1.959963984540054) == pytest.approx(0.975, rel=1e-14)
    assert CLogLog().inverse(0.0) == pytest.approx(1 - np.exp(-1), rel=1e-15)
    assert LogLog().inverse(-0.7) == pytest.approx(1 - CLogLog().inverse(0.7), rel=1e-14)
    assert Cauchit().inverse([-1.0, 1.0, -1e20]) == pytest.approx([0.25, 0.75, 1e-20 / np.pi], rel=1e-14)
    assert Cauchit().link(1e-20) == pytest.approx(-1e20 / np.pi, rel=1e-14)
    assert Sqrt().link(9.0) == 3.0
    assert InverseSquared().inverse(0.25) == 2.0
    assert Log().interval(0.0, 1.0) == (-np.inf, 0.0)
    assert Inverse().interval(0.0, 1.0) == (1.0, np.inf)


@links
def test_statsmodels_agrees(link: Link) -> None:
    theirs = pytest.importorskip("statsmodels.genmod.families.links")
    names = {"inverse": "InversePower", "inverse_squared": "InverseSquared", "cloglog": "CLogLog"}
    names |= {"loglog": "LogLog", "cauchit": "Cauchy"}
    other = getattr(theirs, names.get(link.name, link.name.capitalize()))()
    eta = inner(link)
    np.testing.assert_allclose(link.inverse(eta), other.inverse(eta), rtol=1e-12)
    np.testing.assert_allclose(link.slope(eta), other.inverse_deriv(eta), rtol=1e-8)


@links
def test_names_and_pickles(link: Link) -> None:
    assert link_named(link.name) == link
    assert link_named(link) is link
    assert pickle.loads(pickle.dumps(link)) == link
    assert hash(link) == hash(link_named(link.name))


@pytest.mark.parametrize("wrong", ["Log", "square", None, 3, Log])
def test_a_link_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(ParameterError, match=r"The 'link' parameter must be one of 'identity', .* Got"):
        link_named(wrong)
