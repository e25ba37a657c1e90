"""Paired rounds: all contenders in turn, in one process, over and over.

A shared machine moves by tens of percent from minute to minute, but little within one round. So the verdict
comes from ratios inside a round, and the order turns round every time.
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
    """What one contender did.

    Attributes
    ----------
    contender : str
    seconds : float
        Median over the rounds.
    ratio : float or None
        Median over the rounds of our time / its time; None for ourselves.
    verdict : str
        In words, for us against it.
    shortfall : float or None
        How far its answer is from the best one (objective), or from the truth (error).
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
    """A workload measured; its first entry is ours."""

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
        ours = contenders[0]
        entries = []
        for name in contenders:
            ratio = None if name == ours else paired_ratio(times[ours], times[name])
            entry = Entry(
                contender=name,
                seconds=median(times[name]),
                ratio=ratio,
                verdict=verdict(ratio, *answers(workload, shortfalls, ours, name), workload.tolerance),
                shortfall=shortfalls.get(name),
                peak_bytes=session.peak_bytes(name),
            )
            tell(describe(entry))
            entries.append(entry)
    return Result(workload.name, workload.title, workload.size(quick), rounds, tuple(entries))


def paired_ratio(ours: list[float], theirs: list[float]) -> float:
    """The median over the rounds of our time / their time."""
    return median(our / their for our, their in zip(ours, theirs, strict=True))


def paired_rounds(seconds: Callable[[str], float], contenders: list[str], rounds: int) -> dict[str, list[float]]:
    """Time every contender once in each round, in alternating order."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in contenders if number % 2 == 0 else reversed(contenders):
            times[name].append(seconds(name))
    return times


def answers(
    workload: Workload, shortfalls: dict[str, float], ours: str, name: str
) -> tuple[float | None, float | None]:
    """How far both answers are from the best; where chance decides, there is none but the better of the two."""
    one, other = shortfalls.get(ours), shortfalls.get(name)
    if one is None or other is None or getattr(workload, "draws", 1) == 1:
        return one, other
    return one - min(one, other), other - min(one, other)


def verdict(ratio: float | None, ours: float | None, theirs: float | None, tolerance: float | None) -> str:
    """Say who won; speed at an unequal answer is not a result."""
    if ratio is None:
        return ""
    speed = "faster" if ratio < FASTER else "tie" if ratio <= SLOWER else "slower"
    if tolerance is None or ours is None or theirs is None:
        return speed
    if not ours <= tolerance:  # also when it is NaN
        return "no result: our answer is looser"
    if not theirs <= tolerance:
        return f"{speed}; its answer is looser"
    return speed


def describe(entry: Entry) -> str:
    """One line for the terminal."""
    parts = [f"  {entry.contender:<24}{entry.seconds * 1e3:>12,.1f} ms{entry.peak_bytes / 1e6:>10,.0f} MB"]
    if entry.shortfall is not None:
        parts.append(f"  off by {entry.shortfall:.0e}")
    if entry.ratio is not None:
        parts.append(f"  ours/its {format_ratio(entry.ratio)}, {entry.verdict}")
    return "".join(parts)


def format_ratio(ratio: float) -> str:
    """Two decimals, or one digit of a small ratio."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"
