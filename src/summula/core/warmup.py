"""Compile every kernel once, so that nobody waits for a compiler later: `python -m summula.core.warmup`."""

from __future__ import annotations

import importlib
import logging

__all__ = ["warmup"]

# The files with kernels; each has a `warmup` function that calls them with the types people use.
_KERNELS = (
    "summula.core.exponential_kernels",
    "summula.features.sparse_lift",
    "summula.linear_model.glm_kernels",
    "summula.linear_model.sparse_kernels",
    "summula.optimize.l1_kernels",
)

_log = logging.getLogger(__name__)


def warmup() -> None:
    """Compile every kernel for the types people use, into the cache on disk."""
    for name in _KERNELS:
        _log.info("compiling %s", name)
        importlib.import_module(name).warmup()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    warmup()
