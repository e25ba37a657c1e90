"""Value functions and policies on a grid of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, dress

__all__ = ["policy_grid"]

_MOST_NUMBERS = 150  # states up to which values are written into the cells
_COMPASS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # up, right, down, left


@inherit_docs(AXES)
def policy_grid(
    values: Any,
    shape: tuple[int, int],
    *,
    policy: Any = None,
    arrows: Sequence[tuple[float, float]] = _COMPASS,
    hidden: Any = None,
    ax: Any = None,
) -> Any:
    """Plot a value function as colours and a policy as arrows, for states that form a grid.

    Parameters
    ----------
    values : array-like of shape (S,)
        Values of the states, row by row from the top; further states, such as an end, are ignored.
    shape : tuple of int
        Numbers of rows and columns.
    policy : array-like of shape (S,), optional
        Action of each state.
    arrows : sequence of (float, float), default up, right, down, left
        Direction (to the right, up) of each action; (0, 0) is a dot.
    hidden : array-like of bool of shape (rows * columns,), optional
        States without colour or arrow, such as walls.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> from summula.plotting import policy_grid
    >>> ax = policy_grid([0.0, 1.0, 2.0, 0.5, 1.5, 2.5], (2, 3), policy=[1, 1, 2, 1, 1, 0])
    >>> len(ax.texts)
    6
    >>> pyplot.close(ax.figure)
    """
    check_installed()
    rows, columns = shape
    V = np.asarray(values, np.float64)
    if V.ndim != 1 or len(V) < rows * columns:
        raise DataError(f"values has shape {V.shape}; a grid of {rows} x {columns} needs {rows * columns} values.")
    skip = np.zeros(rows * columns, bool) if hidden is None else np.asarray(hidden, bool).ravel()
    if len(skip) != rows * columns:
        raise DataError(f"hidden has {len(skip)} entries; a grid of {rows} x {columns} needs {rows * columns}.")
    shown = np.where(skip, np.nan, V[: rows * columns]).reshape(rows, columns)
    ax = axes(ax)
    image = ax.imshow(shown, cmap="Blues", interpolation="nearest")
    image.set_clim(np.nanmin(shown), np.nanmin(shown) + 1.6 * max(np.ptp(shown[~np.isnan(shown)]), 1e-12))
    if policy is not None:
        _draw_arrows(ax, np.asarray(policy)[: rows * columns], skip, columns, np.asarray(arrows, np.float64))
    if rows * columns <= _MOST_NUMBERS:
        for s in np.flatnonzero(~skip):
            i, j = divmod(int(s), columns)
            ax.text(j, i + 0.32, f"{V[s]:.3g}", ha="center", va="center", fontsize=7.0, color=INK)
    ax.set_facecolor(GREY)
    ax.set_xticks(np.arange(columns) if columns <= 20 else [])
    ax.set_yticks(np.arange(rows) if rows <= 20 else [])
    dress(ax, "column", "row")
    return ax


def _draw_arrows(ax: Any, policy: Any, skip: Any, columns: int, arrows: Any) -> None:
    """Draw the direction of each state's action in the middle of its cell."""
    states = np.flatnonzero(~skip[: len(policy)])
    if len(states) and (policy[states].min() < 0 or policy[states].max() >= len(arrows)):
        raise DataError(f"The policy has actions up to {policy[states].max()}, but there are {len(arrows)} arrows.")
    direction = 0.5 * arrows[policy[states]]
    y, x = np.divmod(states, columns)
    still = ~direction.any(axis=1)
    ax.scatter(x[still], y[still] - 0.08, s=8.0, color=INK)
    moving, d = ~still, direction[~still]
    # The vertical axis of an image points down.
    at = (x[moving] - d[:, 0] / 2, y[moving] - 0.08 + d[:, 1] / 2)
    ax.quiver(*at, d[:, 0], -d[:, 1], angles="xy", scale_units="xy", scale=1.0, color=INK, width=0.006)
