"""Kernels that call other kernels by address.

An ordinary call compiles the called kernel, and everything it calls, into the caller again. For large kernels that call
each other through several levels this dominates the compile time, and every combination of parts needs its own copy.
With late binding each is compiled separately: callers know the argument types and receive an address at run time.

    SEARCH = KernelSignature(lambda: (np.zeros(1), 0))      # example arguments fix the types

    @SEARCH.kernel
    def find_minimum(values, start): ...                    # returns nothing and allocates nothing

    call_search = SEARCH.call                               # inside kernels: call_search(address, (values, start))
    find_minimum.address()                                  # compiled at the first request
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from summula.core.compilation.compile import compiled

__all__ = ["KernelSignature", "LateBoundKernel"]


class KernelSignature:
    """The types of the arguments of kernels that return nothing.

    Parameters
    ----------
    example : callable
        Returns a tuple of example arguments.

    Attributes
    ----------
    call : intrinsic
        ``call(address, arguments)`` inside kernels, with a tuple of arguments that are converted to those types.
    """

    def __init__(self, example: Callable[[], tuple[Any, ...]]) -> None:
        self._example = example
        self.call = _make_call(example)

    def kernel(self, function: Callable[..., None]) -> LateBoundKernel:
        """Return a kernel that is compiled for these types when its address is first requested."""
        return LateBoundKernel(function, self._example)


class LateBoundKernel:
    """A kernel with one signature, called by address from kernels and directly from Python."""

    def __init__(self, function: Callable[..., None], example: Callable[[], tuple[Any, ...]]) -> None:
        self.py_func = function
        self._example = example
        self._dispatcher = compiled(function, no_cpython_wrapper=True, _nrt=False)
        self._callable: Any = None
        self._address = 0

    def address(self) -> int:
        """Return the address of the compiled kernel."""
        if not self._address:
            kinds = _types_of(self._example)
            self._dispatcher.compile(kinds)
            result = self._dispatcher.overloads[kinds]
            self._address = int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
        return self._address

    def __call__(self, *args: Any) -> None:
        if self._callable is None:
            self._callable = compiled(self.py_func)
        self._callable(*args)


def _types_of(example: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(typeof(value) for value in example())


def _make_call(example: Callable[[], tuple[Any, ...]]) -> Any:
    def call(typing: Any, address: Any, arguments: Any) -> Any:
        signature = types.void(types.int64, types.Tuple(_types_of(example)))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kinds = signature.args[1].types
            values = cgutils.unpack_tuple(builder, args[1], len(kinds))
            function = context.call_conv.get_function_type(types.void, kinds)
            pointer = builder.inttoptr(args[0], function.as_pointer())
            status, _ = context.call_conv.call_function(builder, pointer, types.void, kinds, values)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return signature, generate

    return intrinsic(call)
