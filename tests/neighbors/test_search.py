"""The search for nearest rows: exact, with ties by row number, on adversarial data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import haversine_distances, nan_euclidean_distances

import summula
from summula.neighbors import KNeighborsRegressor
from summula.neighbors.search import pairwise
from summula.neighbors.search.indexes import BlockIndex, DeferredIndex, ProductIndex, build_index
from summula.neighbors.search.kernels import BLOCK
from summula.neighbors.search.metrics import chosen_metric
from tests.reference.nearest import nearest_rows

Array = Any


def _rows(name: str) -> Array:
    rng = np.random.default_rng(3)
    normal = rng.normal(size=(600, 20))
    return {
        "normal": normal[:, :4],
        "one column": normal[:, :1],
        "ties": rng.integers(0, 3, (600, 4)).astype(float),
        "duplicates": np.repeat(normal[:20, :3], 30, axis=0),
        "constant": np.ones((300, 3)),
        "constant column": normal[:, :4] * [1.0, 0.0, 1.0, 1.0],
        "far": normal + 1e8,
        "outlier": np.vstack([normal, 1e12 * np.ones((1, 20))]),
        "binary": rng.integers(0, 2, (600, 20)).astype(float),
        "single": normal.astype(np.float32),
        "tiny": 1e-130 * normal,
        "few": normal[:7, :3],
        "line": np.linspace(0.0, 1.0, 600)[:, None] * np.ones(18),
    }[name]


_NAMES = (
    "normal",
    "one column",
    "ties",
    "duplicates",
    "constant",
    "constant column",
    "far",
    "outlier",
    "binary",
    "single",
    "tiny",
    "few",
    "line",
)


def _queries(X: Array) -> Array:
    rng = np.random.default_rng(4)
    some = X[:: max(1, len(X) // 40)].astype(float)
    spread = X.std(axis=0).astype(float)
    return np.vstack([some, some + spread * rng.normal(size=some.shape), 1e20 * some[:2], np.zeros((1, X.shape[1]))])


@pytest.mark.parametrize("algorithm", ["auto", "kd_tree", "brute"])
@pytest.mark.parametrize("name", _NAMES)
def test_neighbours_are_those_of_all_distances_to_the_bit(name: str, algorithm: str) -> None:
    X = _rows(name)
    Q = _queries(X)
    for metric in ("euclidean", "manhattan", "chebyshev"):
        for k in (1, 5, len(X)):
            wanted = nearest_rows(X, Q, k, metric)
            found = KNeighborsRegressor(k, metric=metric, algorithm=algorithm).fit(X, X[:, 0]).kneighbors(Q)
            np.testing.assert_array_equal(found[1], wanted[1])
            np.testing.assert_array_equal(found[0], wanted[0])


@pytest.mark.parametrize("algorithm", ["auto", "brute"])
@pytest.mark.parametrize("p", [1.5, 3.0])
def test_powers(p: float, algorithm: str) -> None:
    X = _rows("normal")
    Q = _queries(X)[:-3]
    distances, rows = KNeighborsRegressor(6, p=p, algorithm=algorithm).fit(X, X[:, 0]).kneighbors(Q)
    wanted = nearest_rows(X, Q, 6, "minkowski", p)
    np.testing.assert_array_equal(rows, wanted[1])
    np.testing.assert_allclose(distances, wanted[0], rtol=1e-13)


@pytest.mark.parametrize("options", [{}, {"algorithm": "brute"}, {"p": 3}, {"metric": "sqeuclidean"}])
@pytest.mark.parametrize("power", [-600, 664])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_neighbours_do_not_depend_on_the_unit(kind: Any, power: int, options: dict[str, Any]) -> None:
    """Squares of 1e-180 are 0, and those of 1e200 infinite; all rows were equally near."""
    X = _rows("normal")
    wanted = KNeighborsRegressor(**options).fit(kind(X), X[:, 0]).kneighbors(kind(X[:50]))
    found = (
        KNeighborsRegressor(**options).fit(kind(np.ldexp(X, power)), X[:, 0]).kneighbors(kind(np.ldexp(X[:50], power)))
    )
    np.testing.assert_array_equal(found[1], wanted[1])
    with np.errstate(over="ignore"):
        scaled = np.ldexp(wanted[0], 2 * power if options.get("metric") else power)
    np.testing.assert_allclose(found[0], scaled, rtol=1e-15)  # roots other than the square root are rounded otherwise


def test_hamming_counts_columns_that_differ() -> None:
    X = _rows("ties")
    distances, rows = KNeighborsRegressor(9, metric="hamming").fit(X, X[:, 0]).kneighbors(X[:50])
    wanted = nearest_rows(X, X[:50], 9, "hamming")
    np.testing.assert_array_equal(rows, wanted[1])
    np.testing.assert_allclose(distances, wanted[0] / 4)


@pytest.mark.parametrize("algorithm", ["auto", "brute"])
def test_cosine_distances_are_those_of_scipy(algorithm: str) -> None:
    X = _rows("normal")
    model = KNeighborsRegressor(7, metric="cosine", algorithm=algorithm).fit(X, X[:, 0])
    D = cdist(X[:60], X, "cosine")
    distances, rows = model.kneighbors(X[:60])
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :7], atol=1e-15)
    np.testing.assert_array_equal(rows[:, 0], np.arange(60))
    np.testing.assert_allclose(model.kneighbors(np.zeros((1, 4)))[0], np.ones((1, 7)), rtol=1e-15)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("canberra", None),
        ("correlation", None),
        ("seuclidean", {"V": np.array([1.0, 2.0, 3.0, 4.0])}),
        ("mahalanobis", {"VI": np.diag([1.0, 2.0, 3.0, 4.0])}),
        ("minkowski", {"w": np.array([1.0, 0.0, 2.0, 1.0])}),
    ],
)
def test_metrics_of_scipy(metric: str, params: dict[str, Any] | None) -> None:
    X = _rows("normal")
    D = cdist(X[:30], X, metric, **(params or {}))
    distances, _ = KNeighborsRegressor(4, metric=metric, metric_params=params).fit(X, X[:, 0]).kneighbors(X[:30])
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :4], atol=1e-14)


@pytest.mark.parametrize("name", ["seuclidean", "mahalanobis"])
def test_scales_are_those_of_the_training_rows(name: str) -> None:
    """They used to be computed from the queries, too, so that distances depended on the other queries."""
    X = _rows("normal")
    model = KNeighborsRegressor(4, metric=name).fit(X, X[:, 0])
    key, scale = ("V", X.var(axis=0, ddof=1)) if name == "seuclidean" else ("VI", np.linalg.inv(np.cov(X.T)))
    wanted = np.sort(cdist(9 * X[:30], X, name, **{key: scale}), axis=1)[:, :4]
    np.testing.assert_allclose(model.kneighbors(9 * X[:30])[0], wanted, rtol=1e-10)
    np.testing.assert_allclose(model.kneighbors(9 * X[:1])[0], wanted[:1], rtol=1e-10)
    given = {"V": X.var(axis=0, ddof=1) if name == "seuclidean" else np.cov(X.T)}
    by_name = KNeighborsRegressor(4, metric=name, metric_params=given).fit(X, X[:, 0])
    np.testing.assert_allclose(by_name.kneighbors(9 * X[:30])[0], wanted, rtol=1e-10)


@pytest.mark.parametrize(
    ("metric", "params", "message"),
    [
        ("seuclidean", None, "drop constant columns"),
        ("mahalanobis", None, "is singular"),
        ("seuclidean", {"V": [1.0]}, "4 positive numbers"),
        ("mahalanobis", {"V": np.eye(3)}, r"shape \(4, 4\)"),
        ("mahalanobis", {"VI": np.eye(3)}, r"shape \(4, 4\)"),
        ("mahalanobis", {"W": 1}, "does not support 'W'"),
        ("haversine", None, "latitude and longitude"),
    ],
)
def test_metrics_that_do_not_fit_the_rows(metric: str, params: Any, message: str) -> None:
    X = _rows("constant column")
    with pytest.raises(ValueError, match=message):
        KNeighborsRegressor(metric=metric, metric_params=params).fit(X, X[:, 0])


def test_correlations_of_constant_rows_are_refused() -> None:
    X = np.vstack([_rows("normal")[:20], np.ones((1, 4))])
    with pytest.raises(ValueError, match="training row 20 .* drop those"):
        KNeighborsRegressor(metric="correlation").fit(X, X[:, 0]).kneighbors(X[:2])


@pytest.mark.parametrize(
    "name", ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule", "braycurtis"]
)
def test_metrics_of_true_and_false(name: str) -> None:
    B = np.vstack([_rows("binary")[:100, :6], np.zeros((1, 6))])
    distances, rows = KNeighborsRegressor(9, metric=name).fit(B, B[:, 0]).kneighbors(B[60:])
    with np.errstate(invalid="ignore"):
        D = np.nan_to_num(cdist(B[60:], B, name) if name == "braycurtis" else cdist(B[60:] > 0, B > 0, name))
    np.testing.assert_array_equal(rows, np.argsort(D, axis=1, kind="stable")[:, :9])
    np.testing.assert_array_equal(distances, np.sort(D, axis=1)[:, :9])


def test_missing_values_are_left_out_of_nan_euclidean(tmp_path: Path) -> None:
    X = _rows("normal")[:80].copy()
    X[np.random.default_rng(6).random(X.shape) < 0.3] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = KNeighborsRegressor(4, metric="nan_euclidean").fit(X, np.arange(float(len(X))))
    D = np.nan_to_num(nan_euclidean_distances(X, X), nan=np.inf)
    np.testing.assert_allclose(model.kneighbors(X)[0], np.sort(D, axis=1)[:, :4], atol=1e-7)
    summula.save(model, tmp_path / "model.summula")
    np.testing.assert_array_equal(summula.load(tmp_path / "model.summula").predict(X), model.predict(X))
    with pytest.raises(ValueError, match="without a column in which both"):
        model.predict(np.full((1, 4), np.nan))
    with pytest.raises(ValueError, match="infinite value"):
        model.predict(np.where(np.isnan(X), np.inf, X))
    with pytest.raises(ValueError, match="target y is missing in 1 rows .*first at row 5"):
        model.fit(X, np.where(np.arange(len(X)) == 5, np.nan, 1.0))
    with pytest.raises(ValueError, match="training rows have missing values"):
        model.set_params(metric="euclidean").predict(np.ones((1, 4)))
    with pytest.raises(ValueError, match="missing value"):
        model.fit(X, np.arange(float(len(X))))


def test_haversine_is_the_angle_on_the_sphere() -> None:
    """Paris is nearer to London than to Berlin, by the great circle; across the date line, too."""
    degrees = [[48.8566, 2.3522], [51.5074, -0.1278], [52.52, 13.405], [0.0, 179.9], [0.0, -179.9]]
    model = KNeighborsRegressor(2, metric="haversine").fit(np.radians(degrees), np.arange(5.0))
    distances, rows = model.kneighbors(np.radians([degrees[0], [0.0, 180.0]]))
    assert rows.tolist() == [[0, 1], [3, 4]]
    assert 6371.0 * distances[0, 1] == pytest.approx(343.6, abs=0.1)
    X = np.random.default_rng(5).uniform([-1.5, -3.1], [1.5, 3.1], (400, 2))
    wanted = haversine_distances(X[:40], X)
    found = KNeighborsRegressor(6, metric="haversine").fit(X, X[:, 0]).kneighbors(X[:40])
    np.testing.assert_allclose(found[0], np.sort(wanted, axis=1)[:, :6], atol=1e-14)
    of_sparse = KNeighborsRegressor(6, metric="haversine").fit(sparse.csr_matrix(X), X[:, 0]).kneighbors(X[:40])
    np.testing.assert_array_equal(of_sparse[0], found[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distance_metric_objects_of_scikit_learn(dtype: Any) -> None:
    X = _rows("ties")[:80]
    metric = DistanceMetric.get_metric("manhattan", dtype=dtype)
    found = KNeighborsRegressor(5, metric=metric).fit(X, X[:, 0]).kneighbors(X)
    for a, b in zip(found, nearest_rows(X, X, 5, "manhattan"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_distances_of_all_pairs_are_computed_a_few_queries_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    X = _rows("ties")
    wanted = KNeighborsRegressor(5, metric="canberra").fit(X, X[:, 0]).kneighbors(X)
    most = []
    monkeypatch.setattr(pairwise, "_DISTANCES", 7 * len(X))
    monkeypatch.setattr(pairwise, "cdist", lambda A, B, *args, **kw: most.append(len(A)) or cdist(A, B, *args, **kw))
    found = KNeighborsRegressor(5, metric="canberra").fit(X, X[:, 0]).kneighbors(X)
    assert max(most) == 7
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_functions_and_given_distances_are_the_metric_they_compute() -> None:
    X = _rows("ties")[:80]
    wanted = KNeighborsRegressor(5, metric="manhattan").fit(X, X[:, 0])

    def distance(x: Array, z: Array, factor: float) -> float:
        return factor * float(np.abs(x - z).sum())

    by_function = KNeighborsRegressor(5, metric=distance, metric_params={"factor": 1.0}).fit(X, X[:, 0])
    given = KNeighborsRegressor(5, metric="precomputed").fit(cdist(X, X, "cityblock"), X[:, 0])
    for a, b, c in zip(
        wanted.kneighbors(X), by_function.kneighbors(X), given.kneighbors(cdist(X, X, "cityblock")), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(wanted.kneighbors()[1], given.kneighbors()[1])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "hamming", "minkowski"])
@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e40])
def test_sparse_neighbours_are_those_of_all_distances_to_the_bit(metric: str, factor: float) -> None:
    rng = np.random.default_rng(8)
    X = factor * np.where(rng.random((300, 25)) < 0.3, np.round(rng.normal(size=(300, 25)), 1), 0.0)
    X[40:50] = X[3]  # ties
    X[60:64] = 0.0
    model = KNeighborsRegressor(7, metric=metric, p=3).fit(sparse.csr_matrix(X), X[:, 0])
    with np.errstate(over="ignore"):
        wanted = nearest_rows(X, X[:70], 7, metric, 3.0)
    distances, rows = model.kneighbors(sparse.csr_matrix(X[:70]))
    np.testing.assert_array_equal(rows, wanted[1])
    np.testing.assert_allclose(distances, wanted[0] / (25 if metric == "hamming" else 1), rtol=1e-13)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "hamming", "cosine"])
def test_sparse_rows_give_the_neighbours_of_dense_ones(metric: str) -> None:
    X = sparse.random(200, 30, 0.2, random_state=np.random.default_rng(1), format="csr")
    X.data = np.ceil(4 * X.data)
    dense = KNeighborsRegressor(6, metric=metric).fit(X.toarray(), np.arange(200.0))
    of_sparse = KNeighborsRegressor(6, metric=metric).fit(X, np.arange(200.0))
    wanted = dense.kneighbors(X.toarray())
    for model, Q in ((dense, X), (of_sparse, X), (of_sparse, X.toarray())):
        distances, rows = model.kneighbors(Q)
        np.testing.assert_allclose(distances, wanted[0], atol=1e-15)
        if metric != "cosine":
            np.testing.assert_array_equal(rows, wanted[1])


def test_threads_chunks_and_layouts_make_no_difference() -> None:
    rng = np.random.default_rng(7)
    for d in (3, 24):
        X, Q = np.round(rng.normal(size=(3_000, d)), 1), np.round(rng.normal(size=(1_500, d)), 1)
        wanted = KNeighborsRegressor().fit(X, X[:, 0]).kneighbors(Q)
        for options in ({"n_jobs": 1}, {"chunk_rows": 97}):
            with summula.engine("threads", **options):
                model = KNeighborsRegressor().fit(np.asfortranarray(X), X[:, 0])
                for a, b in zip(wanted, model.kneighbors(np.asfortranarray(Q)), strict=True):
                    np.testing.assert_array_equal(a, b)


def test_the_tree_has_every_row_once_and_boxes_around_them() -> None:
    X = _rows("duplicates")
    index = BlockIndex.build(X, chosen_metric("euclidean", 2.0, None, 3), tree=True)
    blocks = index.blocks
    assert np.sort(blocks.members).tolist() == list(range(len(X)))

    def check(node: int, first: int, size: int) -> None:
        rows = X[blocks.members[first * BLOCK : (first + size) * BLOCK]]
        np.testing.assert_array_equal(blocks.boxes[node], [rows.min(axis=0), rows.max(axis=0)])
        if size > 1:
            left = (size + 1) // 2
            check(node + 1, first, left)
            check(node + 2 * left, first + left, size - left)

    check(0, 0, len(blocks.values))
    np.testing.assert_array_equal(blocks.values[1].T, X[blocks.members[BLOCK : 2 * BLOCK]])


def test_which_index_is_chosen() -> None:
    X = _rows("far")
    metric = chosen_metric("euclidean", 2.0, None, 20)
    assert isinstance(build_index(np.tile(X, (8, 1)), metric, "auto"), ProductIndex)
    assert isinstance(build_index(X, metric, "auto").prepared, ProductIndex)  # type: ignore[attr-defined]
    assert len(build_index(X, metric, "ball_tree").blocks.boxes)  # type: ignore[attr-defined]
    tiny = build_index(_rows("tiny"), metric, "auto")
    assert isinstance(tiny.prepared, BlockIndex)  # type: ignore[attr-defined]  # squares that underflow


@pytest.mark.parametrize("name", ["far", "outlier", "binary", "single", "tiny"])
def test_a_small_table_gives_the_same_neighbours_of_few_queries_and_of_many(name: str) -> None:
    X = _rows(name)
    index = build_index(X, chosen_metric("euclidean", 2.0, None, 20), "auto")
    assert isinstance(index, DeferredIndex)
    few, many = [index.search(X[a : a + 4], 7) for a in (0, 300)], index.search(X, 7)
    for a, found in zip((0, 300), few, strict=True):
        np.testing.assert_array_equal(found.values, many.values[a : a + 4])
        np.testing.assert_array_equal(found.rows, many.rows[a : a + 4])


def test_a_tree_is_used_where_rows_lie_near_few_dimensions() -> None:
    rng = np.random.default_rng(9)
    metric = chosen_metric("euclidean", 2.0, None, 12)
    spread, flat = rng.normal(size=(2_000, 12)), rng.normal(size=(2_000, 2)) @ rng.normal(size=(2, 12))
    assert isinstance(build_index(spread, metric, "auto"), DeferredIndex)
    assert isinstance(build_index(flat, metric, "auto"), BlockIndex)
    found = [build_index(spread, metric, name).search(spread[:50], 3) for name in ("auto", "kd_tree")]
    np.testing.assert_array_equal(*[one.rows for one in found])
    np.testing.assert_array_equal(*[one.values for one in found])
