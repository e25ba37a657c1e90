"""Atomic replacement of several files in a folder.

New files are written to a staging folder inside the target folder. Renaming a manifest into place commits them: it
names the staging folder and its files. Then the files are moved to their names, and manifest and staging folder are
removed. A process that dies before the commit leaves the old files in force, one that dies after it the new ones:
the next command that uses the folder (`committed_path`) completes the move, or reads the files where they are, as
`summula.load` does (`committed_version`).

One process at a time locks the folder (`exclusive`), with a lock of the operating system, which ends with the process.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from summula.core.errors import OutputError
from summula.core.model_files.commits import MANIFEST, STAGE, committed_version, pending_commit

__all__ = ["committed_path", "exclusive", "output_folder", "write_together", "write_whole"]

_LOCK = ".summula-lock"


def output_folder(path: str) -> str:
    """Return a folder that can be written to, created if necessary."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except FileExistsError:
        raise OutputError(f"{path} is a file, not a folder; choose another folder.") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"The folder {path} cannot be written to ({reason}); choose another folder.") from None
    return path


def write_whole(path: str, text: str) -> None:
    """Write a text file; an existing file is replaced once the new one is complete on disk."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".summula-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def exclusive(folder: str) -> Iterator[None]:
    """Lock a folder within a with-block; raise if another process has locked it."""
    path = os.path.join(folder, _LOCK)
    lock = _locked(path)
    if lock is None:
        raise OutputError(
            f"Another training run is writing to {folder}; wait until it has finished, or choose another folder."
        )
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove open files: an empty one is left
            os.unlink(path)
        os.close(lock)


def write_together(folder: str, writers: Mapping[str, Callable[[str], object]]) -> None:
    """Write several files of a folder, all or none; each function is called with the path to write to.

    The caller has locked the folder (`exclusive`). Until the last file is complete, and after any error, the existing
    files are unchanged.
    """
    _complete(folder)
    _remove_leftovers(folder)
    stage = tempfile.mkdtemp(dir=folder, prefix=STAGE)
    try:
        for name, write in writers.items():
            write(os.path.join(stage, name))
            _sync(os.path.join(stage, name))
        manifest = os.path.join(stage, MANIFEST)
        with open(manifest, "w", encoding="utf-8") as file:
            json.dump({"stage": os.path.basename(stage), "files": list(writers)}, file)
            file.flush()
            os.fsync(file.fileno())
        _sync(stage)
        os.replace(manifest, os.path.join(folder, MANIFEST))
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    _complete(folder)


def _complete(folder: str) -> None:
    """Move the files of a commit to their names, unless an earlier process has done so."""
    commit = pending_commit(folder)
    if commit is None:
        return
    _sync(folder)
    for name in commit.names:
        with suppress(FileNotFoundError):  # moved before
            os.replace(os.path.join(commit.stage, name), os.path.join(folder, name))
    _sync(folder)
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, MANIFEST))
    shutil.rmtree(commit.stage, ignore_errors=True)


def committed_path(path: str) -> str:
    """Return the path of the committed version of a file: its own, or one in the staging folder if it cannot be
    moved.
    """
    folder = os.path.dirname(path) or "."
    if os.path.exists(os.path.join(folder, MANIFEST)):
        with suppress(OSError), exclusive(folder):  # unless its process still runs
            _complete(folder)
    return committed_version(path)


def _remove_leftovers(folder: str) -> None:
    """Delete staging folders of processes that died before their commit."""
    for name in os.listdir(folder):
        if name.startswith(STAGE):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def _sync(path: str) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    with suppress(OSError):  # some systems cannot open folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _locked(path: str) -> int | None:
    """Return an open file locked by this process, or None if another process has locked it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(handle)
            # Its previous owner may have removed it between opening and locking: then the lock has no effect.
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int) -> None:
    """Lock an open file; raise BlockingIOError if another process has locked it. (No-op without file locks.)"""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            raise BlockingIOError from None
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return
