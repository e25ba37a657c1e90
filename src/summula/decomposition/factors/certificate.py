"""Certificate of a factor analysis: its log-likelihood, and the gain of one more EM step.

The likelihood of factor analysis is not concave, so no bound on the distance to its maximum is stated: the certificate
has the kind "stationary". At a stationary point the gain of an EM step is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.decomposition.factors.expectation import Factors, em_step, log_likelihood
from summula.decomposition.factors.spread import Spread
from summula.decomposition.factors.sums import spread_about

__all__ = ["FactorCertificate", "judged"]

Array = NDArray[np.float64]


def judged(spread: Spread, factors: Factors, lower: float) -> tuple[float, float]:
    """Return the negative log-likelihood at loadings and noise variances, and the gain of an EM step.

    Constant columns contribute the density of their noise at its mean.
    """
    deviation = np.sqrt(spread.variance[spread.varies])
    inside = Factors(factors.loadings[:, spread.varies] / deviation, factors.psi[spread.varies] / deviation**2)
    now = log_likelihood(spread, inside)
    gain = log_likelihood(spread, em_step(spread, inside, lower)) - now
    still = factors.psi[~spread.varies]
    constant = 2 * np.log(deviation).sum() + (np.log(2 * np.pi * still)).sum()
    return -now + spread.weight / 2 * float(constant), max(gain, 0.0)


@schema.saved(
    mean=schema.Array("float64", "n_features"),
    loadings=schema.Array("float64", "n_factors", "n_features"),
    psi=schema.Array("float64", "n_features", low=0.0),
    lower=schema.Real(0.0),
    unit=schema.Real(0.0),
    scale=schema.Real(0.0),
)
@dataclass(frozen=True)
class FactorCertificate(SummedCertificate):
    """The log-likelihood of a factor analysis.

    Attributes
    ----------
    kind : "stationary"
    primal : float
        The negative log-likelihood of the rows.
    gap : float
        Gain of one more EM step; not a bound on the suboptimality.
    mean, loadings, psi : ndarray
        The parameters.
    lower : float
        Smallest noise variance, relative to the variance of its column.
    unit : float
        Rounding error of the log-likelihood per row and column.
    scale : float
        Number of values: the weight of the rows times the number of columns.
    """

    _supervised: ClassVar[bool | None] = False

    mean: Array
    loadings: Array
    psi: Array
    lower: float
    unit: float
    scale: float

    def objective(self, run: Run) -> tuple[float, float]:
        """Return the negative log-likelihood of the rows of a run, and the gain of an EM step."""
        return judged(spread_about(run, self.mean), Factors(self.loadings, self.psi), self.lower)

    def confirms(self, value: float, gap: float) -> bool:
        """Return whether these are the stated values, up to rounding."""
        rounding = self.unit * self.scale
        return bool(abs(value - self.primal) <= rounding and gap <= self.gap + rounding)
