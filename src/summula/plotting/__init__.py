"""Plots in a common style, and `plot`, which chooses the one that a fitted model or a result calls for.

Each function draws on the given axes, or on new ones, and returns them; none shows or saves the figure. They need
matplotlib, which is imported on first use: `pip install matplotlib`.
"""

from summula.plotting.clusters import cluster_regions
from summula.plotting.coefficients import coefficient_paths
from summula.plotting.components import loadings, scree
from summula.plotting.curves import learning_curve, validation_curve
from summula.plotting.dispatch import plot
from summula.plotting.grid_worlds import value_grid
from summula.plotting.importances import importance_bars
from summula.plotting.margin_slabs import margin_slab
from summula.plotting.means import fitted_mean
from summula.plotting.mixtures import likelihood_trace, mixture_ellipses
from summula.plotting.oriented import oriented_histograms
from summula.plotting.paths import descent_path
from summula.plotting.rankings import roc
from summula.plotting.regions import decision_regions
from summula.plotting.shattered import shattering
from summula.plotting.traces import convergence
from summula.plotting.weights import weight_space

__all__ = [
    "cluster_regions",
    "coefficient_paths",
    "convergence",
    "decision_regions",
    "descent_path",
    "fitted_mean",
    "importance_bars",
    "learning_curve",
    "likelihood_trace",
    "loadings",
    "margin_slab",
    "mixture_ellipses",
    "oriented_histograms",
    "plot",
    "roc",
    "scree",
    "shattering",
    "validation_curve",
    "value_grid",
    "weight_space",
]
