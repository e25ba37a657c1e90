"""Plots in a common style: decision regions, regularisation paths, convergence and paths of solvers, fitted means,
weight space, mixtures, margins, policies.

Each function draws on the given axes, or on new ones, and returns them; none shows or saves the figure. They need
matplotlib, which is imported on first use: `pip install matplotlib`.
"""

from summula.plotting.coefficients import coefficient_paths
from summula.plotting.components import loadings, scree
from summula.plotting.margin_slabs import margin_slab
from summula.plotting.means import fitted_mean
from summula.plotting.mixtures import likelihood_trace, mixture_ellipses
from summula.plotting.paths import descent_path
from summula.plotting.policy_grids import policy_grid
from summula.plotting.regions import decision_regions
from summula.plotting.traces import convergence
from summula.plotting.weights import weight_space

__all__ = [
    "coefficient_paths",
    "convergence",
    "decision_regions",
    "descent_path",
    "fitted_mean",
    "likelihood_trace",
    "loadings",
    "margin_slab",
    "mixture_ellipses",
    "policy_grid",
    "scree",
    "weight_space",
]
