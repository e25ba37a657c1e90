"""Hidden directions of rows: principal components and factor analysis.

Each file is one model: `pca`, `factor_analysis`. What they share is in `latent`; the ways to find principal axes are in
`principal/`, those to fit factors in `factors/`.
"""

from summula.decomposition.factor_analysis import FactorAnalysis
from summula.decomposition.pca import PCA

__all__ = ["PCA", "FactorAnalysis"]
