"""Growing exact trees from columns in memory, which are sorted once for all trees."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.compilation.background import compile_meanwhile, expect_kernels
from summula.core.compilation.compile import compile_for
from summula.core.engine.threads import inside_pool, thread_count
from summula.core.engine.worker_group import run_supervised
from summula.tree.exact.category_kernels import find_categories
from summula.tree.exact.grow_kernels import find_split, grow, keep_rows, open_node
from summula.tree.exact.records import (
    ABSOLUTE,
    CRITERIA,
    NODE,
    PARAMETERS,
    SQUARED,
    ExactRows,
    Scratch,
    example_inputs,
)
from summula.tree.exact.scan_kernels import scan_address
from summula.tree.growing.outputs import Outputs
from summula.tree.prediction.predictor import Nodes

__all__ = [
    "ExactGrower",
    "ExactParameters",
    "ExactTree",
    "compile_grow",
    "compile_search",
    "parameter_record",
    "warmup",
]

Array = NDArray[Any]

_BUDGET = 20_000_000  # values read between calls of `check`: about 0.1 s
_UNLIMITED = 2**62
_SMALL = 50_000  # number of values below which one thread sorts them


class ExactParameters(NamedTuple):
    """Limits of a tree, as numbers of rows and columns."""

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
        Nodes for traversal; `gain` is the decrease of the weighted impurity, `value` the value of the first target.
    impurity : ndarray of shape (n_nodes,)
    values : ndarray of shape (n_nodes, n_values)
        Class proportions, or predicted values, for each target in turn.
    """

    nodes: Nodes
    impurity: Array
    values: Array


class LeafRows(NamedTuple):
    """The training rows of a tree, leaf by leaf.

    Attributes
    ----------
    leaves : ndarray of shape (n_leaves,)
        Numbers of the nodes.
    starts : ndarray of shape (n_leaves + 1,)
    rows : ndarray of shape (n,)
        The rows of leaf k are rows[starts[k] : starts[k + 1]].
    """

    leaves: Array
    starts: Array
    rows: Array


