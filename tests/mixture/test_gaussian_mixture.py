"""Gaussian mixtures against closed forms, the textbook's EM step, SciPy's densities, invariances and scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats
from sklearn import mixture as peer
from sklearn.exceptions import ConvergenceWarning

import summula
from summula import em
from summula.mixture import GaussianMixture
from tests.reference import mixtures

KINDS = ("full", "tied", "diag", "spherical")


def clusters(n: int = 240, d: int = 3, k: int = 3, seed: int = 0, apart: float = 3.0) -> Any:
    rng = np.random.default_rng(seed)
    means = rng.normal(0.0, apart, (k, d))
    shapes = rng.normal(0.0, 1.0, (k, d, d))
    labels = rng.integers(0, k, n)
    return means[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))


def start(X: Any, kind: str, k: int = 3) -> dict[str, Any]:
    """Return initial parameters, in scikit-learn's shapes."""
    scale = 1.0 / np.nanvar(X, axis=0)
    precisions = {
        "full": np.tile(np.diag(scale), (k, 1, 1)),
        "tied": np.diag(scale),
        "diag": np.tile(scale, (k, 1)),
        "spherical": np.full(k, scale.mean()),
    }[kind]
    complete = X[~np.isnan(X).any(axis=1)]
    return {
        "weights_init": np.arange(1.0, k + 1) / np.arange(1, k + 1).sum(),
        "means_init": complete[:: len(complete) // k][:k],
        "precisions_init": precisions,
    }


def matrices(model: Any) -> Any:
    """The covariances as one matrix per component."""
    k, d = model.means_.shape
    C = model.covariances_
    if model.covariance_type == "full":
        return C
    if model.covariance_type == "tied":
        return np.tile(C, (k, 1, 1))
    return np.stack([np.eye(d) * C[j] for j in range(k)])


def fitted(X: Any, kind: str = "full", steps: int = 1, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = {"sample_weight": options.pop("sample_weight", None)}
        return GaussianMixture(3, covariance_type=kind, tol=0.0, max_iter=steps, **start(X, kind), **options).fit(
            X, **fit
        )


# ------------------------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_is_the_sample_mean_and_covariance(kind: str) -> None:
    X = clusters()
    model = GaussianMixture(1, covariance_type=kind, reg_covar=0.0).fit(X)
    S = np.cov(X.T, bias=True)
    expected = {"full": S[None], "tied": S, "diag": np.diag(S)[None], "spherical": np.diag(S).mean()[None]}[kind]
    assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-12)
    assert_allclose(model.covariances_, expected, rtol=1e-12)
    assert_allclose(model.weights_, [1.0])
    assert model.converged_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True])
