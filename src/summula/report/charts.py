"""Small drawings as SVG text: lines, points, bars, intervals. Their colours come from the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Line", "bars", "histogram", "intervals", "lines", "points"]

Array = NDArray[Any]

_WIDTH, _HEIGHT = 360, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 10, 40
_MOST_POINTS = 1_500
_ROW = 22  # height of a bar or an interval
_NAME = 24  # characters of a name that are shown


class Line(NamedTuple):
    """A named line through points."""

    name: str
    x: Array
    y: Array


class _Axis(NamedTuple):
    """From numbers to places."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(k for k in (1, 2, 5, 10) if (self.high - self.low) / (step * k) <= 5)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _axis(values: Sequence[Any], begin: float, end: float, fixed: tuple[float, float] | None = None) -> _Axis:
    if fixed is not None:
        return _Axis(*fixed, begin, end)
    joined = np.concatenate([np.asarray(v, float).ravel() for v in values])
    low, high = (float(joined.min()), float(joined.max())) if len(joined) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = 0.03 * (high - low)
    return _Axis(low - room, high + room, begin, end)


def _text(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-12 else value:.4g}"


def _svg(body: list[str], label: str, height: float = _HEIGHT) -> str:
    head = f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(label)}">'
    return "".join([head, *body, "</svg>"])


def _frame(x: _Axis, y: _Axis, x_name: str, y_name: str) -> list[str]:
    bottom, body = _HEIGHT - _BOTTOM, []
    for value in x.ticks():
        body.append(f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{_TOP}" y2="{bottom}"/>')
        body.append(f'<text x="{x(value):.1f}" y="{bottom + 14}" text-anchor="middle">{_text(value)}</text>')
    for value in y.ticks():
        body.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        body.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{_text(value)}</text>')
    middle = (_TOP + bottom) / 2
    body.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:g}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x_name)}</text>'
    )
    body.append(f'<text transform="translate(12 {middle:g}) rotate(-90)" text-anchor="middle">{escape(y_name)}</text>')
    return body


