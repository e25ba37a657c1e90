"""Peak memory of one contender: `python -m benchmarks.memory WORKLOAD CONTENDER [--quick]` prints bytes.

A process of its own loads one library, warms it up on the small data, makes the data, and then runs once. The
peak counts from the moment the data exist, so it is what the fit itself needs.
"""

import argparse
import resource
import sys
from pathlib import Path

from benchmarks.threads import pin_threads

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class PeakMemory:
    """Memory of this process above what it held when the object was made."""

    def __init__(self) -> None:
        if _CLEAR.exists():
            _CLEAR.write_text("5")  # the high-water mark falls to what is held now
        self._start = _high_water_mark()

    def bytes(self) -> int:
        return max(0, _high_water_mark() - self._start)


def _high_water_mark() -> int:
    # On Linux `ru_maxrss` will not do: a child inherits its parent's mark through vfork and exec.
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
