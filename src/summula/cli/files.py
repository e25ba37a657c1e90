"""Output files of commands: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from summula.cli.exit_codes import OUTPUT, CommandError

__all__ = ["output_folder", "write_whole"]


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
