"""Constraints on parameter values, with error messages worded as in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.numbers import Origin, array_of, real_numbers
from summula.core.errors import DataError, ParameterError, RowError

__all__ = [
    "Allowed",
    "Parameters",
    "array_like",
    "boolean",
    "check_parameters",
    "integer",
    "is_choice",
    "is_fraction",
    "is_number",
    "is_true",
    "list_in",
    "mapping",
    "none",
    "number_or_nan",
    "numbers_in",
    "object_named",
    "one_of",
    "random_state",
    "real",
]

Kind = TypeVar("Kind")


class Allowed(NamedTuple):
    """A set of allowed values: a predicate and its description in error messages."""

    accepts: Callable[[Any], bool]
    words: str


Parameters = Mapping[str, tuple[Allowed, ...]]  # alternatives allowed for each parameter


# Checks of abstract classes such as Real take longer than all others, so the usual types come first.
_REALS = (float, int, np.floating, np.integer, Real)
_INTEGERS = (int, np.integer, Integral)
_LARGEST = 2**63 - 1
_BOOLEANS = (bool, np.bool_)
_NO_NUMBERS = (*_BOOLEANS, np.timedelta64)  # which are integers to Python, or to NumPy
_NO_ARRAYS = (str, bytes, Mapping, Set)


def is_true(value: Any) -> bool:
    """Whether a value of any type is the boolean True: for parameters that are read before they are checked."""
    return isinstance(value, _BOOLEANS) and bool(value)


def number_or_nan(value: Any) -> float:
    """Return float(value), or NaN if it is not a number: comparisons with bounds are then false."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def is_number(value: Any) -> bool:
    """Whether a value of any type is a real number; booleans are none."""
    return isinstance(value, _REALS) and not isinstance(value, _NO_NUMBERS)


def is_fraction(value: Any) -> bool:
    """Whether a value of any type is a number between 0 and 1, both excluded."""
    return is_number(value) and bool(0 < value < 1)


def is_choice(value: Any, choices: Iterable[str]) -> bool:
    """Whether a value of any type is one of some strings."""
    return isinstance(value, str) and value in choices


def numbers_in(name: str, value: Any) -> NDArray[np.float64]:
    """Return the numbers of a parameter, or of an argument, as a new array; raises ParameterError for anything else."""
    try:
        values = real_numbers(array_of(value, name), Origin(name, name, advice="pass numbers"), "this parameter")
    except RowError as error:
        raise ParameterError(f"{error.before} at index {error.row}{error.after}") from None
    except DataError as error:
        raise ParameterError(str(error)) from None
    return np.array(values, np.float64, order="C")


def list_in(name: str, value: Any) -> list[Any]:
    """Return the entries of a parameter that is array-like, an empty list if it is a single value."""
    try:
        return list(value) if array_of(value, name).ndim else []
    except DataError as error:
        raise ParameterError(str(error)) from None


def real(low: float = -np.inf, high: float = np.inf, *, open_low: bool = False) -> Allowed:
    """Allow a real number from `low` (excluded if `open_low`) to `high`."""
    words = f"a float in the range {'(' if open_low else '['}{low}, {high}{')' if np.isinf(high) else ']'}"

    def accepts(value: Any) -> bool:
        return is_number(value) and (low < value if open_low else low <= value) and value <= high

    return Allowed(accepts, words)


def integer(low: int | None = None, high: int | None = None) -> Allowed:
    """Allow an integer from `low` to `high`, both included."""
    end = "inf)" if high is None else f"{high}]"
    words = "an int" if low is None else f"an int in the range [{low}, {end}"

    def accepts(value: Any) -> bool:
        whole = isinstance(value, _INTEGERS) and not isinstance(value, _NO_NUMBERS)
        return whole and (low is None or value >= low) and value <= (_LARGEST if high is None else high)

    return Allowed(accepts, words)


def one_of(*values: str) -> Allowed:
    """Allow one of the given strings."""
    words = f"a str among {{{', '.join(repr(v) for v in sorted(values))}}}"
    return Allowed(lambda value: isinstance(value, str) and value in values, words)


boolean = Allowed(lambda value: isinstance(value, _BOOLEANS), "an instance of 'bool'")
none = Allowed(lambda value: value is None, "None")
array_like = Allowed(lambda value: hasattr(value, "__len__") and not isinstance(value, _NO_ARRAYS), "an array-like")
mapping = Allowed(lambda value: isinstance(value, Mapping), "an instance of 'dict'")


_SEEDS = integer(0, 2**32 - 1)
random_state = Allowed(
    lambda value: (
        value is None or isinstance(value, np.random.Generator | np.random.RandomState) or _SEEDS.accepts(value)
    ),
    f"{_SEEDS.words}, a numpy Generator, a numpy RandomState or None",
)


def object_named(parameter: str, value: Any, kind: type[Kind], known: Mapping[str, Kind]) -> Kind:
    """Return the object that a parameter gives, as itself or by its name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in known:
        return known[value]
    names, what = ", ".join(repr(name) for name in known), kind.__name__
    raise ParameterError(
        f"The {parameter!r} parameter must be one of {names} or a {what} object. Got {value!r} instead."
    )


def check_parameters(estimator: Any, allowed: Mapping[str, tuple[Allowed, ...]]) -> None:
    """Raise ParameterError for the first parameter whose value is not allowed."""
    for name, kinds in allowed.items():
        value = getattr(estimator, name)
        for kind in kinds:
            if kind.accepts(value):
                break
        else:
            words = [kind.words for kind in kinds]
            allowed_words = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
            raise ParameterError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {allowed_words}. Got {value!r} instead."
            )
