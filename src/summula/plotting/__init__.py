"""Plots in a common style, and `plot`, which chooses the one that a fitted model or a result calls for.

Each function draws on the given axes, or on new ones, and returns them; none shows or saves the figure. They need
matplotlib, which is imported on first use: `pip install matplotlib`.
"""

from summula.plotting.clusters import cluster_histogram, cluster_regions
from summula.plotting.coefficients import coefficient_paths
from summula.plotting.components import loadings, scree
from summula.plotting.curves import learning_curve, validation_curve
from summula.plotting.dispatch import plot
from summula.plotting.grid_worlds import value_grid
from summula.plotting.importances import importance_bars, selection_curve
from summula.plotting.margin_slabs import margin_slab
from summula.plotting.means import fitted_mean
from summula.plotting.mixtures import likelihood_trace, mixture_density, mixture_ellipses
from summula.plotting.oriented import oriented_histograms
from summula.plotting.paths import descent_path
from summula.plotting.predictions import confusion, predicted_actual
from summula.plotting.rankings import roc
from summula.plotting.regions import decision_regions
from summula.plotting.scores import class_curves, fitted_surface, outlier_scores
from summula.plotting.shattered import shattering
from summula.plotting.traces import convergence
from summula.plotting.values import episode_returns, horizon_values, state_values, value_function
from summula.plotting.weights import weight_space

__all__ = [
    "class_curves",
    "cluster_histogram",
    "cluster_regions",
    "coefficient_paths",
    "confusion",
    "convergence",
    "decision_regions",
    "descent_path",
    "episode_returns",
    "fitted_mean",
    "fitted_surface",
    "horizon_values",
    "importance_bars",
    "learning_curve",
    "likelihood_trace",
    "loadings",
    "margin_slab",
    "mixture_density",
    "mixture_ellipses",
    "oriented_histograms",
    "outlier_scores",
    "plot",
    "predicted_actual",
    "roc",
    "scree",
    "selection_curve",
    "shattering",
    "state_values",
    "validation_curve",
    "value_function",
    "value_grid",
    "weight_space",
]
