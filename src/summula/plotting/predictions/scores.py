"""Class probabilities over one column, fitted means over two, and outlier scores.

With one column each class has a curve of its probability p_k(x), or of its score if a model has no probabilities; rows
are ticks at the bottom and at the top.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.slices import Slices, evaluated, target_values
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, colour, colour_bar, dress, key_text, keyed

__all__ = ["class_curves", "fitted_surface", "outlier_scores"]

Array = NDArray[Any]

_POINTS = 256
_GRID = 160
_MARGIN = 0.05  # around the rows, relative to their range
_MANY = 5_000  # number of rows above which the points are rasterised in vector files
_STYLES = ("-", "--", "-.", ":")


@inherit_docs(AXES)
def class_curves(model: Any, X: Any, y: Any = None, *, column: Any = 0, ax: Any = None) -> Any:
    """Plot the probability of each class, or its score, against one column; rows are ticks at the bottom.

    Parameters
    ----------
    model : fitted classifier
        With `predict_proba` or `decision_function`; otherwise the predicted class is drawn as a step.
    X : array-like or frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), or name of a column of X, optional
        Classes of the rows.
    column : int or str, default=0
        Column on the axis; the others are fixed at their median (or most frequent value, if not numeric).

    Examples
    --------
    >>> from summula.naive_bayes import GaussianNB
    >>> from summula.plotting import class_curves
    >>> X, y = [[0.0], [1.0], [4.0], [5.0], [9.0], [9.5]], ["a", "a", "b", "b", "c", "c"]
    >>> ax = class_curves(GaussianNB().fit(X, y), X, y)
    >>> ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('probability', ['a', 'b', 'c'])
    """
    check_installed()
    slices = Slices(X, "class_curves", model, y if isinstance(y, str) else None)
    place, classes = slices.place(column), list(model.classes_)
    u = np.linspace(*slices.range(place, _MARGIN), _POINTS)
    curves, measure = _curves(model, slices, {place: u}, classes)
    ax = axes(ax)
    for k, curve in enumerate(curves):
        one_score = len(curves) == 1
        look = {"color": INK if one_score else colour(k), "ls": "-" if one_score else _STYLES[k % 4]}
        ax.plot(u, curve, lw=1.6, label=None if one_score else key_text(classes[k]), **look)
    if measure == "score":
        ax.axhline(0.0, color=GREY, lw=0.8, ls=":")
    name = None
    if y is not None:
        labels, name = target_values(X, y, slices.n_rows, "class_curves")
        _draw_ticks(ax, slices.values(place), labels.astype(object), classes, named=len(curves) == 1)
    if measure == "predicted class":
        ax.set_yticks(np.arange(len(classes)), [str(one) for one in classes], parse_math=False)
    dress(ax, slices.names[place], measure, slices.describe_fixed((place,)))
    if ax.get_legend_handles_labels()[1]:
        keyed(ax, title=name, corner="best" if slices.n_rows <= _MANY else "upper right")
    return ax


def _curves(model: Any, slices: Slices, moving: Any, classes: list[Any]) -> tuple[Array, str]:
    if hasattr(model, "predict_proba"):
        return evaluated(model.predict_proba, slices, moving).T, "probability"
    if hasattr(model, "decision_function"):
        scores = evaluated(model.decision_function, slices, moving)
        if scores.ndim == 1 or scores.shape[1] == len(classes):
            return np.atleast_2d(scores.T), "score"
    guess = evaluated(model.predict, slices, moving).astype(object)
    return np.array([[classes.index(one) for one in guess.tolist()]]), "predicted class"


def _draw_ticks(ax: Any, values: Array, labels: Array, classes: list[Any], *, named: bool) -> None:
    """Draw rows as ticks, a line of them for each class, below the curves."""
    for k, one in enumerate(classes):
        here = values[labels == one]
        height = 0.02 + 0.035 * k
        look = {"marker": "|", "ms": 5, "mew": 0.8, "ls": "none", "color": colour(k), "alpha": 0.8}
        label = key_text(one) if named else None
        line = ax.plot(here, np.full(len(here), height), transform=ax.get_xaxis_transform(), label=label, **look)[0]
        line.set_rasterized(len(values) > _MANY)
    low, high = ax.get_ylim()
    ax.set_ylim(low - (0.035 * len(classes) + 0.02) * (high - low), high)


@inherit_docs(AXES)
def fitted_surface(model: Any, X: Any, y: Any = None, *, columns: Any = (0, 1), ax: Any = None) -> Any:
    """Plot the mean fitted by a regression against two columns as colours, with the rows in the same colours.

    Parameters
    ----------
    model : fitted regressor
    X : array-like or frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), or name of a column of X, optional
        Targets; rows whose colour differs from their surroundings have large residuals.
    columns : two numbers or names, default=(0, 1)
        Columns on the axes; the others are fixed at their median (or most frequent value, if not numeric).

    Examples
    --------
    >>> from summula.linear_model import LinearRegression
    >>> from summula.plotting import fitted_surface
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 2.0]
    >>> ax = fitted_surface(LinearRegression().fit(X, y), X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x1')
    """
    check_installed()
    from matplotlib.colors import Normalize

    slices = Slices(X, "fitted_surface", model, y if isinstance(y, str) else None)
    across, up = (slices.place(column) for column in columns)
    values, name = (None, None) if y is None else target_values(X, y, slices.n_rows, "fitted_surface")
    u, v = (np.linspace(*slices.range(j, _MARGIN), _GRID) for j in (across, up))
    moving = {j: grid.ravel() for j, grid in zip((across, up), np.meshgrid(u, v), strict=True)}
    mean = np.asarray(evaluated(model.predict, slices, moving), np.float64).reshape(_GRID, _GRID)
    both = mean if values is None else np.append(mean.ravel(), values.astype(np.float64))
    shades = {"cmap": "cividis", "norm": Normalize(float(np.nanmin(both)), float(np.nanmax(both)))}
    ax = axes(ax)
    extent = (u[0], u[-1], v[0], v[-1])
    image = ax.imshow(mean, extent=extent, origin="lower", aspect="auto", interpolation="bilinear", **shades)
    if mean.max() > mean.min():
        ax.contour(u, v, mean, levels=8, colors="white", linewidths=0.5, alpha=0.6)
    if values is not None:
        look = {"s": 20, "edgecolors": "white", "linewidths": 0.6, "rasterized": slices.n_rows > _MANY}
        ax.scatter(slices.values(across), slices.values(up), c=values.astype(np.float64), **shades, **look)
    ax.set_xlim(u[0], u[-1])
    ax.set_ylim(v[0], v[-1])
    dress(ax, slices.names[across], slices.names[up], slices.describe_fixed((across, up)))
    colour_bar(ax, image, "y" if name is None else name)
    return ax


@inherit_docs(AXES)
def outlier_scores(model: Any, X: Any, *, ax: Any = None) -> Any:
    """Plot the region f(x) >= 0 accepted by an outlier detector for two columns, or a histogram of the scores.

    Parameters
    ----------
    model : fitted outlier detector with `decision_function`, negative for outliers
    X : array-like or frame of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from summula.plotting import outlier_scores
    >>> from summula.svm import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> ax = outlier_scores(OneClassSVM(nu=0.1).fit(X), X)
    >>> len(ax.collections)
    4
    """
    check_installed()
    slices = Slices(X, "outlier_scores", model)
    scores = np.asarray(model.decision_function(X if slices.frame is None else slices.frame.to_native())).ravel()
    if not np.isfinite(scores).all():
        raise DataError("The scores of the model are not finite.")
    outside = scores < 0
    title = f"{int(outside.sum())} of {len(scores)} rows are outliers"
    ax = axes(ax)
    if len(slices.names) == 2:
        _draw_accepted(ax, model, slices, outside)
        dress(ax, slices.names[0], slices.names[1], title)
    else:
        edges = np.histogram_bin_edges(scores, bins="sqrt")
        width = edges[1] - edges[0]  # 0 is the end of a bin
        edges = width * np.arange(np.floor(edges[0] / width), np.ceil(edges[-1] / width) + 1.0)
        for k, (here, name) in enumerate(((~outside, "inliers"), (outside, "outliers"))):
            ax.hist(scores[here], bins=edges, color=colour((0, 5)[k]), label=name)
        ax.axvline(0.0, color=INK, lw=1.0, ls="--")
        dress(ax, "score", "rows", title)
    keyed(ax, corner="best" if len(scores) <= 1_000 else "upper right")
    return ax


def _draw_accepted(ax: Any, model: Any, slices: Slices, outside: Array) -> None:
    u, v = (np.linspace(*slices.range(j, 0.1), _GRID) for j in (0, 1))
    moving = dict(enumerate(grid.ravel() for grid in np.meshgrid(u, v)))
    f = np.asarray(evaluated(model.decision_function, slices, moving)).reshape(_GRID, _GRID)
    if f.min() < 0.0 < f.max():
        ax.contourf(u, v, f, levels=[0.0, f.max()], colors=[colour(0)], alpha=0.15)
        ax.contour(u, v, f, levels=[0.0], colors=INK, linewidths=1.2)
    a, b = slices.values(0), slices.values(1)
    for k, (here, name) in enumerate(((~outside, "inliers"), (outside, "outliers"))):
        look = {"s": 16, "color": colour((0, 5)[k]), "marker": ("o", "X")[k], "linewidths": 0}
        ax.scatter(a[here], b[here], label=name, rasterized=len(a) > _MANY, **look)
