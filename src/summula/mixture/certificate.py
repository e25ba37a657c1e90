"""Certificate of an EM fit: how far it is from a stationary point of the likelihood.

The parameters are a fixed point of an EM step exactly where the slope of the log-likelihood is zero. One E-step and
M-step from the fitted parameters therefore measure how far they are from such a point; whether another one is
better is unknown: likelihoods of mixtures have many local maxima, and the gap is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from summula import em
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification
from summula.mixture.binomials import BinomialEM, Binomials
from summula.mixture.gaussian_em import GaussianEM
from summula.mixture.gaussians import Gaussians

__all__ = ["MixtureCertificate", "certificate_of"]

_ROUNDING = 1e-9  # of sums over rows in another order


@schema.saved(
    theta=schema.Object(Gaussians, n_components="n_components", n_features="n_features")
    | schema.Object(Binomials, n_components="n_components", n_features="n_features"),
    residual=schema.Real(0.0, finite=False),
    reg_covar=schema.Real(0.0),
    fit_weights=schema.Flag(),
)
@dataclass(frozen=True)
class MixtureCertificate(Certificate):
    """A stationary point of the likelihood of a mixture.

    Attributes
    ----------
    kind : "stationary"
    primal : float
        Minus the log-likelihood per row at the fitted parameters; of a fit that was cut short, an upper bound on it.
    gap : float
        Infinite: nothing is known of other local maxima.
    theta : Gaussians or Binomials
        The fitted parameters.
    residual : float
        How far one more EM step moves the parameters: the largest change of a weight or probability, of a mean in
        standard deviations of its component, or of a covariance as a share of it. Zero at a stationary point; infinite
        (not known) for a fit that was cut short.
    reg_covar, fit_weights
        Of the M-step.
    """

    theta: Any
    residual: float
    reg_covar: float = 0.0
    fit_weights: bool = True

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute the likelihood, and one EM step, from the data, without the loop that found the parameters."""
        with em.opened(X, sample_weight, allow_nan=isinstance(self.theta, Gaussians)) as run:
            again = certificate_of(self._model(), run, self.theta)
        same = bool(np.isclose(again.primal, self.primal, rtol=_ROUNDING, atol=_ROUNDING))
        if np.isinf(self.residual):  # the bound of the step before, which the last M-step has raised
            same = again.primal <= self.primal + max(_ROUNDING, self.reg_covar)
        still = again.residual <= self.residual * (1 + 1e-3) + _ROUNDING
        return Verification(again.primal, again.gap, same and still)

    def _model(self) -> Any:
        k = len(self.theta.weights)
        if isinstance(self.theta, Gaussians):
            return GaussianEM(k, self.theta.kind, self.reg_covar)
        return BinomialEM(k, self.theta.trials, fit_weights=self.fit_weights)

    def __str__(self) -> str:
        if np.isinf(self.residual):
            return f"log-likelihood per row at least {-self.primal:.10g}; not shown to be stationary"
        return (
            f"stationary: log-likelihood per row {-self.primal:.10g}; one more EM step moves the parameters by "
            f"{self.residual:.1e}"
        )


def certificate_of(model: Any, run: Run, theta: Any) -> MixtureCertificate:
    """The certificate of some parameters: one E-step at them, and the M-step from it."""
    (sums,) = model.expect(run, [theta])
    try:
        residual = theta.distance(model.maximize(sums, theta))
    except em.Collapse:
        residual = np.inf
    reg_covar, fit_weights = getattr(model, "reg_covar", 0.0), getattr(model, "fit_weights", True)
    primal = -sums.elbo / sums.weight
    return MixtureCertificate("stationary", float(primal), np.inf, theta, float(residual), reg_covar, fit_weights)
