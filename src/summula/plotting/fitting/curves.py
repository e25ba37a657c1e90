"""Scores on training and validation rows: learning curves and validation curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, dress, keyed, marker

__all__ = ["learning_curve", "validation_curve"]

Array = NDArray[Any]

# Documentation shared by both curves: see `summula.core.docstrings`.
SCORES = """
Parameters
----------
training, validation : array-like of shape (n_points,) or (n_points, n_folds)
    Scores or errors on training rows and validation rows. With folds, the mean is a line and the standard deviation
    a band around it.
measure : str, default="score"
    Name of the scores, on the axis.
"""


@inherit_docs(SCORES, AXES)
def learning_curve(sizes: Any, training: Any, validation: Any, *, measure: str = "score", ax: Any = None) -> Any:
    """Plot scores against the number of training rows.

    Where the curves meet, more rows do not help but a more flexible model may; where they are apart, more rows help.

    Parameters
    ----------
    sizes : array-like of shape (n_points,)
        Numbers of training rows.

    Examples
    --------
    >>> from summula.plotting import learning_curve
    >>> ax = learning_curve([50, 100, 200], [0.99, 0.95, 0.93], [0.8, 0.86, 0.9])
    >>> [line.get_label() for line in ax.lines], ax.get_xlabel()
    (['training', 'validation'], 'training rows')
    """
    check_installed()
    x, heights = _points("learning_curve", sizes, training, validation)
    ax = axes(ax)
    _draw(ax, x, heights)
    dress(ax, "training rows", measure)
    keyed(ax, corner="best")
    return ax


@inherit_docs(SCORES, AXES)
def validation_curve(
    values: Any,
    training: Any,
    validation: Any,
    *,
    parameter: str = "parameter",
    chosen: float | None = None,
    measure: str = "score",
    ax: Any = None,
) -> Any:
    """Plot scores against the values of a hyperparameter, on a logarithmic scale if the values span a factor of 30.

    Parameters
    ----------
    values : array-like of shape (n_points,)
        Values of the hyperparameter.
    parameter : str, default="parameter"
        Its name, on the axis.
    chosen : float, optional
        Value to mark, such as the one with the best validation score.

    Examples
    --------
    >>> from summula.plotting import validation_curve
    >>> ax = validation_curve([0.01, 1.0, 100.0], [0.7, 0.9, 1.0], [0.7, 0.88, 0.8], parameter="C", chosen=1.0)
    >>> ax.get_xscale(), ax.get_xlabel()
    ('log', 'C')
    """
    check_installed()
    x, heights = _points("validation_curve", values, training, validation)
    ax = axes(ax)
    _draw(ax, x, heights)
    if x.min() > 0 and x.max() > 30 * x.min():
        ax.set_xscale("log")
    if chosen is not None:
        ax.axvline(float(chosen), color=GREY, lw=1.0, ls="--", label=f"{parameter} = {chosen:.3g}")
    dress(ax, parameter, measure)
    keyed(ax, corner="best")
    return ax


def _points(function: str, x: Any, training: Any, validation: Any) -> tuple[Array, dict[str, Array]]:
    """Return the points in ascending order, and their scores, with one column per fold."""
    try:
        places = np.asarray(x, np.float64)
        heights = {
            name: np.asarray(scores, np.float64)
            for name, scores in (("training", training), ("validation", validation))
        }
    except (TypeError, ValueError):
        raise DataError(f"{function} needs numbers; pass arrays of places and scores.") from None
    if places.ndim != 1 or not len(places) or not np.isfinite(places).all():
        raise ParameterError(f"The places of {function} must be a list of finite numbers; got shape {places.shape}.")
    order = np.argsort(places, kind="stable")
    for name, scores in heights.items():
        if scores.ndim not in (1, 2) or len(scores) != len(places):
            raise DataError(
                f"{function} has {len(places)} places, but {name} has shape {scores.shape}; expected "
                f"({len(places)},) or ({len(places)}, n_folds)."
            )
        heights[name] = scores.reshape(len(places), -1)[order]
    return places[order], heights


def _draw(ax: Any, x: Array, heights: dict[str, Array]) -> None:
    for k, (name, scores) in enumerate(heights.items()):
        mean = scores.mean(axis=1)
        if scores.shape[1] > 1:
            spread = scores.std(axis=1)
            ax.fill_between(x, mean - spread, mean + spread, color=colour(k), alpha=0.18, lw=0)
        ax.plot(x, mean, color=colour(k), marker=marker(k), ms=4, lw=1.4, ls=("--", "-")[k], label=name)
