"""Decision regions: the predicted class at each point of a plane, and its probability.

With p_k(x) the probability of class k, the plot shows

    the predicted class, as a colour                        the result of `predict`
    its probability, as the opacity of the colour           p of the predicted class
    contours of equal probability, for two classes          p_1(x) = level                                    (1)
    boundaries of class k, for more                         p_k(x) = max of p_j(x) over j other than k        (2)

For a classifier without probabilities a score s(x) is used instead: contours are those of s, and the opacity depends on
|s|, or on the difference between the two largest scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.slices import Slices, evaluated, target_values
from summula.plotting.style import AXES, INK, axes, check_installed, colour, dress, key_text, keyed, marker

__all__ = ["decision_regions"]

Array = NDArray[Any]

_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_SCORES = (-1.0, 0.0, 1.0)  # decision boundary and margins of a support vector machine
_FAINT, _STRONG = 0.08, 0.6  # opacity for a tie, and for probability 1
_STEPS = 1_000  # maximum number of distinct probabilities on the grid of a step function
_MARGIN = 0.05  # relative to the range of the points
_FEW = 1_000  # maximum number of rows for which a free place for the legend is searched
_MANY = 5_000  # number of points above which they are rasterised in vector files


class _Field(NamedTuple):
    """Predictions of a classifier on a grid; the last two axes are those of the grid."""

    winner: Array  # indices of the predicted classes
    sure: Array  # confidence between 0 and 1
    scores: Array | None = None  # one layer per class, if the class with the largest score is predicted
    line: Array | None = None  # values whose contours are drawn, for two classes: p_1 or s
    levels: tuple[float, ...] = ()
    border: float = 0.5  # the level between the classes


@inherit_docs(AXES)
def decision_regions(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    columns: Sequence[Any] = (0, 1),
    levels: Sequence[float] = _LEVELS,
    resolution: int = 200,
    ax: Any = None,
) -> Any:
    """Plot the predicted class at each point of a plane, and its probability.

    Parameters
    ----------
    model : fitted classifier
        A scikit-learn compatible classifier with `classes_` and `predict`; `predict_proba` or `decision_function` are
        used if available.
    X : array-like or frame of shape (n_samples, n_features)
        Rows with the columns the model was fitted on; they determine the range of the plot.
    y : array-like of shape (n_samples,), or name of a column of X, optional
        Classes of the rows; if given, the rows are drawn as points.
    columns : two numbers or names, default=(0, 1)
        Columns on the axes. The others are fixed at their median (or most frequent value, if not numeric).
    levels : sequence of float, default=(0.1, 0.25, 0.5, 0.75, 0.9)
        For two classes: probabilities of the second at which contours are drawn, by default only 0.5 for step
        functions such as those of trees and nearest neighbours. Without `predict_proba` they are
        values of the score, by default -1, 0 and 1.
    resolution : int, default=200
        Number of grid points along each axis.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.linear_model import LogisticRegression
    >>> from summula.plotting import decision_regions
    >>> iris = load_iris()
    >>> X, y = iris.data[:, 2:], iris.target_names[iris.target]
    >>> ax = decision_regions(LogisticRegression().fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['setosa', 'versicolor', 'virginica']
    """
    check_installed()
    classes = _classes(model)
    slices = Slices(X, "decision_regions", model, y if isinstance(y, str) else None)
    across, up = _two_places(slices, columns)
    levels = _checked_levels(levels)
    if isinstance(resolution, bool) or not isinstance(resolution, int | np.integer) or resolution < 2:
        raise ParameterError(f"The 'resolution' of decision_regions must be an int >= 2, not {resolution!r}.")
    labels, name = (None, None) if y is None else target_values(X, y, slices.n_rows, "decision_regions")
    codes = None if labels is None else _coded(labels, classes)

    u = np.linspace(*slices.range(across, _MARGIN), int(resolution))
    v = np.linspace(*slices.range(up, _MARGIN), int(resolution))
    field = _field(model, classes, slices, {across: u, up: v}, levels)
    ax = axes(ax)
    _fill(ax, u, v, field)
    ax.set_xlim(u[0], u[-1])  # before the contours, whose labels are placed in display coordinates
    ax.set_ylim(v[0], v[-1])
    _draw_lines(ax, u, v, field)
    handles = _region_keys(classes) if codes is None else _draw_points(ax, slices, across, up, codes, classes)
    dress(ax, slices.names[across], slices.names[up], slices.describe_fixed((across, up)))
    keyed(ax, handles, name, "best" if slices.n_rows <= _FEW else "upper right")  # searching is slow with many points
    return ax


# ------------------------------------------------------------------------------------------------------------ checking


def _classes(model: Any) -> Array:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise ParameterError(
            f"decision_regions needs a classifier, but {type(model).__name__} has no classes_; "
            "plot a regression with fitted_mean."
        )
    if isinstance(classes, list) and len(classes) and np.ndim(classes[0]):
        raise ParameterError(
            f"decision_regions plots one target, but {type(model).__name__} has {len(classes)}; fit one model each."
        )
    return np.asarray(classes)


def _two_places(slices: Slices, columns: Any) -> tuple[int, int]:
    if len(slices.names) < 2:
        raise DataError("X has one column, but decision_regions needs two; plot one column with fitted_mean.")
    if isinstance(columns, str) or len(columns) != 2:
        raise ParameterError(f"The 'columns' of decision_regions must be two columns, not {columns!r}.")
    across, up = (slices.place(column) for column in columns)
    if across == up:
        raise ParameterError(f"The 'columns' of decision_regions must be different, not {columns!r}.")
    return across, up


def _checked_levels(levels: Any) -> tuple[float, ...]:
    try:
        kept = tuple(float(level) for level in levels)
    except (TypeError, ValueError):
        raise ParameterError(f"The 'levels' of decision_regions must be numbers, not {levels!r}.") from None
    if not np.isfinite(kept).all():
        raise ParameterError(f"The 'levels' of decision_regions must be finite, not {levels!r}.")
    return tuple(sorted(set(kept)))


def _coded(labels: Array, classes: Array) -> Array:
    """Return labels as indices into the classes."""
    labels = labels.astype(object)  # so that numbers can be compared with text
    same = np.array([labels == label for label in classes.tolist()])
    known = same.any(axis=0)
    if not known.all():
        row = int(np.argmin(known))
        raise DataError(
            f"y is {labels.tolist()[row]!r} at row {row}, which is not a class of the model; "
            f"its classes are {', '.join(map(repr, classes.tolist()))}."
        )
    return np.asarray(same.argmax(axis=0))


# ---------------------------------------------------------------------------------------------------------- evaluating


def _field(model: Any, classes: Array, slices: Slices, sides: dict[int, Array], levels: tuple[float, ...]) -> _Field:
    """Evaluate the model on the grid."""
    u, v = sides.values()
    shape = (len(v), len(u))
    moving = {j: values.ravel() for j, values in zip(sides, np.meshgrid(u, v), strict=True)}
    winner = _coded(evaluated(model.predict, slices, moving), classes).reshape(shape)
    K = len(classes)
    if hasattr(model, "predict_proba"):
        P = evaluated(model.predict_proba, slices, moving).T.reshape(K, *shape)
        own = np.take_along_axis(P, winner[None], axis=0)[0]
        sure = np.clip((own - 1 / K) / (1 - 1 / K), 0.0, 1.0) if K > 1 else np.ones(shape)
        if K == 2 and levels == _LEVELS and len(np.unique(P[1])) < _STEPS:
            levels = (0.5,)  # contours of a step function (trees, neighbours) coincide
        return _Field(winner, sure, _agreeing(P, winner), P[1] if K == 2 else None, levels)
    if hasattr(model, "decision_function"):
        s = evaluated(model.decision_function, slices, moving).T.reshape(-1, *shape)
        if K == 2 and len(s) == 1:
            chosen = _SCORES if levels == _LEVELS else levels
            return _Field(winner, _share(np.abs(s[0])), None, s[0], chosen, 0.0)
        scores = _agreeing(s, winner) if len(s) == K else None
        if scores is not None:
            best = np.sort(scores, axis=0)
            return _Field(winner, _share(best[-1] - best[-2]), scores)
    return _Field(winner, np.full(shape, 0.5))


def _agreeing(scores: Array, winner: Array) -> Array | None:
    """Return the scores if the class with the largest score is always predicted, else None."""
    own = np.take_along_axis(scores, winner[None], axis=0)[0]
    return scores if bool((own >= scores.max(axis=0) - 1e-12 * np.abs(own)).all()) else None


def _share(size: Array) -> Array:
    most = float(size.max())
    return size / most if most > 0 else np.zeros_like(size)


# ------------------------------------------------------------------------------------------------------------- drawing


def _fill(ax: Any, u: Array, v: Array, field: _Field) -> None:
    """Draw the predicted class as a colour, with its confidence as opacity."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour(k)) for k in range(int(field.winner.max()) + 1)])
    opacity = _FAINT + (_STRONG - _FAINT) * field.sure
    image = np.concatenate([colours[field.winner], opacity[..., None]], axis=-1)
    # Grid points are the centres of their cells.
    half_u, half_v = (u[1] - u[0]) / 2, (v[1] - v[0]) / 2
    extent = (u[0] - half_u, u[-1] + half_u, v[0] - half_v, v[-1] + half_v)
    ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="none", zorder=0)


