"""Optimisation methods, independent of data storage and models. Names are loaded on first use (PEP 562)."""

from summula.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "conjugate": "conjugate_gradient",
        "constrained": "KKT Problem constrained_minimum kkt_residuals",
        "coordinates": "coordinate_descent",
        "duality": "DualFunction Duality check_duality dual_function",
        "gradient_methods": "gradient_descent",
        "line_searches": "line_search",
        "linear_programs": "linear_program",
        "problems.multipliers": "ConstrainedSolution Multipliers",
        "problems.quadratics": "Quadratic",
        "quadratic_programs": "quadratic_program",
        "quasi_newton": "bfgs",
        "roots": "newton_root",
        "second_order": "newton",
        "separation": "Separation is_linearly_separable separating_hyperplane",
        "stochastic": "sgd",
    },
)
