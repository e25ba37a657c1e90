"""Choice of the compiler of kernels: Numba's with less overhead if possible, else plain Numba.

`fast_compiler` replaces parts of Numba that are not its public interface. A version of Numba in which one of them is
missing or has changed compiles kernels as it always does: the same code, only slower.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core.compiler import Compiler

__all__ = ["KernelCompiler", "faster_numba"]


class _Choice(NamedTuple):
    """A compiler class, and a context manager entered during compilation."""

    compiler: Any
    faster: Callable[[], contextlib.AbstractContextManager[None]]


def _choose() -> _Choice:
    try:
        from summula.core.compilation import fast_compiler

        fast_compiler.check_numba()
    except Exception:  # a part of Numba is missing, or has changed
        return _Choice(Compiler, contextlib.nullcontext)
    return _Choice(fast_compiler.KernelCompiler, fast_compiler.faster_numba)


KernelCompiler, faster_numba = _choose()
