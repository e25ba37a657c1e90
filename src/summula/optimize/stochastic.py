"""Stochastic gradient descent: the gradient of a few rows in place of that of all.

With f(x) = (1/n) sum_i f_i(x), each epoch puts the n rows in a random order and cuts it into batches B:

    x+ = x - t_k (1/|B|) sum_{i in B} grad f_i(x),       k = 1, 2, ... the number of the step                      (1)

The gradient of a batch is right on average and noisy. With a constant step x ends up wandering about the minimum, the
closer the smaller the step; steps with sum t_k = infinity and sum t_k^2 < infinity get there (Robbins and Monro):

    t_k = t_1 / k^a,      1/2 < a <= 1                                                                             (2)

(a = 1/2, the default, gets there slowly but forgives a t_1 that is too small.) Noise is averaged away by the mean of
the points,

    mean of x_k over the last half of the steps                                                                    (3)

References: Robbins and Monro (1951); Polyak and Juditsky (1992); Rakhlin, Shamir and Sridharan (2012) for the half.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, real
from summula.core.numerics.solution import Solution
from summula.optimize.objective import Objective, Trail, check_arguments

__all__ = ["sgd"]

Array = NDArray[np.float64]

_FUNCTION = Allowed(callable, "a function of the number of the step")
_RANDOM = (none, integer(0), Allowed(lambda value: isinstance(value, np.random.Generator), "a numpy Generator"))


def sgd(
    gradient: Callable[[Any, Any], Any],
    n: int,
    x0: Any,
    *,
    step: float | Callable[[int], float] = 0.01,
    schedule: str = "constant",
    power: float = 0.5,
    batch_size: int = 1,
    epochs: int = 10,
    averaging: bool = False,
    random_state: int | np.random.Generator | None = None,
    f: Callable[[Any], Any] | None = None,
) -> Solution:
    """Minimise a mean over n rows by steps along the gradients of a few of them.

    Parameters
    ----------
    gradient : callable
        (x, rows) -> the mean gradient of these rows, an array of shape (d,); `rows` is an array of row numbers.
    n : int
        How many rows there are.
    x0 : number or array of shape (d,)
        Where to start.
    step : float or callable, default=0.01
        The first step t_1; or a function of the number of the step (1, 2, ...) that gives each.
    schedule : {"constant", "inverse_scaling"}, default="constant"
        The same step always, or t_1 / k^power.
    power : float, default=0.5
        Of "inverse_scaling".
    batch_size : int, default=1
        Rows a step; the last batch of an epoch may be smaller.
    epochs : int, default=10
        How often all rows are gone through.
    averaging : bool, default=False
        Whether the answer is the mean of the points of the last half of the steps, not the last point.
    random_state : int, Generator or None
        Of the order of rows. The same number gives the same bits.
    f : callable, optional
        x -> the mean over all rows, for the trace: evaluated once before the first epoch and once after each.

    Returns
    -------
    Solution
        `status` is "max_iter", since nothing in (1) tells how near the minimum is, or "diverged". `n_steps` counts
        epochs, `path` has the point after each, `value` and `trace` are those of `f` (NaN without).

    References
    ----------
    H. Robbins and S. Monro, A stochastic approximation method, Annals of Mathematical Statistics 22 (1951), 400-407.

    Examples
    --------
    The mean of some numbers, a few at a time:

    >>> import numpy as np
    >>> from summula.optimize import sgd
    >>> z = np.random.default_rng(0).normal(5.0, 1.0, size=1_000)
    >>> found = sgd(lambda x, rows: x - z[rows].mean(), len(z), 0.0, batch_size=10, averaging=True, random_state=0)
    >>> bool(abs(found.x - z.mean()) < 0.02)
    True
    """
    check_arguments(
        "sgd",
        n=(n, (integer(1),)),
        step=(step, (real(0, open_low=True), _FUNCTION)),
        schedule=(schedule, (one_of("constant", "inverse_scaling"),)),
        power=(power, (real(0),)),
        batch_size=(batch_size, (integer(1),)),
        epochs=(epochs, (integer(1),)),
        averaging=(averaging, (boolean,)),
        random_state=(random_state, _RANDOM),
    )
    if not callable(gradient):
        raise ParameterError(f"The 'gradient' parameter of sgd must be a function of x and rows, not {gradient!r}.")
    objective = Objective(_unknown if f is None else f, x0, function="sgd")
    value = _unknown if f is None else objective.value
    length = _schedule(step, schedule, power)
    rng = np.random.default_rng(random_state)
    x, trail = objective.start, Trail(objective)
    trail.add(x, value(x))
    total, counted, k = np.zeros_like(x), 0, 0
    half = epochs * -(-n // batch_size) // 2
    for epoch in range(epochs):
        order = rng.permutation(n)
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for below
            for start in range(0, n, batch_size):
                k += 1
                x = x - length(k) * _gradient(gradient, objective, x, order[start : start + batch_size])  # (1)
                if k > half:
                    total, counted = total + x, counted + 1
        if not np.isfinite(x).all():
            before = trail.points[-1] if trail.points else objective.start
            message = (
                f"The points left the range of numbers in epoch {epoch + 1}; use a smaller step than {length(1):.6g}, "
                "or scale the columns."
            )
            return trail.end(np.atleast_1d(before), trail.values[-1], "diverged", message=message)
        trail.add(x, value(x))
    if averaging:
        x = total / counted  # (3)
    last = value(x) if averaging else trail.values[-1]
    return trail.end(
        x, last, "max_iter", message="All epochs are done; stochastic gradients do not tell how near x is."
    )


def _schedule(step: float | Callable[[int], float], schedule: str, power: float) -> Callable[[int], float]:
    """The length of step number k, from 1 on."""
    if callable(step):
        return step
    if schedule == "constant":
        return lambda k: step
    return lambda k: step / float(k) ** power  # (2)


def _gradient(gradient: Callable[[Any, Any], Any], objective: Objective, x: Array, rows: Any) -> Array:
    g = np.asarray(gradient(objective.outside(x), rows), np.float64)
    if g.size != x.size:
        raise DataError(
            f"gradient returned an array of shape {g.shape}, and x has {x.size} entries; return the mean over the rows."
        )
    return g.reshape(x.shape)


def _unknown(x: Any) -> float:
    """The value of an objective nobody gave."""
    return np.nan
