"""k-means against exact solutions, its documented guarantees, and scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import cluster as peer
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.cluster import KMeans, passes
from tests.reference.k_means import least_inertia_1d, lloyd, squared_distances


def blobs(n: int, d: int, k: int, seed: int = 0, spread: float = 1.0) -> Any:
    rng = np.random.default_rng([seed, n, d])
    return rng.normal(size=(k, d))[rng.integers(0, k, n)] * 4 + spread * rng.normal(size=(n, d))


# ---------------------------------------------------------------------------------------------------------- exact answers


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_one_dimension_reaches_the_least_inertia(k: int) -> None:
    x = blobs(60, 1, 4, seed=3)
    model = KMeans(k, n_init=30, random_state=0, tol=0).fit(x)
    assert model.inertia_ == pytest.approx(least_inertia_1d(x[:, 0], k), rel=1e-10)
    assert model.certificate_.dual <= model.inertia_


def test_one_cluster_is_the_mean() -> None:
    X = blobs(200, 3, 4)
    model = KMeans(1).fit(X)
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-12)
    assert model.inertia_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(), rel=1e-12)
    assert model.certificate_.gap <= 1e-10 * model.inertia_  # one mean is optimal, and certified so


def test_two_clusters_on_a_line_are_certified() -> None:
    """The bound is exact if rows lie on a line, except for variance that clustering cannot reduce."""
    X = np.array([[-10.0, 1.0], [-10.0, -1.0], [10.0, 1.0], [10.0, -1.0]])
    certificate = KMeans(2, random_state=0).fit(X).certificate_
    assert certificate.primal == pytest.approx(4.0)
    assert certificate.gap <= 1e-8
    assert str(certificate).startswith("global: objective 4")


@pytest.mark.parametrize("d", [1, 2, 7, 20, 33])
def test_passes_are_those_of_lloyd(d: int) -> None:
    X = blobs(500, d, 6, spread=4.0)
    start = X[:6].copy()
    expected, labels, trace = lloyd(X, start, 2)
    model = KMeans(6, init=start, max_iter=2, tol=0).fit(X)
    assert not model.converged_
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-10)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.trace_[:2], trace, rtol=1e-12)


# ----------------------------------------------------------------------------------------------------------- what it promises


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 60), st.integers(1, 5), st.integers(1, 9), st.integers(0, 1000), st.booleans())
def test_the_trace_never_rises_and_the_certificate_holds(n: int, d: int, k: int, seed: int, rounded: bool) -> None:
    X = blobs(n, d, 3, seed)
    X = X.round() if rounded else X  # ties
    k = min(k, len(np.unique(X, axis=0)))
    model = KMeans(k, random_state=seed, tol=0).fit(X)
    trace = np.array(model.trace_)
    assert (np.diff(trace) <= 1e-12 * trace[0]).all()
    assert trace[-1] == model.inertia_
    D = squared_distances(X, model.cluster_centers_)
    assert model.inertia_ == pytest.approx(D.min(axis=1).sum(), rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.certificate_.dual <= model.inertia_
    assert model.certificate_.verify(X)


def test_the_bound_is_the_sum_of_the_discarded_eigenvalues() -> None:
    X = blobs(300, 6, 5)
    w = np.random.default_rng(0).integers(0, 4, 300).astype(float)
    model = KMeans(3, random_state=0).fit(X, sample_weight=w)
    about = (X - np.average(X, axis=0, weights=w)) * np.sqrt(w)[:, None]
    values = np.linalg.svd(about, compute_uv=False) ** 2
    assert model.certificate_.dual == pytest.approx(values[2:].sum(), rel=1e-9)
    assert model.certificate_.verify(X, sample_weight=w)
    assert not model.certificate_.verify(X)
    assert not model.certificate_.verify(X[1:], sample_weight=w[1:])


def test_wide_rows_get_their_bound_from_verify() -> None:
    X = blobs(150, 140, 3)
    certificate = KMeans(3, random_state=0).fit(X).certificate_
    checked = certificate.verify(X)
    assert checked
    assert certificate.dual == pytest.approx(0.0, abs=1e-9)
    assert checked.gap < 0.95 * certificate.gap


@pytest.mark.parametrize("shape", [(3000, 2, 9), (3000, 20, 50), (1200, 70, 12), (2000, 3, 200)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_leave_the_result_as_it_is(shape: tuple[int, int, int], dtype: Any) -> None:
    """With bounds (arrays), with more of them ("elkan"), and without any (files): the same bits."""
    n, d, k = shape
    X = blobs(n, d, k, spread=2.0).astype(dtype)
    X[: n // 10] = X[: n // 10].round()  # ties
    start = X[:: n // k][:k].astype(np.float64)
    models = [
        KMeans(k, init=start, tol=0, max_iter=60, algorithm=algorithm).fit(rows)
        for algorithm, rows in (("lloyd", X), ("elkan", X), ("lloyd", _stream(X)))
    ]
    for other in models[1:]:
        for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_", "trace_"):
            np.testing.assert_array_equal(getattr(models[0], name), getattr(other, name), err_msg=name)
    D = squared_distances(X, models[0].cluster_centers_.astype(np.float64))
    np.testing.assert_array_equal(models[0].labels_, D.argmin(axis=1))


def _stream(X: Any) -> Any:
    import pyarrow as pa

    return summula.scan(pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])}).to_reader(max_chunksize=700))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(300, 3, 5), (200, 90, 4), (400, 2, 30)])
def test_few_rows_without_filters_give_the_same_bits(
    shape: tuple[int, int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, d, k = shape
    # Rounded rows are repeated, and at equal distances of several centres.
    X = np.random.default_rng(0).normal(size=(n, d)).round(1).astype(dtype)
    direct = KMeans(k, random_state=0).fit(X)
    monkeypatch.setattr(passes, "_FEW", 0)
    filtered = KMeans(k, random_state=0).fit(X)
    assert direct.n_iter_ == filtered.n_iter_
    assert direct.inertia_ == filtered.inertia_
    np.testing.assert_array_equal(direct.labels_, filtered.labels_)
    np.testing.assert_array_equal(direct.cluster_centers_, filtered.cluster_centers_)
    np.testing.assert_array_equal(direct.predict(X), filtered.labels_)


@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_rows_far_from_zero_keep_their_digits(shift: float) -> None:
    X = blobs(400, 4, 4, spread=0.5)
    start = X[[0, 100, 200, 300]]
    near = KMeans(4, init=start, tol=0).fit(X)
    far = KMeans(4, init=start + shift, tol=0).fit(X + shift)
    np.testing.assert_array_equal(near.labels_, far.labels_)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-8)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_the_same_centres_are_drawn_whatever_the_chunks(init: str) -> None:
    X, w = blobs(3000, 4, 8), np.random.default_rng(0).random(3000)
    expected = KMeans(8, init=init, n_init=2, random_state=5).fit(X, sample_weight=w)
    for rows in (37, 512):
        with summula.engine("threads", chunk_rows=rows):
            found = KMeans(8, init=init, n_init=2, random_state=5).fit(X, sample_weight=w)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-11)
    other = KMeans(8, init=init, n_init=2, random_state=6).fit(X, sample_weight=w)
    assert (other.labels_ != expected.labels_).any()


def test_k_means_plus_plus_is_as_good_as_scikit_learns() -> None:
    """The mean inertia of 60 draws agrees to four standard errors."""
    X = blobs(600, 3, 10)

    def inertias(draw: Any) -> Any:
        return np.array([squared_distances(X, draw(seed)).min(axis=1).sum() for seed in range(60)])

    ours = inertias(lambda seed: _drawn(X, seed))
    theirs = inertias(lambda seed: peer.kmeans_plusplus(X, 10, random_state=seed)[0])
    assert abs(ours.mean() - theirs.mean()) <= 4 * np.sqrt((ours.var() + theirs.var()) / 60)


def _drawn(X: Any, seed: int) -> Any:
    from summula.cluster.seeding import k_means_plus_plus
    from summula.core.estimator.input.validation import as_source
    from summula.core.estimator.run import Run, Unnamed

    return k_means_plus_plus(Run(Unnamed(), as_source(Unnamed(), X, needs_y=False), quiet=True), 10, seed)


def test_a_weight_is_a_repetition() -> None:
    X, w = blobs(150, 3, 4), np.random.default_rng(1).integers(0, 4, 150)
    start = X[[0, 50, 100, 149]]
    weighted = KMeans(4, init=start, tol=0).fit(X, sample_weight=w.astype(float))
    repeated = KMeans(4, init=start, tol=0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-11)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-11)
    assert weighted.n_iter_ == repeated.n_iter_
    assert -weighted.score(X, sample_weight=w) == pytest.approx(weighted.inertia_, rel=1e-12)


def test_rows_of_no_weight_are_never_drawn() -> None:
    X = np.vstack([blobs(100, 2, 3), np.full((50, 2), 1e6)])
    w = np.repeat([1.0, 0.0], [100, 50])
    for init in ("k-means++", "k-means||", "random"):
        assert (
            np.abs(KMeans(6, init=init, n_init=1, random_state=0).fit(X, sample_weight=w).cluster_centers_).max() < 1e3
        )


def test_sparse_rows_agree_with_dense_ones() -> None:
    X = blobs(400, 12, 5)
    X[np.abs(X) < 2] = 0.0
    start, w = X[:5].copy(), np.random.default_rng(2).random(400)
    for init in (start, "k-means++", "k-means||", "random"):
        models = [
            KMeans(5, init=init, n_init=1, random_state=1).fit(rows, sample_weight=w)
            for rows in (X, sparse.csr_array(X))
        ]
        np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
        np.testing.assert_allclose(models[0].cluster_centers_, models[1].cluster_centers_, atol=1e-10)
        assert models[1].inertia_ == pytest.approx(models[0].inertia_, rel=1e-10)
    np.testing.assert_allclose(models[1].transform(sparse.csr_array(X)), models[0].transform(X), atol=1e-6)


@pytest.mark.parametrize("init", ["given", "k-means++", "random"])
def test_it_agrees_with_scikit_learn(init: str) -> None:
    X = blobs(2000, 5, 6, spread=0.3)
    options: dict[str, Any] = {"init": X[:6] if init == "given" else init, "n_init": 1 if init == "given" else 5}
    ours, theirs = KMeans(6, random_state=0, **options).fit(X), peer.KMeans(6, random_state=0, **options).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    if init == "given":
        np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-9)
        assert ours.n_iter_ == theirs.n_iter_
        np.testing.assert_allclose(ours.transform(X[:9]), theirs.transform(X[:9]), rtol=1e-9)
        assert ours.score(X) == pytest.approx(theirs.score(X))


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    X = blobs(100, 3, 3)
    model = KMeans(3, random_state=0).fit(X)
    summula.save(model, tmp_path / "m.safetensors")
    again = summula.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    assert again.certificate_.verify(X)


# --------------------------------------------------------------------------------------------------------------- bad input


def test_empty_clusters_take_the_furthest_rows() -> None:
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [30.0]])
    start = np.array([[1.0], [100.0], [200.0]])
    ours, theirs = KMeans(3, init=start).fit(X), peer.KMeans(3, init=start, n_init=1).fit(X)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert len(np.unique(ours.labels_)) == 3


def test_a_cluster_loses_the_rows_that_empty_ones_take() -> None:
    """After one step; later ones would hide it."""
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [30.0]])
    model = KMeans(3, init=np.array([[1.0], [100.0], [200.0]]), max_iter=1).fit(X)
    np.testing.assert_allclose(np.sort(model.cluster_centers_.ravel()), [13.0 / 4.0, 11.0, 30.0])


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_fewer_different_rows_than_clusters(init: str) -> None:
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(
        ConvergenceWarning, match=r"Number of distinct clusters \(2\) found smaller than n_clusters \(4\)"
    ):
        model = KMeans(4, init=init, n_init=1, random_state=0).fit(X)
    assert model.inertia_ == 0.0


def test_constant_columns_stay_exact() -> None:
    X = np.column_stack([np.full(300, 0.1), blobs(300, 2, 3)])
    assert (KMeans(3, random_state=0).fit(X).cluster_centers_[:, 0] == 0.1).all()
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        assert KMeans(2, random_state=0).fit(np.ones((20, 3))).inertia_ == 0.0


@pytest.mark.parametrize("k", [0, -3, 2.5, "many"])
def test_numbers_of_clusters_are_whole_and_positive(k: Any) -> None:
    with pytest.raises(ValueError, match=r"'n_clusters' parameter of KMeans must be an int in the range \[1, inf\)"):
        KMeans(k).fit(np.ones((5, 1)))


def test_more_clusters_than_rows() -> None:
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4: use fewer"):
        KMeans(4).fit([[1.0], [2.0], [3.0]])


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.ones((3, 2)), "does not match the number of clusters 2"),
        (np.ones((2, 3)), "does not match the number of features of the data 2"),
        (np.array([[1.0, np.nan], [0.0, 0.0]]), "initial centers are NaN"),
        (lambda X, k, random_state: X[:1], "does not match the number of clusters 2"),
        ("close", "'init' parameter of KMeans must be"),
    ],
)
def test_centres_of_another_shape(init: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KMeans(2, init=init).fit(blobs(20, 2, 2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_located(value: float) -> None:
    X = blobs(200, 3, 2)
    model = KMeans(2, random_state=0).fit(X)
    X[17, 1] = value
    for use in (model.fit, model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=r"Column 1 has 1 \w+ value \(\w+; first at row 17\)"):
            use(X)


def test_squares_that_overflow() -> None:
    with pytest.raises(ValueError, match="rescale"):
        KMeans(2, random_state=0).fit(np.array([[1e200], [-1e200], [3e180]]))


def test_a_callable_is_given_the_rows() -> None:
    X = blobs(50, 2, 2)

    def leading(rows: Any, k: int, random_state: Any) -> Any:
        assert random_state.randint(10) < 10
        return rows[:k]

    model, given = KMeans(2, init=leading, n_init=1).fit(X), KMeans(2, init=X[:2]).fit(X)
    np.testing.assert_array_equal(model.labels_, given.labels_)


def test_time_runs_out_with_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    X = blobs(5_000, 10, 30, spread=3.0)
    ticks = iter(range(10**9))
    monkeypatch.setattr("summula.core.estimator.run.time.monotonic", lambda: float(next(ticks)))
    with pytest.warns(ConvergenceWarning, match="max_time=200 s and kept the best model"):
        model = KMeans(30, n_init=5000, tol=0, random_state=0, max_time=200).fit(X)
    assert model.inertia_ == pytest.approx(-model.score(X), rel=1e-10)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
