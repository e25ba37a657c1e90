"""Training rows in files or Dask collections: the pass at fit, and the description stored by a model.

The pass determines the targets (one value per row), the number of rows, their largest absolute value and whether some
are missing. The model stores a description of the rows: which columns of which files, or the collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, Part
from summula.core.data.sources import Source
from summula.core.estimator.run import Run

__all__ = ["StreamedRows", "Survey", "survey"]

Array = NDArray[Any]


class Survey(NamedTuple):
    """Result of one pass over the training rows.

    Attributes
    ----------
    targets : Chunk
        The targets of all rows, without features.
    largest : float
        The largest absolute value.
    is_finite : bool
        Whether all features and targets are finite.
    """

    targets: Chunk
    largest: float
    is_finite: bool


def survey(run: Run) -> Survey:
    """Read all rows once."""
    parts = list(run.each(_survey_part, "pass over the training rows"))
    row_data = {name: np.concatenate([part.row_data[name] for part in parts]) for name in parts[0].row_data}
    n, source = run.source.n_rows, run.source
    targets = Chunk(np.empty((n, 0)), row_data.get("y"), None, 0, n, source.dtype, row_data.get("codes"))
    return Survey(targets, max(part.largest for part in parts), all(part.is_finite for part in parts))


class _PartSurvey(NamedTuple):
    row_data: dict[str, Array]
    largest: float
    is_finite: bool


def _survey_part(part: Part) -> _PartSurvey:
    row_data: dict[str, list[Array]] = {}
    largest, is_finite = 0.0, True
    for chunk in part.chunks():
        values = chunk.X.data if chunk.is_sparse else chunk.block()
        # NaN is neither the largest nor equal to itself.
        largest = max(largest, float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0)))
        is_finite &= bool(np.isfinite(values).all()) and (chunk.y is None or bool(np.isfinite(chunk.y).all()))
        for name in ("y", "codes"):
            if (column := getattr(chunk, name)) is not None:
                row_data.setdefault(name, []).append(np.array(column))
    return _PartSurvey({name: np.concatenate(columns) for name, columns in row_data.items()}, largest, is_finite)


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Description of training rows that are read again in every search.

    Attributes
    ----------
    source : Source
        The features.
    largest : float
        Their largest absolute value.
    has_missing : bool
        Whether some values are NaN.
    estimator : str
        Class name of the estimator fitted to them.
    """

    source: Source
    largest: float
    has_missing: bool
    estimator: str

    # For `summula.save`.
    not_saved: ClassVar[str] = (
        "its training rows are in files or a Dask collection, and a model file has to contain them; pickle the model, "
        "which preserves their location, or fit it to rows in memory"
    )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.n_rows, self.source.n_features

    @contextmanager
    def opened(self) -> Iterator[Source]:
        """Return the rows for one or several passes, if they are unchanged since the fit."""
        self.source.check_unchanged(self.estimator)
        source = self.source.reopened()
        try:
            yield source
        finally:
            source.release()

    def __copy__(self) -> StreamedRows:
        return self

    def __deepcopy__(self, memo: Any) -> StreamedRows:
        return self
