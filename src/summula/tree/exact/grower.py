"""Growing an exact tree from columns in memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import inside_pool, thread_count, together
from summula.tree.exact.grow_kernels import find_categories, grow
from summula.tree.exact.records import ABSOLUTE, CRITERIA, ENTROPY, NODE, PARAMETERS, SQUARED, ExactRows, Scratch
from summula.tree.exact.scan_kernels import scan_address
from summula.tree.predictor import Nodes

__all__ = ["ExactParameters", "ExactTree", "grow_exact", "warmup"]

Array = NDArray[Any]

_BUDGET = 20_000_000  # entries of columns read between two looks at the clock: about 0.1 s
_UNLIMITED = 2**62
_SMALL = 50_000  # values, below which one thread sorts them


class ExactParameters(NamedTuple):
    """What limits a tree, in numbers of rows and columns."""

    criterion: str
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_features: int | None = None
    random_threshold: bool = False
    key: int = 0


class ExactTree(NamedTuple):
    """A grown tree.

    Attributes
    ----------
    nodes : Nodes
        What rows are sent down; its `gain` is the decrease of the weighted impurity, its `value` the mean of y.
    impurity : ndarray of shape (n_nodes,)
    values : ndarray of shape (n_nodes, n_classes) or (n_nodes, 1)
        Share of each class, or the value predicted.
    """

    nodes: Nodes
    impurity: Array
    values: Array


def grow_exact(
    X: Array,
    y: Array,
    weight: Array | None,
    n_classes: int,
    parameters: ExactParameters,
    is_categorical: Array,
    check: Callable[[], None],
) -> ExactTree:
    """Grow a tree.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        NaN for missing values; categories are whole numbers from 0 to 254.
    y : ndarray of shape (n,)
        Targets, or codes of classes.
    weight : ndarray of shape (n,), optional
        Rows of weight 0 are left out.
    n_classes : int
        0 for regression.
    parameters : ExactParameters
    is_categorical : ndarray of shape (d,), bool
    check : callable
        Called about every 0.1 s; may raise.
    """
    w = np.ones(len(y)) if weight is None else weight.astype(np.float64)
    if not (w > 0).all():
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    criterion, (n, d) = CRITERIA[parameters.criterion], X.shape
    # Sums of squares about the mean lose no digits.
    shift = float(np.average(y, weights=w)) if criterion == SQUARED else 0.0
    data = _sorted_rows(X, y - shift, w, is_categorical, by_target=criterion == ABSOLUTE)
    n_sums = n_classes + 1 if criterion <= ENTROPY else 3
    most = 2 * min(parameters.max_leaf_nodes or n, max(n // parameters.min_samples_leaf, 1)) - 1
    nodes, sums, open_nodes = np.zeros(most, NODE), np.empty((most, n_sums)), np.empty(most, np.int64)
    flags = np.zeros((most if is_categorical.any() else 1, 256), np.uint8)
    scratch = Scratch.of(n, d, n_sums, has_categories=bool(is_categorical.any()), has_medians=criterion == ABSOLUTE)
    state = _state(parameters, d, has_categories=bool(is_categorical.any()))
    while not grow(data, nodes, sums, open_nodes, flags, state, scratch, _BUDGET):
        check()
    found = int(state[0]["n_nodes"])
    return _read(nodes[:found], sums[:found], flags, shift, n_classes)


def _state(parameters: ExactParameters, d: int, *, has_categories: bool) -> Array:
    state = np.zeros(1, PARAMETERS)
    state["criterion"] = CRITERIA[parameters.criterion]
    state["scan"] = scan_address(CRITERIA[parameters.criterion])
    state["find_categories"] = find_categories.address() if has_categories else 0
    state["max_depth"] = _UNLIMITED if parameters.max_depth is None else parameters.max_depth
    state["max_leaves"] = parameters.max_leaf_nodes or _UNLIMITED
    state["best_first"] = parameters.max_leaf_nodes is not None
    for name in ("min_samples_split", "min_samples_leaf", "min_weight_leaf", "random_threshold", "key"):
        state[name] = getattr(parameters, name)
    state["min_improvement"] = parameters.min_impurity_decrease
    state["max_features"] = d if parameters.max_features is None else parameters.max_features
    return state


def _sorted_rows(X: Array, y: Array, w: Array, is_categorical: Array, *, by_target: bool) -> ExactRows:
    n, d = X.shape
    values, orders = np.empty((d, n)), np.empty((d + 1, n), np.uint32)

    def sort(first: int, step: int) -> None:
        for j in range(first, d, step):
            values[j] = X[:, j]
            if not is_categorical[j]:
                orders[j] = np.argsort(values[j], kind="stable")

    threads = 1 if inside_pool() or X.size < _SMALL else thread_count()
    together([functools.partial(sort, k, threads) for k in range(threads)])
    orders[d] = np.argsort(y, kind="stable") if by_target else np.arange(n)
    return ExactRows(values, orders, is_categorical.astype(np.uint8), y.astype(np.float64), w)


def _read(nodes: Array, sums: Array, flags: Array, shift: float, n_classes: int) -> ExactTree:
    """Return the tree of the nodes grown."""
    weight, split, child = nodes["weight"], nodes["split"], nodes["left_child"]
    is_inner = child > 0
    is_set = is_inner & (split["is_categorical"] > 0)
    category = np.full(len(nodes), -1, np.int32)
    category[is_set] = np.arange(is_set.sum())
    values = sums[:, :n_classes] / weight[:, None] if n_classes else (sums[:, :1] / weight[:, None]) + shift
    table = Nodes(
        column=np.where(is_inner, split["feature"], -1).astype(np.int32),
        threshold=np.where(is_inner & ~is_set, split["threshold"], 0.0),
        bin=np.zeros(len(nodes), np.uint8),
        category=category,
        missing_left=np.where(is_inner, split["missing_left"], 0).astype(np.uint8),
        child=child.astype(np.int32),
        value=np.zeros(len(nodes)) if n_classes else values[:, 0].copy(),
        gain=np.where(is_inner, nodes["improvement"], 0.0),
        rows=nodes["stop"] - nodes["start"],
        weight=weight.copy(),
        lefts=flags[np.flatnonzero(is_set)] if is_set.any() else np.empty((0, 256), np.uint8),
        roots=np.array([0, len(nodes)]),
    )
    return ExactTree(table, nodes["impurity"].copy(), values)


def warmup() -> None:
    """Compile for every kind of criterion."""
    X, y = np.zeros((2, 1)), np.zeros(2)
    for criterion, n_classes in (("gini", 1), ("squared_error", 0), ("absolute_error", 0)):
        grow_exact(X, y, None, n_classes, ExactParameters(criterion), np.ones(1, bool), lambda: None)
