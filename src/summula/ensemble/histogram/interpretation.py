"""Contributions of columns to boosted trees: partial dependence, importances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_choice
from summula.core.estimator.parameters import integer
from summula.tree.columns.binning import BinMap
from summula.tree.named_importances import by_name
from summula.tree.prediction.grown_trees import ExplainedTrees, ScoreTrees
from summula.tree.prediction.predictor import Nodes

if TYPE_CHECKING:
    from summula.tree.prediction.explaining import PartialDependence

__all__ = ["InterpretableTrees"]

Array = NDArray[Any]


class InterpretableTrees(ExplainedTrees):
    """Base class of models whose scores are sums over binned trees."""

    _nodes: Nodes
    _bins: BinMap
    _start: Array

    def _score_trees(self) -> ScoreTrees:
        return ScoreTrees(self._nodes, self._bins, self._start)

    def partial_dependence(self, X: Any, column: int | str, *, points: int = 50, output: int = 0) -> PartialDependence:
        """Compute raw scores as functions of one numeric column, with the others unchanged.

        Parameters
        ----------
        X : {array-like, frame} of shape (n_samples, n_features)
        column : int or str
            Index or name of the column.
        points : int, default=50
            Maximum number of values of the column, which are its quantiles in X.
        output : int, default=0
            Index of the class, if there are several scores.

        Returns
        -------
        PartialDependence
            Has `grid`, `average` and `individual`; `plot()` plots them.
        """
        from summula.tree.prediction.explaining import PartialDependence, scores_on_grid

        source = self._in_memory(X, "partial_dependence")
        names = source.names
        if isinstance(column, str) and (names is None or column not in names):
            raise DataError(f"There is no column {column!r}; pass the index or name of a column.")
        for name, value in (("column", column), ("points", points), ("output", output)):
            kind = integer(0 if name == "output" else 1 if name == "points" else None)
            if not (name == "column" and isinstance(value, str)) and not kind.accepts(value):
                raise ParameterError(f"{name} of partial_dependence must be {kind.words}; got {value!r}.")
        if output >= len(self._start):
            raise ParameterError(f"output={output} is out of range: there are {len(self._start)} scores.")
        j = list(names or ()).index(column) if isinstance(column, str) else int(column)
        if not 0 <= j < source.n_features:
            raise DataError(f"Column {j} is out of range: there are {source.n_features} columns, numbered from 0.")
        if self._bins.categorical[j]:
            raise DataError(f"{source.column(j)} is categorical; partial_dependence needs a numeric column.")
        rows = np.array(self._bins.with_bins(source.chunk(0, source.n_rows).X))
        finite = rows[np.isfinite(rows[:, j]), j]
        if not len(finite):
            raise DataError(f"{source.column(j)} has no finite values in X.")
        grid = np.unique(np.quantile(finite, np.linspace(0.0, 1.0, points)))
        individual = scores_on_grid(self._nodes, self._start, rows, j, grid, output)
        return PartialDependence(grid, individual, f"column {j}" if names is None else names[j])

    def importances(self, kind: str = "gain") -> dict[str, float]:
        """Compute the importance of each column in the trees, by column name, in decreasing order.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            Total gain, or number, of the splits on a column. (For the importance of columns for predictions use
            scikit-learn's `permutation_importance`.)

        Returns
        -------
        dict of str to float
            Columns without names are called x0, x1, ...; `feature_importances_` has normalised values in column order.
        """
        check_is_fitted(self)
        if not is_choice(kind, ("gain", "split")):
            raise ParameterError(f"kind must be 'gain' or 'split', got {kind!r}.")
        values = self._nodes.importances(self.n_features_in_, by_gain=kind == "gain")
        return by_name(self, values)

    @property
    def feature_importances_(self) -> Array:
        """Total gain of the splits on each column, normalised to sum 1."""
        gains = self._nodes.importances(self.n_features_in_, by_gain=True)
        return gains / gains.sum() if gains.any() else gains
