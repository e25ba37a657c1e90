"""The compiled loops of mixtures.

Blocks lie transposed, one row of memory per component (and column): inner loops run over consecutive rows of the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.compile import kernel, summing_kernel
from summula.core.numerics.exponential_kernels import _exp

__all__ = [
    "Patterns",
    "diagonal_joint",
    "diagonal_sums",
    "incomplete_joint",
    "incomplete_sums",
    "responsibilities",
    "scale_whitened",
    "warmup",
    "whitened_joint",
]

Array = NDArray[np.float64]

_LOG_2_PI = float(np.log(2.0 * np.pi))


class Patterns(NamedTuple):
    """Rows grouped by which of their values are observed.

    Attributes
    ----------
    columns : ndarray of shape (n_patterns, d)
        The observed columns of each pattern, then the missing ones.
    n_seen : ndarray of shape (n_patterns,)
        How many are observed.
    starts : ndarray of shape (n_patterns + 1,)
        Where the rows of each pattern begin.
    """

    columns: NDArray[np.int64]
    n_seen: NDArray[np.int64]
    starts: NDArray[np.int64]


@kernel
def whitened_joint(Y: Array, shift: Array, constant: Array, joint: Array) -> None:
    """joint_ki = constant_k - |y_ki - shift_k|^2 / 2, where Y (k, 1 + d, n) holds y from its second row on.

    The shift is taken off in place.
    """
    K, D, n = Y.shape
    for k in range(K):
        for i in range(n):
            joint[k, i] = 0.0
        for j in range(1, D):
            by = shift[k, j - 1]
            for i in range(n):
                t = Y[k, j, i] - by
                Y[k, j, i] = t
                joint[k, i] += t * t
        for i in range(n):
            joint[k, i] = constant[k] - 0.5 * joint[k, i]


@kernel
def responsibilities(joint: Array, weight: Array, log_density: Array) -> None:
    """Turn log joint densities (k, n) into responsibilities times weights, and write the log density of each row."""
    K, n = joint.shape
    for i in range(n):
        log_density[i] = joint[0, i]
    for k in range(1, K):
        for i in range(n):
            log_density[i] = joint[k, i] if joint[k, i] > log_density[i] else log_density[i]
    total = np.zeros(n)
    for k in range(K):
        for i in range(n):
            x = joint[k, i] - log_density[i]
            e = _exp(-600.0 if x < -600.0 else x)
            joint[k, i] = e
            total[i] += e
    for i in range(n):
        log_density[i] += np.log(total[i])
        total[i] = weight[i] / total[i]
    for k in range(K):
        for i in range(n):
            joint[k, i] *= total[i]


@kernel
def scale_whitened(Y: Array, r: Array) -> None:
    """Multiply column i of component k by sqrt(r_ki), and write that root into the first row: Y Y' are the sums."""
    K, D, n = Y.shape
    for k in range(K):
        for i in range(n):
            Y[k, 0, i] = np.sqrt(r[k, i])
        for j in range(1, D):
            for i in range(n):
                Y[k, j, i] *= Y[k, 0, i]


# ------------------------------------------------------------------------------------ diagonal covariances, NaN allowed


@kernel
def diagonal_joint(Z: Array, mean: Array, scale: Array, constant: Array, joint: Array) -> None:
    """joint_ki = constant_k + sum over observed j of the log densities of column j, Z of shape (d, n).

    scale_kj is 1 / sigma_kj; the constant counts every column as observed.
    """
    K, n = joint.shape
    for k in range(K):
        for i in range(n):
            joint[k, i] = constant[k]
        for j in range(len(Z)):
            m, p = mean[k, j], scale[k, j]
            missing = 0.5 * _LOG_2_PI - np.log(p)
            for i in range(n):
                t = (Z[j, i] - m) * p
                joint[k, i] += missing if np.isnan(t) else -0.5 * t * t


@summing_kernel
def diagonal_sums(Z: Array, mean: Array, scale: Array, r: Array, counts: Array, first: Array, second: Array) -> None:
    """Add sum r, sum r t and sum r t^2 with t = (z - mean) / sigma; a missing value has t = 0 and t^2 = 1."""
    K, n = r.shape
    for k in range(K):
        count = 0.0
        for i in range(n):
            count += r[k, i]
        counts[k] += count
        for j in range(len(Z)):
            m, p, one, two = mean[k, j], scale[k, j], 0.0, 0.0
            for i in range(n):
                t = (Z[j, i] - m) * p
                missing = np.isnan(t)
                a = r[k, i] * (0.0 if missing else t)
                one += a
                two += r[k, i] if missing else a * t
            first[k, j] += one
            second[k, j] += two


