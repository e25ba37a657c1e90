"""Skipped parts of Numba's compiler do not change the compiled code, and are restored afterwards."""

from __future__ import annotations

import copy
import gc
import re

import numpy as np
import pytest
from llvmlite import ir as llvm
from numba import njit, types
from numba.core import base, cpu, inline_closurecall, ir, ssa
from numba.core.compiler import Compiler, run_frontend
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction

from summula.core.compilation import fast_compiler, kernel_cache
from summula.core.compilation.compile import inlined
from summula.core.compilation.fast_compiler import KernelCompiler, _list_variables, _may_have_closures, faster_numba

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


@inlined
def half(value):
    """Be inlined."""
    return value / 2 if value > 0 else value


def sum_of_halves(values):
    """Call a function that is inlined."""
    total = 0.0
    for value in values:
        total += half(value)
    return total


@inlined
def quarter(value):
    """Inline a function that is itself inlined."""
    a, b = half(value), 2.0
    while a > b:
        a = half(a)
    return half(a)


def sum_of_quarters(values):
    """Call functions that are inlined several times, some within others."""
    total = quarter(values[0]) + half(values[1])
    for value in values:
        total += quarter(value) + quarter(total)
    return total


def expression(a, b):
    """Combine whole arrays, some of which are constant."""
    return (a * b + 1.0)[1:] - np.sqrt(a[1:]) + np.array([1.0, 2.0]).sum()


def closure(values, start):
    """Use a local function and comprehensions."""

    def shift(value):
        return value + start

    doubled = [2.0 * shift(value) for value in values]
    return np.array([one - 1.0 for one in doubled])


def appended(values):
    """Fill a list, and make an array of it."""
    found = []
    for value in values:
        found.append(value)
    return np.array(found)


def fields(points):
    """Use fields by name, in a loop over names, and arguments that are constant."""
    for i in range(len(points)):
        points[i]["x"] = points[i]["count"] + points["x"][0]
    if points is None:
        return 1
    return 0


def code_of(function, kinds, compiler=Compiler):
    dispatcher = njit(function, pipeline_class=compiler)
    dispatcher.compile(kinds)
    (text,) = dispatcher.inspect_llvm().values()
    # Names hold the number of functions compiled so far, on which the lengths of their constants depend, too.
    return re.sub(r"scale\w*|B\dv\d+\w*|\[\d+ x i8\]", "", text)


def instructions(text):
    """Return the instructions of functions without names, some of which Numba numbers."""
    return [re.sub(r"[%@][\w.$]+|\d{9,}", "", line) for line in text.splitlines() if line.startswith("  ")]


def originals():
    owners = [(ir.Inst, "_rec_list_vars"), (BaseFunction, "get_call_type"), (base.BaseContext, "get_abi_sizeof")]
    owners += [(inline_closurecall, "copy"), (inline_closurecall.InlineWorker, "run_untyped_passes"), (ssa, "_logger")]
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


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (sum_of_halves, (types.float64[::1],)),
        (sum_of_quarters, (types.float64[::1],)),
        (sum_of_quarters, (types.float32[::1],)),
        (expression, (types.float64[::1], types.float64[::1])),
        (closure, (types.float64[::1], types.int64)),
        (appended, (types.float64[::1],)),
        (fields, (lambda: types.Array(_record(), 1, "C"),)),
        (scale, (types.float64[::1], lambda: types.Array(_record(), 1, "C"), types.int64, types.boolean)),
    ],
)
def test_passes_that_are_left_out_have_nothing_to_do(function, kinds):
    kinds = tuple(kind() if callable(kind) and not isinstance(kind, types.Type) else kind for kind in kinds)
    plain = instructions(code_of(function, kinds))
    with faster_numba():
        assert instructions(code_of(function, kinds, KernelCompiler)) == plain
    assert len(plain) > 20


def test_kernels_with_local_functions_are_recognised():
    assert [_may_have_closures(one.__code__) for one in (closure, appended)] == [True, True]
    assert not any(_may_have_closures(one.__code__) for one in (scale, sum_of_halves, expression, fields))


def test_numba_is_loaded_again_after_an_interruption(monkeypatch):
    def interrupt(context):
        raise KeyboardInterrupt

    monkeypatch.setattr(fast_compiler, "_is_loaded", False)
    monkeypatch.setattr(fast_compiler, "_load_registries", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fast_compiler._load_once(cpu_target.target_context)
    assert not fast_compiler._is_loaded


def test_everything_is_back_after_an_error():
    before = originals()
    with pytest.raises(ZeroDivisionError), faster_numba():
        raise ZeroDivisionError
    assert originals() == before


def test_variables_of_instructions_are_those_that_numba_lists():
    listed = 0
    for block in run_frontend(scale).blocks.values():
        for statement in block.body:
            found = _list_variables(None, statement)
            assert found == statement.list_vars()
            listed += len(found)
    assert listed > 100


def test_a_copy_of_instructions_is_complete_and_shares_nothing_that_changes():
    original = run_frontend(scale)
    plain, copier = copy.deepcopy(original.blocks), fast_compiler._BlockCopier()
    copies = [{label: copier.deepcopy(block) for label, block in original.blocks.items()} for _ in range(2)]
    scopes = [{id(block.scope) for block in blocks.values()} for blocks in (original.blocks, *copies)]
    assert [len(one) for one in scopes] == [1, 1, 1]
    assert len(set.union(*scopes)) == 3
    for blocks in copies:
        assert {label: [str(one) for one in block.body] for label, block in blocks.items()} == {
            label: [str(one) for one in block.body] for label, block in plain.items()
        }
        variables = {id(one) for block in blocks.values() for line in block.body for one in line.list_vars()}
        assert variables.isdisjoint(
            id(one) for block in original.blocks.values() for line in block.body for one in line.list_vars()
        )
        assert blocks[0].scope.localvars._con.keys() == original.blocks[0].scope.localvars._con.keys()


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
