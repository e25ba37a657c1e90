"""Factor analysis by expectation-maximisation.

With x = mu + L'z + e as in `likelihood.py`, the hidden factors z have, given a row x,

    E[z|x] = B (x - mu),   B = L (L'L + Psi)^-1,            Cov[z|x] = I - B L'                                 (1)

The sums over rows needed by the M-step follow from the covariance matrix S,

    sum (x - mu) E[z|x]' = n S B',         sum E[z z'|x] = n (I - B L' + B S B') = n C                          (2)
    L' = S B' C^-1,                        psi = diag(S - L'(B S))                                              (3)

so no step reads the rows. By Woodbury's identity B = M^-1 L Psi^-1 with M = I + L Psi^-1 L', k x k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula import em
from summula.core.estimator.run import Run
from summula.decomposition.factors.spread import Spread

__all__ = ["FactorModel", "Factors", "em_step", "log_likelihood"]

Array = NDArray[np.float64]


class Factors(NamedTuple):
    """Loadings L, shape (k, d), and noise variances psi."""

    loadings: Array
    psi: Array


@dataclass(frozen=True)
class FactorSums:
    """The sums of the E-step per unit of weight: S B' and C of (2), and the log-likelihood."""

    elbo: float
    weight: float
    cross: Array
    second: Array


def log_likelihood(spread: Spread, factors: Factors) -> float:
    """Return the log-likelihood of all rows, in the units of the standardised columns."""
    return _expect(spread, factors).elbo


def _expect(spread: Spread, factors: Factors) -> FactorSums:
    L, psi = factors
    scaled = L / psi
    M = np.eye(len(L)) + scaled @ L.T
    B = np.linalg.solve(M, scaled)
    cross = spread.times(np.ascontiguousarray(B.T))
    second = np.eye(len(L)) - B @ L.T + B @ cross
    # tr Sigma^-1 S = tr Psi^-1 S - tr B' L Psi^-1 S
    misfit = (1.0 / psi).sum() - (scaled.T * cross).sum()
    F = len(psi) * np.log(2 * np.pi) + np.log(psi).sum() + np.linalg.slogdet(M)[1] + misfit
    return FactorSums(-spread.weight / 2 * float(F), spread.weight, cross, second)


def _maximize(sums: FactorSums, lower: float) -> Factors:
    L = np.asarray(np.linalg.solve(sums.second, sums.cross.T), np.float64)
    return Factors(L, np.maximum(1.0 - (L.T * sums.cross).sum(axis=1), lower))


def em_step(spread: Spread, factors: Factors, lower: float) -> Factors:
    """Perform one step of (1) to (3)."""
    return _maximize(_expect(spread, factors), lower)


class FactorModel(em.Model[Factors, Any]):
    """Factor analysis of a covariance matrix, for `em.fit`."""

    def __init__(self, spread: Spread, first: Factors, lower: float) -> None:
        self.spread, self.first, self.lower = spread, first, lower
        # Correction of the log-likelihood for the standardisation of columns.
        self.constant = -spread.weight / 2 * float(np.log(spread.variance[spread.varies]).sum())

    def starts(self, run: Run) -> Sequence[Factors]:
        """Return the single start."""
        return [self.first]

    def expect(self, run: Run, thetas: Sequence[Factors]) -> Sequence[FactorSums]:
        """Compute (1) and (2) from the covariance matrix."""
        return [_expect(self.spread, theta) for theta in thetas]

    def maximize(self, sums: FactorSums, theta: Factors) -> Factors:
        """Compute (3)."""
        return _maximize(sums, self.lower)
