"""Charts with one named row per value, as SVG text: bars, intervals, waterfalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from summula.report.axes import NORMAL, Axis, Box, axis_of, clipped, svg

__all__ = ["bars", "intervals", "waterfall"]

_ROW = 22  # height of a row
_CHARACTER = 7.0  # width of a character
_MOST_NAMES = 0.5  # maximum fraction of the width for names


def _begin(box: Box, names: Sequence[str]) -> float:
    """Return the left end of bars: after the longest name."""
    return 14 + min(_CHARACTER * max((len(name) for name in names), default=0), _MOST_NAMES * box.width)


def _by_row(
    names: Sequence[str], x: Axis, label: str, draw: Callable[[int, float], list[str]], box: Box, zero: float | None
) -> str:
    """Draw one row per name over a common axis; `zero` draws a vertical line."""
    height = _ROW * len(names) + 24
    body = []
    for value, text in x.labelled_ticks(4):
        body.append(f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="0" y2="{height - 20}"/>')
        body.append(f'<text x="{x(value):.1f}" y="{height - 6}" text-anchor="middle">{text}</text>')
    if zero is not None and x.low <= zero <= x.high:
        body.append(f'<line class="aside" x1="{x(zero):.1f}" x2="{x(zero):.1f}" y1="0" y2="{height - 20}"/>')
    for k, name in enumerate(names):
        middle = _ROW * k + _ROW / 2
        shown = clipped(name, int(_MOST_NAMES * box.width / _CHARACTER))
        body.append(
            f'<text x="{x.begin - 8:g}" y="{middle + 4:g}" text-anchor="end">{escape(shown)}'
            f"<title>{escape(name)}</title></text>"
        )
        body += draw(k, middle)
    return svg(body, label, box.width, height)


def _bar(x: Axis, a: float, b: float, middle: float, colour: int) -> str:
    low, high = sorted((x(a), x(b)))
    size = f'width="{max(high - low, 0.5):.1f}" height="{_ROW - 8}"'
    return f'<rect class="bar s{colour}" x="{low:.1f}" y="{middle - _ROW / 2 + 4:g}" {size}/>'


def bars(names: Sequence[str], values: Sequence[float], label: str, *, box: Box = NORMAL) -> str:
    """Draw one horizontal bar per name."""
    x = axis_of([[0.0, *values]], _begin(box, names), box.width - box.right)
    return _by_row(names, x, label, lambda k, middle: [_bar(x, 0.0, values[k], middle, 0)], box, 0.0)


def intervals(
    names: Sequence[str],
    middles: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    label: str,
    *,
    box: Box = NORMAL,
) -> str:
    """Draw a point and a line from low to high for each name, and a vertical line at 0 if it is in range."""
    x = axis_of([middles, lows, highs], _begin(box, names), box.width - box.right)

    def draw(k: int, middle: float) -> list[str]:
        ends = f'x1="{x(lows[k]):.1f}" x2="{x(highs[k]):.1f}" y1="{middle:g}" y2="{middle:g}"'
        return [
            f'<line class="line s0" {ends}/>',
            f'<circle class="dot s0" cx="{x(middles[k]):.1f}" cy="{middle:g}" r="4"/>',
        ]

    return _by_row(names, x, label, draw, box, 0.0)


def waterfall(names: Sequence[str], steps: Sequence[float], start: float, label: str, *, box: Box = NORMAL) -> str:
    """Draw a waterfall chart of steps from `start` to their total, one row each, with colours by sign."""
    places = start + np.concatenate([[0.0], np.cumsum(steps)])
    x = axis_of([places], _begin(box, names), box.width - box.right)

    def draw(k: int, middle: float) -> list[str]:
        return [_bar(x, float(places[k]), float(places[k + 1]), middle, 0 if steps[k] >= 0 else 1)]

    return _by_row(names, x, label, draw, box, start)
