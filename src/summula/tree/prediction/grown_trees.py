"""Public methods of tree models: leaves of rows, and contributions of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.rows import RowFunction, RowwiseEstimator
from summula.tree.columns.binning import BinMap
from summula.tree.prediction.predictor import Nodes

if TYPE_CHECKING:
    from summula.tree.prediction.explaining import Explanation

__all__ = ["ExplainedTrees", "GrownTrees", "ScoreTrees"]

Array = NDArray[Any]


class GrownTrees(RowwiseEstimator):
    """Base class of models of one or several trees."""

    def _leaf_function(self) -> RowFunction:
        """Return a picklable function of a chunk: the number of the leaf of each row, in each tree."""
        raise NotImplementedError

    def apply(self, X: Any) -> Any:
        """Return the leaf that each row reaches.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_trees) for several trees, of node numbers within the tree;
        batches for a scan
        """
        check_fitted(self)
        return self._by_row(X, self._leaf_function())


class ScoreTrees(NamedTuple):
    """Trees whose values sum to scores: tree t contributes to score t modulo the number of scores, from `start` on."""

    nodes: Nodes
    bins: BinMap
    start: Array


class ExplainedTrees(GrownTrees):
    """Base class of models whose scores are sums over trees."""

    def _score_trees(self) -> ScoreTrees:
        """Return the trees."""
        raise NotImplementedError

    def explain(self, X: Any) -> Explanation:
        """Compute the contribution of each column to the score of each row (exact Shapley values).

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)

        Returns
        -------
        Explanation
            `values` and `base_values` sum to the raw score of boosted trees, and to the prediction of a single tree
            (for classifiers, the probability of each class, concatenated for several targets). `plot()` plots them.
        """
        from summula.tree.prediction.explaining import explanation

        source = self._in_memory(X, "explain")
        return explanation(self, source, self._score_trees())
