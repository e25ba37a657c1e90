"""Margins of a hyperplane.

For y = -1, 1 the functional margin of a row is y (w'x + b), the geometric margin y (w'x + b) / ||w||: its distance to
the hyperplane, negative on the wrong side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.errors import DataError
from summula.core.estimator.input.argument_values import numbers_in

__all__ = ["Margins", "class_signs", "margins"]

Array = NDArray[Any]


class Margins(NamedTuple):
    """Functional and geometric margin of every row, and the smallest geometric margin."""

    functional: Array
    geometric: Array
    least: float


def class_signs(y: ArrayLike) -> Array:
    """Return -1 for the first of two labels and 1 for the second; labels -1 and 1 are unchanged."""
    values = np.asarray(y)
    classes = np.unique(values)
    if len(classes) == 1 and values.dtype.kind in "iuf" and abs(classes[0]) == 1:
        return values.astype(np.float64)
    if len(classes) != 2:
        raise DataError(f"Margins need two classes; y has {len(classes)}.")
    return np.where(values == classes[1], 1.0, -1.0)


def margins(coef: ArrayLike, intercept: float, X: ArrayLike, y: ArrayLike) -> Margins:
    """Compute the margins of the rows of X with respect to the hyperplane coef'x + intercept = 0.

    Parameters
    ----------
    coef : array-like of shape (d,) or (1, d)
    intercept : float
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
        Two labels; the second (in sorted order) is the positive class. With labels -1 and 1, one of them may be absent.

    Returns
    -------
    Margins

    Examples
    --------
    >>> from summula.svm import margins
    >>> found = margins([3.0, 4.0], -5.0, [[3.0, 4.0], [0.0, 0.0]], [1, -1])
    >>> found.functional.tolist(), found.geometric.tolist(), found.least
    ([20.0, 5.0], [4.0, 1.0], 1.0)
    """
    w, rows = numbers_in("coef", coef).reshape(-1), np.atleast_2d(numbers_in("X", X))
    b, sign = numbers_in("intercept", intercept).reshape(-1), class_signs(y)
    if len(b) != 1:
        raise DataError(f"A hyperplane has one intercept; got {len(b)}.")
    if len(sign) != len(rows):
        raise DataError(f"X has {len(rows)} rows and y has {len(sign)} labels; pass one label per row.")
    if rows.shape[1] != len(w):
        raise DataError(f"coef has {len(w)} entries and X has {rows.shape[1]} columns; they must agree.")
    functional = sign * (rows @ w + float(b[0]))
    length = float(np.linalg.norm(w))
    if length == 0:
        raise DataError("coef is zero, which does not define a hyperplane; pass a nonzero vector.")
    return Margins(functional, functional / length, float(functional.min() / length))
