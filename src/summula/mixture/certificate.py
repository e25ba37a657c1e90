"""Certificate of an EM fit: its distance from a stationary point of the likelihood.

The parameters are a fixed point of an EM step if and only if the gradient of the log-likelihood is zero. So the change
by one more EM step measures the distance from a stationary point. Whether another one is better is unknown: likelihoods
of mixtures have many local maxima, and the gap is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from summula import em
from summula.core.estimator.certificates import check_width
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification
from summula.mixture.binomials import BinomialEM, Binomials
from summula.mixture.gaussian_em import GaussianEM
from summula.mixture.gaussians import Gaussians

__all__ = ["MixtureCertificate", "certificate_of"]

_ROUNDING = 1e-9  # rounding of sums over rows in another order


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
        Negative log-likelihood per row at the fitted parameters; an upper bound on it for an interrupted fit.
    gap : float
        Infinite, since other local maxima are unknown.
    theta : Gaussians or Binomials
        The fitted parameters.
    residual : float
        Change of the parameters by one more EM step: the largest change of a weight or probability, of a mean in
        standard deviations of its component, or the relative change of a covariance. Zero at a stationary point;
        infinite (unknown) for an interrupted fit.
    reg_covar, fit_weights
        Parameters of the M-step.
    """

    theta: Any
    residual: float
    reg_covar: float = 0.0
    fit_weights: bool = True

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute the likelihood, and one EM step, from the data, without the solver."""
        with em.opened(X, sample_weight, allow_nan=isinstance(self.theta, Gaussians)) as run:
            check_width(run.source, schema.sizes_of(self).get("n_features"))
            again = certificate_of(self._model(), run, self.theta)
        same = bool(np.isclose(again.primal, self.primal, rtol=_ROUNDING, atol=_ROUNDING))
        if np.isinf(self.residual):  # the bound of the previous step, which the last M-step increased
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
    """Return the certificate of some parameters, from one EM step."""
    (sums,) = model.expect(run, [theta])
    try:
        residual = theta.distance(model.maximize(sums, theta))
    except em.Collapse:
        residual = np.inf
    reg_covar, fit_weights = getattr(model, "reg_covar", 0.0), getattr(model, "fit_weights", True)
    primal = -sums.elbo / sums.weight
    return MixtureCertificate("stationary", float(primal), np.inf, theta, float(residual), reg_covar, fit_weights)
