"""Growing a tree on bins from a stream of blocks of rows, in several passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.tree.binned.grower import GrownNodes, grow_nodes, new_root
from summula.tree.binned.level_kernels import (
    LEAF,
    SPLITTABLE,
    UNDECIDED,
    add_rows,
    decide_splits,
    divide,
    draw_columns,
    replay,
)
from summula.tree.binned.records import BINS, NODE, SLOT, BinnedTable, LevelWork, Scratch, TreeRows, cell_width
from summula.tree.binned.scan_kernels import bind_kernels
from summula.tree.exact.grower import ExactParameters, parameter_record
from summula.tree.growing.outputs import Outputs

__all__ = ["LevelTree", "warmup"]

Array = NDArray[Any]

_DEEPEST = 40  # number of splits on a path above which the number of nodes below is not estimated


@dataclass
class LevelTree:
    """A tree that is being grown.

    Attributes
    ----------
    table : BinnedTable
        Edges and kinds of columns; its `bins` have no rows.
    outputs : Outputs
        Types of the targets.
    state : ndarray
        Limits, as in `grow_kernels`.
    nodes, sums, flags : ndarray
        As in `grow_kernels`; `stop` is the number of rows of a node.
    kinds : ndarray
        State of the nodes without children: UNDECIDED, LEAF or SPLITTABLE.
    left_rows : ndarray
        Number of rows on the left of the split of a node.
    waiting : dict of int to int
        The undecided nodes, and the number of their columns that have been searched.
    """

    table: BinnedTable
    outputs: Outputs
    state: Array
    nodes: Array
    sums: Array
    flags: Array
    kinds: Array
    left_rows: Array
    n_nodes: int = 1
    waiting: dict[int, int] = field(default_factory=lambda: {0: 0})
    work: LevelWork | None = None

    @classmethod
    def planted(cls, table: BinnedTable, n_rows: int, outputs: Outputs, parameters: ExactParameters) -> LevelTree:
        """Return a tree that consists of a root with this number of rows."""
        nodes = np.zeros(1, NODE)
        nodes[0] = new_root(parameters)
        nodes["stop"] = n_rows
        return cls(
            table,
            outputs,
            parameter_record(parameters, len(table.bins), outputs),
            nodes,
            np.zeros((1, outputs.n_sums)),
            np.zeros((1, BINS), np.uint8),
            np.zeros(1, np.uint8),
            np.zeros(1, np.int64),
        )

    @property
    def _width(self) -> int:
        return cell_width(self.outputs)

    # ----------------------------------------------------------------------------------------------- planning a pass

    def plan(self, memory: int, most: int) -> int:
        """Choose the nodes that the next pass processes; return their memory in bytes.

        Parameters
        ----------
        memory : int
            Memory limit in bytes; if nothing fits, nothing is chosen.
        most : int
            Memory limit in bytes for a node whose rows are copied.
        """
        chosen, used = [], 0
        for number, visited in self.waiting.items():
            columns, copies, cost = self._needs(number, visited, most)
            if used + cost <= memory:
                chosen.append((number, visited, columns, copies))
                used += cost
        self.work = self._work_for(chosen) if chosen else None
        return used

    def cheapest(self) -> int:
        """Return the memory in bytes that a pass needs for the cheapest node."""
        return min(self._needs(number, visited, 0)[2] for number, visited in self.waiting.items())

    def _needs(self, number: int, visited: int, most: int) -> tuple[int, int, int]:
        """Return the numbers of columns to sum and of rows to copy, and the memory for these in bytes."""
        node, limits = self.nodes[number], self.state[0]
        rows, depth, leaf = int(node["stop"]), int(node["depth"]), int(limits["min_samples_leaf"])
        if depth >= limits["max_depth"] or rows < max(limits["min_samples_split"], 2 * leaf):
            return 0, 0, SLOT.itemsize
        d = len(self.table.bins)
        columns = min(int(limits["max_features"]), d) if visited == 0 else d - visited
        summing = columns * BINS * self._width * 8
        per_node = NODE.itemsize + 8 * (self._width + 2) + (BINS if self.table.is_categorical.any() else 0)
        copying = rows * (d + 32 + 16 * self.outputs.n_outputs) + 2 * (rows // leaf) * per_node
        levels = min(int(limits["max_depth"]) - depth, _DEEPEST)
        below = min(2**levels, rows // leaf, int(limits["max_leaves"]))  # maximum number of splits
        return (0, rows, copying) if copying <= min(most, below * summing) else (columns, 0, summing)

    def _work_for(self, chosen: list[tuple[int, int, int, int]]) -> LevelWork:
        d, width = len(self.table.bins), self._width
        records, slots = np.zeros(len(chosen), SLOT), np.full(self.n_nodes, -1, np.int64)
        columns, order = [np.empty(0, np.int64)], np.empty(d, np.int64)
        n_rows = n_columns = 0
        for s, (number, visited, summed, copied) in enumerate(chosen):
            slots[number] = s
            records[s]["node"], records[s]["visited"] = number, visited
            records[s]["is_gathered"], records[s]["first_row"] = copied > 0, n_rows
            records[s]["first_column"], records[s]["n_columns"] = n_columns, summed
            n_rows, n_columns = n_rows + copied, n_columns + summed
            if summed:
                draw_columns(int(self.nodes[number]["key"]), self.state, order)
                columns.append(order[visited : visited + summed].copy())
        return LevelWork(
            slots,
            records,
            np.zeros((len(chosen), self.sums.shape[1])),
            np.zeros((len(chosen), self.outputs.n_outputs)),
            np.concatenate(columns),
            np.zeros((n_columns, BINS * width)),
            np.empty((d, n_rows), np.uint8),
            np.empty((self.outputs.n_outputs, n_rows)),
            np.empty(n_rows),
            Scratch.of(0, d, self.outputs),
        )

    def add(self, bins: Array, y: Array, weight: Array) -> None:
        """Add a block of rows, y of shape (targets, rows); rows of weight 0 are ignored."""
        add_rows(bins, y, weight, self.nodes, self.flags, self.state, self.work)

    # --------------------------------------------------------------------------------------------------- after a pass

    def end_pass(self, check: Callable[[], None]) -> None:
        """Split the nodes searched in the pass, or finish their subtrees."""
        work = self.work
        assert work is not None
        bind_kernels(self.state, self.table, self.outputs)
        decide_splits(self.table, self.nodes, self.sums, self.flags, self.kinds, self.left_rows, self.state, work)
        for slot in work.records:
            number = int(slot["node"])
            if slot["is_gathered"]:
                self._finish(number, slice(int(slot["first_row"]), int(slot["first_row"] + slot["n_rows"])), check)
            if self.kinds[number] == UNDECIDED:
                self.waiting[number] = int(slot["visited"])
            else:
                del self.waiting[number]
        self.work = None
        if not self.state[0]["best_first"]:
            self._divide(self._splittable())
        elif self.kinds[0] != UNDECIDED:
            wanted, _ = self._replayed()
            if wanted < 0:
                self.waiting.clear()  # no split was found for the others
            elif self.nodes[wanted]["left_child"] == 0:
                self._divide(self._promising(wanted))

    def _splittable(self) -> Array:
        return np.flatnonzero((self.kinds == SPLITTABLE) & (self.nodes["left_child"] == 0))

    def _finish(self, number: int, rows: slice, check: Callable[[], None]) -> None:
        """Grow the tree below a node from the copy of its rows."""
        work = self.work
        assert work is not None
        numbers = np.arange(rows.stop - rows.start, dtype=np.uint32)
        copied = TreeRows(numbers, np.ascontiguousarray(work.y[:, rows]), work.weight[rows])
        state = self.state.copy()
        state["n_nodes"] = 0
        table = self.table._replace(bins=np.ascontiguousarray(work.bins[:, rows]))
        grown = grow_nodes(table, copied, self.outputs, state, self.nodes[number], check)
        if number == 0:
            self.state["weight"] = state["weight"]
        first = self._extend(len(grown.nodes) - 1)
        child = grown.nodes["left_child"]
        child[child > 0] += first - 1
        is_inner = child > 0
        places = np.concatenate([[number], np.arange(first, self.n_nodes)])
        self.nodes[places], self.sums[places] = grown.nodes, grown.sums
        self.nodes["start"][places], self.nodes["stop"][places] = 0, grown.nodes["stop"] - grown.nodes["start"]
        if self.table.is_categorical.any():
            self.flags[places] = grown.flags
        self.kinds[places] = np.where(is_inner, SPLITTABLE, LEAF)

    def _extend(self, more: int) -> int:
        """Allocate more nodes; return the number of the first."""
        first, self.n_nodes = self.n_nodes, self.n_nodes + more
        if self.n_nodes > len(self.nodes):
            capacity = 2 * self.n_nodes
            for name in ("nodes", "sums", "kinds", "left_rows"):
                setattr(self, name, _enlarged(getattr(self, name), capacity))
            if self.table.is_categorical.any():
                self.flags = _enlarged(self.flags, capacity)
        return first

    def _divide(self, numbers: Array) -> None:
        first = self._extend(2 * len(numbers))
        divide(self.table, self.nodes, numbers, first, self.left_rows)
        self.waiting.update(dict.fromkeys(range(first, self.n_nodes), 0))

    def _replayed(self) -> tuple[int, GrownNodes]:
        """Return the node to split next, or -1, and the nodes up to there in the order of `grow_kernels`."""
        target, state = np.empty(self.n_nodes, NODE), self.state.copy()
        origin, open_nodes = np.empty(self.n_nodes, np.int64), np.empty(self.n_nodes, np.int64)
        wanted = int(replay(self.nodes, self.kinds, target, origin, open_nodes, state))
        n = int(state["n_nodes"][0])
        flags = self.flags[origin[:n]] if self.table.is_categorical.any() else self.flags
        return wanted, GrownNodes(target[:n], self.sums[origin[:n]], flags)

    def _promising(self, wanted: int) -> Array:
        """Return the nodes to split: the required one, and those of largest improvement up to the limit."""
        others = self._splittable()
        others = others[others != wanted]
        order = np.argsort(-self.nodes["improvement"][others], kind="stable")
        return np.append(others[order[: int(self.state[0]["max_leaves"]) - 2]], wanted)

    def finished(self) -> GrownNodes | None:
        """Return the nodes, in the order of `grow_kernels`; None if further passes are needed."""
        return None if self.waiting else self._replayed()[1]


def _enlarged(array: Array, capacity: int) -> Array:
    out = np.zeros((capacity, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def warmup() -> None:
    """Compile for the usual types."""
    table = BinnedTable.of_one_feature(np.zeros((1, 0), np.uint8))
    tree = LevelTree.planted(table, 4, Outputs(), ExactParameters("squared_error"))
    while (grown := tree.finished()) is None:
        tree.plan(2**20, 0)
        tree.add(np.array([[0], [0], [1], [1]], np.uint8), np.array([[0.0, 0.0, 1.0, 1.0]]), np.ones(4))
        tree.end_pass(lambda: None)
    assert len(grown.nodes) == 3
