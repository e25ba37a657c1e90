"""A remark on nearly exact predictions for held-out rows.

Columns that leak the target only jointly (price and amount, if the target is their product) are not suspicious
individually, so `leaks` does not detect them. But a model fitted to them is nearly exact, which is rare for real data.
The columns responsible are found by permuting each among the held-out rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["near_perfect_remark"]

Array = NDArray[Any]

_EXPLAINED = 0.999  # fraction of the variance of a numeric target
_ERRORS, _MIN_BASELINE = 0.001, 0.05  # fractions of rows
_MIN_ROWS = {"numbers": 30, "classes": 200}  # with fewer, predictions without errors are common
_SHUFFLED_ROWS, _SHUFFLED_COLUMNS = 1_000, 100
_NAMED, _SHARE = 3, 0.95  # maximum number of columns named, and their fraction of the loss


def near_perfect_remark(model: Any, X: Any, y: Array, target: str) -> str:
    """Return a warning if a model is nearly exact, otherwise None.

    Parameters
    ----------
    model : TableModel
    X : pyarrow.Table
        Held-out rows.
    y : ndarray
        Targets of these rows.
    target : str
    """
    numbers = model.low is not None
    if len(y) < _MIN_ROWS["numbers" if numbers else "classes"]:
        return ""
    predicted = model.predict(X)
    if numbers:
        share = 1.0 - _loss(predicted, y, numbers) / max(float(np.var(y)), np.finfo(float).tiny)
        if share < _EXPLAINED:
            return ""
        accuracy = f"{100 * share:.4g} % of the variance of {target!r}"
    else:
        errors = _loss(predicted, y, numbers)
        if errors > _ERRORS or 1.0 - np.unique(y, return_counts=True)[1].max() / len(y) < _MIN_BASELINE:
            return ""
        accuracy = f"{100 * errors:.3g} % errors in predicting {target!r}"
    names = _columns_that_matter(model, X.slice(0, _SHUFFLED_ROWS), y[:_SHUFFLED_ROWS], numbers)
    by, cure = "", "unless all columns are known before it is, leave out those that are not"
    if names:
        by = f", mostly by {' and '.join(map(repr, names))}"
        cure = f"unless {'its value is' if len(names) == 1 else 'their values are'} known before {target!r} is, leave "
        cure += f"{'it' if len(names) == 1 else 'them'} out (--drop {','.join(names)!r}, or drop={names!r} in Python)"
    return f"Predictions are nearly exact ({accuracy} on {len(y):,} held-out rows{by}): possible leakage; {cure}."


def _loss(predicted: Array, y: Array, numbers: bool) -> float:
    return float(np.mean((predicted - y) ** 2 if numbers else predicted != y))


def _columns_that_matter(model: Any, X: Any, y: Array, numbers: bool) -> list[str]:
    """Return the columns whose permutation increases the loss most, largest first; none if there are very many."""
    names = [str(name) for name in model.feature_names_in_]
    if len(names) > _SHUFFLED_COLUMNS:
        return []
    order, whole = np.random.default_rng(0).permutation(len(y)), _loss(model.predict(X), y, numbers)
    costs = {}
    for name in names:
        shuffled = X.set_column(X.column_names.index(name), name, X[name].take(order))
        costs[name] = max(_loss(model.predict(shuffled), y, numbers) - whole, 0.0)
    ranked = sorted(names, key=lambda name: -costs[name])
    shares = np.cumsum([costs[name] for name in ranked]) / max(sum(costs.values()), np.finfo(float).tiny)
    return ranked[: min(int(np.searchsorted(shares, _SHARE)) + 1, _NAMED)]
