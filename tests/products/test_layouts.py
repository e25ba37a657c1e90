"""The promise of equal bits must not depend on the CPU: BLAS receives the same operands for every container.

OpenBLAS uses kernels on CPUs with AVX-512 whose summation order follows the memory layout. The first test looks at the
operands themselves and emulates such a BLAS, the second uses every family of kernels this CPU can run besides its own,
with which `tests/contract` compares the same containers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import threadpoolctl

from tests.processes import environment, run

ROOT = Path(__file__).parents[2]
HANG = 1_200  # seconds after which a process is taken to hang

# Families of OpenBLAS's kernels, and a flag of the CPU that each needs.
FAMILIES = {"Nehalem": "sse4_2", "Haswell": "avx2", "Zen": "avx2", "SkylakeX": "avx512vl", "Cooperlake": "avx512_bf16"}


def compared(mode: str, **changes: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.products.compare_containers", mode],
        cwd=ROOT, env=environment(**changes), capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["products"] > 10_000, "the products were instrumented"
    return result


def flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def architectures(**changes: str) -> list[str]:
    """The families of kernels that a process with these variables uses."""
    script = """
    import json, numpy, threadpoolctl
    print(json.dumps([str(library.get("architecture")) for library in threadpoolctl.threadpool_info()]))
    """
    found: list[str] = run(script, **changes)
    return found


def is_openblas() -> bool:
    return any(library.get("internal_api") == "openblas" for library in threadpoolctl.threadpool_info())


def test_a_blas_that_follows_the_layout_is_handed_the_same_operands_and_gives_the_same_bits_for_every_container() -> (
    None
):
    assert compared("operands")["differences"] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_kernels_gives_the_same_bits_for_every_container(family: str) -> None:
    if not is_openblas():
        pytest.skip("NumPy does not use OpenBLAS here")
    if FAMILIES[family] not in flags():
        pytest.skip(f"this CPU has no {FAMILIES[family]}")
    if family not in architectures(OPENBLAS_CORETYPE=family):
        pytest.skip(f"this build of OpenBLAS has no kernels of its own for {family}")
    if "OPENBLAS_CORETYPE" not in os.environ and family in architectures():
        pytest.skip("all other tests use these kernels")
    result = compared("bits", OPENBLAS_CORETYPE=family)
    assert family in result["blas"]
    assert result["differences"] == []


def test_the_emulation_tells_layouts_apart() -> None:
    """It would find a product whose operands follow the layout of the data."""
    program = """
    import sys; sys.path.insert(0, ".")
    from tests.products.instrument import PRODUCTS
    import numpy as np
    PRODUCTS.mode = "by layout"
    X, v = np.random.default_rng(0).normal(size=(2_000, 20)), np.linspace(0, 1, 20)
    layouts = X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]
    print(len({PRODUCTS.multiply(A, v, "").tobytes() for A in layouts}))
    """
    lines = "\n".join(line.strip() for line in program.strip().splitlines())
    done = subprocess.run([sys.executable, "-c", lines], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
