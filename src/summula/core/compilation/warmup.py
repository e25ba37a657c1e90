"""Compile all kernels in advance: `python -m summula.core.compilation.warmup [--float32]`."""

from __future__ import annotations

import importlib
import importlib.machinery
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["skip_package_imports", "warmup"]

# Modules with kernels; each has a `warmup` function that calls them with the common argument types.
_KERNELS = (
    "summula.core.data.layout.column_kernels",
    "summula.core.data.layout.fixed_order_kernels",
    "summula.core.numerics.exponential_kernels",
    "summula.core.numerics.grouped_kernels",
    "summula.core.engine.random_kernels",
    "summula.core.engine.worker_group",
    "summula.cluster.k_means_kernels",
    "summula.cluster.score_kernels",
    "summula.cluster.seeding_kernels",
    "summula.decomposition.principal.krylov_kernels",
    "summula.ensemble.histogram.boosting_kernels",
    "summula.ensemble.histogram.quantising",
    "summula.features.sparse_lift",
    "summula.kernels.loops",
    "summula.linear_model.glm.kernels",
    "summula.optimize.solvers.stochastic_descent.kernels",
    "summula.mdp.solvers.backup_kernels",
    "summula.mixture.kernels",
    "summula.linear_model.least_squares.sparse_kernels",
    "summula.naive_bayes.count_kernels",
    "summula.neighbors.search.kernels",
    "summula.optimize.solvers.l1_kernels",
    "summula.stats.bounds_kernels",
    "summula.svm.linear.coordinate_kernels",
    "summula.svm.linear.interior_point_kernels",
    "summula.svm.linear.newton_kernels",
    "summula.svm.dual.smo_kernels",
    "summula.tree.binned.grower",
    "summula.tree.binned.level_grower",
    "summula.tree.binned.walk_kernels",
    "summula.tree.columns.binning_kernels",
    "summula.tree.exact.grower",
    "summula.tree.growing.grower",
    "summula.tree.growing.leaf_kernels",
    "summula.tree.prediction.predictor_kernels",
    "summula.tree.prediction.scoring_kernels",
    "summula.tree.prediction.shapley_kernels",
)

# The slowest modules come first, so that all processes end at about the same time.
_LONGEST = (
    "summula.tree.growing.grower",
    "summula.optimize.solvers.stochastic_descent.kernels",
    "summula.cluster.score_kernels",
    "summula.tree.exact.grower",
    "summula.tree.binned.grower",
    "summula.tree.prediction.scoring_kernels",
    "summula.mixture.kernels",
    "summula.tree.prediction.predictor_kernels",
    "summula.tree.prediction.shapley_kernels",
    "summula.tree.binned.level_grower",
    "summula.linear_model.glm.kernels",
    "summula.linear_model.least_squares.sparse_kernels",
    "summula.svm.linear.coordinate_kernels",
    "summula.svm.dual.smo_kernels",
    "summula.ensemble.histogram.boosting_kernels",
    "summula.neighbors.search.kernels",
    "summula.svm.linear.interior_point_kernels",
    "summula.optimize.solvers.l1_kernels",
)

_log = logging.getLogger(__name__)
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def warmup(*, float32: bool = False) -> None:
    """Compile every kernel for the common argument types into the disk cache, in one process per core.

    Parameters
    ----------
    float32 : bool, default False
        Compile for rows in single precision, too. Otherwise those variants are compiled when they are first used.
    """
    from joblib import cpu_count

    from summula.core.compilation.compile import SINGLE_PRECISION

    command, flag = [sys.executable, "-m", "summula.core.compilation.warmup"], {SINGLE_PRECISION: str(int(float32))}
    names = [*_LONGEST, *(name for name in _KERNELS if name not in _LONGEST)]
    count = min(cpu_count(), len(names))
    # Separate interpreters: Numba compiles in one thread at a time, and forking a process with threads may hang.
    output, environment = None if _log.isEnabledFor(logging.INFO) else subprocess.PIPE, os.environ | flag
    with tempfile.TemporaryDirectory() as taken:
        processes = [subprocess.Popen([*command, taken, *names], stderr=output, env=environment) for _ in range(count)]
        errors = [process.communicate()[1] for process in processes]
    if any(process.returncode for process in processes):
        text = b"\n".join(filter(None, errors)).decode(errors="replace")
        raise RuntimeError(f"Kernels could not be compiled:\n{text}")


def _compile(names: Iterable[str]) -> None:
    for name in names:
        _log.info("compiling %s", name)
        importlib.import_module(name).warmup()


def _not_taken(names: Iterable[str], folder: str) -> Iterator[str]:
    """Yield names not claimed by another process; a name is claimed by creating a file in a shared folder."""
    for name in names:
        try:
            open(os.path.join(folder, name), "x").close()
        except FileExistsError:
            continue
        yield name


class _PlainPackages:
    """Finds the packages of this library without running their `__init__`, whose imports kernels do not need.

    Importing takes a second less, which shortens the first fit.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        package, _, rest = name.partition(".")
        folder = os.path.join(_ROOT, *rest.split("."))
        if package != "summula" or not rest or not os.path.isdir(folder):
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec


def skip_package_imports() -> None:
    """Import modules of this library without the imports of their packages, in a process that only compiles."""
    sys.meta_path.insert(0, _PlainPackages)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    _log.setLevel(logging.INFO)
    logging.getLogger("summula.compile").setLevel(logging.WARNING)  # it recommends `summula warmup`, which is running
    skip_package_imports()
    if len(sys.argv) > 2:
        _compile(_not_taken(sys.argv[2:], sys.argv[1]))
    else:
        warmup(float32="--float32" in sys.argv)
