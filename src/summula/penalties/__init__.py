"""Penalties on coefficients: the part of a problem that a solver combines with a datafit.

Reading order: `penalty` (value, optimality, duality), `kernels` (the proximal step in compiled loops).
"""

from summula.penalties.penalty import Penalty

__all__ = ["Penalty"]
