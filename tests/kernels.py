"""Delete compiled kernels that an edit has made stale: `python -m tests.kernels`.

Numba notices an edit of the file a kernel is in, but not of a file it calls. After any edit of the library all of
its kernels are deleted, and compiled again by the warm-up or when they are first called.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "summula"
STAMP = SOURCE / "__pycache__" / "kernels.sha256"


def hash_of_source() -> str:
    """Return one hash over every Python file of the library."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(str(path.relative_to(SOURCE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def delete_stale_kernels() -> None:
    """Delete the kernels beside the library unless they are those of its source; where files can be written."""
    now = hash_of_source()
    if STAMP.exists() and STAMP.read_text() == now:
        return
    with suppress(OSError):
        for kernel in (*SOURCE.rglob("*.nbi"), *SOURCE.rglob("*.nbc")):
            kernel.unlink(missing_ok=True)
        STAMP.parent.mkdir(exist_ok=True)
        STAMP.write_text(now)


if __name__ == "__main__":
    delete_stale_kernels()
