"""How every kernel is compiled: serial, outside the GIL, cached on disk where there is a place to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["kernel", "piece", "summing_kernel"]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of arrays and numbers with Numba when it is first called.

    The engine runs kernels on its threads, so they are serial themselves. Where neither the package nor the user's
    cache folder can be written to, they are compiled anew in every process.
    """
    return _compiled(function)


def summing_kernel(function: Callable[..., Any]) -> Any:
    """The same for sums whose terms may be added in any order, as vector instructions do.

    The order is fixed when it is compiled, so equal rows give equal bits; NaN and infinities keep their meaning.
    """
    return _compiled(function, fastmath={"reassoc", "contract"})


def piece(function: Callable[..., Any]) -> Any:
    """A part of a kernel: compiled with whoever calls it and never alone, which saves the time of doing both."""
    return njit(nogil=True, inline="always")(function)


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)
