"""Clustering.

Reading order: `k_means` (the estimator and the problem), `seeding` (initial centres), `lloyd` (the loop), `passes` (one
pass as a sum over rows), `k_means_kernels`, `score_kernels` and `seeding_kernels` (compiled loops), `certificate` (the
lower bound), `selection` (number of clusters).
"""

from summula.cluster.k_means import KMeans
from summula.cluster.mini_batch_k_means import MiniBatchKMeans
from summula.cluster.selection import elbow, silhouette_samples

__all__ = ["KMeans", "MiniBatchKMeans", "elbow", "silhouette_samples"]
