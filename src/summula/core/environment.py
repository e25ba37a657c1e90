"""The environment as it was when this process first imported Summula.

A local Dask cluster gives its workers `OMP_NUM_THREADS=1` by setting it in the process that starts them, and leaves it
set there. To the workers that is an order, and they find it when they begin; to the user's own process it says nothing.
So variables that one process sets for another are read here, once, as OpenMP does.
"""

from __future__ import annotations

import os

__all__ = ["FOUND"]

FOUND = dict(os.environ)


def _look_again() -> None:
    FOUND.clear()
    FOUND.update(os.environ)


if hasattr(os, "register_at_fork"):
    # The child of a fork begins with the memory of its parent, and with an order of its own.
    os.register_at_fork(after_in_child=_look_again)
