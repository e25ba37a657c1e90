"""Modules that classes of pickled models have moved from: pickles of earlier versions import them by their old names.

(Files of `summula.save` contain no module names, so they need nothing of this.)
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["MOVED", "register"]

MOVED = {
    "summula.core.estimator.priors": "summula.core.numerics.priors",
    "summula.core.estimator.tracked_rows": "summula.core.estimator.input.tracked_rows",
    "summula.ensemble.histogram.explaining": "summula.tree.prediction.explaining",
    "summula.linear_model.glm.certificate": "summula.linear_model.glm.bounds.certificate",
    "summula.linear_model.glm.quality": "summula.linear_model.glm.statistics.quality",
    "summula.linear_model.sgd.certificate": "summula.optimize.solvers.stochastic_descent.certificate",
    "summula.mdp.evaluation": "summula.mdp.solvers.evaluation",
    "summula.optimize.quadratics": "summula.optimize.problems.quadratics",
    "summula.stats.continuous_families": "summula.stats.families.continuous",
    "summula.stats.discrete_families": "summula.stats.families.discrete",
    "summula.stats.exponential_family": "summula.stats.families.exponential_family",
    "summula.svm.certificate": "summula.svm.dual.certificate",
    "summula.tree.binning": "summula.tree.columns.binning",
    "summula.tree.predictor": "summula.tree.prediction.predictor",
}


class _MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module under its old name, as one that forwards every name to the new module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_folder = any(old.startswith(f"{fullname}.") for old in MOVED)  # of which nothing is left
        known = fullname in MOVED or is_folder
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_folder) if known else None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in MOVED:
            new = importlib.import_module(MOVED[module.__name__])
            module.__dict__["__getattr__"] = lambda name: getattr(new, name)


def register() -> None:
    """Make the old names importable."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(_MovedModules())
