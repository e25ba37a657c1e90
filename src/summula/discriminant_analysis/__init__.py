"""Gaussian discriminant analysis: a normal distribution for each class, with one covariance for all or one for each.

`class_grams` has the sums over rows, `gaussian_classifier` what both models share.
"""

from summula.discriminant_analysis.linear_discriminant_analysis import LinearDiscriminantAnalysis
from summula.discriminant_analysis.quadratic_discriminant_analysis import QuadraticDiscriminantAnalysis

__all__ = ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]
