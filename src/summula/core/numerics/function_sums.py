"""Sums of a single function of a chunk, without a separate statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from summula.core.numerics.statistics import weight_sums
from summula.core.numerics.sums import Sum

if TYPE_CHECKING:
    from summula.core.data.chunks import Chunk

__all__ = ["FunctionSum"]


@dataclass(frozen=True)
class FunctionSum(Sum):
    """The sum of a function over chunks, with those of `weight_sums`; `params` is the function (picklable)."""

    count: int
    weight: float
    value: NDArray[Any]

    @classmethod
    def map(cls, chunk: Chunk, params: Callable[[Chunk], NDArray[Any]]) -> Self:
        """Return the function of one chunk."""
        count, weight, _ = weight_sums(chunk)
        return cls(count, weight, params(chunk))
