"""Principal components: the distortion formula, every solver, weights, additive sums, bad input."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sklearn.decomposition
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import multivariate_normal

import summula
from summula.decomposition import PCA
from summula.decomposition.principal import gathered, solver
from summula.decomposition.principal.certificate import subspace_gap
from summula.decomposition.principal.number import by_evidence


def table(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(3.0, 5.0, d)


def projected(pca, X):
    return pca.inverse_transform(pca.transform(X))


# ------------------------------------------------------------------------------------------------------- distortion


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.integers(1, 8), st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_distortion_is_n_times_the_discarded_eigenvalues(n, d, seed, center, scale):
    X = table(n, d, seed)
    for k in range(min(n, d) + 1):
        pca = PCA(n_components=k, center=center, scale=scale).fit(X)
        deviation = pca.scale_ if scale else 1.0
        A = (X - (X.mean(axis=0) if center else 0.0)) / deviation
        eigenvalues = np.linalg.eigvalsh(A.T @ A / n)[::-1]
        assert pca.distortion_ == pytest.approx(n * eigenvalues[k:].sum(), rel=1e-9, abs=1e-9 * (A**2).sum())
        if k:
            lost = (((X - projected(pca, X)) / deviation) ** 2).sum()
            assert pca.distortion_ == pytest.approx(lost, rel=1e-9, abs=1e-9 * (A**2).sum())


def test_no_other_subspace_loses_less():
    X, rng = table(), np.random.default_rng(1)
    pca = PCA(n_components=2).fit(X)
    A = X - X.mean(axis=0)
    for _ in range(200):
        V = np.linalg.qr(pca.components_.T + rng.choice([1e-3, 1.0]) * rng.normal(size=(6, 2)))[0]
        assert ((A - A @ V @ V.T) ** 2).sum() >= pca.distortion_ * (1 - 1e-12)


def test_the_scaled_form_has_the_axes_of_the_correlation_matrix():
    X = table()
    pca = PCA(scale=True).fit(X)
    values, vectors = np.linalg.eigh(np.corrcoef(X.T))
    np.testing.assert_allclose(pca.explained_variance_, values[::-1] * 200 / 199, rtol=1e-12)
    np.testing.assert_allclose(np.abs(pca.components_), np.abs(vectors[:, ::-1].T), atol=1e-12)
    np.testing.assert_allclose(pca.scale_, X.std(axis=0))
    # Without centring columns are divided by the root of their mean square.
    np.testing.assert_allclose(PCA(scale=True, center=False).fit(X).scale_, np.sqrt((X**2).mean(axis=0)))


def test_the_uncentred_form_has_the_axes_of_the_products_about_zero():
    X = table()
    pca = PCA(center=False).fit(X)
    _, singular, Vt = np.linalg.svd(X)
    np.testing.assert_allclose(pca.singular_values_, singular, rtol=1e-11)
    np.testing.assert_allclose(np.abs(pca.components_), np.abs(Vt), atol=1e-9)
    assert not pca.mean_.any()
    np.testing.assert_allclose(pca.transform(X), X @ pca.components_.T)


# -------------------------------------------------------------------------------------------------- how many to keep


def test_the_fewest_components_within_a_distortion():
    X = table()
    every = PCA().fit(X)
    lost = [PCA(n_components=k).fit(X).distortion_ for k in range(7)]
    for k, distortion in enumerate(lost):
        assert PCA(max_distortion=distortion * (1 + 1e-9) + 1e-9).fit(X).n_components_ == k
    assert every.n_components_ == 6
    with pytest.raises(summula.ParameterError, match="pass only one of them"):
        PCA(n_components=2, max_distortion=1.0).fit(X)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.99, 0.999])
def test_a_share_of_the_variance_is_chosen_as_in_scikit_learn(share):
    X = table(150, 8)
    ours, theirs = PCA(share).fit(X), sklearn.decomposition.PCA(share, svd_solver="full").fit(X)
    assert ours.n_components_ == theirs.n_components_
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-10)


def test_minkas_evidence_finds_the_dimension_as_in_scikit_learn():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 9)) + 0.3 * rng.normal(size=(400, 9))
    assert PCA("mle").fit(X).n_components_ == 3
    for seed in range(5):
        X = table(40, 5, seed)
        assert PCA("mle").fit(X).n_components_ == sklearn.decomposition.PCA("mle").fit(X).n_components_
    assert by_evidence(np.array([3.0, 1.0, 1.0, 1.0]), 1_000) == 1


# ------------------------------------------------------------------------------------------- every way to the axes


def same_axes(a, b, rtol=1e-10):
    np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=rtol, atol=1e-13)
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-8)
    assert a.noise_variance_ == pytest.approx(b.noise_variance_, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", [(300, 12), (12, 300), (40, 40)])
@pytest.mark.parametrize("hint", ["auto", "full", "covariance_eigh", "arpack", "randomized"])
def test_every_hint_gives_the_same_axes(shape, hint):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.linspace(5.0, 0.5, shape[1]) + 2.0
    ours = PCA(n_components=2, svd_solver=hint, random_state=1, n_oversamples=1).fit(X)
    same_axes(ours, sklearn.decomposition.PCA(n_components=2, svd_solver="full").fit(X), rtol=1e-9)
    assert ours.certificate_.verify(X)


def test_more_columns_than_rows_by_products_of_rows(monkeypatch):
    X = table(20, 60)
    by_singular_values = PCA().fit(X)
    assert by_singular_values.solver_ == "svd"
    monkeypatch.setattr(gathered, "_SMALL", 0)
    by_products = PCA(n_components=19).fit(X)
    assert by_products.solver_ == "gram"
    np.testing.assert_allclose(by_products.singular_values_, by_singular_values.singular_values_[:19], rtol=1e-11)
    np.testing.assert_allclose(by_products.components_, by_singular_values.components_[:19], atol=1e-9)
    assert by_products.certificate_.verify(X)
    # The last axis has no variance: products of rows would lose its digits.
    assert PCA().fit(X).solver_ == "svd"


def test_small_variances_are_read_from_the_triangular_factor():
    """Singular values from 1 to 1e-10: in the covariance matrix those below 1e-8 are lost."""
    rng = np.random.default_rng(0)
    U, V = np.linalg.qr(rng.normal(size=(500, 6)))[0], np.linalg.qr(rng.normal(size=(6, 6)))[0]
    U = np.linalg.qr(U - U.mean(axis=0))[0]
    singular = 10.0 ** -np.arange(0.0, 12.0, 2.0)
    pca = PCA().fit(U * singular @ V.T)
    assert pca.solver_ == "qr"
    np.testing.assert_allclose(pca.singular_values_, singular, rtol=1e-4)
    np.testing.assert_allclose(np.abs(pca.components_ @ V), np.eye(6), atol=1e-4)
    assert PCA(n_components=2).fit(U * singular @ V.T).solver_ == "covariance"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"scale": True}, {"center": False}])
@pytest.mark.parametrize("stored", ["sparse", "dense"])
def test_the_krylov_method_finds_the_leading_axes(weighted, options, stored):
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 90), density=0.2, rng=rng, format="csr")
    X.data += 1.0
    w = rng.integers(0, 4, 400).astype(float) if weighted else None
    given = X if stored == "sparse" else X.toarray()
    found = PCA(n_components=4, svd_solver="randomized", random_state=0, **options).fit(given, sample_weight=w)
    exact = PCA(n_components=4, svd_solver="covariance_eigh", **options).fit(X.toarray(), sample_weight=w)
    assert (found.solver_, exact.solver_) == ("krylov", "covariance")
    assert found.n_iter_ > 1
    same_axes(found, exact, rtol=1e-9)
    assert found.certificate_.kind == "local"
    assert found.certificate_.verify(X, sample_weight=w)
    assert not found.certificate_.verify(X[1:], sample_weight=None if w is None else w[1:] + 1.0)
    again = PCA(n_components=4, svd_solver="randomized", random_state=0, **options).fit(given, sample_weight=w)
    np.testing.assert_array_equal(found.components_, again.components_)


def test_a_local_certificate_states_the_newton_decrement(tmp_path):
    """The message refers to other subspaces, not to Newton steps, and states its assumption."""
    X = np.random.default_rng(0).normal(size=(300, 90)) * np.geomspace(9.0, 1.0, 90)
    found = PCA(n_components=3, svd_solver="randomized", random_state=0).fit(X)
    words = str(found.certificate_)
    outside = np.linalg.eigvalsh(len(X) * np.cov(X.T, bias=True))[::-1][3]
    assert found.certificate_.kind == "local"
    assert "Newton" not in words
    assert f"{found.certificate_.gap:.3g} above the best" in words
    assert f"if the eigenvalues outside the axes are at most about {outside:.3g}," in words
    assert "if the eigenvalues" not in str(PCA(n_components=3, svd_solver="covariance_eigh").fit(X).certificate_)
    summula.save(found, tmp_path / "model.safetensors")
    assert str(summula.load(tmp_path / "model.safetensors").certificate_) == words


def test_krylov_method_warns_at_max_iter():
    X = np.random.default_rng(0).normal(size=(300, 100))
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="2 passes with a relative residual"):
        pca = PCA(n_components=3, svd_solver="randomized", max_iter=2, random_state=0).fit(X)
    exact = PCA(n_components=3).fit(X)
    assert pca.distortion_ > exact.distortion_
    assert pca.certificate_.gap > 1e-6 * pca.distortion_


def test_wide_data_go_to_the_krylov_method(monkeypatch):
    monkeypatch.setattr(solver, "KEPT_COLUMNS", 50)
    monkeypatch.setattr(solver, "_GATHERED_ROWS", 50)
    X = table(200, 80)
    wide = PCA(n_components=2, n_oversamples=2).fit(X)
    assert wide.solver_ == "krylov"
    with pytest.raises(summula.ParameterError, match="needs the sums over the rows"):
        wide.partial_fit(X)


def test_constant_columns_and_rows_that_are_all_equal():
    X = np.column_stack([table(50, 3), np.full(50, 7.0)])
    pca = PCA(scale=True).fit(X)
    assert pca.solver_ == "covariance"  # its variance is exactly 0, and costs no second pass
    assert pca.explained_variance_[-1] == 0
    assert pca.scale_[-1] == 1.0
    same = PCA(n_components=1).fit(np.full((5, 2), 3.0))
    assert same.distortion_ == 0
    assert not same.transform([[3.0, 3.0]]).any()


# ----------------------------------------------------------------------------------------------------------- digits


def test_columns_far_from_zero_keep_their_digits():
    X = np.round(table(500, 4) * 1024) / 1024
    near, far = PCA().fit(X), PCA().fit(X + 1e8)
    np.testing.assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-11)
    np.testing.assert_allclose(far.transform(X + 1e8), near.transform(X), atol=1e-7)
    single = PCA(n_components=2).fit((X + 1e4).astype(np.float32))
    np.testing.assert_allclose(single.explained_variance_, near.explained_variance_[:2], rtol=1e-5)
    np.testing.assert_allclose(single.transform((X + 1e4).astype(np.float32)), near.transform(X)[:, :2], atol=1e-2)


# --------------------------------------------------------------------------------------------- weights, and additions


@pytest.mark.parametrize("shape", [(60, 5), (10, 30)])
def test_weights_are_repetitions(shape):
    X, rng = table(*shape), np.random.default_rng(0)
    w = rng.integers(0, 4, len(X))
    weighted = PCA(n_components=3).fit(X, sample_weight=w)
    repeated = PCA(n_components=3).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-10)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-11)
    assert weighted.distortion_ == pytest.approx(repeated.distortion_, rel=1e-11)


def test_sums_merge_and_forget():
    X = table(300, 5)
    whole, first, rest = (PCA(n_components=3).fit(rows) for rows in (X, X[:100], X[100:]))
    np.testing.assert_allclose(first.merge(rest).components_, whole.components_, atol=1e-12)
    first.forget(X[:50])
    np.testing.assert_allclose(first.components_, PCA(n_components=3).fit(X[50:]).components_, atol=1e-12)
    assert first.n_samples_ == 250
    # A first part with fewer rows than columns.
    grown = PCA(n_components=2).partial_fit(X[:3])
    assert grown.solver_ == "svd"
    np.testing.assert_allclose(grown.partial_fit(X[3:]).components_, whole.components_[:2], atol=1e-12)


def test_a_mean_of_a_merge_is_re_centred():
    X = table(200, 3)
    parts = [PCA().fit(X[:100]), PCA().fit(X[100:] + 1e3)]
    both = PCA().fit(np.vstack([X[:100], X[100:] + 1e3]))
    np.testing.assert_allclose(parts[0].merge(parts[1]).explained_variance_, both.explained_variance_, rtol=1e-8)


# ------------------------------------------------------------------------------------------------------ certificate


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 7), st.integers(1, 4), st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_the_gap_bounds_what_another_subspace_gains(d, r, seed, step):
    """The bound (2) of `principal/certificate.py`, at subspaces near to and far from the best."""
    rng = np.random.default_rng(seed)
    r = min(r, d - 1)
    S = np.cov(rng.normal(size=(d, 3 * d)))
    values, vectors = np.linalg.eigh(S)
    V = np.linalg.qr(vectors[:, ::-1][:, :r] + step * rng.normal(size=(d, r)))[0].T
    T = V @ S @ V.T
    R = S @ V.T - V.T @ T
    P = np.eye(d) - V.T @ V
    gap = subspace_gap(np.linalg.norm(R), np.linalg.eigvalsh(T)[0], np.linalg.eigvalsh(P @ S @ P)[-1], r)
    assert gap >= values[::-1][:r].sum() - np.trace(T) - 1e-12


def test_a_tampered_certificate_is_not_verified():
    X = table()
    certificate = PCA(n_components=2).fit(X).certificate_
    assert certificate.kind == "exact"
    assert certificate.verify(X)
    assert certificate.gap <= 1e-12 * ((X - X.mean(axis=0)) ** 2).sum()
    turned = np.linalg.qr((certificate.vectors + 1e-4).T)[0].T
    for change in (
        {"vectors": turned},
        {"primal": certificate.primal * 1.0001},
        {"mean": certificate.mean + 0.01},
        {"vectors": PCA().fit(X).components_[[0, 2]]},
    ):
        assert not dataclasses.replace(certificate, **change).verify(X)
    # A correct distortion of a worse subspace has a positive gap.
    worse = dataclasses.replace(certificate, vectors=PCA().fit(X).components_[[0, 2]])
    worse = dataclasses.replace(worse, primal=worse.verify(X).primal)
    assert not worse.verify(X)
    assert worse.primal - certificate.primal <= worse.verify(X).gap < np.inf


# ---------------------------------------------------------------------------------------------------------- density


@pytest.mark.parametrize("options", [{}, {"scale": True}, {"whiten": True}])
@pytest.mark.parametrize("k", [0, 2, 6])
def test_the_density_is_normal_with_the_covariance_of_the_model(options, k):
    X = table()
    pca = PCA(n_components=k, **options).fit(X)
    covariance = pca.get_covariance()
    np.testing.assert_allclose(pca.score_samples(X), multivariate_normal(pca.mean_, covariance).logpdf(X), rtol=1e-9)
    np.testing.assert_allclose(pca.get_precision() @ covariance, np.eye(6), atol=1e-9)
    w = np.arange(200.0)
    assert pca.score(X, sample_weight=w) == pytest.approx(np.average(pca.score_samples(X), weights=w), rel=1e-11)
    if k == 6:
        np.testing.assert_allclose(covariance, np.cov(X.T), rtol=1e-9, atol=1e-10)


def test_scores_are_those_of_scikit_learn():
    X = table()
    ours, theirs = PCA(n_components=3).fit(X), sklearn.decomposition.PCA(n_components=3).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-12)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-11)


# --------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_raises_a_clear_error():
    X = table()
    with pytest.raises(summula.DataError, match="at least 2 rows, but n_samples = 1"):
        PCA().fit(X[:1])
    with pytest.raises(summula.ParameterError, match=r"n_components=7 must be between 0 and .*=6"):
        PCA(7).fit(X)
    with pytest.raises(summula.ParameterError, match="'mle' is only supported if n_samples >= n_features"):
        PCA("mle").fit(X[:4])
    with pytest.raises(summula.ParameterError, match="'n_components' parameter"):
        PCA(1.5).fit(X)
    with pytest.raises(summula.DataError, match="their sum is 0.5"):
        PCA().fit(X[:2], sample_weight=[0.25, 0.25])
    bad = X.copy()
    bad[17, 2] = np.inf
    for use in (PCA().fit, PCA(svd_solver="randomized", n_components=1).fit, PCA().fit(X).transform):
        with pytest.raises(summula.DataError, match="infinit.*row 17"):
            use(bad)
    with pytest.raises(summula.DataError, match="3 columns, but there are 2 components"):
        PCA(2).fit(X).inverse_transform(X[:, :3])
    with pytest.raises(summula.ParameterError, match="same n_components"):
        PCA(2).fit(X).merge(PCA(3).fit(X))


def test_scores_of_float32_rows_far_from_zero_count_the_rounding_of_the_mean() -> None:
    X = (1e4 + 0.1 * np.random.default_rng(2).normal(size=(200, 3))).astype(np.float32)
    model = PCA(2).fit(X)
    exact = (X.astype(np.float64) - model.mean_) @ model.components_.T.astype(np.float64)
    assert np.abs(model.mean_ - model.mean_.astype(np.float32)).max() > 1e-4
    np.testing.assert_allclose(model.transform(X), exact, rtol=0, atol=1e-6)
