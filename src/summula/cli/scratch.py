"""Encoded rows in scratch files: one file a fold and encoding, and one of raw rows held out.

They are in the folder SUMMULA_SCRATCH, or the system's temporary folder. Blocks are encoded on the engine's threads and
written in the order of the rows. Whether there is room is asked before anything is written.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import row_hashes
from summula.cli.exit_codes import OUTPUT, CommandError
from summula.cli.rows import numbered
from summula.cli.training_overlap import smallest
from summula.core.data.scan import Scan, scan
from summula.preprocessing.table_encoder_blocks import Blocks, Columns, blocks_in_order, table_blocks

__all__ = ["HELD_OUT", "LEFT_OUT", "Scratch"]

Array = NDArray[Any]

HELD_OUT, LEFT_OUT = -1, -2  # in place of the number of a fold


class _Encoded(NamedTuple):
    """What one block adds to the files, and the smallest hashes of its training rows."""

    batches: dict[str, Any]
    hashes: NDArray[np.uint64]


class Scratch:
    """Files of encoded rows of each fold, and of raw rows held out.

    Parameters
    ----------
    folder : str
    encoders : dict of bool to TableEncoder
        What trees get (True) and what linear models get (False).
    kinds : set of bool
        Which of them are needed.
    target : str
        The name of the target among the raw rows; among encoded ones it is "y".
    """

    def __init__(self, folder: str, encoders: dict[bool, Any], kinds: set[bool], target: str) -> None:
        self.folder, self.encoders, self.kinds, self.target = folder, encoders, sorted(kinds), target
        self.hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.used = [column.name for column in encoders[False].columns_ if column.kind != "dropped"]

    def _path(self, codes: bool, fold: int) -> str:
        return os.path.join(self.folder, f"{'codes' if codes else 'indicators'}-{fold}.arrow")

    def rows(self, codes: bool, folds: list[int]) -> Scan:
        """The encoded rows of some folds."""
        return scan([self._path(codes, fold) for fold in folds])

    def held_out(self) -> Scan:
        """The raw rows held out."""
        return scan(os.path.join(self.folder, "aside.arrow"))

    def leading(self, codes: bool, folds: list[int], rows: int) -> tuple[Array, Array]:
        """The first rows of each of some folds in memory, so many in all, and their targets."""
        found = []
        for place, fold in enumerate(folds):
            table = scan(self._path(codes, fold))
            stop = min(table.n_rows, (rows + place) // len(folds))
            columns = table_blocks(table).read(0, stop) if stop else {}
            if columns:
                y = _plain(columns.pop("y"))
                found.append((np.column_stack(list(columns.values())), y))
        return np.concatenate([X for X, _ in found]), np.concatenate([y for _, y in found])

    def check_room(self, rows: int) -> None:
        """Complain before anything is written when the files will not fit on the disk."""
        width = sum(len(self.encoders[codes].get_feature_names_out()) + 1 for codes in self.kinds) + len(self.used)
        needed, free = 8 * rows * width, shutil.disk_usage(self.folder).free
        if needed > free:
            raise CommandError(
                f"The encoded rows take about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free in "
                f"{os.path.dirname(self.folder)}; set SUMMULA_SCRATCH to a folder on a larger disk.",
                OUTPUT,
            )

    def write(self, blocks: Blocks, y: Array, folds: Array) -> None:
        """One pass over the table; `folds` has the number of the fold of each row, HELD_OUT or LEFT_OUT."""
        import pyarrow as pa

        n_folds = int(folds.max()) + 1

        def encode(columns: Columns, start: int) -> _Encoded:
            stop = start + len(next(iter(columns.values())))
            with numbered(lambda row: start + row):
                return self._encoded(blocks, columns, y[start:stop], folds[start:stop], n_folds)

        with ExitStack() as open_files:
            writers: dict[str, Any] = {}
            for block in blocks_in_order(blocks, encode):
                self.hashes = smallest(np.concatenate([self.hashes, block.hashes]))
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
                batches[self._path(codes, fold)] = pa.record_batch({**named, "y": y[folds == fold]})
        raw = {name: _chosen(columns[name], folds == HELD_OUT) for name in self.used}
        aside = os.path.join(self.folder, "aside.arrow")
        batches[aside] = pa.record_batch({**raw, self.target: y[folds == HELD_OUT]})
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
