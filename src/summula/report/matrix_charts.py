"""Matrices of coloured cells as SVG text: confusion matrices, correlations, fractions of missing values."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.report.axes import NORMAL, Box, clipped, svg

__all__ = ["matrix"]

_FADED = 0.6  # opacity above which text on a cell is light
_CHARACTER = 7.0
_SLANTED = 66.0  # height of slanted names of columns


def matrix(
    shades: NDArray[Any],
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
    *,
    texts: Sequence[Sequence[str]] | None = None,
    titles: tuple[str, str] = ("", ""),
    box: Box = NORMAL,
) -> str:
    """Draw cells shaded by values in [-1, 1]; negative ones have another colour.

    Parameters
    ----------
    shades : ndarray of shape (n_rows, n_columns)
        NaN leaves a cell empty.
    rows, columns : sequence of str
        Names; an empty list leaves them out.
    label : str
        Label for screen readers.
    texts : sequence of sequences of str, optional
        Texts of the cells.
    titles : tuple of str
        Titles of the rows and the columns.
    box : Box
    """
    n, m = shades.shape
    left = min(0.35 * box.width, 14 + _CHARACTER * max((len(name) for name in rows), default=0)) + 8
    left += 16 if titles[0] else 0
    longest = max((len(name) for name in columns), default=-1) + 1  # with a space between names
    slanted = longest * _CHARACTER > (box.width - left - box.right) / m
    top = (_SLANTED if slanted else 20.0 if columns else 4.0) + (16 if titles[1] else 0)
    right = 34.0 if slanted else box.right
    wide = (box.width - left - right) / m
    high = min(max(wide, 18.0), 40.0, max(220.0 / n, 18.0))
    body = _names(rows, columns, left, top, wide, high, slanted)
    if titles[0]:
        turned = f'transform="translate(11 {top + n * high / 2:g}) rotate(-90)"'
        body.append(f'<text {turned} text-anchor="middle">{escape(titles[0])}</text>')
    if titles[1]:
        body.append(f'<text x="{left + m * wide / 2:g}" y="11" text-anchor="middle">{escape(titles[1])}</text>')
    body += _cells(shades, texts, left, top, wide, high)
    size = f'width="{m * wide:.1f}" height="{n * high:.1f}"'
    body.append(f'<rect class="edge" x="{left - 0.5:.1f}" y="{top - 0.5:.1f}" {size}/>')
    return svg(body, label, box.width, top + n * high + 4)


def _names(
    rows: Sequence[str], columns: Sequence[str], left: float, top: float, wide: float, high: float, slanted: bool
) -> list[str]:
    body = []
    for i, name in enumerate(rows):
        shown = clipped(name, max(int((left - 8) / _CHARACTER), 3))
        place = f'x="{left - 6:.1f}" y="{top + (i + 0.5) * high + 4:.1f}"'
        body.append(f'<text {place} text-anchor="end">{escape(shown)}<title>{escape(name)}</title></text>')
    for j, name in enumerate(columns):
        x, y = left + (j + 0.5) * wide, top - 6
        if slanted:
            shown, turned = clipped(name, 12), f'transform="translate({x:.1f} {y:.1f}) rotate(-45)"'
            body.append(f"<text {turned}>{escape(shown)}<title>{escape(name)}</title></text>")
        else:
            body.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(name)}</text>')
    return body


def _cells(
    shades: NDArray[Any],
    texts: Sequence[Sequence[str]] | None,
    left: float,
    top: float,
    wide: float,
    high: float,
) -> list[str]:
    body = []
    for (i, j), shade in np.ndenumerate(shades):
        if np.isnan(shade):
            continue
        x, y = left + j * wide, top + i * high
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(wide - 1, 0.5):.1f}" height="{max(high - 1, 0.5):.1f}"'
        if abs(shade) > 0.004:
            body.append(f'<rect class="bar s{int(shade < 0)}" fill-opacity="{min(abs(shade), 1.0):.2f}" {size}/>')
        if texts is not None:
            tone = "on" if abs(shade) > _FADED else "off"
            place = f'x="{x + wide / 2:.1f}" y="{y + high / 2 + 4:.1f}"'
            body.append(f'<text class="{tone}" {place} text-anchor="middle">{escape(texts[i][j])}</text>')
    return body
