"""The kernels of `summula.tree`, in plain NumPy and Python."""

from __future__ import annotations

import numpy as np


def bins_of(values, edges):
    """The number of edges below each value; 255 where it is missing."""
    return np.where(np.isnan(values), 255, np.searchsorted(edges, values)).astype(np.uint8)


def histogram(bins, rows, g, h):
    """Sums of gradient, curvature and 1 for every column and bin."""
    sums = np.zeros((bins.shape[1], 256, 3), np.int64)
    for j in range(bins.shape[1]):
        for k, values in enumerate((g, h, np.ones_like(g))):
            np.add.at(sums[j, :, k], bins[rows, j], values[rows])
    return sums


def loss_of(G, H, l2):
    """Twice the loss of a node at its best value, with the other sign."""
    return G * G / (H + l2 + 1e-15)


def best_gain(sums, n_bins, l2, min_rows, min_curvature):
    """The largest gain of all splits by thresholds, missing values on either side; -1 without one."""
    best = -1.0
    for f, n in enumerate(n_bins):
        total = sums[f].sum(axis=0)
        for b in range(n):
            for missing in (0, 1):
                left = sums[f, : b + 1].sum(axis=0) + missing * sums[f, 255]
                right = total - left
                if min(left[2], right[2]) >= min_rows and min(left[1], right[1]) >= min_curvature:
                    gain = loss_of(*left[:2], l2) + loss_of(*right[:2], l2) - loss_of(*total[:2], l2)
                    best = max(best, gain)
    return best


def best_subset_gain(cells, l2):
    """The largest gain of all subsets of some categories; cells are (levels, 3)."""
    total, best = cells.sum(axis=0), -1.0
    for code in range(1, 2 ** len(cells) - 1):
        chosen = np.array([code >> k & 1 for k in range(len(cells))], bool)
        left, right = cells[chosen].sum(axis=0), cells[~chosen].sum(axis=0)
        best = max(best, loss_of(*left[:2], l2) + loss_of(*right[:2], l2) - loss_of(*total[:2], l2))
    return best
