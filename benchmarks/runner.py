"""Paired rounds: all contenders in turn, in one process, repeatedly.

The speed of a shared machine varies by tens of percent from minute to minute, but little within one round. So the
verdict is based on ratios within a round, and the order alternates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from threadpoolctl import threadpool_limits

from benchmarks.threads import THREADS
from benchmarks.workload import Workload

ROUNDS = 7
FASTER, SLOWER = 0.95, 1.05


@dataclass(frozen=True)
class Entry:
    """Measurements of one contender.

    Attributes
    ----------
    contender : str
    seconds : float
        Median over the rounds.
    ratio : float or None
        Median over the rounds of Summula's time divided by its time; None for Summula itself.
    verdict : str
        Result of the comparison, from Summula's point of view.
    shortfall : float or None
        Distance of its result from the best one (objective), or from the truth (error).
    peak_bytes : int
        Memory above the data.
    """

    contender: str
    seconds: float
    ratio: float | None
    verdict: str
    shortfall: float | None
    peak_bytes: int


@dataclass(frozen=True)
class Result:
    """Measurements of a workload; the first entry is Summula's."""

    workload: str
    title: str
    size: str
    rounds: int
    entries: tuple[Entry, ...]


def run(workload: Workload, quick: bool = False, tell: Callable[[str], None] = print) -> Result:
    """Measure one workload."""
    rounds = 2 if quick else getattr(workload, "rounds", ROUNDS)
    with threadpool_limits(THREADS):
        tell(f"{workload.name}: {workload.title}, {workload.size(quick)}".rstrip(", "))
        session = workload.open(quick)
        contenders = session.contenders()
        times = paired_rounds(session.seconds, contenders, rounds)
        shortfalls = session.shortfalls()
        own = contenders[0]
        entries = []
        for name in contenders:
            ratio = None if name == own else paired_ratio(times[own], times[name])
            entry = Entry(
                contender=name,
                seconds=median(times[name]),
                ratio=ratio,
                verdict=verdict(ratio, *answers(workload, shortfalls, own, name), workload.tolerance),
                shortfall=shortfalls.get(name),
                peak_bytes=session.peak_bytes(name),
            )
            tell(describe(entry))
            entries.append(entry)
    return Result(workload.name, workload.title, workload.size(quick), rounds, tuple(entries))


def paired_ratio(own: list[float], other: list[float]) -> float:
    """Return the median over the rounds of the ratio of times."""
    return median(a / b for a, b in zip(own, other, strict=True))


def paired_rounds(seconds: Callable[[str], float], contenders: list[str], rounds: int) -> dict[str, list[float]]:
    """Time every contender once in each round, in alternating order."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in contenders if number % 2 == 0 else reversed(contenders):
            times[name].append(seconds(name))
    return times


def answers(workload: Workload, shortfalls: dict[str, float], own: str, name: str) -> tuple[float | None, float | None]:
    """Return both shortfalls; with several draws, relative to the better of the two."""
    one, other = shortfalls.get(own), shortfalls.get(name)
    if one is None or other is None or getattr(workload, "draws", 1) == 1:
        return one, other
    return one - min(one, other), other - min(one, other)


def verdict(ratio: float | None, own: float | None, other: float | None, tolerance: float | None) -> str:
    """Describe the result; times of unequal quality are not comparable."""
    if ratio is None:
        return ""
    speed = "faster" if ratio < FASTER else "tie" if ratio <= SLOWER else "slower"
    if tolerance is None or own is None or other is None:
        return speed
    if not own <= tolerance:  # also if it is NaN
        return "no result: Summula's result is less accurate"
    if not other <= tolerance:
        return f"{speed}; its result is less accurate"
    return speed


def describe(entry: Entry) -> str:
    """Describe an entry in one line for the terminal."""
    parts = [f"  {entry.contender:<24}{entry.seconds * 1e3:>12,.1f} ms{entry.peak_bytes / 1e6:>10,.0f} MB"]
    if entry.shortfall is not None:
        parts.append(f"  off by {entry.shortfall:.0e}")
    if entry.ratio is not None:
        parts.append(f"  ratio {format_ratio(entry.ratio)}, {entry.verdict}")
    return "".join(parts)


def format_ratio(ratio: float) -> str:
    """Format with two decimals, or one significant digit if small."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"
