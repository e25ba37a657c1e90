"""The fitted mean of a model as a function of one column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.slices import Slices, evaluated, target_values
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, dress, keyed

__all__ = ["fitted_mean"]

Array = NDArray[Any]

_POINTS = 256  # number of points of the curve
_MANY = 5_000  # number of rows above which the points are rasterised in vector files


@inherit_docs(AXES)
def fitted_mean(model: Any, X: Any, y: Any, *, column: Any = 0, ax: Any = None) -> Any:
    """Plot the data and the mean fitted by a model against one column.

    Parameters
    ----------
    model : fitted regressor, or classifier of two classes with `predict_proba`
        For a classifier the mean is the probability of the second class.
    X : array-like or frame of shape (n_samples, n_features)
        Rows with the columns the model was fitted on.
    y : array-like of shape (n_samples,), or name of a column of X
        Targets.
    column : int or str, default=0
        Column on the axis. The others are fixed at their median (or most frequent value, if not numeric); an offset or
        exposure of the model is ignored, as in `predict`.

    Examples
    --------
    >>> from summula.linear_model import PoissonRegressor
    >>> from summula.plotting import fitted_mean
    >>> hours, calls = [[0.0], [1.0], [2.0], [3.0], [4.0]], [1, 1, 3, 4, 6]
    >>> ax = fitted_mean(PoissonRegressor(alpha=0).fit(hours, calls), hours, calls)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['data', 'fitted mean']
    """
    check_installed()
    classes = _two_classes(model)
    slices = Slices(X, "fitted_mean", model, y if isinstance(y, str) else None)
    place = slices.place(column)
    values, name = target_values(X, y, slices.n_rows, "fitted_mean")
    heights = _numbers(values) if classes is None else np.asarray(values == classes[1], np.float64)

    u = np.linspace(*slices.range(place), _POINTS)
    mean = evaluated(model.predict if classes is None else model.predict_proba, slices, {place: u})
    mean = mean if classes is None else mean[:, 1]
    if mean.ndim == 2 and mean.shape[1] == 1:
        mean = mean[:, 0]
    if mean.ndim != 1:
        raise ParameterError(
            f"fitted_mean plots one target, but {type(model).__name__} predicts {mean.shape[1]}; fit one model each."
        )
    ax, a = axes(ax), slices.values(place)
    ax.scatter(a, heights, s=14, c=GREY, alpha=0.6, linewidths=0, label="data", rasterized=len(a) > _MANY)
    ax.plot(u, mean, color=colour(0), lw=2.0, label="fitted mean")
    up = "y" if name is None else name
    dress(
        ax, slices.names[place], up if classes is None else f"P({up} = {classes[1]})", slices.describe_fixed((place,))
    )
    keyed(ax, corner="upper left" if mean[-1] > mean[0] else "upper right")
    return ax


def _two_classes(model: Any) -> Array | None:
    """Return the classes of a classifier, or None for a regressor."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    name = type(model).__name__
    if len(classes) != 2 or np.ndim(classes[0]):
        raise ParameterError(f"fitted_mean plots at most two classes, but {name} has more; use decision_regions.")
    if not hasattr(model, "predict_proba"):
        raise ParameterError(f"fitted_mean needs probabilities, but {name} has no predict_proba; use decision_regions.")
    return np.asarray(classes)


def _numbers(values: Array) -> Array:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("y is not numeric; the mean of a regression needs numeric targets.") from None
