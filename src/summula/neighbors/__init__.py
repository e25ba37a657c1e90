"""Models that compare rows with points: the nearest training rows, or the means of the classes.

Reading order: `search/` (exact search), `neighbor_search` (the search of a model, in memory or streamed), `weighting`
(weights by distance), `k_neighbors` (the base class) with its classifier and regressor, `leave_one_out` (the number of
neighbours), `centroid_fit` and `nearest_centroid`.
"""

from summula.neighbors.k_neighbors_classifier import KNeighborsClassifier
from summula.neighbors.k_neighbors_regressor import KNeighborsRegressor
from summula.neighbors.nearest_centroid import NearestCentroid

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestCentroid"]
