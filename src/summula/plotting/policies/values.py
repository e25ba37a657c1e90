"""Value functions and policies: of numbered states, and of continuous states with one or two coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import (
    AXES,
    GREY,
    INK,
    axes,
    check_installed,
    colour,
    colour_bar,
    dress,
    key_text,
    keyed,
    legend_outside,
    marker,
)

__all__ = ["episode_returns", "horizon_values", "state_values", "value_function"]

Array = NDArray[Any]

_MOST_NUMBERS = 400  # number of cells up to which actions are written
_MOST_ACTIONS = 8  # number of actions that have colours of their own


@inherit_docs(AXES)
def state_values(values: Any, policy: Any = None, *, lower: Any = None, upper: Any = None, ax: Any = None) -> Any:
    """Plot the values of numbered states, in the colours of their actions, with bounds as bars.

    Parameters
    ----------
    values : array-like of shape (n_states,)
    policy : array-like of int of shape (n_states,), optional
        Action in each state.
    lower, upper : array-like of shape (n_states,), optional
        Bounds on the values.

    Examples
    --------
    >>> from summula.plotting import state_values
    >>> ax = state_values([1.0, 2.0, 4.0], [0, 1, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['action 0', 'action 1']
    """
    check_installed()
    heights = np.asarray(values, np.float64)
    if heights.ndim != 1 or not len(heights):
        raise DataError(f"The values of state_values have shape {heights.shape}; expected one per state.")
    actions = np.zeros(len(heights), np.int64) if policy is None else np.asarray(policy)
    if actions.shape != heights.shape or actions.dtype.kind not in "iu":
        raise DataError(f"The policy must have one int for each of {len(heights)} states.")
    ax, places = axes(ax), np.arange(len(heights))
    if lower is not None and upper is not None and np.isfinite(lower).all() and np.isfinite(upper).all():
        ax.vlines(places, lower, upper, color=INK, lw=1.0, zorder=1)
    for a in np.unique(actions).tolist():
        here = actions == a
        look = {"s": 26 if len(heights) <= 100 else 8, "color": colour(a), "marker": marker(a), "linewidths": 0}
        ax.scatter(places[here], heights[here], label=f"action {a}", rasterized=len(heights) > 5_000, zorder=2, **look)
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "state", "value")
    if policy is not None:
        keyed(ax)
        legend_outside(ax)
    return ax


@inherit_docs(AXES)
def horizon_values(values: Any, policy: Any, *, ax: Any = None) -> Any:
    """Plot the values of numbered states at each step of a finite horizon, with the numbers of the best actions.

    Parameters
    ----------
    values : array-like of shape (horizon + 1, n_states)
    policy : array-like of int of shape (horizon, n_states)
        Actions, written into up to 400 cells.

    Examples
    --------
    >>> from summula.plotting import horizon_values
    >>> ax = horizon_values([[1.0, 2.0], [0.0, 0.0]], [[0, 1]])
    >>> [text.get_text() for text in ax.texts], ax.get_xlabel()
    (['0', '1'], 'step')
    """
    check_installed()
    V, actions = np.asarray(values, np.float64), np.asarray(policy)
    if V.ndim != 2 or not V.size or actions.shape != (len(V) - 1, V.shape[1]):
        raise DataError(f"values has shape {V.shape} and policy {actions.shape}; expected (H + 1, S) and (H, S).")
    ax = axes(ax)
    image = ax.imshow(V.T, cmap="cividis", aspect="auto", interpolation="nearest")
    middle = (V.min() + V.max()) / 2
    if actions.size <= _MOST_NUMBERS:
        for (t, s), a in np.ndenumerate(actions):
            ink = INK if V[t, s] > middle or V.min() == V.max() else "white"
            ax.text(t, s, str(a), ha="center", va="center", fontsize=7.5, color=ink)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(integer=True)
    dress(ax, "step", "state", "numbers are actions" if actions.size <= _MOST_NUMBERS else "")
    colour_bar(ax, image, "value")
    return ax


@inherit_docs(AXES)
def value_function(
    sides: Sequence[Any],
    values: Any,
    actions: Any = None,
    *,
    labels: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot a value function of one or two coordinates, and the regions of the actions of a policy.

    Parameters
    ----------
    sides : sequence of one or two ascending arrays
        Coordinates of a grid along each axis.
    values : array-like of shape (len(sides[0]),) or (len(sides[0]), len(sides[1]))
    actions : array-like of int of the same shape, optional
        Number of the action at each point. One coordinate: the colour of the background; two: lines between regions,
        and a legend of their numbers.
    labels : sequence, optional
        Names of the actions; by default their numbers.
    names : sequence of str, optional
        Names of the coordinates; by default s0, s1.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.plotting import value_function
    >>> x = np.linspace(-1, 1, 21)
    >>> ax = value_function([x], -(x**2), (x < 0).astype(int), labels=["left", "right"])
    >>> ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('value', ['left', 'right'])
    """
    check_installed()
    grid = [np.asarray(side, np.float64) for side in sides]
    V = np.asarray(values, np.float64)
    shape = tuple(len(side) for side in grid)
    if len(grid) not in (1, 2) or V.shape != shape or min(shape) < 2:
        raise DataError(
            f"The values of value_function have shape {V.shape} for a grid of {shape}; it draws one or two coordinates "
            "with at least two points each."
        )
    chosen = None if actions is None else np.asarray(actions)
    if chosen is not None and chosen.shape != shape:
        raise DataError(f"The actions of value_function have shape {chosen.shape}; expected {shape}.")
    known = [] if chosen is None else np.unique(chosen).tolist()
    texts = {a: str(a) if labels is None else key_text(labels[a]) for a in known}
    words = list(names) if names is not None else [f"s{j}" for j in range(len(grid))]
    ax = axes(ax)
    draw = _draw_line if len(grid) == 1 else _draw_plane
    draw(ax, grid, V, chosen, texts, words)
    return ax


def _draw_line(ax: Any, grid: list[Array], V: Array, chosen: Array | None, texts: dict[int, str], words: Any) -> None:
    x = grid[0]
    if chosen is not None:
        ends = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
        starts = np.flatnonzero(np.append(True, np.diff(chosen) != 0))
        for first, after in zip(starts, np.append(starts[1:], len(x)), strict=True):
            shade = colour(list(texts).index(int(chosen[first])))
            ax.axvspan(ends[first], ends[after], color=shade, alpha=0.25, lw=0)
    ax.plot(x, V, color=INK, lw=1.6)
    ax.set_xlim(x[0], x[-1])
    dress(ax, words[0], "value")
    _key(ax, texts, 0.25)


def _draw_plane(ax: Any, grid: list[Array], V: Array, chosen: Array | None, texts: dict[int, str], words: Any) -> None:
    shades = ax.pcolormesh(grid[0], grid[1], V.T, cmap="cividis", shading="nearest", rasterized=True)
    if chosen is not None:
        for k, a in enumerate(texts):
            inside = (chosen == a).T.astype(np.float64)
            if 0.0 < inside.mean() < 1.0:
                ax.contourf(grid[0], grid[1], inside, levels=[0.5, 1.5], colors=[colour(k)], alpha=0.35)
                ax.contour(grid[0], grid[1], inside, levels=[0.5], colors="white", linewidths=0.8)
    dress(ax, words[0], words[1])
    colour_bar(ax, shades, "value")
    _key(ax, texts, 0.6, above=True)


def _key(ax: Any, texts: dict[int, str], alpha: float, *, above: bool = False) -> None:
    """Add a legend of the actions, if they have colours of their own."""
    from matplotlib.patches import Patch

    if 1 < len(texts) <= _MOST_ACTIONS:
        patches = [Patch(color=colour(k), alpha=alpha, label=text) for k, text in enumerate(texts.values())]
        keyed(ax, patches, "action", "lower center" if above else "upper right", len(texts) if above else 1)
        if above:
            ax.get_legend().set_bbox_to_anchor((0.5, 1.0))


@inherit_docs(AXES)
def episode_returns(returns: Any, *, window: int | None = None, ax: Any = None) -> Any:
    """Plot the returns of episodes in the order of time, and their moving average.

    Parameters
    ----------
    returns : array-like of shape (n_episodes,)
    window : int, optional
        Number of episodes in the moving average; by default a tenth of all.

    Examples
    --------
    >>> from summula.plotting import episode_returns
    >>> ax = episode_returns([0.0, 1.0, 2.0, 3.0], window=2)
    >>> ax.lines[0].get_xydata().tolist()
    [[2.0, 0.5], [3.0, 1.5], [4.0, 2.5]]
    """
    check_installed()
    values = np.asarray(returns, np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(f"The returns have shape {values.shape}; expected one per episode.")
    size = max(1, len(values) // 10) if window is None else int(window)
    if not 1 <= size <= len(values):
        raise ParameterError(f"The 'window' must be an int from 1 to {len(values)}, not {window!r}.")
    sums = np.cumsum(np.append(0.0, values))
    mean = (sums[size:] - sums[:-size]) / size
    ax = axes(ax)
    number = np.arange(1, len(values) + 1)
    ax.scatter(
        number, values, s=8, color=GREY, alpha=0.5, linewidths=0, label="episode", rasterized=len(values) > 5_000
    )
    ax.plot(number[size - 1 :], mean, color=colour(0), lw=1.6, label=f"mean of {size} episodes")
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "episode", "discounted return")
    keyed(ax, corner="lower right")
    return ax
