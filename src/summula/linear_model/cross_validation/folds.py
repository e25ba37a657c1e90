"""The rows of a cross-validation, grouped so that one pass over them serves every split.

Rows with the same role in every split form a group. Sums are computed per group, and those of a split are

    training sums = sum_g c_g (sums of group g),          test sums = sum_g e_g (sums of group g)                  (1)

where c_g and e_g say how often the rows of group g are trained and tested on: 0 or 1, unless a splitter repeats rows.
The k splits of a k-fold make k groups. Repeated and random splits would make nearly as many groups as rows, so splits
come in batches, each with its own groups; the largest group of a later batch is the total minus the other groups.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError
from summula.core.numerics.grouped import sums_by_code
from summula.core.numerics.statistics import Gram, TriangularFactor
from summula.core.numerics.sums import Groups

if TYPE_CHECKING:
    from summula.core.estimator.run import Run

__all__ = [
    "Batch",
    "BatchSums",
    "GroupSums",
    "batches_of",
    "combined",
    "factors_of",
    "grams_of",
    "most_groups",
    "stacked",
]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_GROUP_BYTES = 2**26  # memory for the sums of all groups in one pass
_RUN = 16  # average length of runs of rows from which one label per run is stored
_FEWEST = 32  # number of groups always allowed per pass
_SMALLEST_REST = 1e-6  # minimum fraction of the total weight that may remain after a subtraction from the total


@dataclass(frozen=True)
class Batch:
    """Some splits and their groups of rows.

    Attributes
    ----------
    labels : ndarray
        The group of each row, or of each run of rows.
    train, test : ndarray of shape (n_splits, n_groups)
        c_g and e_g of equation (1).
    n_rows : int
    starts : ndarray, or None
        Where runs of rows of one group begin; None when there is one label per row.
    """

    labels: NDArray[Any]
    train: Counts
    test: Counts
    n_rows: int
    starts: NDArray[np.intp] | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.train.shape[1])

    def of(self, start: int, stop: int) -> NDArray[Any]:
        """The groups of the rows from `start` up to `stop`."""
        if self.starts is None:
            return self.labels[start:stop]
        first, last = np.searchsorted(self.starts, start, side="right") - 1, np.searchsorted(self.starts, stop)
        edges = np.concatenate([[start], self.starts[first + 1 : last], [stop]])
        return np.repeat(self.labels[first:last], np.diff(edges))

    def trained(self, split: int) -> NDArray[np.intp]:
        """The training rows of a split, in order, with the splitter's repetitions."""
        return np.repeat(np.arange(self.n_rows), self.train[split][self.of(0, self.n_rows)])

    def tested(self, split: int) -> NDArray[np.intp]:
        """The test rows of a split, in order, with the splitter's repetitions."""
        return np.repeat(np.arange(self.n_rows), self.test[split][self.of(0, self.n_rows)])

    def largest(self) -> int:
        """The group with the most rows."""
        return int(np.bincount(self.of(0, self.n_rows), minlength=self.n_groups).argmax())

    @classmethod
    def whole(cls, n_rows: int) -> Self:
        """All rows as one group."""
        once = np.ones((1, 1), np.int64)
        return cls(np.zeros(1, np.uint8), once, once, n_rows, np.zeros(1, np.intp))


