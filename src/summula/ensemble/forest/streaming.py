"""Growing the trees of a forest from rows that are not in memory.

Each pass over the rows processes as many nodes, of several trees, as fit into the memory limit: for large nodes it sums
the drawn columns per bin, and for small ones it copies the rows, from which the subtree is then grown. Nodes of earlier
trees come first, so that complete trees are available when the time limit is reached. Row weights are drawn again in
each pass, and rows traverse the current tree again, so that nothing is stored per row and tree.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Generator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Part
from summula.core.engine.engine import local_engine
from summula.core.errors import ParameterError
from summula.core.estimator.run import Run
from summula.ensemble.forest.growing import ForestRows, TreeSample, packed_tree
from summula.tree.binned.grower import GrownNodes, as_tree
from summula.tree.binned.level_grower import LevelTree
from summula.tree.binned.packed import PackedTrees
from summula.tree.columns.binning import BinMap
from summula.tree.columns.rows import binned_part

__all__ = ["bins_by_column", "grow_trees_of_stream", "memory_limit"]

Array = NDArray[Any]

_VARIABLE = "SUMMULA_FOREST_MEMORY"
_DEFAULT = 2**31


def memory_limit() -> int:
    """Return the memory limit in bytes for the rows of a forest: the environment variable, or 2 GiB."""
    given = os.environ.get(_VARIABLE, "")
    if not given:
        return _DEFAULT
    if not given.isdecimal() or int(given) < 1:
        raise ParameterError(f"The environment variable {_VARIABLE} is {given!r}: set it to a number of bytes.")
    return int(given)


def bins_by_column(run: Run, bins: BinMap) -> Array:
    """Return the bins of all rows, shape (features, rows); no rows if those of a stream need too much memory."""
    n, d = run.source.n_rows, run.source.n_features
    if run.source.streams and n * d > memory_limit():
        run.keep_rows()
        return np.empty((d, 0), np.uint8)
    out, row = np.empty((d, n), np.uint8), 0
    for block in run.each(functools.partial(_columns_of_part, bins), "bins"):
        out[:, row : row + block.shape[1]] = block
        row += block.shape[1]
    return out


def _columns_of_part(bins: BinMap, part: Part) -> Array:
    return np.ascontiguousarray(binned_part(bins, part).T)


class _Growing(NamedTuple):
    number: int
    sample: TreeSample
    tree: LevelTree


def grow_trees_of_stream(
    model: Any, data: ForestRows, numbers: range, run: Run, bins: BinMap
) -> Generator[PackedTrees, None, None]:
    """Yield the trees with some numbers, grown in several passes over the rows of a run."""
    assert data.table is not None
    growing: list[_Growing] = []
    waiting = list(numbers)
    while growing or waiting:
        chosen = _plan(model, data, growing, waiting)
        _read_rows(run, bins, data, chosen)
        _on_all(functools.partial(_end_pass, data), chosen, run)
        while growing and (grown := growing[0].tree.finished()) is not None:
            del growing[0]
            yield _packed(model, data, grown)


def _plan(model: Any, data: ForestRows, growing: list[_Growing], waiting: list[int]) -> list[_Growing]:
    """Choose the nodes that the next pass processes; start further trees while there is memory."""
    chosen: list[_Growing] = []
    memory, at = memory_limit(), 0
    left = memory
    while at < len(growing) or waiting:
        if at == len(growing):
            number = waiting[0]
            sample = TreeSample.of(model, data, number)
            tree = LevelTree.planted(data.table, sample.n_rows(), data.outputs, sample.limits)  # type: ignore[arg-type]
            growing.append(_Growing(number, sample, tree))
            del waiting[0]
        tree = growing[at].tree
        at += 1
        if not tree.waiting:
            continue
        if not chosen:  # at least one node has to be processed
            left = max(left, tree.cheapest())
        left -= tree.plan(left, memory)
        if tree.work is None:
            break
        chosen.append(growing[at - 1])
    return chosen


def _read_rows(run: Run, bins: BinMap, data: ForestRows, chosen: list[_Growing]) -> None:
    """Add all rows, in ascending order, to the nodes that the pass processes."""
    row = 0
    for block in run.each(functools.partial(binned_part, bins), "nodes"):
        start, row = row, row + len(block)
        y = data.targets(slice(start, row))
        _on_all(functools.partial(_add, block, y, start), chosen, run)


def _add(block: Array, y: Array, start: int, growing: _Growing) -> None:
    weight = np.ascontiguousarray(growing.sample.weights(start, start + len(block)), np.float64)
    growing.tree.add(block, y, weight)


def _end_pass(data: ForestRows, growing: _Growing) -> None:
    growing.tree.end_pass(data.check)


def _on_all(fn: Any, chosen: list[_Growing], run: Run) -> None:
    with closing(local_engine().map_ordered(fn, chosen, n_jobs=run.n_jobs)) as results:
        for _ in results:
            run.check_clock()


def _packed(model: Any, data: ForestRows, grown: GrownNodes) -> PackedTrees:
    assert data.table is not None
    return packed_tree(model, data, as_tree(data.table, grown, data.outputs, data.shift))
