"""Products of sparse rows with several outputs, four of which are computed at once: each as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from summula.linear_model.glm.kernels import add_products, add_transposed


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
