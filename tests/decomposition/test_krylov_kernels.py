"""The compiled block product over CSR rows against plain NumPy; whole numbers, so that equality is exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from summula.decomposition.principal.krylov_kernels import LANES, normal_products
from tests.reference import block_products


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 3), st.integers(0, 10_000), st.booleans(), st.booleans())
def test_normal_products(n, d, b, seed, weighted, single):  # b vectors of columns
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < 0.5)
    Z = sparse.csr_array(X.astype(np.float32 if single else np.float64))
    w = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    B = rng.integers(-3, 4, (d, b * LANES)).astype(float)
    first = rng.integers(0, n)
    out = np.ones((d, b * LANES))
    given_weight = w[first:] if weighted else np.empty(0)
    normal_products(Z.indptr[first:], Z.indices, Z.data, given_weight, B, out)
    np.testing.assert_array_equal(out, 1.0 + block_products.normal_products(X[first:], w[first:], B))
