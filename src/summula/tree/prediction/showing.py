"""Decision trees as text and plots."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

__all__ = ["plot", "rules"]


def rules(model: Any, decimals: int) -> str:
    """Return a tree as indented text."""
    lines: list[str] = []
    stack = [(0, 0, "")]
    while stack:
        node, depth, condition = stack.pop()
        text = f"{'    ' * (depth - 1)}if {condition}" if condition else ""
        if model._nodes.column[node] < 0:
            outcome = _outcome(model, node, decimals)
            lines.append(f"{text}: {outcome}" if text else outcome)
            continue
        if text:
            lines.append(f"{text}:")
        child = int(model._nodes.child[node])
        left, right = _conditions(model, node, decimals)
        stack += [(child + 1, depth + 1, right), (child, depth + 1, left)]
    return "\n".join(lines)


def _column_name(model: Any, j: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return f"x[{j}]" if names is None else str(names[j])


def _conditions(model: Any, node: int, decimals: int) -> tuple[str, str]:
    """Return the conditions of rows that go left, and of rows that go right."""
    nodes, bins = model._nodes, model._bins
    j = int(nodes.column[node])
    name, missing = _column_name(model, j), " or is missing"
    if nodes.category[node] >= 0:
        here = slice(bins.starts[j], bins.starts[j + 1])
        texts = model.category_levels_.get(name)
        flags = nodes.lefts[nodes.category[node]]
        sides: list[list[str]] = [[], []]
        for level, place in zip(bins.levels[here], bins.level_bins[here], strict=True):
            sides[0 if flags[place] else 1].append(f"{level:g}" if texts is None else repr(texts[int(level)]))
        left, right = (f"{name} in {{{', '.join(side)}}}" for side in sides)
    else:
        threshold = f"{nodes.threshold[node]:.{decimals}g}"
        left, right = f"{name} <= {threshold}", f"{name} > {threshold}"
        if nodes.threshold[node] == np.inf:
            left, right = f"{name} is known", f"{name} is missing"
            return left, right
    return (left + missing, right) if nodes.missing_left[node] else (left, right + missing)


def _outcome(model: Any, node: int, decimals: int) -> str:
    """Return the class with its proportion, or the value, and the number of rows."""
    values, rows = model._outputs.split(model._values[node]), int(model._nodes.rows[node])
    count = f"{rows} row{'s' if rows > 1 else ''}"
    if hasattr(model, "classes_"):
        best = [
            f"{c[int(v.argmax())]} ({v.max():.0%} of {count})" for c, v in zip(_classes(model), values, strict=True)
        ]
        return ", ".join(best)
    return f"{', '.join(f'{value[0]:.{decimals}g}' for value in values)} ({count})"


def _classes(model: Any) -> Any:
    return model._classes_of_outputs


_MOST = 12  # maximum number of nodes side by side
_SIZE = 8.0  # font sizes, in points
_SMALLEST = 4.0
_LETTER = 0.0085  # width of a letter in inches per point


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


def plot(model: Any, ax: Any, max_depth: int | None) -> Any:
    """Draw a tree with equally spaced leaves, and inner nodes above the midpoint of their children."""
    from matplotlib import pyplot as plt

    nodes, depth = model._nodes, model._depths()
    deepest = int(depth.max())
    layout = _laid_out(model, _readable_depth(nodes, depth) if max_depth is None else min(max_depth, deepest))
    if ax is None:
        wide = min(max(1.05 * _LETTER * _SIZE * layout.letters * layout.width, 5), 60)
        _, ax = plt.subplots(figsize=(wide, 1.1 * (layout.lowest + 1) + 0.3), layout="constrained")
    inches = ax.get_position().width * ax.figure.get_figwidth()
    if ax.figure.get_layout_engine() is not None:  # uses the space of the axis labels
        inches *= 1.2
    while max_depth is None and layout.lowest > 1 and layout.size(inches) < _SMALLEST:
        layout = _laid_out(model, layout.lowest - 1)
    size, place = max(_SMALLEST, layout.size(inches)), layout.places
    ax.set_axis_off()
    ax.set_xlim(-0.7, max(layout.is_end.sum() - 0.3, 0.7))
    ax.set_ylim(-layout.lowest - 0.5, 0.5)
    for node, text in layout.texts.items():
        if not layout.is_end[node]:
            for side in range(2):
                child = nodes.child[node] + side
                ax.plot([place[node], place[child]], [-depth[node], -depth[child]], color="0.6", lw=1, zorder=1)
        box = {"boxstyle": "round", "facecolor": _colour(model, node), "edgecolor": "0.5"}
        look = {"ha": "center", "va": "center", "fontsize": size, "color": "black", "parse_math": False}
        ax.text(place[node], -depth[node], text, bbox=box, zorder=2, **look)
    if max_depth is None and layout.lowest < deepest:
        title = f"the first {layout.lowest} of {deepest} levels: draw more with max_depth="
        ax.set_title(title, fontsize=8, color="0.4")
    return ax


def _laid_out(model: Any, lowest: int) -> _Layout:
    nodes, depth = model._nodes, model._depths()
    shown = depth <= lowest
    is_end = shown & ((nodes.column < 0) | (depth == lowest))
    texts = {int(node): _label(model, int(node), is_end=bool(is_end[node])) for node in np.flatnonzero(shown)}
    return _Layout(lowest, is_end, texts, _places(nodes, is_end), depth)


def _readable_depth(nodes: Any, depth: Any) -> int:
    """Return the largest depth at which the labels of nodes side by side remain readable."""
    lowest = 1
    while lowest < depth.max() and ((nodes.column < 0) & (depth <= lowest + 1) | (depth == lowest + 1)).sum() <= _MOST:
        lowest += 1
    return min(lowest, int(depth.max()))


def _places(nodes: Any, is_end: Any) -> Any:
    """Return the horizontal position of every drawn node."""
    place, found, stack = np.zeros(len(is_end)), 0, [(0, False)]
    while stack:
        node, expanded = stack.pop()
        if is_end[node]:
            place[node], found = found, found + 1
        elif expanded:
            place[node] = place[nodes.child[node] : nodes.child[node] + 2].mean()
        else:
            child = int(nodes.child[node])
            stack += [(node, True), (child + 1, False), (child, False)]
    return place


def _label(model: Any, node: int, *, is_end: bool) -> str:
    nodes = model._nodes
    lines = [] if nodes.column[node] < 0 else [_conditions(model, node, 3)[0].removesuffix(" or is missing")]
    lines.append(f"{model.criterion} {model._impurity[node]:.3g}, n = {nodes.rows[node]}")
    for t, values in enumerate(model._outputs.split(model._values[node])):
        if hasattr(model, "classes_"):
            more = ", ..." if len(values) > 4 else ""
            lines.append("value [" + ", ".join(f"{v:.2f}" for v in values[:4]) + more + "]")
            lines.append(f"class {_classes(model)[t][int(values.argmax())]}")
        else:
            lines.append(f"value {values[0]:.4g}")
    if is_end and nodes.column[node] >= 0:
        lines.append("...")
    return "\n".join(lines)


def _colour(model: Any, node: int) -> Any:
    """Return a light colour by the class (paler if less certain) or the value of the first target."""
    from matplotlib import colormaps

    values = model._outputs.split(model._values)[0]
    if hasattr(model, "classes_"):
        best, k = int(values[node].argmax()), values.shape[1]
        strength = 0.5 * max((values[node, best] - 1 / k) / (1 - 1 / k), 0.0) if k > 1 else 0.5
        base = np.array(colormaps["tab10"](best % 10))
    else:
        low, high = float(values.min()), float(values.max())
        strength = 0.6 * (values[node, 0] - low) / (high - low) if high > low else 0.0
        base = np.array(colormaps["tab10"](0))
    return tuple(1 - strength * (1 - base[:3]))
