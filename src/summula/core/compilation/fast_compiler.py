"""Numba's compiler with less overhead.

Most of the time that a kernel takes to compile is spent in Numba's own Python code, and much of that on work whose
result is known or discarded. While a kernel is compiled (`faster_numba`),

- variables of an instruction are listed without trying the type of every field,
- the type of an operation on numbers or on elements of arrays is looked up, after the first time, instead of trying
  dozens of alternatives,
- sizes of LLVM types are cached, and modules that have been imported are not imported again,
- passes without effect are skipped, and the analysis of variables is not repeated after each pass,
- messages of rejected alternatives have no colours, and no event is emitted for every call of LLVM or every
  statement,
- inlined functions are parsed once, and their blocks are copied separately at every call.

The options of a kernel, which are part of the keys of Numba's caches, are fast to compare. The generated code is
unchanged. Parts that a version of Numba lacks, or calls differently, are not replaced; if anything else used here is
missing or has changed, `compiler_choice` uses plain Numba.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, SimpleNamespace
from typing import Any, NamedTuple

from llvmlite import ir as llvm  # type: ignore[import-untyped]
from llvmlite.binding import ffi  # type: ignore[import-untyped]
from numba.core import base, cpu, errors, inline_closurecall, ir, registry, ssa, types
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes

__all__ = ["KernelCompiler", "check_numba", "faster_numba"]

# ------------------------------------------------------------------------------------------------------------- options

_HASH = hash(Flags())  # of the names of the options, the same for all
_DEFAULTS = Flags().values()


class _KernelFlags(Flags):
    """Compiler options that are first compared by the set of those changed, and only then one by one."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Flags) and self._values == other._values:
            return True
        return bool(super().__eq__(other))

    def values(self) -> dict[str, Any]:
        """Return all options, including defaults."""
        return {**_DEFAULTS, **self._values}


# -------------------------------------------------------------------------------------------------------------- passes

_LIST_APPEND = dis.opmap["LIST_APPEND"]
_CALLS_OF_CLOSURES = frozenset({"append", "reduce", "stencil"})
_OPERATIONS = frozenset({"unary", "binop", "inplace_binop", "call"})


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineClosures(InlineClosureLikes):
    """Numba's inlining of local functions and comprehensions, skipped for kernels without any."""

    _name = "summula_inline_closures"

    def run_pass(self, state: Any) -> bool:
        return bool(super().run_pass(state)) if _may_have_closures(state.func_id.code) else False


def _may_have_closures(code: CodeType) -> bool:
    return (
        any(isinstance(constant, CodeType) for constant in code.co_consts)
        or not _CALLS_OF_CLOSURES.isdisjoint(code.co_names)
        or _LIST_APPEND in code.co_code[::2]
    )


@register_pass(mutates_CFG=True, analysis_only=False)
class _RewriteExpressions(NopythonRewrites):
    """Numba's rewriting of array expressions and field names, skipped for kernels without any."""

    _name = "summula_rewrite_expressions"

    def run_pass(self, state: Any) -> bool:
        return bool(super().run_pass(state)) if _has_array_expressions(state) else False


def _has_array_expressions(state: Any) -> bool:
    typemap = state.typemap
    if any(isinstance(kind, types.StringLiteral) for kind in typemap.values()):  # type: ignore[attr-defined]
        return True
    return any(
        isinstance(typemap[statement.target.name], types.Array)
        for block in state.func_ir.blocks.values()
        for statement in block.find_insts(ir.Assign)
        if isinstance(statement.value, ir.Expr) and statement.value.op in _OPERATIONS
    )


_INSTEAD = {InlineClosureLikes: _InlineClosures, NopythonRewrites: _RewriteExpressions}


class _KernelPasses(PassManager):
    """Passes without the analysis of variables after each; passes that need it compute it themselves."""

    _ENFORCING = False


class KernelCompiler(Compiler):
    """Numba's compiler with options that are fast to compare, and without passes that have no effect."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, _KernelFlags(flags), locals)

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes, two of which are skipped if they have no effect."""
        return [_replace_passes(manager) for manager in super().define_pipelines()]


def _replace_passes(manager: Any) -> Any:
    passes = _KernelPasses(manager.pipeline_name)
    for kind, description in manager.passes:
        passes.add_pass(_INSTEAD.get(kind, kind), description)
    passes.finalize()
    return passes


# ----------------------------------------------------------------------------------------------- variables of the code

_VARIABLE, _INSTRUCTION, _SEQUENCE, _DICT, _OTHER = range(5)
_kinds: dict[type, int] = {}  # of the fields of instructions


