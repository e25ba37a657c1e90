"""Gaussian discriminant analysis: a normal distribution for each class, with a shared or separate covariance.

`class_grams` contains the sums over rows, `gaussian_classifier` the base class of both models.
"""

from summula.discriminant_analysis.linear_discriminant_analysis import LinearDiscriminantAnalysis
from summula.discriminant_analysis.quadratic_discriminant_analysis import QuadraticDiscriminantAnalysis

__all__ = ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]
