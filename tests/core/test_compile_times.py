"""Measurement of compile times."""

from __future__ import annotations

import time
from typing import Any

import numba

from summula.core.compilation.compile_times import CompileTimes, compile_times


class Moment:
    def __init__(self, is_start: bool) -> None:
        self.is_start = is_start


class Recorder:
    def __init__(self, buffer: list[tuple[float, Any]]) -> None:
        self.buffer = buffer


def test_overlapping_compilations_count_once() -> None:
    steps = [(1.0, True), (2.0, True), (3.0, False), (5.0, False), (8.0, True), (9.0, False), (10.0, True)]
    assert CompileTimes(Recorder([(moment, Moment(start)) for moment, start in steps])).seconds == 5.0


def test_waiting_for_another_process_counts_once() -> None:
    compiling, waiting = [(1.0, True), (3.0, False)], [(2.0, True), (4.0, False)]
    recorders = [Recorder([(moment, Moment(start)) for moment, start in steps]) for steps in (compiling, waiting)]
    assert CompileTimes(*recorders).seconds == 3.0


def test_a_compilation_is_timed_and_a_call_is_not() -> None:
    kernel = numba.njit(lambda x: x + 1)
    began = time.perf_counter()
    with compile_times() as first:
        kernel(1)
    took = time.perf_counter() - began
    with compile_times() as second:
        kernel(2)
    assert 0.0 < first.seconds <= took
    assert second.seconds == 0.0
