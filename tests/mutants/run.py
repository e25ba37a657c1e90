"""Check that the tests detect deliberate bugs: `python -m tests.mutants.run`, or `make mutants`.

Every mutation of `mutations.py` is applied, one at a time, to a copy of the library. Its tests have to pass on the copy
as it is, and at least one of them has to fail on the mutant. Arguments select mutations whose names contain them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
FAILED_TESTS = 1  # pytest's exit code when tests were run and some failed


def run_tests(source: Path, mutations: Iterable[Mutation]) -> subprocess.CompletedProcess[str]:
    """Run the tests of some mutations on the library in a folder, until the first that fails."""
    chosen = list(mutations)
    files = sorted({f"tests{one.tests}" if one.tests[0] == "/" else f"tests/contract/{one.tests}" for one in chosen})
    select = " or ".join(sorted({f"({one.select})" for one in chosen}))
    options = ["-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-k", select]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def mutated(text: str, mutation: Mutation) -> str:
    """The text of a file with the bug in it."""
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: {mutation.file} holds {text.count(mutation.old)} times\n{mutation.old}")
    return text.replace(mutation.old, mutation.new)


def is_killed(source: Path, mutation: Mutation) -> bool:
    """Whether a test fails because of a mutation; the copy is as before afterwards."""
    path = source / "summula" / mutation.file
    text, times = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(mutated(text, mutation), encoding="utf-8")
    try:
        return run_tests(source, [mutation]).returncode == FAILED_TESTS
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled kernels stay valid


def main(words: list[str]) -> int:
    """Try every selected mutation; the number of those that survive is the exit code."""
    chosen = [one for one in MUTATIONS if not words or any(word in one.name for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        shutil.copytree(ROOT / "src" / "summula", source / "summula")
        whole = run_tests(source, chosen)
        if whole.returncode:
            print(whole.stdout[-3_000:], whole.stderr[-3_000:])
            raise SystemExit("The tests fail without any mutation: fix that first.")
        survivors = 0
        for mutation in chosen:
            begin = time.perf_counter()
            killed = is_killed(source, mutation)
            survivors += not killed
            print(
                f"{'killed' if killed else 'SURVIVED':9} {mutation.name} ({time.perf_counter() - begin:.0f} s)",
                flush=True,
            )
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants killed")
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
