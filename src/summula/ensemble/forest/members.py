"""The trees of a forest as decision trees of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.estimator.rows import RowwiseEstimator
from summula.ensemble.forest.bootstrap import Bootstrap
from summula.tree.binned.packed import PackedTrees
from summula.tree.columns.binning import BinMap
from summula.tree.growing.limits import number_of_features

__all__ = ["ForestMembers"]

Array = NDArray[Any]

_MOST_ROWS = 2**33  # maximum rows of all trees together in `estimators_samples_`


class ForestMembers(RowwiseEstimator):
    """Views of single trees, created on access; a forest is a sequence of them."""

    _bins: BinMap
    _trees: PackedTrees

    def _view_of(self, tree: int) -> Any:
        """Return one of the trees as an estimator."""
        raise NotImplementedError

    def _new_tree(self) -> Any:
        """Return a decision tree with the parameters of the forest, not fitted."""
        cls = self._tree_class
        known = cls().get_params().keys() - {"class_weight", "max_time", "random_state"}
        view = cls(**{name: value for name, value in self.get_params(deep=False).items() if name in known})
        return view.set_params(splitter="random" if self._random_threshold else "best")

    def _as_tree(self, tree: int, **attributes: Any) -> Any:
        view = self._new_tree()
        one = self._trees.only(tree)
        view._nodes, view._values, view._impurity = one.nodes(self._bins, self.criterion)
        view._bins, view.max_features_ = self._bins, number_of_features(self.max_features, self.n_features_in_)
        for name in ("n_features_in_", "category_levels_", "is_categorical_"):
            setattr(view, name, getattr(self, name))
        vars(view).update(attributes)
        return view

    @property
    def estimator_(self) -> Any:
        """A decision tree with the parameters of the forest, not fitted."""
        check_is_fitted(self, "_trees")
        return self._new_tree()

    @property
    def estimators_(self) -> list[Any]:
        """The trees as decision trees, created on access; changing them does not change the forest."""
        check_is_fitted(self, "_trees")
        return [self._view_of(tree) for tree in range(self._trees.n_trees)]

    def __len__(self) -> int:
        """Return the number of trees."""
        check_is_fitted(self, "_trees")
        return self._trees.n_trees

    def __getitem__(self, index: int) -> Any:
        """Return one of the trees as a decision tree."""
        return self._view_of(range(len(self))[index])

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the trees."""
        return (self._view_of(tree) for tree in range(len(self)))

    @property
    def estimators_samples_(self) -> list[Array]:
        """Rows drawn for each tree; not available if rows were drawn by their weights."""
        check_is_fitted(self, "_trees")
        if self.bootstrap and self._draws_by_weight:
            raise AttributeError("The rows of the trees were drawn by sample weights, which the forest does not store.")
        size = self._sample_size(self._n_rows, None)
        if (size or self._n_rows) * self._trees.n_trees > _MOST_ROWS:
            raise AttributeError(
                f"The rows drawn for {self._trees.n_trees} trees, {size or self._n_rows} each, do not fit in memory."
            )
        bootstrap = Bootstrap(self._n_rows, size, None, self._seed)
        kind = np.int32 if self._n_rows < 2**31 else np.int64
        return [bootstrap.sample(tree).draws().astype(kind) for tree in range(self._trees.n_trees)]
