"""The multivariate normal distribution against SciPy, scikit-learn's shrinkage and its own definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.covariance import ledoit_wolf

import summula
from summula.core.errors import DataError, ParameterError
from summula.stats import MultivariateNormal

MEAN = np.array([1.0, -2.0, 0.5, 3.0])
ROOT = np.array([[2.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [-1.0, 0.3, 0.7, 0.0], [0.2, 0.2, -0.4, 1.5]])
COV = ROOT @ ROOT.T


def test_density_is_that_of_scipy() -> None:
    points = np.random.default_rng(0).normal(size=(50, 4)) * 4
    ours = MultivariateNormal(MEAN, COV)
    np.testing.assert_allclose(ours.logpdf(points), stats.multivariate_normal(MEAN, COV).logpdf(points), rtol=1e-12)
    assert ours.logpdf(points[3]) == pytest.approx(ours.logpdf(points)[3], rel=1e-14)
    assert ours.entropy() == pytest.approx(stats.multivariate_normal(MEAN, COV).entropy(), rel=1e-13)


def test_density_far_out_and_of_any_scale() -> None:
    scale = np.array([1e-150, 1.0, 1e100, 1e150])
    tiny = MultivariateNormal(np.zeros(4), COV * np.outer(scale, scale))
    assert tiny.logpdf(np.zeros(4)) == pytest.approx(
        stats.multivariate_normal(np.zeros(4), COV).logpdf(np.zeros(4)) - np.log(scale).sum(), rel=1e-12
    )
    assert MultivariateNormal([0.0], 1.0).logpdf([[40.0]])[0] == pytest.approx(-800.0 - 0.5 * np.log(2 * np.pi))


def test_one_variable_takes_vectors_of_points() -> None:
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(MultivariateNormal(1.0, 4.0).pdf(x), stats.norm(1, 2).pdf(x), rtol=1e-14)


def test_marginal_integrates_the_others_out() -> None:
    two = MultivariateNormal(MEAN, COV).marginal([2, 0])
    whole = MultivariateNormal(MEAN, COV).marginal([2, 0, 3])
    total, _ = integrate.quad(lambda z: whole.pdf([0.1, 0.9, z]), -np.inf, np.inf)
    assert two.pdf([0.1, 0.9]) == pytest.approx(total, rel=1e-8)


def test_conditional_is_joint_over_marginal() -> None:
    whole = MultivariateNormal(MEAN, COV)
    known = whole.conditional([3, 1], [2.0, -1.0])
    x = np.array([0.4, 0.8])
    expected = whole.logpdf([x[0], -1.0, x[1], 2.0]) - whole.marginal([3, 1]).logpdf([2.0, -1.0])
    assert known.logpdf(x) == pytest.approx(expected, rel=1e-12)


def test_conditional_of_two_variables_is_the_regression_line() -> None:
    r = MultivariateNormal([170.0, 70.0], [[80.0, 60.0], [60.0, 125.0]]).conditional(0, 190.0)
    assert (r.mean[0], r.cov[0, 0]) == pytest.approx((85.0, 80.0), rel=1e-14)


def test_axes_are_those_of_the_ellipse_that_holds_the_probability() -> None:
    distribution = MultivariateNormal([0.0, 0.0], [[5.0, 4.0], [4.0, 5.0]])
    axes = distribution.axes()
    np.testing.assert_allclose(axes.lengths, [3.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(np.abs(axes.directions[:, 0]), np.sqrt(0.5), rtol=1e-14)
    lengths, directions = distribution.axes(0.9)
    ends = lengths[:, None] * directions.T
    np.testing.assert_allclose(distribution.mahalanobis(ends) ** 2, stats.chi2(2).ppf(0.9), rtol=1e-12)


def test_draws_have_the_distribution() -> None:
    X = MultivariateNormal(MEAN, COV).sample(40_000, random_state=3)
    # Standard errors of means are 0.005 root variance; of covariances about 0.01 times variances.
    np.testing.assert_allclose((X.mean(axis=0) - MEAN) / np.sqrt(np.diag(COV)), 0, atol=0.02)
    np.testing.assert_allclose(np.cov(X.T), COV, atol=0.05 * np.diag(COV).max())
    distance = MultivariateNormal(MEAN, COV).mahalanobis(X) ** 2
    assert np.mean(distance < stats.chi2(4).ppf(0.9)) == pytest.approx(0.9, abs=0.01)
    np.testing.assert_array_equal(MultivariateNormal(MEAN, COV).sample(10, random_state=3), X[:10])


def test_draws_of_a_singular_distribution_stay_in_its_plane() -> None:
    X = MultivariateNormal([0.0, 1.0], [[1.0, 2.0], [2.0, 4.0]]).sample(100)
    np.testing.assert_allclose(X[:, 1] - 1.0, 2 * X[:, 0], atol=1e-6)


class TestFit:
    X = MultivariateNormal(MEAN, COV).sample(500, random_state=1) + 1e6

    def test_maximum_likelihood(self) -> None:
        fit = MultivariateNormal.fit(self.X)
        np.testing.assert_allclose(fit.mean, self.X.mean(axis=0), rtol=1e-14)
        np.testing.assert_allclose(fit.cov, np.cov(self.X.T, bias=True), rtol=1e-9)

    def test_constrained_forms_are_the_likeliest_of_their_kind(self) -> None:
        diagonal = MultivariateNormal.fit(self.X, "diag")
        np.testing.assert_allclose(diagonal.cov, np.diag(self.X.var(axis=0)), rtol=1e-9)
        spherical = MultivariateNormal.fit(self.X, "spherical")
        best = spherical.logpdf(self.X).sum()
        for factor in (0.99, 1.01):
            other = MultivariateNormal(spherical.mean, spherical.cov * factor)
            assert other.logpdf(self.X).sum() < best

    def test_shrinkage_is_that_of_ledoit_and_wolf(self) -> None:
        X = self.X[:30] - 1e6
        fit = MultivariateNormal.fit(X, shrinkage="auto")
        np.testing.assert_allclose(fit.cov, ledoit_wolf(X)[0], rtol=1e-11)
        half = MultivariateNormal.fit(X, shrinkage=0.5).cov
        S = np.cov(X.T, bias=True)
        np.testing.assert_allclose(half, S / 2 + np.eye(4) * np.trace(S) / 8, rtol=1e-11)

    def test_shrinkage_makes_more_variables_than_rows_a_density(self) -> None:
        X = np.random.default_rng(2).normal(size=(10, 30))
        assert np.isfinite(MultivariateNormal.fit(X, shrinkage="auto").logpdf(X)).all()
        with pytest.raises(DataError, match="combinations of others; exclude these variables"):
            MultivariateNormal.fit(X).logpdf(X)

    def test_weights_are_repetitions(self) -> None:
        X, weight = self.X[:40], np.arange(40) % 3
        for shrinkage in (None, "auto"):
            weighted = MultivariateNormal.fit(X, shrinkage=shrinkage, sample_weight=weight)
            repeated = MultivariateNormal.fit(np.repeat(X, weight, axis=0), shrinkage=shrinkage)
            np.testing.assert_allclose(weighted.cov, repeated.cov, rtol=1e-8)

    def test_from_a_file(self, tmp_path: Any) -> None:
        np.save(tmp_path / "rows.npy", self.X)
        streamed = MultivariateNormal.fit(summula.scan(tmp_path / "rows.npy"), shrinkage="auto")
        np.testing.assert_array_equal(streamed.cov, MultivariateNormal.fit(self.X, shrinkage="auto").cov)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MultivariateNormal([0.0, 1.0], np.eye(3)), r"mean has shape \(2,\) and cov \(3, 3\)"),
        (lambda: MultivariateNormal([0.0, 1.0], [[1.0, 0.0], [0.5, 1.0]]), "must be symmetric"),
        (lambda: MultivariateNormal([0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]), "negative eigenvalue"),
        (lambda: MultivariateNormal([0.0, np.nan], np.eye(2)), "NaN or infinite"),
        (lambda: MultivariateNormal("a", 1.0), "mean contains 'a'"),
        (lambda: MultivariateNormal(MEAN, COV).sample(3.5), "n must be a non-negative integer; got 3.5"),
        (lambda: MultivariateNormal(MEAN, COV).marginal([4]), "from 0 to 3"),
        (lambda: MultivariateNormal(MEAN, COV).marginal([1, 1]), "duplicates"),
        (lambda: MultivariateNormal(MEAN, COV).conditional([0], [1.0, 2.0]), "1 finite numbers"),
        (lambda: MultivariateNormal(MEAN, COV).conditional([0, 1, 2, 3], MEAN), "omit at least one"),
        (lambda: MultivariateNormal(MEAN, COV).axes(1.5), "from 0 to 1"),
        (lambda: MultivariateNormal.fit(np.eye(3), "round"), "must be one of full, diag, spherical"),
        (lambda: MultivariateNormal.fit(np.eye(3), shrinkage="oas"), "shrinkage must be a number from 0 to 1"),
    ],
)
def test_bad_parameters(make: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()


def test_bad_data() -> None:
    with pytest.raises(DataError, match=r"variables \[1\] have variance 0"):
        MultivariateNormal([0.0, 0.0], [1.0, 0.0]).logpdf([0.0, 0.0])
    with pytest.raises(DataError, match="must have 4 coordinates"):
        MultivariateNormal(MEAN, COV).logpdf(np.zeros((2, 3)))
    with pytest.raises(DataError, match="row 2"):
        MultivariateNormal.fit([[1.0, 2.0], [2.0, 1.0], [np.nan, 3.0]])
