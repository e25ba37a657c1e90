"""The path of a solver over the contours of its objective.

Levels are denser near the minimum, where contours would otherwise be far apart: above the smallest value in the plot
they grow quadratically, which for a quadratic gives equally spaced ellipses,

    level_i = f_min + (i / n)^2 (f_top - f_min),      i = 1, 2, ...                                            (1)

with f_top the largest value on a path, so that n contours are below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, colour, dress, key_text, keyed, marker

__all__ = ["descent_path"]

Array = NDArray[np.float64]

_MARGIN = 0.15  # relative to the range of the points
_LEVELS = 8  # number of contours below the largest value on the paths
_MOST = 24
_MANY = 60  # number of points above which no markers are drawn


@inherit_docs(AXES)
def descent_path(
    f: Callable[[Any], Any],
    *solutions: Any,
    labels: Sequence[str] | None = None,
    margin: float = _MARGIN,
    resolution: int = 160,
    ax: Any = None,
) -> Any:
    """Plot the iterates of solvers over the contours of a function of two variables.

    Parameters
    ----------
    f : callable
        Objective, x -> number, for an array x of shape (2,).
    *solutions : Solution
        Solutions with a `path` of points in two dimensions, as returned by the solvers of `summula.optimize`.
    labels : sequence of str, optional
        Names for the legend.
    margin : float, default=0.15
        Margin around the points, relative to their range.
    resolution : int, default=160
        Number of grid points along each axis.

    Examples
    --------
    >>> from summula.optimize import bfgs, gradient_descent
    >>> from summula.plotting import descent_path
    >>> def f(x):
    ...     return x[0] ** 2 / 2 + 5 * x[1] ** 2
    >>> ax = descent_path(f, gradient_descent(f, [5.0, 1.0]), bfgs(f, [5.0, 1.0]), labels=["descent", "BFGS"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['descent', 'BFGS']
    """
    check_installed()
    if not solutions:
        raise ParameterError("descent_path needs at least one Solution.")
    if labels is not None and (isinstance(labels, str) or len(labels) != len(solutions)):
        raise ParameterError(f"The 'labels' of descent_path must be {len(solutions)} names, one each, not {labels!r}.")
    if isinstance(resolution, bool) or not isinstance(resolution, int | np.integer) or resolution < 2:
        raise ParameterError(f"The 'resolution' of descent_path must be an int >= 2, not {resolution!r}.")
    paths = [_points(solution, place) for place, solution in enumerate(solutions)]
    u, v = _grid(np.vstack(paths), float(margin), int(resolution))
    heights = np.array([[_height(f, a, b) for a in u] for b in v])

    ax = axes(ax)
    _draw_contours(ax, u, v, heights, max(_height(f, *point) for point in np.vstack(paths)))
    for k, path in enumerate(paths):
        name = f"solution {k + 1}" if labels is None else key_text(labels[k])
        mark = marker(k) if len(path) <= _MANY else None
        ax.plot(path[:, 0], path[:, 1], color=colour(k), marker=mark, ms=3.5, lw=1.4, label=name)
    ax.plot(*paths[0][0], marker="o", ms=6, mfc="white", mec=INK, ls="none", zorder=4)
    ax.set_xlim(u[0], u[-1])
    ax.set_ylim(v[0], v[-1])
    dress(ax, "x0", "x1")
    if len(solutions) > 1 or labels is not None:
        keyed(ax, corner="best")
    return ax


def _points(solution: Any, place: int) -> Array:
    """Return the path of a solution as an array of shape (n, 2)."""
    path = getattr(solution, "path", None)
    if path is None:
        raise ParameterError(f"{type(solution).__name__} has no path; descent_path needs a Solution.")
    if not len(path):
        raise DataError(
            f"The path of solution {place + 1} is empty: solvers store iterates in few dimensions only; plot its "
            "trace with convergence."
        )
    points = np.array([np.ravel(point) for point in path], np.float64)
    if points.shape[1] != 2:
        raise DataError(
            f"The points of solution {place + 1} have {points.shape[1]} coordinates, but a plot needs two; plot its "
            "trace with convergence."
        )
    return points[np.isfinite(points).all(axis=1)]


def _grid(points: Array, margin: float, resolution: int) -> tuple[Array, Array]:
    """Return the grid points of both axes: the range of all paths with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    # A path along one axis still needs some extent along the other.
    wide = np.maximum(high - low, 0.2 * max(float((high - low).max()), 1e-3))
    middle = (low + high) / 2
    low, high = middle - (0.5 + margin) * wide, middle + (0.5 + margin) * wide
    return np.linspace(low[0], high[0], resolution), np.linspace(low[1], high[1], resolution)


def _height(f: Callable[[Any], Any], a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.asarray(f(np.array([a, b])), np.float64).reshape(()))


def _draw_contours(ax: Any, u: Array, v: Array, heights: Array, top: float) -> None:
    """Draw the contours (1)."""
    finite = heights[np.isfinite(heights)]
    if not len(finite):
        raise DataError("f has no finite value near the paths; descent_path cannot draw contours.")
    low, high = float(finite.min()), float(finite.max())
    if high > low:
        top = top if low < top <= high else high
        levels = low + (np.arange(1, _MOST + 1) / _LEVELS) ** 2 * (top - low)  # (1)
        shown = np.where(np.isfinite(heights), heights, np.nan)
        ax.contour(u, v, shown, levels=levels[levels < high], colors=GREY, linewidths=0.6, alpha=0.7)
