"""What the user says of columns: categories, monotone ones, those that may interact."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError
from summula.core.factors import Factors, _encoded
from summula.core.frames import text_error

__all__ = ["Categories", "categorical_mask", "interaction_groups", "monotone_signs"]

Array = NDArray[Any]


class Categories(Factors):
    """Columns of categories as numbers: the values themselves where they are numbers, else their place among all.

    Missing values, and text that the fit has not seen, are NaN.

    Parameters
    ----------
    estimator : str
        The class name that messages begin with.
    texts : dict, optional
        The sorted texts of each column, of an earlier fit; None learns them.
    listed : collection of str, optional
        The only columns that may hold categories; None for any.
    """

    def __init__(self, estimator: str, texts: dict[str, tuple[str, ...]] | None, listed: Any = None) -> None:
        super().__init__(estimator, None if texts is None else {})
        self.texts = dict(texts or {})
        self.listed = listed
        self.found: list[str] = []

    def codes(self, name: str, values: Any, start: int = 0) -> NDArray[np.float64]:
        """The numbers that stand for some values of a column."""
        distinct, places = _encoded(name, values, self.estimator)
        known = [value for value in distinct if value is not None]
        if self.listed is None or name in self.listed:
            self.found.append(name)
        if all(isinstance(value, int | float) for value in known) and name not in self.texts:
            numbers = np.array([np.nan if value is None else float(value) for value in [*distinct, None]])
        else:
            if name not in self.found:
                row = int(np.flatnonzero(places >= 0)[0])
                raise text_error(f"Column {name!r}", distinct[places[row]], start + row, self.estimator)
            if self.learning and name not in self.texts:
                self.learn(name, sorted({str(distinct[k]) for k in np.unique(places[places >= 0])}))
            order = {text: k for k, text in enumerate(self.texts.get(name, ()))}
            numbers = np.array([order.get(str(value), np.nan) for value in distinct] + [np.nan], np.float64)
        return numbers[places]  # -1, a missing value, is the last

    def known(self) -> Categories:
        """The same texts, and no others to learn."""
        return Categories(self.estimator, self.texts)

    def learn(self, name: str, levels: Sequence[Any]) -> None:
        """Take the texts of a column from its sorted, different values."""
        self.texts[name] = tuple(str(level) for level in levels if level is not None)


def categorical_mask(given: Any, d: int, names: Sequence[str] | None, found: Sequence[str]) -> Array:
    """Which columns hold categories.

    given : the parameter `categorical_features`.
    found : the columns that frames call categorical, or that hold text.
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
        if names is None:
            raise ParameterError(
                "categorical_features should be passed as an array of integers or as a boolean mask when the model is "
                "fitted on data without feature names."
            )
        for name in chosen.tolist():
            if name not in names:
                raise ParameterError(
                    f"categorical_features has an item value {name!r} which is not a valid feature name of the "
                    f"training data. Observed feature names: {list(names)}"
                )
            mask[list(names).index(name)] = True
    elif chosen.dtype.kind == "b":
        if chosen.shape != (d,):
            raise ParameterError(
                f"categorical_features set as a boolean mask must have shape (n_features,), got: {chosen.shape}"
            )
        mask[:] = chosen
    else:
        if chosen.max() >= d or chosen.min() < 0:
            raise ParameterError(
                "categorical_features set as integer indices must be in [0, n_features - 1]; "
                f"got {int(chosen.min())} to {int(chosen.max())} with {d} features."
            )
        mask[chosen] = True
    return mask


def monotone_signs(given: Any, d: int, names: Sequence[str] | None, categorical: Array, owner: str) -> Array:
    """1, -1 or 0 for each column."""
    signs = np.zeros(d, np.int64)
    if isinstance(given, dict):
        if names is None:
            raise ParameterError(
                f"{owner} was not fitted on data with feature names. Pass monotonic_cst as an integer array instead."
            )
        strange = sorted(set(given) - set(names))
        if strange:
            raise ParameterError(f"monotonic_cst contains {len(strange)} unexpected feature names: {strange[:5]}.")
        for name, sign in given.items():
            if sign not in (-1, 0, 1):
                raise ParameterError(f"monotonic_cst[{name!r}] must be either -1, 0 or 1. Got {sign!r}.")
            signs[list(names).index(name)] = sign
    elif given is not None:
        others = np.setdiff1d(given, [-1, 0, 1])
        if len(others):
            raise ParameterError(
                f"monotonic_cst must be an array-like of -1, 0 or 1. Observed values: {others.tolist()}."
            )
        if np.shape(given) != (d,):
            raise ParameterError(f"monotonic_cst has shape {np.shape(given)} but the input data X has {d} features.")
        signs[:] = given
    if (signs[categorical] != 0).any():
        raise ParameterError("Categorical features cannot have monotonic constraints: their levels have no order.")
    return signs


def interaction_groups(given: Any, d: int) -> tuple[frozenset[int], ...] | None:
    """The groups of columns that may meet on a path from root to leaf; None for no limits."""
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
        if not all(isinstance(j, Integral) and 0 <= int(j) < d for j in group):
            raise ParameterError(
                f"Interaction constraints must consist of integer indices in [0, n_features - 1] = [0, {d - 1}], "
                f"specifying the position of features, got invalid indices: {set(group)!r}"
            )
    rest = frozenset(range(d)).difference(*groups)
    return (*groups, rest) if rest else tuple(groups)
