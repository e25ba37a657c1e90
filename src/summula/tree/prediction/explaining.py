"""Exact Shapley values of trees: the contribution of each column to the score of each row.

    score(x) = base + sum_j phi_j(x),                                                                              (1)

with base the mean score over the training rows (computed from the row counts of the nodes).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.core.estimator.rows import RowwiseEstimator
from summula.plotting.style import AXES
from summula.tree.columns.binning import BinMap, dense_rows
from summula.tree.prediction.grown_trees import ScoreTrees
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.shapley_kernels import add_shapley

__all__ = [
    "Explanation",
    "PartialDependence",
    "Paths",
    "expected_scores",
    "explanation",
    "scores_on_grid",
    "shapley_rows",
    "shapley_values",
]

Array = NDArray[Any]


@dataclass(frozen=True)
class Paths:
    """Paths from the root to each leaf of all trees: see `add_shapley`."""

    leaves: Array
    starts: Array
    steps: Array

    @classmethod
    def of(cls, nodes: Nodes, scores: int) -> Paths:
        """Return the paths of a table of trees."""
        leaves, starts = [], [0]
        steps: list[tuple[int, int]] = []
        for tree in range(nodes.n_trees):
            below: list[tuple[int, tuple[tuple[int, int], ...]]] = [(int(nodes.roots[tree]), ())]
            while below:
                node, path = below.pop()
                if nodes.column[node] < 0:
                    leaves.append((node, tree % scores))
                    steps += path
                    starts.append(len(steps))
                    continue
                child = int(nodes.child[node])
                below += [(child + 1, (*path, (node, 0))), (child, (*path, (node, 1)))]
        return cls(
            np.array(leaves, np.int64).reshape(-1, 2),
            np.array(starts, np.int64),
            np.array(steps, np.int64).reshape(-1, 2),
        )


def expected_scores(nodes: Nodes, start: Array) -> Array:
    """Return the mean score over the training rows."""
    base = np.array(start, np.float64)
    for tree in range(nodes.n_trees):
        here = slice(int(nodes.roots[tree]), int(nodes.roots[tree + 1]))
        leaf = nodes.column[here] < 0
        base[tree % len(base)] += np.average(nodes.value[here][leaf], weights=nodes.rows[here][leaf])
    return base


def shapley_values(nodes: Nodes, paths: Paths, scores: int, X: Array) -> Array:
    """Compute (1) for a block of rows; the result has shape (rows, columns, scores)."""
    out = np.zeros((len(X), X.shape[1], scores))
    add_shapley(np.ascontiguousarray(X), nodes, paths.leaves, paths.starts, paths.steps, 0, len(paths.leaves), out)
    return out


def shapley_rows(nodes: Nodes, paths: Paths, scores: int, bins: BinMap, chunk: Chunk) -> Array:
    """Compute (1) for the rows of a chunk."""
    return shapley_values(nodes, paths, scores, bins.with_bins(dense_rows(chunk)))


def explanation(model: RowwiseEstimator, source: Source, trees: ScoreTrees) -> Explanation:
    """Compute (1) for the rows of a source."""
    nodes, scores = trees.nodes, len(trees.start)
    compute = functools.partial(shapley_rows, nodes, Paths.of(nodes, scores), scores, trees.bins)
    values = model._map_rows(compute, source)
    base = np.tile(expected_scores(nodes, trees.start), (len(values), 1))
    names = None if source.names is None else tuple(source.names)
    if scores == 1:
        values, base = values[:, :, 0], base[:, 0]
    return Explanation(values, base, names)


def scores_on_grid(nodes: Nodes, start: Array, X: Array, j: int, grid: Array, output: int) -> Array:
    """Return a score of each row with each value of a grid in column j, which is overwritten: shape (rows, values)."""
    found = np.empty((len(X), len(grid)))
    for k, value in enumerate(grid):
        X[:, j] = value
        scores = np.tile(start, (len(X), 1))
        nodes.add_scores(X, scores)
        found[:, k] = scores[:, output]
    return found


def _named(names: Any, j: int) -> str:
    return f"x{j}" if names is None else str(names[j])


@dataclass(frozen=True)
class Explanation:
    """Contributions of columns to raw scores (Shapley values).

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
    base_values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Base values, to which the contributions are added.
    feature_names : tuple of str, or None
    """

    values: Array
    base_values: Array
    feature_names: tuple[str, ...] | None = None

    def plot(self, *, row: int | None = None, output: int = 0, most: int = 12, ax: Any = None) -> Any:
        """Plot the contributions to one row, or their mean absolute values over all rows, as bars.

        Parameters
        ----------
        row : int, optional
            Row to plot; by default the mean over all rows.
        output : int, default=0
            Index of the class, if there are several scores.
        most : int, default=12
            Maximum number of columns.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting.style import axes, check_installed, colour, dress

        check_installed()
        values = self.values[..., output] if self.values.ndim == 3 else self.values
        if row is not None and not -len(values) <= row < len(values):
            raise DataError(f"row={row} is out of range: {len(values)} rows were explained.")
        sizes = np.abs(values).mean(axis=0) if row is None else values[row]
        order = np.argsort(-np.abs(sizes), kind="stable")[:most][::-1]
        ax = axes(ax)
        ax.barh(
            [_named(self.feature_names, j) for j in order],
            sizes[order],
            color=[colour(0) if sizes[j] >= 0 else colour(5) for j in order],
        )
        dress(ax, "mean absolute contribution" if row is None else f"contribution to the score of row {row}", "")
        return ax


@dataclass(frozen=True)
class PartialDependence:
    """Raw scores as functions of one column, with the others unchanged.

    Attributes
    ----------
    grid : ndarray of shape (n_points,)
        Values of the column.
    individual : ndarray of shape (n_samples, n_points)
        Raw scores of each row.
    name : str
        Name of the column.
    """

    grid: Array
    individual: Array
    name: str

    @property
    def average(self) -> Array:
        """Mean over the rows at each value."""
        return np.asarray(self.individual.mean(axis=0))

    @inherit_docs(AXES)
    def plot(self, *, lines: int = 50, ax: Any = None) -> Any:
        """Plot the mean, and some of the individual rows.

        Parameters
        ----------
        lines : int, default=50
            Maximum number of rows to plot.
        """
        from summula.plotting.style import GREY, axes, check_installed, colour, dress

        check_installed()
        ax = axes(ax)
        step = max(1, -(-len(self.individual) // max(lines, 1)))
        for row in self.individual[::step] if lines > 0 else ():
            ax.plot(self.grid, row, color=GREY, linewidth=0.4, alpha=0.5)
        ax.plot(self.grid, self.average, color=colour(0), linewidth=2.0)
        dress(ax, self.name, "score")
        return ax
