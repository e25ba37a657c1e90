"""Nearest-neighbour classification and regression: textbook values, leave-one-out, scikit-learn, bad input."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import neighbors as peers
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import summula
from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor, neighbor_search

Array = Any


def _data(rows: int = 400) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=rows), [-0.5, 0.5]), X @ np.arange(5.0)


def test_equal_distances_go_to_the_smaller_row_number() -> None:
    X = [[1.0], [-1.0], [1.0], [-1.0]]
    model = KNeighborsClassifier(3).fit(X, ["a", "b", "c", "d"])
    assert model.kneighbors([[0.0]])[1].tolist() == [[0, 1, 2]]
    assert model.predict([[0.0]]).tolist() == ["a"]  # ties go to the first class


def test_inverse_distances() -> None:
    X, y = [[0.0], [3.0], [4.0]], [6.0, 0.0, 12.0]
    model = KNeighborsRegressor(2, weights="distance").fit(X, y)
    # weights 1 / 1 and 1 / 2, then a row at distance 0, which has all the weight
    assert model.predict([[1.0], [3.0]]).tolist() == [4.0, 0.0]
    shares = KNeighborsClassifier(2, weights="distance").fit(X, ["a", "b", "b"]).predict_proba([[1.0]])
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3]])


def test_weights_at_the_ends_of_the_range() -> None:
    model = KNeighborsRegressor(2, p=1, weights="distance").fit([[0.0], [3e-309], [4.0]], [6.0, 0.0, 12.0])
    np.testing.assert_allclose(model.predict([[1e-309]]), [4.0])  # 1 / distance would overflow
    far = KNeighborsRegressor(2, weights="distance", metric="sqeuclidean").fit([[0.0], [1.0]], [1.0, 3.0])
    assert far.predict([[1e200]]).tolist() == [2.0]  # both distances overflow


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: np.exp(-d)])
@pytest.mark.parametrize("options", [{}, {"p": 1}, {"metric": "cosine"}, {"algorithm": "brute"}])
def test_predictions_are_those_of_scikit_learn(weights: Any, options: dict[str, Any]) -> None:
    X, labels, y = _data()
    train, test = slice(0, 300), slice(300, None)
    ours = KNeighborsClassifier(7, weights=weights, **options).fit(X[train], labels[train])
    theirs = peers.KNeighborsClassifier(7, weights=weights, **options).fit(X[train], labels[train])
    np.testing.assert_array_equal(ours.predict(X[test]), theirs.predict(X[test]))
    np.testing.assert_allclose(ours.predict_proba(X[test]), theirs.predict_proba(X[test]), atol=1e-12)
    of_numbers = KNeighborsRegressor(7, weights=weights, **options).fit(X[train], y[train])
    their_numbers = peers.KNeighborsRegressor(7, weights=weights, **options).fit(X[train], y[train])
    np.testing.assert_allclose(of_numbers.predict(X[test]), their_numbers.predict(X[test]), rtol=1e-9)
    for a, b in zip(ours.kneighbors(), theirs.kneighbors(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    assert (ours.kneighbors_graph() != theirs.kneighbors_graph()).nnz == 0
    np.testing.assert_allclose(
        ours.kneighbors_graph(X[test], 3, mode="distance").toarray(),
        theirs.kneighbors_graph(X[test], 3, mode="distance").toarray(),
        atol=1e-7,
    )


def test_several_targets_are_predicted_as_each_alone() -> None:
    X, labels, y = _data()
    both = KNeighborsClassifier().fit(X, np.column_stack([labels, labels > 0]))
    np.testing.assert_array_equal(both.predict(X)[:, 0], KNeighborsClassifier().fit(X, labels).predict(X))
    np.testing.assert_array_equal(both.predict_proba(X)[1], KNeighborsClassifier().fit(X, labels > 0).predict_proba(X))
    numbers = KNeighborsRegressor().fit(X, np.column_stack([y, -y]))
    np.testing.assert_array_equal(numbers.predict(X)[:, 1], -KNeighborsRegressor().fit(X, y).predict(X))


@pytest.mark.parametrize("d", [2, 20])
def test_training_rows_are_not_their_own_neighbours(d: int) -> None:
    X = np.random.default_rng(2).integers(0, 3, (300, d)).astype(float)  # many equal rows
    model = KNeighborsRegressor(4).fit(X, np.arange(300.0))
    rows = model.kneighbors()[1]
    assert not (rows == np.arange(300)[:, None]).any()
    for i in (0, 17, 299):
        others = np.delete(np.arange(300), i)
        alone = KNeighborsRegressor(4).fit(X[others], others.astype(float))
        assert others[alone.kneighbors(X[i : i + 1])[1][0]].tolist() == rows[i].tolist()
        assert model.predict(None)[i] == alone.predict(X[i : i + 1])[0]


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: 1 / (1 + d)])
def test_the_curve_is_the_error_of_leaving_out_each_row(weights: Any) -> None:
    X, labels, y = _data(120)
    classes, numbers = (
        KNeighborsClassifier(weights=weights).fit(X, labels),
        KNeighborsRegressor(weights=weights).fit(X, y),
    )
    errors, squares = classes.loo_curve(9), numbers.loo_curve(9)
    for k in (1, 4, 9):
        classes.set_params(n_neighbors=k)
        numbers.set_params(n_neighbors=k)
        np.testing.assert_allclose(errors[k - 1], (classes.predict(None) != labels).mean())
        np.testing.assert_allclose(squares[k - 1], ((numbers.predict(None) - y) ** 2).mean(), rtol=1e-12)
    assert len(classes.set_params(n_neighbors=5).loo_curve()) == 10


def test_iris_by_leaving_one_out() -> None:
    """The nearest other row has a wrong class for 6 of the 150 rows, and so have the three nearest."""
    X, y = load_iris(return_X_y=True)
    curve = KNeighborsClassifier().fit(X, y).loo_curve(3)
    np.testing.assert_allclose(150 * curve[[0, 2]], [6.0, 6.0])


def test_parameters_may_change_after_the_fit() -> None:
    X, _, y = _data()
    model = KNeighborsRegressor().fit(X, y).set_params(p=1, n_neighbors=3)
    np.testing.assert_array_equal(model.predict(X), KNeighborsRegressor(3, p=1).fit(X, y).predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_copies_share_the_index_and_refits_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, y = _data()
    built = []
    build = neighbor_search.build_index
    monkeypatch.setattr(neighbor_search, "build_index", lambda *given: built.append(given) or build(*given))
    model = KNeighborsRegressor().fit(X, y)
    twin = copy.copy(model)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert len(built) == 1
    model.fit(X + 1.0, y)
    twin.set_params(p=1)
    np.testing.assert_array_equal(twin.predict(X), KNeighborsRegressor(p=1).fit(X, y).predict(X))
    np.testing.assert_array_equal(model.predict(X + 1.0), KNeighborsRegressor().fit(X + 1.0, y).predict(X + 1.0))


def test_files_are_predicted_batch_by_batch(tmp_path: Path) -> None:
    X, _, y = _data()
    names = list("abcde")
    pd.DataFrame(X, columns=names).to_parquet(tmp_path / "rows.parquet")
    model = KNeighborsRegressor().fit(pd.DataFrame(X, columns=names), y)
    found = np.concatenate(list(model.predict(summula.scan(tmp_path / "rows.parquet"))))
    np.testing.assert_array_equal(found, model.predict(pd.DataFrame(X, columns=names)))


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_bad_input_is_refused(kind: Any) -> None:
    X, y, _ = _data(20)
    with pytest.raises(ValueError, match="n_neighbors <= n_samples_fit, but n_neighbors = 21.*set n_neighbors to 20"):
        kind(21).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="n_neighbors < n_samples_fit"):
        kind(20).fit(X, y).kneighbors()
    for options, words in (
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"n_neighbors": 2.5}, "'n_neighbors' parameter"),
        ({"metric": "euclid"}, "'metric' parameter"),
        ({"p": 0}, "'p' parameter"),
        ({"p": 0.5, "algorithm": "kd_tree"}, "set p >= 1"),
        ({"weights": "inverse"}, "'weights' parameter"),
        ({"metric": "precomputed"}, "square matrix"),
        ({"metric_params": {"w": [1.0]}}, "5 non-negative numbers"),
        ({"metric": "manhattan", "metric_params": {"q": 1}}, "does not support 'q'"),
    ):
        with pytest.raises(ValueError, match=words):
            kind(**options).fit(X, y)
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        model.predict(X[:, :4])
    with pytest.raises(ValueError, match="NaN|missing"):
        model.predict(np.where(X > 2, X, np.nan))
    with pytest.raises(ValueError, match="infinit"):
        kind().fit(np.where(np.arange(20)[:, None] == 3, np.inf, X), y)
    for k, words in ((0, "n_neighbors > 0"), (21, "n_neighbors = 21")):
        with pytest.raises(ValueError, match=words):
            model.kneighbors(X, k)
    with pytest.raises(TypeError, match="integer"):
        model.kneighbors(X, 1.5)
    with pytest.raises(ValueError, match="must be >= 0"):
        kind(metric="precomputed").fit(-np.ones((20, 20)), y)
    with pytest.raises(ValueError, match="5 neighbors are required.*only 1 neighbors"):
        kind(metric="precomputed").fit(np.ones((20, 20)), y).predict(sparse.csr_matrix(np.eye(20)))
    with pytest.raises(ValueError, match="mode"):
        model.kneighbors_graph(X, mode="weights")
    with pytest.raises(ValueError, match="shape"):
        kind(weights=lambda d: d[:, :1]).fit(X, y).predict(X)


def test_weights_of_zero_are_refused() -> None:
    X, y, _ = _data(20)
    with pytest.raises(ValueError, match="zero weights"):
        KNeighborsClassifier(weights=lambda d: 0 * d).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="zero weights"):
        KNeighborsRegressor(weights=lambda d: 0 * d).fit(X, y).predict(X)


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_weights_that_are_not_finite_are_refused(kind: Any) -> None:
    """They gave class proportions of NaN, for which the first class was predicted."""
    X, y, _ = _data(20)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="weights='distance'"):
        kind(weights=lambda d: 1 / d).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="zero weights"):
        kind(weights=lambda d: 0 * d).fit(X, y).loo_curve(3)


def test_given_distances_may_be_a_sparse_graph() -> None:
    X, labels, _ = _data(120)
    graph = peers.KNeighborsTransformer(n_neighbors=20).fit(X[:100])
    of_train, of_test = graph.transform(X[:100]), graph.transform(X[100:])
    wanted = KNeighborsClassifier(7, weights="distance").fit(X[:100], labels[:100])
    D = np.sqrt(((X[:, None] - X[None, :100]) ** 2).sum(axis=2))
    for fitted in (of_train, D[:100]):
        model = KNeighborsClassifier(7, weights="distance", metric="precomputed").fit(fitted, labels[:100])
        for queries in (of_test, D[100:]):
            np.testing.assert_array_equal(model.kneighbors(queries)[1], wanted.kneighbors(X[100:])[1])
            np.testing.assert_allclose(model.predict_proba(queries), wanted.predict_proba(X[100:]))
        np.testing.assert_array_equal(model.kneighbors()[1], wanted.kneighbors()[1])
    pipeline = make_pipeline(peers.KNeighborsTransformer(n_neighbors=20), KNeighborsClassifier(metric="precomputed"))
    plain = KNeighborsClassifier().fit(X[:100], labels[:100])
    np.testing.assert_array_equal(pipeline.fit(X[:100], labels[:100]).predict(X[100:]), plain.predict(X[100:]))


def test_attributes_of_scikit_learn() -> None:
    X, labels, _ = _data(30)
    for options in ({}, {"p": 1}, {"p": 3}, {"metric": "cosine"}, {"metric": "chebyshev"}):
        ours = KNeighborsClassifier(**options).fit(X, labels)
        theirs = peers.KNeighborsClassifier(**options).fit(X, labels)
        assert ours.effective_metric_ == theirs.effective_metric_
        assert ours.effective_metric_params_.get("p") == (3 if options == {"p": 3} else None)
        assert ours.outputs_2d_ == theirs.outputs_2d_
    assert KNeighborsClassifier().fit(X, np.c_[labels, labels]).outputs_2d_


def test_powers_below_1_warn_unless_all_rows_are_measured() -> None:
    X, _, y = _data(50)
    with pytest.warns(UserWarning, match="not distance metrics"):
        model = KNeighborsRegressor(3, p=0.5).fit(X, y)
    D = (np.abs(X[:, None] - X[None]) ** 0.5).sum(axis=2) ** 2
    np.testing.assert_array_equal(model.kneighbors(X)[1], np.argsort(D, axis=1, kind="stable")[:, :3])
    KNeighborsRegressor(3, p=0.5, algorithm="brute").fit(X, y)


def test_saved_models_predict_the_same(tmp_path: Path) -> None:
    X, labels, _ = _data()
    for rows in (X, sparse.csr_matrix(np.round(X))):
        model = KNeighborsClassifier(weights="distance").fit(rows, labels)
        summula.save(model, tmp_path / "model.summula")
        loaded = summula.load(tmp_path / "model.summula")
        np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
