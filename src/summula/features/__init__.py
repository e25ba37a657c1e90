"""Feature expansion: lifting maps. `lift` has what they have in common."""

from summula.features.parabolic_lift import ParabolicLift, Sphere
from summula.features.polynomial_lift import PolynomialLift
from summula.features.quadric_lift import QuadricLift

__all__ = ["ParabolicLift", "PolynomialLift", "QuadricLift", "Sphere"]
