"""Mini-batch k-means: the same batches for every container, and nearly the inertia of full passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.cluster import KMeans, MiniBatchKMeans


@pytest.fixture(scope="module")
def X() -> Any:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 3))[rng.integers(0, 6, 5000)] * 8 + rng.normal(size=(5000, 3))
    return rows[np.argsort(rows[:, 0])]  # sorted: batches have to come from many places


def test_it_comes_near_the_inertia_of_whole_passes(X: Any) -> None:
    best = KMeans(6, n_init=10, random_state=0).fit(X).inertia_
    model = MiniBatchKMeans(6, batch_size=256, n_init=5, random_state=0).fit(X)
    assert model.inertia_ <= 1.05 * best
    assert model.inertia_ == pytest.approx(-model.score(X))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert 1 <= model.n_iter_ <= 100
    assert model.n_steps_ > 1


@pytest.mark.parametrize("form", ["Fortran order", "table", "stream", "sparse"])
def test_the_container_does_not_change_the_result(X: Any, form: str) -> None:
    columns = {f"x{j}": X[:, j] for j in range(3)}
    rows = {
        "Fortran order": lambda: np.asfortranarray(X),
        "table": lambda: pa.table(columns),
        "stream": lambda: summula.scan(pa.table(columns).to_reader(max_chunksize=900)),
        "sparse": lambda: sparse.csr_array(X),
    }[form]()
    options: dict[str, Any] = {"batch_size": 100, "random_state": 1, "max_iter": 2, "max_no_improvement": None}
    expected, found = MiniBatchKMeans(6, **options).fit(X), MiniBatchKMeans(6, **options).fit(rows)
    if form == "sparse":
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
    else:
        assert found.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        assert found.inertia_ == expected.inertia_


def test_a_centre_is_the_mean_of_its_rows(X: Any) -> None:
    """One cluster: every row is processed once per epoch, for any batches."""
    options: dict[str, Any] = {"max_iter": 1, "max_no_improvement": None, "random_state": 0}
    model = MiniBatchKMeans(1, batch_size=333, **options).fit(X)
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-10)
    w = np.arange(len(X)) % 4
    weighted = MiniBatchKMeans(1, batch_size=333, **options).fit(X, sample_weight=w)
    np.testing.assert_allclose(weighted.cluster_centers_[0], np.average(X, axis=0, weights=w), rtol=1e-10)


def test_batches_may_be_given_one_by_one(X: Any) -> None:
    model = MiniBatchKMeans(1, random_state=0)
    for start in range(0, len(X), 1000):
        model.partial_fit(X[start : start + 1000])
    assert model.n_steps_ == 5
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-10)
    several = MiniBatchKMeans(6, random_state=0, compute_labels=False)
    for _ in range(5):
        for start in range(0, 5000, 500):
            several.partial_fit(X[start::10][:500])
    assert -several.score(X) <= 1.3 * KMeans(6, n_init=5, random_state=0).fit(X).inertia_
    assert not hasattr(several, "labels_")


def test_labels_and_inertia_of_the_last_batch(X: Any) -> None:
    model = MiniBatchKMeans(6, random_state=0)
    for batch in (X[::5], X[1::5]):
        model.partial_fit(batch)
        assert model.labels_.tolist() == model.predict(batch).tolist()
        assert model.inertia_ == pytest.approx(-model.score(batch), rel=1e-9)


def test_bad_values() -> None:
    for wrong in ({"batch_size": 0}, {"init_size": -1}, {"reassignment_ratio": -0.1}, {"n_clusters": 0}):
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of MiniBatchKMeans"):
            MiniBatchKMeans(**wrong).fit(np.ones((20, 2)))


def test_a_rising_number_of_epochs_is_warned_of(X: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=1 epochs"):
        MiniBatchKMeans(6, max_iter=1, batch_size=1000, random_state=0).fit(X)


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_fit_transform_takes_weights_by_position(X: Any, kind: Any) -> None:
    weight = np.arange(len(X)) % 3
    expected = kind(3, random_state=0).fit(X, sample_weight=weight)
    found = kind(3, random_state=0).fit_transform(X, None, weight)
    assert found.tobytes() == expected.transform(X).tobytes()
    frame = kind(3, random_state=0).set_output(transform="pandas").fit_transform(X, sample_weight=weight)
    assert list(frame.columns) == list(expected.get_feature_names_out())
