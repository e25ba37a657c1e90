"""Limits of decision trees and forests: parameters, and their conversion to numbers of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, array_like, integer, mapping, none, one_of, random_state, real
from summula.tree.exact.grower import ExactParameters
from summula.tree.growing.outputs import Outputs

__all__ = [
    "LIMITS",
    "check_monotone",
    "number_of_features",
    "tree_limits",
]

_share = Allowed(
    lambda v: isinstance(v, float | np.floating) and bool(0.0 < v <= 1.0), "a float in the range (0.0, 1.0]"
)
_half = Allowed(lambda v: isinstance(v, float | np.floating) and bool(0.0 < v < 1.0), "a float in the range (0.0, 1.0)")

LIMITS: dict[str, tuple[Allowed, ...]] = {
    "max_depth": (integer(1), none),
    "min_samples_split": (integer(2), _share),
    "min_samples_leaf": (integer(1), _half),
    "min_weight_fraction_leaf": (real(0.0, 0.5),),
    "max_features": (integer(1), _share, one_of("sqrt", "log2"), none),
    "random_state": (random_state,),
    "max_leaf_nodes": (integer(2), none),
    "min_impurity_decrease": (real(0.0),),
    "ccp_alpha": (real(0.0),),
    "monotonic_cst": (array_like, mapping, none),
    "categorical_features": (one_of("from_dtype"), array_like, none),
    "max_time": (none, real(0.0)),
}


def number_of_features(given: Any, d: int) -> int:
    """Return the number of columns tried at each node."""
    if given is None:
        return d
    if isinstance(given, str):
        return max(1, int(np.sqrt(d) if given == "sqrt" else np.log2(d)))
    if isinstance(given, int | np.integer):
        if given > d:
            raise ParameterError(f"max_features={given} is larger than the number of columns, {d}; pass at most {d}.")
        return int(given)
    return max(1, int(given * d))


def tree_limits(model: Any, n: int, d: int, weight: float, key: int, *, random_threshold: bool) -> ExactParameters:
    """Return the limits of a tree for n rows, d columns and this total weight, from the parameters of a model."""

    def rows(value: Any, least: int) -> int:
        return int(value) if isinstance(value, int | np.integer) else max(int(np.ceil(value * n)), least)

    leaf = rows(model.min_samples_leaf, 1)
    return ExactParameters(
        criterion=model.criterion,
        max_depth=model.max_depth,
        max_leaf_nodes=model.max_leaf_nodes,
        min_samples_split=max(rows(model.min_samples_split, 2), 2 * leaf),
        min_samples_leaf=leaf,
        min_weight_leaf=float(model.min_weight_fraction_leaf) * weight,
        min_impurity_decrease=float(model.min_impurity_decrease),
        max_features=number_of_features(model.max_features, d),
        random_threshold=random_threshold,
        key=key,
    )


def check_monotone(monotone: Any, outputs: Outputs) -> None:
    """Raise for monotonic constraints on targets without an order."""
    if not monotone.any():
        return
    if outputs.n_outputs > 1:
        raise ParameterError("Monotonicity constraints are not supported with multiple outputs; omit monotonic_cst.")
    if sum(outputs.n_classes) > 2:
        raise ParameterError(
            "Monotonicity constraints are not supported with multiclass classification; omit monotonic_cst."
        )
