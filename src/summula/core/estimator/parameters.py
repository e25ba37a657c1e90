"""Constraints on parameter values, with error messages worded as in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple, TypeVar

import numpy as np

from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import is_boolean, is_choice, is_integer, is_number

__all__ = [
    "Allowed",
    "Parameters",
    "array_like",
    "boolean",
    "check_parameters",
    "integer",
    "mapping",
    "none",
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


_LARGEST = 2**63 - 1
_NO_ARRAYS = (str, bytes, Mapping, Set)


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
        return is_integer(value) and (low is None or value >= low) and value <= (_LARGEST if high is None else high)

    return Allowed(accepts, words)


def one_of(*values: str) -> Allowed:
    """Allow one of the given strings."""
    words = f"a str among {{{', '.join(repr(v) for v in sorted(values))}}}"
    return Allowed(lambda value: is_choice(value, values), words)


boolean = Allowed(is_boolean, "an instance of 'bool'")
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
