"""Number of axes: a count, a fraction of the variance, a maximum distortion, or Minka's evidence.

With eigenvalues l_1 >= ... >= l_d of the covariance matrix of n rows, the evidence of r axes in Laplace's approximation
is (Minka 2000, equation 30)

    log p(r) = log p(U) - n/2 sum_(i<=r) log l_i - n (d - r)/2 log v + (m + r)/2 log 2 pi - 1/2 log|A| - r/2 log n  (1)
    log p(U) = -r log 2 + sum_(i<=r) [log Gamma((d - i + 1)/2) - (d - i + 1)/2 log pi]                          (2)
    log|A|   = sum_(i<=r) sum_(j>i) [log(1/h_j - 1/h_i) + log(l_i - l_j) + log n]                               (3)

with v the mean of the discarded eigenvalues, m = d r - r (r + 1)/2, and h_i = l_i for i <= r, v after that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from summula.core.errors import ParameterError
from summula.decomposition.principal.axes import Axes

__all__ = ["by_evidence", "chosen", "counted"]

Array = NDArray[np.float64]

_NOTHING = 1e-15  # eigenvalues below this count as zero, as in scikit-learn


def counted(n_components: object, n: int, d: int, solver: str) -> int | None:
    """Return the number of axes if it is given as a count, after validation, or None if it depends on eigenvalues."""
    if n_components == "mle" and n < d:
        raise ParameterError(
            f"n_components='mle' is only supported if n_samples >= n_features, but X has {n} rows and {d} columns: "
            "pass a count or a fraction of the variance."
        )
    if isinstance(n_components, str) or n_components is None:
        return None
    if not isinstance(n_components, int | np.integer):
        return None
    if not 0 <= n_components <= min(n, d):
        raise ParameterError(
            f"n_components={n_components!r} must be between 0 and min(n_samples, n_features)={min(n, d)} with "
            f"svd_solver={solver!r}: X has n_samples={n} and n_features={d}."
        )
    return int(n_components)


def chosen(axes: Axes, n_components: object, max_distortion: float | None) -> int:
    """Return the number of axes by a fraction of the variance, by distortion, by evidence, or all."""
    values, d = axes.values, len(axes.mean)
    most = min(axes.count, d)
    if max_distortion is not None:
        lost = np.maximum(axes.total - np.concatenate([[0.0], np.cumsum(values[:most])]), 0.0)
        lost[-1] = 0.0
        return int(np.argmax(lost <= max_distortion))
    if n_components is None:
        return most
    if n_components == "mle":
        return by_evidence(values / max(axes.weight - 1, 1), axes.weight)
    assert isinstance(n_components, float | np.floating)
    kept = np.cumsum(values / axes.total) if axes.total > 0 else np.ones(len(values))
    return min(int(np.searchsorted(kept, float(n_components), side="right")) + 1, most)


def by_evidence(values: Array, n: float) -> int:
    """Return the number of axes, from 1 to d - 1, with the largest evidence (1).

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        All eigenvalues of the covariance matrix, descending.
    n : float
        Number of rows.
    """
    evidence = [_evidence(values, r, n) for r in range(1, len(values))]
    return 1 + int(np.argmax(evidence)) if evidence else 1


def _evidence(values: Array, r: int, n: float) -> float:
    d = len(values)
    if values[r - 1] < _NOTHING:
        return -np.inf
    i = np.arange(1, r + 1)
    half = (d - i + 1) / 2
    basis = -r * np.log(2.0) + float((gammaln(half) - np.log(np.pi) * half).sum())  # (2)
    v = max(float(values[r:].mean()), _NOTHING)
    h = np.where(np.arange(d) < r, values, v)
    pairs = np.arange(d)[None, :] > np.arange(r)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        both = np.log((values[:r, None] - values[None, :]) * (1 / h[None, :] - 1 / h[:r, None])) + np.log(n)
    curvature = float(both[pairs].sum())  # (3)
    m = d * r - r * (r + 1) / 2
    found = basis - n / 2 * (float(np.log(values[:r]).sum()) + (d - r) * np.log(v))
    total = found + (m + r) / 2 * np.log(2 * np.pi) - curvature / 2 - r / 2 * np.log(n)
    return float(total) if np.isfinite(total) else -np.inf
