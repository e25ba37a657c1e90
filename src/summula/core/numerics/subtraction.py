"""Validation of sums from which other sums were subtracted.

    counts and weights >= 0,     squares about the mean >= 0,     products about the mean positive semidefinite

Subtracting rows that were not summed before may leave impossible sums. Rounding leaves small negative numbers, so a
violation must exceed a fraction of the sums before.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.numerics.sums import Groups, Sum

__all__ = ["impossible"]

Array = NDArray[np.float64]

_ROUNDING = 1e-8  # relative to the sums before


def impossible(left: Any, before: Any) -> str | None:
    """Describe what is impossible in sums from which others were subtracted; None if they are valid.

    `before` may be of an earlier class, with fewer fields.
    """
    if left is None or before is None:
        return None
    if isinstance(left, Groups):
        each = (impossible(a, b) for a, b in zip(left.groups, before.groups, strict=True))
        return next((one for one in each if one is not None), None)
    for field in fields(left):
        value, earlier = getattr(left, field.name), getattr(before, field.name, None)
        if isinstance(value, Sum) and (found := impossible(value, earlier)) is not None:
            return found
    for name, words in left.nonnegative.items():
        if hasattr(left, name) and _is_negative(getattr(left, name), getattr(before, name, 0.0)):
            return f"a negative {words}"
    if hasattr(left, "square") and _is_negative(_variances(left), before.square):
        return "a negative variance"
    if hasattr(left, "products") and _is_indefinite(left, before):
        return "a covariance matrix with a negative eigenvalue"
    return None


def _is_negative(value: Any, scale: Any) -> bool:
    return bool((np.asarray(value) < -_ROUNDING * np.abs(scale)).any())


def _variances(sums: Any) -> Array:
    weight = np.where(sums.weight > 0, sums.weight, 1.0)
    return np.asarray(sums.square - sums.total**2 / weight)


def _is_indefinite(left: Any, before: Any) -> bool:
    """Return whether products about the mean, of one or several sets of rows, have a clearly negative eigenvalue."""
    d = left.products.shape[-1]
    products, earlier = left.products.reshape(-1, d, d), before.products.reshape(-1, d, d)
    totals, weights = left.total.reshape(-1, d), np.atleast_1d(left.weight)
    for G, old, s, w in zip(products, earlier, totals, weights, strict=True):
        centred = G - np.outer(s, s) / (w if w > 0 else 1.0)
        scale = np.sqrt(np.maximum(np.diag(old), 0.0))
        scale = np.where(scale > 0, scale, 1.0)
        scaled = centred / scale / scale[:, None]
        if np.isfinite(scaled).all() and np.linalg.eigvalsh(scaled)[0] < -_ROUNDING * d:
            return True
    return False
