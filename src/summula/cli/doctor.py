"""`summula doctor`: versions, threads, BLAS and caches, for diagnosing problems."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from summula._version import __version__
from summula.cli.console import Console

__all__ = ["doctor", "findings"]

_NEEDED = ("numpy", "scipy", "numba", "scikit-learn", "narwhals", "pyarrow", "safetensors", "threadpoolctl", "joblib")
_OPTIONAL = ("typer", "rich", "jinja2", "matplotlib", "dask", "pandas", "polars")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def findings() -> dict[str, Any]:
    """Return the installed versions, threads, BLAS and caches."""
    import numpy  # noqa: F401  so that its BLAS is loaded
    from threadpoolctl import threadpool_info

    from summula.core.engine.threads import thread_count

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    cache = os.environ.get("NUMBA_CACHE_DIR") or package
    kernels = sum(name.endswith(".nbi") for _, _, names in os.walk(cache) for name in names)
    blas = [
        f"{one.get('internal_api')} {one.get('version')} ({one.get('num_threads')} threads)"
        for one in threadpool_info()
        if one.get("user_api") == "blas"
    ]
    return {
        "summula": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{name: _version(name) or "missing: install summula again" for name in _NEEDED},
        **{name: _version(name) or "not installed" for name in _OPTIONAL},
        "threads": thread_count(),
        "BLAS": ", ".join(blas) or "none found",
        "compiled kernels": f"{kernels} in {cache}" if kernels else "none yet: `summula warmup` compiles them",
        "kernel cache": "writable" if os.access(cache, os.W_OK) else "not writable: kernels are compiled in every run",
        "scratch folder": os.environ.get("SUMMULA_SCRATCH") or "the system's temporary folder",
        "executable": sys.executable,
    }


def doctor(console: Console) -> None:
    """Print the findings."""
    found = findings()
    console.table(
        "Summula and its dependencies", ["what", "found"], [[name, str(value)] for name, value in found.items()]
    )
    console.document(found)
