"""Tables shared by tests of linear models."""

import numpy as np
from scipy import sparse


def sparse_table(n=300, d=40, seed=0):
    """Sparse rows, and a target that is linear in them up to noise."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.2, format="csr", rng=rng)
    return X, X @ rng.normal(size=d) + rng.normal(size=n) + 4
