"""Feature expansion: lifting maps (`lift` is their base class), edges and their histograms in images."""

from summula.features.edge_detection import Edges, edges
from summula.features.hog import HOG
from summula.features.parabolic_lift import ParabolicLift, Sphere
from summula.features.polynomial_lift import PolynomialLift
from summula.features.quadric_lift import QuadricLift

__all__ = ["HOG", "Edges", "ParabolicLift", "PolynomialLift", "QuadricLift", "Sphere", "edges"]
