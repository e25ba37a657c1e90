"""Growing a tree on binned rows: best node first, histograms of the smaller child only.

    1. of all leaves split the one of largest gain,
    2. sort its rows in two,
    3. sum the histogram of the side with fewer rows; the other's is the parent's less that,
    4. find the best split of both.

All sums are integers, so a tree is the same for any number of threads and any order of rows within chunks. Large
nodes share their rows among threads, small ones their columns.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.threads import inside_pool, thread_count, together
from summula.tree.histogram_kernels import accumulate, accumulate_all
from summula.tree.nodes import Bins, Leaf, Rules, Slopes, Tree
from summula.tree.partition_kernels import add_values, leaf_sums, partition
from summula.tree.split_kernels import BINS, Columns, Limits, best_split, split_children

__all__ = ["Grower", "Grown"]

Array = NDArray[Any]

_BY_ROWS = 16_000  # rows of a node beyond which threads share rows, not columns
_ALONE = 80_000  # rows times columns below which one thread does it all
_FEW = 200_000  # bins in all below which handing out work costs more than it saves
_NO_ROWS = np.empty(0, np.uint32)
_WIDE = 62  # bits of the sums of leaf values


class Grown(NamedTuple):
    """A tree, and the rows of its leaves: those of leaf `leaves[k]` are `rows[starts[k] : starts[k + 1]]`."""

    tree: Tree
    leaves: Array
    starts: Array
    rows: Array


class Grower:
    """Grows trees on the same bins, one after the other.

    Parameters
    ----------
    bins : Bins
    columns : Columns
        What the columns are.
    rules : Rules
    n_jobs : int, optional
        Most threads.
    """

    def __init__(self, bins: Bins, columns: Columns, rules: Rules, n_jobs: int | None = None) -> None:
        self.bins, self.columns, self.rules = bins, columns, rules
        n, d = bins.rows.shape
        few = bins.rows.size < _FEW or inside_pool()
        self.threads = 1 if few else thread_count(n_jobs)
        self.rows, self._spare = np.empty(n, np.uint32), np.empty(n, np.uint32)
        self._packed = np.zeros((self.threads, d, BINS), np.int64)
        self._free: list[Array] = []
        cuts = _cuts(0, d, min(self.threads, d))
        self._slices = list(itertools.pairwise(cuts))
        k = len(self._slices)
        self._outs, self._founds = np.empty((k, 2, 1)), np.empty((k, 2, 6), np.int64)
        self._lefts = np.empty((k, 2, BINS), np.uint8)

    # ------------------------------------------------------------------------------------------------------- one tree

    def grow(self, slopes: Slopes, rng: np.random.Generator | None = None) -> Grown:
        """A tree for these gradients; `rng` draws columns where not all are looked at."""
        rules = self.rules
        self._slopes, self._rng = slopes, rng
        self._limits = Limits(
            slopes.gradient_unit, slopes.curvature_unit, rules.l2, rules.min_rows, rules.min_curvature
        )
        self.rows[:] = np.arange(len(self.rows), dtype=np.uint32)
        tree, root = Tree(), self._root()
        tree.add(root, self._limits.curvature_unit * float(root.total[1]))
        queue: list[tuple[float, int, Leaf]] = []
        done: list[Leaf] = []
        self._enqueue(root, queue, done)
        while queue and (rules.max_leaves is None or len(queue) + len(done) < rules.max_leaves):
            leaf = heapq.heappop(queue)[2]
            last = rules.max_leaves is not None and len(queue) + len(done) + 2 >= rules.max_leaves
            for child in self._split(tree, leaf, search=not last):
                self._enqueue(child, queue, done)
        done += [leaf for _, _, leaf in queue]
        for leaf in done:
            self._give_back(leaf)
        done.sort(key=lambda leaf: leaf.start)
        self._finish(tree, done)
        starts = np.array([leaf.start for leaf in done] + [len(self.rows)], np.int64)
        return Grown(tree, np.array([leaf.number for leaf in done], np.int64), starts, self.rows)

    def add_to(self, scores: Array, grown: Grown) -> None:
        """Add the values of the leaves to the scores of their rows."""
        values = np.array(grown.tree.value)[grown.leaves]
        cuts = np.searchsorted(grown.starts, np.linspace(0, len(self.rows), self.threads + 1))
        cuts[0], cuts[-1] = 0, len(grown.leaves)
        spans = [(int(a), int(b)) for a, b in itertools.pairwise(cuts) if b > a]
        together([functools.partial(add_values, self.rows, grown.starts, values, a, b, scores) for a, b in spans])

    # --------------------------------------------------------------------------------------------------------- leaves

    def _root(self) -> Leaf:
        n, slopes, limits = len(self.rows), self._slopes, self._limits
        cuts = _cuts(0, n, self.threads)
        parts = [self._histogram() for _ in range(self.threads)]
        bits = slopes.count_bits, slopes.bits
        together(
            [
                functools.partial(
                    accumulate_all,
                    self.bins.rows,
                    cuts[k],
                    cuts[k + 1],
                    slopes.packed,
                    *bits,
                    self._packed[k],
                    parts[k],
                )
                for k in range(self.threads)
            ]
        )
        sums = self._added(parts)
        total = sums[0].sum(axis=0)
        h = limits.curvature_unit * total[1]
        value = -limits.gradient_unit * total[0] / (h + limits.l2 + 1e-15)
        root = Leaf(0, 0, n, 0, total, (-np.inf, np.inf), float(value), sums, groups=self.rules.groups)
        if self._splittable(root):
            allowed, node = self._allowed(root), np.array([root.value, *root.bounds])
            given = self.columns, allowed, total, node, limits
            together(
                [
                    functools.partial(
                        best_split, sums, a, b, *given, self._outs[k, 0], self._founds[k, 0], self._lefts[k, 0]
                    )
                    for k, (a, b) in enumerate(self._slices)
                ]
            )
            self._choose(root, 0)
        return root

    def _histogram(self) -> Array:
        """Space for one, all zero."""
        sums = self._space()
        sums[...] = 0
        return sums

    def _space(self) -> Array:
        return self._free.pop() if self._free else np.empty((self.bins.rows.shape[1], BINS, 3), np.int64)

    def _added(self, parts: list[Array]) -> Array:
        for part in parts[1:]:
            parts[0] += part
            self._free.append(part)
        return parts[0]

    def _give_back(self, leaf: Leaf) -> None:
        if leaf.sums is not None:
            self._free.append(leaf.sums)
            leaf.sums = None

    def _splittable(self, leaf: Leaf) -> bool:
        rules = self.rules
        deep = rules.max_depth is not None and leaf.depth >= rules.max_depth
        return not deep and leaf.stop - leaf.start >= 2 * rules.min_rows

    def _enqueue(self, leaf: Leaf, queue: list[tuple[float, int, Leaf]], done: list[Leaf]) -> None:
        if leaf.gain > self.rules.min_gain:
            heapq.heappush(queue, (-leaf.gain, leaf.number, leaf))
        else:
            self._give_back(leaf)
            done.append(leaf)

    def _allowed(self, leaf: Leaf) -> Array:
        """Which columns a node may be split on."""
        allowed = np.ones(self.bins.rows.shape[1], np.uint8)
        if leaf.groups is not None:
            allowed[:] = 0
            allowed[sorted(frozenset().union(*leaf.groups))] = 1
        if self.rules.share < 1.0 and self._rng is not None:
            candidates = np.flatnonzero(allowed)
            few = max(1, int(np.ceil(self.rules.share * len(candidates))))
            allowed[:] = 0
            allowed[self._rng.choice(candidates, few, replace=False)] = 1
        return allowed

    def _choose(self, leaf: Leaf, which: int) -> None:
        """The best of what was found on the slices of columns; of equal ones the first."""
        k = int(np.argmax(self._outs[:, which, 0]))
        leaf.gain = float(self._outs[k, which, 0])
        leaf.found, leaf.left = self._founds[k, which].copy(), self._lefts[k, which].copy()

    # --------------------------------------------------------------------------------------------------------- splits

    def _split(self, tree: Tree, leaf: Leaf, *, search: bool) -> list[Leaf]:
        assert leaf.found is not None
        assert leaf.left is not None
        f = int(leaf.found[0])
        middle = leaf.start + self._sort(leaf.start, leaf.stop, self.bins.columns[f], leaf.left)
        children = self._children(tree.split(leaf), leaf, f, middle)
        for child in children:
            tree.add(child, self._limits.curvature_unit * float(child.total[1]))
        if search and any(self._splittable(child) for child in children):
            self._search(leaf, children)
        else:
            self._give_back(leaf)
        return children

    def _children(self, number: int, leaf: Leaf, f: int, middle: int) -> list[Leaf]:
        limits, found = self._limits, leaf.found
        assert found is not None
        sides = [found[3:6], leaf.total - found[3:6]]
        low, high = leaf.bounds
        values = []
        for g, h, _ in (side.tolist() for side in sides):
            value = -limits.gradient_unit * g / (limits.curvature_unit * h + limits.l2 + 1e-15)
            values.append(min(max(value, low), high))
        between = (values[0] + values[1]) / 2
        bounds = {
            0: [(low, high), (low, high)],
            1: [(low, between), (between, high)],
            -1: [(between, high), (low, between)],
        }[int(self.columns.monotone[f])]
        groups = leaf.groups if leaf.groups is None else tuple(group for group in leaf.groups if f in group)
        places = ((leaf.start, middle), (middle, leaf.stop))
        return [
            Leaf(number + k, *places[k], leaf.depth + 1, sides[k], bounds[k], values[k], groups=groups)
            for k in range(2)
        ]

    def _sort(self, start: int, stop: int, bins: Array, left: Array) -> int:
        """Rows that go left first; gives their number."""
        n = stop - start
        if n < _BY_ROWS or self.threads == 1:
            rows, spare = self.rows[start:stop], self._spare[start:stop]
            count = int(partition(rows, bins, left, spare))
            rows[count:] = spare[: n - count]
            return count
        cuts = _cuts(start, stop, self.threads)
        spans = list(itertools.pairwise(cuts))
        counts = together(
            [functools.partial(partition, self.rows[a:b], bins, left, self._spare[a:b]) for a, b in spans]
        )
        at = start
        for (a, _), count in zip(spans, counts, strict=True):
            if at != a:
                self.rows[at : at + count] = self.rows[a : a + count]
            at += count
        middle = at
        for (a, b), count in zip(spans, counts, strict=True):
            self.rows[at : at + b - a - count] = self._spare[a : b - count]
            at += b - a - count
        return middle - start

    def _search(self, leaf: Leaf, children: list[Leaf]) -> None:
        """Histograms and best splits of both children."""
        small, large = sorted(children, key=lambda child: child.stop - child.start)
        small.sums, large.sums, leaf.sums = self._space(), leaf.sums, None
        rows, d, slopes = self.rows[small.start : small.stop], self.bins.rows.shape[1], self._slopes
        if len(rows) >= _BY_ROWS and self.threads > 1:
            self._free.append(small.sums)
            small.sums = self._by_rows(rows)
            rows = _NO_ROWS
        pair = (small, large)
        allowed = np.stack([self._allowed(child) for child in pair])
        totals = np.stack([child.total for child in pair])
        nodes = np.array([(child.value, *child.bounds) for child in pair])
        alone = len(rows) * d < _ALONE and d * len(self._slices) < 256
        slices = [(0, d)] if alone else self._slices
        given = self.columns, allowed, totals, nodes, self._limits
        together(
            [
                functools.partial(
                    split_children,
                    self.bins.rows,
                    rows,
                    slopes.packed,
                    a,
                    b,
                    slopes.count_bits,
                    slopes.bits,
                    self._packed[k],
                    small.sums,
                    large.sums,
                    *given,
                    self._outs[k],
                    self._founds[k],
                    self._lefts[k],
                )
                for k, (a, b) in enumerate(slices)
            ]
        )
        self._outs[len(slices) :] = -1.0
        for which, child in enumerate(pair):
            if self._splittable(child):
                self._choose(child, which)

    def _by_rows(self, rows: Array) -> Array:
        """The histogram of many rows, shared among threads."""
        slopes, d = self._slopes, self.bins.rows.shape[1]
        cuts = _cuts(0, len(rows), self.threads)
        parts = [self._histogram() for _ in range(self.threads)]
        together(
            [
                functools.partial(
                    accumulate,
                    self.bins.rows,
                    rows[cuts[k] : cuts[k + 1]],
                    slopes.packed,
                    0,
                    d,
                    slopes.count_bits,
                    slopes.bits,
                    self._packed[k],
                    parts[k],
                )
                for k in range(self.threads)
            ]
        )
        return self._added(parts)

    # --------------------------------------------------------------------------------------------------------- values

    def _finish(self, tree: Tree, leaves: list[Leaf]) -> None:
        """The values of the leaves, from unrounded gradients summed in fixed point."""
        rules, slopes = self.rules, self._slopes
        digits = _WIDE - int(np.ceil(np.log2(max(slopes.top, 1e-300)))) - int(np.ceil(np.log2(max(len(self.rows), 2))))
        unit = 2.0 ** min(digits, 1000)

        def sums(share: list[Leaf]) -> None:
            for leaf in share:
                g, h = leaf_sums(self.rows[leaf.start : leaf.stop], slopes.gradients, slopes.curvatures, unit)
                value = min(max(-g / (h + rules.l2 + 1e-15), leaf.bounds[0]), leaf.bounds[1])
                tree.value[leaf.number] = rules.rate * value
                tree.weight[leaf.number] = h

        shares = [leaves[k :: self.threads] for k in range(self.threads)]
        together([functools.partial(sums, share) for share in shares if share])


def _cuts(start: int, stop: int, pieces: int) -> list[int]:
    """Where a range is cut into pieces of about one length."""
    return [start + (stop - start) * k // pieces for k in range(pieces + 1)]
