"""Schema fields: declarations of the values that can be saved.

    Array("float", "n_targets", "n_features")       an array, its dtype and the names of its dimensions
    Integer(0), Real(low=0.0), Flag(), Text(...)    numbers, booleans, text
    Items(Real()), Dict(Text(), Items(Text()))      tuples, lists and dicts of these
    Names("n_features"), Labels("n_classes")        names of columns, labels of classes
    A | B, A | None                                 either
    Maybe(A)                                        an attribute that may be absent

Fields are independent of files; they raise `Fault` with the location of the value and what is wrong with it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

__all__ = [
    "Dict",
    "Either",
    "Fault",
    "Field",
    "Flag",
    "Integer",
    "Items",
    "Maybe",
    "Plain",
    "Real",
    "Sizes",
    "Text",
    "is_container",
]

# Sizes of the named dimensions found so far.
Sizes = dict[str, int]

_INT_LIMIT = 2**63  # bound on the absolute value of integers
_INTEGERS = (int, np.integer)
_NUMBERS = (*_INTEGERS, float, np.floating)


class Fault(ValueError):
    """A value does not match its declaration; the message names the value."""


class Field(ABC):
    """Declaration of a value."""

    @abstractmethod
    def words(self, sizes: Sizes) -> str:
        """Describe the expected value: "a number", "an array of float64 of shape (n_features,) = (3,)"."""

    @abstractmethod
    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Raise `Fault` if the value does not match; record the sizes of its dimensions."""

    def wrong(self, value: Any, path: str, sizes: Sizes) -> Fault:
        """Return the error for a value of another type."""
        return Fault(f"{path} is {_describe(value)}, not {self.words(sizes)}")

    def __or__(self, other: Field | None) -> Either:
        return Either(self, Nothing() if other is None else other)


class Nothing(Field):
    """None."""

    def words(self, sizes: Sizes) -> str:
        """Describe the value."""
        return "None"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept None."""
        if value is not None:
            raise self.wrong(value, path, sizes)


class Either(Field):
    """One of several alternatives; the first that matches determines the sizes."""

    def __init__(self, *options: Field) -> None:
        self.options = options

    def words(self, sizes: Sizes) -> str:
        """List the options."""
        return " or ".join(option.words(sizes) for option in self.options)

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Try the alternatives in order."""
        faults = []
        for option in self.options:
            trial = dict(sizes)
            try:
                option.check(value, path, trial)
            except Fault as fault:
                faults.append(fault)
                continue
            sizes.update(trial)
            return
        # Prefer an error about the content of the value to one about its type.
        specific = [fault for fault in faults if f"{path} is " not in str(fault)]
        raise specific[-1] if specific else self.wrong(value, path, sizes)


class Maybe(Field):
    """An attribute that may be absent."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def words(self, sizes: Sizes) -> str:
        """Describe the attribute."""
        return self.field.words(sizes)

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check the attribute, which is present."""
        self.field.check(value, path, sizes)


# ------------------------------------------------------------------------------------------------------- single values


class Flag(Field):
    """True or False."""

    def words(self, sizes: Sizes) -> str:
        """Describe the value."""
        return "True or False"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept Python and NumPy booleans."""
        if not isinstance(value, bool | np.bool_):
            raise self.wrong(value, path, sizes)


class Text(Field):
    """A string: any, or one of the given choices."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def words(self, sizes: Sizes) -> str:
        """List the choices."""
        return f"one of {', '.join(map(repr, self.choices))}" if self.choices else "text"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept text."""
        if not isinstance(value, str) or (self.choices and value not in self.choices):
            raise self.wrong(value, path, sizes)


class Integer(Field):
    """An integer of at most 64 bits, from `low` to `high`; if `size` is given, it is the size of that dimension."""

    def __init__(self, low: int | None = None, high: int | None = None, *, size: str | None = None) -> None:
        self.low, self.high, self.size = low, high, size

    def words(self, sizes: Sizes) -> str:
        """Describe the range, or the size."""
        if self.size in sizes:
            return f"{self.size} = {sizes[self.size]}"
        return f"an integer{_range_words(self.low, self.high)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept Python and NumPy integers."""
        is_integer = isinstance(value, _INTEGERS) and not isinstance(value, bool)
        if not is_integer or not -_INT_LIMIT <= int(value) < _INT_LIMIT:
            raise self.wrong(value, path, sizes)
        number = int(value)
        if not _within(number, self.low, self.high):
            raise self.wrong(value, path, sizes)
        if self.size is not None and sizes.setdefault(self.size, number) != number:
            raise self.wrong(value, path, sizes)


