"""Nystroem, RBFSampler and PolynomialCountSketch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import summula
from summula.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from summula.kernels import Gaussian, Polynomial
from summula.preprocessing import StandardScaler
from summula.svm import SVC, LinearSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))

MODELS = [
    Nystroem(n_components=20, random_state=3),
    RBFSampler(n_components=20, random_state=3, gamma="scale"),
    PolynomialCountSketch(n_components=20, random_state=3, coef0=1.0),
]


def test_random_fourier_features_approximate_the_gaussian_kernel() -> None:
    Z = RBFSampler(gamma=0.3, n_components=10_000, random_state=0).fit_transform(X)
    # The error of a mean of 10,000 bounded terms is about 0.01.
    assert np.abs(Z @ Z.T - Gaussian(gamma=0.3)(X)).max() < 0.06


def test_sketches_approximate_the_polynomial_kernel() -> None:
    rows = X / np.linalg.norm(X, axis=1)[:, None]
    Z = PolynomialCountSketch(degree=3, coef0=0.5, n_components=8_192, random_state=0).fit_transform(rows)
    assert np.abs(Z @ Z.T - Polynomial(3, 0.5)(rows)).mean() < 0.05


def test_nystroem_is_exact_on_its_basis_and_for_all_rows() -> None:
    model = Nystroem(Gaussian(1.0), n_components=30, random_state=0).fit(X)
    basis = model.component_indices_
    Z = model.transform(X[basis])
    np.testing.assert_allclose(Z @ Z.T, Gaussian(1.0)(X[basis]), atol=1e-8)
    K = Gaussian(1.0)
    expected = K(X, X[basis]) @ np.linalg.pinv(K(X[basis])) @ K(X[basis], X)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, expected, atol=1e-5)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_files_frames_sparse_rows_and_chunks_give_the_same_features(model: Any, tmp_path: Any) -> None:
    expected = model.fit_transform(X)
    np.testing.assert_allclose(model.fit_transform(sparse.csr_array(X)), expected, atol=1e-10)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_array_equal(model.fit_transform(frame), expected)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = summula.scan(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(np.vstack(list(model.fit(scan).transform(scan))), expected)
    assert list(model.get_feature_names_out()[:1]) == [f"{type(model).__name__.lower()}0"]


LABELS = (np.linalg.norm(X, axis=1) > 1.5).astype(int)


def in_a_file(folder: Any) -> Any:
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=LABELS).to_parquet(folder / "labelled.parquet", row_group_size=90)
    return summula.scan(folder / "labelled.parquet")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_pipelines_of_features_and_a_linear_machine_read_files(model: Any, tmp_path: Any) -> None:
    scan = in_a_file(tmp_path)
    in_memory = make_pipeline(StandardScaler(), clone(model), LinearSVC(C=10.0)).fit(X, LABELS)
    streamed = make_pipeline(StandardScaler(), clone(model), LinearSVC(C=10.0)).fit(scan, "y")
    np.testing.assert_array_equal(streamed[-1].coef_, in_memory[-1].coef_)
    np.testing.assert_array_equal(np.concatenate(list(streamed.predict(scan))), in_memory.predict(X))
    assert streamed.score(scan, "y") == in_memory.score(X, LABELS)
    frame = pd.DataFrame(X[:5], columns=["a", "b", "c"])
    assert streamed.predict(frame).tolist() == in_memory.predict(X[:5]).tolist()


def test_a_stream_is_classified_by_what_the_error_of_svc_names(tmp_path: Any) -> None:
    scan = in_a_file(tmp_path)
    with pytest.raises(summula.DataError, match=r"make_pipeline\(Nystroem\(\), LinearSVC\(\)\)"):
        SVC().fit(scan, "y")
    assert make_pipeline(Nystroem(), LinearSVC()).fit(scan, "y").score(scan, "y") > 0.95


def test_transformed_files_name_what_is_wrong_in_them(tmp_path: Any) -> None:
    rows = X.copy()
    rows[123, 1] = np.nan
    pd.DataFrame(rows, columns=["a", "b", "c"]).assign(y=LABELS).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(summula.DataError, match="'b' has 1 missing value"):
        make_pipeline(RBFSampler(random_state=0), LinearSVC()).fit(summula.scan(tmp_path / "bad.parquet"), "y")
    transformed = RBFSampler(random_state=0).fit_transform(in_a_file(tmp_path), "y")
    with pytest.raises(summula.DataError, match="requires y"):
        LinearSVC().fit(transformed, None)
    with pytest.raises(ValueError, match="has 100 features, but LinearSVC is expecting 3"):
        LinearSVC().fit(X, LABELS).predict(transformed)


def test_more_components_than_rows_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="n_components=500 is more than the 400 rows"):
        assert Nystroem(n_components=500).fit_transform(X).shape == (400, 400)
