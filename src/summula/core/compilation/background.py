"""Compilation on a second core of kernels that a fit will need later, while it compiles those that it needs now.

Numba compiles on one thread at a time. A fit with several large kernels names functions that compile some of them, each
with one argument if that follows after a colon:

    expect_kernels("summula.tree.growing.grower:compile_grow")

Nothing happens as long as kernels are found in the disk cache. At the first one that is missing, a new interpreter is
started that calls these functions. Both processes share the cache and its locks: no kernel is compiled twice, and
before the fit waits for a kernel it compiles others that it needs later (`compile_meanwhile`). A program that fits
several models announces the kernels of later ones (`expect_later`), which are compiled with lower priority. The other
process ends at the latest with the one that started it. `SUMMULA_BACKGROUND_COMPILATION=0` disables it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["compile_meanwhile", "compile_targets", "expect_kernels", "expect_later", "start_background"]

_SWITCH = "SUMMULA_BACKGROUND_COMPILATION"
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from summula.core.compilation.warmup import skip_package_imports; skip_package_imports(); "
    "from summula.core.compilation.background import compile_targets; compile_targets(sys.argv[2:])"
)

_expected: tuple[str, ...] = ()
_later: tuple[str, ...] = ()
_started: set[str] = set()
_processes: list[subprocess.Popen[bytes]] = []


def expect_kernels(*targets: str) -> None:
    """Announce functions, ``"module:function"`` or ``"module:function:argument"``, that compile kernels of a fit."""
    global _expected
    _expected = targets


def expect_later(*targets: str) -> None:
    """Announce functions that compile, in this order, kernels of later fits; none clears those announced before."""
    global _later
    _later = targets


def start_background() -> None:
    """Start a process that compiles the expected kernels, once, if a second core is available and none is running."""
    targets = [target for target in dict.fromkeys((*_expected, *_later)) if target not in _started]
    if not targets or not _may_start():
        return
    _started.update(targets)
    command = [sys.executable, "-c", _PROGRAM, json.dumps([os.path.abspath(path) for path in sys.path]), *targets]
    nothing, environment = subprocess.DEVNULL, {**os.environ, _SWITCH: "0"}
    with contextlib.suppress(OSError):
        process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)
        if not _processes:
            atexit.register(_stop, os.getpid())
        _processes.append(process)


def compile_meanwhile(*targets: str) -> None:
    """Call functions given by name while the other process is compiling; otherwise do nothing."""
    for target in targets:
        if _is_busy():
            compile_targets([target])


def compile_targets(targets: Sequence[str]) -> None:
    """Call functions given by name."""
    for target in targets:
        module, function, *arguments = target.split(":")
        getattr(importlib.import_module(module), function)(*arguments)


def _may_start() -> bool:
    from summula.core.engine.threads import thread_count

    is_python = os.path.basename(sys.executable or "").lower().startswith("python")  # not an embedding program
    return is_python and os.environ.get(_SWITCH, "1") != "0" and thread_count() > 1 and not _is_busy()


def _is_busy() -> bool:
    """Return whether another process is compiling."""
    return any(process.poll() is None for process in _processes)


def _stop(parent: int) -> None:
    if os.getpid() != parent:  # forked since
        return
    for process in _processes:
        process.terminate()
        process.wait()