# ----------------------------------------------------------------------------- rows with missing values, any covariance


@kernel
def _condition(S: Array, seen: Array, n_seen: int, L: Array, gain: Array) -> float:
    """For one covariance S and the columns `seen` (the observed ones first, then the missing ones), write the Cholesky
    factor L of the observed block and the gain: row j, for a missing column, is S_jo S_oo^-1. Returns log det L.
    """
    d, log_det = len(seen), 0.0
    for a in range(n_seen):
        for b in range(a + 1):
            total = S[seen[a], seen[b]]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            L[a, b] = np.sqrt(total) if a == b else total / L[b, b]
        log_det += np.log(L[a, a])
    for m in range(n_seen, d):
        # L u = S_om, then L' g = u.
        for a in range(n_seen):
            total = S[seen[a], seen[m]]
            for c in range(a):
                total -= L[a, c] * gain[m, c]
            gain[m, a] = total / L[a, a]
        for a in range(n_seen - 1, -1, -1):
            total = gain[m, a]
            for c in range(a + 1, n_seen):
                total -= L[c, a] * gain[m, c]
            gain[m, a] = total / L[a, a]
    return log_det


@kernel
def incomplete_joint(Z: Array, patterns: Patterns, mean: Array, S: Array, log_weight: Array, joint: Array) -> None:
    """The log joint densities (k, n) of the observed values of rows Z (n, d)."""
    K, d = mean.shape
    L, gain, v = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    for g in range(len(patterns.n_seen)):
        n_seen, seen = patterns.n_seen[g], patterns.columns[g]
        for k in range(K):
            log_det = _condition(S[k], seen[:n_seen], n_seen, L, gain)
            constant = log_weight[k] - 0.5 * n_seen * _LOG_2_PI - log_det
            for i in range(patterns.starts[g], patterns.starts[g + 1]):
                square = 0.0
                for a in range(n_seen):
                    total = Z[i, seen[a]] - mean[k, seen[a]]
                    for c in range(a):
                        total -= L[a, c] * v[c]
                    v[a] = total / L[a, a]
                    square += v[a] * v[a]
                joint[k, i] = constant - 0.5 * square


@kernel
def incomplete_sums(Z: Array, patterns: Patterns, mean: Array, S: Array, r: Array, first: Array, second: Array) -> None:
    """Add sum r e and sum r (e e' + C), where e is the row less the mean, missing values replaced by their conditional
    expectations, and C their conditional covariance.
    """
    K, d = mean.shape
    L, gain, e = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    for g in range(len(patterns.n_seen)):
        n_seen, seen = patterns.n_seen[g], patterns.columns[g]
        for k in range(K):
            _condition(S[k], seen, n_seen, L, gain)
            count = 0.0
            for i in range(patterns.starts[g], patterns.starts[g + 1]):
                count += r[k, i]
                for a in range(n_seen):
                    e[seen[a]] = Z[i, seen[a]] - mean[k, seen[a]]
                for m in range(n_seen, d):
                    total = 0.0
                    for a in range(n_seen):
                        total += gain[m, a] * e[seen[a]]
                    e[seen[m]] = total
                _add_outer(e, r[k, i], first[k], second[k])
            for m in range(n_seen, d):
                for q in range(n_seen, d):
                    total = S[k, seen[m], seen[q]]
                    for a in range(n_seen):
                        total -= gain[m, a] * S[k, seen[a], seen[q]]
                    second[k, seen[m], seen[q]] += count * total


@kernel
def _add_outer(e: Array, r: float, first: Array, second: Array) -> None:
    for j in range(len(e)):
        by = r * e[j]
        first[j] += by
        for c in range(len(e)):
            second[j, c] += by * e[c]


def warmup() -> None:
    """Compile the kernels."""
    Y, r, one = np.zeros((1, 2, 1)), np.zeros((1, 1)), np.ones(1)
    whitened_joint(Y, r, one, r)
    responsibilities(r, one, one.copy())
    scale_whitened(Y, r)
    diagonal_joint(r, r, np.ones((1, 1)), one, r.copy())
    diagonal_sums(r, r, np.ones((1, 1)), r, one.copy(), r.copy(), r.copy())
    S, patterns = np.ones((1, 1, 1)), Patterns(np.zeros((1, 1), np.int64), np.ones(1, np.int64), np.arange(2))
    incomplete_joint(r, patterns, r, S, one, r.copy())
    incomplete_sums(r, patterns, r, S, r, r.copy(), S.copy())
