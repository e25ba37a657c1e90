"""Threads inside one kernel: a place where all of a team wait for each other.

Handing work to another thread through Python takes longer than many steps of an algorithm do. A team instead enters
one kernel together (`core.threads.team`), every member walks through the same steps, and they meet between two of them:
what was written before is seen by all after. Nobody sleeps while waiting, so a meeting takes less than a microsecond;
a member that waits for long lets other processes go first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.compile import kernel
from summula.core.threads import LINE

__all__ = ["meet", "warmup"]

_PATIENCE = 4_000  # looks at a member before others may go first
_GIVE_WAY = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


@intrinsic
def _seen(typing: Any, array: Any, index: Any) -> Any:
    """An element as its writer left it, with all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature.args[0], *given), "acquire", 8)

    return types.int64(array, index), generate


@intrinsic
def _show(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write an element after all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store_atomic(given[2], _pointer(context, builder, signature.args[0], *given[:2]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, index, value), generate


@intrinsic
def _give_way(typing: Any) -> Any:
    """Let another thread have the processor."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        shape = ir.FunctionType(ir.IntType(32), [])
        function = builder.module.globals.get(_GIVE_WAY) or ir.Function(builder.module, shape, _GIVE_WAY)
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), generate


seen: Any = _seen  # the typing context is Numba's to give
show: Any = _show
give_way: Any = _give_way


@kernel
def meet(place: Any, me: int) -> None:
    """Wait until all members have come as often as this one.

    place : how often each has come, a cache line each; one more says that the meeting is called off.
    """
    members = len(place) - 1
    if members == 1:
        return
    flat = place.reshape(-1)
    times = np.int64(place[me, 0] + 1)
    show(flat, np.int64(me * LINE), times)
    for k in range(members):
        looks = 0
        while seen(flat, np.int64(k * LINE)) < times:
            looks += 1
            if looks > _PATIENCE:
                if seen(flat, np.int64(members * LINE)) > 0:
                    raise RuntimeError("another thread of this fit has failed")
                give_way()


def warmup() -> None:
    """Compile for the types people use."""
    meet(np.zeros((2, LINE), np.int64), 0)
