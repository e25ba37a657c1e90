"""Mixtures as the textbook writes them: one row, one component at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats


class Step(NamedTuple):
    """The parameters after one EM step, and the log-likelihood before it."""

    weights: Any
    means: Any
    covariances: Any
    log_likelihood: float


def log_joint(X: Any, weights: Any, means: Any, covariances: Any) -> Any:
    """log pi_k + log N of the observed values of each row, shape (n, k)."""
    out = np.empty((len(X), len(weights)))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        for k in range(len(weights)):
            S, e = covariances[k][np.ix_(o, o)], x[o] - means[k][o]
            log_det = np.linalg.slogdet(2 * np.pi * S)[1]
            out[i, k] = np.log(weights[k]) - 0.5 * (e @ np.linalg.solve(S, e) + log_det)
    return out


def gaussian_step(X: Any, w: Any, theta: tuple[Any, Any, Any], kind: str, reg: float) -> Step:
    """One step of EM; missing values by conditional expectations and covariances. Covariances are (k, d, d)."""
    weights, means, covariances = theta
    joint = log_joint(X, weights, means, covariances)
    density = special.logsumexp(joint, axis=1)
    R = np.exp(joint - density[:, None]) * w[:, None]
    n, d = R.sum(axis=0), X.shape[1]
    firsts, seconds = np.zeros((len(n), d)), np.zeros((len(n), d, d))
    for i, x in enumerate(X):
        o, m = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        for k in range(len(n)):
            S = covariances[k]
            gain = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)])
            filled, C = x.copy(), np.zeros((d, d))
            filled[m] = means[k][m] + gain @ (x[o] - means[k][o])
            C[np.ix_(m, m)] = S[np.ix_(m, m)] - gain @ S[np.ix_(o, m)]
            firsts[k] += R[i, k] * filled
            seconds[k] += R[i, k] * (np.outer(filled, filled) + C)
    new = firsts / n[:, None]
    spreads = seconds / n[:, None, None] - np.einsum("ki,kj->kij", new, new)
    if kind == "tied":
        spreads = np.tile(np.einsum("k,kij->ij", n, spreads) / n.sum(), (len(n), 1, 1))
    if kind in ("diag", "spherical"):
        spreads = np.stack([np.diag(np.diag(S)) for S in spreads])
    if kind == "spherical":
        spreads = np.stack([np.eye(d) * np.diag(S).mean() for S in spreads])
    return Step(n / n.sum(), new, spreads + reg * np.eye(d), float(w @ density))


def responsibilities(joint: Any, weight: Any) -> tuple[Any, Any]:
    """What the kernel of that name computes, from joint densities (k, n)."""
    density = special.logsumexp(joint, axis=0)
    return np.exp(joint - density) * weight, density


def binomial_step(X: Any, trials: int, p: Any, weights: Any) -> tuple[Any, Any, float]:
    """One EM step of a mixture of binomials of one column: probabilities, weights, log-likelihood before it."""
    joint = np.log(weights) + stats.binom(trials, np.asarray(p)).logpmf(np.asarray(X).reshape(-1, 1))
    density = special.logsumexp(joint, axis=1)
    R = np.exp(joint - density[:, None])
    return R.T @ np.ravel(X) / (R.sum(axis=0) * trials), R.mean(axis=0), float(density.sum())
