"""Intervals of the entries of a confusion matrix: each is a proportion of the rows, or of those of its row or column.

    entry (i, j) of n rows                 #{y = i, p = j} / n, times n if the matrix is not normalised              (1)
    normalize="true", "pred"               #{y = i, p = j} / #{y = i}  (recall on the diagonal),  / #{p = j}         (2)

with the limits of `shares.py`, for each entry separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.metrics.intervals import Interval
from summula.metrics.named_metrics import Weights
from summula.metrics.shares import limits_among

__all__ = ["confusion_limits"]

Array = NDArray[Any]

_NORMALIZED = ("true", "pred", "all", None)


def confusion_limits(y: Array, p: Array, w: Weights, confidence: float, options: dict[str, Any]) -> Interval:
    """Return the matrix and the limits of its entries, each an array of shape (n_classes, n_classes)."""
    unknown = set(options) - {"labels", "normalize"}
    normalize = options.get("normalize")
    if unknown or normalize not in _NORMALIZED:
        raise ParameterError(
            "The options of 'confusion_matrix' are labels and normalize, one of 'true', 'pred', 'all' or None; got "
            f"{sorted(unknown)[0] if unknown else normalize!r}."
        )
    if p.ndim != 1:
        raise ParameterError(f"'confusion_matrix' needs one predicted label per row; y_pred has shape {p.shape}.")
    given = options.get("labels")
    labels = np.unique(np.concatenate([y, p])) if given is None else np.asarray(given)
    listed = np.isin(y, labels) & np.isin(p, labels)
    scale = 1.0 if normalize is not None else float(listed.sum() if w is None else w[listed].sum())
    found = np.zeros((3, len(labels), len(labels)))
    for i, actual in enumerate(labels):
        for j, predicted in enumerate(labels):
            among = listed & {"true": y == actual, "pred": p == predicted}.get(str(normalize), listed)
            limits, n = limits_among((y == actual) & (p == predicted), among, w, confidence)
            found[:, i, j] = limits if n else (0.0, 0.0, 1.0)
    return Interval(*(found * scale))
