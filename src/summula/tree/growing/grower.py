"""Growing a tree on binned rows: best leaf first, summing the histogram of the smaller child only.

    1. of all leaves split the one of largest gain,
    2. partition its rows,
    3. sum the histogram of the child with fewer rows; that of its sibling is the parent's minus it,
    4. find the best split of both.

All sums are integers, so a tree is the same for any number of threads and any order of rows within chunks. The steps
themselves are in `growing_kernels`.
"""

from __future__ import annotations

import functools
import itertools
import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.compile import compile_for
from summula.core.engine.threads import inside_pool, thread_count
from summula.core.engine.worker_group import LINE, WorkerGroup, group_size
from summula.tree.growing import growing_kernels, leaf_kernels
from summula.tree.growing.criterion import NEWTON, Criterion
from summula.tree.growing.grow_context import GrowContext, GrowKernels, HistogramPool, ThreadScratch
from summula.tree.growing.histogram_kernels import BINS, BLOCK, Packing, TreeInputs
from summula.tree.growing.leaf_kernels import LeafRows
from summula.tree.growing.nodes import BinnedRows, Gradients, Tree, TreeParameters
from summula.tree.growing.records import GROW_STATE, PARAMETERS, feature_table, node_dtype, split_dtype
from summula.tree.growing.split_kernels import SplitInputs

__all__ = ["Grower", "Grown", "compile_grow", "compile_reading", "warmup"]

Array = NDArray[Any]

_TINY = 40_000  # total number of bins below which barriers cost more than they save
_SMALL = 1_200_000  # the same for sharing the shorter steps; below it the worker group persists from tree to tree
_LONG = 50_000_000  # additions and comparisons per tree above which growing is supervised: about 0.1 s
_FIRST_LEAVES = 64  # number of leaves for which memory is allocated initially
_UNLIMITED = 2**62  # leaves, or levels


class Grown(NamedTuple):
    """A tree, its nodes in the order of growth, and the rows of its leaves."""

    tree: Tree
    nodes: Array
    leaf_rows: LeafRows
    threads: int

    def shares(self) -> list[tuple[int, int]]:
        """Return a range of leaves for each thread, with about equal numbers of rows."""
        leaves, starts, rows = self.leaf_rows
        if self.threads == 1:
            return [(0, len(leaves))]
        cuts = np.searchsorted(starts, np.linspace(0, len(rows), self.threads + 1))
        cuts[0], cuts[-1] = 0, len(leaves)
        return [(int(a), int(b)) for a, b in itertools.pairwise(cuts) if b > a]


