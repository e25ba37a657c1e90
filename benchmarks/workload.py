"""Workloads: contenders that do the same work on the same data."""

import gc
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any, Literal, Protocol

# A call shorter than this is repeated within one measurement.
SHORTEST_MEASUREMENT = 0.05
# Seconds before each measurement: threads of BLAS and OpenMP spin for up to 0.2 s after the call of another contender.
SETTLING = 0.25


@dataclass(frozen=True)
class Contender:
    """A library with its settings.

    Parameters
    ----------
    name : str
        The library, and its settings if several are compared.
    load : callable
        Imports the library and returns the function to be timed, `work(data) -> result`. Imports are inside,
        so that a process that measures one contender loads no other.
    """

    name: str
    load: Callable[[], Callable[[Any], Any]]


@dataclass(frozen=True)
class Quality:
    """Quality of a result; smaller is better.

    Parameters
    ----------
    of : callable
        `of(data, result) -> float`.
    kind : {"objective", "error"}
        An objective is compared with the best one reached: its shortfall is (value - best) / |best|.
        An error is compared with zero: the shortfall is the error itself.
    tolerance : float
        Largest shortfall of a result that counts as equal.
    """

    of: Callable[[Any, Any], float]
    kind: Literal["objective", "error"]
    tolerance: float

    def shortfalls(self, values: dict[str, float]) -> dict[str, float]:
        if self.kind == "error":
            return values
        best = min(values.values())
        return {name: (value - best) / max(abs(best), sys.float_info.min) for name, value in values.items()}


class Session(Protocol):
    """A prepared workload: the data exist, and every contender has run once."""

    def contenders(self) -> list[str]: ...
    def seconds(self, contender: str) -> float: ...
    def shortfalls(self) -> dict[str, float]: ...
    def peak_bytes(self, contender: str) -> int: ...


class Workload(Protocol):
    """A row of the table; the first of its contenders is Summula."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def tolerance(self) -> float | None: ...
    def size(self, quick: bool) -> str: ...
    def open(self, quick: bool) -> Session: ...


@dataclass(frozen=True)
class FitWorkload:
    """Work on data in memory, timed in this process.

    Parameters
    ----------
    name, title : str
        Name on the command line, and in the table.
    shape, quick_shape : (int, int)
        Rows and columns; `quick_shape` is for testing the benchmarks.
    make_data : callable
        `make_data(rows, columns) -> data`, which returns the same data in every call. With several draws
        `make_data(rows, columns, draw)`.
    contenders : tuple of Contender
        Summula first.
    quality : Quality
    rounds : int
        Number of rounds; fewer if a contender is slow.
    draws : int
        Number of tables from the same distribution over which the quality is averaged; the first one is timed.
    """

    name: str
    title: str
    shape: tuple[int, int]
    quick_shape: tuple[int, int]
    make_data: Callable[..., Any]
    contenders: tuple[Contender, ...]
    quality: Quality
    rounds: int = 7
    draws: int = 1

    @property
    def tolerance(self) -> float:
        return self.quality.tolerance

    def size(self, quick: bool) -> str:
        rows, columns = self.quick_shape if quick else self.shape
        return f"{rows:,} x {columns:,}"

    def data(self, quick: bool, draw: int = 0) -> Any:
        shape = self.quick_shape if quick else self.shape
        return self.make_data(*shape, draw) if self.draws > 1 else self.make_data(*shape)

    def contender(self, name: str) -> Contender:
        return next(contender for contender in self.contenders if contender.name == name)

    def open(self, quick: bool) -> "FitSession":
        return FitSession(self, quick)


class FitSession:
    """The data of a `FitWorkload`, and its contenders warmed up on them."""

    def __init__(self, workload: FitWorkload, quick: bool) -> None:
        self._workload = workload
        self._quick = quick
        self._data = workload.data(quick)
        self._work: dict[str, Callable[[Any], Any]] = {}
        self._calls: dict[str, int] = {}
        self._quality: dict[str, float] = {}
        own, *peers = workload.contenders
        self._warm_up(own)
        for peer in peers:
            try:
                self._warm_up(peer)
            except ImportError as missing:
                print(f"  {peer.name} is left out: {missing}", file=sys.stderr)
        for draw in range(1, 2 if quick and workload.draws > 1 else workload.draws):
            data = workload.data(quick, draw)
            for name, work in self._work.items():
                share = float(workload.quality.of(data, work(data))) - self._quality[name]
                self._quality[name] += share / (draw + 1)

    def _warm_up(self, contender: Contender) -> None:
        name = contender.name
        self._work[name] = work = contender.load()
        self._quality[name] = float(self._workload.quality.of(self._data, work(self._data)))
        self._calls[name] = 1
        self._calls[name] = max(1, math.ceil(SHORTEST_MEASUREMENT / self.seconds(name)))

    def contenders(self) -> list[str]:
        return list(self._work)

    def seconds(self, contender: str) -> float:
        work, calls = self._work[contender], self._calls[contender]
        gc.collect()
        sleep(SETTLING)
        start = perf_counter()
        for _ in range(calls):
            work(self._data)
        return (perf_counter() - start) / calls

    def shortfalls(self) -> dict[str, float]:
        return self._workload.quality.shortfalls(self._quality)

    def peak_bytes(self, contender: str) -> int:
        command = [sys.executable, "-m", "benchmarks.memory", self._workload.name, contender]
        if self._quick:
            command.append("--quick")
        return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
