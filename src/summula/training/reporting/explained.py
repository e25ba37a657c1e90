"""Model-agnostic explanations: importances, partial dependence, contributions.

Let f be the output of the model (probabilities of classes, or the predicted number) and l its loss per row.

    importance of column j        mean of d_i = l(row i with x_j of another row) - l(row i)                        (1)
                                  with the interval  mean +- 1.96 sd(d) / sqrt(n)
    partial dependence at v       mean over rows of f(row with x_j = v)                                            (2)
    contribution of column j      mean over random orders and background rows z of
                                  f(z with the columns up to j from x) - f(z with those before j from x)           (3)

(1) averages d_i over several permutations. (3) samples Shapley values (Strumbelj and Kononenko, 2014): contributions
add up to f(x) minus the mean of f over the background rows used, exactly.

Rows are encoded once; columns are permuted among encoded rows. Columns that a model does not use (coefficients of
zero, features without a split) have importance 0 without evaluation. Importances stop at a time limit; the columns
most important to the model come first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.random import permutation, stream_key
from summula.dummy import DummyClassifier, DummyRegressor
from summula.preprocessing import TableModel

__all__ = ["Contribution", "Dependence", "EncodedModel", "Importance", "contributions", "dependence", "importances"]

Array = NDArray[Any]

_REPEATS = 3
_GRID = 16
_LEVELS = 12
_CELLS = 4_000_000  # maximum number of values in a block of generated rows
_OTHER = "other columns"


class EncodedModel:
    """A table model as a function of encoded rows.

    Parameters
    ----------
    model : TableModel

    Attributes
    ----------
    places : dict of str to slice or ndarray
        The encoded columns of each column.
    """

    def __init__(self, model: TableModel) -> None:
        self.model = model
        self.places: dict[str, Any] = model.encoder.places()

    def output(self, rows: Array) -> Array:
        """Return probabilities of all classes, or numbers as one column; shape (n, K) or (n, 1)."""
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.model.predict_proba(rows), np.float64)
        return np.asarray(self.model._predicted(rows), np.float64)[:, np.newaxis]

    def relevance(self) -> dict[str, float]:
        """Return the importance of each column to the model, on an arbitrary scale; 0 if it is not used."""
        fitted = self.model.model
        if hasattr(fitted, "coef_"):
            weights = np.abs(np.atleast_2d(np.asarray(fitted.coef_))).max(axis=0)
        elif hasattr(fitted, "feature_importances_"):
            weights = np.asarray(fitted.feature_importances_, np.float64)
        else:  # a baseline uses no columns; other models, such as naive Bayes, use all
            is_baseline = isinstance(fitted, DummyClassifier | DummyRegressor)
            weights = np.zeros(fitted.n_features_in_) if is_baseline else np.ones(fitted.n_features_in_)
        return {name: float(weights[place].sum()) for name, place in self.places.items()}


# ----------------------------------------------------------------------------------------------------------- importance


class Importance(NamedTuple):
    """Importance of a column and its 95 % interval; see (1)."""

    name: str
    value: float
    low: float
    high: float


def importances(
    model: EncodedModel, rows: Array, loss: Callable[[Array], Array], seconds: float, seed: int = 0
) -> list[Importance]:
    """Return the importances of columns, largest first; those not evaluated within the time limit are omitted.

    Parameters
    ----------
    model : EncodedModel
    rows : ndarray of shape (n_rows, n_encoded)
    loss : callable
        Function of encoded rows that returns one loss per row.
    seconds : float
        Time limit.
    seed : int
    """
    end = time.monotonic() + seconds
    relevance = model.relevance()
    used = sorted((name for name in relevance if relevance[name] > 0.0), key=lambda name: -relevance[name])
    found = [Importance(name, 0.0, 0.0, 0.0) for name in relevance if relevance[name] == 0.0]
    before, work = loss(rows), rows.copy()
    sums: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for repeat in range(_REPEATS):
        order = permutation(stream_key(seed, repeat), len(rows))
        for name in used:
            if time.monotonic() > end:
                break
            place = model.places[name]
            work[:, place] = rows[:, place][order]
            change = loss(work) - before
            work[:, place] = rows[:, place]
            sums[name] = sums.get(name, 0.0) + change
            counts[name] = counts.get(name, 0) + 1
    for name, total in sums.items():
        change = total / counts[name]
        error = 1.96 * float(change.std(ddof=1)) / np.sqrt(len(change)) if len(change) > 1 else 0.0
        value = float(change.mean())
        found.append(Importance(name, value, value - error, value + error))
    return sorted(found, key=lambda one: -one.value)


# --------------------------------------------------------------------------------------------------- partial dependence


class Dependence(NamedTuple):
    """Mean output of a model as a function of a column; see (2).

    Attributes
    ----------
    name : str
    kind : str
        Type of the column: "number", "boolean", "category", "date".
    values : list
        Numbers (days since 1970 for dates) or levels.
    output : ndarray of shape (n_values, n_outputs)
    """

    name: str
    kind: str
    values: list[Any]
    output: Array


def dependence(model: EncodedModel, rows: Array, name: str, column: Any) -> Dependence | None:
    """Compute the partial dependence on a column; the grid is chosen from the values in `column`.

    Parameters
    ----------
    model : EncodedModel
    rows : ndarray of shape (n_rows, n_encoded)
        The rows to average over; for wide rows only a few are used.
    name : str
    column : pyarrow array

    Returns
    -------
    Dependence or None
        None if the column is constant.
    """
    plan = next(one for one in model.model.encoder.columns_ if one.name == name)
    grid = _levels(plan) if plan.kind == "category" else _quantiles(column)
    if len(grid) < 2:
        return None
    encoded = model.model.encoder.encode_column(name, grid)
    few = rows[: max(_CELLS // (len(grid) * rows.shape[1]), 1)]
    made = np.repeat(few[np.newaxis], len(grid), axis=0)
    made[:, :, model.places[name]] = encoded[:, np.newaxis]
    output = model.output(made.reshape(-1, few.shape[1]))
    mean = output.reshape(len(grid), len(few), -1).mean(axis=1)
    return Dependence(name, plan.kind, _as_numbers(grid, plan.kind), mean)


def _levels(plan: Any) -> Any:
    """Return the first levels of a categorical column, as encoded."""
    import pyarrow as pa

    return pa.array(list(plan.levels[:_LEVELS]), pa.string())


def _quantiles(column: Any) -> Any:
    """Return equally spaced quantiles of a column, without the outermost 2 %."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = column.drop_null()
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    if not len(known):
        return known
    ordered = known.take(pc.sort_indices(known))
    places = np.linspace(0.02, 0.98, _GRID) * (len(ordered) - 1)
    return ordered.take(pa.array(np.unique(places.round().astype(np.int64)))).unique()


