"""A function to minimise, with its derivatives: given, or computed by finite differences.

    df/dx_j  =  (f(x + h e_j) - f(x - h e_j)) / 2h  +  O(h^2) + O(eps f / h),     h = eps^(1/3) max(1, |x_j|)     (1)

is accurate to about ten digits if f is smooth. Hessians are differences of gradients. If x0 is a number, f is called
with numbers and the solution is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed
from summula.core.numerics.solution import Solution

__all__ = ["Objective", "Trail", "check_arguments", "differences", "start_trail", "vector"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_DEPTH = 1e30  # times the first value: a decrease by more means that f is unbounded
_IDLE = 20  # steps without progress before a solver stops
_FEW = 10  # dimensions up to which the iterates are stored

# Documentation shared by the minimisers: see `summula.core.docstrings`.
MINIMISER = """
Parameters
----------
f : callable
    Function to minimise, x -> number.
x0 : number or array of shape (d,)
    Starting point.
gradient : callable, optional
    Gradient of f, x -> array of shape (d,). By default central differences.
tolerance : float, default=1e-6
    Stop when the norm of the gradient is at most this value.
max_steps : int, default=10_000
    Maximum number of steps.

Returns
-------
Solution
    `trace` contains the objective values, `path` the iterates.
"""


def differences(f: Callable[[Array], Any], x: Array, relative_step: float = _EPS ** (1 / 3)) -> Array:
    """Return the derivatives (1): one column per variable, and one row per value of f if f is an array."""
    columns = []
    for j in range(len(x)):
        away = np.zeros_like(x)
        away[j] = relative_step * max(1.0, abs(x[j]))
        ahead, behind = x + away, x - away
        with np.errstate(over="ignore", invalid="ignore"):
            columns.append((np.asarray(f(ahead)) - np.asarray(f(behind))) / (ahead[j] - behind[j]))
    return np.stack(columns, axis=-1).astype(np.float64)


class Objective:
    """f with its gradient and Hessian, which are computed by finite differences if not given.

    Parameters
    ----------
    f : callable
        Function to minimise, x -> number.
    x0 : number or array of shape (d,)
        Starting point, which determines whether x is a number or an array.
    gradient, hessian : callable, optional
        x -> array of shape (d,); x -> array of shape (d, d).
    function : str
        Name of the solver, for error messages.
    """

    def __init__(
        self,
        f: Callable[[Any], Any],
        x0: Any,
        gradient: Callable[[Any], Any] | None = None,
        hessian: Callable[[Any], Any] | None = None,
        *,
        function: str,
    ) -> None:
        for name, given in {"f": f, "gradient": gradient, "hessian": hessian}.items():
            if not callable(given) and (name == "f" or given is not None):
                raise ParameterError(f"The {name!r} parameter of {function} must be a function of x, not {given!r}.")
        self._f, self._gradient, self._hessian, self.function = f, gradient, hessian, function
        self.is_number = np.ndim(x0) == 0
        self.start = vector(x0, "x0", function)

    def outside(self, x: Array) -> Any:
        """Return x in the form the user's functions expect: a number, or a copy of the array."""
        return float(x[0]) if self.is_number else x.copy()

    def value(self, x: Array) -> float:
        """Return f(x), or infinity if it is undefined or overflows."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                value = np.asarray(self._f(self.outside(x)), np.float64)
        except OverflowError:  # overflow of Python floats
            return np.inf
        if value.size != 1:
            raise DataError(f"f returned values of shape {value.shape}; {self.function} needs one number for each x.")
        number = float(value.reshape(()))
        return np.inf if np.isnan(number) else number

    def first_value(self) -> float:
        """Return f(x0), which must be finite."""
        value = self.value(self.start)
        if not np.isfinite(value):
            raise DataError(f"f is not finite at x0; {self.function} needs a finite starting value: choose another x0.")
        return value

    def gradient(self, x: Array) -> Array:
        """The gradient at x."""
        if self._gradient is None:
            return differences(self.value, x)
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                g = np.asarray(self._gradient(self.outside(x)), np.float64)
        except OverflowError:
            return np.full(x.shape, np.nan)
        if g.size != x.size:
            raise DataError(
                f"gradient returned an array of shape {g.shape}, but x has {x.size} entries; they must agree."
            )
        return g.reshape(x.shape)

    def hessian(self, x: Array) -> Array:
        """The matrix of second derivatives at x."""
        if self._hessian is None:
            H = differences(self.gradient, x) if self._gradient else differences(self.gradient, x, _EPS**0.25)
            return (H + H.T) / 2
        H = np.asarray(self._hessian(self.outside(x)), np.float64)
        if H.size != x.size**2:
            raise DataError(
                f"hessian returned an array of shape {H.shape}; for {x.size} variables it must be {x.size} by {x.size}."
            )
        return H.reshape(x.size, x.size)

    def why_stalled(self, x: Array, g: Array) -> str:
        """Return a message on why no step decreases the value: a wrong gradient, or rounding."""
        steep = float(np.linalg.norm(g))
        along = g / max(steep, 1e-300)
        slope = float(differences(lambda t: self.value(x + t[0] * along), np.zeros(1))[0])
        noise = 1e-8 * max(1.0, abs(self.value(x)))  # of differences
        if abs(slope - steep) > 1e-3 * steep + noise and self._gradient is not None:
            return (
                "No step along the descent direction decreases f. By finite differences the slope of f along the "
                f"gradient is {slope:.3g}, but the given gradient implies {steep:.3g}: check the gradient, or whether "
                "f is smooth."
            )
        return "No step decreases f further: the remaining decrease is below rounding error."


class Trail:
    """The iterates of a solver and their values."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.values: list[float] = []
        self.points: list[Any] = []
        self._best = (np.inf, np.inf)  # the smallest value and gradient norm
        self._idle = 0  # steps since one of them decreased

    def add(self, x: Array, value: float) -> None:
        """Add a point."""
        self.values.append(float(value))
        if len(x) <= _FEW:
            self.points.append(self.objective.outside(x))

    def end(self, x: Array, value: float, status: str, *, gap: float = np.nan, message: str = "") -> Solution:
        """Return the solution with these iterates."""
        return Solution(
            self.objective.outside(x),
            float(value),
            gap,
            status,
            status == "converged",
            len(self.values) - 1,
            tuple(self.values),
            tuple(self.points),
            message,
        )

    @property
    def is_diverging(self) -> bool:
        """Whether the value has decreased so far that f is considered unbounded."""
        return self.values[-1] < self.values[0] - _DEPTH * max(1.0, abs(self.values[0]))

    def is_stuck(self, g: Array) -> bool:
        """Whether neither the value nor the gradient has decreased for many steps, because of rounding."""
        now = (self.values[-1], float(np.linalg.norm(g)))
        falls = now[0] < self._best[0] - _EPS * abs(self._best[0]) or now[1] < 0.99 * self._best[1]
        if np.isinf(self._best[0]) or falls:
            self._best, self._idle = (min(now[0], self._best[0]), min(now[1], self._best[1])), 0
        else:
            self._idle += 1
        return self._idle >= _IDLE

    def stalled(self, x: Array, value: float, g: Array) -> Solution:
        """Return the solution at a point from which no step decreases the value."""
        return self.end(x, value, "stalled", message=self.objective.why_stalled(x, g))

    def exhausted(self, x: Array, value: float, g: Array, tolerance: float, max_steps: int) -> Solution | None:
        """Return the final solution if the steps are used up or no progress is made any more, else None."""
        if len(self.values) > max_steps:
            return self.out_of_steps(x, value, g, tolerance)
        return self.stalled(x, value, g) if self.is_stuck(g) else None

    def out_of_steps(self, x: Array, value: float, g: Array, tolerance: float) -> Solution:
        """Return the solution after the last allowed step."""
        size = float(np.linalg.norm(g))
        message = f"The norm of the gradient is {size:.3g} > {tolerance:.3g}; increase max_steps."
        return self.end(x, value, "max_iter", message=message)

    def unbounded(self, x: Array, value: float) -> Solution:
        """Return the result for a function without a minimum."""
        message = f"f appears to be unbounded below: it decreases to {value:.3g} here; check its signs."
        return self.end(x, value, "unbounded", message=message)


def start_trail(objective: Objective) -> tuple[Array, float, Array, Trail]:
    """Return the starting point, its value and gradient, and a trail that starts there."""
    x, value = objective.start, objective.first_value()
    trail = Trail(objective)
    trail.add(x, value)
    return x, value, objective.gradient(x), trail


def vector(x: Any, name: str, function: str) -> Array:
    """Return a one-dimensional array of finite numbers, as a copy."""
    try:
        values = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} is not numeric; {function} needs an array of numbers.") from None
    if values.ndim > 1 or values.size == 0:
        raise DataError(f"{name} has shape {values.shape}; {function} needs a 1d array: flatten it first.")
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(np.atleast_1d(values))))
        raise DataError(f"{name} is missing or infinite at index {place}; {function} needs finite numbers.")
    return np.atleast_1d(values)


def check_arguments(function: str, **given: tuple[Any, tuple[Allowed, ...]]) -> None:
    """Raise ParameterError for the first argument whose value is not allowed."""
    for name, (value, kinds) in given.items():
        if not any(kind.accepts(value) for kind in kinds):
            allowed = " or ".join(kind.words for kind in kinds)
            raise ParameterError(f"The {name!r} parameter of {function} must be {allowed}. Got {value!r} instead.")
