"""Decision regions: which class a classifier gives to each point of a plane, and how sure it is.

With p_k(x) the probability of class k, the picture has

    the winning class, as a colour                          the class that `predict` names
    how sure it is, as the opacity of the colour            p of the winning class
    lines of equal probability, for two classes             p_1(x) = level                                    (1)
    borders of class k, for more                            p_k(x) = max of p_j(x) over j other than k        (2)

A classifier without probabilities has a score s(x) instead: its lines are those of s, and the opacity follows |s|, or
the lead of the best score over the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.plotting.slices import Slices, evaluated, target_values
from summula.plotting.style import INK, axes, check_installed, colour, dress, keyed, marker

__all__ = ["decision_regions"]

Array = NDArray[Any]

_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_SCORES = (-1.0, 0.0, 1.0)  # the border of a support vector machine, and its margins
_FAINT, _STRONG = 0.08, 0.6  # opacity of a class that wins by nothing, and of one that is certain
_MARGIN = 0.05  # of the range of the points
_MANY = 5_000  # points beyond which a vector file holds them as an image


class _Field(NamedTuple):
    """What a classifier says on a grid; the last two axes are those of the grid."""

    winner: Array  # numbers of classes
    sure: Array  # between 0 and 1
    scores: Array | None = None  # one layer a class, the largest wins; None where the model decides otherwise
    line: Array | None = None  # what lines are drawn of, for two classes: p_1 or s
    levels: tuple[float, ...] = ()
    border: float = 0.5  # the level between the classes


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
    """Draw which class a classifier gives to each point of a plane, and how sure it is.

    Parameters
    ----------
    model : fitted classifier
        Of this package, of scikit-learn or alike: with `classes_`, `predict`, and `predict_proba` or
        `decision_function` where it has them.
    X : array-like or frame of shape (n_samples, n_features)
        Rows of the kind the model was fitted on; they give the range of the picture.
    y : array-like of shape (n_samples,), or name of a column of X, optional
        Classes of the rows, which are then drawn as points.
    columns : two numbers or names, default=(0, 1)
        The columns on the axes. The others are held at their median (what is no number, at its most frequent value).
    levels : sequence of float, default=(0.1, 0.25, 0.5, 0.75, 0.9)
        Of two classes: probabilities of the second at which lines are drawn. Without `predict_proba` they are values
        of the score, and -1, 0 and 1 by default.
    resolution : int, default=200
        Points of the grid along each axis.
    ax : matplotlib Axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib import pyplot
    >>> from summula.linear_model import LogisticRegression
    >>> from summula.plotting import decision_regions
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "above", "below")
    >>> ax = decision_regions(LogisticRegression().fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['above', 'below']
    >>> pyplot.close(ax.figure)
    """
    check_installed()
    classes = _classes(model)
    slices = Slices(X, "decision_regions", model, y if isinstance(y, str) else None)
    across, up = _two_places(slices, columns)
    levels = _checked_levels(levels)
    if isinstance(resolution, bool) or not isinstance(resolution, int | np.integer) or resolution < 2:
        raise ParameterError(
            f"The 'resolution' of decision_regions must be a whole number above 1, not {resolution!r}."
        )
    labels, name = (None, None) if y is None else target_values(X, y, slices.n_rows, "decision_regions")
    codes = None if labels is None else _coded(labels, classes)

    u = np.linspace(*slices.range(across, _MARGIN), int(resolution))
    v = np.linspace(*slices.range(up, _MARGIN), int(resolution))
    field = _field(model, classes, slices, {across: u, up: v}, levels)
    ax = axes(ax)
    _fill(ax, u, v, field)
    ax.set_xlim(u[0], u[-1])  # before the lines: their labels are placed by where things are on the page
    ax.set_ylim(v[0], v[-1])
    _draw_lines(ax, u, v, field)
    handles = _region_keys(classes) if codes is None else _draw_points(ax, slices, across, up, codes, classes)
    dress(ax, slices.names[across], slices.names[up], slices.held((across, up)))
    keyed(ax, handles, name)
    return ax


# ------------------------------------------------------------------------------------------------------------ checking


def _classes(model: Any) -> Array:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise ParameterError(
            f"decision_regions needs a classifier, and {type(model).__name__} has no classes_; "
            "draw a regression with fitted_mean."
        )
    if isinstance(classes, list) and len(classes) and np.ndim(classes[0]):
        raise ParameterError(
            f"decision_regions draws one target, and {type(model).__name__} has {len(classes)}; draw a model of each."
        )
    return np.asarray(classes)


def _two_places(slices: Slices, columns: Any) -> tuple[int, int]:
    if len(slices.names) < 2:
        raise DataError("X has one column, and decision_regions needs two; draw one column with fitted_mean.")
    if isinstance(columns, str) or len(columns) != 2:
        raise ParameterError(f"The 'columns' of decision_regions must be two columns, not {columns!r}.")
    across, up = (slices.place(column) for column in columns)
    if across == up:
        raise ParameterError(f"The 'columns' of decision_regions must be two different ones, not {columns!r}.")
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
    """Labels as places among the classes."""
    labels = labels.astype(object)  # so that numbers can be compared with text
    same = np.array([labels == label for label in classes.tolist()])
    known = same.any(axis=0)
    if not known.all():
        row = int(np.argmin(known))
        raise DataError(
            f"y holds {labels.tolist()[row]!r} at row {row}, which is no class of the model; "
            f"its classes are {', '.join(map(repr, classes.tolist()))}."
        )
    return np.asarray(same.argmax(axis=0))


# ---------------------------------------------------------------------------------------------------------- evaluating


def _field(model: Any, classes: Array, slices: Slices, sides: dict[int, Array], levels: tuple[float, ...]) -> _Field:
    """What the model says on the grid."""
    u, v = sides.values()
    shape = (len(v), len(u))
    moving = {j: values.ravel() for j, values in zip(sides, np.meshgrid(u, v), strict=True)}
    winner = _coded(evaluated(model.predict, slices, moving), classes).reshape(shape)
    K = len(classes)
    if hasattr(model, "predict_proba"):
        P = evaluated(model.predict_proba, slices, moving).T.reshape(K, *shape)
        own = np.take_along_axis(P, winner[None], axis=0)[0]
        sure = np.clip((own - 1 / K) / (1 - 1 / K), 0.0, 1.0) if K > 1 else np.ones(shape)
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
    """The scores where the largest always wins; None where the model decides by something else."""
    own = np.take_along_axis(scores, winner[None], axis=0)[0]
    return scores if bool((own >= scores.max(axis=0) - 1e-12 * np.abs(own)).all()) else None


def _share(size: Array) -> Array:
    most = float(size.max())
    return size / most if most > 0 else np.zeros_like(size)


# ------------------------------------------------------------------------------------------------------------- drawing


def _fill(ax: Any, u: Array, v: Array, field: _Field) -> None:
    """The winning class as a colour, as strong as it is sure."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour(k)) for k in range(int(field.winner.max()) + 1)])
    opacity = _FAINT + (_STRONG - _FAINT) * field.sure
    image = np.concatenate([colours[field.winner], opacity[..., None]], axis=-1)
    # A point of the grid is the middle of its cell.
    half_u, half_v = (u[1] - u[0]) / 2, (v[1] - v[0]) / 2
    extent = (u[0] - half_u, u[-1] + half_u, v[0] - half_v, v[-1] + half_v)
    ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="none", zorder=0)


