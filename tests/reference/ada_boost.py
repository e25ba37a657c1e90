"""AdaBoost (SAMME) with decision stumps in plain NumPy: every column, every threshold, weights from their definition."""

from __future__ import annotations

import numpy as np


def stump(X, codes, p, k):
    """Return (column, threshold, class on the left, class on the right) of the least weighted Gini impurity."""
    best = None
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for threshold in (values[:-1] + values[1:]) / 2:
            impurity, sides = 0.0, []
            for side in (X[:, j] <= threshold, X[:, j] > threshold):
                weights = np.bincount(codes[side], p[side], k)
                impurity += weights.sum() - (weights**2).sum() / weights.sum()
                sides.append(weights.argmax())
            if best is None or impurity < best[0] - 1e-12:
                best = (impurity, j, threshold, *sides)
    return best[1:]


def votes(X, codes, k, rounds, learning_rate=1.0):
    """Return the votes for each class, and the weights and errors of the learners."""
    n = len(codes)
    p, out, alphas, errors = np.full(n, 1 / n), np.zeros((n, k)), [], []
    for _ in range(rounds):
        j, threshold, left, right = stump(X, codes, p, k)
        predicted = np.where(X[:, j] <= threshold, left, right)
        error = p[predicted != codes].sum()
        alpha = learning_rate * (np.log((1 - error) / error) + np.log(k - 1))
        out[np.arange(n), predicted] += alpha
        alphas.append(alpha)
        errors.append(error)
        p = p * np.exp(alpha * (predicted != codes))
        p /= p.sum()
    return out, np.array(alphas), np.array(errors)
