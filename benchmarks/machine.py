"""Description of the machine."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

from benchmarks.threads import THREADS

_PACKAGES = ("summula", "numpy", "scipy", "numba", "scikit-learn", "scikit-learn-intelex")


def facts() -> dict[str, str]:
    """Processor, threads, memory, system and versions, as text."""
    import numpy as np

    np.dot(np.ones((2, 2)), np.ones((2, 2)))  # so that NumPy's BLAS is among the loaded libraries
    blas = {_blas(library) for library in threadpool_info() if library["user_api"] == "blas"}
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores, {_memory()}",
        "threads": str(THREADS),
        "system": f"{platform.system()} {platform.machine()}, {python}",
        "BLAS": ", ".join(sorted(blas)),
        "versions": ", ".join(f"{package} {_version(package)}" for package in _PACKAGES),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _blas(library: dict[str, str]) -> str:
    return f"{library['internal_api']} {library['version']} ({library.get('architecture', 'unknown kernel')})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
