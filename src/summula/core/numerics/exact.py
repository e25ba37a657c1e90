"""Accurate conversion of intercepts between origins, with a single rounding.

A fit works with columns about an origin o near their mean: eta = lead + (x - o)'v. The reported intercept is
b = lead - o'v. If columns are far from 0, o'v is much larger than the lead, and b cannot represent all of its digits:
the returned model differs from the fitted one by the rounding error of b. The functions below convert between the two
with no other error. Products are split into two floats without error (Dekker, 1971) and added exactly (`math.fsum`).
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["dot", "intercepts", "leads", "shifts"]

Array = NDArray[np.float64]

_SPLIT = 134_217_729.0  # 2^27 + 1
_FEW = 64  # maximum number of products for which pure Python, with the same bits, is faster than NumPy


def dot(a: Array, b: Array, *others: float) -> float:
    """Return sum_j a_j b_j plus the other numbers, rounded once."""
    if len(a) <= _FEW and (total := _dot_of_few(a.tolist(), b.tolist(), others)) is not None:
        return total
    used = np.flatnonzero((a != 0) & (b != 0))  # few penalised coefficients
    if len(used) < len(a):
        return dot(a[used], b[used], *others)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = a * b
        rests = _rest(a, b, products)
        with suppress(OverflowError, ValueError):  # overflow of partial sums, or infinities of both signs
            total = math.fsum([*products.tolist(), *rests.tolist(), *others])
            if math.isfinite(total):
                return total
        return float(products.sum() + np.sum(others))  # factors near the overflow threshold cannot be split


def _dot_of_few(a: list[float], b: list[float], others: tuple[float, ...]) -> float | None:
    """Return the same as `dot`; None if the sum is not finite."""
    terms = [*others]
    for x, y in zip(a, b, strict=True):
        product, scaled_x, scaled_y = x * y, _SPLIT * x, _SPLIT * y
        high_x, high_y = scaled_x - (scaled_x - x), scaled_y - (scaled_y - y)
        low_x, low_y = x - high_x, y - high_y
        terms.append(product)
        terms.append(((high_x * high_y - product) + high_x * low_y + low_x * high_y) + low_x * low_y)
    with suppress(OverflowError, ValueError):
        total = math.fsum(terms)
        return total if math.isfinite(total) else None
    return None


def _rest(a: Array, b: Array, products: Array) -> Array:
    """Return the rounding errors of the products."""
    high_a, high_b = _high(a), _high(b)
    low_a, low_b = a - high_a, b - high_b
    return np.asarray(((high_a * high_b - products) + high_a * low_b + low_a * high_b) + low_a * low_b)


def _high(a: Array) -> Array:
    """Return the leading half of the digits."""
    scaled = _SPLIT * a
    return np.asarray(scaled - (scaled - a))


def leads(coef: Any, origin: Array, *terms: Any) -> Array:
    """Return the constant terms about an origin: o'v_k plus the terms of output k, for the rows v_k of `coef`."""
    rows = np.asarray(coef, np.float64)
    rows = rows if rows.ndim == 2 else rows.reshape(1, -1)
    columns = [np.asarray(term, np.float64).reshape(-1).tolist() for term in terms]
    return np.array([dot(origin, v, *(term[k] for term in columns)) for k, v in enumerate(rows)])


def intercepts(coef: Any, origin: Array, *terms: Any, dtype: Any = np.float64) -> Array:
    """Return the intercepts about 0, rounded to `dtype` (as float64): the terms of output k minus o'v_k."""
    with np.errstate(over="ignore"):
        return leads(coef, -origin, *terms).astype(dtype).astype(np.float64)


def shifts(coef: Any, origin: Array, intercept: Any, lead: Any, *, relative: bool = False) -> Array:
    """Return the differences b_k + o'v_k - lead_k between intercepts moved to the origin and constant terms there.

    If only differences between outputs matter, `relative` subtracts the value of the first output.
    """
    rows = np.atleast_2d(np.asarray(coef, np.float64))
    b, at = np.atleast_1d(np.asarray(intercept, np.float64)), np.atleast_1d(np.asarray(lead, np.float64))
    if not relative:
        return leads(rows, origin, b, -at)
    both = np.concatenate([origin, -origin])
    return np.array([dot(both, np.concatenate([v, rows[0]]), b[k], -b[0], -at[k], at[0]) for k, v in enumerate(rows)])
