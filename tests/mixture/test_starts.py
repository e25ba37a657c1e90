"""Initial parameters of mixtures."""

import numpy as np
import pytest

from summula.mixture.starts import nearest, seed_points


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_k_means_start_is_a_fixed_point_of_lloyds_iteration(offset):
    rng = np.random.default_rng(0)
    Z = offset + rng.standard_normal((500, 3)) + 4.0 * np.eye(3)[rng.integers(0, 3, 500)]
    weight = rng.integers(1, 4, 500).astype(float)
    points = seed_points(Z, weight, 3, "kmeans", 1)
    labels = nearest(Z, points)
    means = [np.average(Z[labels == k], axis=0, weights=weight[labels == k]) for k in range(3)]
    np.testing.assert_allclose(points - offset, np.array(means) - offset, atol=1e-8)