class ExactGrower:
    """Grows trees for different targets and weights on the same columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        NaN for missing values; categories are integers from 0 to 254.
    is_categorical : ndarray of shape (d,), bool
    monotone : ndarray of shape (d,), optional
        1, -1 or 0.
    check : callable
        Called about every 0.1 s; may raise.
    later : str, optional
        Name of the function that compiles, for a dtype, the kernels of predictions.

    Attributes
    ----------
    leaf_rows : LeafRows
        Rows of the leaves of the last tree.
    """

    def __init__(
        self,
        X: Array,
        is_categorical: Array,
        check: Callable[[], None],
        monotone: Array | None = None,
        later: str | None = None,
    ) -> None:
        d = X.shape[1]
        self._values, self._orders = _sorted_columns(X, is_categorical, check)
        self._is_categorical = is_categorical.astype(np.uint8)
        self._monotone = np.zeros(d, np.int64) if monotone is None else monotone.astype(np.int64)
        self._check, self._later = check, () if later is None else (f"{later}:{X.dtype.name}",)
        self._used = np.empty((d + 1, len(X)), np.uint32)  # more for the absolute error
        self._memory: tuple[Any, Scratch] | None = None

    def grow(self, y: Array, weight: Array | None, outputs: Outputs, parameters: ExactParameters) -> ExactTree:
        """Grow a tree.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n_outputs, n)
            Targets, or codes of classes.
        weight : ndarray of shape (n,), optional
            Rows of weight 0 are ignored.
        outputs : Outputs
            Types of the targets.
        parameters : ExactParameters
        """
        if not grow.signatures:
            kinds = f"{outputs.n_outputs}:{sum(outputs.n_classes)}"
            expect_kernels(f"summula.tree.exact.grower:compile_search:{parameters.criterion}:{kinds}")
            compile_grow()
            compile_meanwhile(*self._later)
        criterion, (d, n) = CRITERIA[parameters.criterion], self._values.shape
        w = np.ones(n) if weight is None else np.ascontiguousarray(weight, np.float64)
        y = outputs.places(y.reshape(-1, n))
        shift = _origins(y, w) if criterion == SQUARED else np.zeros(1)
        y = np.ascontiguousarray(y - shift[:, None], np.float64)
        orders = self._used_rows(w, y if criterion == ABSOLUTE else None)
        data = ExactRows(self._values, orders, self._is_categorical, self._monotone, y, w)
        most = _most_nodes(parameters, orders.shape[1])
        nodes, sums, open_nodes = np.zeros(most, NODE), np.empty((most, outputs.n_sums)), np.empty(most, np.int64)
        has_categories = bool(self._is_categorical.any())
        flags = np.zeros((most if has_categories else 1, 256), np.uint8)
        scratch = self._scratch(n, d, outputs, has_categories, criterion == ABSOLUTE)
        state = parameter_record(parameters, d, outputs)
        state["open_node"] = open_node.address()
        state["find_split"] = find_split.address()
        state["scan"] = scan_address(criterion, outputs)
        state["find_categories"] = find_categories.address() if has_categories else 0
        while not grow(data, nodes, sums, open_nodes, flags, state, scratch, _BUDGET):
            self._check()
        nodes = nodes[: int(state[0]["n_nodes"])]
        is_leaf = np.flatnonzero(nodes["left_child"] == 0)
        leaves = is_leaf[np.argsort(nodes["start"][is_leaf])]
        self.leaf_rows = LeafRows(leaves, np.append(nodes["start"][leaves], orders.shape[1]), orders[d])
        values = sums[: len(nodes), : outputs.n_values]
        values = values.copy() if criterion == ABSOLUTE else values / nodes["weight"][:, None]
        return _read(nodes, _bounded(values, nodes) + shift, flags, outputs)

    def _used_rows(self, w: Array, y: Array | None) -> Array:
        """Return the rows of positive weight in the order of each column, and of each target if needed."""
        d, keep, more = len(self._values), w > 0, 1 if y is None else len(y)
        if keep.all():
            used = self._used if more == 1 else np.empty((d + more, len(w)), np.uint32)
            used[:d] = self._orders
        else:
            used = np.empty((d + more, np.count_nonzero(keep)), np.uint32)
            keep_rows(self._orders, keep, used)
        numbers = np.flatnonzero(keep)
        used[d] = numbers
        for t, target in enumerate(() if y is None else y):
            used[d + t] = numbers[np.argsort(target[numbers], kind="stable")]
        return used

    def _scratch(self, *sizes: Any) -> Scratch:
        if self._memory is None or self._memory[0] != sizes:
            n, d, outputs, has_categories, has_medians = sizes
            self._memory = sizes, Scratch.of(n, d, outputs, has_categories=has_categories, has_medians=has_medians)
        return self._memory[1]


def _origins(y: Array, w: Array) -> Array:
    """Return a number near the mean of each target, about which sums of squares are accurate.

    It has few significant digits, so that differences from it, and means of equal targets, are exact if those of y are.
    """
    means = np.average(y, axis=1, weights=w)
    with np.errstate(over="ignore"):
        short = means.astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(short), short, means)


