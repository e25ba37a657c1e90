"""References to the training data of a model: strong for small data, weak for large data."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from summula.core.estimator.input.validation import collection_reader

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = ["Kept", "keep_training", "recalled"]

_KEPT_BYTES = 2**26  # up to 64 MB are referenced strongly


class Kept:
    """A strong reference, or a weak one that lasts as long as other references to the object."""

    def __init__(self, value: Any, firmly: bool) -> None:
        self._value: Any = value
        self._weak: Any = None
        if not firmly and value is not None and not isinstance(value, str):
            self._value = None
            try:
                self._weak = weakref.ref(value)
            except TypeError:  # lists and the like cannot be watched
                self._weak = _nothing

    @property
    def value(self) -> Any:
        """The kept object; None if it no longer exists."""
        return self._value if self._weak is None else self._weak()

    @property
    def gone(self) -> bool:
        """Whether the object has been garbage collected."""
        return self._weak is not None and self._weak() is None


def _nothing() -> None:
    return None


def keep_training(run: Run, *given: Any) -> tuple[Kept, ...]:
    """Keep the arguments of a fit, X first: by reference if they are small or files, else by weak reference."""
    source = run.source
    # Files cost nothing to keep; a collection may keep the memory of a cluster.
    free = source.streams and collection_reader(given[0]) is None
    small = free or source.width * source.n_rows * source.dtype.itemsize <= _KEPT_BYTES
    return tuple(Kept(part, small) for part in given)


def recalled(kept: tuple[Kept, ...] | None) -> tuple[Any, ...] | None:
    """Return the kept arguments, or None if some of them no longer exist."""
    if kept is None or any(part.gone for part in kept):
        return None
    return tuple(part.value for part in kept)
