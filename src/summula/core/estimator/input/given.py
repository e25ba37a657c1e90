"""The arguments of `fit`, before they are validated."""

from __future__ import annotations

from typing import Any, NamedTuple

from summula.core.data.factors import Factors
from summula.core.data.labels import Labels

__all__ = ["Given"]


class Given(NamedTuple):
    """Rows, target, weights and offset in any container, and what an estimator needs of them.

    Attributes
    ----------
    estimator : estimator
        Its feature names and number of columns are set or checked; it is named in messages.
    X, y, sample_weight, offset : as in `fit`
    needs_y : bool
        Whether y must be passed.
    reset : bool
        Whether feature names and number of columns are set, or checked.
    accept_sparse : bool
    labels : Labels or None
        If given, the target consists of class labels, which are encoded.
    factors : Factors or None
        If given, categorical columns are encoded as indicators.
    """

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any
    offset: Any
    needs_y: bool
    reset: bool
    accept_sparse: bool
    labels: Labels | None
    factors: Factors | None