def test_one_step_is_the_textbook_s(kind: str, missing: bool) -> None:
    X = clusters(n=90)
    rng = np.random.default_rng(1)
    if missing:
        X[rng.random(X.shape) < 0.25] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
    w = rng.integers(1, 4, len(X)).astype(float)
    given = start(X, kind)
    model = fitted(X, kind, reg_covar=1e-3, sample_weight=w)
    before = GaussianMixture(3, covariance_type=kind, max_iter=0, **given).fit(X)
    theta = (before.weights_, before.means_, matrices(before))
    step = mixtures.gaussian_step(X, w, theta, kind, 1e-3)
    assert_allclose(model.weights_, step.weights, rtol=1e-10)
    assert_allclose(model.means_, step.means, rtol=1e-9, atol=1e-9)
    assert_allclose(matrices(model), step.covariances, rtol=1e-9, atol=1e-9)
    assert model.lower_bound_ == pytest.approx(step.log_likelihood / w.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_densities_are_scipy_s(kind: str) -> None:
    X = clusters()
    model = fitted(X, kind, steps=5)
    normals = [stats.multivariate_normal(m, S) for m, S in zip(model.means_, matrices(model), strict=True)]
    joint = np.log(model.weights_) + np.stack([normal.logpdf(X) for normal in normals], axis=1)
    assert_allclose(model.score_samples(X), special.logsumexp(joint, axis=1), rtol=1e-10)
    X = X[:50].copy()
    X[::3, 1] = np.nan
    X[::7, 0] = np.nan
    joint = mixtures.log_joint(X, model.weights_, model.means_, matrices(model))
    assert_allclose(model.score_samples(X), special.logsumexp(joint, axis=1), rtol=1e-10)
    assert_allclose(model.predict_proba(X), special.softmax(joint, axis=1), rtol=1e-8, atol=1e-12)
    assert_array_equal(model.predict(X), joint.argmax(axis=1))
    assert model.score(X) == pytest.approx(special.logsumexp(joint, axis=1).mean(), rel=1e-12)


def test_a_bivariate_normal_with_some_values_missing_has_a_closed_form() -> None:
    # Anderson (1957): mean and variance of x from all rows, the regression of y on x from the complete ones.
    rng = np.random.default_rng(2)
    x = rng.normal(3.0, 2.0, 80)
    y = 1.0 - 0.7 * x + rng.normal(0.0, 0.5, 80)
    y[30:] = np.nan
    X = np.column_stack([x, y])
    slope, offset = np.polyfit(x[:30], y[:30], 1)
    residual = np.mean((y[:30] - offset - slope * x[:30]) ** 2)
    expected = np.var(x) * np.array([[1.0, slope], [slope, slope**2]])
    expected[1, 1] += residual
    model = GaussianMixture(1, reg_covar=0.0, tol=1e-14, max_iter=2000).fit(X)
    assert model.converged_
    assert_allclose(model.means_[0], [x.mean(), offset + slope * x.mean()], rtol=1e-6)
    assert_allclose(model.covariances_[0], expected, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------ EM is monotone


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(KINDS),
    k=st.integers(1, 4),
    d=st.integers(1, 4),
    missing=st.sampled_from([0.0, 0.2]),
    apart=st.sampled_from([0.0, 2.0, 1e4]),
)
def test_the_log_likelihood_never_falls(seed: int, kind: str, k: int, d: int, missing: float, apart: float) -> None:
    X = clusters(n=120, d=d, k=k, seed=seed, apart=apart)
    rng = np.random.default_rng(seed)
    X[rng.random(X.shape) < missing] = np.nan
    X[:2] = np.nan_to_num(X[:2], nan=0.5)
    w = rng.integers(0, 3, len(X)).astype(float) + 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = GaussianMixture(
                k, covariance_type=kind, reg_covar=0.0, tol=0.0, max_iter=25, random_state=seed % 1000
            ).fit(X, sample_weight=w)
        except em.Collapse:
            assume(False)  # a component on few rows: the likelihood has no maximum
    rises = np.diff(model.lower_bounds_)
    assert rises.min() > -1e-9 * np.abs(model.lower_bounds_).max()


# -------------------------------------------------------------------------------------------------------- invariances


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions(kind: str) -> None:
    X = clusters()
    w = np.random.default_rng(3).integers(0, 4, len(X))
    weighted = fitted(X, kind, steps=10, sample_weight=w.astype(float))
    given = start(X, kind)
    with pytest.warns(ConvergenceWarning):
        repeated = GaussianMixture(3, covariance_type=kind, tol=0.0, max_iter=10, **given).fit(np.repeat(X, w, axis=0))
    assert_allclose(weighted.means_, repeated.means_, rtol=1e-9)
    assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-8, atol=1e-10)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-12)
    assert weighted.bic(X, w.astype(float)) == pytest.approx(repeated.bic(np.repeat(X, w, axis=0)), rel=1e-12)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_shifting_and_scaling_columns_changes_nothing_but_the_units(kind: str) -> None:
    X = clusters()
    by, to = np.array([1e3, 1e-3, 1.0]), np.array([1e6, -5.0, 0.0])
    plain = GaussianMixture(3, covariance_type=kind, reg_covar=0.0, random_state=0).fit(X)
    moved = GaussianMixture(3, covariance_type=kind, reg_covar=0.0, random_state=0).fit(X * by + to)
    assert_allclose(moved.means_, plain.means_ * by + to, rtol=1e-6)
    assert_array_equal(moved.predict(X * by + to), plain.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_every_storage(kind: str, tmp_path: Any) -> None:
    import pandas as pd

    X = clusters(n=3000, d=5)
    X[::11, 2] = np.nan
    columns = list("abcde")
    frame = pd.DataFrame(X, columns=columns)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    plain = GaussianMixture(3, covariance_type=kind, random_state=0, n_init=2).fit(X)
    for rows in (np.asfortranarray(X), frame, summula.scan(tmp_path / "rows.parquet")):
        other = GaussianMixture(3, covariance_type=kind, random_state=0, n_init=2).fit(rows)
        assert_array_equal(other.covariances_, plain.covariances_)
        assert_array_equal(other.lower_bounds_, plain.lower_bounds_)


def test_rows_without_an_observed_value_do_not_count() -> None:
    X = clusters()
    empty = np.insert(X, [0, 100], np.nan, axis=0)
    for kind in KINDS:
        given = start(X, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            whole, holes = (
                GaussianMixture(3, covariance_type=kind, max_iter=3, tol=0.0, **given).fit(rows) for rows in (X, empty)
            )
        assert_allclose(holes.covariances_, whole.covariances_, rtol=1e-9, atol=1e-12)
        assert holes.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-12)
        assert_allclose(whole.predict_proba([[np.nan] * 3]), [whole.weights_], rtol=1e-12)


def test_values_missing_at_random_lead_near_the_complete_fit() -> None:
    X = clusters(n=4000, d=3, k=2, seed=5)
    complete = GaussianMixture(2, random_state=0, tol=1e-8, max_iter=500).fit(X)
    holes = X.copy()
    holes[np.random.default_rng(6).random(X.shape) < 0.1] = np.nan
    partial = GaussianMixture(2, random_state=0, tol=1e-8, max_iter=500).fit(holes)
    order = [int(np.argmin(((complete.means_ - mean) ** 2).sum(axis=1))) for mean in partial.means_]
    error = np.sqrt(np.diagonal(complete.covariances_[order], axis1=1, axis2=2) / 1500)
    assert sorted(order) == [0, 1]
    assert (np.abs(partial.means_ - complete.means_[order]) < 3 * error).all()
    assert_allclose(partial.weights_, complete.weights_[order], atol=0.02)


# ------------------------------------------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_steps_as_scikit_learn_s(kind: str) -> None:
    X = clusters(n=500, d=4)
    ours = fitted(X, kind, steps=15)
    with pytest.warns(ConvergenceWarning):
        theirs = peer.GaussianMixture(3, covariance_type=kind, tol=0.0, max_iter=15, **start(X, kind)).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bounds_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-10, err_msg=name)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-10)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-10)
    assert ours.n_iter_ == theirs.n_iter_


