"""Compiled products with CSR rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from summula.core.compilation.compile import kernel, row_dtypes

__all__ = ["LANES", "normal_products", "warmup"]

Array = NDArray[Any]

LANES = 8  # vector length: rows of B consist of such vectors


def _row_product(lanes: int) -> Any:
    """Generate the instructions for one row x and `lanes` columns: e = w x'B in registers, then out += x e'."""

    @intrinsic
    def _add(typing: Any, x: Any, j: Any, count: Any, w: Any, B: Any, out: Any, row_bytes: Any) -> Any:
        """x, j : pointers to the stored values and columns of the row; B, out : addresses of the first row."""

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            values, columns, n, weight, B, out, row_bytes = given
            word, double = ir.IntType(64), ir.DoubleType()
            vector = ir.VectorType(double, lanes)
            zero = ir.Constant(vector, [0.0] * lanes)

            def spread(value: Any) -> Any:
                one = builder.insert_element(zero, value, ir.Constant(ir.IntType(32), 0))
                return builder.shuffle_vector(one, zero, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))

            def stored(k: Any, start: Any) -> tuple[Any, Any]:
                value = builder.load(builder.gep(values, [k]))
                value = value if value.type == double else builder.fpext(value, double)
                column = builder.load(builder.gep(columns, [k]))
                column = column if column.type == word else builder.sext(column, word)
                address = builder.add(start, builder.mul(column, row_bytes))
                return spread(value), builder.inttoptr(address, vector.as_pointer())

            def loop(name: str) -> tuple[Any, Any, Any]:
                before, body = builder.block, builder.append_basic_block(name)
                after = builder.append_basic_block(name + ".end")
                builder.cbranch(builder.icmp_signed(">", n, ir.Constant(word, 0)), body, after)
                builder.position_at_end(body)
                k = builder.phi(word)
                k.add_incoming(ir.Constant(word, 0), before)
                return before, k, after

            def close(k: Any, after: Any) -> Any:
                body, following = builder.block, builder.add(k, ir.Constant(word, 1))
                k.add_incoming(following, body)
                builder.cbranch(builder.icmp_signed("<", following, n), k.parent, after)
                builder.position_at_end(after)
                return body

            before, k, after = loop("gather")
            e = builder.phi(vector)
            e.add_incoming(zero, before)
            x, place = stored(k, B)
            total = builder.fadd(e, builder.fmul(x, builder.load(place, align=8)))
            body = close(k, after)
            e.add_incoming(total, body)
            product = builder.phi(vector)
            product.add_incoming(zero, before)
            product.add_incoming(total, body)
            product = builder.fmul(product, spread(weight))
            _, k, after = loop("scatter")
            x, place = stored(k, out)
            builder.store(builder.fadd(builder.load(place, align=8), builder.fmul(x, product)), place, align=8)
            close(k, after)
            return context.get_dummy_value()

        pointers = types.CPointer(x.dtype), types.CPointer(j.dtype)
        return types.void(*pointers, types.int64, types.float64, types.uint64, types.uint64, types.int64), generate

    return _add


_one: Any = _row_product(LANES)
_two: Any = _row_product(2 * LANES)


@kernel
def normal_products(indptr: Array, indices: Array, data: Array, weight: Array, B: Array, out: Array) -> None:
    """out += X'W X B, where the width of B is a multiple of LANES.

    The rows of B used by a row of X are still in cache when its products are scattered back.
    """
    weighted, width, row_bytes = len(weight) > 0, B.shape[1], B.strides[0]
    if width % LANES or out.shape != B.shape:
        raise ValueError("the width of B must be a multiple of LANES and equal that of out")
    for i in range(len(indptr) - 1):
        first = np.int64(indptr[i])
        count = np.int64(indptr[i + 1]) - first
        if count == 0:
            continue
        x, j = data[first:].ctypes, indices[first:].ctypes
        w = weight[i] if weighted else 1.0
        t = 0
        while t + 2 * LANES <= width:
            at = np.uint64(8 * t)
            _two(x, j, count, w, np.uint64(B.ctypes.data) + at, np.uint64(out.ctypes.data) + at, row_bytes)
            t += 2 * LANES
        if t < width:
            at = np.uint64(8 * t)
            _one(x, j, count, w, np.uint64(B.ctypes.data) + at, np.uint64(out.ctypes.data) + at, row_bytes)


def warmup() -> None:
    """Compile the kernel for the usual types."""
    B, one = np.ones((1, LANES)), np.ones(1)
    ends, at = np.array([0, 1], np.int32), np.zeros(1, np.int32)
    for dtype in row_dtypes():
        normal_products(ends, at, one.astype(dtype), one, B, B.copy())
