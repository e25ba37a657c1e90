"""Peak memory of one contender: `python -m benchmarks.memory WORKLOAD CONTENDER [--quick]` prints bytes.

A separate process loads one library, runs it on the small data, creates the data, and then runs once. The
peak is measured relative to the memory after creating the data, so it is that of the fit itself.
"""

import argparse
import resource
import sys
from pathlib import Path

from benchmarks.threads import pin_threads

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class PeakMemory:
    """Peak memory of this process above its memory at the creation of the object."""

    def __init__(self) -> None:
        if _CLEAR.exists():
            _CLEAR.write_text("5")  # resets the high-water mark to the current memory
        self._start = _high_water_mark()

    def bytes(self) -> int:
        return max(0, _high_water_mark() - self._start)


def _high_water_mark() -> int:
    # On Linux `ru_maxrss` is unsuitable: a child process inherits the mark of its parent through vfork and exec.
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("workload")
    parser.add_argument("contender")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()

    pin_threads()  # before anything imports NumPy
    from benchmarks.registry import fit_workload

    workload = fit_workload(arguments.workload)
    work = workload.contender(arguments.contender).load()
    work(workload.data(quick=True))
    data = workload.data(arguments.quick)
    peak = PeakMemory()
    result = work(data)
    print(peak.bytes())
    del result


if __name__ == "__main__":
    main()