def _kind_of_field(cls: type) -> int:
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _kind_of(cls)
    return kind


def _kind_of(cls: type) -> int:
    for kind, classes in enumerate((ir.Var, ir.Inst, (list, tuple), dict)):
        if issubclass(cls, classes):
            return kind
    return _OTHER


def _list_variables(self: Any, value: Any) -> list[Any]:
    """Return the variables in a field of an instruction."""
    found: list[Any] = []
    _collect_variables((value,), found)
    return found


def _collect_variables(values: Iterable[Any], found: list[Any]) -> None:
    for value in values:
        kind = _kinds.get(value.__class__)
        if kind is None:
            kind = _kind_of_field(value.__class__)
        if kind == _OTHER:
            continue
        if kind == _VARIABLE:
            found.append(value)
        elif kind == _INSTRUCTION:
            found += value.list_vars()
        elif kind == _SEQUENCE:
            _collect_variables(value, found)
        else:
            _collect_variables(value.values(), found)


# -------------------------------------------------------------------------------------------------- types of operations

_OPERATORS = frozenset({bool, len, *(value for name, value in vars(operator).items() if not name.startswith("_"))})
_find_type = BaseFunction.get_call_type
_known: dict[Any, tuple[Any, Any]] = {}  # by operation and types: itself, and the signature found


def _get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call, cached for operations on numbers or arrays."""
    if kws or self.typing_key not in _OPERATORS or context is not registry.cpu_target.typing_context:
        return _find_type(self, context, args, kws)
    key = (id(self), *args)
    if key not in _known:
        signature = _find_type(self, context, args, kws)
        if signature is None or not all(_is_plain(one) for one in args):
            return signature
        _known[key] = (self, signature)
    return _known[key][1]


def _is_plain(kind: Any) -> bool:
    """Return whether a type is numeric, an array of numbers or records, or a tuple of these."""
    if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
        return all(_is_plain(one) for one in kind)
    if isinstance(kind, types.Array):
        return isinstance(kind.dtype, types.Number | types.Boolean | types.Record)
    return isinstance(kind, types.Number | types.Boolean)


# ------------------------------------------------------------------------------------------------------ sizes of types

_sizes: dict[str, int] = {}


def _remembered(measure: Any) -> Callable[[Any, Any], int]:
    """Return a function that caches the size of each LLVM type."""

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
    """Import Numba's modules the first time; later, only check them for new definitions."""
    global _is_loaded
    if not _is_loaded:
        _is_loaded = True  # the imported modules call this again, hundreds of times
        try:
            _load_registries(self)
        except BaseException:
            _is_loaded = False
            raise
    for known in list(getattr(self, "_registries", ())):
        self.install_registry(known)


# -------------------------------------------------------------------------------------------------- inlined functions

_read: Any = getattr(inline_closurecall.InlineWorker, "run_untyped_passes", None)
_inlined: dict[Callable[..., Any], Any] = {}  # the instructions of functions that are inlined
_NOT_COPIED = (ir.Const, ir.Global, ir.FreeVar, ir.Arg)  # their values are objects of the program


def _read_once(self: Any, func: Any, enable_ssa: bool = False) -> Any:
    """Return the instructions of an inlined function, which the caller copies; everything except the name is shared."""
    if enable_ssa or func.__closure__:
        return _read(self, func, enable_ssa)
    if func not in _inlined:
        _inlined[func] = _read(self, func)
    self.flags.enable_ssa = False  # as Numba does
    instructions = copy.copy(_inlined[func])
    instructions.func_id = FunctionIdentity.from_function(func)  # numbered, for names of variables
    return instructions


