"""Monitor the risk of a deployed model: a sequential test that is valid after every row.

To test "each loss has mean at most r, given those before it", bet a fraction of a capital on larger losses. There are
16 fractions, lambda = 1 / (2 r), 1 / (4 r), ... Since the risk may increase late, when capital bet from the beginning
has been lost, the capital is not used at once: a part w_t of it, equal for all fractions, enters at row t,

    w_t = T_{t-1} - T_t,     T_t = 1 / (1 + log(1 + t))                                                        (1)
    A_t = (A_{t-1} + w_t / 16) (1 + lambda (x_t - r)) for each lambda,     E_t = T_t + sum over lambda of A_t  (2)

E starts at 1 and is a nonnegative supermartingale while the risk is within the limit: the probability that it ever
reaches 1 / delta is at most delta (Ville, 1939). Losses need not be independent or identically distributed. Detecting
an increase after t rows costs only about log t + 2 log log t in log capital.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan
from summula.stats.bounds import check_delta

__all__ = ["RiskMonitor"]

_FRACTIONS = 0.5 ** np.arange(1.0, 17.0)
_BLOCK = 1 << 20  # rows per kernel call, between which Ctrl-C is handled


class RiskMonitor:
    """Raise an alarm when the risk of a model exceeds a limit.

    The probability of a false alarm is at most delta, for any number of rows.

    Parameters
    ----------
    limit : float
        Largest acceptable mean loss.
    delta : float
        Probability of ever raising an alarm while the conditional mean of each loss is within the limit.
    range : tuple of float
        Smallest and largest possible loss.

    Attributes
    ----------
    alarm : bool
        Whether the alarm was raised.
    alarm_row : int or None
        Row (from 0) at which the alarm was raised.
    n : int
        Number of losses so far.
    mean : float
        Mean of the losses so far; NaN before the first.
    evidence : float
        E_t of equation (2), up to the alarm, which is raised at 1 / delta.

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
        if not low < number_or_nan(limit) < high:
            raise ParameterError(
                f"limit must be between the smallest and the largest loss, {low:g} and {high:g}; got {limit!r}."
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
        """Process more losses, in order of arrival.

        Parameters
        ----------
        losses : float or array-like of shape (n,)

        Returns
        -------
        bool
            Whether the alarm has been raised, now or before.
        """
        values = np.atleast_1d(np.asarray(losses, np.float64))
        self._check(values)
        if not self.alarm:
            self._process((values - self.range[0]) / (self.range[1] - self.range[0]))
        self.n += len(values)
        self._sum += float(values.sum())
        return self.alarm

    def _process(self, x: NDArray[np.float64]) -> None:
        from summula.stats.bounds_kernels import watch

        for start in np.arange(0, len(x), _BLOCK).tolist():
            block, n_before = x[start : start + _BLOCK], self.n + start
            row = watch(block, self._limit, self._shares, self._capital, n_before, 1 / self.delta)
            if row >= 0:
                self.alarm_row = n_before + row
                return

    def _check(self, values: Any) -> None:
        if values.ndim != 1:
            raise DataError(f"The losses have shape {values.shape}; expected one number per row.")
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
