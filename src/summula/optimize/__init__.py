"""Optimisation methods, independent of data storage and models. Names are loaded on first use (PEP 562)."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "ConstrainedSolution": "problems.multipliers",
    "DualFunction": "duality",
    "Duality": "duality",
    "KKT": "constrained",
    "Multipliers": "problems.multipliers",
    "Problem": "constrained",
    "Quadratic": "quadratics",
    "Separation": "separation",
    "bfgs": "quasi_newton",
    "check_duality": "duality",
    "conjugate_gradient": "conjugate",
    "constrained_minimum": "constrained",
    "coordinate_descent": "coordinates",
    "dual_function": "duality",
    "gradient_descent": "gradient_methods",
    "is_linearly_separable": "separation",
    "kkt_residuals": "constrained",
    "line_search": "line_searches",
    "linear_program": "linear_programs",
    "newton": "second_order",
    "newton_root": "roots",
    "quadratic_program": "quadratic_programs",
    "separating_hyperplane": "separation",
    "sgd": "stochastic",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"summula.optimize.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'summula.optimize' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
