"""A decision tree in plain NumPy: every column, every threshold, impurities from their definitions."""

from __future__ import annotations

import numpy as np


def impurity(y, w, criterion):
    """Return the impurity of some rows."""
    if criterion in ("gini", "entropy"):
        p = np.array([w[y == k].sum() for k in np.unique(y)]) / w.sum()
        return 1 - (p**2).sum() if criterion == "gini" else -(p * np.log2(p)).sum()
    mean = np.average(y, weights=w)
    if criterion == "squared_error":
        return np.average((y - mean) ** 2, weights=w)
    if criterion == "poisson":
        logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0)), 0.0)
        return np.average(logs, weights=w) - mean * np.log(mean)
    return min(np.average(np.abs(y - m), weights=w) for m in y)


def best_split(X, y, w, criterion, min_rows):
    """Return (decrease of w * impurity, column, threshold) of the best split; None if there is none."""
    best, whole = None, w.sum() * impurity(y, w, criterion)
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for low, high in zip(values[:-1], values[1:], strict=True):
            left = X[:, j] <= low
            if min(left.sum(), (~left).sum()) < min_rows:
                continue
            inside = sum(w[side].sum() * impurity(y[side], w[side], criterion) for side in (left, ~left))
            if best is None or whole - inside > best[0] + 1e-12:
                best = (whole - inside, j, (low + high) / 2)
    return best


def grow(X, y, w, criterion, max_depth, min_rows):
    """Return nested (column, threshold, left, right); None for a leaf."""
    if max_depth == 0 or len(y) < 2 or impurity(y, w, criterion) < 1e-15:
        return None
    found = best_split(X, y, w, criterion, min_rows)
    if found is None:
        return None
    left = X[:, found[1]] <= found[2]
    sides = [grow(X[s], y[s], w[s], criterion, max_depth - 1, min_rows) for s in (left, ~left)]
    return (found[1], found[2], *sides)
