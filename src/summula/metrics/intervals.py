"""A metric and its confidence interval."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Interval"]


class Interval(NamedTuple):
    """A metric and the limits of its confidence interval."""

    value: float
    low: float
    high: float
