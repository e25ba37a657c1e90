"""Base class of decision trees: reading, growing, pruning, and displaying a tree."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.engine.engine import check_watch
from summula.core.engine.random import draw_seed, stream_key
from summula.core.estimator.parameters import Allowed, one_of
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.tree.columns.binning import BinMap, learn_bins
from summula.tree.columns.categorical_columns import CategoricalColumns
from summula.tree.columns.constraints import monotone_signs
from summula.tree.columns.rows import check_squares, survey
from summula.tree.exact.grower import ExactGrower, ExactParameters, ExactTree
from summula.tree.exact.pruning import PruningPath, prune, pruning_path
from summula.tree.growing.limits import LIMITS, check_monotone, number_of_features, tree_limits
from summula.tree.named_importances import NamedImportances
from summula.tree.prediction.arrays import TreeArrays, paths_to
from summula.tree.prediction.grown_trees import ExplainedTrees, ScoreTrees
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import COMPILE_FIND_LEAVES, find_leaves
from summula.tree.targets import TreeEstimator

__all__ = ["SHARED_PARAMETERS", "DecisionTree", "leaf_values"]

Array = NDArray[Any]

SHARED_PARAMETERS: dict[str, tuple[Allowed, ...]] = {"splitter": (one_of("best", "random"),), **LIMITS}


def leaf_values(nodes: Nodes, bins: BinMap, values: Array, chunk: Chunk) -> Array:
    """Return the values of the leaves that the rows of a chunk reach, shape (rows, values per leaf)."""
    return np.asarray(values[leaf_numbers(nodes, bins, chunk)])


def leaf_numbers(nodes: Nodes, bins: BinMap, chunk: Chunk) -> Array:
    """Return the number of the leaf that each row of a chunk reaches."""
    X = bins.with_bins(chunk.dense(chunk.dtype))
    out = np.empty((len(X), 1), np.int64)
    find_leaves(X, nodes, 0, 1, out)
    return out[:, 0]


def _tree_fits_the_columns(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: there is one tree, and only categorical columns are split by category."""
    if sizes["n_trees"] != 1:
        return f"there are {sizes['n_trees']} trees instead of one"
    split_on_sets = model._nodes.column[model._nodes.category >= 0]
    if not model._bins.categorical[split_on_sets].all():
        return "a node splits a numeric column by category"
    return None


