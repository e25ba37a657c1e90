"""Kernels: values, feature maps, sums and products, Mercer's condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

import summula
from summula.kernels import Custom, Gaussian, Kernel, Laplacian, Linear, Polynomial, Sigmoid, is_mercer
from summula.kernels.rows import rows_of

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(1_300, 5)), rng.normal(size=(40, 5))

VALUES = {
    "linear": (Linear(), lambda A, B: A @ B.T),
    "polynomial": (Polynomial(3, 0.5, 2.0), lambda A, B: (2.0 * A @ B.T + 0.5) ** 3),
    "gaussian": (Gaussian(1.5), lambda A, B: np.exp(-cdist(A, B, "sqeuclidean") / (2 * 1.5**2))),
    "laplacian": (Laplacian(0.3), lambda A, B: np.exp(-0.3 * cdist(A, B, "cityblock"))),
    "sigmoid": (Sigmoid(0.2, 0.1), lambda A, B: np.tanh(0.2 * A @ B.T + 0.1)),
    "function": (Custom(pairwise.cosine_similarity), pairwise.cosine_similarity),
    "sum": (Gaussian() + 0.5 * Linear(), lambda A, B: np.exp(-cdist(A, B, "sqeuclidean") / 2) + 0.5 * A @ B.T),
    "product": (
        Gaussian(gamma=0.1) * Polynomial(2),
        lambda A, B: np.exp(-0.1 * cdist(A, B, "sqeuclidean")) * (A @ B.T + 1) ** 2,
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_the_formula(name: str) -> None:
    kernel, formula = VALUES[name]
    np.testing.assert_allclose(kernel(X, Z), formula(X, Z), rtol=1e-10, atol=1e-12)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K, formula(X, X), rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(rows_of(X)), rtol=1e-12)


@pytest.mark.parametrize("name", ["linear", "polynomial", "gaussian", "laplacian", "sigmoid", "sum"])
def test_sparse_rows_have_the_values_of_dense_ones(name: str) -> None:
    kernel = VALUES[name][0]
    S = sparse.csr_array(np.where(X[:200] > 0.5, X[:200], 0.0))
    np.testing.assert_allclose(kernel(S, sparse.csr_array(Z)), kernel(S.toarray(), Z), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Gaussian() * Laplacian()], ids=str)
@pytest.mark.parametrize("far", [[1], [0, 1, 2, 3, 4]], ids=["one column", "every column"])
def test_sparse_rows_far_from_zero_keep_their_distances(kernel: Kernel, far: list[int]) -> None:
    near = np.round(np.where(X[:200] > 0.5, X[:200], 0.0) * 2**10) / 2**10
    near[:, far] = np.round(X[:200, far] * 2**10) / 2**10
    moved = near.copy()
    moved[:, far] += 2.0**40  # exactly
    moved[0, 1] = 0.0  # far from all others
    values = kernel(sparse.csr_array(moved), sparse.csr_array(moved[150:]))
    np.testing.assert_allclose(values[1:], kernel(near[1:], near[150:]), rtol=1e-9)
    np.testing.assert_array_equal(values[0], 0.0)


@pytest.mark.parametrize("stored", [np.array, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("apart", [2.0**20, 2.0**26])
def test_groups_far_from_each_other_keep_distances_within_them(stored: Any, apart: float) -> None:
    near = np.round(X[:200] * 2**2) / 2**2
    group = np.arange(200) % 2
    far = near + apart * group[:, None]  # exactly
    expected = np.where(group[:, None] == group, Gaussian()(near), 0.0)
    small = 1e-14 * apart  # rounding of the rows minus their mean
    np.testing.assert_allclose(Gaussian()(stored(far)), expected, rtol=small, atol=1e-300)
    for other in (far[:50], stored(far[:50])):
        np.testing.assert_allclose(Gaussian()(stored(far), other), expected[:, :50], rtol=small, atol=1e-300)


def test_threads_and_memory_layout_give_the_same_bits() -> None:
    with summula.engine("serial"):
        expected = Gaussian()(X)
    assert np.array_equal(Gaussian()(X), expected)
    assert np.array_equal(Gaussian()(np.asfortranarray(X)), expected)


def test_rows_far_from_the_origin_keep_their_distances() -> None:
    far = X[:50] + 1e6
    np.testing.assert_allclose(Gaussian()(far), np.exp(-cdist(far, far, "sqeuclidean") / 2), rtol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(2), Polynomial(3, 0.0, 0.7), 2.0 * Polynomial(2) + Linear(), Linear() * Polynomial(2)],
    ids=repr,
)
def test_feature_maps_have_the_kernel_as_inner_product(kernel: Kernel) -> None:
    np.testing.assert_allclose(
        kernel.features(Z) @ kernel.features(X[:30]).T, kernel(Z, X[:30]), rtol=1e-10, atol=1e-12
    )


def test_features_of_the_quadratic_kernel_in_two_dimensions() -> None:
    x1, x2 = 1.7, -0.4
    expected = [x1**2, x2**2, np.sqrt(2) * x1 * x2, np.sqrt(2) * x1, np.sqrt(2) * x2, 1.0]
    np.testing.assert_allclose(np.sort(Polynomial(2).features([[x1, x2]])[0]), np.sort(expected))


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Gaussian() + Linear()], ids=repr)
def test_infinite_features_name_the_approximations(kernel: Kernel) -> None:
    with pytest.raises(summula.ParameterError, match="Nystroem"):
        kernel.features(Z)


def test_mercer_is_refuted_by_the_offending_eigenvalue() -> None:
    assert is_mercer(Gaussian(), Z)
    assert is_mercer(Polynomial(3)(Z))
    found = is_mercer(Sigmoid(1.0, -1.0), Z)
    assert not found
    assert found.eigenvalue == pytest.approx(np.linalg.eigvalsh(Sigmoid(1.0, -1.0)(Z))[0])
    asymmetric = is_mercer(np.array([[1.0, 0.5], [0.0, 1.0]]))
    assert not asymmetric
    assert asymmetric.asymmetry == 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), "sigma"),
        (lambda: Gaussian(gamma=-1.0), "gamma"),
        (lambda: Polynomial(1.5), "degree"),  # type: ignore[arg-type]
        (lambda: Polynomial(2, -1.0), "coef0"),
        (lambda: Gaussian() * -1.0, "not a kernel"),
        (lambda: Linear()(X, Z[:, :3]), "columns"),
        (lambda: is_mercer(np.ones((2, 3))), "square"),
        (lambda: is_mercer(Linear()), "X"),
        (lambda: Custom(lambda A, B: A)(X, Z), "all pairs"),
    ],
)
def test_an_invalid_kernel_raises(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
