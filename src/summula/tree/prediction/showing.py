"""Decision trees as text and plots."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from summula.tree.prediction.drawing import Picture, draw, shade, tint

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
        flags = nodes.lefts[nodes.category[node]]
        sides: list[list[str]] = [[], []]
        for level, place in zip(bins.levels[here], bins.level_bins[here], strict=True):
            sides[0 if flags[place] else 1].append(model._level_text(j, level))
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
    if _is_classifier(model):
        best = [
            f"{c[int(v.argmax())]} ({v.max():.0%} of {count})" for c, v in zip(_classes(model), values, strict=True)
        ]
        return ", ".join(best)
    return f"{', '.join(f'{value[0]:.{decimals}g}' for value in values)} ({count})"


def _is_classifier(model: Any) -> bool:
    return hasattr(type(model), "_classes_of_outputs")  # (a model may have attributes of any name)


def _classes(model: Any) -> Any:
    return model._classes_of_outputs


def plot(model: Any, ax: Any, max_depth: int | None) -> Any:
    """Draw a tree."""
    nodes = model._nodes
    pairs = zip(nodes.child.tolist(), nodes.column.tolist(), strict=True)
    children = [range(child, child + 2 if column >= 0 else child) for child, column in pairs]
    label, colour = functools.partial(_label, model), functools.partial(_colour, model)
    return draw(Picture(children, model._depths(), label, colour), ax, max_depth)


def _label(model: Any, node: int, is_end: bool) -> str:
    nodes = model._nodes
    lines = [] if nodes.column[node] < 0 else [_conditions(model, node, 3)[0].removesuffix(" or is missing")]
    lines.append(f"{model.criterion} {model._impurity[node]:.3g}, n = {nodes.rows[node]}")
    for t, values in enumerate(model._outputs.split(model._values[node])):
        if _is_classifier(model):
            more = ", ..." if len(values) > 4 else ""
            counts = values[:4] * nodes.weight[node]
            lines.append("value [" + ", ".join(f"{count:.6g}" for count in counts) + more + "]")
            lines.append(f"class {_classes(model)[t][int(values.argmax())]}")
        else:
            lines.append(f"value {values[0]:.4g}")
    if is_end and nodes.column[node] >= 0:
        lines.append("...")
    return "\n".join(lines)


def _colour(model: Any, node: int) -> Any:
    """Return a light colour by the class (paler if less certain) or the value of the first target."""
    values = model._outputs.split(model._values)[0]
    if _is_classifier(model):
        return shade(values[node])
    low, high = float(values.min()), float(values.max())
    return tint(0, 0.6 * (values[node, 0] - low) / (high - low) if high > low else 0.0)
