"""Disk cache of compiled kernels: never stale, and written by one process at a time.

Numba recompiles a kernel when the file it is defined in changes, not when a kernel or constant that it uses from
another file does. Here the key of a compiled kernel includes a hash of all its dependencies: its code, the kernels it
calls, and the constants they use, recursively. Kernels that close over other kernels can be cached, too.

A process that does not find a kernel in the cache acquires a lock, checks again, and compiles; others wait for the lock
and then load the kernel. So parallel workers of a cross-validation do not all compile the same kernels.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import os
import pickle
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

from summula.core.compilation.background import start_background
from summula.core.compilation.compile_times import WAITING
from summula.core.compilation.compiler_choice import faster_numba

__all__ = ["KernelCache", "dependency_hash", "enable_cache"]

_PACKAGE = __name__.partition(".")[0]
_LOCK_TIMEOUT = 120.0  # seconds to wait for another process; compiling one kernel takes a few
_POLL = 0.02
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)

_UNREADABLE = (pickle.UnpicklingError, AttributeError, ImportError, EOFError, IndexError, TypeError, ValueError)

_log = logging.getLogger("summula.compile")
_announced = False


# -------------------------------------------------------------------------------------------------------- dependencies


def dependency_hash(function: Callable[..., Any]) -> str:
    """Return a hash of the code of a kernel, of the kernels it calls, and of the constants they use."""
    digest = hashlib.sha256()
    for line in _describe_function(function, set()):
        digest.update(line.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _describe_function(function: Any, visited: set[int]) -> Iterator[str]:
    """Yield a description of what compiling a function depends on, except what was visited before."""
    if id(function) in visited:
        return
    visited.add(id(function))
    yield f"{function.__module__}.{function.__qualname__} {function.__defaults__!r}"
    code = function.__code__
    for cell_name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield from _describe_value(cell_name, cell.cell_contents, visited)
    yield from _describe_code(code, function.__globals__, visited)


def _describe_code(code: types.CodeType, names: dict[str, Any], visited: set[int]) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_varnames} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _describe_code(constant, names, visited)
        else:
            yield repr(constant)
    for name in code.co_names:
        if name in names:
            yield from _describe_value(name, names[name], visited)
        for module in names.values():  # an attribute of a module of this package, as in `random_kernels.mix64`
            if isinstance(module, types.ModuleType) and _is_ours(module.__name__) and hasattr(module, name):
                yield from _describe_value(name, getattr(module, name), visited)


def _describe_value(name: str, value: Any, visited: set[int]) -> Iterator[str]:
    """Yield a description of a global or enclosed variable that does not depend on the process."""
    function = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # a kernel, or an intrinsic
    if function is not None:
        yield f"{name} {_describe_options(getattr(value, 'targetoptions', {}))}"
        yield from _describe_function(function, visited)
    elif isinstance(value, types.FunctionType) and _is_ours(value.__module__):
        yield from _describe_function(value, visited)
    elif isinstance(value, _CONSTANTS):
        yield f"{name} = {value!r}"
    elif isinstance(value, tuple):
        for item in value:
            yield from _describe_value(name, item, visited)
    elif isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        yield f"{name} = {value.dtype} {value.shape} {content}"
    else:
        kind = value if isinstance(value, type) else type(value)
        yield f"{name}: {kind.__module__}.{kind.__qualname__} {getattr(value, '_fields', ())}"


def _describe_options(options: dict[str, Any]) -> str:
    """Describe compile options; sets, whose order depends on the process, are sorted."""
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in options.items()}
    return repr(sorted(plain.items()))


def _is_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == _PACKAGE


# --------------------------------------------------------------------------------------------------------------- locks


class _FileLock:
    """A lock between processes, released by the system if its owner dies; no lock if files cannot be locked."""

    def __init__(self, path: str) -> None:
        self._file: Any = None
        end = time.perf_counter() + _LOCK_TIMEOUT
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = open(path, "ab")  # noqa: SIM115  closed by `release`
            while not _try_lock(file):
                if time.perf_counter() > end:
                    file.close()
                    return
                time.sleep(_POLL)
            self._file = file

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None


if sys.platform == "win32":  # pragma: no cover

    def _try_lock(file: Any) -> bool:
        import msvcrt

        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _try_lock(file: Any) -> bool:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


# --------------------------------------------------------------------------------------------------------------- cache


class _CacheFile(IndexDataCacheFile):
    """The index and the kernels of one function on disk; what cannot be read is taken as absent.

    Types of arguments are pickled. Those of an earlier version may be classes that no longer exist.
    """

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except _UNREADABLE:
            return None

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except _UNREADABLE:
            return {}


class KernelCache(FunctionCache):
    """Numba's cache of one function, keyed by `dependency_hash`, with a lock while the function is compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())
        self._options = _describe_options(options)
        self._dependencies: str | None = None
        self._locks: dict[Any, _FileLock] = {}

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function, or None if this process is to compile it now."""
        with faster_numba():  # the first time, Numba imports its library
            found = super().load_overload(sig, target_context)
        if found is not None or sig in self._locks:
            return found
        with event.trigger_event(WAITING):
            lock = _FileLock(os.path.join(self._cache_path, f"{self._impl.filename_base}.lock"))
        found = super().load_overload(sig, target_context)
        if found is None:
            _announce()
            start_background()
            self._locks[sig] = lock
        else:
            lock.release()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled function to disk."""
        try:
            super().save_overload(sig, data)
        finally:
            self.release(sig)

    def release(self, sig: Any) -> None:
        """Release the lock on a signature, if this process has it."""
        lock = self._locks.pop(sig, None)
        if lock is not None:
            lock.release()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        if self._dependencies is None:  # not before everything that the function uses is defined
            self._dependencies = dependency_hash(self._py_func)
        return sig, codegen.magic_tuple(), self._options, self._dependencies


class _Compilation(event.Listener):
    """Releases the lock on a kernel that could not be compiled, and pauses the garbage collector meanwhile.

    Compiling creates millions of objects, few of them garbage; collecting takes a tenth of the time. Numba compiles
    on one thread at a time, so that the calls are nested.
    """

    def __init__(self) -> None:
        self._depth, self._was_enabled = 0, False
        self._meanwhile = contextlib.ExitStack()

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._was_enabled = gc.isenabled()
            gc.disable()
            self._meanwhile.enter_context(faster_numba())
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._meanwhile.close()
            if self._was_enabled:
                _skip_collection()
                gc.enable()
        dispatcher, args = event.data["dispatcher"], tuple(event.data["args"])
        if isinstance(getattr(dispatcher, "_cache", None), KernelCache) and args not in dispatcher.overloads:
            dispatcher._cache.release(args)


def _skip_collection() -> None:
    """Move new objects to the oldest generation without traversing them, unless objects have been frozen before."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


event.register("numba:compile", _Compilation())


def enable_cache(dispatcher: Any, options: dict[str, Any]) -> None:
    """Enable the disk cache of a kernel in the package's or the user's cache folder, if one of them is writable."""
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = KernelCache(dispatcher.py_func, options)


def _announce() -> None:
    global _announced
    if not _announced:
        _announced = True
        _log.info(
            "Compiling for the first use on this machine, which takes a few seconds; "
            "`summula warmup` compiles the usual kernels of all estimators in advance."
        )
