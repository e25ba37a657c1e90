"""How every kernel is compiled: serial, outside the GIL, cached on disk where there is a place to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["kernel"]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of arrays and numbers with Numba when it is first called.

    The engine runs kernels on its threads, so they are serial themselves. Where neither the package nor the user's
    cache folder can be written to, they are compiled anew in every process.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
