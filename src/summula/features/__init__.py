"""Features made from features."""

from summula.features.polynomial_lift import PolynomialLift

__all__ = ["PolynomialLift"]
