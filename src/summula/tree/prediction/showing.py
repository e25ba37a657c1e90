"""Decision trees as text and as pictures."""

from __future__ import annotations

from typing import Any

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
    """Return what rows satisfy that go left, and those that go right."""
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
    """Return the class with its share, or the value, and the number of rows."""
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


def plot(model: Any, ax: Any, max_depth: int | None) -> Any:
    """Draw a tree; leaves have equal distances, and inner nodes are above the middle of their children."""
    from matplotlib import pyplot as plt

    nodes, depth = model._nodes, model._depths()
    lowest = int(depth.max()) if max_depth is None else min(max_depth, int(depth.max()))
    shown = depth <= lowest
    is_end = shown & ((nodes.column < 0) | (depth == lowest))
    place = _places(nodes, is_end)
    if ax is None:
        ends = int(is_end.sum())
        _, ax = plt.subplots(figsize=(min(max(1.9 * ends, 5), 60), 1.3 * (lowest + 1) + 0.6))
    ax.set_axis_off()
    ax.set_xlim(-0.7, max(is_end.sum() - 0.3, 0.7))
    ax.set_ylim(-lowest - 0.5, 0.5)
    for node in np.flatnonzero(shown):
        if not is_end[node]:
            for side in range(2):
                child = nodes.child[node] + side
                ax.plot([place[node], place[child]], [-depth[node], -depth[child]], color="0.6", lw=1, zorder=1)
        ax.text(
            place[node],
            -depth[node],
            _label(model, int(node), is_end=bool(is_end[node])),
            ha="center",
            va="center",
            fontsize=8,
            bbox={"boxstyle": "round", "facecolor": _colour(model, int(node)), "edgecolor": "0.5"},
            zorder=2,
        )
    return ax


def _places(nodes: Any, is_end: Any) -> Any:
    """Return the horizontal place of every node that is drawn."""
    place, found, stack = np.zeros(len(is_end)), 0, [(0, False)]
    while stack:
        node, seen = stack.pop()
        if is_end[node]:
            place[node], found = found, found + 1
        elif seen:
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
    """Return a light colour: of the class, paler where it is less certain, or by the value; of the first target."""
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
