"""Principal components of rows with missing values, by EM."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

import summula
from summula import em
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.decomposition import PCA
from summula.decomposition.principal import missing
from summula.decomposition.principal.axes import Problem


def table(n=1_500, d=6, rank=2, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d)) + np.arange(d)


def with_holes(X, share, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def run_over(X, w=None):
    return Run(_Allowing(), as_source(_Allowing(), X, None, w, needs_y=False), quiet=True)


class _Allowing(Unnamed):
    _allows_nan = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def test_em_on_complete_rows_gives_the_principal_axes():
    """Its fixed point is known in closed form (Tipping and Bishop 1999)."""
    X = table()
    run = run_over(X)
    model = missing.model_of(run, Problem(center=True, scale=False), 2)
    solution = em.fit(model, run, tol=1e-14, max_iter=500)
    axes = missing.axes_of(model, solution, 2)
    exact = PCA(n_components=2).fit(X)
    np.testing.assert_allclose(axes.vectors, exact.components_, atol=1e-6)
    np.testing.assert_allclose(axes.values[:2] / (len(X) - 1), exact.explained_variance_, rtol=1e-6)
    assert solution.x.noise * len(X) / (len(X) - 1) == pytest.approx(exact.noise_variance_, rel=1e-6)


def test_holes_change_the_axes_by_little():
    X = table()
    exact, holes = PCA(n_components=2).fit(X), PCA(n_components=2).fit(with_holes(X, 0.1))
    assert holes.solver_ == "em"
    assert holes.certificate_ is None
    np.testing.assert_allclose(holes.components_, exact.components_, atol=0.01)
    np.testing.assert_allclose(holes.explained_variance_, exact.explained_variance_, rtol=0.02)
    assert holes.noise_variance_ == pytest.approx(exact.noise_variance_, rel=0.03)
    assert holes.distortion_ == pytest.approx(exact.distortion_, rel=0.03)
    # Rows with missing values are transformed to their conditional expectation; complete rows as usual.
    there = holes.transform(with_holes(X, 0.1))
    assert np.sqrt(np.mean((there - exact.transform(X)) ** 2)) < 0.25
    np.testing.assert_allclose(holes.transform(X[:3]), (X[:3] - holes.mean_) @ holes.components_.T)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 0.6]), st.booleans(), st.booleans())
def test_the_likelihood_never_falls(seed, share, center, weighted):
    X = with_holes(table(40, 5, seed=seed), share, seed)
    X = X[:, ~np.isnan(X).all(axis=0)]
    w = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float) if weighted else None
    run = run_over(X, w)
    solution = em.fit(missing.model_of(run, Problem(center, scale=False), 2), run, tol=0.0, max_iter=30)
    assert (np.diff(solution.trace) >= -1e-10).all()


def test_the_likelihood_is_that_of_the_values_there_are():
    X = with_holes(table(50, 4), 0.3)
    pca = PCA(n_components=2).fit(X)
    covariance, rows = pca.get_covariance(), []
    for x in X:
        o = ~np.isnan(x)
        rows.append(multivariate_normal(pca.mean_[o], covariance[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0)
    np.testing.assert_allclose(pca.score_samples(X), rows, rtol=1e-8)


def test_missing_values_are_what_the_model_expects():
    X = with_holes(table(200, 4), 0.2)
    pca = PCA(n_components=2).fit(X)
    covariance = pca.get_covariance()
    filled = X.copy()
    for x in filled:
        o = ~np.isnan(x)
        away = np.linalg.solve(covariance[np.ix_(o, o)], x[o] - pca.mean_[o]) if o.any() else np.zeros(0)
        x[~o] = pca.mean_[~o] + covariance[np.ix_(~o, o)] @ away
    np.testing.assert_allclose(pca.transform(X), (filled - pca.mean_) @ pca.components_.T, atol=1e-7)


def test_weights_are_repetitions_and_a_missing_row_is_nothing():
    X, rng = with_holes(table(60, 4), 0.2), np.random.default_rng(0)
    w = rng.integers(0, 3, 60)
    weighted = PCA(n_components=2, tol=1e-10).fit(X, sample_weight=w)
    repeated = PCA(n_components=2, tol=1e-10).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-8)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-8)


def test_the_spectrum_chooses_the_number_with_holes_too():
    X = with_holes(table(300, 5, noise=0.05), 0.1)
    assert PCA(n_components=0.99).fit(X).n_components_ == 2
    every = PCA(max_iter=2_000).fit(X)
    assert every.n_components_ == 5
    assert every.noise_variance_ == 0


def test_invalid_holes_raise_a_clear_error():
    X = table(30, 3)
    empty = X.copy()
    empty[:, 1] = np.nan
    with pytest.raises(summula.DataError, match="Column 1 has only missing values"):
        PCA(n_components=1).fit(empty)
    infinite = with_holes(X, 0.2)
    infinite[4, 0] = np.inf
    with pytest.raises(summula.DataError, match="infinit.*row 4"):
        PCA(n_components=1).fit(infinite)
    holes = with_holes(X, 0.2)
    with pytest.raises(summula.DataError, match="missing values cannot be added"):
        PCA(n_components=1).fit(X).partial_fit(holes)
    with pytest.raises(summula.ParameterError, match="partial_fit needs the sums"):
        PCA(n_components=1).fit(holes).partial_fit(X)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 EM steps"):
        PCA(n_components=1, max_iter=2).fit(holes)


@pytest.mark.parametrize(
    ("names", "message"),
    [(None, "Column 1 has only missing values"), (["a", "b", "c"], "Column 'b' has only missing values")],
)
def test_a_column_without_values_is_named_once(names, message):
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=f"^{message}"):
        PCA(1).fit(X if names is None else pd.DataFrame(X, columns=names))
