"""Validation rows of early stopping, drawn as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError

__all__ = ["validation_mask"]


def validation_mask(n: int, fraction: float, random_state: Any, labels: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Return a mask of the held-out rows, stratified by labels if there are any.

    Parameters
    ----------
    n : int
        Number of rows.
    fraction : float
        The parameter `validation_fraction`.
    random_state : int, RandomState instance or None
    labels : ndarray of shape (n,), or None
    """
    from sklearn.model_selection import train_test_split  # importing takes as long as a small fit

    try:
        _, held_out = train_test_split(np.arange(n), test_size=fraction, stratify=labels, random_state=random_state)
    except ValueError as error:
        raise DataError(
            f"Splitting {n} samples with validation_fraction={fraction!r} fails ({error}); change "
            "validation_fraction, pass more rows, or set early_stopping=False."
        ) from None
    mask = np.zeros(n, dtype=np.bool_)
    mask[held_out] = True
    return mask