def most_groups(width: int) -> int:
    """Return the maximum number of groups per pass, given the number of columns squared."""
    return max(_FEWEST, _GROUP_BYTES // (8 * width**2))


def batches_of(splits: Iterable[tuple[Any, Any]], n_rows: int, most: int) -> list[Batch]:
    """Group the rows of all splits, with at most `most` groups per batch."""
    none = np.empty((0, 1), np.int64)
    start = Batch(np.zeros(n_rows, np.intp), none, none, n_rows)
    batches: list[Batch] = []
    current: Batch | None = None
    for number, (train, test) in enumerate(splits):
        c, e = (_times(rows, n_rows, number) for rows in (train, test))
        for times, what in ((c, "train"), (e, "test")):
            if not times.any():
                raise DataError(f"Split {number} has no rows to {what} on; pass splits with training and test rows.")
        finer = _refined(current or start, c, e)
        if current is not None and finer.n_groups > min(most, 2 * len(finer.train) + 1):
            batches.append(_compact(current))
            finer = _refined(start, c, e)
        current = finer
    if current is None:
        raise DataError("The cross-validation has no splits; pass cv as a number of folds, a splitter or splits.")
    return [*batches, _compact(current)]


def _times(rows: Any, n_rows: int, number: int) -> Counts:
    """Count how often each row is selected, by row numbers or a mask."""
    try:
        places = np.arange(n_rows)[np.asarray(rows)]
    except IndexError as error:
        raise DataError(f"Split {number} of cv does not fit {n_rows} rows: {error}.") from None
    return np.bincount(places, minlength=n_rows)


def _refined(batch: Batch, c: Counts, e: Counts) -> Batch:
    """Return the batch with one more split: each group is divided by the role of its rows in the split."""
    width = int(e.max()) + 1
    kinds = (int(c.max()) + 1) * width
    key = (batch.labels * kinds + c * width + e).astype(np.intp)
    if batch.n_groups * kinds <= 8 * len(key) + 1024:
        present = np.flatnonzero(np.bincount(key, minlength=1))
        place = np.zeros(present[-1] + 1, np.intp)
        place[present] = np.arange(len(present))
        labels = place[key]
    else:
        present, labels = np.unique(key, return_inverse=True)
    parent, kind = present // kinds, present % kinds
    train = np.vstack([batch.train[:, parent], kind // width])
    test = np.vstack([batch.test[:, parent], kind % width])
    return Batch(labels, train, test, batch.n_rows)


def _compact(batch: Batch) -> Batch:
    """Return the batch in less memory: small integers, and run lengths where rows of a group are contiguous."""
    labels = batch.labels.astype(np.min_scalar_type(batch.n_groups))
    starts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
    if len(starts) * _RUN > len(labels):
        return replace(batch, labels=labels)
    return replace(batch, labels=labels[starts], starts=starts)


# -------------------------------------------------------------------------------------------------- sums of the groups


class Grouping(NamedTuple):
    """Groups of rows, and the origins of their sums."""

    kind: type[Gram] | type[TriangularFactor]
    params: Any
    batches: tuple[Batch, ...]
    left_out: tuple[int, ...]  # per batch, the group that is not summed; -1 for none


class GroupSums(Groups):
    """One sum per group, for each batch in order."""

    @classmethod
    def map(cls, chunk: Chunk, params: Grouping) -> Self:
        """The sums of one chunk, in double precision."""
        whole = replace(chunk, dtype=np.dtype(np.float64))
        if not (whole.is_sparse or isinstance(whole.rows, tuple)):
            whole = replace(whole, rows=whole.block())
        sums: list[Any] = []
        for batch, left_out in zip(params.batches, params.left_out, strict=True):
            codes = batch.of(chunk.start, chunk.stop)
            sums += sums_by_code(params.kind, whole, codes, batch.n_groups, params.params, left_out=left_out)
        return cls(tuple(sums))


class BatchSums(NamedTuple):
    """A batch with the sums of its groups."""

    batch: Batch
    groups: list[Any]


def grams_of(run: Run, batches: Sequence[Batch], origin: Array) -> tuple[list[BatchSums], Gram]:
    """Gram matrices of every group, and of all rows."""
    left_out = [-1] + [batch.largest() for batch in batches[1:]]
    sums = list(_summed(run, batches, Gram, origin, left_out))
    total = _total(sums[0].groups)
    for (_, groups), group in zip(sums[1:], left_out[1:], strict=True):
        others = [gram for gram in groups if gram is not None]
        groups[group] = total.unmerge(_total(others)) if others else total
    return sums, total


def factors_of(run: Run, batches: Sequence[Batch], origin: Array) -> list[BatchSums]:
    """Triangular factors of every group, the constant column leading."""
    return list(_summed(run, batches, TriangularFactor, (origin, True), [-1] * len(batches)))


def _summed(run: Run, batches: Sequence[Batch], kind: Any, params: Any, left_out: Sequence[int]) -> Iterator[BatchSums]:
    """Compute the sums of all batches, in as few passes as memory allows."""
    most = most_groups(run.source.n_features + run.source.n_targets)
    start = 0
    while start < len(batches):
        stop, groups = start + 1, batches[start].n_groups
        while stop < len(batches) and groups + batches[stop].n_groups <= most:
            groups += batches[stop].n_groups
            stop += 1
        some = tuple(batches[start:stop])
        sums = run.sum(GroupSums, Grouping(kind, params, some, tuple(left_out[start:stop])), "sums of the folds")
        at = 0
        for batch in some:
            yield BatchSums(batch, list(sums.groups[at : at + batch.n_groups]))
            at += batch.n_groups
        start = stop


def _total(grams: Sequence[Gram | None]) -> Gram:
    with np.errstate(over="ignore", invalid="ignore"):  # callers check that the total is finite
        return functools.reduce(Gram.merge, (gram for gram in grams if gram is not None))


def combined(grams: Sequence[Gram | None], times: Counts, total: Gram) -> Gram:
    """Compute (1) for Gram matrices: the sum of the included groups, or the total minus the excluded ones."""
    of_total = int((times != 1).sum()) < int((times != 0).sum())
    if of_total:  # a small remainder of a large total would lose its digits in the subtraction
        kept = sum(k * gram.weight for gram, k in zip(grams, times.tolist(), strict=True) if gram is not None)
        of_total = kept > _SMALLEST_REST * total.weight
    base = total if of_total else None
    count, weight, logs = (base.count, base.weight, base.log_weight) if base else (0, 0.0, 0.0)
    sums = base.total.copy() if base else np.zeros_like(total.total)
    products = base.products.copy() if base else np.zeros_like(total.products)
    for gram, k in zip(grams, (times - 1 if of_total else times).tolist(), strict=True):
        if gram is None or k == 0:
            continue
        count, weight, logs = count + k * gram.count, weight + k * gram.weight, logs + k * gram.log_weight
        sums += k * gram.total
        products += k * gram.products
    return Gram(count, weight, logs, total.origin, sums, products)


def stacked(factors: Sequence[TriangularFactor | None], times: Counts) -> tuple[Array, int]:
    """Compute (1) for factors: rows R whose R'R is the sum, and the number of rows they represent."""
    kept = [(factor, k) for factor, k in zip(factors, times.tolist(), strict=True) if factor is not None and k]
    rows = [factor.R if k == 1 else np.sqrt(k) * factor.R for factor, k in kept]
    width = next(factor.R.shape[1] for factor in factors if factor is not None)
    return (np.vstack(rows) if rows else np.empty((0, width))), sum(factor.count * k for factor, k in kept)
