"""benchmarks/results.json, and docs/benchmarks.md rendered from it.

A run replaces the rows it measured and preserves the others; every row stores its date, command and machine.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.registry import all_workloads
from benchmarks.runner import FASTER, ROUNDS, SLOWER, Result, format_ratio

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"

_INTRODUCTION = f"""# Benchmarks

This page is written by `make bench`; `python -m benchmarks NAME...` updates single rows.

All contenders work on the same data in one process, with the same number of threads, in turn, after a
warm-up. There are {ROUNDS} rounds (1 to 3 if a fit is long, 9 if it is short) in alternating order. *Ratio* is
the median over the rounds of Summula's time divided by the other library's time: below {FASTER} Summula is faster, up
to {SLOWER} it is a tie. Only
ratios count: times vary from run to run on one machine. *Off by* measures the quality of the result: for
fits the relative distance of the objective (for boosted trees of two classes: of the area under the ROC
curve) from the best one reached, for transforms the error. A result
outside the workload's tolerance is marked, since times of unequal results are not comparable. *Memory* is
the peak above the data, measured in a separate process. Cold-start rows run in new processes. The machines are listed
below the table, and the command of each run is in `benchmarks/results.json`.
"""

_HEADER = """
| workload | size | library | time | ratio | Summula is | off by | memory |
|---|---|---|--:|--:|---|--:|--:|
"""


def load() -> dict[str, Any]:
    """Return the stored rows by workload."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def store(result: Result, date: str, command: str, machine: dict[str, str]) -> None:
    """Replace the stored result of a workload, and rewrite the page."""
    rows = load() | {result.workload: asdict(result) | {"date": date, "command": command, "machine": machine}}
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    PAGE.write_text(render(rows))


def render(rows: dict[str, Any]) -> str:
    """Return the page, with rows in the order of the registry."""
    known = [rows[workload.name] for workload in all_workloads() if workload.name in rows]
    table = "".join(_lines(row) for row in known)
    return _INTRODUCTION + _HEADER + table + "\n## Measured on\n" + "".join(_runs(known))


def _lines(row: dict[str, Any]) -> str:
    return "".join(_line(row, entry, first=number == 0) for number, entry in enumerate(row["entries"]))


def _line(row: dict[str, Any], entry: dict[str, Any], first: bool) -> str:
    cells = (
        f"{row['title']} (`{row['workload']}`)" if first else "",
        row["size"] if first else "",
        entry["contender"],
        _time(entry["seconds"]),
        "" if entry["ratio"] is None else format_ratio(entry["ratio"]),
        entry["verdict"],
        "" if entry["shortfall"] is None else f"{entry['shortfall']:.0e}",
        f"{entry['peak_bytes'] / 1e6:,.0f} MB",
    )
    return "| " + " | ".join(cells) + " |\n"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _runs(rows: list[dict[str, Any]]) -> list[str]:
    """Return a paragraph for each machine and its software: its description, and the rows measured on it by date."""
    machines: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        machine = "".join(f"- {fact}: {value}\n" for fact, value in row["machine"].items())
        machines.setdefault(machine, {}).setdefault(row["date"], []).append(f"`{row['workload']}`")
    return [
        f"\n### Machine {number}\n\n{machine}"
        + "".join(f"- rows of {date}: {', '.join(names)}\n" for date, names in sorted(dates.items()))
        for number, (machine, dates) in enumerate(machines.items(), 1)
    ]
