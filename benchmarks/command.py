"""`python -m benchmarks [NAME...] [--quick] [--list]`."""

import argparse
import shlex
import sys
from datetime import UTC, datetime

from benchmarks import page
from benchmarks.machine import facts
from benchmarks.registry import choose, families
from benchmarks.runner import run


def main() -> None:
    """Measure the chosen workloads, one after the other, storing each as soon as it is done."""
    arguments = _parse()
    if arguments.list:
        _list()
        return
    try:
        workloads = choose(arguments.names)
    except LookupError as unknown:
        sys.exit(str(unknown.args[0]))
    command = shlex.join(["python", "-m", "benchmarks", *arguments.names])
    date, machine = datetime.now(UTC).date().isoformat(), facts()
    for workload in workloads:
        result = run(workload, arguments.quick)
        if not arguments.quick:
            page.store(result, date, command, machine)
    if arguments.quick:
        print("Nothing was written: --quick only tests the benchmarks.")
    else:
        print("Wrote docs/benchmarks.md.")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Summula against others.")
    chosen = "workloads, families, or prefixes of names; all by default"
    parser.add_argument("names", nargs="*", metavar="NAME", help=chosen)
    parser.add_argument("--quick", action="store_true", help="small data, few rounds, nothing written")
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    return parser.parse_args()


def _list() -> None:
    for family, workloads in families().items():
        print(family)
        for workload in workloads:
            print(f"  {workload.name:<28}{workload.title}, {workload.size(quick=False)}".rstrip(", "))