def _draw_lines(ax: Any, u: Array, v: Array, field: _Field) -> None:
    """Lines (1) of two classes, or the borders (2)."""
    if field.line is not None:
        low, high = float(field.line.min()), float(field.line.max())
        levels = [level for level in field.levels if low < level < high]  # a line that is nowhere would warn
        if levels:
            widths = [1.6 if level == field.border else 0.8 for level in levels]
            look = {"colors": INK, "linewidths": widths, "linestyles": "solid", "zorder": 1}
            drawn = ax.contour(u, v, field.line, levels=levels, **look)
            ax.clabel(drawn, fmt="%g", fontsize=7.5, manual=_label_points(drawn, np.array([np.ptp(u), np.ptp(v)])))
        return
    K = int(field.winner.max()) + 1
    scores = np.array([field.winner == k for k in range(K)], float) if field.scores is None else field.scores
    # A border lies between two classes, so those of all but the last class are all there are.
    for k in range(len(scores) - 1):
        lead = scores[k] - np.delete(scores, k, axis=0).max(axis=0)
        if lead.min() < 0 < lead.max():
            ax.contour(u, v, lead, levels=[0.0], colors=INK, linewidths=1.2, zorder=1)


def _label_points(drawn: Any, size: Array) -> list[tuple[float, ...]]:
    """A point on each line for its label: away from the ends, and further along from line to line so that none meet.

    `size` is how wide and how high the picture is, in units of the data.
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
                label=str(label),
                rasterized=len(a) > _MANY,
                zorder=2,
            )
        )
    return drawn


def _region_keys(classes: Array) -> list[Any]:
    """What a legend shows where there are no points."""
    from matplotlib.patches import Patch

    return [Patch(color=colour(k), alpha=_STRONG, label=str(label)) for k, label in enumerate(classes)]
