"""Feature expansion."""

from summula.features.polynomial_lift import PolynomialLift

__all__ = ["PolynomialLift"]
