"""Certificate of AdaBoost on its training rows: the error, a bound on it, and margins.

With the votes V_k of `votes.py` and row weights p that sum to 1, a misclassified row has some other class with at least
as many votes as its own, so that V_y <= A / 2, and

    training error <= sum_i p_i exp(A / 2 - V_y(x_i)) = prod_t Z_t,     Z_t = (1 - e_t) e^(-a_t/2) + e_t e^(a_t/2)  (1)

with e_t the weighted error of learner t and a_t its weight (Freund and Schapire 1997, theorem 6; for two classes and
learning rate 1, Z_t = 2 sqrt(e_t (1 - e_t))). The margin of a row,

    (V_y - max_{k != y} V_k) / A,    from -1 to 1,                                                                  (2)

measures the confidence of the vote; the fraction of rows with margin at most theta is at most (1) times e^(theta A /
2).
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.estimator.certificates import SummedCertificate
from summula.core.model_files import schema
from summula.core.numerics.certificate import Verification
from summula.plotting.style import AXES

__all__ = ["BoostingCertificate", "TrainingVotes"]

Array = NDArray[Any]

_ROUNDING = 1e-9


@schema.saved(
    error=schema.Real(0.0),
    bound=schema.Real(0.0, finite=False),
    margins=schema.Array("float64", 101, low=-1.001, high=1.001, ascending=True),
)
class TrainingVotes(NamedTuple):
    """Training error, its bound (1), and margins (2) at 101 levels from the smallest to the largest.

    Attributes
    ----------
    error, bound : float
    margins : ndarray of shape (101,)
        Weighted quantiles.
    """

    error: float
    bound: float
    margins: Array

    @classmethod
    def of(cls, votes: Array, codes: Array, weight: Array | None) -> TrainingVotes:
        """Evaluate votes, shape (n, n_classes), on the classes of the rows."""
        n, k = votes.shape
        p = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        rows, total = np.arange(n), votes.sum(axis=1)
        own = votes[rows, codes]
        others = votes.copy()
        others[rows, codes] = -np.inf
        rival = others.max(axis=1) if k > 1 else np.zeros(n)
        with np.errstate(over="ignore"):
            bound = float((p * np.exp(total / 2 - own)).sum())
        # Ties go to the first class.
        error = float(p[votes.argmax(axis=1) != codes].sum())
        margin = (own - rival) / total
        order = np.argsort(margin, kind="stable")
        order = order[p[order] > 0]
        reached = np.cumsum(p[order])
        levels = np.searchsorted(reached, np.linspace(0.0, 1.0, 101) * reached[-1] * (1 - 1e-12))
        return cls(error, bound, margin[order][np.minimum(levels, len(order) - 1)])


@inherit_docs(SummedCertificate)
@dataclass(frozen=True)
class BoostingCertificate:
    """Certificate of a weighted vote on its training rows; see the module's docstring.

    Attributes
    ----------
    training_error : float
        Weighted fraction of misclassified rows.
    bound : float
        Upper bound (1) on the training error; vacuous above 1.
    margins : ndarray of shape (101,)
        Quantiles of the margin (2) at 0 %, 1 %, ..., 100 %.
    """

    training_error: float
    bound: float
    margins: Array
    model: InitVar[Any]  # the model that casts the votes

    def __post_init__(self, model: Any) -> None:
        object.__setattr__(self, "_model", model)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Recompute error, bound and margins from the data and the fitted learners, without boosting.

        Returns
        -------
        Verification
            True if it confirms the certificate; `primal` is the training error, `gap` the distance to the bound.
        """
        found = self._model._judged(X, y, sample_weight)  # type: ignore[attr-defined]
        same = (
            abs(found.error - self.training_error) <= _ROUNDING
            and abs(found.bound - self.bound) <= _ROUNDING * self.bound
            and np.allclose(found.margins, self.margins, rtol=0.0, atol=_ROUNDING)
        )
        return Verification(found.error, found.bound - found.error, bool(same))

    def __str__(self) -> str:
        vacuous = " (vacuous)" if self.bound >= 1.0 else ""
        return (
            f"training error {self.training_error:.4g}, at most {self.bound:.4g}{vacuous} by the product bound; "
            f"margins from {self.margins[0]:.3g} to {self.margins[-1]:.3g}, half of them above {self.margins[50]:.3g}"
        )

    def __repr__(self) -> str:
        return f"BoostingCertificate({self})"

    @inherit_docs(AXES)
    def plot(self, ax: Any = None) -> Any:
        """Plot the cumulative distribution of the margins."""
        from summula.plotting.style import GREY, axes, check_installed, colour, dress

        check_installed()
        ax = axes(ax)
        ax.plot(self.margins, np.linspace(0.0, 1.0, len(self.margins)), color=colour(0))
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        dress(ax, "margin", "share of rows")
        return ax
