"""Naive Bayes: the features of a row are independent given its class.

Each file is one model: `gaussian_nb` (normally distributed features).
"""

from summula.naive_bayes.gaussian_nb import GaussianNB

__all__ = ["GaussianNB"]
