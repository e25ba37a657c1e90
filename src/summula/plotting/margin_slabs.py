"""The margin of a support vector machine: the region -1 <= f(x) <= 1, and its support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, INK, axes, check_installed, colour, dress, keyed, marker

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
    X : array-like of shape (n_samples, 2)
    y : array-like of shape (n_samples,)

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> from summula.plotting import margin_slab
    >>> from summula.svm import SVC
    >>> X = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [3.0, 3.0]]
    >>> ax = margin_slab(SVC(C=float("inf"), kernel="linear").fit(X, [0, 1, 1, 1]), X, [0, 1, 1, 1])
    >>> ax.get_title()
    '3 of 4 rows are support vectors'
    >>> pyplot.close(ax.figure)
    """
    check_installed()
    rows, labels = np.asarray(X, np.float64), np.asarray(y).ravel()
    if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows):
        raise DataError(f"X has shape {rows.shape}; margin_slab needs two columns.")
    classes = np.unique(labels)
    if len(classes) != 2 or len(labels) != len(rows):
        raise DataError(f"y has {len(classes)} classes in {len(labels)} rows; margin_slab needs two classes.")
    low, high = rows.min(axis=0), rows.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    across, up = (
        np.linspace(a - _BORDER * s, b + _BORDER * s, _GRID) for a, b, s in zip(low, high, spread, strict=True)
    )
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    values = np.asarray(model.decision_function(points)).reshape(_GRID, _GRID)
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
        ax.plot(*rows[labels == name].T, marker=marker(k), ms=4, ls="none", color=colour(k), label=str(name))
    support = _support(model, rows, labels == classes[1])
    ax.plot(*rows[support].T, marker="o", ms=9, mfc="none", mec=INK, mew=0.8, ls="none", label="support vectors")
    dress(ax, "x0", "x1", f"{len(support)} of {len(rows)} rows are support vectors")
    keyed(ax)
    return ax


def _support(model: Any, rows: Array, positive: Array) -> Array:
    found = getattr(model, "support_", None)
    if found is not None:
        return np.asarray(found)
    signs = np.where(positive, 1.0, -1.0)
    return np.flatnonzero(signs * np.asarray(model.decision_function(rows)) <= 1.0)
