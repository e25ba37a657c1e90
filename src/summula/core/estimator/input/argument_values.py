"""Reading of argument values of any type: kinds of values, and conversion to numbers.

`parameters` declares which values the parameters of an estimator allow, and checks them in `fit`. The functions here
read one value of a parameter or argument, with an answer for every type:

    is_true, is_boolean, is_integer, is_number, is_fraction, is_choice      whether it is a value of a kind
    takes_arguments                                                         whether it is a function of n arguments
    number_or_nan, numbers_in, list_in                                      the value as float, array or list

Booleans and time differences are integers to Python or to NumPy; here they are not numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.numbers import Origin, array_of, real_numbers
from summula.core.errors import DataError, ParameterError, RowError

__all__ = [
    "is_boolean",
    "is_choice",
    "is_fraction",
    "is_integer",
    "is_number",
    "is_true",
    "list_in",
    "number_or_nan",
    "numbers_in",
    "takes_arguments",
]

# Checks of abstract classes such as Real take longer than all others, so the usual types come first.
_REALS = (float, int, np.floating, np.integer, Real)
_INTEGERS = (int, np.integer, Integral)
_BOOLEANS = (bool, np.bool_)
_NO_NUMBERS = (*_BOOLEANS, np.timedelta64)


def is_boolean(value: Any) -> bool:
    """Whether a value of any type is a boolean."""
    return isinstance(value, _BOOLEANS)


def is_true(value: Any) -> bool:
    """Whether a value of any type is the boolean True: for parameters that are read before they are checked."""
    return is_boolean(value) and bool(value)


def is_integer(value: Any) -> bool:
    """Whether a value of any type is an integer; booleans are none."""
    return isinstance(value, _INTEGERS) and not isinstance(value, _NO_NUMBERS)


def is_number(value: Any) -> bool:
    """Whether a value of any type is a real number; booleans are none."""
    return isinstance(value, _REALS) and not isinstance(value, _NO_NUMBERS)


def is_fraction(value: Any) -> bool:
    """Whether a value of any type is a number between 0 and 1, both excluded."""
    return is_number(value) and bool(0 < value < 1)


def takes_arguments(function: Any, n: int) -> bool:
    """Whether a value can be called with n positional arguments, as far as its signature is known."""
    if not callable(function):
        return False
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled functions
        return True
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True


def is_choice(value: Any, choices: Iterable[str]) -> bool:
    """Whether a value of any type is one of some strings."""
    return isinstance(value, str) and value in choices


def number_or_nan(value: Any) -> float:
    """Return float(value), or NaN if it is not a number: comparisons with bounds are then false."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


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
