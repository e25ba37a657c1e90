"""A sample of the hashes of training rows, which a saved model keeps so that `certify` knows rows that were there.

The smallest hashes are kept, a fair sample: of rows to certify on, those whose hash is as small would have to be in the
sample if they had been in the training data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import SAMPLE_SIZE, row_hashes

__all__ = ["copies_remark", "smallest", "training_hashes"]

Hashes = NDArray[np.uint64]

_MANY, _MIN_COPIES = 0.2, 10  # share and number of held-out rows that equal training rows and deserve a remark


def smallest(hashes: Hashes) -> Hashes:
    """The sample that is kept."""
    return np.sort(hashes)[:SAMPLE_SIZE]


def training_hashes(X: Any, y: Any) -> Hashes:
    """The sample of some rows; X has the columns the model uses, in its order."""
    return smallest(row_hashes(X, y))


def copies_remark(known: Hashes, X: Any, y: Any) -> str:
    """A remark on held-out rows that equal training rows, target included; empty where they are few.

    `known` is the sample of training rows; of a full one only smaller hashes can be looked up.
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