# ------------------------------------------------------------------------------------------------- starts and stops


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random_from_data"])
def test_finds_clusters_that_lie_apart(init: str) -> None:
    X = clusters(n=600, d=2, k=4, apart=30.0, seed=3)
    model = GaussianMixture(4, init_params=init, n_init=8, random_state=0).fit(X)
    truth = peer.GaussianMixture(4, n_init=8, random_state=0).fit(X)
    assert model.converged_
    assert model.score(X) >= truth.score(X) - 1e-3


def test_a_warm_start_goes_on() -> None:
    X = clusters()
    once = fitted(X, steps=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        twice = GaussianMixture(3, tol=0.0, max_iter=3, warm_start=True, **start(X, "full")).fit(X).fit(X)
    assert_allclose(twice.means_, once.means_, rtol=1e-9)


def test_the_number_of_components_by_bic() -> None:
    X = clusters(n=900, d=2, k=3, apart=6.0, seed=4)
    chosen = GaussianMixture(random_state=0, n_init=3).select(X, range(1, 6))
    assert chosen.n_components == 3
    assert sorted(chosen.selection_) == [1, 2, 3, 4, 5]
    assert chosen.selection_[3] == pytest.approx(chosen.bic(X))
    with pytest.raises(summula.ParameterError, match="criterion"):
        GaussianMixture().select(X, criterion="cp")


def test_a_step_limit_is_reported_with_the_gain() -> None:
    with pytest.warns(ConvergenceWarning, match="Step 2 raised the log-likelihood per row by 0[.]"):
        GaussianMixture(3, max_iter=2, tol=0.0, random_state=0).fit(clusters())


@pytest.mark.parametrize("kind", KINDS)
def test_samples_have_the_moments_of_the_mixture(kind: str) -> None:
    model = fitted(clusters(), kind, steps=10, random_state=0)
    X, y = model.sample(20_000)
    n = len(X)
    assert_allclose(np.bincount(y) / n, model.weights_, atol=4 * np.sqrt(0.25 / n))
    for k, S in enumerate(matrices(model)):
        rows = X[y == k]
        error = 4 * np.sqrt(np.diag(S) / len(rows))
        assert (np.abs(rows.mean(axis=0) - model.means_[k]) < error).all()
        assert_allclose(np.cov(rows.T), S, atol=6 * S.max() * np.sqrt(2 / len(rows)))


# -------------------------------------------------------------------------------------------------------- certificate


@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_is_recomputed(kind: str) -> None:
    X = clusters()
    X[::9, 0] = np.nan
    w = np.random.default_rng(9).integers(1, 4, len(X)).astype(float)
    loose = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-2).fit(X, sample_weight=w)
    tight = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-13, max_iter=5000).fit(X, sample_weight=w)
    assert loose.certificate_.primal == pytest.approx(-loose.score(X, sample_weight=w), rel=1e-12)
    assert tight.certificate_.residual < 1e-4 < loose.certificate_.residual
    assert loose.certificate_.verify(X, sample_weight=w)
    assert not loose.certificate_.verify(X)
    assert np.isinf(tight.certificate_.gap)
    assert str(tight.certificate_).startswith("stationary: log-likelihood per row")


