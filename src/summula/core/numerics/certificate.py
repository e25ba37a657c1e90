"""Certificates: a statement of how far a fit is from the best, and how to check it without the solver."""

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
    """A gap that covers the rounding error of an objective from products in some dtype."""
    whole = gap + 8 * float(np.finfo(dtype).eps) * abs(primal)
    return whole if whole >= 0 else np.inf  # squares overflow: nothing is known


@dataclass(frozen=True)
class Verification:
    """A certificate recomputed from data. It is true when it confirms the certificate.

    Attributes
    ----------
    primal, gap : float
        The objective and the gap on these data.
    confirms : bool
        Whether they are what the certificate says, up to rounding.
    """

    primal: float
    gap: float
    confirms: bool

    def __bool__(self) -> bool:
        return self.confirms

    @property
    def dual(self) -> float:
        """The lower bound on the best objective."""
        return self.primal - self.gap


@schema.state(
    kind=schema.Text("exact", "global", "local", "stationary"),
    primal=schema.Real(finite=False),
    gap=schema.Real(finite=False),
)
@dataclass(frozen=True)
class Certificate(ABC):
    """What is known about the optimality of a fit.

    Attributes
    ----------
    kind : {"exact", "global", "local", "stationary"}
        "exact": the closed form, up to rounding. "global": no point is better by more than the gap.
        "local": an estimate of the same among nearby points. "stationary": the slope is zero, up to rounding.
    primal : float
        The objective reached.
    gap : float
        Upper bound on the primal minus the smallest possible objective, if the kind is "exact" or "global"; what one
        more step would gain, about (the Newton decrement of a likelihood), if it is "local" or "stationary".
    """

    kind: str
    primal: float
    gap: float

    @property
    def dual(self) -> float:
        """The lower bound on the best objective: primal minus gap."""
        return self.primal - self.gap

    @abstractmethod
    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute objective and gap from the data, without the solver."""

    def __str__(self) -> str:
        relative = self.gap / abs(self.primal) if self.primal else self.gap
        return f"{self.kind}: objective {self.primal:.10g}, {_SENTENCES[self.kind].format(self.gap, relative)}"
