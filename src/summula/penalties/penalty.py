"""The elastic-net penalty, with the lasso, ridge and no penalty as special cases.

    p(v) = a |v|_1 + b/2 |v|^2,      infinite where some v_j < 0 if v is constrained to be non-negative              (1)

A solver minimises f(v) + p(v), where the datafit f knows the rows and the penalty knows v. Coordinate by coordinate,
with S(z, a) = sign(z) max(|z| - a, 0), the penalty has

    argmin_x  h/2 x^2 - z x + p(x)  =  S(z, a) / (h + b)                                  (the proximal step)        (2)
    |g - b x - a sign(x)| for x != 0,  max(|g - b x| - a, 0) for x = 0                                               (3)
    p*(g) = max(|g| - a, 0)^2 / (2 b),    infinite for |g| > a when b = 0                 (the conjugate)            (4)

where g = -grad f. (2) is computed by `kernels`. (3) is the distance of g to the subdifferential of p, and zero in all
coordinates at a minimum. With s = g - b v, the factor t = min(1, a / max_j |s_j|) makes t s a feasible dual point.

References: Parikh and Boyd (2014), Proximal algorithms; Bertrand et al. (2022), Beyond L1: faster and better sparse
models with skglm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Penalty"]

Array = NDArray[Any]


class Penalty(NamedTuple):
    """The penalty (1).

    Parameters
    ----------
    l1 : float
        a, the weight of the L1 norm.
    l2 : float, default=0.0
        b, the weight of half the squared norm.
    positive : bool, default=False
        Whether coefficients are constrained to be non-negative.

    Examples
    --------
    >>> import numpy as np
    >>> Penalty(1.0, 2.0).value(np.array([3.0, -1.0]))
    14.0
    """

    l1: float
    l2: float = 0.0
    positive: bool = False

    @classmethod
    def of_ratio(cls, alpha: float, l1_ratio: float, positive: bool = False) -> Penalty:
        """Return the penalty of strength `alpha` with the fraction `l1_ratio` of the L1 norm."""
        return cls(alpha * l1_ratio, alpha * (1 - l1_ratio), positive)

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty has a gradient everywhere."""
        return self.l1 == 0 and not self.positive

    @property
    def is_zero(self) -> bool:
        """Whether there is no penalty."""
        return self.l1 == 0 and self.l2 == 0

    def divided(self, share: float) -> Penalty:
        """Return the penalty divided by a number, for a sum over fewer rows."""
        return Penalty(self.l1 / share, self.l2 / share, self.positive)

    def value(self, v: Array) -> float:
        """Return p(v), without the constraint."""
        return self.l1_value(v) + self.l2 / 2 * float(np.vdot(v, v))

    def l1_value(self, v: Array) -> float:
        """Return the term of (1) that has no gradient."""
        return self.l1 * float(np.abs(v).sum())

    def l1_increase(self, v: Array, step: Array) -> float:
        """Return the change of that term by a step."""
        return self.l1 * float(np.abs(v + step).sum() - np.abs(v).sum())

    def steepness(self, slope: Array) -> Array:
        """Return the part of g - b v to compare with a: its absolute value, or positive part under a constraint."""
        return slope if self.positive else np.abs(slope)

    def distance(self, v: Array, g: Array) -> Array:
        """Return the distance (3) of g, the negative gradient of the datafit, to the subdifferential at v."""
        slope = g - self.l2 * v
        at_zero = np.maximum(self.steepness(slope) - self.l1, 0.0)
        return np.asarray(np.where(v == 0, at_zero, np.abs(slope - self.l1 * np.sign(v))))

    def dual_scale(self, slope: Array) -> float:
        """Return the largest factor t <= 1 with which g - b v is dual feasible."""
        largest = float(self.steepness(slope).max(initial=0.0))
        return 1.0 if largest <= self.l1 else self.l1 / largest

    def conjugate(self, g: Array) -> float:
        """Return p*(g), the sum of (4)."""
        over = np.maximum(self.steepness(g) - self.l1, 0.0)
        if self.l2 == 0:
            return np.inf if over.any() else 0.0
        return float((over**2).sum()) / (2 * self.l2)

    def gap(self, v: Array, g: Array, cost: Callable[[float], float]) -> tuple[float, float]:
        """Return a duality gap and the factor t of its dual point.

        The gap is cost(t) + p(v) + p*(t g) - t g'v, where `cost` bounds the contribution of the datafit if its slopes
        are multiplied by t. The better of two factors is used: that of `dual_scale`, and 1 if the conjugate is finite.
        """
        l1, l2 = self.l1, self.l2
        s = g - l2 * v
        t = self.dual_scale(s)
        used = v != 0
        size, x = np.abs(v[used]), v[used]
        terms = np.maximum(l1 * size - t * s[used] * x, 0.0) + l2 / 2 * ((1 - t) * x) ** 2
        scaled = cost(t) + float(terms.sum())
        if l2 == 0 or t == 1.0:
            return scaled, t
        # With z = sign(g) max(|g| - a, 0) / b, the maximiser of g'v - p(v), a term is at least b/2 (v - z)^2.
        z = np.sign(g) * np.maximum(np.abs(g) - l1, 0.0) / l2
        whole = l2 / 2 * (v - z) ** 2 + np.where((z == 0) & used, l1 * np.abs(v) - g * v, 0.0)
        whole += np.where((z != 0) & (z * v < 0), 2 * l1 * np.abs(v), 0.0)
        straight = cost(1.0) + float(np.maximum(whole, 0.0).sum())
        return (straight, 1.0) if straight < scaled else (scaled, t)

    def certified_zero(self, v: Array, slope: Array, reach: Array) -> NDArray[np.bool_]:
        """Return the coordinates that are zero in every minimiser (gap-safe screening).

        `slope` is a feasible dual point, and `reach` a bound on its distance to the optimal one.
        """
        return np.asarray((self.steepness(slope) + reach < self.l1 * (1 - 1e-12)) & (v == 0))
