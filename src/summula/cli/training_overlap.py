"""Whether rows were among those a saved model was trained on, without keeping them.

The model keeps the smallest of the hashes of its training rows, a fair sample of them. Of rows to certify on, those
whose hash is as small would have to be in the sample if they had been there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import row_hashes, share_seen
from summula.core.errors import DataError

__all__ = ["KEPT", "refuse_training_rows", "smallest", "training_hashes"]

Hashes = NDArray[np.uint64]

KEPT = 4_096


def smallest(hashes: Hashes) -> Hashes:
    """The sample that is kept."""
    return np.sort(hashes)[:KEPT]


def training_hashes(X: Any, y: Any) -> Hashes:
    """The sample of some rows; X has the columns the model uses, in its order."""
    return smallest(row_hashes(X, y))


def refuse_training_rows(model: Any, hashes: Hashes) -> None:
    """Complain when rows with these hashes were in the training data of a table model."""
    kept = getattr(model, "training_hashes_", None)
    if kept is None or not len(kept):
        return
    comparable = hashes if len(kept) < KEPT else hashes[hashes <= kept[-1]]
    if share := share_seen(comparable, kept):
        raise DataError(
            f"About {share:.0%} of these rows were in the training data of this model, on which its error says nothing "
            "about new rows: certify on rows that `summula train` has not seen."
        )
