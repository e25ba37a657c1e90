"""Bins: edges and codes against scikit-learn, definitions, weights, samples of rows and files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.preprocessing as peers
from sklearn.cluster import KMeans

import summula
from summula.core.errors import DataError, ParameterError
from summula.preprocessing import KBinsDiscretizer

X = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])  # scikit-learn performs only a few k-means steps
@pytest.mark.parametrize("encode", ["ordinal", "onehot", "onehot-dense"])
def test_bins_are_those_of_scikit_learn(strategy: str, encode: str) -> None:
    options: dict[str, Any] = {"n_bins": [3, 5, 4], "encode": encode, "strategy": strategy}
    ours, theirs = KBinsDiscretizer(**options).fit(X), peers.KBinsDiscretizer(**options).fit(X)
    for a, b in zip(ours.bin_edges_, theirs.bin_edges_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    a, b = ours.transform(X), theirs.transform(X)
    np.testing.assert_array_equal(a.toarray() if encode == "onehot" else a, b.toarray() if encode == "onehot" else b)
    np.testing.assert_allclose(ours.inverse_transform(a), theirs.inverse_transform(b), rtol=1e-6)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_centres_do_not_move_under_another_step_of_k_means() -> None:
    edges = KBinsDiscretizer(4, strategy="kmeans", encode="ordinal").fit(X[:, :1]).bin_edges_[0]
    own = np.digitize(X[:, 0], edges[1:-1])
    centres = np.array([X[own == b, 0].mean() for b in range(4)])
    np.testing.assert_allclose(edges[1:-1], (centres[1:] + centres[:-1]) / 2, rtol=1e-12)
    start = np.linspace(X[:, 0].min(), X[:, 0].max(), 9)[1::2, None]
    assert KMeans(4, init=start, n_init=1, tol=0.0).fit(X[:, :1]).inertia_ == pytest.approx(
        ((X[:, 0] - centres[own]) ** 2).sum()
    )


@pytest.mark.parametrize("strategy", ["quantile", "kmeans"])
@pytest.mark.parametrize("method", ["inverted_cdf", "averaged_inverted_cdf"])
def test_weights_are_repetitions(strategy: str, method: str) -> None:
    weight = np.arange(300) % 3
    options: dict[str, Any] = {"strategy": strategy, "quantile_method": method, "encode": "ordinal"}
    weighted = KBinsDiscretizer(4, **options).fit(X, sample_weight=weight)
    repeated = KBinsDiscretizer(4, **options).fit(np.repeat(X, weight, axis=0))
    for a, b in zip(weighted.bin_edges_, repeated.bin_edges_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_sample_of_the_rows_is_the_same_for_a_file(tmp_path: Any) -> None:
    np.save(tmp_path / "rows.npy", X)
    make = lambda: KBinsDiscretizer(4, encode="ordinal", subsample=100, random_state=3)  # noqa: E731
    array, file = make().fit(X), make().fit(summula.scan(tmp_path / "rows.npy"))
    for a, b in zip(array.bin_edges_, file.bin_edges_, strict=True):
        np.testing.assert_array_equal(a, b)
    blocks = file.transform(summula.scan(tmp_path / "rows.npy"))
    np.testing.assert_array_equal(np.concatenate(list(blocks)), array.transform(X))
    other = KBinsDiscretizer(4, encode="ordinal", subsample=100, random_state=4).fit(X)
    assert not np.array_equal(other.bin_edges_[0], array.bin_edges_[0])


def test_constant_columns_and_narrow_bins_are_named() -> None:
    with pytest.warns(UserWarning, match="Feature 1 is constant"):
        model = KBinsDiscretizer(3, encode="ordinal").fit([[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]])
    assert model.n_bins_.tolist() == [3, 1]
    with pytest.warns(UserWarning, match="too small .* in feature 0"):
        model = KBinsDiscretizer(4, encode="ordinal").fit([[0.0], [0.0], [0.0], [1.0], [2.0]])
    assert model.n_bins_[0] < 4


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: KBinsDiscretizer(1).fit(X), ParameterError, "'n_bins' parameter"),
        (lambda: KBinsDiscretizer([2, 3]).fit(X), ParameterError, r"shape \(n_features,\)"),
        (lambda: KBinsDiscretizer([2, 3, 1]).fit(X), ParameterError, "invalid number of bins at indices 2"),
        (lambda: KBinsDiscretizer(dtype=int).fit(X), ParameterError, "'dtype' parameter .* float32 or float64"),
        (lambda: KBinsDiscretizer(quantile_method="linear").fit(X, None, X[:, 0] ** 2), ParameterError, "inverted_cdf"),
        (lambda: KBinsDiscretizer().fit(np.where(X > 1, np.nan, X)), DataError, "NaN|missing"),
        (lambda: KBinsDiscretizer().fit(X).inverse_transform(X), DataError, "Expecting 15, received 3"),
    ],
)
def test_bad_input(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
