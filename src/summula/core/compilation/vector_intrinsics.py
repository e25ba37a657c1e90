"""Intrinsics on vectors, for loops that LLVM does not vectorise well itself: searches, transposes, sums and products.

All of them are for use inside kernels.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from summula.core.compilation.intrinsics import define, element_pointer, emit_prefetch, number_type

__all__ = [
    "add_row_products_8",
    "add_row_products_16",
    "any_of_32_at_most",
    "any_of_64_at_most",
    "four_products",
    "four_squares",
    "transpose_4",
    "transpose_8",
]

_I32 = ir.IntType(32)
_LANES = 16  # that are compared at a time


def _any_at_most(count: int) -> Any:
    """Make the intrinsic that compares `count` elements with a limit."""

    @define
    def any_at_most(typing: Any, array: Any, index: Any, limit: Any) -> Any:
        """Return whether any of `count` elements from an index on is at most a limit: one comparison per vector."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number, size = number_type(signature.args[2]), signature.args[2].bitwidth // 8
            vector, lanes = ir.VectorType(number, _LANES), range(_LANES)
            first = element_pointer(context, builder, signature.args[0], *args[:2])
            pointer = builder.bitcast(first, vector.as_pointer())
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


any_of_32_at_most: Any = _any_at_most(32)
any_of_64_at_most: Any = _any_at_most(64)


def _transposer(size: int) -> Any:
    """Make the intrinsic that writes `size` rows of `size` columns: a transpose in registers."""

    @define
    def transpose(
        typing: Any, kind: Any, columns: Any, begin: Any, shift: Any, out: Any, row_bytes: Any, later: Any, there: Any
    ) -> Any:
        """Copy columns, less the shifts at `shift`, into rows that start at `out`.

        columns, begin : where the addresses of the columns are, and the byte of each column to begin with.
        kind : a number of the type of the values.
        later, there : addresses of columns, and the byte from which on these are needed next; prefetched.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number, size_of = number_type(signature.args[0]), signature.args[0].bitwidth // 8
            vector, word = ir.VectorType(number, size), ir.IntType(64)
            args = args[1:]

            def pointer(address: Any) -> Any:
                return builder.inttoptr(address, vector.as_pointer())

            def mix(x: Any, y: Any, places: list[int]) -> Any:
                return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), size), places))

            first, lanes = builder.inttoptr(args[0], word.as_pointer()), range(size)
            starts = [builder.load(builder.gep(first, [ir.Constant(word, k)])) for k in lanes]
            v = [builder.load(pointer(builder.add(start, args[1])), align=size_of) for start in starts]
            for s in [2**k for k in range(size.bit_length() - 1)]:  # exchange bit s of row and column numbers
                low = [i if not i & s else size + i - s for i in lanes]
                high = [i + s if not i & s else size + i for i in lanes]
                v = [mix(v[k], v[k | s], low) if not k & s else mix(v[k - s], v[k], high) for k in lanes]
            next_first = builder.inttoptr(args[5], word.as_pointer())
            for k in lanes:
                place = builder.add(builder.load(builder.gep(next_first, [ir.Constant(word, k)])), args[6])
                emit_prefetch(builder, builder.inttoptr(place, ir.IntType(8).as_pointer()), 2)
            by, target = builder.load(pointer(args[2]), align=size_of), args[3]
            for row in v:
                builder.store(builder.fsub(row, by), pointer(target), align=size_of)
                target = builder.add(target, args[4])
            return context.get_dummy_value()

        return types.void(kind, *[types.uint64] * 4, types.int64, *[types.uint64] * 2), generate

    return transpose


transpose_4: Any = _transposer(4)
transpose_8: Any = _transposer(8)


def _four_sums(squared: bool) -> Any:
    """Make the intrinsic that multiplies four rows with r, or their squares: four terms of each sum at a time."""

    @define
    def four_sums(typing: Any, Z: Any, a: Any, b: Any, c: Any, e: Any, r: Any, count: Any, out: Any) -> Any:
        """Write the four partial sums of z'r to `out`, for the rows z of Z at the addresses a to e.

        count : values of each row, a multiple of 4; partial sum k has the terms k, k + 4, k + 8, ...
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            size = signature.args[0].dtype.bitwidth // 8
            stored = ir.VectorType(number_type(signature.args[0].dtype), 4)
            four, word = ir.VectorType(ir.DoubleType(), 4), ir.IntType(64)

            def load(kind: Any, address: Any, place: Any, step: int) -> Any:
                at = builder.add(address, builder.mul(place, ir.Constant(word, step)))
                return builder.load(builder.inttoptr(at, kind.as_pointer()), align=step)

            def term(address: Any) -> Any:
                x = load(stored, address, i, size)
                x = x if size == 8 else builder.fpext(x, four)
                return builder.fmul(builder.fmul(x, x) if squared else x, by)

            entry, zero = builder.block, ir.Constant(four, [0.0] * 4)
            loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.cbranch(builder.icmp_unsigned(">", args[6], ir.Constant(word, 0)), loop, after)
            builder.position_at_end(loop)
            i, sums = builder.phi(word), [builder.phi(four) for _ in range(4)]
            by = load(four, args[5], i, 8)
            following = [builder.fadd(s, term(address)) for s, address in zip(sums, args[1:5], strict=True)]
            further = builder.add(i, ir.Constant(word, 4))
            for phi, start, again in zip([i, *sums], [ir.Constant(word, 0), *[zero] * 4], [further, *following],
                                         strict=True):  # fmt: skip
                phi.add_incoming(start, entry)
                phi.add_incoming(again, loop)
            builder.cbranch(builder.icmp_unsigned("<", further, args[6]), loop, after)
            builder.position_at_end(after)
            totals = [builder.phi(four) for _ in range(4)]
            for total, summed in zip(totals, following, strict=True):
                total.add_incoming(zero, entry)
                total.add_incoming(summed, loop)
            for k, total in enumerate(totals):
                place = builder.add(args[7], ir.Constant(word, 32 * k))
                builder.store(total, builder.inttoptr(place, four.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(Z, *[types.uint64] * 7), generate

    return four_sums


four_products: Any = _four_sums(squared=False)
four_squares: Any = _four_sums(squared=True)


def _row_product(lanes: int) -> Any:
    """Make the intrinsic for one sparse row x and `lanes` columns: e = w x'B in registers, then out += x e'."""

    @define
    def add_row_product(typing: Any, x: Any, j: Any, count: Any, w: Any, B: Any, out: Any, row_bytes: Any) -> Any:
        """Add w x (x'B) to `out`.

        x, j : pointers to the stored values and columns of the row.
        B, out : addresses of the first rows, with `row_bytes` between rows.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, columns, n, weight, B, out, row_bytes = args
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

    return add_row_product


add_row_products_8: Any = _row_product(8)
add_row_products_16: Any = _row_product(16)
