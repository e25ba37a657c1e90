"""Figures of the training data: the target, distributions, correlations, missing values, and a table of all columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.preprocessing.table_encoder_blocks import table_blocks, texts_with_places
from summula.preprocessing.table_encoder_sums import as_dates
from summula.report import Figure, Gallery, Item, Table
from summula.report.axes import SMALL, clipped
from summula.report.charts import bars, histogram
from summula.report.matrix_charts import matrix
from summula.training.data.profile import profile
from summula.training.result import TrainingResult

__all__ = ["data_figures"]

Array = NDArray[Any]

_DISTRIBUTIONS = 12  # columns
_LEVELS, _COLOURS = 8, 6
_CORRELATED = 16
_MISSING_COLUMNS, _MISSING_BLOCKS = 30, 40
_ROW_NAME = 21  # maximum number of characters of a row label


def data_figures(result: TrainingResult, leading: Sequence[str]) -> list[Item]:
    """Return figures of the training rows; the columns in `leading` come first."""
    names = [*leading, *(str(name) for name in result.model.feature_names_in_ if str(name) not in set(leading))]
    shown = names[: max(_CORRELATED, _DISTRIBUTIONS)]
    blocks = table_blocks(result._sample.X.select(shown))
    columns = blocks.read(0, blocks.n_rows)
    y = result._sample.y
    items: list[Item] = [_target(result, y)]
    items += _correlations(result, columns, y)
    items += _missing(result)
    items.append(
        Gallery(
            "Distribution of columns",
            [Figure(name, _distribution(columns[name], name, _groups(result, y))) for name in shown[:_DISTRIBUTIONS]],
            f"{_which_rows(result)} The columns most important to the model come first."
            + (f" {_DISTRIBUTIONS} of {len(names):,} columns." if len(names) > _DISTRIBUTIONS else ""),
        )
    )
    return [*items, _table(result)]


def _which_rows(result: TrainingResult) -> str:
    n = len(result._sample.y)
    return "Of the training rows." if n == result.n_training else f"Of the first {n:,} training rows."


def _target(result: TrainingResult, y: Array) -> Figure:
    target = result._request.target
    if result._task.kind == "numbers":
        whole = bool((y == np.floor(y)).all())
        drawing = histogram(np.asarray(y, np.float64), target, whole=whole)
    else:
        labels, counts = np.unique([str(one) for one in y.tolist()], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:20]
        drawing = bars([str(labels[k]) for k in order], counts[order].tolist(), f"rows by {target}")
    return Figure(f"Target: {target}", drawing, _which_rows(result))


def _groups(result: TrainingResult, y: Array) -> tuple[list[str], Array] | None:
    """Return the classes that distributions are coloured by, and the class of each row."""
    if result._task.kind != "classes" or len(result.model.classes_) > _COLOURS:
        return None
    labels = [str(one) for one in np.asarray(result.model.classes_).tolist()]
    return labels, np.array([labels.index(str(one)) if str(one) in labels else -1 for one in y.tolist()])


def _distribution(column: Any, name: str, groups: tuple[list[str], Array] | None) -> str:
    if not isinstance(column, np.ndarray):
        words, places = texts_with_places(column)
        if words and (dates := as_dates(words)) is not None:
            return _distribution(np.append(dates, np.datetime64("NaT"))[places], name, groups)
        counts = np.bincount(places[places >= 0], minlength=len(words))
        order = np.argsort(-counts, kind="stable")[:_LEVELS]
        missing = int((places < 0).sum())
        names, rows = [words[k] for k in order], counts[order].tolist()
        if len(words) > _LEVELS:
            names, rows = [*names, "all others"], [*rows, int(counts.sum() - counts[order].sum())]
        return bars([*names, "missing"] if missing else names, [*rows, missing] if missing else rows, name, box=SMALL)
    x = column.astype("datetime64[D]").astype(np.float64) if column.dtype.kind == "M" else column.astype(np.float64)
    known = ~np.isnan(x) if column.dtype.kind != "M" else ~np.isnat(column)
    dates = column.dtype.kind == "M"
    if not known.any():
        return bars(["missing"], [float(len(x))], name, box=SMALL)
    whole = bool((x[known] == np.floor(x[known])).all())
    if groups is None:
        return histogram(x[known], name, whole=whole, dates=dates, box=SMALL)
    labels, codes = groups
    split = [x[known & (codes == k)] for k in range(len(labels))]
    return histogram(split, name, names=labels, whole=whole, dates=dates, box=SMALL)


def _correlations(result: TrainingResult, columns: dict[str, Any], y: Array) -> list[Item]:
    """Return correlations of numeric columns, each pair over the rows without missing values."""
    numbers = {name: one for name, one in columns.items() if isinstance(one, np.ndarray) and one.dtype.kind != "M"}
    if result._task.kind == "numbers":
        numbers = {result._request.target: np.asarray(y, np.float64), **numbers}
    names = list(numbers)[:_CORRELATED]
    if len(names) < 2:
        return []
    found = _pairwise(np.column_stack([numbers[name].astype(np.float64) for name in names]))
    texts = [["" if value != value else f"{value:.2f}" for value in row] for row in found.tolist()]
    drawing = matrix(found, names, names, "correlations", texts=texts if len(names) <= 8 else None)
    note = "Pearson correlations of numeric columns; teal is positive, orange negative."
    return [Figure("Correlations", drawing, note)]


def _pairwise(X: Array) -> Array:
    known = ~np.isnan(X)
    centre = np.where(known.any(axis=0), np.nanmean(np.where(known.any(axis=0), X, 0.0), axis=0), 0.0)
    scale = np.nanstd(np.where(known.any(axis=0), X, 0.0), axis=0)
    Z = np.where(known, (X - centre) / np.where(scale > 0.0, scale, 1.0), 0.0)
    K = known.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        n, sums, squares = K.T @ K, Z.T @ K, (Z * Z).T @ K
        covariance = (Z.T @ Z) / n - (sums / n) * (sums.T / n)
        variance = squares / n - (sums / n) ** 2
        found = covariance / np.sqrt(variance * variance.T)
    return np.clip(np.where(variance * variance.T > 1e-20, found, np.nan), -1.0, 1.0)


def _missing(result: TrainingResult) -> list[Item]:
    """Return a map of missing values: blocks of consecutive rows, by column."""
    sums = {name: one.missing / one.rows for name, one in result._sums.items() if one.missing}
    table = result._sample.X
    names = sorted((name for name in sums if name in table.column_names), key=lambda name: -sums[name])
    if not names:
        return []
    shown = names[:_MISSING_COLUMNS]
    edges = np.linspace(0, table.num_rows, min(_MISSING_BLOCKS, table.num_rows) + 1).astype(int)
    shares = np.empty((len(shown), len(edges) - 1))
    for k, name in enumerate(shown):
        lacking = _lacking(table[name])
        shares[k] = np.add.reduceat(lacking, edges[:-1]) / np.diff(edges)
    drawing = matrix(shares, [_with_share(name, sums[name]) for name in shown], [], "missing values")
    more = f" {len(shown)} of {len(names)} columns with missing values." if len(shown) < len(names) else ""
    note = f"Rows from left to right in table order; the stronger the colour, the more values are missing.{more}"
    return [Figure("Missing values", drawing, note)]


def _with_share(name: str, share: float) -> str:
    """Return a row label with a name and a percentage; long names are truncated."""
    text = f" ({share:.1%})"
    return clipped(name, _ROW_NAME - len(text)) + text


def _lacking(column: Any) -> Array:
    import pyarrow as pa

    lacking = column.is_null(nan_is_null=pa.types.is_floating(column.type))
    return np.asarray(lacking.to_numpy(), np.float64)


def _table(result: TrainingResult) -> Table:
    most, names = 500, list(result._sums)
    rows = profile({name: result._sums[name] for name in names[:most]}, result.model.encoder.max_levels)
    for row in rows:
        if row["column"] in result.leaks:
            row["remark"] = f"looks like target leakage: {result.leaks[row['column']]}"
    note = "Of the training rows." + (f" The first {most} of {len(names):,} columns." if len(names) > most else "")
    return Table("All columns", list(rows[0]), [list(row.values()) for row in rows], note)
