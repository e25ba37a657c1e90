"""Code libraries of kernels: machine code is generated only for kernels called from Python or by address.

Numba optimises every function it compiles, generates machine code for it, links the optimised code into each caller,
and optimises it there again. For functions that only other kernels call, the machine code is never used. Those are
compiled only to LLVM code, which callers link and optimise with their own. If the compiler may choose the order
of a sum, the code is optimised before linking, so that the order does not depend on the caller.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary

from summula.core.compilation.compiler_choice import KernelCompiler

__all__ = ["InternalCompiler", "InternalSummingCompiler"]


class _LinkedLibrary(JITCodeLibrary):
    """LLVM code for linking into that of callers."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Code generator."""
        return _WithoutEnvironment(self._codegen)


class _OptimisedLibrary(_LinkedLibrary):
    """LLVM code that is optimised before it is linked."""

    def _optimize_final_module(self) -> None:
        JITCodeLibrary._optimize_final_module(self)


class _WithoutEnvironment:
    """A code generator without the environment, which is needed only by exceptions with Python objects."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: there is no machine code."""


class InternalCompiler(KernelCompiler):
    """Numba's compiler, without machine code."""

    _library: type[_LinkedLibrary] = _LinkedLibrary

    def define_pipelines(self) -> Any:
        """Return Numba's passes, which generate code for a library without machine code."""
        self.state.library = self._library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class InternalSummingCompiler(InternalCompiler):
    """Numba's compiler, without machine code but with a fixed order of sums."""

    _library = _OptimisedLibrary
