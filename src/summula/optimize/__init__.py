"""Optimisation methods, independent of data storage and models. Names are loaded on first use (PEP 562)."""

from summula.core.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
