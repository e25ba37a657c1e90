"""The compiled loops of mixtures.

Blocks are stored transposed, one row of memory per component (and column), so inner loops run over consecutive rows of
the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import internal_kernel, internal_summing_kernel, kernel, non_allocating_kernel
from summula.core.numerics.exponential_kernels import exp

__all__ = [
    "Patterns",
    "compile_joint",
    "diagonal_joint",
    "diagonal_sums",
    "incomplete_joint",
    "incomplete_sums",
    "responsibilities",
    "warmup",
    "whitened_joint",
    "whitened_sums",
]

Array = NDArray[np.float64]

_LOG_2_PI = float(np.log(2.0 * np.pi))
_ROWS = 256  # rows per block: a block and its whitened copies fit the second-level cache
_NOTHING = 1e-20  # smaller responsibilities do not affect a sum


class Patterns(NamedTuple):
    """Rows grouped by missing pattern.

    Attributes
    ----------
    columns : ndarray of shape (n_patterns, d)
        The observed columns of each pattern, then the missing ones.
    n_seen : ndarray of shape (n_patterns,)
        Number of observed columns.
    starts : ndarray of shape (n_patterns + 1,)
        Start of the rows of each pattern.
    """

    columns: NDArray[np.int64]
    n_seen: NDArray[np.int64]
    starts: NDArray[np.int64]


# ------------------------------------------------------------------------------------------------- covariance matrices


@internal_summing_kernel
def _whiten(X: Array, n: int, W: Array, shift: Array, Y: Array, square: Array) -> None:
    """Y[1 + j] = sum over m <= j of W_jm X[m] - shift_j for n rows of the data, and the sum of squares over j."""
    for i in range(n):
        square[i] = 0.0
    for j in range(len(W)):
        for i in range(n):
            Y[1 + j, i] = -shift[j]
        for m in range(0, j - 2, 4):
            a, b, c, d = W[j, m], W[j, m + 1], W[j, m + 2], W[j, m + 3]
            for i in range(n):
                Y[1 + j, i] += (a * X[m, i] + b * X[m + 1, i]) + (c * X[m + 2, i] + d * X[m + 3, i])
        for m in range(4 * ((j + 1) // 4), j + 1):
            a = W[j, m]
            for i in range(n):
                Y[1 + j, i] += a * X[m, i]
        for i in range(n):
            square[i] += Y[1 + j, i] * Y[1 + j, i]


@internal_summing_kernel
def _add_products(P: Array, n: int, G: Array) -> None:
    """G += P P' over n columns of P, which has an even number of rows: pairs of rows with pairs, the lower half."""
    for a in range(0, len(G), 2):
        for b in range(0, a + 2, 2):
            ps, pt, qs, qt = 0.0, 0.0, 0.0, 0.0
            for i in range(n):
                ps += P[a, i] * P[b, i]
                pt += P[a, i] * P[b + 1, i]
                qs += P[a + 1, i] * P[b, i]
                qt += P[a + 1, i] * P[b + 1, i]
            G[a, b] += ps
            G[a, b + 1] += pt
            G[a + 1, b] += qs
            G[a + 1, b + 1] += qt


@internal_kernel
def _pack(Y: Array, r: Array, n: int, P: Array, places: NDArray[np.int64]) -> int:
    """Write the rows with a non-negligible responsibility, times its root (the first value); return their number."""
    count = 0
    for i in range(n):
        if r[i] > _NOTHING:
            places[count] = i
            P[0, count] = np.sqrt(r[i])
            count += 1
    for j in range(1, len(Y)):
        for t in range(count):
            P[j, t] = Y[j, places[t]] * P[0, t]
    return count


@internal_kernel
def _transpose(Z: Array, start: int, n: int, X: Array) -> None:
    for i in range(n):
        for j in range(Z.shape[1]):
            X[j, i] = Z[start + i, j]


def whitened_joint(Z: Array, W: Array, shift: Array, constant: Array, joint: Array) -> None:
    """joint_ki = constant_k - |W_k z_i - shift_k|^2 / 2 for rows Z (n, d) and lower triangular W_k."""
    scratch = np.empty((3, 1 + shift.shape[1], _ROWS))
    write_whitened_joint(Z, W, shift, constant, scratch, joint)


def whitened_sums(Z: Array, W: Array, shift: Array, constant: Array, weight: Array, G: Array) -> float:
    """Add the products of (1, W_k z_i - shift_k), weighted by responsibilities, to the lower half of G (k, D, D).

    D is 1 + d, or the next even number. Returns the weighted sum of the log density.
    """
    K, D = G.shape[:2]
    scratch, lines = (
        np.zeros((K + 2, D, _ROWS)),
        np.empty((K + 2, _ROWS)),
    )  # whitened rows, rows, packed rows; densities
    return float(add_whitened_sums(Z, W, shift, constant, weight, scratch, lines, np.empty(_ROWS, np.int64), G))


