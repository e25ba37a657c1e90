"""Feature importances by column name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.errors import ParameterError

__all__ = ["NamedImportances", "by_name"]


def by_name(model: Any, values: NDArray[np.float64]) -> dict[str, float]:
    """Return one value per column of a fitted model by column name, in decreasing order."""
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    return {str(names[j]): float(values[j]) for j in np.argsort(-values, kind="stable")}


class NamedImportances:
    """Base class of tree models with `feature_importances_`."""

    def importances(self) -> dict[str, float]:
        """Return `feature_importances_` by column name, in decreasing order.

        Returns
        -------
        dict of str to float
            Normalised importances; columns without names are called x0, x1, ...
        """
        check_is_fitted(self)
        values = getattr(self, "feature_importances_", None)
        if values is None:
            raise ParameterError(
                f"{type(self).__name__} has importances only if its learners are trees; use scikit-learn's "
                "permutation_importance for others."
            )
        return by_name(self, np.asarray(values))
