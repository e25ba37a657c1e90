"""Models that compare rows with points: the means of the classes."""

from summula.neighbors.nearest_centroid import NearestCentroid

__all__ = ["NearestCentroid"]
