"""Random numbers of a place: a hash of where they are used, so that order and threads are nothing to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.numerics.compile import kernel

__all__ = ["hashed"]


@kernel
def hashed(number: Any) -> Any:
    """64 bits that look random, of a number (the finaliser of MurmurHash3)."""
    x = number
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))