# ----------------------------------------------------------------------------------------------------------- collapse


def test_singular_components_are_refused_without_a_ridge() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    for kind in KINDS:
        with pytest.raises(summula.DataError, match="ill-defined empirical covariance"):
            GaussianMixture(2, covariance_type=kind, reg_covar=0.0, random_state=0).fit(X)


def test_a_collapsed_component_is_reported() -> None:
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(0.0, 1.0, (100, 2)), np.full((10, 2), 20.0)])
    with pytest.warns(summula.CollapseWarning, match="Component . has collapsed in GaussianMixture"):
        model = GaussianMixture(2, random_state=0).fit(X)
    assert len(model.collapsed_) == 1
    assert_allclose(model.means_[model.collapsed_[0]], [20.0, 20.0])
    constant = np.column_stack([rng.normal(size=100), np.ones(100)])
    assert not len(GaussianMixture(2, random_state=0).fit(constant).collapsed_)  # a property of the data


def test_collapsing_starts_are_replaced() -> None:
    rng = np.random.default_rng(8)
    X = np.concatenate([rng.normal(0.0, 1.0, (150, 2)), rng.normal(8.0, 1.0, (150, 2))])
    X[:3] = [[30.0, 30.0], [30.0, 30.0], [30.0, 30.0]]
    with pytest.warns(summula.CollapseWarning):
        alone = GaussianMixture(2, means_init=[[4.0, 4.0], [30.0, 30.0]]).fit(X)
    several = GaussianMixture(2, random_state=3, init_params="random_from_data", n_init=10).fit(X)
    assert len(alone.collapsed_) == 1
    assert not len(several.collapsed_)


# ---------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_gets_one_sentence() -> None:
    X = clusters(n=20)
    with pytest.raises(summula.DataError, match="n_components = 21, n_samples = 20: use fewer"):
        GaussianMixture(21).fit(X)
    with pytest.raises(summula.ParameterError, match="n_components"):
        GaussianMixture(0).fit(X)
    infinite = X.copy()
    infinite[3, 1] = np.inf
    with pytest.raises(summula.DataError, match="Column 1 has 1 infinite value .inf; first at row 3"):
        GaussianMixture(2, random_state=0).fit(infinite)
    with pytest.raises(summula.DataError, match="Column 1 has an infinite value .inf; first at row 3"):
        GaussianMixture(2, random_state=0).fit(X).predict(infinite)
    holes = X.copy()
    holes[:, 2] = np.nan
    with pytest.raises(summula.DataError, match="Column 2 has no observed value"):
        GaussianMixture(2, random_state=0).fit(holes)
    with pytest.raises(summula.DataError, match="squares overflow"):
        GaussianMixture(2, random_state=0).fit(X * 1e200)
    model = GaussianMixture(2, random_state=0, warm_start=True).fit(X)
    with pytest.raises(summula.ParameterError, match="set warm_start=False"):
        model.set_params(n_components=3).fit(X)
    with pytest.raises(summula.ParameterError, match="finite"):
        GaussianMixture(1, means_init=[[np.nan] * 3]).fit(X)


def test_nothing_is_half_fitted_after_an_error() -> None:
    X = clusters(n=50)
    model = GaussianMixture(2, random_state=0).fit(X)
    before = model.means_.copy()
    with pytest.raises(summula.DataError):
        model.fit(np.full((5, 3), np.inf))
    assert_array_equal(model.means_, before)


def test_several_collapsed_components_are_reported_together() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    with pytest.warns(summula.CollapseWarning, match="Components 0, 1 have collapsed in GaussianMixture"):
        GaussianMixture(2, random_state=0).fit(X)
