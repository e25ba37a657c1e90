"""Stochastic gradient descent: steps along the gradients of small batches of rows.

With f(x) = (1/n) sum_i f_i(x), each epoch shuffles the n rows and splits them into batches B:

    x+ = x - t_k (1/|B|) sum_{i in B} grad f_i(x),       k = 1, 2, ... the number of the step                      (1)

The gradient of a batch is unbiased but noisy. With a constant step the iterates fluctuate about the minimum, at a
distance that depends on the step; steps with sum t_k = infinity and sum t_k^2 < infinity converge (Robbins and Monro):

    t_k = t_1 / k^a,      1/2 < a <= 1                                                                             (2)

(a = 1/2, the default, converges slowly but is robust to a t_1 that is too small.) Averaging the iterates reduces the
noise,

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
from summula.optimize.problems.objective import Objective, Trail, check_arguments

__all__ = ["sgd"]

Array = NDArray[np.float64]

_FUNCTION = Allowed(callable, "a function of the step number")
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
    """Minimise a mean over n rows by stochastic gradient descent.

    Parameters
    ----------
    gradient : callable
        (x, rows) -> the mean gradient of these rows, an array of shape (d,); `rows` is an array of row numbers.
    n : int
        Number of rows.
    x0 : number or array of shape (d,)
        Starting point.
    step : float or callable, default=0.01
        Initial step t_1, or a function of the step number (1, 2, ...) that returns each step.
    schedule : {"constant", "inverse_scaling"}, default="constant"
        Constant step, or t_1 / k^power.
    power : float, default=0.5
        Exponent of "inverse_scaling".
    batch_size : int, default=1
        Number of rows per step; the last batch of an epoch may be smaller.
    epochs : int, default=10
        Number of passes over all rows.
    averaging : bool, default=False
        Whether to return the mean of the iterates of the last half of the steps instead of the last one.
    random_state : int, Generator or None
        Seed for shuffling the rows. Pass an int for reproducible results.
    f : callable, optional
        Objective x -> mean over all rows, for the trace; evaluated before the first epoch and after each epoch.

    Returns
    -------
    Solution
        `status` is "max_iter", since (1) has no convergence criterion, or "diverged". `n_steps` is the number of
        epochs, `path` contains the point after each, `value` and `trace` are values of `f` (NaN without `f`).

    References
    ----------
    H. Robbins and S. Monro, A stochastic approximation method, Annals of Mathematical Statistics 22 (1951), 400-407.

    Examples
    --------
    The mean of some numbers, computed in batches:

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
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is detected below
            for start in range(0, n, batch_size):
                k += 1
                x = x - length(k) * _gradient(gradient, objective, x, order[start : start + batch_size])  # (1)
                if k > half:
                    total, counted = total + x, counted + 1
        if not np.isfinite(x).all():
            before = trail.points[-1] if trail.points else objective.start
            message = (
                f"The iterates overflowed in epoch {epoch + 1}; use a step smaller than {length(1):.6g}, or scale the "
                "columns."
            )
            return trail.end(np.atleast_1d(before), trail.values[-1], "diverged", message=message)
        trail.add(x, value(x))
    if averaging:
        x = total / counted  # (3)
    last = value(x) if averaging else trail.values[-1]
    return trail.end(
        x, last, "max_iter", message="All epochs are done; stochastic gradients give no convergence criterion."
    )


def _schedule(step: float | Callable[[int], float], schedule: str, power: float) -> Callable[[int], float]:
    """Return the step size as a function of the step number k = 1, 2, ..."""
    if callable(step):
        return step
    if schedule == "constant":
        return lambda k: step
    return lambda k: step / float(k) ** power  # (2)


def _gradient(gradient: Callable[[Any, Any], Any], objective: Objective, x: Array, rows: Any) -> Array:
    g = np.asarray(gradient(objective.outside(x), rows), np.float64)
    if g.size != x.size:
        raise DataError(
            f"gradient returned an array of shape {g.shape}, but x has {x.size} entries; return the mean over the rows."
        )
    return g.reshape(x.shape)


def _unknown(x: Any) -> float:
    """Value of an objective that was not given."""
    return np.nan