# (These kernels allocate no arrays but receive scratch memory, which reduces their compile time by a third.)
@non_allocating_kernel
def write_whitened_joint(Z: Array, W: Array, shift: Array, constant: Array, scratch: Array, joint: Array) -> None:
    """As `whitened_joint`; `scratch` is scratch for rows, whitened rows and their squares."""
    square = scratch[2, 0]
    for start in range(0, len(Z), _ROWS):
        n = _ROWS if start + _ROWS < len(Z) else len(Z) - start
        _transpose(Z, start, n, scratch[0])
        for k in range(len(shift)):
            _whiten(scratch[0], n, W[k], shift[k], scratch[1], square)
            for i in range(n):
                joint[k, start + i] = constant[k] - 0.5 * square[i]


@non_allocating_kernel
def add_whitened_sums(
    Z: Array,
    W: Array,
    shift: Array,
    constant: Array,
    weight: Array,
    scratch: Array,
    lines: Array,
    places: NDArray[np.int64],
    G: Array,
) -> float:
    """As `whitened_sums`, with scratch."""
    K, elbo = len(G), 0.0
    for start in range(0, len(Z), _ROWS):
        n = _ROWS if start + _ROWS < len(Z) else len(Z) - start
        _transpose(Z, start, n, scratch[K])
        for k in range(K):
            _whiten(scratch[K], n, W[k], shift[k], scratch[k], lines[K])
            for i in range(n):
                lines[k, i] = constant[k] - 0.5 * lines[K, i]
        elbo += responsibilities(lines, K, weight[start : start + n])
        for k in range(K):
            count = _pack(scratch[k], lines[k], n, scratch[K + 1], places)
            _add_products(scratch[K + 1], count, G[k])
    return elbo


@internal_kernel
def responsibilities(lines: Array, K: int, weight: Array) -> float:
    """Convert the log joint densities (k, n) of n = len(weight) rows to responsibilities times weights.

    After the K lines of densities there are two more: the first receives the log density of each row. Returns its
    weighted sum.
    """
    n, elbo = len(weight), 0.0
    for i in range(n):
        lines[K, i] = lines[0, i]
        lines[K + 1, i] = 0.0
    for k in range(1, K):
        for i in range(n):
            lines[K, i] = lines[k, i] if lines[k, i] > lines[K, i] else lines[K, i]
    for k in range(K):
        for i in range(n):
            x = lines[k, i] - lines[K, i]
            e = exp(-600.0 if x < -600.0 else x)
            lines[k, i] = e
            lines[K + 1, i] += e
    for i in range(n):
        lines[K, i] += np.log(lines[K + 1, i])
        elbo += weight[i] * lines[K, i]
        lines[K + 1, i] = weight[i] / lines[K + 1, i]
    for k in range(K):
        for i in range(n):
            lines[k, i] *= lines[K + 1, i]
    return elbo


# ------------------------------------------------------------------------------------ diagonal covariances, NaN allowed


@internal_kernel
def _add_densities(X: Array, n: int, mean: Array, scale: Array, out: Array) -> None:
    """Add -t^2 / 2 with t = (x - mean) scale; for a missing value, subtract the constant of its column instead."""
    for j in range(len(mean)):
        m, p, missing = mean[j], scale[j], 0.5 * _LOG_2_PI - np.log(scale[j])
        for i in range(n):
            t = (X[j, i] - m) * p
            out[i] += missing if np.isnan(t) else -0.5 * t * t


@internal_summing_kernel
def _add_moments(X: Array, n: int, mean: Array, scale: Array, r: Array, first: Array, second: Array) -> None:
    """Add the sums of r t and of r t^2; a missing value has t = 0 and t^2 = 1."""
    for j in range(len(mean)):
        m, p, one, two = mean[j], scale[j], 0.0, 0.0
        for i in range(n):
            t = (X[j, i] - m) * p
            missing = np.isnan(t)
            a = r[i] * (0.0 if missing else t)
            one += a
            two += r[i] if missing else a * t
        first[j] += one
        second[j] += two


@kernel
def diagonal_joint(Z: Array, mean: Array, scale: Array, constant: Array, joint: Array) -> None:
    """joint_ki = constant_k + sum over observed j of the log densities of column j, Z of shape (n, d).

    scale_kj is 1 / sigma_kj; the constant counts every column as observed.
    """
    K, d = mean.shape
    X = np.empty((d, _ROWS))
    for start in range(0, len(Z), _ROWS):
        n = min(_ROWS, len(Z) - start)
        _transpose(Z, start, n, X)
        for k in range(K):
            joint[k, start : start + n] = constant[k]
            _add_densities(X, n, mean[k], scale[k], joint[k, start:])


