"""LLVM instructions and system calls that Numba does not provide: atomics, prefetch, min and max, and waiting.

All of them are for use inside kernels. Atomics work on elements of one-dimensional int64 arrays.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

__all__ = [
    "any_of_32_at_most",
    "any_of_64_at_most",
    "compare_exchange",
    "cpu_relax",
    "emit_prefetch",
    "load_acquire",
    "maximum",
    "minimum",
    "prefetch",
    "sched_yield",
    "sleep_microseconds",
    "store_release",
]

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_IS_WINDOWS = sys.platform == "win32"
_MACHINE = platform.machine().lower()


def _define(function: Callable[..., Any]) -> Any:
    """Register an intrinsic; callers leave out the typing context, which Numba provides."""
    return intrinsic(function)


def _element(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return the address of an element of a one-dimensional array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _external(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Declare a function of the C library or the operating system."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def _extreme(name: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        double = ir.DoubleType()
        function = builder.module.declare_intrinsic(name, [double], ir.FunctionType(double, [double, double]))
        return builder.call(function, args, fastmath=("nnan", "nsz"))

    return types.float64(types.float64, types.float64), generate


@_define
def maximum(typing: Any, a: Any, b: Any) -> Any:
    """Return the larger of two doubles that are not NaN; a loop over it uses vector instructions."""
    return _extreme("llvm.maxnum")


@_define
def minimum(typing: Any, a: Any, b: Any) -> Any:
    """Return the smaller of two doubles that are not NaN; a loop over it uses vector instructions."""
    return _extreme("llvm.minnum")


def _any_at_most(count: int) -> Any:
    @_define
    def any_at_most(typing: Any, array: Any, index: Any, limit: Any) -> Any:
        """Return whether any of `count` elements from an index on is at most a limit: one comparison per vector."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number, size = (ir.DoubleType(), 8) if signature.args[2] == types.float64 else (ir.FloatType(), 4)
            vector, lanes = ir.VectorType(number, _LANES), range(_LANES)
            pointer = builder.bitcast(_element(context, builder, signature.args[0], *args[:2]), vector.as_pointer())
            limits = ir.Constant(vector, ir.Undefined)
            for k in lanes:
                limits = builder.insert_element(limits, args[2], _I32(k))
            found = ir.Constant(ir.VectorType(ir.IntType(1), _LANES), [0] * _LANES)
            for k in range(count // _LANES):
                values = builder.load(builder.gep(pointer, [_I32(k)]), align=size)
                found = builder.or_(found, builder.fcmp_ordered("<=", values, limits))
            mask = ir.IntType(_LANES)
            return builder.icmp_unsigned("!=", builder.bitcast(found, mask), mask(0))

        return types.boolean(array, types.intp, array.dtype), generate

    return any_at_most


_LANES = 16
any_of_32_at_most: Any = _any_at_most(32)
any_of_64_at_most: Any = _any_at_most(64)


@_define
def load_acquire(typing: Any, array: Any, index: Any) -> Any:
    """Read an element; what its writer stored before it is visible afterwards."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature.args[0], *args), "acquire", 8)

    return types.int64(array, types.intp), generate


@_define
def store_release(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write an element after everything this thread stored before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _element(context, builder, signature.args[0], *args[:2]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@_define
def compare_exchange(typing: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Write `desired` if the element equals `expected`; return whether it did."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature.args[0], *args[:2])
        return builder.extract_value(builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "acquire"), 1)

    return types.boolean(array, types.intp, types.int64, types.int64), generate


@_define
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Request the cache line of an element for reading, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(_element(context, builder, signature.args[0], *args), _BYTES)
        emit_prefetch(builder, pointer, 3)  # into all caches
        return context.get_dummy_value()

    return types.void(array, index), generate


def emit_prefetch(builder: Any, pointer: Any, locality: int) -> None:
    """Generate the instruction that requests a cache line for reading; `locality` 3 is for all caches, 2 from L2 on."""
    shape = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], shape)
    builder.call(function, [pointer, _I32(0), _I32(locality), _I32(1)])  # read, data


@_define
def cpu_relax(typing: Any) -> Any:
    """Tell the processor that this thread is spinning (pause on x86, yield on ARM; nothing elsewhere)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shape = ir.FunctionType(ir.VoidType(), [])
        if _MACHINE in ("x86_64", "amd64"):
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", [], shape), [])
        elif _MACHINE in ("aarch64", "arm64"):
            builder.asm(shape, "yield", "", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), generate


@_define
def sched_yield(typing: Any) -> Any:
    """Yield the processor to another thread that is ready to run."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.call(_external(builder, "SwitchToThread" if _IS_WINDOWS else "sched_yield", _I32, []), [])
        return context.get_dummy_value()

    return types.void(), generate


@_define
def sleep_microseconds(typing: Any, duration: Any) -> Any:
    """Sleep for at least `duration` microseconds, which must be below a million."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _IS_WINDOWS:  # whole milliseconds
            builder.call(_external(builder, "Sleep", ir.VoidType(), [_I32]), [_I32(1)])
        else:
            builder.call(_external(builder, "usleep", _I32, [_I32]), [builder.trunc(args[0], _I32)])
        return context.get_dummy_value()

    return types.void(types.int64), generate
