"""Watch the risk of a model in use: an alarm that may be looked at after every row.

Against "each loss has mean at most r, given those before it", stake a share of a capital on larger losses. There are 16
shares, lambda = 1 / (2 r), 1 / (4 r), ... Since a risk may rise late, when those who bet from the beginning have lost,
the capital does not enter the game at once: a part w_t of it, the same for each share, joins at row t, and waits until
then,

    w_t = T_{t-1} - T_t,     T_t = 1 / (1 + log(1 + t))                                                        (1)
    A_t = (A_{t-1} + w_t / 16) (1 + lambda (x_t - r)) for each lambda,     E_t = T_t + sum over lambda of A_t  (2)

E starts at 1 and is a nonnegative supermartingale while the risk is within the limit: the chance that it ever reaches
1 / delta is at most delta (Ville, 1939). Losses need not be independent, nor of one distribution. A rise after t rows
costs about log t + 2 log log t in log capital, and no more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.errors import DataError, ParameterError
from summula.stats.bounds import check_delta

__all__ = ["RiskMonitor"]

_FRACTIONS = 0.5 ** np.arange(1.0, 17.0)
_BLOCK = 1 << 20  # rows between two looks at the keyboard


class RiskMonitor:
    """An alarm when the risk of a model exceeds a limit, false with probability at most delta, however long it runs.

    Parameters
    ----------
    limit : float
        The largest mean loss that is in order.
    delta : float
        The chance of an alarm, ever, while the mean of each loss given the past is within the limit.
    range : tuple of float
        The smallest and the largest loss there can be.

    Attributes
    ----------
    alarm : bool
    alarm_row : int or None
        The row (from 0) at which the alarm came.
    n : int
        How many losses were seen.
    mean : float
        Of all losses so far; NaN before the first.
    evidence : float
        E_t of equation (2), up to the alarm, which comes at 1 / delta.

    Examples
    --------
    >>> import numpy as np
    >>> monitor = RiskMonitor(limit=0.10)
    >>> rng = np.random.default_rng(0)
    >>> monitor.update(rng.random(5_000) < 0.09)
    False
    >>> monitor.update(rng.random(5_000) < 0.20)
    True
    """

    def __init__(self, limit: float, delta: float = 0.05, range: tuple[float, float] = (0.0, 1.0)) -> None:
        self.delta = check_delta(delta)
        if np.isinf(1 / self.delta):
            raise ParameterError(f"delta={delta:g} is too small for a monitor, which divides by it: use 1e-300.")
        low, high = (float(value) for value in range)
        if not (np.isfinite([low, high]).all() and low < high):
            raise ParameterError(f"range must be two finite numbers, the smaller first; got {range!r}.")
        if not low < limit < high:
            raise ParameterError(
                f"limit must lie between the smallest and the largest loss, {low:g} and {high:g}; got {limit!r}."
            )
        self.limit, self.range = float(limit), (low, high)
        self.alarm_row: int | None = None
        self.n = 0
        self._sum = 0.0
        self._limit = (self.limit - low) / (high - low)
        self._shares = _FRACTIONS / self._limit
        self._capital = np.zeros(len(_FRACTIONS))

    @property
    def alarm(self) -> bool:
        return self.alarm_row is not None

    @property
    def mean(self) -> float:
        return self._sum / self.n if self.n else float("nan")

    @property
    def evidence(self) -> float:
        betting = self.n if self.alarm_row is None else self.alarm_row + 1
        return float(self._capital.sum() + 1 / (1 + np.log1p(betting)))

    def update(self, losses: ArrayLike) -> bool:
        """Look at more losses, in the order they came.

        Parameters
        ----------
        losses : float or array-like of shape (n,)

        Returns
        -------
        bool
            Whether there is, or has been, an alarm.
        """
        values = np.atleast_1d(np.asarray(losses, np.float64))
        self._check(values)
        if not self.alarm:
            self._look((values - self.range[0]) / (self.range[1] - self.range[0]))
        self.n += len(values)
        self._sum += float(values.sum())
        return self.alarm

    def _look(self, x: NDArray[np.float64]) -> None:
        from summula.stats.bounds_kernels import watch

        for start in np.arange(0, len(x), _BLOCK).tolist():
            block, seen = x[start : start + _BLOCK], self.n + start
            row = watch(block, self._limit, self._shares, self._capital, seen, 1 / self.delta)
            if row >= 0:
                self.alarm_row = seen + row
                return

    def _check(self, values: Any) -> None:
        if values.ndim != 1:
            raise DataError(f"The losses have shape {values.shape}; give one number for each row.")
        inside = (values >= self.range[0]) & (values <= self.range[1])
        if not inside.all():
            at = int(np.argmin(inside))
            raise DataError(
                f"The loss is {values[at]:g} at row {self.n + at}, outside the range from {self.range[0]:g} to "
                f"{self.range[1]:g}: declare the range of the loss in RiskMonitor(range=...)."
            )

    def __repr__(self) -> str:
        state = f"alarm at row {self.alarm_row}" if self.alarm else "no alarm"
        return f"RiskMonitor(limit={self.limit:g}, delta={self.delta:g}): {state} after {self.n:,} rows"
