"""Plots of trees with any number of branches: equally spaced leaves, and inner nodes above their children."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Picture", "draw", "shade", "tint"]

_MOST = 12  # maximum number of nodes side by side
_SIZE, _SMALLEST = 8.0, 4.0  # font sizes, in points
_LETTER = 0.0085  # width of a letter in inches per point


@dataclass(frozen=True)
class Picture:
    """A tree to be drawn.

    Attributes
    ----------
    children : sequence of range
        Children of each node; those of a leaf are empty. Node 0 is the root.
    depth : ndarray of shape (n_nodes,)
    label : callable
        (node, whether it is drawn without children) -> text.
    colour : callable
        node -> colour.
    """

    children: Sequence[range]
    depth: Any
    label: Callable[[int, bool], str]
    colour: Callable[[int], Any]

    @property
    def is_leaf(self) -> Any:
        """Whether each node has no children."""
        return np.array([len(children) == 0 for children in self.children])


class _Layout(NamedTuple):
    """Layout of the drawn levels of a tree: the lowest level, nodes drawn without children, and all labels."""

    lowest: int
    is_end: Any
    texts: dict[int, str]

    places: Any  # horizontal position of every node
    depth: Any

    @property
    def width(self) -> float:
        """Width of the axes, with unit distance between leaves."""
        return float(self.is_end.sum()) + 0.4

    @property
    def letters(self) -> float:
        """Maximum number of letters of boxes at unit distance, so that they overlap neither each other nor the axes."""
        letters = {node: max(map(len, text.split("\n"))) + 2 for node, text in self.texts.items()}
        needed = 1.0
        for level in range(self.lowest + 1):
            row = sorted((self.places[node], letters[node]) for node in letters if self.depth[node] == level)
            needed = max([needed, *((a + b) / 2 / (y - x) for (x, a), (y, b) in itertools.pairwise(row))])
            (left, first), (right, last) = row[0], row[-1]
            needed = max(needed, first / 2 / (left + 0.7), last / 2 / (self.width - 0.7 - right))
        return needed

    def size(self, inches: float) -> float:
        """Return the font size, in points, for axes of this width."""
        return min(_SIZE, inches / (self.width * _LETTER * self.letters))


def draw(tree: Picture, ax: Any, max_depth: int | None) -> Any:
    """Draw a tree down to a depth, by default as far as it is readable."""
    from matplotlib import pyplot as plt

    deepest = int(tree.depth.max())
    layout = _laid_out(tree, _readable_depth(tree) if max_depth is None else min(max_depth, deepest))
    if ax is None:
        wide = min(max(1.05 * _LETTER * _SIZE * layout.letters * layout.width, 5), 60)
        _, ax = plt.subplots(figsize=(wide, 1.1 * (layout.lowest + 1) + 0.3), layout="constrained")
    inches = ax.get_position().width * ax.figure.get_figwidth()
    if ax.figure.get_layout_engine() is not None:  # uses the space of the axis labels
        inches *= 1.2
    while max_depth is None and layout.lowest > 1 and layout.size(inches) < _SMALLEST:
        layout = _laid_out(tree, layout.lowest - 1)
    ax.set_axis_off()
    ax.set_xlim(-0.7, max(layout.is_end.sum() - 0.3, 0.7))
    ax.set_ylim(-layout.lowest - 0.5, 0.5)
    _draw_nodes(tree, layout, max(_SMALLEST, layout.size(inches)), ax)
    if max_depth is None and layout.lowest < deepest:
        title = f"the first {layout.lowest} of {deepest} levels: draw more with max_depth="
        ax.set_title(title, fontsize=8, color="0.4")
    return ax


def _draw_nodes(tree: Picture, layout: _Layout, size: float, ax: Any) -> None:
    place, depth = layout.places, tree.depth
    for node, text in layout.texts.items():
        for child in () if layout.is_end[node] else tree.children[node]:
            ax.plot([place[node], place[child]], [-depth[node], -depth[child]], color="0.6", lw=1, zorder=1)
        box = {"boxstyle": "round", "facecolor": tree.colour(node), "edgecolor": "0.5"}
        look = {"ha": "center", "va": "center", "fontsize": size, "color": "black", "parse_math": False}
        ax.text(place[node], -depth[node], text, bbox=box, zorder=2, **look)


def _laid_out(tree: Picture, lowest: int) -> _Layout:
    shown = tree.depth <= lowest
    is_end = shown & (tree.is_leaf | (tree.depth == lowest))
    texts = {int(node): tree.label(int(node), bool(is_end[node])) for node in np.flatnonzero(shown)}
    return _Layout(lowest, is_end, texts, _places(tree, is_end), tree.depth)


def _readable_depth(tree: Picture) -> int:
    """Return the largest depth at which the labels of nodes side by side remain readable."""
    depth, lowest, is_leaf = tree.depth, 1, tree.is_leaf
    while lowest < depth.max() and (is_leaf & (depth <= lowest + 1) | (depth == lowest + 1)).sum() <= _MOST:
        lowest += 1
    return min(lowest, int(depth.max()))


def _places(tree: Picture, is_end: Any) -> Any:
    """Return the horizontal position of every drawn node."""
    place, found, stack = np.zeros(len(is_end)), 0, [(0, False)]
    while stack:
        node, expanded = stack.pop()
        if is_end[node]:
            place[node], found = found, found + 1
        elif expanded:
            place[node] = np.mean([place[child] for child in tree.children[node]])
        else:
            stack += [(node, True), *((child, False) for child in reversed(tree.children[node]))]
    return place


def shade(shares: Any) -> Any:
    """Return a light colour of the most frequent class, paler if it is less certain."""
    best, k = int(shares.argmax()), len(shares)
    return tint(best, 0.5 * max((shares[best] - 1 / k) / (1 - 1 / k), 0.0) if k > 1 else 0.5)


def tint(k: int, strength: float) -> Any:
    """Return the k-th colour mixed with white; its share is `strength`."""
    from matplotlib import colormaps

    return tuple(1 - strength * (1 - np.array(colormaps["tab10"](k % 10))[:3]))
