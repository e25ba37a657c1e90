"""Priors, likelihoods and costs passed as pandas objects, whose labels name states, observations and actions.

An index that merely counts 0, 1, ... is not a set of names: such an object is treated like an array.
"""

from __future__ import annotations

from typing import Any

__all__ = ["is_labelled", "list_or_dict", "without_labels"]


def is_labelled(values: Any) -> bool:
    """Return whether an object is a pandas Series or DataFrame."""
    return hasattr(values, "iloc") and hasattr(values, "to_dict")


def without_labels(values: Any) -> Any:
    """Return the values of a pandas object as an array, and any other object itself."""
    return values.to_numpy() if is_labelled(values) else values


def list_or_dict(values: Any, columns: Any = None) -> Any:
    """Return a pandas object as a dict by the names in its index, or as a list without any; other objects themselves.

    Parameters
    ----------
    values : object
        The entries of a Series become numbers, the rows of a DataFrame dicts by column.
    columns : sequence, optional
        Names of the columns of a DataFrame that has none.
    """
    if not is_labelled(values):
        return values
    if columns is not None and values.ndim == 2 and _counts(values.columns) and len(columns) == values.shape[1]:
        values = values.set_axis(list(columns), axis=1)
    named = values.to_dict("index") if values.ndim == 2 else values.to_dict()
    return list(named.values()) if _counts(values.index) else named


def _counts(index: Any) -> bool:
    return bool(list(index) == list(range(len(index))))
