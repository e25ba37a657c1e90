"""Compile every kernel once, so that nobody waits for a compiler later: `python -m summula.core.numerics.warmup`."""

from __future__ import annotations

import importlib
import logging

__all__ = ["warmup"]

# The files with kernels; each has a `warmup` function that calls them with the types people use.
_KERNELS = (
    "summula.core.data.column_kernels",
    "summula.core.data.fixed_order_kernels",
    "summula.core.numerics.exponential_kernels",
    "summula.core.numerics.grouped_kernels",
    "summula.core.engine.random_kernels",
    "summula.core.engine.worker_group",
    "summula.cluster.k_means_kernels",
    "summula.decomposition.principal.krylov_kernels",
    "summula.ensemble.boosting_kernels",
    "summula.ensemble.quantising",
    "summula.features.sparse_lift",
    "summula.kernels.loops",
    "summula.linear_model.glm.kernels",
    "summula.linear_model.sgd.kernels",
    "summula.mixture.kernels",
    "summula.linear_model.least_squares.sparse_kernels",
    "summula.optimize.solvers.l1_kernels",
    "summula.stats.bounds_kernels",
    "summula.svm.linear.coordinate_kernels",
    "summula.svm.smo_kernels",
    "summula.tree.binning_kernels",
    "summula.tree.growing_kernels",
    "summula.tree.histogram_kernels",
    "summula.tree.partition_kernels",
    "summula.tree.predictor_kernels",
    "summula.tree.scoring_kernels",
    "summula.tree.shapley_kernels",
    "summula.tree.split_kernels",
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
