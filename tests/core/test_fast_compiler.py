"""What is left out of Numba's compiler changes nothing that is compiled, and is back in place afterwards."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest
from llvmlite import ir as llvm
from numba import njit, types
from numba.core import base, cpu, ir
from numba.core.compiler import run_frontend
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction

from summula.core.compilation import kernel_cache
from summula.core.compilation.fast_compiler import _collect_variables, faster_numba

POINT = np.dtype([("x", np.float64), ("count", np.int64)])


def scale(values, points, start, flag):
    """Use numbers of all kinds, arrays, records, tuples, comparisons and functions of Numba's own library."""
    total, bits = 0.0, np.uint64(start)
    for i in range(start, len(values)):
        for a, b in ((values[i], 2.0), (np.sqrt(abs(values[i])), 3.0)):
            total += max(a, b) if flag and i % 3 != 1 else -a // b
        bits ^= np.uint64(i) << np.uint64(2)
        points[i].count += int(total > 1) + (i & 1)
    points[start].x = total**2 + min(bits, np.uint64(7)) - (total if total < 0 else 1 / (start + 1))
    return total, bits, points[start].x


def code_of(function, kinds):
    dispatcher = njit(function)
    dispatcher.compile(kinds)
    (text,) = dispatcher.inspect_llvm().values()
    return re.sub(r"scale\w*|B\dv\d+\w*", "", text)


def originals():
    owners = [(ir.Inst, "_rec_list_vars"), (BaseFunction, "get_call_type"), (base.BaseContext, "get_abi_sizeof")]
    return [getattr(owner, name) for owner, name in [*owners, (cpu.CPUContext, "load_additional_registries")]]


def test_the_same_code_is_compiled():
    kinds = (types.float64[::1], types.Array(_record(), 1, "C"), types.int64, types.boolean)
    before = originals()
    plain = code_of(scale, kinds)
    with faster_numba():
        assert all(now is not then for now, then in zip(originals(), before, strict=True))
        first, again = code_of(scale, kinds), code_of(scale, kinds)
    assert originals() == before
    assert first == plain
    assert again == plain


def _record():
    from numba import from_dtype

    return from_dtype(POINT)


def test_everything_is_back_after_an_error():
    before = originals()
    with pytest.raises(ZeroDivisionError), faster_numba():
        raise ZeroDivisionError
    assert originals() == before


def test_variables_of_instructions_are_those_that_numba_lists():
    listed = 0
    for block in run_frontend(scale).blocks.values():
        for statement in block.body:
            found: list[object] = []
            _collect_variables(statement, found)
            assert found == statement.list_vars()
            listed += len(found)
    assert listed > 100


def test_sizes_of_types_are_those_of_the_target():
    context, number = cpu_target.target_context, llvm.IntType(64)
    kinds = [number, llvm.DoubleType(), llvm.ArrayType(number, 3), llvm.LiteralStructType([number, llvm.IntType(8)])]
    sizes = [context.get_abi_sizeof(kind) for kind in kinds]
    with faster_numba():
        assert [context.get_abi_sizeof(kind) for kind in kinds] == sizes
        assert [context.get_abi_sizeof(kind) for kind in kinds] == sizes
    assert sizes == [8, 8, 24, 16]


def test_objects_made_while_compiling_are_collected_later_only():
    frozen = gc.get_freeze_count()
    kernel_cache._skip_collection()
    assert gc.get_freeze_count() == frozen
    assert gc.get_count()[0] < 100
