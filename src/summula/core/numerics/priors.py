"""The contribution of class probabilities to a joint likelihood of rows and classes.

- sum_k W_k log pi_k,   least at pi_k = W_k / W                                                             (1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from summula.core.model_files import schema

__all__ = ["Priors"]

Array = NDArray[np.float64]


@schema.saved("core.priors.Priors", pi=schema.Array("float64", "n_classes", low=0.0), estimated=schema.Flag())
@dataclass(frozen=True)
class Priors:
    """Class probabilities; `estimated` is whether they are fitted or given."""

    pi: Array
    estimated: bool

    def added(self, objective: tuple[float, float], weight: Array) -> tuple[float, float]:
        """Return an objective and its gap with those of (1) added, unless the probabilities are given."""
        if not self.estimated:
            return objective
        some = weight > 0
        W, pi = weight[some], self.pi[some] / self.pi.sum()
        value, gap = -W @ np.log(pi), W @ np.log(W / W.sum() / pi)
        return objective[0] + float(value), objective[1] + float(gap)
