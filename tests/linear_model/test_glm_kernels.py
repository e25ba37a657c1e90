"""Products of sparse rows with several outputs, computed four at a time, with the same results as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from summula.core.data.layout.blocks import aligned
from summula.linear_model.glm.kernels import add_products, add_transposed
from summula.linear_model.glm.softmax_hessian import SoftmaxCurvature, softmax_hessian


@pytest.mark.parametrize("outputs", range(1, 10))
def test_outputs_do_not_depend_on_those_beside_them(outputs):
    rng = np.random.default_rng(outputs)
    X = sparse.random(30, 40, 0.2, format="csr", random_state=outputs)
    V, S = rng.normal(size=(40, outputs)), rng.normal(size=(30, outputs))
    eta, back = rng.normal(size=(30, outputs)), rng.normal(size=(40, outputs))
    expected_eta, expected_back = eta + X @ V, back + X.T @ S
    alone_eta, alone_back = eta.copy(), back.copy()
    add_products(X.indptr, X.indices, X.data, V, eta)
    add_transposed(X.indptr, X.indices, X.data, S, back)
    np.testing.assert_allclose(eta, expected_eta, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(back, expected_back, rtol=1e-12, atol=1e-13)
    for t in range(outputs):
        one = np.ascontiguousarray(alone_eta[:, t : t + 1])
        add_products(X.indptr, X.indices, X.data, np.ascontiguousarray(V[:, t : t + 1]), one)
        assert np.array_equal(one[:, 0], eta[:, t])
        one = np.ascontiguousarray(alone_back[:, t : t + 1])
        add_transposed(X.indptr, X.indices, X.data, np.ascontiguousarray(S[:, t : t + 1]), one)
        assert np.array_equal(one[:, 0], back[:, t])


@pytest.mark.parametrize("outputs", [2, 3, 5])
@pytest.mark.parametrize("rarest", [0, 1])
def test_the_hessian_of_softmax_is_that_of_its_definition(outputs, rarest):
    rng = np.random.default_rng(outputs)
    Z, eta, w = aligned(rng.normal(size=(300, 4))), 2 * rng.normal(size=(300, outputs)), rng.random(300)
    eta[:, rarest] -= 12.0
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    C = w[:, None, None] * (np.einsum("ik,km->ikm", p, np.eye(outputs)) - p[:, :, None] * p[:, None, :])
    expected = np.einsum("ikm,ia,ib->kamb", C, Z, Z)
    found = softmax_hessian(Z, SoftmaxCurvature(w, p))
    assert np.array_equal(found, found.T)
    # Every block relative to its own size, so that the block of a rare class is compared accurately.
    for k in range(outputs):
        block = found.reshape(expected.shape)[k, :, k]
        np.testing.assert_allclose(block, expected[k, :, k], rtol=0, atol=1e-12 * np.abs(expected[k, :, k]).max())
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=1e-12 * np.abs(expected).max())
