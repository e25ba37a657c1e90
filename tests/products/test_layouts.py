"""The promise of equal bits must not depend on the CPU: BLAS receives the same operands for every container.

OpenBLAS uses kernels on CPUs with AVX-512 whose summation order follows the memory layout. The first test compares the
sequences of operands themselves and emulates such a BLAS. Another uses every family of kernels this CPU can run besides
its own, with which `tests/contract` compares the same containers.

Blocks of rows begin at a multiple of 64 bytes, or at the same place after one, whatever their size; variables of solvers
at a multiple of 16, where NumPy happens to allocate them, for every source alike.
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
from tests.products.instrument import instrumented

ROOT = Path(__file__).parents[2]
HANG = 1_200  # seconds after which a process is taken to hang

ONE_THREAD = {"SUMMULA_NUM_THREADS": "1"}  # products come in one order

# Families of OpenBLAS's kernels, and a flag of the CPU that each needs.
FAMILIES = {"Nehalem": "sse4_2", "Haswell": "avx2", "Zen": "avx2", "SkylakeX": "avx512vl", "Cooperlake": "avx512_bf16"}


def compared(mode: str, *options: str, least: int = 10_000, **changes: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.products.compare_containers", mode, *options],
        cwd=ROOT, env=environment(**changes), capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["products"] > least, "the products were instrumented"
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
    assert compared("operands", **ONE_THREAD)["differences"] == []


@pytest.mark.parametrize(
    ("mistake", "case"),
    [("views", "RidgeCV()"), ("views", "MultinomialNB()"), ("alignment", "RidgeCV()")],
)
def test_a_mistake_in_the_layout_is_found(mistake: str, case: str) -> None:
    mistakes = compared("operands", case, mistake, least=20, **ONE_THREAD)["mistakes"]
    for size in ("small", "large"):
        assert any(what for name, what in mistakes.items() if f", {size}, " in name)


def test_blocks_in_other_places_are_found_in_every_fit_and_prediction_that_multiplies_rows() -> None:
    """Each fit writes its blocks in its own way: many never call `Chunk.block`, or look where rows begin."""
    mistakes = compared("operands", "", "allocation", least=5_000, **ONE_THREAD)["mistakes"]
    assert sum("fit_products" in name for name in mistakes) > 100
    assert [name for name, what in mistakes.items() if not what] == []


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


def test_every_product_is_instrumented() -> None:
    """Outside kernels, whose loops are compiled."""
    source = """
import numpy as np
from scipy import linalg
from scipy.linalg import solve_triangular
A = np.eye(2)
B = A @ A
B @= A
B = np.matmul(A, np.dot(A, A.dot(A)))
np.einsum("ij,ij->i", A, A), np.inner(A, A), np.vdot(A, A), np.linalg.qr(A), linalg.lapack.dpotrf(A)
solve_triangular(A, A)
def kernel(function): return function
@kernel
def compiled(A): return A @ A
compiled(A)
"""
    multiplied, called = [], []
    names: dict[str, Any] = {
        "__multiply__": lambda a, b, place: multiplied.append(place) or a @ b,
        "__call_linalg__": lambda function, place, *given: called.append(place) or function(*given),
    }
    exec(instrumented(source, "summula/some.py"), names)
    assert multiplied == [f"some.py:{line}" for line in (6, 7, 8, 8, 8)]
    assert called == ["some.py:9"] * 5 + ["some.py:10"]


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
