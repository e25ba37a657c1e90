"""The statistics of `summula.core.numerics.statistics` in plain NumPy: whole columns at once, nothing shifted or merged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Columns(NamedTuple):
    """Moments of some columns."""

    count: Any
    weight: Any
    mean: Any
    variance: Any


def moments(X, w=None):
    """Weighted mean and variance of each column over its values that are not NaN, deviations from the mean first."""
    X = np.asarray(X, np.longdouble)
    w = np.ones(len(X)) if w is None else np.asarray(w)
    seen = ~np.isnan(X)
    weight = w @ seen
    with np.errstate(invalid="ignore"):
        mean = w @ np.where(seen, X, 0) / weight
        variance = w @ np.where(seen, X - mean, 0) ** 2 / weight
    return Columns(seen.sum(axis=0), weight, mean, variance)


def gram(Z, w=None, origin=0.0):
    """sum w (z - o) and sum w (z - o)(z - o)'."""
    A = np.asarray(Z, np.longdouble) - origin
    w = np.ones(len(A)) if w is None else np.asarray(w)
    return w @ A, (A * w[:, None]).T @ A


def centred_products(Z, w=None):
    """sum w (z - zbar)(z - zbar)'."""
    return gram(Z, w, moments(Z, w).mean)[1]


def weighted_rows(Z, w=None, origin=0.0, *, lead=False):
    """A, the rows (1, z - o) or z - o times the root of their weight: R'R is A'A."""
    A = np.asarray(Z, float) - origin
    A = np.column_stack([np.ones(len(A)), A]) if lead else A
    return A if w is None else A * np.sqrt(w)[:, None]
