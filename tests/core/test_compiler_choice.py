"""Kernels are compiled by plain Numba if its internals are not supported by the faster compiler."""

from __future__ import annotations

import pytest
from numba.core import ir

from summula.core.compilation import compiler_choice, fast_compiler
from summula.core.compilation.fast_compiler import _list_variables, _Replacement
from tests.processes import run

# Changes Numba before Summula is imported, then compiles a kernel and one that only kernels call.
PROGRAM = """
import numpy as np
from numba.core import compiler, ir, typed_passes
{change}
from summula.core.compilation import compiler_choice
from summula.core.compilation.compile import internal_kernel, kernel

@internal_kernel
def double(value):
    return 2 * value

@kernel
def total(values):
    found = 0.0
    for value in values:
        found += double(value)
    return found

assert compiler_choice.KernelCompiler is compiler.Compiler
with compiler_choice.faster_numba():
    print(total(np.arange(4.0)))
"""
OTHER_ARGUMENTS = """
init = compiler.Compiler.__init__
compiler.Compiler.__init__ = lambda self, *args: init(self, *args)
"""


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("del typed_passes.NopythonRewrites", id="missing class"),
        pytest.param("del ir.unknown_loc", id="missing value"),
        pytest.param(OTHER_ARGUMENTS, id="other arguments"),
    ],
)
def test_plain_numba_compiles_where_its_internals_have_changed(change):
    assert run(PROGRAM.format(change=change)) == 12.0


def test_the_faster_compiler_is_chosen_for_the_numba_installed_here():
    assert compiler_choice.KernelCompiler is fast_compiler.KernelCompiler
    assert compiler_choice.faster_numba is fast_compiler.faster_numba
    assert all(one.is_possible() for one in fast_compiler._REPLACEMENTS)


def test_a_missing_or_differently_called_attribute_is_not_replaced(monkeypatch):
    replacement = _Replacement(ir.Inst, "_rec_list_vars", _list_variables)
    assert replacement.is_possible()
    monkeypatch.setattr(ir.Inst, "_rec_list_vars", lambda self, value, depth: [])
    assert not replacement.is_possible()
    monkeypatch.delattr(ir.Inst, "_rec_list_vars")
    assert not replacement.is_possible()
