"""Number of clusters: silhouettes against scikit-learn's, and the elbow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples as peer

from summula.cluster import KMeans, elbow, silhouette_samples


@pytest.fixture(scope="module")
def X() -> Any:
    rng = np.random.default_rng(0)
    return np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [9.0, 9.0]])[np.arange(800) % 4] + rng.normal(size=(800, 2))


def test_silhouettes_are_scikit_learns(X: Any) -> None:
    labels = np.append(np.arange(798) % 3, [7, 9])  # two singleton clusters
    np.testing.assert_allclose(silhouette_samples(X, labels), peer(X, labels), rtol=1e-9, atol=1e-12)
    assert (silhouette_samples(X, np.zeros(800)) == 0).all()


@pytest.mark.parametrize("criterion", ["silhouette", "elbow"])
def test_four_clusters_are_found(X: Any, criterion: str) -> None:
    model = KMeans(n_init=5, random_state=0).select(X, range(2, 8), criterion=criterion)
    assert model.n_clusters == 4
    assert sorted(model.selection_) == list(range(2, 8))
    inertia, silhouette = model.selection_[4]
    assert inertia == model.inertia_
    assert silhouette == pytest.approx(peer(X, model.labels_).mean(), rel=1e-9)


def test_a_sample_has_nearly_the_silhouette_of_all_rows(X: Any) -> None:
    model = KMeans(4, n_init=5, random_state=0).fit(X)
    assert model.silhouette(X, sample_size=400) == pytest.approx(model.silhouette(X), abs=0.05)


def test_what_cannot_be_chosen_from() -> None:
    with pytest.raises(ValueError, match="criterion must be 'silhouette' or 'elbow'; got 'bic'"):
        KMeans().select(np.ones((5, 1)), criterion="bic")
    with pytest.raises(ValueError, match="pass the numbers of clusters to try"):
        KMeans().select(np.ones((5, 1)), [])
    assert elbow({2: 1.0, 3: 1.0}) == 2
