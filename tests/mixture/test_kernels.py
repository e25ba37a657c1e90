"""Each kernel against a few lines of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from summula.mixture import gaussians, kernels
from tests.reference import mixtures

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("d", [1, 4, 9])
def test_whitened_sums(d: int) -> None:
    n, k = 300, 3  # more than one block
    Z, W = RNG.normal(size=(n, d)), np.tril(RNG.normal(size=(k, d, d)))
    shift, constant, weight = RNG.normal(size=(k, d)), RNG.normal(size=k), RNG.random(n)
    joint, size = np.empty((k, n)), d + 1 + (d + 1) % 2
    kernels.whitened_joint(Z, W, shift, constant, joint)
    y = np.einsum("kij,nj->kni", W, Z) - shift[:, None]
    assert_allclose(joint, constant[:, None] - 0.5 * (y**2).sum(axis=2), rtol=1e-12)
    r, density = mixtures.responsibilities(joint, weight)
    G = np.zeros((k, size, size))
    assert kernels.whitened_sums(Z, W, shift, constant, weight, G) == pytest.approx(weight @ density, rel=1e-12)
    lead = np.concatenate([np.ones((k, n, 1)), y], axis=2)
    expected = np.einsum("kn,kni,knj->kij", r, lead, lead)
    assert_allclose(np.tril(G[:, : d + 1, : d + 1]), np.tril(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("far", [1.0, 1e5])
def test_responsibilities(far: float) -> None:
    joint, weight = far * RNG.normal(size=(4, 9)), RNG.random(9)
    expected, log_density = mixtures.responsibilities(joint, weight)
    lines = np.vstack([joint, np.empty((2, 9))])
    assert kernels.responsibilities(lines, 4, weight) == pytest.approx(weight @ log_density, rel=1e-12)
    assert_allclose(lines[4], log_density, rtol=1e-13)
    assert_allclose(lines[:4], expected, rtol=1e-12, atol=1e-250)


def holes(n: int, d: int) -> Any:
    Z = RNG.normal(size=(n, d))
    Z[RNG.random((n, d)) < 0.3] = np.nan
    return Z


def test_diagonal_sums() -> None:
    n = 300
    Z, mean, sigma, weight = holes(n, 3), RNG.normal(size=(2, 3)), 0.5 + RNG.random((2, 3)), RNG.random(n)
    weights, joint = np.array([0.3, 0.7]), np.empty((2, n))
    theta = gaussians.Gaussians("diag", weights, mean, sigma)
    kernels.diagonal_joint(Z, mean, theta.scales, theta.constants, joint)
    each = stats.norm(mean[:, None], sigma[:, None]).logpdf(Z)
    assert_allclose(joint, np.log(weights)[:, None] + np.nansum(each, axis=2), rtol=1e-12)
    r, density = mixtures.responsibilities(joint, weight)
    counts, first, second = np.zeros(2), np.zeros((2, 3)), np.zeros((2, 3))
    elbo = kernels.diagonal_sums(Z, mean, theta.scales, theta.constants, weight, counts, first, second)
    t = (Z - mean[:, None]) / sigma[:, None]
    assert elbo == pytest.approx(weight @ density, rel=1e-12)
    assert_allclose(counts, r.sum(axis=1))
    assert_allclose(first, (r[:, :, None] * np.nan_to_num(t)).sum(axis=1), atol=1e-12)
    assert_allclose(second, (r[:, :, None] * np.where(np.isnan(t), 1.0, t**2)).sum(axis=1))


def test_incomplete_rows() -> None:
    Z, mean, shapes, r = holes(30, 4), RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4, 4)), RNG.random((2, 30))
    S = shapes @ shapes.transpose(0, 2, 1) + np.eye(4)
    order, patterns = gaussians._patterns(np.isnan(Z))
    Z, joint = Z[order], np.empty((2, 30))
    assert patterns.starts[-1] == 30
    kernels.incomplete_joint(Z, patterns, mean, S, np.log([0.3, 0.7]), joint)
    assert_allclose(joint.T, mixtures.log_joint(Z, [0.3, 0.7], mean, S), rtol=1e-10)
    first, second = np.zeros((2, 4)), np.zeros((2, 4, 4))
    kernels.incomplete_sums(Z, patterns, mean, S, r, first, second)
    expected_first, expected_second = np.zeros_like(first), np.zeros_like(second)
    for i, z in enumerate(Z):
        o, m = np.flatnonzero(~np.isnan(z)), np.flatnonzero(np.isnan(z))
        for k in range(2):
            gain = S[k][np.ix_(m, o)] @ np.linalg.inv(S[k][np.ix_(o, o)])
            e, C = np.empty(4), np.zeros((4, 4))
            e[o], e[m] = z[o] - mean[k][o], gain @ (z[o] - mean[k][o])
            C[np.ix_(m, m)] = S[k][np.ix_(m, m)] - gain @ S[k][np.ix_(o, m)]
            expected_first[k] += r[k, i] * e
            expected_second[k] += r[k, i] * (np.outer(e, e) + C)
    assert_allclose(first, expected_first, rtol=1e-10, atol=1e-12)
    assert_allclose(second, expected_second, rtol=1e-10, atol=1e-12)
