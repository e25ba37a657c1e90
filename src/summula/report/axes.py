"""Frames, axes and legends of charts, as SVG text. Colours and text sizes come from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "NORMAL",
    "SMALL",
    "Axis",
    "Box",
    "Ticks",
    "axis_of",
    "clipped",
    "date_ticks",
    "frame",
    "legend",
    "level_ticks",
    "number_text",
    "svg",
]

Ticks = list[tuple[float, str]]  # positions and their labels

_CHARACTER = 6.6  # mean width of a character of the legend
_WIDEST = 7.8  # the same for small charts in narrow columns, with larger text
_LEGEND_ROW = 18.0


class Box(NamedTuple):
    """Size and margins of a chart, in units of the drawing."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    def lowered(self, by: float) -> Box:
        """Return the same box with a larger top margin."""
        return self._replace(height=self.height + by, top=self.top + by)


NORMAL = Box(440, 280, 56, 16, 12, 42)
SMALL = Box(300, 190, 46, 14, 10, 36)


class Axis(NamedTuple):
    """A linear scale from numbers to coordinates."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the axis, at most one more than `most`."""
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / (most - 1)))
        for step in (power, 2 * power, 5 * power, 10 * power):
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first <= most:
                break
        return [k * step for k in range(first, last + 1)]

    def labelled_ticks(self, most: int = 5, *, across: bool = True) -> Ticks:
        """Return round numbers with labels; along a horizontal axis as many as fit."""
        found = _labelled(self.ticks(most))
        while across and most > 2 and not self._fits(found):
            most -= 1
            found = _labelled(self.ticks(most))
        if across and not self._fits(found):
            found = [found[0], found[-1]]
        return found if not across or self._fits(found) else found[:1]

    def _fits(self, ticks: Ticks) -> bool:
        if len(ticks) < 2:
            return True
        spacing = abs(self(ticks[1][0]) - self(ticks[0][0]))
        return _WIDEST * (max(len(text) for _, text in ticks) + 1) <= spacing


def _labelled(values: Sequence[float]) -> Ticks:
    """Return values with short labels, or with longer ones if short ones would be equal."""
    texts = [number_text(value) for value in values]
    if len(set(texts)) < len(texts):
        texts = [f"{value:.12g}" for value in values]
    return list(zip(values, texts, strict=True))


def axis_of(values: Sequence[Any], begin: float, end: float, fixed: tuple[float, float] | None = None) -> Axis:
    """Return an axis over all values with a small margin, or over a fixed range."""
    if fixed is not None:
        return Axis(*fixed, begin, end)
    joined = np.concatenate([np.asarray(v, float).ravel() for v in values])
    low, high = (float(joined.min()), float(joined.max())) if len(joined) else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        margin = 0.5 * max(abs(low), 1.0)
        return Axis(low - margin, high + margin, begin, end)
    margin = 0.03 * (high - low)
    return Axis(low - margin, high + margin, begin, end)


def number_text(value: float) -> str:
    """Format a tick label; thousands and more are abbreviated."""
    if abs(value) < 1e-12:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e12:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def clipped(name: str, most: int) -> str:
    """Truncate a name to a maximum number of characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def svg(body: Sequence[str], label: str, width: float, height: float) -> str:
    """Return a drawing with a label for screen readers."""
    head = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
    return "".join([head, *body, "</svg>"])


def date_ticks(low: float, high: float, box: Box) -> Ticks:
    """Return dates within a range of days since 1970: three, or two in a small chart."""
    shares = (1 / 6, 1 / 2, 5 / 6) if box.width > SMALL.width else (1 / 4, 3 / 4)
    days = [round(low + share * (high - low)) for share in shares]
    return [(float(day), str(np.datetime64(day, "D"))) for day in sorted(set(days))]


def level_ticks(names: Sequence[str], box: Box) -> Ticks:
    """Return names at 0, 1, 2, ..., truncated to the available space."""
    width = (box.width - box.left - box.right) / len(names)
    return [(float(k), clipped(name, max(int(width / _WIDEST) - 1, 2))) for k, name in enumerate(names)]


def frame(box: Box, x: Axis, y: Axis, x_name: str, y_name: str, *, ticks: Ticks | None = None) -> list[str]:
    """Grid lines, tick labels and axis titles; `ticks` are those of the horizontal axis, by default round numbers."""
    bottom, right, body = box.height - box.bottom, box.width - box.right, []
    most = 5 if box.width > 400 else 4
    for value, text in x.labelled_ticks(most) if ticks is None else ticks:
        body.append(f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{box.top:g}" y2="{bottom:g}"/>')
        body.append(f'<text x="{x(value):.1f}" y="{bottom + 14:g}" text-anchor="middle">{escape(text)}</text>')
    for value, text in y.labelled_ticks(most, across=False):
        body.append(f'<line class="grid" x1="{box.left:g}" x2="{right:g}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        body.append(f'<text x="{box.left - 6:g}" y="{y(value) + 4:.1f}" text-anchor="end">{text}</text>')
    across, up = (box.left + right) / 2, (box.top + bottom) / 2
    shown_x, shown_y = clipped(x_name, int((right - box.left) / _WIDEST)), clipped(y_name, int(box.height / 7))
    body.append(f'<text x="{across:g}" y="{box.height - 7:g}" text-anchor="middle">{escape(shown_x)}</text>')
    body.append(f'<text transform="translate(12 {up:g}) rotate(-90)" text-anchor="middle">{escape(shown_y)}</text>')
    return body


def legend(names: Sequence[str], box: Box) -> tuple[list[str], float]:
    """Return a legend above a chart, and its height."""
    body, left, row = [], box.left, 0
    for k, name in enumerate(names):
        shown = clipped(name, 34)
        needed = 16 + _CHARACTER * len(shown) + 12
        if left > box.left and left + needed > box.width:
            left, row = box.left, row + 1
        top = 4 + _LEGEND_ROW * row
        body.append(f'<rect class="dot s{k % 6}" x="{left:g}" y="{top:g}" width="10" height="10"/>')
        body.append(f'<text x="{left + 15:g}" y="{top + 9.5:g}">{escape(shown)}</text>')
        left += needed
    return body, _LEGEND_ROW * (row + 1)
