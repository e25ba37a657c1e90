"""The margin of a support vector machine: the region -1 <= f(x) <= 1, and its support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.slices import Slices, evaluated, target_values
from summula.plotting.style import AXES, INK, axes, check_installed, colour, dress, key_text, keyed, marker

__all__ = ["margin_slab"]

Array = NDArray[Any]

_GRID = 160
_BORDER = 0.1  # around the rows, relative to their range


@inherit_docs(AXES)
def margin_slab(model: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """Plot the decision boundary f(x) = 0, the margin f(x) = -1 and 1, the rows, and the support vectors.

    Parameters
    ----------
    model : fitted classifier of two classes with `decision_function`
        Support vectors are given by `support_` if the model has it, else they are the rows with y f(x) <= 1.
    X : array-like or frame of shape (n_samples, 2)
    y : array-like of shape (n_samples,), or name of a column of X

    Examples
    --------
    >>> from summula.plotting import margin_slab
    >>> from summula.svm import SVC
    >>> X = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [3.0, 3.0]]
    >>> ax = margin_slab(SVC(C=float("inf"), kernel="linear").fit(X, [0, 1, 1, 1]), X, [0, 1, 1, 1])
    >>> ax.get_title()
    '3 of 4 rows are support vectors'
    """
    check_installed()
    slices = Slices(X, "margin_slab", model, y if isinstance(y, str) else None)
    if len(slices.names) != 2:
        shape = (slices.n_rows, len(slices.names))
        raise DataError(f"X has shape {shape}; margin_slab needs two columns: draw others with decision_regions.")
    rows = np.column_stack([slices.values(0), slices.values(1)])
    labels = target_values(X, y, len(rows), "margin_slab")[0]
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(f"y has {len(classes)} classes in {len(labels)} rows; margin_slab needs two classes.")
    low, high = rows.min(axis=0), rows.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    across, up = (
        np.linspace(a - _BORDER * s, b + _BORDER * s, _GRID) for a, b, s in zip(low, high, spread, strict=True)
    )
    moving = dict(enumerate(grid.ravel() for grid in np.meshgrid(across, up)))
    values = evaluated(model.decision_function, slices, moving).reshape(_GRID, _GRID)
    ax = axes(ax)
    if values.max() > -1 and values.min() < 1:
        ax.contourf(across, up, values, levels=[-1.0, 1.0], colors=[colour(2)], alpha=0.15)
    styles = {-1.0: "--", 0.0: "-", 1.0: "--"}
    inside = [level for level in styles if values.min() < level < values.max()]
    if inside:
        ax.contour(
            across, up, values, levels=inside, colors=INK, linestyles=[styles[v] for v in inside], linewidths=1.0
        )
    for k, name in enumerate(classes):
        ax.plot(*rows[labels == name].T, marker=marker(k), ms=4, ls="none", color=colour(k), label=key_text(name))
    support = _support(model, X, labels == classes[1])
    ax.plot(*rows[support].T, marker="o", ms=9, mfc="none", mec=INK, mew=0.8, ls="none", label="support vectors")
    dress(ax, slices.names[0], slices.names[1], f"{len(support)} of {len(rows)} rows are support vectors")
    keyed(ax, corner="best" if len(rows) <= 1_000 else "upper right")  # searching is slow with many points
    return ax


def _support(model: Any, X: Any, positive: Array) -> Array:
    found = getattr(model, "support_", None)
    if found is not None:
        return np.asarray(found)
    signs = np.where(positive, 1.0, -1.0)
    return np.flatnonzero(signs * np.asarray(model.decision_function(X)) <= 1.0)
