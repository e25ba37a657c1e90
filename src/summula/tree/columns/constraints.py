"""Constraints on columns: categories, monotonicity, interactions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError

__all__ = ["categorical_mask", "interaction_groups", "monotone_signs"]

Array = NDArray[Any]


def categorical_mask(given: Any, d: int, names: Sequence[str] | None, found: Sequence[str]) -> Array:
    """Return the mask of categorical columns.

    given : the parameter `categorical_features`.
    found : the columns that are categorical in a frame, or contain text.
    """
    mask = np.zeros(d, bool)
    if given is None:
        return mask
    if isinstance(given, str):
        mask[:] = [name in found for name in names] if names is not None else False
        return mask
    chosen = np.asarray(given)
    if chosen.size == 0:
        return mask
    kinds = {type(item).__name__ for item in np.asarray(given, dtype=object).ravel()}
    if chosen.dtype.kind not in "iub" and not (chosen.dtype.kind in "UO" and kinds <= {"str", "str_"}):
        raise ParameterError(
            "categorical_features must be an array-like of bool, int or str, got: "
            f"{', '.join(sorted(kinds)) if chosen.dtype.kind == 'O' else chosen.dtype.name}."
        )
    if chosen.dtype.kind in "UO":
        mask[_places_of(chosen.tolist(), names)] = True
    elif chosen.dtype.kind == "b":
        if chosen.shape != (d,):
            raise ParameterError(
                f"categorical_features set as a boolean mask must have shape (n_features,), got: {chosen.shape}; "
                f"pass one entry for each of the {d} columns."
            )
        mask[:] = chosen
    else:
        if chosen.max() >= d or chosen.min() < 0:
            raise ParameterError(
                "categorical_features set as integer indices must be in [0, n_features - 1]; "
                f"got {int(chosen.min())} to {int(chosen.max())} with {d} features, which are counted from 0."
            )
        mask[chosen] = True
    return mask


def _places_of(chosen: list[str], names: Sequence[str] | None) -> list[int]:
    """Return the numbers of columns that `categorical_features` names."""
    if names is None:
        raise ParameterError(
            "categorical_features should be passed as an array of integers or as a boolean mask when the model is "
            "fitted on data without feature names."
        )
    for name in chosen:
        if name not in names:
            there = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise ParameterError(
                f"The columns are {there}, and categorical_features has an item value {name!r} which is not a valid "
                "feature name of the training data."
            )
    return [list(names).index(name) for name in chosen]


def _is_sign(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_) and value in (-1, 0, 1)


def monotone_signs(given: Any, d: int, names: Sequence[str] | None, categorical: Array, owner: str) -> Array:
    """Return 1, -1 or 0 for each column."""
    signs = np.zeros(d, np.int64)
    if isinstance(given, dict):
        if names is None:
            raise ParameterError(
                f"{owner} was not fitted on data with feature names; pass monotonic_cst as an integer array instead."
            )
        strange = sorted(set(given) - set(names), key=str)
        if strange:
            raise ParameterError(f"monotonic_cst contains {len(strange)} unexpected feature names: {strange[:5]}.")
        for name, sign in given.items():
            if not _is_sign(sign):
                raise ParameterError(f"monotonic_cst[{name!r}] must be either -1, 0 or 1. Got {sign!r}.")
            signs[list(names).index(name)] = sign
    elif given is not None:
        entries = np.asarray(given, object)
        if others := [entry for entry in entries.ravel().tolist() if not _is_sign(entry)]:
            raise ParameterError(
                f"monotonic_cst must be an array-like of -1, 0 or 1, not of {others[:5]}: 1 for an increasing "
                "constraint on a column, -1 for a decreasing one, 0 for none."
            )
        if entries.shape != (d,):
            raise ParameterError(f"monotonic_cst has shape {entries.shape} but the input data X has {d} features.")
        signs[:] = given
    if (signs[categorical] != 0).any():
        raise ParameterError("Categorical features cannot have monotonic constraints: their levels have no order.")
    return signs


def interaction_groups(given: Any, d: int) -> tuple[frozenset[int], ...] | None:
    """Return the groups of columns that may occur together on a path from root to leaf; None for no constraints."""
    if given is None:
        return None
    if isinstance(given, str):
        given = combinations(range(d), 2) if given == "pairwise" and d > 1 else [(j,) for j in range(d)]
    try:
        groups = [frozenset(group) for group in given]
    except TypeError:
        raise ParameterError(
            f"Interaction constraints must be a sequence of tuples or lists, got: {given!r}."
        ) from None
    for group in groups:
        if not all(_is_column(j, d) for j in group):
            raise ParameterError(
                f"Interaction constraints must consist of integer indices in [0, n_features - 1] = [0, {d - 1}], "
                f"specifying the position of features, got invalid indices: {set(group)!r}; columns are counted from 0."
            )
    rest = frozenset(range(d)).difference(*groups)
    return (*groups, rest) if rest else tuple(groups)


def _is_column(j: Any, d: int) -> bool:
    return isinstance(j, int | np.integer) and not isinstance(j, bool) and 0 <= int(j) < d
