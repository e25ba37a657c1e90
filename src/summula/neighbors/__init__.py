"""Models that compare rows with points: the nearest training rows, or the means of the classes."""

from summula.neighbors.k_neighbors_classifier import KNeighborsClassifier
from summula.neighbors.k_neighbors_regressor import KNeighborsRegressor
from summula.neighbors.nearest_centroid import NearestCentroid

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestCentroid"]