def _draw_lines(ax: Any, u: Array, v: Array, field: _Field) -> None:
    """Draw the contours (1) for two classes, or the boundaries (2)."""
    if field.line is not None:
        low, high = float(field.line.min()), float(field.line.max())
        levels = [level for level in field.levels if low < level < high]  # matplotlib warns about empty contours
        if levels:
            widths = [1.6 if level == field.border else 0.8 for level in levels]
            look = {"colors": INK, "linewidths": widths, "linestyles": "solid", "zorder": 1}
            drawn = ax.contour(u, v, field.line, levels=levels, **look)
            ax.clabel(drawn, fmt="%g", fontsize=7.5, manual=_label_points(drawn, np.array([np.ptp(u), np.ptp(v)])))
        return
    K = int(field.winner.max()) + 1
    scores = np.array([field.winner == k for k in range(K)], float) if field.scores is None else field.scores
    # A boundary is between two classes, so those of all but the last class are complete.
    for k in range(len(scores) - 1):
        lead = scores[k] - np.delete(scores, k, axis=0).max(axis=0)
        if lead.min() < 0 < lead.max():
            ax.contour(u, v, lead, levels=[0.0], colors=INK, linewidths=1.2, zorder=1)


def _label_points(drawn: Any, size: Array) -> list[tuple[float, ...]]:
    """Return a label position on each contour: away from the ends, and shifted from contour to contour.

    `size` is the width and height of the plot in data units.
    """
    paths, points = drawn.get_paths(), []
    for i, path in enumerate(paths):
        along = 0.3 + 0.4 * i / max(len(paths) - 1, 1)
        longest, point = 0.0, None
        for piece in path.to_polygons(closed_only=False):
            walked = np.append(0.0, np.cumsum(np.hypot(*(np.diff(piece, axis=0) / size).T)))
            if walked[-1] > longest:
                longest = walked[-1]
                point = tuple(float(np.interp(along * longest, walked, side)) for side in piece.T)
        if point is not None:
            points.append(point)
    return points


def _draw_points(ax: Any, slices: Slices, across: int, up: int, codes: Array, classes: Array) -> list[Any]:
    a, b = slices.values(across), slices.values(up)
    drawn = []
    for k, label in enumerate(classes):
        of = codes == k
        drawn.append(
            ax.scatter(
                a[of],
                b[of],
                s=18,
                c=colour(k),
                marker=marker(k),
                edgecolors="white",
                linewidths=0.5,
                label=key_text(label),
                rasterized=len(a) > _MANY,
                zorder=2,
            )
        )
    return drawn


def _region_keys(classes: Array) -> list[Any]:
    """Return the legend entries if there are no points."""
    from matplotlib.patches import Patch

    return [Patch(color=colour(k), alpha=_STRONG, label=key_text(label)) for k, label in enumerate(classes)]
