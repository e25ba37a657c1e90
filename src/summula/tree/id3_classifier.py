"""ID3: a classification tree over discrete columns, with a branch for each value.

With n_k the weight of class k among the rows S of a node, the column with the largest information gain is split on:

    H(S)    = -sum_k (n_k / n) log2 (n_k / n),                                                                     (1)
    gain(j) = H(S) - sum_v (n_v / n) H(S_v),          S_v the rows whose column j has the value v.                 (2)

Each value has a branch; a column is used once on a path. A branch without rows is a leaf with the class proportions of
its parent, and so is every unknown value. (Quinlan, Induction of decision trees, 1986.)
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.core.estimator.classifier import ShareClassifier
from summula.core.estimator.parameters import Allowed, integer, none, real
from summula.core.model_files import schema
from summula.tree.columns.binning import BinMap, learn_bins
from summula.tree.columns.categorical_columns import CategoricalColumns
from summula.tree.columns.categories import Categories, array_name, coded_array

__all__ = ["ID3Classifier"]

Array = NDArray[Any]

_MOST_LEVELS = _MISSING = 255  # codes are below this; missing values are equal to it


def _children_come_later(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: every node but the root is the child of one preceding node."""
    inner = np.flatnonzero(model._feature >= 0)
    first = model._first_child[inner]
    width = model._bins.n_bins[model._feature[inner]] + model._asks_missing[inner]
    if (first <= inner).any():
        return "a node comes before its parent"
    order = np.argsort(first, kind="stable")
    ends = np.concatenate([[1], first[order] + width[order]])
    if not np.array_equal(np.append(first[order], sizes["n_nodes"]), ends):
        return "_first_child does not give every node one parent"
    bins = model._bins
    for j in np.unique(model._feature[inner]):
        if not np.array_equal(bins.level_bins[bins.starts[j] : bins.starts[j + 1]], np.arange(bins.n_bins[j])):
            return f"column {j} does not have one level for each of its branches"
    if (model._shares < 0).any() or not np.allclose(model._shares.sum(axis=1), 1.0):
        return "the class proportions of a node do not sum to 1"
    return None