class _BlockCopier:
    """Copies the blocks of a function one by one, and its variables, which blocks share, once."""

    def __init__(self) -> None:
        self._copied: list[Any] = []
        self._memo: dict[int, Any] = {}

    def deepcopy(self, value: Any) -> Any:
        """Return a copy of a block, or of anything else."""
        if not isinstance(value, ir.Block):
            return copy.deepcopy(value)
        if any(value is one for one in self._copied):  # another copy of the same function
            self.forget()
        self._copied.append(value)
        block = ir.Block(self._copy(value.scope), value.loc)
        block.body = self._copy(value.body)
        return block

    def forget(self) -> None:
        """Reset before the first block of a function."""
        self._copied, self._memo = [], {}

    def _copy(self, value: Any) -> Any:
        kind = _kind_of_field(value.__class__)
        if kind == _SEQUENCE:
            return value.__class__([self._copy(one) for one in value])
        if kind == _DICT:
            return {key: self._copy(one) for key, one in value.items()}
        if kind == _INSTRUCTION:
            return self._copy_fields(value)
        if isinstance(value, _NOT_COPIED):
            return copy.copy(value)
        if kind == _VARIABLE or isinstance(value, ir.Scope):
            if id(value) not in self._memo:
                self._memo[id(value)] = self._copy_variable(value) if kind == _VARIABLE else self._copy_scope(value)
            return self._memo[id(value)]
        return value  # a name, a place in the source, an operator

    def _copy_fields(self, value: Any) -> Any:
        new = value.__class__.__new__(value.__class__)
        for name, one in vars(value).items():
            new.__dict__[name] = self._copy(one)
        return new

    def _copy_variable(self, variable: Any) -> Any:
        return ir.Var(self._copy(variable.scope), variable.name, variable.loc)

    def _copy_scope(self, scope: Any) -> Any:
        new = copy.copy(scope)
        self._memo[id(scope)] = new  # its variables refer to it
        new.redefined, new.var_redefinitions = copy.deepcopy((scope.redefined, scope.var_redefinitions))
        new.localvars = ir.VarMap()
        new.localvars._con = {name: self._copy(one) for name, one in scope.localvars._con.items()}
        return new


_copier = _BlockCopier()


# --------------------------------------------------------------------------------------------------------- all together


def _plain(self: Any, message: str, *args: Any, **options: Any) -> str:
    return message


class _Replacement(NamedTuple):
    """Replacement of an attribute of a class, object or module; for objects also the expected original."""

    owner: Any
    name: str
    value: Any
    fits: Callable[[Any], bool] | None = None

    def is_possible(self) -> bool:
        """Return whether Numba has this part, and calls it with the arguments of the replacement."""
        if not hasattr(self.owner, self.name):
            return False
        present = getattr(self.owner, self.name)
        return _is_called_alike(present, self.value) if self.fits is None else self.fits(present)


def _is_called_alike(present: Any, ours: Any) -> bool:
    """Return whether two functions take the same number of arguments, or the replacement takes any."""
    theirs, own = ([one.kind for one in inspect.signature(f).parameters.values()] for f in (present, ours))
    return theirs == own or inspect.Parameter.VAR_POSITIONAL in own


_REPLACEMENTS = (
    _Replacement(ir.Inst, "_rec_list_vars", _list_variables),
    _Replacement(BaseFunction, "get_call_type", _get_call_type),
    _Replacement(base.BaseContext, "get_abi_sizeof", _remembered(getattr(base.BaseContext, "get_abi_sizeof", None))),
    _Replacement(cpu.CPUContext, "load_additional_registries", _load_once),
    _Replacement(type(errors.termcolor()), "_markup", _plain),
    _Replacement(getattr(ffi.lib, "_lock", None), "_cblist", [], lambda present: isinstance(present, list)),
    _Replacement(inline_closurecall.InlineWorker, "run_untyped_passes", _read_once),
    _Replacement(inline_closurecall, "copy", _copier, lambda present: present is copy),
    _Replacement(ssa, "_logger", SimpleNamespace(debug=lambda *args: None), lambda present: hasattr(present, "debug")),
)


def check_numba() -> None:
    """Raise if the parts of Numba that are used here, but not replaced, are missing or have changed."""
    numba, ours = (list(inspect.signature(one.__init__).parameters) for one in (Compiler, KernelCompiler))
    if numba != ours:
        raise TypeError(f"Numba's compiler takes {numba}, not {ours}.")
    if _KernelFlags(Flags()).values() != Flags().values() or not hasattr(PassManager, "_ENFORCING"):
        raise TypeError("Numba's options or passes have changed.")
    manager = PassManager("check")
    for kind in _INSTEAD:
        manager.add_pass(kind, "replaced")
    _replace_passes(manager)
    scope = ir.Scope(None, ir.unknown_loc)
    scope.define("x", ir.unknown_loc)
    _BlockCopier().deepcopy(ir.Block(scope, ir.unknown_loc))


@functools.cache
def _possible_replacements() -> list[_Replacement]:
    return [one for one in _REPLACEMENTS if one.is_possible()]


@contextlib.contextmanager
def faster_numba() -> Iterator[None]:
    """Replace parts of Numba's compiler by faster ones within a with-block."""
    possible = _possible_replacements()
    before = [(one.owner, one.name, getattr(one.owner, one.name)) for one in possible]
    for one in possible:
        setattr(one.owner, one.name, one.value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
        _copier.forget()
