"""Plots in a common style, and `plot`, which draws the default plot of a fitted model or a result.

Each function draws on the given axes, or on new ones, and returns them; none shows or saves the figure. They need
matplotlib, which is imported on first use: `pip install matplotlib`.

Reading order: `style` (colours, axes), `slices` and `planes` (selection of one or two of many columns), the plots
(`predictions`, `structure`, `fitting`, `policies`), `kinds` and `dispatch` (the default plot of a model).
"""

from summula.plotting.dispatch import plot
from summula.plotting.fitting.coefficients import coefficient_paths
from summula.plotting.fitting.curves import learning_curve, validation_curve
from summula.plotting.fitting.importances import candidate_scores, importance_bars, selection_curve
from summula.plotting.fitting.paths import descent_path
from summula.plotting.fitting.traces import convergence
from summula.plotting.fitting.weights import weight_space
from summula.plotting.policies.grid_worlds import value_grid
from summula.plotting.policies.values import episode_returns, horizon_values, state_values, value_function
from summula.plotting.predictions.comparisons import confusion, predicted_actual
from summula.plotting.predictions.margin_slabs import margin_slab
from summula.plotting.predictions.means import fitted_mean
from summula.plotting.predictions.rankings import roc
from summula.plotting.predictions.regions import decision_regions
from summula.plotting.predictions.scores import class_curves, fitted_surface, outlier_scores
from summula.plotting.predictions.shattered import shattering
from summula.plotting.structure.clusters import cluster_histogram, cluster_regions
from summula.plotting.structure.components import loadings, scree
from summula.plotting.structure.mixtures import likelihood_trace, mixture_density, mixture_ellipses
from summula.plotting.structure.oriented import oriented_histograms

__all__ = [
    "candidate_scores",
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
