"""The losses of `scores.py`, compiled: for a single score, by the number of the loss in `scores.TAGS`."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.compilation.compile import internal_kernel

__all__ = ["loss_of_score", "slope_of_score"]


@internal_kernel
def _positive(x: float) -> float:
    """Return max(x, 0), and NaN of NaN. (Numba compiles the built-in once for every place where it is called.)"""
    return 0.0 if x < 0.0 else x


@internal_kernel
def loss_of_score(loss: int, bend: float, y: float, p: float) -> Any:
    """Return the loss of a score; y is -1 or 1 for margin losses, any number for the others."""
    z, size = y * p, abs(p - y)
    if loss == 0:
        return _positive(bend - z)
    if loss == 1 or (loss == 3 and z >= -1.0):
        short = _positive(1.0 - z)
        return short * short
    if loss == 2:
        return np.log1p(np.exp(-abs(z))) + _positive(-z)
    if loss == 3:
        return -4.0 * z
    if loss == 4 or (loss == 5 and size <= bend):
        return 0.5 * size * size
    if loss == 5:
        return bend * size - 0.5 * bend * bend
    if loss == 8:
        return np.exp(-z)
    if loss == 9:
        return (1.0 - bend) * size if p > y else bend * size
    over = _positive(size - bend)
    return over if loss == 6 else over * over


@internal_kernel
def slope_of_score(loss: int, bend: float, y: float, p: float) -> Any:
    """Return the derivative of the loss in p."""
    if loss <= 3:
        z = y * p
        if loss == 0:
            return -y if z <= bend else 0.0
        if loss == 2:
            return -y / (1.0 + np.exp(z)) if z < 700.0 else 0.0
        if z >= 1.0:
            return 0.0
        return -2.0 * y * (1.0 - z) if loss == 1 or z >= -1.0 else -4.0 * y
    r = p - y
    if loss == 4 or (loss == 5 and abs(r) <= bend):
        return r
    if loss == 5:
        return bend * np.sign(r)
    if loss == 8:
        return -y * np.exp(-y * p)
    if loss == 9:
        return 1.0 - bend if r > 0.0 else -bend
    if abs(r) <= bend:
        return 0.0
    return np.sign(r) if loss == 6 else 2.0 * (r - bend * np.sign(r))
