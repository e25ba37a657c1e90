"""Threads inside one kernel: a place where all of a team wait for each other.

Handing work to another thread through Python takes longer than many steps of an algorithm do. A team instead enters
one kernel together (`core.threads.Team`), every member walks through the same steps, and they meet between two of them:
what was written before is seen by all after. Nobody sleeps while waiting, so a meeting takes less than a microsecond;
a member that waits for long lets other processes go first. A team may stay for a while when it is done, and be called
again at no cost.

All they know of each other is in a table of integers, a row (a cache line) for each member and one for the team.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from summula.core.engine.threads import LINE, OFF, ROUNDS, STAY
from summula.core.numerics.compile import kernel

__all__ = ["call", "called", "meet", "warmup"]

_MEETINGS, _TAKEN = 0, 1  # of a member: how often it has come to meet, and to how many rounds
_PATIENCE = 500  # looks at a member before others may go first
_HAS_PAUSE = platform.machine() in ("x86_64", "AMD64")
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
def _swap(typing: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
    """Write an element if it is `old`; gives whether it was."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *given[:2])
        return builder.extract_value(builder.cmpxchg(pointer, given[2], given[3], "acq_rel", "acquire"), 1)

    return types.boolean(array, index, old, new), generate


@intrinsic
def _pause(typing: Any) -> Any:
    """Tell the processor that this thread only waits: another one on the same core gets its share."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        if _HAS_PAUSE:
            shape = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", [], shape), [])
        return context.get_dummy_value()

    return types.void(), generate


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
swap: Any = _swap
pause: Any = _pause
give_way: Any = _give_way


@kernel
def meet(place: Any, me: int) -> None:
    """Wait until all members have come as often as this one."""
    members = len(place) - 1
    if members == 1:
        return
    flat = place.reshape(-1)
    times = np.int64(place[me, _MEETINGS] + 1)
    show(flat, np.int64(me * LINE + _MEETINGS), times)
    for k in range(members):
        looks = 0
        while seen(flat, np.int64(k * LINE + _MEETINGS)) < times:
            looks += 1
            pause()
            if looks > _PATIENCE:
                if seen(flat, np.int64(members * LINE + OFF)) > 0:
                    raise RuntimeError("another thread of this fit has failed")
                give_way()


@kernel
def called(place: Any, me: int) -> bool:
    """Whether there is a round for this member, which all but the first wait for; if none comes, none will."""
    if me == 0:
        return True
    team, flat, taken = len(place) - 1, place.reshape(-1), np.int64(place[me, _TAKEN])
    at, looks = np.int64(team * LINE + ROUNDS), 0
    while True:
        rounds = seen(flat, at)
        if rounds < 0:
            return False
        if rounds > taken:
            place[me, _TAKEN] += 1
            return True
        looks += 1
        pause()
        if looks > place[team, STAY]:
            swap(flat, at, taken, np.int64(-1))


@kernel
def call(place: Any) -> bool:
    """Call a round; whether the members are still there for it."""
    team, flat = len(place) - 1, place.reshape(-1)
    at = np.int64(team * LINE + ROUNDS)
    rounds = seen(flat, at)
    return rounds > 0 and swap(flat, at, rounds, np.int64(rounds + 1))  # type: ignore[no-any-return]


def warmup() -> None:
    """Compile for the types people use."""
    place = np.zeros((2, LINE), np.int64)
    meet(place, 0)
    called(place, 0)
    call(place)
