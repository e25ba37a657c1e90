"""Targets of decision trees and forests: one or several, numeric or with classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, warn
from summula.core.estimator.input.validation import check_fitted
from summula.core.estimator.multi_output import MultiOutputClassifier
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.rows import RowwiseEstimator
from summula.core.estimator.run import Run
from summula.tree.growing.outputs import Outputs

__all__ = ["TreeClassifier", "TreeEstimator", "TreeRegressor", "regression_criterion", "shares_are_sound"]

Array = NDArray[Any]


class TreeEstimator(RowwiseEstimator):
    """Base class of tree models with one or several targets."""

    criterion: str

    @property
    def _leaf_values(self) -> Array:
        """Values of the leaves, or of all nodes; the last axis is as described by `_outputs`."""
        raise NotImplementedError

    @property
    def _outputs(self) -> Outputs:
        """Return the targets of the fitted model."""
        return Outputs(self._leaf_values.shape[1])

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        check_fitted(self)
        return self._outputs.n_outputs

    def _outputs_of(self, run: Run) -> Outputs:
        """Return the targets of a fit."""
        return Outputs(run.source.n_targets)

    def _check_targets(self, y: Array) -> None:
        """Raise an error for targets that are invalid for the criterion; y has shape (n_outputs, n)."""

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        """Return the sample weights, including those of classes."""
        return weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TreeClassifier(TreeEstimator, MultiOutputClassifier):
    """Base class of trees and forests for classification."""

    _fewest_classes = 1

    @property
    def _outputs(self) -> Outputs:
        classes = self._classes_of_outputs
        return Outputs(len(classes), tuple(len(of_target) for of_target in classes))

    def _outputs_of(self, run: Run) -> Outputs:
        return self._outputs


class TreeRegressor(TreeEstimator, Regressor):
    """Base class of trees and forests for regression."""

    def _n_outputs(self) -> int:
        return self.n_outputs_

    def _check_targets(self, y: Array) -> None:
        cure = "use criterion='squared_error'."
        if self.criterion == "poisson" and (y < 0).any():
            raise DataError(f"Some value(s) of y are negative which is not allowed for Poisson regression; {cure}")
        if self.criterion == "poisson" and not y.any():
            raise DataError(
                f"Sum of y is not strictly positive which is necessary for Poisson regression: no row of y is; {cure}"
            )


def regression_criterion(given: str) -> str:
    """Return the criterion of a regression tree, with scikit-learn's deprecated "friedman_mse" replaced."""
    if not (isinstance(given, str) and given == "friedman_mse"):
        return given
    warn(
        "criterion='friedman_mse' is deprecated: it chooses the splits of 'squared_error', which is used instead; "
        "give criterion='squared_error'.",
        FutureWarning,
    )
    return "squared_error"


def shares_are_sound(model: TreeClassifier, shares: Array) -> str | None:
    """Check a saved model: there is a proportion of each class, and those of a target sum to 1."""
    outputs = model._outputs
    if shares.shape[1] != outputs.n_values:
        return f"leaves have {shares.shape[1]} values for {outputs.n_values} classes"
    if (shares < 0).any() or not all(np.allclose(part.sum(axis=1), 1.0) for part in outputs.split(shares)):
        return "the class proportions of a node do not sum to 1"
    return None
