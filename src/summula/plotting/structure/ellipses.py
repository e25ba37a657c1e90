"""Density ellipses of a bivariate normal distribution, and their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.plotting.style import AXES, GREY, check_installed, colour, dress, keyed
from summula.plotting.style import axes as new_axes

__all__ = ["draw_ellipses"]

_POINTS = 200


@inherit_docs(AXES)
def draw_ellipses(
    distribution: Any, probabilities: Sequence[float], *, axes: bool = True, ax: Any = None, label: bool = True
) -> Any:
    """Plot the density ellipses that contain the given probabilities.

    Parameters
    ----------
    distribution : object with `mean` and `axes(probability)`, such as `stats.MultivariateNormal`
    probabilities : sequence of float
    axes : bool, default=True
        Whether to draw the axes of the largest ellipse.
    label : bool, default=True
        Whether to add a legend and names of the axes.
    """
    check_installed()
    mean = np.asarray(distribution.mean)
    if mean.shape != (2,):
        raise ParameterError(f"Ellipses need 2 variables, but there are {len(mean)}; plot a marginal of two.")
    ax = new_axes(ax)
    angle = np.linspace(0.0, 2 * np.pi, _POINTS)
    circle = np.array([np.cos(angle), np.sin(angle)])
    for k, probability in enumerate(sorted(probabilities)):
        lengths, directions = distribution.axes(probability)
        x, y = mean[:, None] + directions @ (lengths[:, None] * circle)
        ax.plot(x, y, color=colour(k), lw=1.4, label=f"{probability:.0%} inside")
    if axes and len(probabilities):
        lengths, directions = distribution.axes(max(probabilities))
        for length, direction in zip(lengths, directions.T, strict=True):
            ends = np.array([mean - length * direction, mean + length * direction])
            ax.plot(ends[:, 0], ends[:, 1], color=GREY, lw=0.8, ls="--")
    ax.plot(*mean, marker="+", color=GREY, ls="none")
    ax.set_aspect("equal", adjustable="datalim")
    if label:
        dress(ax, "x1", "x2")
        keyed(ax)
    return ax
