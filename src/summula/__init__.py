"""Summula: the first course in machine learning as software. Every fit is a sum, and says how good it is.

Importing this package imports only the standard library; names load when they are first used (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import Any

from summula._version import __version__
from summula.core import environment as _environment  # noqa: F401  read before a local Dask cluster changes it
from summula.core.deferred_imports import register as _defer_imports
from summula.core.moved_modules import register as _register_moved_modules

_defer_imports()
_register_moved_modules()

_MODULES = (
    "bayes",
    "cluster",
    "core",
    "datasets",
    "decomposition",
    "discriminant_analysis",
    "dummy",
    "em",
    "ensemble",
    "feature_selection",
    "features",
    "kernel_approximation",
    "kernel_ridge",
    "kernels",
    "linear_model",
    "mdp",
    "metrics",
    "mixture",
    "model_selection",
    "naive_bayes",
    "neighbors",
    "optimize",
    "plotting",
    "preprocessing",
    "stats",
    "svm",
    "theory",
    "tree",
    "training",
)
_NAMES = {
    "AccuracyWarning": "summula.core.errors",
    "ClusterError": "summula.core.errors",
    "CollapseWarning": "summula.core.errors",
    "CollinearityWarning": "summula.core.errors",
    "DataError": "summula.core.errors",
    "HoldoutWarning": "summula.core.errors",
    "ModelFileError": "summula.core.errors",
    "OutputError": "summula.core.errors",
    "ParameterError": "summula.core.errors",
    "RiskMonitor": "summula.certification",
    "SeparationWarning": "summula.core.errors",
    "TimeLimitError": "summula.core.errors",
    "certify": "summula.certification",
    "certify_best": "summula.certification",
    "combine": "summula.core.estimator.additive",
    "compare": "summula.certification",
    "engine": "summula.core.engine.engine",
    "load": "summula.core.model_files.persistence",
    "np_threshold": "summula.certification",
    "plot": "summula.plotting.dispatch",
    "save": "summula.core.model_files.persistence",
    "scan": "summula.core.data.scan",
    "train": "summula.training",
}

__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"summula.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'summula' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
