"""Clusters of rows with two columns, their centres, and the regions nearest to each centre."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, INK, axes, check_installed, colour, dress, keyed, legend_outside, marker

__all__ = ["cluster_histogram", "cluster_regions"]

Array = NDArray[Any]

_GRID = 240
_FEW = 5  # number of entries of the legend up to which it is placed on the axes
_MANY = 1_000  # rows above which a free place for the legend is searched too slowly
_BORDER = 0.06  # around the rows, relative to their range


@inherit_docs(AXES)
def cluster_regions(
    X: Any,
    labels: Any,
    centers: Any = None,
    *,
    names: Sequence[str] = ("x0", "x1"),
    title: str = "",
    regions: bool = True,
    ax: Any = None,
) -> Any:
    """Plot rows in the colours of their clusters, and the region nearest to each centre.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
    labels : array-like of int of shape (n_samples,)
        Cluster of each row; negative for rows without one.
    centers : array-like of shape (n_clusters, 2), optional
        Centres; the points nearest to each are shaded in its colour.
    names : two str, default=("x0", "x1")
        Names of the columns.
    title : str, default=""
    regions : bool, default=True
        Whether the points nearest to each centre are shaded; invalid for a plane of more columns.

    Examples
    --------
    >>> from summula.plotting import cluster_regions
    >>> ax = cluster_regions([[0, 0], [0, 1], [5, 5]], [0, 0, 1], [[0, 0.5], [5, 5]])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['cluster 0: 2 rows', 'cluster 1: 1 row']
    """
    check_installed()
    rows, clusters = np.asarray(X, np.float64), np.asarray(labels)
    if rows.ndim != 2 or rows.shape[1] != 2 or clusters.shape != (len(rows),) or not len(rows):
        raise DataError(
            f"X has shape {rows.shape} and labels {clusters.shape}; cluster_regions needs rows of two columns, and a "
            "label for each."
        )
    ax = axes(ax)
    middle = None if centers is None else np.asarray(centers, np.float64)
    if middle is not None and regions:
        _shade(ax, rows, middle)
    for k in range(int(clusters.max()) + 1):
        count = int((clusters == k).sum())
        name = f"cluster {k}: {count} row{'s' * (count != 1)}"
        look = {"s": 14, "color": colour(k), "marker": marker(k), "alpha": 0.8, "linewidths": 0}
        ax.scatter(*rows[clusters == k].T, label=name, **look)
    if (clusters < 0).any():
        ax.scatter(*rows[clusters < 0].T, s=10, color=INK, marker="x", linewidths=0.8, label="none")
    if middle is not None:
        for k, centre in enumerate(middle):
            look = {"ms": 9, "mfc": colour(k), "mec": INK, "mew": 1.2, "ls": "none", "zorder": 3}
            ax.plot(*centre, marker=marker(k), **look)
    dress(ax, names[0], names[1], title)
    keyed(ax, corner="best" if len(rows) <= _MANY else "upper right")
    if len(ax.get_legend().get_texts()) > _FEW:
        legend_outside(ax)
    return ax


@inherit_docs(AXES)
def cluster_histogram(x: Any, labels: Any, centers: Any = None, *, name: str = "x0", ax: Any = None) -> Any:
    """Plot a histogram of one column, coloured by cluster, and the centres.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
    labels : array-like of int of shape (n_samples,)
        Cluster of each row.
    centers : array-like of shape (n_clusters,), optional
        Centres, drawn as lines.
    name : str, default="x0"
        Name of the column.

    Examples
    --------
    >>> from summula.plotting import cluster_histogram
    >>> ax = cluster_histogram([0.0, 1.0, 5.0], [0, 0, 1], [0.5, 5.0])
    >>> ax.get_ylabel(), len(ax.lines)
    ('rows', 2)
    """
    check_installed()
    values, clusters = np.asarray(x, np.float64), np.asarray(labels)
    if values.ndim != 1 or clusters.shape != values.shape or not len(values):
        raise DataError(f"x has shape {values.shape} and labels {clusters.shape}; expected one of each per row.")
    count = int(clusters.max()) + 1
    parts = [values[clusters == k] for k in range(count)]
    words = [f"cluster {k}: {len(part)} row{'s' * (len(part) != 1)}" for k, part in enumerate(parts)]
    ax = axes(ax)
    edges = np.histogram_bin_edges(values, bins="sqrt")
    ax.hist(parts, bins=edges, stacked=True, color=[colour(k) for k in range(count)], label=words)
    for centre in () if centers is None else np.ravel(centers):
        ax.axvline(centre, color=INK, lw=1.2, ls="--", zorder=3)
    dress(ax, name, "rows")
    keyed(ax)
    legend_outside(ax)
    return ax


def _shade(ax: Any, rows: Array, centers: Array) -> None:
    """Shade the points nearest to each centre, and draw the boundaries."""
    from matplotlib.colors import to_rgba

    if centers.ndim != 2 or centers.shape[1] != 2 or not len(centers):
        raise DataError(f"The centers of cluster_regions have shape {centers.shape}; expected (n_clusters, 2).")
    both = np.vstack([rows, centers])
    low, high = both.min(axis=0), both.max(axis=0)
    wide = np.where(high > low, high - low, 1.0) * _BORDER
    u, v = (np.linspace(a - w, b + w, _GRID) for a, b, w in zip(low, high, wide, strict=True))
    points = np.stack(np.meshgrid(u, v), axis=-1)
    nearest = ((points[:, :, None] - centers) ** 2).sum(axis=-1).argmin(axis=-1)
    image = np.array([to_rgba(colour(k), 0.15) for k in range(len(centers))])[nearest]
    ax.imshow(image, extent=(u[0], u[-1], v[0], v[-1]), origin="lower", aspect="auto", interpolation="none", zorder=0)
    ax.set_xlim(u[0], u[-1])
    ax.set_ylim(v[0], v[-1])
