"""Environment variables as they were when this process first imported Summula.

A local Dask cluster passes `OMP_NUM_THREADS=1` to its workers by setting it in the process that starts them, where it
then stays set. The limit is meant for the workers, which see it at startup, and not for the user's own process. So
variables that one process sets for another are read once, at import, as OpenMP does.
"""

from __future__ import annotations

import os

__all__ = ["INITIAL_ENVIRONMENT"]

INITIAL_ENVIRONMENT = dict(os.environ)


def _reread() -> None:
    INITIAL_ENVIRONMENT.clear()
    INITIAL_ENVIRONMENT.update(os.environ)


if hasattr(os, "register_at_fork"):
    # A forked child inherits its parent's memory, but may have been given another environment.
    os.register_at_fork(after_in_child=_reread)
