"""A sample of the hashes of training rows, which a saved model keeps so that `certify` knows rows that were there.

The smallest hashes are kept, a fair sample: of rows to certify on, those whose hash is as small would have to be in the
sample if they had been in the training data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import SAMPLE_SIZE, row_hashes

__all__ = ["smallest", "training_hashes"]

Hashes = NDArray[np.uint64]


def smallest(hashes: Hashes) -> Hashes:
    """The sample that is kept."""
    return np.sort(hashes)[:SAMPLE_SIZE]


def training_hashes(X: Any, y: Any) -> Hashes:
    """The sample of some rows; X has the columns the model uses, in its order."""
    return smallest(row_hashes(X, y))
