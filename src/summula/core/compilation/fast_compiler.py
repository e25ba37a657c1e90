"""Numba's compiler without two costs that do not depend on what is compiled.

Numba looks up every call under a key that contains its options, and compares those one by one; and it formats
the message of each alternative that does not fit, with colours, even if it is discarded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba.core import errors
from numba.core.compiler import Compiler, Flags

__all__ = ["KernelCompiler", "plain_messages"]

_HASH = hash(Flags())  # of the names of the options, the same for all


class _KernelFlags(Flags):
    """Options of the compiler that are compared by what was set, and only then one by one."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Flags) and self._values == other._values:
            return True
        return bool(super().__eq__(other))


class KernelCompiler(Compiler):
    """Numba's compiler with options that are quick to compare."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, _KernelFlags(flags), locals)


class _PlainScheme(type(errors.termcolor())):  # type: ignore[misc]
    """Messages without colours."""

    def _markup(self, msg: str, *args: Any, **options: Any) -> str:
        return msg


_plain = _PlainScheme()


@contextlib.contextmanager
def plain_messages() -> Iterator[None]:
    """Leave out the colours of Numba's messages meanwhile."""
    names = vars(errors)
    before, names["_termcolor_inst"] = names["_termcolor_inst"], _plain
    try:
        yield
    finally:
        names["_termcolor_inst"] = before
