"""A function to minimise, with its derivatives: those given, or differences of values.

    df/dx_j  =  (f(x + h e_j) - f(x - h e_j)) / 2h  +  O(h^2) + O(eps f / h),     h = eps^(1/3) max(1, |x_j|)     (1)

has about ten digits where f is smooth. A Hessian is the same with the gradient in place of f. Users of one variable may
think in numbers: with a number for x0, f is called with a number and the answer is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed
from summula.core.numerics.solution import Solution

__all__ = ["Objective", "Trail", "check_arguments", "differences", "vector"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_DEPTH = 1e30  # times the first value: who falls so far falls for ever
_IDLE = 20  # steps without any gain before a solver gives up
_FEW = 10  # coordinates up to which the points on the way are kept


def differences(f: Callable[[Array], Any], x: Array, relative_step: float = _EPS ** (1 / 3)) -> Array:
    """The derivatives (1): one column for each variable, one row for each value of f (none where f is a number)."""
    columns = []
    for j in range(len(x)):
        away = np.zeros_like(x)
        away[j] = relative_step * max(1.0, abs(x[j]))
        ahead, behind = x + away, x - away
        with np.errstate(over="ignore", invalid="ignore"):
            columns.append((np.asarray(f(ahead)) - np.asarray(f(behind))) / (ahead[j] - behind[j]))
    return np.stack(columns, axis=-1).astype(np.float64)


class Objective:
    """f with its gradient and Hessian, which are differences where they are not given.

    Parameters
    ----------
    f : callable
        x -> number.
    x0 : number or array of shape (d,)
        Where a solver starts: it says what x looks like.
    gradient, hessian : callable, optional
        x -> array of shape (d,); x -> array of shape (d, d).
    function : str
        The name of the solver, for error messages.
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
        """x as the user's functions take it: a number, or an array of its own."""
        return float(x[0]) if self.is_number else x.copy()

    def value(self, x: Array) -> float:
        """f(x), infinite where it is not defined or too large: whatever is there, it is no minimum."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                value = np.asarray(self._f(self.outside(x)), np.float64)
        except OverflowError:  # of Python's own numbers
            return np.inf
        if value.size != 1:
            raise DataError(f"f returned values of shape {value.shape}; {self.function} needs one number for each x.")
        number = float(value.reshape(()))
        return np.inf if np.isnan(number) else number

    def first_value(self) -> float:
        """f(x0), which has to be a number to start from."""
        value = self.value(self.start)
        if not np.isfinite(value):
            raise DataError(f"f has no finite value at x0; {self.function} needs one to start from: choose another x0.")
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
                f"gradient returned an array of shape {g.shape}, and x has {x.size} entries; return as many."
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
                f"hessian returned an array of shape {H.shape}; for {x.size} variables it has as many rows and columns."
            )
        return H.reshape(x.size, x.size)

    def why_stalled(self, x: Array, g: Array) -> str:
        """Words for why no step downhill lowers the value: a wrong gradient, or rounding."""
        steep = float(np.linalg.norm(g))
        along = g / max(steep, 1e-300)
        slope = float(differences(lambda t: self.value(x + t[0] * along), np.zeros(1))[0])
        noise = 1e-8 * max(1.0, abs(self.value(x)))  # of differences
        if abs(slope - steep) > 1e-3 * steep + noise and self._gradient is not None:
            return (
                "No step along the direction of descent lowers f. By differences of f its slope along the gradient is "
                f"{slope:.3g}, and the gradient given says {steep:.3g}: check the gradient, or whether f is smooth."
            )
        return "No step lowers f any more: what is left to gain is lost in rounding."


class Trail:
    """The points and values a solver passes."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.values: list[float] = []
        self.points: list[Any] = []
        self._best = (np.inf, np.inf)  # the lowest value and slope
        self._idle = 0  # steps since one of them fell

    def add(self, x: Array, value: float) -> None:
        """Note a point."""
        self.values.append(float(value))
        if len(x) <= _FEW:
            self.points.append(self.objective.outside(x))

    def end(self, x: Array, value: float, status: str, *, gap: float = np.nan, message: str = "") -> Solution:
        """The solution that ends the trail."""
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
    def fallen(self) -> bool:
        """Whether the value has dropped so far that there can be no bottom."""
        return self.values[-1] < self.values[0] - _DEPTH * max(1.0, abs(self.values[0]))

    def stuck(self, g: Array) -> bool:
        """Whether neither the value nor the gradient has become smaller for many steps: both are rounding."""
        now = (self.values[-1], float(np.linalg.norm(g)))
        falls = now[0] < self._best[0] - _EPS * abs(self._best[0]) or now[1] < 0.99 * self._best[1]
        if np.isinf(self._best[0]) or falls:
            self._best, self._idle = (min(now[0], self._best[0]), min(now[1], self._best[1])), 0
        else:
            self._idle += 1
        return self._idle >= _IDLE

    def unfinished(self, x: Array, value: float, g: Array, tolerance: float) -> Solution:
        """The solution where steps ran out."""
        size = float(np.linalg.norm(g))
        message = f"The gradient has length {size:.3g} and should have {tolerance:.3g}; allow more max_steps."
        return self.end(x, value, "max_iter", message=message)

    def bottomless(self, x: Array, value: float) -> Solution:
        """The solution where there is none: the value falls without end."""
        message = f"f falls as far as numbers go, to {value:.3g} here: it seems to have no minimum; check its signs."
        return self.end(x, value, "unbounded", message=message)


def vector(x: Any, name: str, function: str) -> Array:
    """Finite numbers as an array of one dimension, a copy."""
    try:
        values = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} does not hold numbers; {function} needs an array of them.") from None
    if values.ndim > 1 or values.size == 0:
        raise DataError(f"{name} has shape {values.shape}; {function} needs one dimension: flatten it first.")
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(np.atleast_1d(values))))
        raise DataError(f"{name} is missing or infinite at place {place}; {function} needs finite numbers.")
    return np.atleast_1d(values)


def check_arguments(function: str, **given: tuple[Any, tuple[Allowed, ...]]) -> None:
    """Raise a sentence for the first argument whose value is of none of its kinds."""
    for name, (value, kinds) in given.items():
        if not any(kind.accepts(value) for kind in kinds):
            said = " or ".join(kind.words for kind in kinds)
            raise ParameterError(f"The {name!r} parameter of {function} must be {said}. Got {value!r} instead.")