class Grower:
    """Grows trees on the same bins, one after the other.

    Parameters
    ----------
    binned : BinnedRows
    features : ndarray of dtype FEATURE
        Table of the features.
    parameters : TreeParameters
    n_jobs : int, optional
        Maximum number of threads.
    criterion : Criterion, default=NEWTON
        Split criterion.
    binds : bool, default=True
        Whether to compile the kernels that are called by address; without them no tree can be grown.
    """

    def __init__(
        self,
        binned: BinnedRows,
        features: Array,
        parameters: TreeParameters,
        n_jobs: int | None = None,
        *,
        criterion: Criterion = NEWTON,
        binds: bool = True,
    ) -> None:
        self.binned, self.features, self.parameters, self.criterion = binned, features, parameters, criterion
        n, d = binned.by_row.shape
        threads = 1 if inside_pool() else thread_count(n_jobs)
        self.threads = threads if n * d >= _SMALL else 1
        self._members = group_size(n_jobs) if n * d >= _TINY else 1
        self.is_long = _tree_work(n, d, parameters) > _LONG
        self._timer = _GroupTimer(always=self.threads > 1 or self._members == 1)
        self._record = _parameter_record(parameters, binned)
        self._context = self._allocate(binds)
        self._scratch = {k: _thread_scratch(features, k, criterion) for k in {1, self._members}}
        self._worker_groups: dict[int, WorkerGroup] = {}
        self._is_cancelled = False

    def _allocate(self, binds: bool) -> GrowContext:
        """Allocate everything except gradients and the scratch memory of threads."""
        record, packing, criterion = self._record, Packing(0, 0, 0, 0), self.criterion
        if binds:
            splits = SplitInputs.of(self.features, record, packing)
            kernels = GrowKernels(criterion.accumulate.address(), criterion.find_best_split.address())
        else:
            splits, kernels = SplitInputs(self.features, record, packing, 0, 0), GrowKernels(0, 0)
        (n, d), leaves = self.binned.by_row.shape, min(self.parameters.max_leaves or _FIRST_LEAVES, _FIRST_LEAVES)
        nodes, interactions = 2 * leaves - 1, self.parameters.interaction_groups or ()
        groups = np.zeros((len(interactions), d), np.uint8)
        for k, group in enumerate(interactions):
            groups[k, sorted(group)] = 1
        packed, wide = leaves + 2, 4  # pages that are never written to use no memory
        return GrowContext(
            inputs=TreeInputs(self.binned.by_row, np.empty(0, np.int64), packing),
            split_inputs=splits,
            binned_by_column=self.binned.flat_by_column[0],
            rows=np.empty(n, np.uint32),
            rows_scratch=np.empty(n, np.uint32),
            groups=groups,
            nodes=np.zeros(nodes, node_dtype(self.criterion.sums)),
            goes_left=np.zeros((nodes, BINS), np.uint8),
            open_leaves=np.zeros(nodes, np.int64),
            node_groups=np.zeros((nodes, len(groups)), np.uint8),
            state=np.zeros(1, GROW_STATE),
            pool=HistogramPool(
                np.empty((packed, d, BINS), np.int64),
                np.empty((wide, d, 3 * BINS), np.int64),
                np.empty(packed, np.int64),
                np.empty(wide, np.int64),
            ),
            scratch=None,  # type: ignore[arg-type]
            kernels=kernels,
        )

    def compile(self) -> None:
        """Compile the kernel that grows trees, without the kernels it calls by address."""
        context = self._context._replace(scratch=self._scratch[1])
        compile_for(growing_kernels.make_grow(self.criterion), context, np.zeros((2, LINE), np.int64), 0)

    # ------------------------------------------------------------------------------------------------------- one tree

    def grow(self, gradients: Gradients, key: int = 0) -> Grown:
        """Grow a tree for these gradients; the values of its leaves are not set yet.

        key : key of the random numbers that draw features (`core.engine.random.stream_key`).
        """
        state, record = self._context.state[0], self._record[0]
        state["n_nodes"] = 0
        record["gradient_unit"], record["hessian_unit"] = gradients.gradient_unit, gradients.hessian_unit
        record["key"] = key
        if gradients.packed is not self._context.inputs.packed:
            inputs = TreeInputs(self.binned.by_row, gradients.packed, gradients.packing)
            splits = self._context.split_inputs._replace(packing=gradients.packing)
            self._context = self._context._replace(inputs=inputs, split_inputs=splits)
            self._worker_groups.clear()
        start, members = perf_counter(), self._members if self._timer.uses_group() else 1
        while True:
            self._worker_group(members).run()
            if state["next_leaf"] == growing_kernels.DONE:
                break
            self._enlarge()
        self._timer.record(perf_counter() - start)
        return self._read()

    def cancel(self) -> None:
        """Abort the tree that is being grown with an error; no other can be grown."""
        self._is_cancelled = True
        for group in list(self._worker_groups.values()):
            group.cancel()

    def _worker_group(self, members: int) -> WorkerGroup:
        """Return the worker group of this size that grows trees in the currently allocated memory."""
        if members not in self._worker_groups:
            context = self._context._replace(scratch=self._scratch[members])
            task = functools.partial(growing_kernels.make_grow(self.criterion), context)
            persistent = self.threads == 1 and not self.is_long
            self._worker_groups[members] = WorkerGroup(task, members, persistent=persistent, supervised=self.is_long)
            if self._is_cancelled:
                self._worker_groups[members].cancel()
        return self._worker_groups[members]

    def _read(self) -> Grown:
        context = self._context
        nodes = int(context.state[0]["n_nodes"])
        integers, floats = np.zeros((7, nodes), np.int64), np.empty((3, nodes))
        leaves, starts = np.empty(nodes // 2 + 1, np.int64), np.empty(nodes // 2 + 2, np.int64)
        growing_kernels.read_tree(context.nodes, context.goes_left, integers, floats, leaves, starts)
        tree = Tree.of(integers[:6], floats, context.goes_left)
        return Grown(tree, context.nodes, LeafRows(leaves, starts, context.rows), self.threads)

    def _enlarge(self) -> None:
        """Double the number of nodes or of histograms, whichever is exhausted."""
        context, state = self._context, self._context.state[0]
        pool = context.pool
        if state["n_nodes"] + 2 > len(context.nodes):
            names = ("nodes", "goes_left", "open_leaves", "node_groups")
            larger: Any = {name: _doubled(getattr(context, name)) for name in names}
            context = context._replace(**larger)
        if state["n_free_packed"] < 2:
            free = _enlarged_free(pool.free_packed, int(state["n_free_packed"]))
            pool = pool._replace(packed=_doubled(pool.packed), free_packed=free)
            state["n_free_packed"] += len(pool.packed) // 2
        if state["n_free_wide"] < 1:
            free = _enlarged_free(pool.free_wide, int(state["n_free_wide"]))
            pool = pool._replace(wide=_doubled(pool.wide), free_wide=free)
            state["n_free_wide"] += len(pool.wide) // 2
        self._context = context._replace(pool=pool)
        self._worker_groups.clear()


class _GroupTimer:
    """Decides whether a worker group grows small trees faster than one thread.

    This is measured repeatedly, since other processes may need the processors, too. A trial grows four trees, two each
    way; the faster way is used until the next trial.
    """

    def __init__(self, *, always: bool) -> None:
        self._always, self._trees, self._group_is_faster = always, 0, True
        self._seconds: list[float] = []

    def uses_group(self) -> bool:
        """Return whether a worker group grows the next tree."""
        return self._always or self._since_trial() < 2 or (self._since_trial() > 3 and self._group_is_faster)

    def record(self, seconds: float) -> None:
        """Record the time of the last tree."""
        if self._since_trial() < 4:
            self._seconds.append(seconds)
        if len(self._seconds) == 4:
            self._group_is_faster = min(self._seconds[:2]) < min(self._seconds[2:])
            self._seconds = []
        self._trees += 1

    def _since_trial(self) -> int:
        """Return the number of trees since the last trial began, at the 1st, 16th, 64th, 256th, ... tree."""
        return self._trees if self._trees < 16 else self._trees - (1 << ((self._trees.bit_length() - 1) & ~1))


def _tree_work(n: int, d: int, parameters: TreeParameters) -> float:
    """Estimate the number of additions and comparisons per tree."""
    leaves = min(parameters.max_leaves or _UNLIMITED, max(n // parameters.min_rows, 1))
    levels = min(math.log2(leaves) + 1, math.inf if parameters.max_depth is None else parameters.max_depth)
    return d * (n * levels + 2.0 * BINS * min(leaves, 2.0 ** min(levels, 60)))


def _parameter_record(parameters: TreeParameters, binned: BinnedRows) -> Array:
    record = np.zeros(1, PARAMETERS)
    for name in ("l2", "min_rows", "min_hessian", "min_gain", "feature_fraction"):
        record[name] = getattr(parameters, name)
    record["max_leaves"] = parameters.max_leaves or _UNLIMITED
    record["max_depth"] = _UNLIMITED if parameters.max_depth is None else parameters.max_depth
    record["splits_all"] = parameters.max_leaves is None
    _, record["row_stride"], record["feature_stride"] = binned.flat_by_column
    return record


def _thread_scratch(features: Array, members: int, criterion: Criterion) -> ThreadScratch:
    """Allocate the scratch memory of each member of a worker group; features are balanced by search time."""
    d = len(features)
    work = np.where(features["is_categorical"] > 0, 30 + features["n_bins"], 60)  # categories are sorted first
    done = np.cumsum(work) / work.sum()
    cuts = np.concatenate([[0], np.searchsorted(done, np.arange(1, members) / members) + 1, [d]])
    return ThreadScratch(
        first_feature=np.minimum(cuts, d).astype(np.int64),
        block=np.zeros((members, min(d, BLOCK), BINS), np.int64),
        packed=np.empty((members - 1, d, BINS), np.int64),
        wide=np.empty((members - 1, d, 3 * BINS), np.int64),
        n_left=np.zeros((members, LINE), np.int64),
        allowed=np.ones((members, 2, d), np.uint8),
        split=np.zeros((members, 2), split_dtype(criterion.sums)),
        goes_left=np.zeros((members, 2, BINS), np.uint8),
        bits=np.zeros((members, BINS), np.int64),
        sums=np.zeros((members, 4, BINS)),
    )


def _doubled(array: Array) -> Array:
    larger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _enlarged_free(free: Array, left: int) -> Array:
    """Return the numbers of free histograms, `left` of which remain, after doubling the pool."""
    more = np.zeros(2 * len(free), np.int64)
    more[:left] = free[:left]
    more[left : left + len(free)] = np.arange(len(free), 2 * len(free))
    return more


def _smallest(**options: Any) -> Grower:
    """Return a grower for two rows with a numeric and a categorical column."""
    rows, features = np.zeros((2, 2), np.uint8), feature_table([1, 1], [0, 1], [0, 0])
    return Grower(BinnedRows.of(rows), features, TreeParameters(), 1, **options)


def compile_grow() -> None:
    """Compile the kernel that takes longest, which every fit needs."""
    _smallest(binds=False).compile()


def compile_reading() -> None:
    """Compile the kernels needed after a tree has been grown."""
    context = _smallest(binds=False)._context
    numbers = np.zeros(1, np.int64)
    compile_for(
        growing_kernels.read_tree, context.nodes, context.goes_left, numbers[None], np.zeros((1, 1)), numbers, numbers
    )
    leaf_kernels.warmup()


def warmup() -> None:
    """Compile for the usual types: grow a tree."""
    slopes = np.ones(2, np.float32)
    gradients = Gradients(slopes, slopes, 1.0, np.ones(2, np.int64), Packing.of(2, 2), 1.0, 1.0)
    _smallest().grow(gradients)