@inherit_docs()
@schema.saved(
    _children_come_later,
    classes_=schema.Labels("n_classes"),
    is_categorical_=schema.Array("bool", "n_features"),
    _bins=schema.Object(BinMap, n_features="n_features"),
    _feature=schema.Array("int64", "n_nodes", low=-1, below="n_features"),
    _first_child=schema.Array("int64", "n_nodes", low=0, below="n_nodes"),
    _asks_missing=schema.Array("uint8", "n_nodes", high=1),
    _shares=schema.Array("float64", "n_nodes", "n_classes", row_major=True),
    _rows=schema.Array("int64", "n_nodes", low=0),
)
class ID3Classifier(CategoricalColumns, ShareClassifier):
    """Classification tree over discrete columns, with a branch for each value (ID3).

    Parameters
    ----------
    max_depth : int or None, default=None
        Maximum number of splits on a path.
    min_samples_split : int, default=2
        Minimum number of rows of a node that is split.
    min_gain : float, default=0
        Minimum information gain of a split, in bits (exclusive).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    References
    ----------
    Quinlan, Induction of decision trees, Machine Learning 1, 1986.

    Examples
    --------
    >>> import pandas as pd
    >>> from summula.tree import ID3Classifier
    >>> weather = pd.DataFrame({"sky": ["sun", "sun", "rain", "rain"], "wind": ["no", "yes", "no", "yes"]})
    >>> print(ID3Classifier().fit(weather, ["play", "play", "play", "stay"]).rules())
    if sky = 'rain':
        if wind = 'no': play (100% of 1 row)
        if wind = 'yes': stay (100% of 1 row)
    if sky = 'sun': play (100% of 2 rows)
    """

    _accepts_sparse = False
    _allows_nan = True
    _fewest_classes = 1
    _streaming_alternative = "HistGradientBoostingClassifier"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "max_depth": (integer(1), none),
        "min_samples_split": (integer(2),),
        "min_gain": (real(0.0),),
    }
    categorical_features = "from_dtype"  # text is discrete, and so is every other accepted column

    def __init__(self, *, max_depth: int | None = None, min_samples_split: int = 2, min_gain: float = 0.0) -> None:
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_gain = min_gain

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)
            Text or integers, in frames or arrays, with at most 255 distinct values per column; missing values count as
            a value.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights.

        Returns
        -------
        self
        """
        from summula.tree.columns.rows import survey

        with self._fitting(X, y, sample_weight) as run:
            found = survey(run, np.ones(run.source.n_features, bool), 0)
            if any(np.isinf(values).any() for values, _ in found.categories.values()):
                run.raise_if_not_finite()
            _check_discrete(run.source, found.categories)
            self._bins = learn_bins(found.rows[:0], None, found.categories, _MOST_LEVELS)
            rows = run.source.chunk(0, run.source.n_rows).X
            codes = np.empty(rows.shape, np.uint8)
            self._bins.write(rows, codes)
            weight = np.ones(len(codes)) if found.weight is None else found.weight
            self._grow(codes[weight > 0], found.y[weight > 0].astype(np.intp), weight[weight > 0])
        return self

    def _open_factors(self, X: Any, others: list[str], reset: bool) -> tuple[Any, Categories]:
        if reset and isinstance(X, np.ndarray | list | tuple) and np.ndim(X[:1]) == 2:  # text of any column
            listed = [array_name(j) for j in range(len(X[0]))] if len(X) else []
            categories = Categories(type(self).__name__, None, listed)
            return coded_array(X, categories), categories
        return super()._open_factors(X, others, reset)

    def _close_factors(self, X: Any, source: Source, factors: Any, reset: bool) -> None:
        super()._close_factors(X, source, factors, reset)
        if reset:
            self.is_categorical_ = np.ones(source.n_features, bool)

    def _grow(self, codes: Array, y: Array, weight: Array) -> None:
        """Grow the tree, level by level."""
        k = len(self.classes_)
        features, firsts, asks_missing, shares, counts = [], [], [], [], []
        deepest = codes.shape[1] if self.max_depth is None else self.max_depth
        open_nodes = [(np.arange(len(y)), frozenset(range(codes.shape[1])), 0, np.zeros(k))]
        for rows, allowed, depth, parent in open_nodes:  # nodes are appended while there are some
            total = np.bincount(y[rows], weight[rows], k)
            share = total / total.sum() if len(rows) else parent
            best = -1
            if len(rows) >= self.min_samples_split and (total > 0).sum() > 1 and depth < deepest:
                best = self._best_feature(codes[rows], y[rows], weight[rows], sorted(allowed))
            features.append(best)
            firsts.append(len(open_nodes) if best >= 0 else 0)
            asks_missing.append(best >= 0 and bool((codes[rows, best] == _MISSING).any()))
            if best >= 0:
                # A branch for each value, in order; missing values, if any, have the last one.
                values = [*range(int(self._bins.n_bins[best])), *([_MISSING] if asks_missing[-1] else [])]
                for value in values:
                    side = rows[codes[rows, best] == value]
                    open_nodes.append((side, allowed - {best}, depth + 1, share))
            shares.append(share)
            counts.append(len(rows))
        self._feature, self._first_child = np.array(features, np.int64), np.array(firsts, np.int64)
        self._asks_missing = np.array(asks_missing, np.uint8)
        self._shares, self._rows = np.array(shares), np.array(counts, np.int64)

    def _best_feature(self, codes: Array, y: Array, weight: Array, allowed: list[int]) -> int:
        """Return the column of largest gain (2), the first in case of ties; -1 if none exceeds the minimum."""
        k = len(self.classes_)
        best, column = float(self.min_gain) + 1e-12, -1
        for j in allowed:
            table = np.bincount(codes[:, j] * np.intp(k) + y, weight, 256 * k).reshape(256, k)
            gain = _entropy(table.sum(axis=0)) - sum(map(_entropy, table[table.any(axis=1)]))
            if gain / weight.sum() > best:
                best, column = gain / weight.sum(), j
        return column

    # ------------------------------------------------------------------------------------------------------- predicting

    def _score_function(self) -> Any:
        nodes = (self._feature, self._first_child, self._asks_missing, self._shares)
        return functools.partial(_shares_of, self._bins, *nodes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def rules(self) -> str:
        """Return the tree as text: one line per value and leaf."""
        check_is_fitted(self)
        lines: list[str] = []

        def add(node: int, depth: int, condition: str) -> None:
            text = f"{'    ' * (depth - 1)}if {condition}" if depth else ""
            j, share, n = int(self._feature[node]), self._shares[node], int(self._rows[node])
            if j < 0:
                best = int(share.argmax())
                outcome = f"{self.classes_[best]} ({share[best]:.0%} of {n} row{'' if n == 1 else 's'})"
                outcome = outcome if n else f"{self.classes_[best]} (no rows)"
                lines.append(f"{text}: {outcome}" if text else outcome)
                return
            if text:
                lines.append(f"{text}:")
            for value, child in enumerate(self._branches(node)):
                add(child, depth + 1, self._condition(j, value))

        add(0, 0, "")
        return "\n".join(lines)

    def plot(self, ax: Any = None, *, max_depth: int | None = None) -> Any:
        """Plot the tree: the value of the column that the parent asks for, entropy, rows per class, and class.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_depth : int, optional
            Number of levels drawn below the root; by default as many as are readable.

        Returns
        -------
        matplotlib Axes
        """
        from summula.tree.prediction.drawing import Picture, draw, shade

        check_is_fitted(self)
        children = [self._branches(node) for node in range(len(self._feature))]
        depth, conditions = np.zeros(len(children), np.int64), [""] * len(children)
        for node, below in enumerate(children):  # children follow their parents
            for value, child in enumerate(below):
                depth[child], conditions[child] = depth[node] + 1, self._condition(int(self._feature[node]), value)
        label = functools.partial(self._label, conditions)
        return draw(Picture(children, depth, label, lambda node: shade(self._shares[node])), ax, max_depth)

    def _label(self, conditions: list[str], node: int, is_end: bool) -> str:
        share, n = self._shares[node], int(self._rows[node])
        more = ", ..." if len(share) > 4 else ""
        lines = [conditions[node]] if conditions[node] else []
        lines.append(f"entropy {_entropy(share):.3g}, n = {n}")
        lines.append("value [" + ", ".join(f"{count:.6g}" for count in share[:4] * n) + more + "]")
        lines.append(f"class {self.classes_[int(share.argmax())]}")
        return "\n".join([*lines, "..."] if is_end and self._feature[node] >= 0 else lines)

    def _branches(self, node: int) -> range:
        """Return the children of a node, one for each value of its column, the last for missing values."""
        first, j = int(self._first_child[node]), int(self._feature[node])
        return range(first, first + int(self._bins.n_bins[j]) + int(self._asks_missing[node]) if j >= 0 else first)

    def _condition(self, j: int, value: int) -> str:
        """Return the condition of a branch of column j; that after all values is for missing ones."""
        names, bins = getattr(self, "feature_names_in_", None), self._bins
        name = f"x[{j}]" if names is None else str(names[j])
        if value >= bins.n_bins[j]:
            return f"{name} is missing"
        here = slice(bins.starts[j], bins.starts[j + 1])
        level = bins.levels[here][bins.level_bins[here] == value][0]
        return f"{name} = {self._level_text(j, level)}"


def _entropy(weights: Array) -> float:
    """Return the sum of the weights times (1)."""
    total = weights.sum()
    return float((special.xlogy(total, total) - special.xlogy(weights, weights).sum()) / np.log(2.0))


def _check_discrete(source: Source, categories: dict[int, tuple[Array, Array]]) -> None:
    """Raise for a column of continuous numbers, or with too many values."""
    for j, (values, _) in sorted(categories.items()):
        is_whole = np.isfinite(values).all() and (values == np.rint(values)).all()
        if is_whole and len(values) <= _MOST_LEVELS:
            continue
        problem = f"has {len(values)} distinct values" if is_whole else "contains non-integer numbers"
        raise DataError(
            f"{source.column(j)} {problem}; ID3Classifier needs discrete values, at most {_MOST_LEVELS} per column: "
            "discretise it with KBinsDiscretizer(encode='ordinal'), or use DecisionTreeClassifier."
        )


def _shares_of(bins: BinMap, feature: Array, first: Array, asks_missing: Array, shares: Array, chunk: Chunk) -> Array:
    """Return the class proportions in the nodes that the rows of a chunk reach."""
    X = chunk.X
    codes = np.empty(X.shape, np.uint8)
    bins.write(X, codes)
    at, going = np.zeros(len(codes), np.int64), np.arange(len(codes))
    while len(going):
        going = going[feature[at[going]] >= 0]
        column = feature[at[going]]
        value, width = codes[going, column].astype(np.int64), bins.n_bins[column]
        is_missing = value >= width
        branch = np.where(is_missing, width, value)
        stays = is_missing & (asks_missing[at[going]] == 0)  # without a branch
        at[going] = np.where(stays, at[going], first[at[going]] + branch)
        going = going[~stays]
    return np.asarray(shares[at])
