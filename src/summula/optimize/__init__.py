"""Solvers: they know neither storage nor model."""

from summula.optimize.separation import Separation, is_linearly_separable, separating_hyperplane

__all__ = ["Separation", "is_linearly_separable", "separating_hyperplane"]
