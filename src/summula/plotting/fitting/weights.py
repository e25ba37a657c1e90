"""Weight space: the plane of all weight vectors, in which rows are lines.

A hyperplane through the origin in x-space, {x : w'x = 0}, is a point w in w-space; a row x is a line there,

    {w : w'x = 0},      with the weights that classify it correctly on one side,      y w'x > 0.               (1)

The weights that classify all rows correctly are the intersection of these half-planes: a cone with its apex at the
origin, empty if the classes are not separable. With one column and a constant 1 as the second, the axes are slope and
intercept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, INK, axes, check_installed, colour, dress, key_text, keyed, marker

__all__ = ["weight_space"]

Array = NDArray[Any]

_MARGIN = 0.25  # around the weights, relative to their range
_TURN = 2 * np.pi


@inherit_docs(AXES)
def weight_space(
    X: Any,
    y: Any,
    weights: Any = None,
    *,
    intercept: bool = False,
    ax: Any = None,
) -> Any:
    """Plot rows as lines in weight space, and the cone of the weights that classify all of them correctly.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2), or (n_samples, 1) with `intercept`
        Rows; each is drawn as the line of weights orthogonal to it, with a tick on the side that classifies it
        correctly.
    y : array-like of shape (n_samples,)
        Labels of two classes; the larger one requires w'x > 0.
    weights : array-like of shape (n_weights, 2) or (2,), optional
        Weights to mark, connected in order, such as the iterates of a perceptron.
    intercept : bool, default=False
        Whether X has one column, to which a constant 1 is added: weights are then slope and intercept.

    Examples
    --------
    >>> from summula.plotting import weight_space
    >>> ax = weight_space([[1.0, 2.0], [-1.0, 1.0], [-2.0, -1.0]], [1, 1, -1], [[0.0, 0.0], [1.0, 2.0]])
    >>> ax.get_title()
    'weights in the cone classify all 3 rows correctly'
    """
    check_installed()
    rows, classes, signs = _rows(X, y, intercept)
    path = _path(weights)
    reach = (1 + _MARGIN) * (1.0 if path is None or not np.abs(path).max() else float(np.abs(path).max()))
    arc = _right_arc(rows * signs[:, None])

    ax = axes(ax)
    if arc is not None:
        fan = np.linspace(*arc, 65)
        corner = 2 * reach * np.column_stack([np.cos(fan), np.sin(fan)])
        ax.fill(*np.vstack([[0.0, 0.0], corner]).T, color=colour(2), alpha=0.25, lw=0, label="all rows correct")
    for k, name in enumerate(classes):
        _draw_lines(ax, rows[signs == 2 * k - 1], 2 * k - 1, reach, k, str(name))
    if path is not None:
        ax.plot(*path.T, color=INK, marker=marker(0), ms=3.5, lw=1.2, label="weights")
        ax.plot(*path[0], marker="o", ms=6, mfc="white", mec=INK, ls="none", zorder=4)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    ax.set_aspect("equal")
    what = "no weights classify all" if arc is None else "weights in the cone classify all"
    dress(ax, *(("slope", "intercept") if intercept else ("w0", "w1")), f"{what} {len(rows)} rows correctly")
    keyed(ax, corner=_corner(arc))
    return ax


def _corner(arc: tuple[float, float] | None) -> str:
    """Return the corner of the legend, opposite to the cone."""
    if arc is None:
        return "upper right"
    middle = (arc[0] + arc[1]) / 2
    return f"{'lower' if np.sin(middle) > 0 else 'upper'} {'left' if np.cos(middle) > 0 else 'right'}"


def _rows(X: Any, y: Any, intercept: bool) -> tuple[Array, Array, Array]:
    """Return the rows with two columns, the classes, and the sign of each row."""
    try:
        rows = np.asarray(X, np.float64)
    except (TypeError, ValueError):
        raise DataError("X is not numeric; weight_space needs rows of numbers.") from None
    width = 1 if intercept else 2
    if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
        kind = "one column, to which 1 is added" if intercept else "two columns"
        raise DataError(f"X has shape {rows.shape}; weight_space needs rows of {kind}.")
    if not np.isfinite(rows).all():
        raise DataError("X has NaN or infinite values; drop those rows.")
    labels = np.asarray(y).ravel()
    if len(labels) != len(rows):
        raise DataError(f"X has {len(rows)} rows but y has {len(labels)}; they must be equal.")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(f"y has {len(classes)} classes; weight_space needs two.")
    if intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return rows, classes, np.where(labels == classes[1], 1.0, -1.0)


def _path(weights: Any) -> Array | None:
    if weights is None:
        return None
    path = np.atleast_2d(np.asarray(weights, np.float64))
    if path.ndim != 2 or path.shape[1] != 2 or not len(path) or not np.isfinite(path).all():
        raise ParameterError(f"The 'weights' must be finite and of shape (n, 2) or (2,); got {path.shape}.")
    return path


def _right_arc(right: Array) -> tuple[float, float] | None:
    """Return the directions w with w'r > 0 for all r as an interval of angles, or None if there are none.

    Directions with w'r > 0 are within a quarter turn of r, so the interval is half a turn minus the arc spanned by all
    r.
    """
    if not right.any(axis=1).all():
        return None  # a row of zeros is on neither side
    angles = np.sort(np.arctan2(right[:, 1], right[:, 0]))
    gaps = np.diff(np.append(angles, angles[0] + _TURN))
    widest = int(np.argmax(gaps))
    if gaps[widest] <= np.pi:
        return None
    first = float(angles[(widest + 1) % len(angles)])
    span = _TURN - float(gaps[widest])
    return first + span - np.pi / 2, first + np.pi / 2


def _draw_lines(ax: Any, rows: Array, sign: float, reach: float, k: int, name: str) -> None:
    """Draw the lines of one class, with a tick towards the weights that classify the row correctly."""
    sizes = np.hypot(*rows.T)
    units = rows[sizes > 0] / sizes[sizes > 0, None]
    label = key_text(name)
    for unit in units:
        along = 2 * reach * np.array([-unit[1], unit[0]])
        ax.plot(*np.column_stack([-along, along]), color=colour(k), lw=1.0, alpha=0.8, label=label)
        label = "_"
        for end in (-0.42, 0.42):
            foot = end * along
            tip = foot + 0.06 * reach * sign * unit
            ax.plot(*np.column_stack([foot, tip]), color=colour(k), lw=1.0, alpha=0.8)
