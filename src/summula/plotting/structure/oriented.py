"""Histograms of oriented gradients as strokes along the edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, axes, check_installed, colour, dress

__all__ = ["oriented_histograms"]


@inherit_docs(AXES)
def oriented_histograms(
    histograms: Any, image: Any = None, *, cell: tuple[int, int] = (8, 8), signed: bool = False, ax: Any = None
) -> Any:
    """Plot histograms of orientations as strokes in each cell: along the edges, with lengths in proportion to the sums.

    Parameters
    ----------
    histograms : array-like of shape (rows of cells, columns of cells, n_bins)
        Such as `HOG.histograms(X)[0]`.
    image : array-like of shape (height, width), optional
        The image, drawn in grey below the strokes.
    cell : tuple (height, width), default=(8, 8)
        Size of a cell in pixels.
    signed : bool, default=False
        Whether bins cover the whole circle. The strokes are then half as long, to the left of the direction in which
        the image becomes brighter.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.plotting import oriented_histograms
    >>> sums = np.zeros((1, 2, 12))
    >>> sums[0, 1, 6] = 3.0  # vertical gradient: a horizontal edge in the second cell
    >>> ax = oriented_histograms(sums)
    >>> ax.collections[0].get_segments()[0].round(1).tolist()
    [[15.1, 3.5], [7.9, 3.5]]
    """
    check_installed()
    from matplotlib.collections import LineCollection

    sums = np.asarray(histograms, np.float64)
    if sums.ndim != 3 or not sums.size or not np.isfinite(sums).all():
        raise DataError(f"histograms has shape {sums.shape}; expected finite numbers (rows, columns, n_bins).")
    rows, columns, bins = sums.shape
    height, width = (int(size) for size in cell)
    largest = float(sums.max())
    r, c, k = np.nonzero(sums > 0)
    angles = k * (2 * np.pi if signed else np.pi) / bins + np.pi / 2  # edges are orthogonal to gradients
    middle = np.column_stack([(c + 0.5) * width - 0.5, (r + 0.5) * height - 0.5])
    reach = 0.45 * min(height, width) * sums[r, c, k] / (largest or 1.0)
    way = reach[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    ax = axes(ax)
    if image is not None:
        pixels = np.asarray(image, np.float64)
        low, high = float(pixels.min()), float(pixels.max())
        # Darkened, so that the strokes are visible on white.
        ax.imshow(pixels, cmap="gray", vmin=low, vmax=low + 1.7 * (high - low), interpolation="nearest")
    ends = np.stack([middle if signed else middle - way, middle + way], axis=1)
    ax.add_collection(LineCollection(list(ends), colors=colour(1), linewidths=1.6, capstyle="round"))
    for edge in range(columns + 1):
        ax.axvline(edge * width - 0.5, color=colour(0), lw=0.4)
    for edge in range(rows + 1):
        ax.axhline(edge * height - 0.5, color=colour(0), lw=0.4)
    ax.set_xlim(-0.5, columns * width - 0.5)
    ax.set_ylim(rows * height - 0.5, -0.5)
    ax.set_aspect("equal")
    dress(ax, "column", "row")
    return ax
