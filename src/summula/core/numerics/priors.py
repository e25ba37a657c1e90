"""The part of a likelihood of rows and classes that probabilities of the classes have.

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
    """Probabilities of the classes; `estimated` says whether they are fitted, or given."""

    pi: Array
    estimated: bool

    def added(self, objective: tuple[float, float], weight: Array) -> tuple[float, float]:
        """An objective and its gap with those of (1) added; probabilities that are given are no part of it."""
        if not self.estimated:
            return objective
        some = weight > 0
        W, pi = weight[some], self.pi[some] / self.pi.sum()
        value, gap = -W @ np.log(pi), W @ np.log(W / W.sum() / pi)
        return objective[0] + float(value), objective[1] + float(gap)
