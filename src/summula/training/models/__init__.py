"""Models of encoded rows that only training runs use.

`support_vectors` (machines with scaled targets, a chosen C and calibrated probabilities), `averages` (weighted averages
of several models, each with a range of columns), `base` (what they share).
"""

from summula.training.models.averages import AveragedClassifier, AveragedRegressor
from summula.training.models.support_vectors import CalibratedSVC, ScaledSVR

__all__ = ["AveragedClassifier", "AveragedRegressor", "CalibratedSVC", "ScaledSVR"]
