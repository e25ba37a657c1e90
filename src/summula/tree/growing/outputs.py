"""Outputs of a tree: one or several targets, numeric or with classes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outputs"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Outputs:
    """The targets of a tree.

    Attributes
    ----------
    n_outputs : int
        Number of targets.
    n_classes : tuple of int
        Number of classes of each target; empty for regression.
    """

    n_outputs: int = 1
    n_classes: tuple[int, ...] = ()

    @classmethod
    def one(cls, n_classes: int) -> Outputs:
        """Return a single target, numeric (0 classes) or with classes."""
        return cls(1, (n_classes,) if n_classes else ())

    @property
    def has_classes(self) -> bool:
        """Whether the targets are classes."""
        return bool(self.n_classes)

    @property
    def n_values(self) -> int:
        """Number of values of a leaf: the proportions of all classes of all targets, or one number per target."""
        return sum(self.n_classes) or self.n_outputs

    @property
    def n_sums(self) -> int:
        """Number of sums of a node (see `node_sums`)."""
        return self.n_values + (1 if self.has_classes else 2)

    @property
    def starts(self) -> Array:
        """Offsets of the values of each target, and the number of values."""
        return np.concatenate([[0], np.cumsum(self.n_classes or (1,) * self.n_outputs)])

    def split(self, values: Array) -> list[Array]:
        """Split the last axis of an array, the values of leaves, by target."""
        starts = self.starts
        return [values[..., a:b] for a, b in itertools.pairwise(starts)]

    def places(self, codes: Array) -> Array:
        """Return class codes, shape (n_outputs, n), as indices into the values of leaves."""
        return np.asarray(codes + self.starts[:-1, None]) if self.n_outputs > 1 and self.has_classes else codes
