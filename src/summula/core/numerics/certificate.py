"""Certificates: bounds on the suboptimality of a fit, which can be verified without the solver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from summula.core.model_files import schema

__all__ = ["Certificate", "Verification", "rounded_up"]


_SENTENCES = {
    "exact": "at most {:.3g} above the best ({:.1e} of it)",
    "global": "at most {:.3g} above the best ({:.1e} of it)",
    "local": "a further Newton step would gain about {:.3g} ({:.1e} of it); better points elsewhere are not excluded",
    "stationary": "a further step would gain about {:.3g} ({:.1e} of it); not proved to be a minimum",
}


def rounded_up(gap: float, primal: float, dtype: Any = np.float64) -> float:
    """Return a gap that includes the rounding error of an objective computed in the given dtype."""
    whole = gap + 8 * float(np.finfo(dtype).eps) * abs(primal)
    return whole if whole >= 0 else np.inf  # NaN: squares overflowed, so there is no bound


@dataclass(frozen=True)
class Verification:
    """The result of recomputing a certificate from data; true if it confirms the certificate.

    Attributes
    ----------
    primal, gap : float
        Objective and gap on these data.
    confirms : bool
        Whether they agree with the certificate, up to rounding.
    """

    primal: float
    gap: float
    confirms: bool

    def __bool__(self) -> bool:
        return self.confirms

    @property
    def dual(self) -> float:
        """Lower bound on the optimal objective."""
        return self.primal - self.gap


@schema.state(
    kind=schema.Text("exact", "global", "local", "stationary"),
    primal=schema.Real(finite=False),
    gap=schema.Real(finite=False),
)
@dataclass(frozen=True)
class Certificate(ABC):
    """Statement about the optimality of a fit.

    Attributes
    ----------
    kind : {"exact", "global", "local", "stationary"}
        "exact": closed-form solution, up to rounding. "global": the objective is within `gap` of the global minimum.
        "local": `gap` estimates the distance to a local minimum. "stationary": the gradient is zero, up to rounding.
    primal : float
        Objective value reached.
    gap : float
        For the kinds "exact" and "global" an upper bound on the primal minus the minimum of the objective; for "local"
        and "stationary" an estimate of the decrease by one more step (the Newton decrement of a likelihood), unless the
        class documents another meaning.
    """

    kind: str
    primal: float
    gap: float

    @property
    def dual(self) -> float:
        """Lower bound on the optimal objective: primal minus gap."""
        return self.primal - self.gap

    @abstractmethod
    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute objective and gap from the data, without the solver."""

    def __str__(self) -> str:
        if not np.isfinite(self.gap):
            return f"{self.kind}: objective {self.primal:.10g}, without a bound on the distance from the best"
        relative = self.gap / abs(self.primal) if self.primal else self.gap
        return f"{self.kind}: objective {self.primal:.10g}, {self._sentence().format(self.gap, relative)}"

    def _sentence(self) -> str:
        """Return what `str` says about the gap and its share of the objective, to be formatted with both."""
        return _SENTENCES[self.kind]