def _as_numbers(grid: Any, kind: str) -> list[Any]:
    if kind == "category":
        return list(grid.to_pylist())
    values = grid.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[D]").astype(np.int64)
    elif values.dtype.kind == "O":  # dates in text
        values = np.array(values, "datetime64[us]").astype("datetime64[D]").astype(np.int64)
    return [float(value) for value in values]


# -------------------------------------------------------------------------------------------------------- contributions


class Contribution(NamedTuple):
    """Decomposition of the difference of a prediction from the mean prediction; see (3).

    Attributes
    ----------
    names : list of str
        Columns, largest contributions first; the last one combines all other columns, if any.
    values : list of float
    base : float
        The mean output over the background rows.
    output : float
        `base` plus the sum of `values`.
    """

    names: list[str]
    values: list[float]
    base: float
    output: float


def contributions(model: EncodedModel, row: Array, background: Array, columns: Sequence[str], out: int) -> Contribution:
    """Compute the contributions of columns to one output of the model for one encoded row.

    Parameters
    ----------
    model : EncodedModel
    row : ndarray of shape (n_encoded,)
    background : ndarray of shape (n_rows, n_encoded)
    columns : sequence of str
        Columns that are shown individually; all others are combined.
    out : int
        Index of the output.
    """
    masks = _players(model, columns, len(row))
    names = list(columns) if len(masks) == len(columns) else [*columns, _OTHER]
    samples = max(min(len(background), _CELLS // (4 * (len(masks) + 1) * len(row))), 1)
    orders = [permutation(stream_key(0, sample), len(masks)) for sample in range(samples)]
    made = np.repeat(background[:samples, np.newaxis], len(masks) + 1, axis=1)
    for sample, order in enumerate(orders):
        for step, player in enumerate(order):
            made[sample, step + 1 :, masks[player]] = row[masks[player], np.newaxis]
    f = model.output(made.reshape(-1, len(row)))[:, out].reshape(samples, -1)
    values = np.zeros(len(masks))
    for order, steps in zip(orders, np.diff(f, axis=1), strict=True):
        values[order] += steps / samples
    shown = sorted(range(len(columns)), key=lambda k: -abs(values[k])) + list(range(len(columns), len(names)))
    base = float(f[:, 0].mean())
    return Contribution([names[k] for k in shown], [float(values[k]) for k in shown], base, float(f[0, -1]))


def _players(model: EncodedModel, columns: Sequence[str], width: int) -> list[NDArray[np.intp]]:
    """Return the encoded columns of each shown column, and of all others combined."""
    chosen = [np.arange(width)[model.places[name]] for name in columns]
    rest = np.setdiff1d(np.arange(width), np.concatenate(chosen)) if chosen else np.arange(width)
    return [*chosen, rest] if len(rest) else chosen
