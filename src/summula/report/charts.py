"""Charts with two numeric axes as SVG text: lines, points, histograms. Colours come from the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.report.axes import NORMAL, Axis, Box, Ticks, axis_of, date_ticks, frame, legend, svg
from summula.report.row_charts import bars, intervals, waterfall

__all__ = ["Line", "Scale", "bars", "histogram", "intervals", "lines", "points", "waterfall"]

Array = NDArray[Any]
Range = tuple[float, float]

_MOST_POINTS = 1_500


class Line(NamedTuple):
    """A named line through points."""

    name: str
    x: Array
    y: Array


class Scale(NamedTuple):
    """An axis: its name, its range, and for a horizontal axis its ticks (places and labels); None derives them."""

    name: str
    range: Range | None = None
    ticks: Ticks | None = None


def lines(
    drawn: Sequence[Line],
    x_scale: Scale,
    y_scale: Scale,
    *,
    diagonal: bool = False,
    dots: bool = False,
    mark: float | None = None,
    box: Box = NORMAL,
) -> str:
    """Draw lines in one frame.

    Parameters
    ----------
    drawn : sequence of Line
    x_scale, y_scale : Scale
    diagonal : bool
        Whether to draw the diagonal.
    dots : bool
        Whether to draw the points.
    mark : float, optional
        Position of a vertical line.
    box : Box
    """
    names, above = legend([line.name for line in drawn], box) if len(drawn) > 1 else ([], 0.0)
    box = box.lowered(above)
    x = axis_of([line.x for line in drawn], box.left, box.width - box.right, x_scale.range)
    y = axis_of([line.y for line in drawn], box.height - box.bottom, box.top, y_scale.range)
    body = [*names, *frame(box, x, y, x_scale.name, y_scale.name, ticks=x_scale.ticks)]
    if diagonal:
        body.append(_diagonal(x, y))
    if mark is not None and x.low <= mark <= x.high:
        ends = f'x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{box.top:g}" y2="{box.height - box.bottom:g}"'
        body.append(f'<line class="aside" {ends}/>')
    for k, line in enumerate(drawn):
        places = [(x(float(a)), y(float(b))) for a, b in zip(line.x, line.y, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        body.append(f'<polyline class="line s{k % 6}" points="{path}"><title>{escape(line.name)}</title></polyline>')
        if dots:
            body += [f'<circle class="dot s{k % 6}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in places]
    return svg(body, f"{y_scale.name} over {x_scale.name}", box.width, box.height)


def _diagonal(x: Axis, y: Axis) -> str:
    low, high = max(x.low, y.low), min(x.high, y.high)
    return f'<line class="aside" x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(high):.1f}" y2="{y(high):.1f}"/>'


def points(
    px: Array,
    py: Array,
    x_name: str,
    y_name: str,
    *,
    diagonal: bool = False,
    level: float | None = None,
    groups: Array | None = None,
    names: Sequence[str] = (),
    box: Box = NORMAL,
) -> str:
    """Draw points, evenly thinned if many; `level` draws a horizontal line; `groups` index the colours of `names`."""
    keys, by = legend(names, box) if len(names) > 1 else ([], 0.0)
    box = box.lowered(by)
    groups = np.zeros(len(px), np.intp) if groups is None else groups
    step = max(1, -(-len(px) // _MOST_POINTS))
    px, py, groups = px[::step], py[::step], groups[::step]
    x, y = axis_of([px], box.left, box.width - box.right), axis_of([py], box.height - box.bottom, box.top)
    body = [*keys, *frame(box, x, y, x_name, y_name)]
    if diagonal and max(x.low, y.low) < min(x.high, y.high):
        body.append(_diagonal(x, y))
    if level is not None and y.low < level < y.high:
        ends = f'x1="{box.left:g}" x2="{box.width - box.right:g}" y1="{y(level):.1f}" y2="{y(level):.1f}"'
        body.append(f'<line class="aside" {ends}/>')
    for a, b, group in zip(px.tolist(), py.tolist(), groups.tolist(), strict=True):
        body.append(f'<circle class="point s{group % 6}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="2"/>')
    return svg(body, f"{y_name} over {x_name}", box.width, box.height)


def histogram(
    values: Array | Sequence[Array],
    x_name: str,
    *,
    names: Sequence[str] = (),
    box: Box = NORMAL,
    whole: bool = False,
    dates: bool = False,
) -> str:
    """Draw a histogram with bins of equal width.

    Parameters
    ----------
    values : ndarray, or sequence of ndarray
        Several arrays are stacked, one colour each.
    x_name : str
    names : sequence of str
        Names of several arrays, for the legend.
    box : Box
    whole : bool
        Whether values are integers; bins then contain the same number of them.
    dates : bool
        Whether values are days since 1970, to be labelled as dates.
    """
    groups = [values] if isinstance(values, np.ndarray) else list(values)
    edges = _edges(np.concatenate(groups), whole)
    counts = np.array([np.histogram(group, edges)[0] for group in groups])
    keys, above = legend(names, box) if names else ([], 0.0)
    box = box.lowered(above)
    x = axis_of([edges], box.left, box.width - box.right)
    y = Axis(0.0, float(max(counts.sum(axis=0).max(), 1)) * 1.05, box.height - box.bottom, box.top)
    ticks = date_ticks(float(edges[0]), float(edges[-1]), box) if dates else None
    body = [*keys, *frame(box, x, y, x_name, "rows", ticks=ticks)]
    below = np.zeros(len(edges) - 1)
    for k, row in enumerate(counts):
        for count, base, a, b in zip(
            row.tolist(), below.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True
        ):
            if count:
                size = f'width="{max(x(b) - x(a) - 1, 0.5):.1f}" height="{y(0.0) - y(count):.1f}"'
                body.append(f'<rect class="bar s{k % 6}" x="{x(a):.1f}" y="{y(base + count):.1f}" {size}/>')
        below += row
    return svg(body, f"rows over {x_name}", box.width, box.height)


def _edges(values: Array, whole: bool) -> Array:
    """Return bin edges: about the square root of the number of rows, at most 30."""
    low, high = float(values.min()), float(values.max())
    wanted = min(30, max(5, round(math.sqrt(len(values)))))
    if whole and high - low < 1e9:
        step = max(1, -(-int(high - low + 1) // wanted))
        return np.arange(low - 0.5, high + 0.5 + step, step)
    return np.asarray(np.histogram_bin_edges(values, wanted))
