"""Matrix decomposition: principal components and factor analysis.

Each file is one model: `pca`, `factor_analysis`. Their base class is in `latent`; the solvers for principal axes are in
`principal/`, those for factors in `factors/`.
"""

from summula.decomposition.factor_analysis import FactorAnalysis
from summula.decomposition.pca import PCA

__all__ = ["PCA", "FactorAnalysis"]
