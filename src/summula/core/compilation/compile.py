"""Compilation of kernels: serial, without the GIL, cached on disk if a cache folder is writable.

Compiling takes 0.05 to 0.5 s per kernel and happens once per machine for each signature a kernel is called with. So
callers convert arrays to the one dtype and layout a kernel supports, kernels of moderate size call each other, and
state is passed in few arrays (records have named fields) rather than in large tuples.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

from numba import njit, typeof, types
from numba.core.datamodel import models, register_default

from summula.core.compilation.compiler_choice import KernelCompiler
from summula.core.compilation.kernel_cache import enable_cache
from summula.core.compilation.kernel_libraries import InternalCompiler, InternalSummingCompiler

__all__ = [
    "SINGLE_PRECISION",
    "compile_for",
    "compiled",
    "inlined",
    "internal_fused_kernel",
    "internal_kernel",
    "internal_summing_kernel",
    "kernel",
    "non_allocating_kernel",
    "row_dtypes",
    "summing_kernel",
]

# Division by zero gives infinity or NaN, as in NumPy; kernels are not used as C callbacks.
_OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": False, "no_cfunc_wrapper": True}
_SUMMING = {"fastmath": {"reassoc", "contract"}}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of arrays and numbers with Numba on its first call.

    Kernels are serial; the engine runs them on its threads. If neither the package nor the user's cache folder is
    writable, they are recompiled in every process.
    """
    return compiled(function)


def summing_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel whose sums may be reassociated, which allows vector instructions.

    The order is fixed at compile time, so results are reproducible; NaN and infinities are handled as usual.
    """
    return compiled(function, **_SUMMING)


def non_allocating_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that creates no arrays without reference counting, which shortens compilation."""
    return compiled(function, _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a short function only inlined into its callers, which saves compiling it separately."""
    return njit(**_OPTIONS, inline="always")(function)


def internal_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that is called only by kernels to LLVM code, which is linked into that of its callers.

    It must not create arrays. When called from Python, as in tests, it is first compiled as an ordinary kernel.
    """
    return _InternalKernel(function, InternalCompiler, {})


def internal_summing_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that only kernels call, and whose sums may be added in any order, the same in all callers."""
    return _InternalKernel(function, InternalSummingCompiler, _SUMMING)


def internal_fused_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that only kernels call, and whose products and sums may be one instruction (fused multiply-add).

    That rounds once instead of twice; the order of operations, NaN and infinities stay as they are.
    """
    return _InternalKernel(function, InternalCompiler, {"fastmath": {"contract"}})


class _InternalKernel:
    """Behaves like a compiled function inside kernels (`_numba_type_` is Numba's protocol for that)."""

    def __init__(self, function: Callable[..., Any], compiler: Any, options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        # Not cached: callers contain its code.
        decorate = njit(**_OPTIONS, **options, no_cpython_wrapper=True, _nrt=False, pipeline_class=compiler)
        self._dispatcher = decorate(function)
        self.targetoptions = self._dispatcher.targetoptions
        self._numba_type_ = _KernelType(self._dispatcher)  # a weak reference
        self._callable: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._callable is None:
            self._callable = compiled(self.py_func, **self._options)
        return self._callable(*args)


class _KernelType(types.Dispatcher):
    """Numba type of an internal kernel; literal arguments do not cause additional signatures."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call."""
        return super().get_call_type(context, [types.unliteral(kind) for kind in args], kws)


register_default(_KernelType)(models.OpaqueModel)


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Return a Numba function with a disk cache; `options` are Numba's, besides those of every kernel."""
    dispatcher = njit(**_OPTIONS, **options, pipeline_class=KernelCompiler)(function)
    enable_cache(dispatcher, options)
    return dispatcher


def compile_for(kernel: Any, *arguments: Any) -> None:
    """Compile a kernel for the types of these arguments, without calling it."""
    kernel.compile(tuple(typeof(argument) for argument in arguments))


SINGLE_PRECISION = "SUMMULA_WARMUP_FLOAT32"


def row_dtypes() -> tuple[Literal["float64", "float32"], ...]:
    """Return the types of rows for which `warmup` functions compile: double precision, and single if requested."""
    return ("float64", "float32") if os.environ.get(SINGLE_PRECISION) == "1" else ("float64",)
