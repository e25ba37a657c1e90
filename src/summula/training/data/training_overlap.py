"""A sample of the hashes of training rows, stored with a saved model so that `certify` recognises training rows.

The smallest hashes are stored, which is a random sample: a row to certify on whose hash is below the largest of them
was in the training data if and only if its hash is in the sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import SAMPLE_SIZE, row_hashes

__all__ = ["copies_remark", "smallest", "training_hashes"]

Hashes = NDArray[np.uint64]

_MANY, _MIN_COPIES = 0.2, 10  # fraction and number of held-out copies of training rows that cause a remark


def smallest(hashes: Hashes) -> Hashes:
    """Return the stored sample."""
    return np.sort(hashes)[:SAMPLE_SIZE]


def training_hashes(X: Any, y: Any) -> Hashes:
    """Return the sample of some rows; X has the columns of the model, in its order."""
    return smallest(row_hashes(X, y))


def copies_remark(known: Hashes, X: Any, y: Any) -> str:
    """Return a remark on held-out rows that equal training rows, including the target; empty if there are few.

    `known` is the sample of training rows; if it is full, only smaller hashes can be looked up.
    """
    hashes = row_hashes(X, y)
    if len(known) >= SAMPLE_SIZE:
        hashes = hashes[hashes <= known[-1]]
    copies = int(np.isin(hashes, known).sum())
    if copies < max(_MIN_COPIES, _MANY * len(hashes)):
        return ""
    return (
        f"{copies:,} of {len(hashes):,} held-out rows equal a training row in every column: if rows of the table are "
        "copies of others, remove them, since they make the error look too small."
    )