def lines(
    drawn: Sequence[Line],
    x_name: str,
    y_name: str,
    fixed: tuple[float, float] | None = None,
    *,
    diagonal: bool = False,
    dots: bool = False,
) -> str:
    """Lines in one frame; `fixed` is the range of both axes, `diagonal` the line on which both are equal."""
    x = _axis([line.x for line in drawn], _LEFT, _WIDTH - _RIGHT, fixed)
    y = _axis([line.y for line in drawn], _HEIGHT - _BOTTOM, _TOP, fixed)
    body = _frame(x, y, x_name, y_name)
    if diagonal:
        body.append(_diagonal(x, y))
    for k, line in enumerate(drawn):
        places = [(x(float(a)), y(float(b))) for a, b in zip(line.x, line.y, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        body.append(f'<polyline class="line s{k % 6}" points="{path}"><title>{escape(line.name)}</title></polyline>')
        if dots:
            body += [f'<circle class="dot s{k % 6}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in places]
    if len(drawn) > 1:
        body += _legend([line.name for line in drawn])
    return _svg(body, f"{y_name} over {x_name}")


def _diagonal(x: _Axis, y: _Axis) -> str:
    low, high = max(x.low, y.low), min(x.high, y.high)
    return f'<line class="aside" x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(high):.1f}" y2="{y(high):.1f}"/>'


def _legend(names: Sequence[str]) -> list[str]:
    """Names of lines, at the lower right, where curves of this kind leave room."""
    body = []
    for k, name in enumerate(names):
        height = _HEIGHT - _BOTTOM - 10 - 16 * (len(names) - 1 - k)
        body.append(f'<rect class="dot s{k % 6}" x="{_WIDTH - 160}" y="{height - 8}" width="10" height="10"/>')
        body.append(f'<text x="{_WIDTH - 145}" y="{height + 1}">{escape(name[:22])}</text>')
    return body


def points(
    px: Array, py: Array, x_name: str, y_name: str, *, diagonal: bool = False, level: float | None = None
) -> str:
    """Points in a frame; of many an even choice. `level` draws a horizontal line."""
    step = max(1, -(-len(px) // _MOST_POINTS))
    px, py = px[::step], py[::step]
    x, y = _axis([px], _LEFT, _WIDTH - _RIGHT), _axis([py], _HEIGHT - _BOTTOM, _TOP)
    body = _frame(x, y, x_name, y_name)
    if diagonal and max(x.low, y.low) < min(x.high, y.high):
        body.append(_diagonal(x, y))
    if level is not None and y.low < level < y.high:
        ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(level):.1f}" y2="{y(level):.1f}"'
        body.append(f'<line class="aside" {ends}/>')
    for a, b in zip(px.tolist(), py.tolist(), strict=True):
        body.append(f'<circle class="point s0" cx="{x(a):.1f}" cy="{y(b):.1f}" r="2"/>')
    return _svg(body, f"{y_name} over {x_name}")


def histogram(values: Array, x_name: str) -> str:
    """How often values occur, in equal steps."""
    counts, edges = np.histogram(values, bins=min(30, max(5, round(math.sqrt(len(values))))))
    x = _axis([edges], _LEFT, _WIDTH - _RIGHT)
    y = _axis([], _HEIGHT - _BOTTOM, _TOP, (0.0, float(counts.max()) * 1.05))
    body = _frame(x, y, x_name, "rows")
    for count, a, b in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        size = f'width="{max(x(b) - x(a) - 1, 0.5):.1f}" height="{y(0.0) - y(count):.1f}"'
        body.append(f'<rect class="bar s0" x="{x(a):.1f}" y="{y(count):.1f}" {size}/>')
    return _svg(body, f"rows over {x_name}")


def _by_row(
    names: Sequence[str], x: _Axis, label: str, draw: Callable[[int, float], list[str]], zero: float | None
) -> str:
    height = _ROW * len(names) + 24
    body = []
    for value in x.ticks():
        body.append(f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="0" y2="{height - 20}"/>')
        body.append(f'<text x="{x(value):.1f}" y="{height - 6}" text-anchor="middle">{_text(value)}</text>')
    if zero is not None and x.low <= zero <= x.high:
        body.append(f'<line class="aside" x1="{x(zero):.1f}" x2="{x(zero):.1f}" y1="0" y2="{height - 20}"/>')
    for k, name in enumerate(names):
        middle = _ROW * k + _ROW / 2
        shown = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
        body.append(
            f'<text x="134" y="{middle + 4:g}" text-anchor="end">{escape(shown)}<title>{escape(name)}</title></text>'
        )
        body += draw(k, middle)
    return _svg(body, label, height)


def bars(names: Sequence[str], values: Sequence[float], label: str) -> str:
    """A horizontal bar a name."""
    x = _axis([[0.0, *values]], 142, _WIDTH - _RIGHT)

    def draw(k: int, middle: float) -> list[str]:
        a, b = sorted((x(0.0), x(values[k])))
        size = f'width="{max(b - a, 0.5):.1f}" height="{_ROW - 8}"'
        return [f'<rect class="bar s0" x="{a:.1f}" y="{middle - _ROW / 2 + 4:g}" {size}/>']

    return _by_row(names, x, label, draw, 0.0)


def intervals(
    names: Sequence[str], middles: Sequence[float], lows: Sequence[float], highs: Sequence[float], label: str
) -> str:
    """A point and a line from low to high for each name; a line at 0 where that is in sight."""
    x = _axis([middles, lows, highs], 142, _WIDTH - _RIGHT)

    def draw(k: int, middle: float) -> list[str]:
        ends = f'x1="{x(lows[k]):.1f}" x2="{x(highs[k]):.1f}" y1="{middle:g}" y2="{middle:g}"'
        return [
            f'<line class="line s0" {ends}/>',
            f'<circle class="dot s0" cx="{x(middles[k]):.1f}" cy="{middle:g}" r="4"/>',
        ]

    return _by_row(names, x, label, draw, 0.0)
