"""Output files of commands: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress

from summula.cli.exit_codes import OUTPUT, CommandError

__all__ = ["output_folder", "write_together", "write_whole"]


def output_folder(path: str) -> str:
    """A folder that can be written to; made if need be."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except FileExistsError:
        raise CommandError(f"{path} is a file and no folder; give another folder with --out.", OUTPUT) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(
            f"The folder {path} cannot be written to ({reason}); give another with --out.", OUTPUT
        ) from None
    return path


def write_together(folder: str, writers: Mapping[str, Callable[[str], object]]) -> None:
    """Write several files of a folder, all or none: each function is given a path to write to.

    They take their names when the last of them is complete; until then, and after any error, what was there stays.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".summula-") as aside:
        for name, write in writers.items():
            write(os.path.join(aside, name))
        for name in writers:
            os.replace(os.path.join(aside, name), os.path.join(folder, name))


def write_whole(path: str, text: str) -> None:
    """Write a text file; what was there stays until the new one is complete on disk."""
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