@kernel
def diagonal_sums(
    Z: Array, mean: Array, scale: Array, constant: Array, weight: Array, counts: Array, first: Array, second: Array
) -> float:
    """Add the sums of r, r t and r t^2 over rows Z (n, d), with t = (z - mean) / sigma; a missing value has t^2 = 1.

    Returns the weighted sum of the log density.
    """
    K, d = mean.shape
    X, lines, elbo = np.empty((d, _ROWS)), np.empty((K + 2, _ROWS)), 0.0
    for start in range(0, len(Z), _ROWS):
        n = min(_ROWS, len(Z) - start)
        _transpose(Z, start, n, X)
        for k in range(K):
            lines[k, :n] = constant[k]
            _add_densities(X, n, mean[k], scale[k], lines[k])
        elbo += responsibilities(lines, K, weight[start : start + n])
        for k in range(K):
            for i in range(n):
                counts[k] += lines[k, i]
            _add_moments(X, n, mean[k], scale[k], lines[k], first[k], second[k])
    return elbo


# ----------------------------------------------------------------------------- rows with missing values, any covariance


@internal_kernel
def _condition(S: Array, columns: Array, n_seen: int, L: Array, gain: Array) -> float:
    """For one covariance S and `columns` (the observed ones first, then the missing ones), write the Cholesky factor L
    of the observed block and the gain: row j, for a missing column, is S_jo S_oo^-1. Returns log det L.
    """
    d, log_det = len(columns), 0.0
    for a in range(n_seen):
        for b in range(a + 1):
            total = S[columns[a], columns[b]]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            L[a, b] = np.sqrt(total) if a == b else total / L[b, b]
        log_det += np.log(L[a, a])
    for m in range(n_seen, d):
        # L u = S_om, then L' g = u.
        for a in range(n_seen):
            total = S[columns[a], columns[m]]
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
        n_seen, columns = patterns.n_seen[g], patterns.columns[g]
        for k in range(K):
            log_det = _condition(S[k], columns[:n_seen], n_seen, L, gain)
            constant = log_weight[k] - 0.5 * n_seen * _LOG_2_PI - log_det
            for i in range(patterns.starts[g], patterns.starts[g + 1]):
                square = 0.0
                for a in range(n_seen):
                    total = Z[i, columns[a]] - mean[k, columns[a]]
                    for c in range(a):
                        total -= L[a, c] * v[c]
                    v[a] = total / L[a, a]
                    square += v[a] * v[a]
                joint[k, i] = constant - 0.5 * square


@kernel
def incomplete_sums(Z: Array, patterns: Patterns, mean: Array, S: Array, r: Array, first: Array, second: Array) -> None:
    """Add sum r e and sum r (e e' + C), where e is the row minus the mean, missing values replaced by their conditional
    expectations, and C their conditional covariance.
    """
    K, d = mean.shape
    L, gain, e = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    for g in range(len(patterns.n_seen)):
        n_seen, columns = patterns.n_seen[g], patterns.columns[g]
        for k in range(K):
            _condition(S[k], columns, n_seen, L, gain)
            count = 0.0
            for i in range(patterns.starts[g], patterns.starts[g + 1]):
                count += r[k, i]
                for a in range(n_seen):
                    e[columns[a]] = Z[i, columns[a]] - mean[k, columns[a]]
                for m in range(n_seen, d):
                    total = 0.0
                    for a in range(n_seen):
                        total += gain[m, a] * e[columns[a]]
                    e[columns[m]] = total
                _add_outer(e, r[k, i], first[k], second[k])
            for m in range(n_seen, d):
                for q in range(n_seen, d):
                    total = S[k, columns[m], columns[q]]
                    for a in range(n_seen):
                        total -= gain[m, a] * S[k, columns[a], columns[q]]
                    second[k, columns[m], columns[q]] += count * total


@internal_kernel
def _add_outer(e: Array, r: float, first: Array, second: Array) -> None:
    for j in range(len(e)):
        by = r * e[j]
        first[j] += by
        for c in range(len(e)):
            second[j, c] += by * e[c]


def compile_joint() -> None:
    """Compile the kernels of predictions from covariance matrices."""
    r, S = np.zeros((1, 1)), np.ones((1, 1, 1))
    whitened_joint(r, S, r, np.ones(1), r.copy())


def warmup() -> None:
    """Compile the kernels."""
    r, one, S = np.zeros((1, 1)), np.ones(1), np.ones((1, 1, 1))
    compile_joint()
    whitened_sums(r, S, r, one, one, np.zeros((1, 2, 2)))
    responsibilities(np.zeros((3, 1)), 1, one)
    diagonal_joint(r, r, np.ones((1, 1)), one, r.copy())
    diagonal_sums(r, r, np.ones((1, 1)), one, one, one.copy(), r.copy(), r.copy())
    patterns = Patterns(np.zeros((1, 1), np.int64), np.ones(1, np.int64), np.arange(2))
    incomplete_joint(r, patterns, r, S, one, r.copy())
    incomplete_sums(r, patterns, r, S, r, r.copy(), S.copy())
