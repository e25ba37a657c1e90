"""Numba's compiler without costs that do not depend on what is compiled.

Most of the time that a kernel takes to compile is spent in Numba's own Python code, and much of that on work whose
result is known or discarded. While a kernel is compiled (`faster_numba`),

- variables of an instruction are listed without trying the type of every field,
- the type of an operation on numbers is looked up, after the first time, instead of trying dozens of alternatives,
- sizes of LLVM types are remembered, and modules that have been imported are not imported again,
- messages of alternatives that do not fit have no colours, and nobody is told of every call of LLVM.

The options of a kernel, which are part of the key of everything that Numba remembers, are quick to compare. What is
compiled stays the same. A part of Numba that another version does not have is left as it is.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir as llvm  # type: ignore[import-untyped]
from llvmlite.binding import ffi  # type: ignore[import-untyped]
from numba.core import base, cpu, errors, ir, registry, types
from numba.core.compiler import Compiler, Flags
from numba.core.types.functions import BaseFunction

__all__ = ["KernelCompiler", "faster_numba"]

# ------------------------------------------------------------------------------------------------------------- options

_HASH = hash(Flags())  # of the names of the options, the same for all
_DEFAULTS = Flags().values()


class _KernelFlags(Flags):
    """Options of the compiler that are compared by what was set, and only then one by one."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Flags) and self._values == other._values:
            return True
        return bool(super().__eq__(other))

    def values(self) -> dict[str, Any]:
        """Return all options, those that were not set with their defaults."""
        return {**_DEFAULTS, **self._values}


class KernelCompiler(Compiler):
    """Numba's compiler with options that are quick to compare."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, _KernelFlags(flags), locals)


# ----------------------------------------------------------------------------------------------- variables of the code

_VARIABLE, _INSTRUCTION, _SEQUENCE, _DICT, _OTHER = range(5)
_kinds: dict[type, int] = {}  # of the fields of instructions


def _kind_of(cls: type) -> int:
    for kind, classes in enumerate((ir.Var, ir.Inst, (list, tuple), dict)):
        if issubclass(cls, classes):
            return kind
    return _OTHER


def _list_variables(self: Any, value: Any) -> list[Any]:
    """Return the variables in a field of an instruction."""
    found: list[Any] = []
    _collect_variables(value, found)
    return found


def _collect_variables(value: Any, found: list[Any]) -> None:
    cls = value.__class__
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _kind_of(cls)
    if kind == _VARIABLE:
        found.append(value)
    elif kind == _INSTRUCTION:
        found += value.list_vars()
    elif kind == _SEQUENCE:
        for item in value:
            _collect_variables(item, found)
    elif kind == _DICT:
        for item in value.values():
            _collect_variables(item, found)


# -------------------------------------------------------------------------------------------------- types of operations

_OPERATORS = frozenset(value for name, value in vars(operator).items() if not name.startswith("_"))
_find_type = BaseFunction.get_call_type
_known: dict[Any, tuple[Any, Any]] = {}  # by operation and types: itself, and the signature found


def _get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call: of an operation on numbers, that which was found before."""
    if kws or self.typing_key not in _OPERATORS or context is not registry.cpu_target.typing_context:
        return _find_type(self, context, args, kws)
    key = (id(self), *args)
    if key not in _known:
        signature = _find_type(self, context, args, kws)
        if not all(isinstance(one, types.Number | types.Boolean) for one in args):
            return signature
        _known[key] = (self, signature)
    return _known[key][1]


# ------------------------------------------------------------------------------------------------------ sizes of types

_sizes: dict[str, int] = {}


def _remembered(measure: Any) -> Callable[[Any, Any], int]:
    """Return a function that measures each LLVM type once."""

    def look_up(self: Any, kind: Any) -> int:
        if isinstance(kind, llvm.IdentifiedStructType) or not isinstance(self, cpu.CPUContext):
            return int(measure(self, kind))
        name = str(kind)
        if name not in _sizes:
            _sizes[name] = int(measure(self, kind))
        return _sizes[name]

    return look_up


# ------------------------------------------------------------------------------------------------------------- imports

_load_registries: Any = getattr(cpu.CPUContext, "load_additional_registries", None)
_is_loaded = False


def _load_once(self: Any) -> None:
    """Import what Numba consists of the first time; later, only look for new definitions in it."""
    global _is_loaded
    if not _is_loaded:
        _load_registries(self)
        _is_loaded = True
    for known in list(self._registries):
        self.install_registry(known)


# --------------------------------------------------------------------------------------------------------- all together


def _plain(self: Any, message: str, *args: Any, **options: Any) -> str:
    return message


_REPLACEMENTS: tuple[tuple[Any, str, Any], ...] = (
    (ir.Inst, "_rec_list_vars", _list_variables),
    (BaseFunction, "get_call_type", _get_call_type),
    (base.BaseContext, "get_abi_sizeof", _remembered(getattr(base.BaseContext, "get_abi_sizeof", None))),
    (cpu.CPUContext, "load_additional_registries", _load_once),
    (type(errors.termcolor()), "_markup", _plain),
    (getattr(ffi.lib, "_lock", None), "_cblist", []),
)


@contextlib.contextmanager
def faster_numba() -> Iterator[None]:
    """Leave out of Numba's compiler meanwhile what costs time and changes nothing."""
    present = [(owner, name, value) for owner, name, value in _REPLACEMENTS if hasattr(owner, name)]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in present]
    for owner, name, value in present:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