@inherit_docs()
@schema.state(
    _tree_fits_the_columns,
    is_categorical_=schema.Array("bool", "n_features") | None,
    max_features_=schema.Integer(1),
    _bins=schema.Object(BinMap, n_features="n_features"),
    _nodes=schema.Object(Nodes, n_features="n_features", n_trees="n_trees", n_nodes="n_nodes"),
    _impurity=schema.Array("float64", "n_nodes"),
    _values=schema.Array("float64", "n_nodes", "n_values", row_major=True),
)
class DecisionTree(NamedImportances, CategoricalColumns, ExplainedTrees, TreeEstimator):
    """Base class of trees with exact thresholds, chosen among all values.

    Parameters
    ----------
    splitter : {"best", "random"}, default="best"
        Whether to use the best threshold of each column, or one drawn between its smallest and largest value.
    max_depth : int or None, default=None
        Maximum number of splits on a path.
    min_samples_split : int or float, default=2
        Minimum number of rows of a node that is split, or their fraction.
    min_samples_leaf : int or float, default=1
        Minimum number of rows of a leaf, or their fraction.
    min_weight_fraction_leaf : float, default=0
        Minimum fraction of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number of columns tried at each node, drawn at random, or their fraction; None tries all.
    random_state : int, Generator, RandomState or None, default=None
        Seed for drawing columns and thresholds.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves; the node of largest improvement is split first.
    min_impurity_decrease : float, default=0
        Minimum decrease of impurity by a split, weighted by the fraction of rows.
    ccp_alpha : float, default=0
        Penalty per leaf; the tree is pruned to the optimal subtree.
    max_time : float, optional
        Time limit in seconds, after which an error is raised.

    Attributes
    ----------
    tree_ : TreeArrays
        The nodes, with the attribute names of scikit-learn's `tree_`.
    max_features_ : int
        Number of columns tried at each node.
    n_outputs_ : int
        Number of targets.
    feature_importances_ : ndarray of shape (n_features,)
        Normalised decrease of impurity by the splits on each column.
    """

    _allows_nan = True
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = SHARED_PARAMETERS

    max_features_: int
    _bins: BinMap
    _nodes: Nodes
    _impurity: Array
    _values: Array

    # -------------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Training data, stored as dense columns; NaN is a missing value, infinities are the extreme values of their
            column.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or name of a column of X
            Class labels of any type, or targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; rows of weight 0 are ignored.
        """
        with self._fitting(X, y, sample_weight) as run:
            tree = self._grow(run)
            if self.ccp_alpha > 0.0:
                tree = prune(tree, float(self.ccp_alpha))
            self._nodes, self._impurity, self._values = tree
        return self

    def _grow(self, run: Run) -> ExactTree:
        d = run.source.n_features
        categorical = np.zeros(d, bool) if self.is_categorical_ is None else self.is_categorical_
        outputs = self._outputs_of(run)
        monotone = monotone_signs(self.monotonic_cst, d, run.source.names, categorical, type(self).__name__)
        check_monotone(monotone, outputs)
        found = survey(run, categorical, 0)
        y = found.y.reshape(outputs.n_outputs, -1)
        self._check_targets(y)
        weight = self._row_weights(y, found.weight)
        check_squares(y, weight)
        self._bins = learn_bins(found.rows[:0], None, found.categories, 255)
        rows = run.source.chunk(0, run.source.n_rows).dense()
        parameters = self._exact_parameters(len(rows), d, len(rows) if weight is None else float(weight.sum()))
        grower = ExactGrower(self._bins.with_bins(rows), categorical, check_watch, monotone, COMPILE_FIND_LEAVES)
        return grower.grow(y, weight, outputs, parameters)

    def _exact_parameters(self, n: int, d: int, weight: float) -> ExactParameters:
        """Return the limits as numbers of rows and columns."""
        key = stream_key(draw_seed(self.random_state), (0,))
        found = tree_limits(self, n, d, weight, key, random_threshold=self.splitter == "random")
        self.max_features_ = number_of_features(self.max_features, d)
        return found

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> PruningPath:
        """Compute the penalties per leaf at which the best subtree of the unpruned tree changes.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        PruningPath
            Increasing `ccp_alphas`, starting at 0, and `impurities`, the weighted impurity of the leaves for each.
        """
        from sklearn.base import clone

        model = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        return pruning_path(model._tree)

    # ------------------------------------------------------------------------------------------------------ the tree

    @property
    def _tree(self) -> ExactTree:
        return ExactTree(self._nodes, self._impurity, self._values)

    @property
    def tree_(self) -> TreeArrays:
        """The nodes, with the attribute names of scikit-learn's `tree_`."""
        check_is_fitted(self)
        return TreeArrays.of(self._nodes, self._impurity, self._values, self.n_features_in_, self._outputs)

    @property
    def _leaf_values(self) -> Array:
        return self._values

    def _score_function(self) -> Any:
        return functools.partial(leaf_values, self._nodes, self._bins, self._values)

    def _leaf_function(self) -> RowFunction:
        return functools.partial(leaf_numbers, self._nodes, self._bins)

    def _score_trees(self) -> ScoreTrees:
        nodes = Nodes.joined([self._nodes._replace(value=np.ascontiguousarray(column)) for column in self._values.T])
        return ScoreTrees(nodes, self._bins, np.zeros(self._values.shape[1]))

    def get_depth(self) -> int:
        """Return the length of the longest path from the root to a leaf."""
        check_is_fitted(self)
        return int(self._depths().max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return int((self._nodes.column < 0).sum())

    def _depths(self) -> Array:
        depth, nodes = np.zeros(len(self._impurity), np.int64), self._nodes
        for node in np.flatnonzero(nodes.column >= 0):  # parents come before their children
            depth[nodes.child[node] : nodes.child[node] + 2] = depth[node] + 1
        return depth

    @property
    def feature_importances_(self) -> Array:
        """Normalised decrease of impurity by the splits on each column.

        It favours columns with many values, unlike scikit-learn's `permutation_importance` on held-out rows.
        """
        check_is_fitted(self)
        gains = self._nodes.importances(self.n_features_in_, by_gain=True)
        return gains / gains.sum() if gains.sum() > 0 else gains

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row passes through.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)

        Returns
        -------
        sparse matrix of shape (n_samples, n_nodes), 1 for the nodes on the path
        """
        return paths_to(np.asarray(self.apply(X)), self._nodes)

    def rules(self, *, decimals: int = 4) -> str:
        """Return the tree as text: one line per condition and leaf.

        Parameters
        ----------
        decimals : int, default=4
            Significant digits of thresholds and values.
        """
        from summula.tree.prediction.showing import rules

        check_is_fitted(self)
        return rules(self, decimals)

    def plot(self, ax: Any = None, *, max_depth: int | None = None) -> Any:
        """Plot the tree: condition, impurity, rows and value of each node.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_depth : int, optional
            Number of levels drawn below the root; by default as many as are readable, with at most 12 nodes side by
            side.

        Returns
        -------
        matplotlib Axes
        """
        from summula.tree.prediction.showing import plot

        check_is_fitted(self)
        return plot(self, ax, max_depth)
