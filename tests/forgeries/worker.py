"""Load and use forged files, in a process that may crash: started by `test_forged_files.py`.

    python -m tests.forgeries.worker FOLDER COUNT KIND [KIND ...]

The forgery at hand is in FOLDER/now, so that whoever started this knows what ended it; a limit on the seconds of
processor time of each forgery turns an endless loop into a signal, and one on memory turns excess into MemoryError.
Failures and counts are written to FOLDER/result as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import summula
from summula.core.errors import ModelFileError
from tests.forgeries.forging import Forger
from tests.forgeries.kinds import KINDS, Saved
from tests.forgeries.uses import Use, changing, uses, works

SECONDS = int(os.environ.get("FORGERY_SECONDS", "30"))  # of processor time for one; kernels may have to be compiled
MEMORY = 1 << 30  # bytes beyond what the process has when it begins
_EVERY = 10  # of the forgeries that load are also put to the uses that change a model


def use(model: Any, saved: Saved, known: dict[str, Use]) -> set[str]:
    """Put a model to some uses, and return those that were refused."""
    return {name for name, one in known.items() if not works(name, one, model, saved)}


def _refused_to_all(path: Path, saved: Saved) -> set[str]:
    """The uses that the honest model is refused too; kernels are compiled."""
    model = summula.load(path)
    refused = use(model, saved, uses(model))
    use(model, saved, changing(model))
    return refused


def _fail(how: str) -> None:
    """Fail on purpose, to test the detection."""
    if how == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    while how == "loop":
        pass
    if how == "memory":
        np.ones(2 * MEMORY // 8)
    raise KeyError(how)


def verdict(forged: Path, saved: Saved, number: int, expected: set[str]) -> str:
    """What became of a forgery: "refused", "refused later", "used", or what went wrong.

    Uses that the honest model is refused are `expected`.
    """
    try:
        model = summula.load(forged)
    except ModelFileError as error:
        causes = [error.__cause__, error.__context__]
        return "out of memory" if any(isinstance(cause, MemoryError) for cause in causes) else "refused"
    said = "refused later" if use(model, saved, uses(model)) - expected else "used"
    if said == "used":
        summula.save(model, forged)
    if number % _EVERY == 0:
        use(model, saved, changing(model))
    return said


def _limit_cpu() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soon = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soon, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _limit_memory() -> None:
    status = Path("/proc/self/status").read_text()
    data = int(next(line for line in status.splitlines() if line.startswith("VmData")).split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (data + MEMORY, resource.RLIM_INFINITY))


def _peak() -> float:
    """The largest memory of this process so far, in MB.

    The kernel carries `ru_maxrss` over from the process that started this one; VmHWM begins anew.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def main(folder: Path, count: int, kinds: list[str]) -> None:
    """Forge `count` files of each kind; FOLDER/done, if it is there, says where a crash interrupted that."""
    warnings.simplefilter("ignore")
    os.fsync = lambda _: None  # type: ignore[assignment]  # the disk is not what is tested here
    np.seterr(all="ignore")
    done = json.loads((folder / "done").read_text()) if (folder / "done").exists() else {}
    result: dict[str, Any] = {"counts": done.get("counts", {}), "failures": done.get("failures", [])}
    ready: list[tuple[str, int, Saved, Forger, set[str]]] = []
    for kind in kinds:
        for variant, make in enumerate(KINDS[kind]):
            saved = make()
            path = folder / f"{kind}-{variant}"
            summula.save(saved.model, path)
            ready.append((kind, variant, saved, Forger(path, seed=variant), _refused_to_all(path, saved)))
    _limit_memory()
    start = done.get("next", [0, 0])
    faults = dict(enumerate(os.environ.get("FORGERY_FAULTS", "").split(), start=1))
    with open(folder / "now", "w") as now:
        for place, (kind, variant, saved, forger, expected) in enumerate(ready):
            if place < start[0]:
                continue
            counts = Counter(result["counts"].get(kind, {}))
            share = -(-count // len(KINDS[kind]))
            for number in range(start[1] if place == start[0] else 0, share):
                now.seek(0)
                now.truncate()
                json.dump({"place": place, "number": number, "kind": kind, "variant": variant,
                           "changes": repr(forger.changes(number)), "counts": {**result["counts"], kind: counts},
                           "failures": result["failures"]}, now)  # fmt: skip
                now.flush()
                _limit_cpu()
                forged = folder / "forged"
                forger.write(number, forged)
                try:
                    if number in faults:
                        _fail(faults[number])
                    said = verdict(forged, saved, number, expected)
                except Exception:
                    said = traceback.format_exc(limit=-3)
                if said in ("refused", "refused later", "used"):
                    counts[said] += 1
                    continue
                result["failures"].append(
                    {"kind": kind, "variant": variant, "number": number, "changes": repr(forger.changes(number)),
                     "what": said}
                )  # fmt: skip
            result["counts"][kind] = dict(counts)
    result["peak"] = _peak()
    (folder / "result").write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
