"""Feature importances as bars, and the scores of a stepwise feature selection and of several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, dress, keyed, legend_outside

__all__ = ["candidate_scores", "importance_bars", "selection_curve"]


@inherit_docs(AXES)
def importance_bars(
    values: Any, names: Sequence[Any] | None = None, *, most: int = 20, measure: str = "importance", ax: Any = None
) -> Any:
    """Plot the importances of columns as bars, the largest on top.

    Parameters
    ----------
    values : array-like of shape (n_features,)
        Importances, such as `feature_importances_`.
    names : sequence of str, optional
        Names of the columns; by default x0, x1, ...
    most : int, default=20
        Maximum number of bars.
    measure : str, default="importance"
        Name of the values, on the axis.

    Examples
    --------
    >>> from summula.plotting import importance_bars
    >>> ax = importance_bars([0.1, 0.7, 0.2], ["age", "income", "rent"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['income', 'rent', 'age']
    """
    check_installed()
    heights = np.asarray(values, np.float64)
    if heights.ndim != 1 or not len(heights):
        raise DataError(f"The values of importance_bars have shape {heights.shape}; expected one per column.")
    labels = [f"x{j}" for j in range(len(heights))] if names is None else [str(name) for name in names]
    if len(labels) != len(heights):
        raise DataError(f"There are {len(heights)} importances but {len(labels)} names; pass one name for each.")
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise ParameterError(f"The 'most' of importance_bars must be an int >= 1, not {most!r}.")
    order = np.argsort(-np.abs(heights), kind="stable")[:most]
    ax = axes(ax)
    ax.barh(np.arange(len(order)), heights[order], color=colour(0), height=0.7)
    ax.set_yticks(np.arange(len(order)), [labels[j] for j in order], parse_math=False)
    ax.invert_yaxis()
    dress(ax, measure, "", f"the largest {len(order)} of {len(heights)}" if len(order) < len(heights) else "")
    return ax


@inherit_docs(AXES)
def selection_curve(
    scores: Any, steps: Sequence[str], *, chosen: int | None = None, measure: str = "score", ax: Any = None
) -> Any:
    """Plot the score after each step of a stepwise selection of columns.

    Parameters
    ----------
    scores : array-like of shape (n_steps,)
    steps : sequence of str
        Label of each step, such as "+ age".
    chosen : int, optional
        Step to mark: the last one of the selected subset.
    measure : str, default="score"
        Name of the scores, on the axis.

    Examples
    --------
    >>> from summula.plotting import selection_curve
    >>> ax = selection_curve([0.6, 0.8, 0.79], ["+ age", "+ rent", "+ size"], chosen=1)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['+ age', '+ rent', '+ size']
    """
    check_installed()
    heights = np.asarray(scores, np.float64)
    if heights.ndim != 1 or not len(heights) or len(steps) != len(heights):
        raise DataError(f"There are {np.size(heights)} scores and {len(steps)} steps; pass one of each.")
    ax = axes(ax)
    ax.plot(np.arange(len(heights)), heights, "o-", color=colour(0), ms=4, lw=1.4)
    if chosen is not None:
        ax.axvline(chosen, color=GREY, lw=1.0, ls="--", label="selected")
    shown = np.arange(0, len(heights), -(-len(heights) // 40))
    turned = len(shown) > 4
    look = {"rotation": 60, "ha": "right"} if turned else {}
    ax.set_xticks(shown, [str(steps[j]) for j in shown.tolist()], parse_math=False, **look)
    dress(ax, "step", measure)
    if chosen is not None:
        keyed(ax)
        legend_outside(ax)
    return ax


@inherit_docs(AXES)
def candidate_scores(
    names: Sequence[str],
    scores: Any,
    errors: Any = None,
    *,
    chosen: int | None = None,
    measure: str = "score",
    ax: Any = None,
) -> Any:
    """Plot the validation scores of several models, with their standard errors.

    Parameters
    ----------
    names : sequence of str
        Names of the models, from top to bottom.
    scores : array-like of shape (n_models,)
        A score that is NaN, of a model that could not be fitted, is not drawn.
    errors : array-like of shape (n_models,), optional
        Standard errors; NaN for none.
    chosen : int, optional
        Model to mark.
    measure : str, default="score"
        Name of the scores, on the axis.

    Examples
    --------
    >>> from summula.plotting import candidate_scores
    >>> candidate_scores(["tree", "forest"], [0.8, 0.9], [0.02, 0.01], chosen=1).get_xlabel()
    'score'
    """
    values = np.asarray(scores, np.float64)
    spread = np.zeros(values.shape) if errors is None else np.nan_to_num(np.asarray(errors, np.float64))
    check_installed()
    if values.ndim != 1 or not len(values) or len(names) != len(values) or spread.shape != values.shape:
        raise DataError(f"There are {np.size(scores)} scores and {len(names)} names; pass one of each per model.")
    ax = axes(ax)
    for k, (value, error) in enumerate(zip(values, spread, strict=True)):
        look = {"color": colour(5 if k == chosen else 0), "marker": "D" if k == chosen else "o", "ms": 6, "capsize": 3}
        ax.errorbar(value, k, xerr=error or None, label="selected" if k == chosen else None, ls="none", **look)
    ax.set_yticks(np.arange(len(values)), [str(name) for name in names], parse_math=False)
    ax.set_ylim(len(values) - 0.5, -0.5)
    dress(ax, measure, "")
    ax.tick_params(axis="y", labelsize=min(8.0, 160.0 / len(values)))
    if chosen is not None:
        keyed(ax, corner="best")
    return ax