def _most_nodes(parameters: ExactParameters, n: int) -> int:
    """Return the largest number of nodes that a tree of n rows may have."""
    leaves = min(parameters.max_leaf_nodes or n, max(n // parameters.min_samples_leaf, 1))
    if parameters.max_depth is not None and parameters.max_depth < 62:
        leaves = min(leaves, 2**parameters.max_depth)
    return 2 * leaves - 1


def parameter_record(parameters: ExactParameters, d: int, outputs: Outputs) -> Array:
    """Return the limits of a tree as a record for the kernels, with the state of a tree without nodes."""
    state = np.zeros(1, PARAMETERS)
    state["criterion"] = CRITERIA[parameters.criterion]
    state["max_depth"] = _UNLIMITED if parameters.max_depth is None else parameters.max_depth
    state["max_leaves"] = parameters.max_leaf_nodes or _UNLIMITED
    state["best_first"] = parameters.max_leaf_nodes is not None
    for name in ("min_samples_split", "min_samples_leaf", "min_weight_leaf", "random_threshold", "key"):
        state[name] = getattr(parameters, name)
    state["n_outputs"], state["n_first"] = outputs.n_outputs, outputs.n_classes[0] if outputs.has_classes else 0
    state["min_improvement"] = parameters.min_impurity_decrease
    state["max_features"] = d if parameters.max_features is None else parameters.max_features
    return state


def _sorted_columns(X: Array, is_categorical: Array, check: Callable[[], None]) -> tuple[Array, Array]:
    """Return the columns, shape (d, n), and the rows in the order of each; `check` may raise between two columns."""
    n, d = X.shape
    values, orders = np.empty((d, n)), np.zeros((d, n), np.uint32)
    stopped = threading.Event()

    def sort(first: int, step: int) -> None:
        for j in range(first, d, step):
            if stopped.is_set():
                return
            if step == 1:
                check()
            values[j] = X[:, j]
            if not is_categorical[j]:
                orders[j] = np.argsort(values[j], kind="stable")

    threads = 1 if inside_pool() or X.size < _SMALL else thread_count()
    if threads == 1:
        sort(0, 1)
    else:
        run_supervised([functools.partial(sort, k, threads) for k in range(threads)], stopped.set)
    return values, orders


def _read(nodes: Array, values: Array, flags: Array, outputs: Outputs) -> ExactTree:
    """Return the tree of the nodes grown."""
    weight, split, child = nodes["weight"], nodes["split"], nodes["left_child"]
    is_inner = child > 0
    is_set = is_inner & (split["is_categorical"] > 0)
    category = np.full(len(nodes), -1, np.int32)
    category[is_set] = np.arange(is_set.sum())
    table = Nodes(
        column=np.where(is_inner, split["feature"], -1).astype(np.int32),
        threshold=np.where(is_inner & ~is_set, split["threshold"], 0.0),
        bin=np.zeros(len(nodes), np.uint8),
        category=category,
        missing_left=np.where(is_inner, split["missing_left"], 0).astype(np.uint8),
        child=child.astype(np.int32),
        value=np.zeros(len(nodes)) if outputs.has_classes else values[:, 0].copy(),
        gain=np.where(is_inner, nodes["improvement"], 0.0),
        rows=nodes["stop"] - nodes["start"],
        weight=weight.copy(),
        lefts=flags[np.flatnonzero(is_set)] if is_set.any() else np.empty((0, 256), np.uint8),
        roots=np.array([0, len(nodes)]),
    )
    return ExactTree(table, nodes["impurity"].copy(), values)


def _bounded(values: Array, nodes: Array) -> Array:
    """Return values clipped to the bounds of monotone columns; for two classes those of the second."""
    lower, upper = nodes["lower"], nodes["upper"]
    if not (np.isfinite(lower) | np.isfinite(upper)).any():
        return values
    bounded = np.clip(values[:, -1], lower, upper)[:, None]
    return bounded if values.shape[1] == 1 else np.hstack([1.0 - bounded, bounded])


def compile_grow() -> None:
    """Compile the kernel that grows trees, without the kernels it calls by address."""
    rows, sums, _, _, scratch = example_inputs()
    numbers, flags = np.zeros(1, np.int64), np.zeros((1, 256), np.uint8)
    compile_for(
        grow, rows, np.zeros(1, NODE), sums[None, :].copy(), numbers, flags, np.zeros(1, PARAMETERS), scratch, _BUDGET
    )


def compile_search(criterion: str, n_outputs: str, n_classes: str) -> None:
    """Compile the kernels that find splits for a criterion, and their callers."""
    outputs = Outputs.one(int(n_classes)) if n_outputs == "1" else Outputs(int(n_outputs))
    scan_address(CRITERIA[criterion], outputs)
    find_split.address()
    open_node.address()


def warmup() -> None:
    """Compile for every kind of criterion."""
    X, y = np.zeros((3, 1)), np.zeros(3)
    for criterion, outputs in (
        ("gini", Outputs.one(2)),
        ("gini", Outputs.one(3)),
        ("squared_error", Outputs()),
        ("absolute_error", Outputs()),
        ("squared_error", Outputs(2)),
    ):
        grower = ExactGrower(X, np.ones(1, bool), lambda: None)
        targets = np.stack([y] * outputs.n_outputs)
        grower.grow(targets, np.array([0.0, 1.0, 1.0]), outputs, ExactParameters(criterion))
