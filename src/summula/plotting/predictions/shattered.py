"""Shattering: all labellings of some points in the plane, and a line for each that a half-plane realises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, colour, dress, keyed, marker

__all__ = ["shattering"]

Array = NDArray[Any]

_MOST = 64
_HALF = 0.42  # half the side of a panel; panels are one apart


@inherit_docs(AXES)
def shattering(points: Any, labels: Any, realized: Any, lines: Any = None, *, ax: Any = None) -> Any:
    """Plot labellings of points as small panels on one pair of axes, and mark those that no function realises.

    Parameters
    ----------
    points : array-like of shape (n, 2)
    labels : array-like of bool of shape (n_labellings, n)
        Labels of the points in each panel; at most 64 panels.
    realized : array-like of bool of shape (n_labellings,)
        Whether a function of the class has these labels; the others are crossed out.
    lines : array-like of shape (n_labellings, 3), optional
        Coefficients (w0, w1, b) of the line w'x + b = 0 that separates the labels; NaN for none.

    Examples
    --------
    >>> from summula.plotting import shattering
    >>> ax = shattering([[0, 0], [1, 0]], [[0, 0], [0, 1], [1, 0], [1, 1]], [True] * 4)
    >>> ax.get_title()
    'all 4 labellings of 2 points are realised'
    """
    check_installed()
    places, codes, possible = np.asarray(points, np.float64), np.asarray(labels, bool), np.asarray(realized, bool)
    if places.ndim != 2 or places.shape[1] != 2 or not len(places):
        raise DataError(f"points has shape {places.shape}; shattering draws points in the plane.")
    if codes.ndim != 2 or codes.shape[1] != len(places) or possible.shape != codes.shape[:1] or not len(codes):
        raise DataError(
            f"labels has shape {codes.shape} and realized {possible.shape}; expected (n_labellings, {len(places)}) and "
            "(n_labellings,)."
        )
    if len(codes) > _MOST:
        raise DataError(f"{len(codes)} labellings are too many for one plot; pass at most {_MOST} (6 points).")
    low, high = places.min(axis=0), places.max(axis=0)
    scale = 0.55 / max(float((high - low).max()), 1e-12)
    middle = (low + high) / 2
    across = next(k for k in range(int(np.ceil(np.sqrt(len(codes)))), len(codes) + 1) if len(codes) % k == 0)
    across = min(across, 8)
    ax = axes(ax)
    for k, (label, possible_here) in enumerate(zip(codes, possible, strict=True)):
        centre = np.array([k % across, -(k // across)], np.float64)
        line = None if lines is None else np.asarray(lines, np.float64)[k]
        artists = _draw_panel(
            ax, centre, (places - middle) * scale, label, bool(possible_here), _moved(line, middle, scale)
        )
        for artist in artists:
            artist.set_markersize(6.0 if across <= 5 else 3.5)
    ax.set_xlim(-0.5, across - 0.5)
    ax.set_ylim(-((len(codes) - 1) // across) - 0.5, 0.5)
    ax.set_aspect("equal")
    count, n = int(possible.sum()), len(places)
    what = "all" if count == len(codes) else f"{count} of"
    dress(ax, "", "", f"{what} {len(codes)} labellings of {n} point{'s' * (n != 1)} are realised")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    handles = [ax.plot([], [], marker=marker(c), color=colour(c), ls="none", label=str(c))[0] for c in (0, 1)]
    keyed(ax, handles, corner="upper left")
    ax.get_legend().set_bbox_to_anchor((1.0, 1.0))
    return ax


def _moved(line: Array | None, middle: Array, scale: float) -> Array | None:
    """Return the line in the coordinates of the panel."""
    if line is None or not np.isfinite(line).all() or not line[:2].any():
        return None
    return np.array([line[0] / scale, line[1] / scale, line[2] + line[:2] @ middle])


def _draw_panel(ax: Any, centre: Array, points: Array, label: Array, possible: bool, line: Array | None) -> list[Any]:
    """Draw one labelling, and return the points."""
    corner = centre + _HALF * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
    ax.plot(*corner.T, color=GREY if possible else colour(5), lw=0.6 if possible else 1.6, gid="panel")
    if line is not None:
        ends = _clipped(line)
        if len(ends) == 2:
            ax.plot(*(ends + centre).T, color=INK, lw=1.0, gid="line")
    if not possible:
        for way in (1, -1):
            cross = centre + _HALF * np.array([[-1, -way], [1, way]])
            ax.plot(*cross.T, color=colour(5), lw=0.8, alpha=0.6, gid="cross", zorder=1)
    return [
        ax.plot(*(points[label == c] + centre).T, marker=marker(c), color=colour(c), ls="none", zorder=3)[0]
        for c in (0, 1)
    ]


def _clipped(line: Array) -> Array:
    """Return the two points where a line leaves a panel, or fewer."""
    a, b, c = line
    found = []
    for side in (-_HALF, _HALF):
        if b and abs(y := -(a * side + c) / b) <= _HALF:
            found.append((side, y))
        if a and abs(x := -(b * side + c) / a) < _HALF:
            found.append((x, side))
    return np.array(found[:2]).reshape(-1, 2)
