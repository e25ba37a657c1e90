"""Predictions of models with many columns: confusion matrices, and predicted against actual values.

Entry (i, j) of a confusion matrix counts the rows of class i that are predicted as class j. Colours show its fraction
of the rows of class i, so that rare classes are visible; the diagonal is the recall of each class.                 (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, colour, colour_bar, dress

__all__ = ["confusion", "predicted_actual"]

Array = NDArray[Any]

_MOST_NUMBERS = 20  # number of classes up to which the counts are written
_MOST_NAMES = 40
_LONGEST = 24  # number of letters of the name of a class
_MANY = 5_000  # number of rows above which the points are rasterised in vector files


@inherit_docs(AXES)
def confusion(y: Any, predicted: Any, *, classes: Sequence[Any] | None = None, name: str = "", ax: Any = None) -> Any:
    """Plot a confusion matrix: counts as numbers, and fractions of each actual class as colours.

    Parameters
    ----------
    y, predicted : array-like of shape (n_samples,)
        Actual and predicted classes.
    classes : sequence, optional
        Classes in the order of the axes; by default all that occur, sorted.
    name : str, default=""
        Name of the target, on the axes.

    Examples
    --------
    >>> from summula.plotting import confusion
    >>> ax = confusion(["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"])
    >>> ax.get_title(), [text.get_text() for text in ax.texts]
    ('3 of 4 rows (75.0%) are predicted correctly', ['1', '1', '0', '2'])
    """
    check_installed()
    actual, guess = np.asarray(y).ravel().astype(object), np.asarray(predicted).ravel().astype(object)
    if len(actual) != len(guess) or not len(actual):
        raise DataError(f"There are {len(actual)} actual and {len(guess)} predicted classes; pass one of each per row.")
    known = list(classes) if classes is not None else _occurring(actual, guess)
    counts = np.array([[int(((actual == a) & (guess == b)).sum()) for b in known] for a in known])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # (1)
    ax = axes(ax)
    image = ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    if len(known) <= _MOST_NUMBERS:
        size = 8.5 if len(known) <= 10 else 6.0
        for (i, j), count in np.ndenumerate(counts):
            ink = "white" if shares[i, j] > 0.6 else INK
            ax.text(j, i, str(count), ha="center", va="center", fontsize=size, color=ink)
    if len(known) <= _MOST_NAMES:
        labels = [_shortened(str(one)) for one in known]
        look = {"rotation": 45, "ha": "right"} if max(map(len, labels)) * len(labels) > 40 else {}
        ax.set_xticks(np.arange(len(known)), labels, parse_math=False, **look)
        ax.set_yticks(np.arange(len(known)), labels, parse_math=False)
    right, n = int(np.trace(counts)), len(actual)
    what = f" {name}" if name else " class"
    title = f"{right} of {n} rows ({right / n:.1%}) are predicted correctly"
    dress(ax, f"predicted{what}", f"actual{what}", title)
    colour_bar(ax, image, "share of the actual class")
    return ax


def _shortened(name: str) -> str:
    """Return a name without its middle if it takes too much of the axes."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}...{name[-_LONGEST // 2 + 3 :]}"


def _occurring(actual: Array, guess: Array) -> list[Any]:
    both = set(actual.tolist()) | set(guess.tolist())
    try:
        return sorted(both)
    except TypeError:
        return sorted(both, key=str)


@inherit_docs(AXES)
def predicted_actual(y: Any, predicted: Any, *, name: str = "y", ax: Any = None) -> Any:
    """Plot predicted against actual values; a perfect model has all points on the line.

    Parameters
    ----------
    y, predicted : array-like of shape (n_samples,)
    name : str, default="y"
        Name of the target, on the axes.

    Examples
    --------
    >>> from summula.plotting import predicted_actual
    >>> ax = predicted_actual([1.0, 2.0, 3.0], [1.5, 2.0, 2.5], name="price")
    >>> ax.get_xlabel(), ax.get_title()
    ('predicted price', 'R2 = 0.750, root mean square error 0.408')
    """
    check_installed()
    try:
        actual, guess = np.asarray(y, np.float64).ravel(), np.asarray(predicted, np.float64).ravel()
    except (TypeError, ValueError):
        raise DataError("predicted_actual needs numbers; draw classes with confusion.") from None
    if len(actual) != len(guess) or not len(actual):
        raise DataError(f"There are {len(actual)} actual and {len(guess)} predicted values; pass one of each per row.")
    ax = axes(ax)
    ends = np.array([min(actual.min(), guess.min()), max(actual.max(), guess.max())])
    ax.plot(ends, ends, color=GREY, lw=1.0, ls="--", zorder=1)
    look = {"s": 14, "c": colour(0), "alpha": 0.6, "linewidths": 0, "rasterized": len(actual) > _MANY}
    ax.scatter(guess, actual, zorder=2, **look)
    squares, spread = float(((actual - guess) ** 2).sum()), float(((actual - actual.mean()) ** 2).sum())
    error = f"root mean square error {np.sqrt(squares / len(actual)):.3g}"
    title = f"R2 = {1.0 - squares / spread:.3f}, {error}" if spread > 0 else error
    dress(ax, f"predicted {name}", f"actual {name}", title)
    return ax
