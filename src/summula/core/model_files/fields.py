"""The words of a schema: what a saved value may be.

    Array("float", "n_targets", "n_features")       an array, its dtype and the names of its dimensions
    Integer(0), Real(low=0.0), Flag(), Text(...)    numbers, booleans, text
    Items(Real()), Dict(Text(), Items(Text()))      tuples, lists and dicts of these
    Names("n_features"), Labels("n_classes")        names of columns, labels of classes
    A | B, A | None                                 either
    Maybe(A)                                        an attribute that may be absent

Fields know nothing of files; they raise `Fault`, whose text says where the value is and what is wrong with it.
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

# How long the dimensions that were met so far are.
Sizes = dict[str, int]

_MOST = 2**63  # whole numbers stay below this in size


class Fault(ValueError):
    """A value is not what was declared; the text names it."""


class Field(ABC):
    """What a value may be."""

    @abstractmethod
    def words(self, sizes: Sizes) -> str:
        """Say what is expected: "a number", "an array of float64 of shape (n_features,) = (3,)"."""

    @abstractmethod
    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Raise `Fault` for another value; note the sizes it tells."""

    def wrong(self, value: Any, path: str, sizes: Sizes) -> Fault:
        """The fault of a value that is of another kind."""
        return Fault(f"{path} is {_seen(value)}, not {self.words(sizes)}")

    def __or__(self, other: Field | None) -> Either:
        return Either(self, Nothing() if other is None else other)


class Nothing(Field):
    """None."""

    def words(self, sizes: Sizes) -> str:
        """Say so."""
        return "None"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept None."""
        if value is not None:
            raise self.wrong(value, path, sizes)


class Either(Field):
    """One of several; the first that fits decides the sizes."""

    def __init__(self, *options: Field) -> None:
        self.options = options

    def words(self, sizes: Sizes) -> str:
        """List the options."""
        return " or ".join(option.words(sizes) for option in self.options)

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Try one after the other."""
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
        # What failed later than by its kind says more.
        telling = [fault for fault in faults if f"{path} is " not in str(fault)]
        raise telling[-1] if telling else self.wrong(value, path, sizes)


class Maybe(Field):
    """An attribute that may be absent."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def words(self, sizes: Sizes) -> str:
        """Say what it is where it is there."""
        return self.field.words(sizes)

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check it where it is there."""
        self.field.check(value, path, sizes)


# ------------------------------------------------------------------------------------------------------- single values


class Flag(Field):
    """True or False."""

    def words(self, sizes: Sizes) -> str:
        """Say so."""
        return "True or False"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept booleans of Python and of NumPy."""
        if not isinstance(value, bool | np.bool_):
            raise self.wrong(value, path, sizes)


class Text(Field):
    """Text: any, or one of some."""

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
    """A whole number of at most 64 bits, from `low` to `high`; `size` makes it say how long a dimension is."""

    def __init__(self, low: int | None = None, high: int | None = None, *, size: str | None = None) -> None:
        self.low, self.high, self.size = low, high, size

    def words(self, sizes: Sizes) -> str:
        """Say the range, or the size."""
        if self.size in sizes:
            return f"{self.size} = {sizes[self.size]}"
        return f"a whole number{_range_words(self.low, self.high)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept whole numbers of Python and of NumPy."""
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or not -_MOST <= int(value) < _MOST:
            raise self.wrong(value, path, sizes)
        number = int(value)
        if not _within(number, self.low, self.high):
            raise self.wrong(value, path, sizes)
        if self.size is not None and sizes.setdefault(self.size, number) != number:
            raise self.wrong(value, path, sizes)


class Real(Field):
    """A number from `low` to `high`; infinities and NaN only where `finite` is False."""

    def __init__(self, low: float | None = None, high: float | None = None, *, finite: bool = True) -> None:
        self.low, self.high, self.finite = low, high, finite

    def words(self, sizes: Sizes) -> str:
        """Say the range."""
        return f"a {'finite ' if self.finite else ''}number{_range_words(self.low, self.high)}"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Accept numbers of Python and of NumPy."""
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not is_number or (isinstance(value, int) and not -_MOST <= value < _MOST):
            raise self.wrong(value, path, sizes)
        if (self.finite and not math.isfinite(value)) or not _within(value, self.low, self.high):
            raise self.wrong(value, path, sizes)


# ---------------------------------------------------------------------------------------------------------- containers


class Items(Field):
    """A tuple or list of values of one kind, at least `low`; `size` is the dimension it is as long as."""

    def __init__(self, field: Field, size: str | None = None, *, low: int = 0) -> None:
        self.field, self.size, self.low = field, size, low

    def words(self, sizes: Sizes) -> str:
        """Say what is in it."""
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
    """A dict with keys and values of one kind each."""

    def __init__(self, key: Field, value: Field) -> None:
        self.key, self.value = key, value

    def words(self, sizes: Sizes) -> str:
        """Say what is in it."""
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
        """Say so."""
        return "plain data"

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Look into containers."""
        if is_container(value):
            for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
                self.check(item, f"{path}[...]", sizes)
        elif value is not None and not isinstance(value, bool | int | float | str | bytes | np.generic | np.ndarray):
            raise self.wrong(value, path, sizes)


def is_container(value: Any) -> bool:
    """Whether a value is a list, tuple or dict, and nothing derived from them."""
    return type(value) in (list, tuple, dict)


# --------------------------------------------------------------------------------------------------------------- words


def _range_words(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return f" of at least {low:g}" if low is not None else f" of at most {high:g}" if high is not None else ""


def _within(value: Any, low: float | None, high: float | None) -> bool:
    return (low is None or bool(value >= low)) and (high is None or bool(value <= high))


def _seen(value: Any) -> str:
    """What a value is, in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name} of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        said = repr(value)
        return said if len(said) <= 40 else f"{said[:37]}..."
    name = type(value).__name__
    return f"a {name} of {len(value)} entries" if is_container(value) else f"a {name}"
