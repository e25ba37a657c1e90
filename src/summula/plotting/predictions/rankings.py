"""ROC curves: the rates of true and false positives for all thresholds of a score.

A row counts as positive if its score is at least t. As t decreases, both rates increase from 0 to 1,

    TPR(t) = share of the positive rows with score >= t,    FPR(t) = share of the negative rows with score >= t   (1)

and the area under the curve is the probability that a positive row has a larger score than a negative one, where ties
count half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, dress, key_text, keyed

__all__ = ["roc"]

Array = NDArray[Any]


@inherit_docs(AXES)
def roc(y: Any, *scores: Any, labels: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Plot the ROC curves of scores, with the area under each in the legend.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of two classes; the larger one is positive.
    *scores : array-like of shape (n_samples,)
        Scores of the rows, such as probabilities of the positive class: one curve each. For labels of K > 2 classes,
        one array of shape (n_samples, K), with the classes in sorted order: one curve for each against the rest.
    labels : sequence of str, optional
        Names for the legend.

    Examples
    --------
    >>> from summula.plotting import roc
    >>> ax = roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], labels=["model"])
    >>> ax.get_legend().get_texts()[0].get_text()
    'model: area 0.750'
    """
    check_installed()
    truth = np.asarray(y).ravel()
    classes = np.unique(truth)
    if not scores:
        raise ParameterError("roc needs the scores of at least one model.")
    positives = [classes[-1]] * len(scores)
    if len(classes) > 2 and len(scores) == 1 and np.shape(scores[0])[1:] == (len(classes),):
        positives, scores = list(classes), tuple(np.asarray(scores[0]).T)
        labels = [f"{one} or not" for one in classes] if labels is None else labels
    elif len(classes) != 2:
        raise DataError(
            f"y has {len(classes)} classes; roc needs two, or the scores of one model with a column for each class: "
            "compare one class with the rest, y == name."
        )
    if labels is not None and (isinstance(labels, str) or len(labels) != len(scores)):
        raise ParameterError(f"The 'labels' of roc must be {len(scores)} names, one for each, not {labels!r}.")
    curves = [_rates(truth == label, one) for label, one in zip(positives, scores, strict=True)]
    ax = axes(ax)
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", label="_chance")
    for k, (false, true) in enumerate(curves):
        area = float(np.trapezoid(true, false))
        name = "" if labels is None else f"{key_text(labels[k])}: "
        ax.plot(false, true, color=colour(k), lw=1.6, ls=("-", "--", "-.")[k % 3], label=f"{name}area {area:.3f}")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    dress(ax, "false positive rate", "true positive rate")
    keyed(ax, corner="lower right")
    return ax


def _rates(positive: Array, scores: Any) -> tuple[Array, Array]:
    """Return the rates (1) at all thresholds, from (0, 0) to (1, 1)."""
    values = np.asarray(scores, np.float64).ravel()
    if len(values) != len(positive):
        raise DataError(f"y has {len(positive)} rows but the scores have {len(values)}; they must be equal.")
    if np.isnan(values).any():
        raise DataError(f"The score of row {int(np.argmax(np.isnan(values)))} is NaN.")
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # rows with equal scores come together
    true = np.cumsum(positive[order])[ends]
    false = ends + 1 - true
    return np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1])
