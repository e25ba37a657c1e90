"""Value functions and policies on a grid of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, colour_bar, dress

__all__ = ["value_grid"]

Array = NDArray[Any]

_MOST_NUMBERS = 200  # number of cells up to which the values are written
_STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left, as (rows, columns)


@inherit_docs(AXES)
def value_grid(
    values: Any,
    policy: Any = None,
    *,
    steps: Sequence[tuple[float, float]] = _STEPS,
    numbers: bool = True,
    ax: Any = None,
) -> Any:
    """Plot a value function on a grid as a heat map, and a policy as arrows.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        Value of each state; NaN for cells that are not states, such as walls.
    policy : array-like of int of shape (n_rows, n_columns), optional
        Action of each state, an index into `steps`; negative if there is none, as in final states.
    steps : sequence of pairs (rows, columns), default=((-1, 0), (0, 1), (1, 0), (0, -1))
        Direction of each action; by default up, right, down, left. (0, 0) is drawn as a point.
    numbers : bool, default=True
        Whether to write the values into the cells, up to 200 of them.

    Examples
    --------
    >>> from summula.plotting import value_grid
    >>> ax = value_grid([[0.8, 0.9, 1.0], [0.7, float("nan"), -1.0]], [[1, 1, -1], [0, -1, -1]])
    >>> [text.get_text() for text in ax.texts if text.get_text()]
    ['0.8', '0.9', '1', '0.7', '-1']
    """
    check_installed()
    from matplotlib import colormaps

    V = _values(values)
    arrows = _arrows(policy, V, np.asarray(steps, np.float64).reshape(-1, 2))
    ax = axes(ax)
    shades = colormaps["cividis"].with_extremes(bad=GREY)
    image = ax.imshow(np.ma.masked_invalid(V), cmap=shades, interpolation="nearest")
    low, high = float(np.nanmin(V)), float(np.nanmax(V))
    written = numbers and V.size <= _MOST_NUMBERS
    shift = 0.18 if written and len(arrows) else 0.0
    for r, c, down, right in arrows:
        look = {"color": _ink(V[int(r), int(c)], low, high)}
        if down == right == 0:
            ax.plot(c, r + shift, marker="o", ms=4, **look)
        else:
            size = 0.5 * np.array([right, down]) / np.hypot(right, down) * (0.9 if shift else 1.3)
            head = {"arrowstyle": "-|>", "lw": 1.2, "shrinkA": 0, "shrinkB": 0, **look}
            middle = np.array([c, r + shift])
            ax.annotate("", middle + size / 2, middle - size / 2, arrowprops=head)
    if written:
        for (r, c), value in np.ndenumerate(V):
            if np.isfinite(value):
                place = {"ha": "center", "va": "center", "color": _ink(value, low, high)}
                ax.text(c, r - (0.25 if shift else 0.0), f"{value:.3g}", fontsize=7.5, **place)
    for axis, size in ((ax.xaxis, V.shape[1]), (ax.yaxis, V.shape[0])):
        if size <= 20:
            axis.set_ticks(np.arange(size))
    dress(ax, "column", "row")
    colour_bar(ax, image, "value")
    return ax


def _values(values: Any) -> Array:
    try:
        V = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError("The values of value_grid must be numbers.") from None
    if V.ndim != 2 or not V.size:
        raise DataError(
            f"The values of value_grid have shape {V.shape}; expected (n_rows, n_columns): reshape the values of all "
            "states to the grid."
        )
    if not np.isfinite(V).any():
        raise DataError("The values of value_grid are all missing or infinite.")
    return np.where(np.isfinite(V), V, np.nan)


def _arrows(policy: Any, V: Array, steps: Array) -> Array:
    """Return row, column and direction of the action of each state that has one."""
    if policy is None:
        return np.empty((0, 4))
    actions = np.asarray(policy)
    if actions.shape != V.shape or actions.dtype.kind not in "iu":
        raise ParameterError(
            f"The policy of value_grid must contain one int per cell, of shape {V.shape}; got {actions.dtype} of shape "
            f"{actions.shape}."
        )
    if actions.max() >= len(steps):
        raise ParameterError(
            f"The policy has action {int(actions.max())}, but there are {len(steps)} steps: pass steps=."
        )
    places = np.argwhere((actions >= 0) & np.isfinite(V))
    return np.hstack([places.astype(np.float64), steps[actions[tuple(places.T)]]])


def _ink(value: float, low: float, high: float) -> str:
    """Return a text colour that is legible on the colour of a value."""
    return INK if high == low or (value - low) / (high - low) > 0.55 else "white"
