"""Inputs and working memory of the kernels that grow a tree."""

from __future__ import annotations

from typing import Any, NamedTuple

from summula.tree.growing.histogram_kernels import TreeInputs
from summula.tree.growing.split_kernels import SplitInputs

__all__ = ["GrowContext", "GrowKernels", "HistogramPool", "ThreadScratch"]


class HistogramPool(NamedTuple):
    """Histograms of leaves that may be split, packed and wide, and the numbers of the free ones."""

    packed: Any
    wide: Any
    free_packed: Any
    free_wide: Any


class ThreadScratch(NamedTuple):
    """Scratch memory of the members of the worker group, one per index of the first axis."""

    first_feature: Any  # first feature searched by each member
    block: Any  # see `histogram_kernels.accumulate`
    packed: Any  # histograms, of all members but the first
    wide: Any
    n_left: Any  # number of rows that go left, one cache line each
    allowed: Any  # (members, 2, features): which features a node may be split on
    split: Any  # (members, 2): the best split of each child
    goes_left: Any
    bits: Any  # (members, 256): see `split_kernels.Search`
    sums: Any  # (members, 4, 256)


class GrowKernels(NamedTuple):
    """Addresses of kernels."""

    accumulate: int
    find_best_split: int


class GrowContext(NamedTuple):
    """All inputs and working memory for growing a tree."""

    inputs: TreeInputs
    split_inputs: SplitInputs
    binned_by_column: Any  # a flat array; see PARAMETERS for its strides
    rows: Any  # row numbers; those of a node are consecutive
    rows_scratch: Any
    groups: Any  # (groups, features): 1 for the members of each interaction group
    nodes: Any
    goes_left: Any  # (nodes, 256): bins on the left of a node
    open_leaves: Any  # nodes that may be split
    node_groups: Any  # (nodes, groups): whether the features of a group may still be used
    state: Any  # one record of dtype GROW_STATE
    pool: HistogramPool
    scratch: ThreadScratch
    kernels: GrowKernels
