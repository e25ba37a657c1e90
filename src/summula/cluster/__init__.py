"""Groups of rows that are close together."""

from summula.cluster.k_means import KMeans

__all__ = ["KMeans"]
