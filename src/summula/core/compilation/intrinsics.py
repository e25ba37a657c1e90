"""LLVM instructions and system calls that Numba does not provide: atomics, addresses, prefetch, min and max, waiting.

All of them are for use inside kernels. Atomics work on elements of one-dimensional int64 arrays. Those that work on
vectors are in `vector_intrinsics`.
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
    "compare_exchange",
    "copy_shifted",
    "cpu_relax",
    "define",
    "element_pointer",
    "emit_prefetch",
    "load_acquire",
    "load_double",
    "load_word",
    "maximum",
    "minimum",
    "number_type",
    "prefetch",
    "sched_yield",
    "sleep_microseconds",
    "store_double",
    "store_release",
]

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_IS_WINDOWS = sys.platform == "win32"
_MACHINE = platform.machine().lower()


def define(function: Callable[..., Any]) -> Any:
    """Register an intrinsic; callers leave out the typing context, which Numba provides."""
    return intrinsic(function)


def element_pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return the address of an element of a one-dimensional array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def number_type(kind: Any) -> Any:
    """Return the LLVM type of float64 or float32."""
    return ir.DoubleType() if kind == types.float64 else ir.FloatType()


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


@define
def maximum(typing: Any, a: Any, b: Any) -> Any:
    """Return the larger of two doubles that are not NaN; a loop over it uses vector instructions."""
    return _extreme("llvm.maxnum")


@define
def minimum(typing: Any, a: Any, b: Any) -> Any:
    """Return the smaller of two doubles that are not NaN; a loop over it uses vector instructions."""
    return _extreme("llvm.minnum")


@define
def load_acquire(typing: Any, array: Any, index: Any) -> Any:
    """Read an element; what its writer stored before it is visible afterwards."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(element_pointer(context, builder, signature.args[0], *args), "acquire", 8)

    return types.int64(array, types.intp), generate


@define
def store_release(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write an element after everything this thread stored before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], element_pointer(context, builder, signature.args[0], *args[:2]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@define
def compare_exchange(typing: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Write `desired` if the element equals `expected`; return whether it did."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = element_pointer(context, builder, signature.args[0], *args[:2])
        return builder.extract_value(builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "acquire"), 1)

    return types.boolean(array, types.intp, types.int64, types.int64), generate


@define
def load_double(typing: Any, address: Any, index: Any) -> Any:
    """Read the double number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.inttoptr(args[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(first, [args[1]]))

    return types.float64(types.uint64, types.int64), generate


@define
def load_word(typing: Any, address: Any, index: Any) -> Any:
    """Read the word of 64 bits number `index` of those from an address on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.inttoptr(args[0], _I64.as_pointer())
        return builder.load(builder.gep(first, [args[1]]))

    return types.uint64(types.uint64, types.int64), generate


@define
def store_double(typing: Any, address: Any, value: Any) -> Any:
    """Write a double to an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], ir.DoubleType().as_pointer()))
        return context.get_dummy_value()

    return types.void(types.uint64, types.float64), generate


@define
def copy_shifted(typing: Any, source: Any, shift: Any, target: Any) -> Any:
    """Copy the number at one address, minus `shift` and of its type, to another address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = number_type(signature.args[1]).as_pointer()
        value = builder.fsub(builder.load(builder.inttoptr(args[0], pointer)), args[1])
        builder.store(value, builder.inttoptr(args[2], pointer))
        return context.get_dummy_value()

    return types.void(types.uint64, shift, types.uint64), generate


@define
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Request the cache line of an element for reading, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(element_pointer(context, builder, signature.args[0], *args), _BYTES)
        emit_prefetch(builder, pointer, 3)  # into all caches
        return context.get_dummy_value()

    return types.void(array, index), generate


def emit_prefetch(builder: Any, pointer: Any, locality: int) -> None:
    """Generate the instruction that requests a cache line for reading; `locality` 3 is for all caches, 2 from L2 on."""
    shape = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], shape)
    builder.call(function, [pointer, _I32(0), _I32(locality), _I32(1)])  # read, data


@define
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


@define
def sched_yield(typing: Any) -> Any:
    """Yield the processor to another thread that is ready to run."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.call(_external(builder, "SwitchToThread" if _IS_WINDOWS else "sched_yield", _I32, []), [])
        return context.get_dummy_value()

    return types.void(), generate


@define
def sleep_microseconds(typing: Any, duration: Any) -> Any:
    """Sleep for at least `duration` microseconds, which must be below a million."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _IS_WINDOWS:  # whole milliseconds
            builder.call(_external(builder, "Sleep", ir.VoidType(), [_I32]), [_I32(1)])
        else:
            builder.call(_external(builder, "usleep", _I32, [_I32]), [builder.trunc(args[0], _I32)])
        return context.get_dummy_value()

    return types.void(types.int64), generate