class Real(Field):
    """A number from `low` to `high`; infinities and NaN are allowed only if `finite` is False."""

    def __init__(self, low: float | None = None, high: float | None = None, *, finite: bool = True) -> None:
        self.low, self.high, self.finite = low, high, finite

    def words(self, sizes: Sizes) -> str:
        """Describe the range."""
        return f"a {'finite ' if self.finite else ''}number{_range_words(self.low, self.high)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept Python and NumPy numbers."""
        is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
        if not is_number or (isinstance(value, int) and not -_INT_LIMIT <= value < _INT_LIMIT):
            raise self.wrong(value, path, sizes)
        if (self.finite and not math.isfinite(value)) or not _within(value, self.low, self.high):
            raise self.wrong(value, path, sizes)


# ---------------------------------------------------------------------------------------------------------- containers


class Items(Field):
    """A tuple or list of at least `low` values with one declaration; `size` is the dimension equal to its length."""

    def __init__(self, field: Field, size: str | None = None, *, low: int = 0) -> None:
        self.field, self.size, self.low = field, size, low

    def words(self, sizes: Sizes) -> str:
        """Describe the contents."""
        many = f"{sizes[self.size]} " if self.size in sizes else f"at least {self.low} " if self.low else ""
        return f"a tuple or list of {many}entries, each {self.field.words(sizes)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check every item."""
        if type(value) not in (tuple, list) or len(value) < self.low:
            raise self.wrong(value, path, sizes)
        if self.size is not None and sizes.setdefault(self.size, len(value)) != len(value):
            raise self.wrong(value, path, sizes)
        for k, item in enumerate(value):
            self.field.check(item, f"{path}[{k}]", sizes)


class Dict(Field):
    """A dict with one declaration for all keys and one for all values."""

    def __init__(self, key: Field, value: Field) -> None:
        self.key, self.value = key, value

    def words(self, sizes: Sizes) -> str:
        """Describe the contents."""
        return f"a dict from {self.key.words(sizes)} to {self.value.words(sizes)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check every pair."""
        if type(value) is not dict:
            raise self.wrong(value, path, sizes)
        for key, item in value.items():
            self.key.check(key, f"{path} (a key)", sizes)
            self.value.check(item, f"{path}[{key!r}]", sizes)


class Plain(Field):
    """Numbers, text, arrays and containers of these, but no objects."""

    def words(self, sizes: Sizes) -> str:
        """Describe the value."""
        return "plain data"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check recursively."""
        if is_container(value):
            for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
                self.check(item, f"{path}[...]", sizes)
        elif value is not None and not isinstance(value, bool | int | float | str | bytes | np.generic | np.ndarray):
            raise self.wrong(value, path, sizes)


def is_container(value: Any) -> bool:
    """Return whether a value is exactly a list, tuple or dict, not a subclass."""
    return type(value) in (list, tuple, dict)


# --------------------------------------------------------------------------------------------------------------- words


def _range_words(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return f" of at least {low:g}" if low is not None else f" of at most {high:g}" if high is not None else ""


def _within(value: Any, low: float | None, high: float | None) -> bool:
    return (low is None or bool(value >= low)) and (high is None or bool(value <= high))


def _describe(value: Any) -> str:
    """Describe a value in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name} of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    name = type(value).__name__
    return f"a {name} of {len(value)} entries" if is_container(value) else f"a {name}"
