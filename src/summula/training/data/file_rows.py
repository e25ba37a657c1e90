"""Training rows larger than memory, in scratch files: one per fold and encoding, and one with the raw held-out rows.

The files are in the folder SUMMULA_SCRATCH, or in the system's temporary folder. Blocks are encoded on all threads
and written in the order of the rows. Free disk space is checked before anything is written. A fit is a sum over the
files of its folds; only the target is in memory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import row_hashes
from summula.core.data.scan import Scan, scan
from summula.core.errors import OutputError
from summula.preprocessing.table_encoder_blocks import Blocks, Columns, blocks_in_order, table_blocks
from summula.training.comparison.candidates import Candidate
from summula.training.comparison.metrics import Evaluation, Evaluator
from summula.training.data.row_numbers import numbered
from summula.training.data.split import HELD_OUT, Split
from summula.training.data.tables import free_memory, read_table
from summula.training.data.training_overlap import smallest

__all__ = ["FileRows"]

Array = NDArray[Any]

_COPIES = 6  # number of copies of the rows during a fit in memory


class _Encoded(NamedTuple):
    """Encoded rows of one block for the files, and the smallest hashes of its training rows."""

    batches: dict[str, Any]
    hashes: NDArray[np.uint64]


class FileRows:
    """Rows of a table in scratch files, encoded for the candidates.

    Parameters
    ----------
    folder : str
    encoders : dict of bool to encoder
        Encoders of trees (True: codes) and of linear models (False: indicators).
    kinds : set of bool
        The encoders in use.
    target : str
        Name of the target in the raw rows; in encoded ones it is "y".
    seed : int
    """

    def __init__(self, folder: str, encoders: dict[bool | None, Any], kinds: set[bool], target: str, seed: int) -> None:
        self.folder, self.encoders, self.kinds = folder, encoders, sorted(kinds)
        self.target, self.seed = target, seed
        self._hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._sizes: NDArray[np.int64] = np.empty(0, np.int64)
        self._y_type: Any = None
        self.used = [column.name for column in encoders[False].columns_ if column.kind != "dropped"]

    def count(self, folds: list[int]) -> int:
        """Return the number of rows in some folds."""
        return int(self._sizes[folds].sum())

    def max_rows(self, candidate: Candidate, available: int) -> int:
        """Return the number of rows that a candidate can be fitted on: all, unless they must be in memory."""
        if not candidate.many_passes:
            return available
        width = len(self.encoders[candidate.codes].get_feature_names_out())
        return min(available, max(int(free_memory() / (_COPIES * 8 * width)), 1_000))

    def prepare(self, candidate: Candidate) -> None:
        """Do nothing: the files have been written."""

    def fit(self, candidate: Candidate, max_time: float, folds: list[int], rows: int) -> Any:
        """Fit a candidate to `rows` rows of some folds: from the files if these are all rows, otherwise from memory."""
        encoder, available = self.encoders[candidate.codes], self.count(folds)
        if rows < available or candidate.many_passes:
            rows = min(rows, self.max_rows(candidate, available))
            return candidate.fit(encoder, self.seed, max_time, *self._leading(candidate.codes, folds, rows))
        model = candidate.fit(encoder, self.seed, max_time, self._rows(candidate.codes, folds), "y")
        # The model accepts encoded rows as plain arrays.
        for name in ("feature_names_in_", "_not_features"):
            vars(model).pop(name, None)
        return model

    def evaluate(self, candidate: Candidate, model: Any, fold: int, evaluator: Evaluator) -> Evaluation:
        """Evaluate a model on the rows of a fold."""
        blocks = table_blocks(self._rows(candidate.codes, [fold]))

        def pairs() -> Iterator[tuple[Array, Array]]:
            for piece in blocks.pieces():
                columns = piece.columns()
                y = _plain(columns.pop("y"))
                yield np.column_stack(list(columns.values())), y

        return evaluator.evaluate(model, pairs())

    def holdout(self) -> tuple[Any, Any]:
        """Return the held-out rows and the name of their target, as arguments of `certify`."""
        return scan(self._aside), self.target

    def sample(self, rows: int) -> tuple[Any, Array]:
        """Return the first held-out rows and their targets in memory."""
        few = read_table(scan(self._aside), last=rows)
        return few.drop_columns([self.target]), _plain(few[self.target].combine_chunks())

    def hashes(self, names: list[str]) -> NDArray[np.uint64]:
        """Return the smallest hashes of the training rows, computed from the columns in use."""
        return self._hashes

    @property
    def _aside(self) -> str:
        return os.path.join(self.folder, "aside.arrow")

    def _path(self, codes: bool, fold: int) -> str:
        return os.path.join(self.folder, f"{'codes' if codes else 'indicators'}-{fold}.arrow")

    def _rows(self, codes: bool, folds: list[int]) -> Scan:
        return scan([self._path(codes, fold) for fold in folds])

    def _leading(self, codes: bool, folds: list[int], rows: int) -> tuple[Array, Array]:
        """Return the first rows of each of some folds, `rows` in total, in memory, and their targets."""
        found = []
        for place, fold in enumerate(folds):
            table = scan(self._path(codes, fold))
            stop = min(table.n_rows, (rows + place) // len(folds))
            columns = table_blocks(table).read(0, stop) if stop else {}
            if columns:
                y = _plain(columns.pop("y"))
                found.append((np.column_stack(list(columns.values())), y))
        return np.concatenate([X for X, _ in found]), np.concatenate([y for _, y in found])

    def _check_disk_space(self, rows: int) -> None:
        width = sum(len(self.encoders[codes].get_feature_names_out()) + 1 for codes in self.kinds) + len(self.used)
        needed, free = 8 * rows * width, shutil.disk_usage(self.folder).free
        if needed > free:
            raise OutputError(
                f"The encoded rows take about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free in "
                f"{os.path.dirname(self.folder)}; set SUMMULA_SCRATCH to a folder on a larger disk."
            )

    def write(self, blocks: Blocks, y: Array, split: Split) -> None:
        """Encode and write the rows, in one pass over the table."""
        import pyarrow as pa

        self._check_disk_space(len(y))
        self._y_type = pa.string() if y.dtype.kind == "O" else pa.from_numpy_dtype(y.dtype)
        folds = split.folds
        n_folds = int(folds.max()) + 1
        self._sizes = np.bincount(folds[folds >= 0], minlength=n_folds).astype(np.int64)

        def encode(columns: Columns, start: int) -> _Encoded:
            stop = start + len(next(iter(columns.values())))
            with numbered(lambda row: start + row):
                return self._encoded(blocks, columns, y[start:stop], folds[start:stop], n_folds)

        with ExitStack() as open_files:
            writers: dict[str, Any] = {}
            for block in blocks_in_order(blocks, encode):
                self._hashes = smallest(np.concatenate([self._hashes, block.hashes]))
                for path, batch in block.batches.items():
                    if path not in writers:
                        writers[path] = open_files.enter_context(pa.ipc.new_file(path, batch.schema))
                    writers[path].write_batch(batch)

    def _encoded(self, blocks: Blocks, columns: Columns, y: Array, folds: Array, n_folds: int) -> _Encoded:
        import pyarrow as pa

        here = blocks._replace(n_rows=len(y), read=lambda a, b: columns, walk=None)
        batches = {}
        for codes in self.kinds:
            (rows,) = self.encoders[codes].encoded(here)
            for fold in range(n_folds):
                kept = np.asfortranarray(rows[folds == fold])
                named = {f"x{j}": kept[:, j] for j in range(rows.shape[1])}
                batches[self._path(codes, fold)] = pa.record_batch(
                    {**named, "y": pa.array(y[folds == fold], self._y_type)}
                )
        raw = {name: _chosen(columns[name], folds == HELD_OUT) for name in self.used}
        batches[self._aside] = pa.record_batch({**raw, self.target: pa.array(y[folds == HELD_OUT], self._y_type)})
        learned = folds >= 0
        table = pa.table({name: _chosen(columns[name], learned) for name in self.used})
        hashes = row_hashes(table, y[learned]) if learned.any() else np.empty(0, np.uint64)
        return _Encoded(batches, smallest(hashes))


def _chosen(values: Any, chosen: Array) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return pa.array(values[chosen], from_pandas=True)
    return values.filter(pa.array(chosen))


def _plain(values: Any) -> Array:
    return values if isinstance(values, np.ndarray) else np.asarray(values.to_numpy(zero_copy_only=False))
