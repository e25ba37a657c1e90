"""Reading rows for trees: two passes over any source give a table of bins in memory.

The first pass reads targets, weights, and a sample of rows for bin edges; the second bins the rows.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Part
from summula.core.data.readers.table import release_memory
from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.tree.columns.binning import SAMPLE_ROWS, BinMap, counted, learn_bins

__all__ = [
    "MANY_ROWS",
    "Survey",
    "binned",
    "binned_part",
    "check_squares",
    "check_weights",
    "divided_rows",
    "learned_bins",
    "survey",
]

Array = NDArray[Any]

MANY_ROWS = 2**22  # above this targets and scores are stored in single precision
_LARGEST_GRADIENT = 1e38
_LARGEST_SQUARED = 1e90  # limits of targets, and of weights


class Survey(NamedTuple):
    """Result of the first pass.

    Attributes
    ----------
    rows, numbers : ndarray
        Sample of rows for bin edges, and their row numbers.
    categories : dict
        Distinct values and counts of each categorical column.
    y, weight : ndarray
        Targets, shape (n,) or (n_targets, n), and weights of all rows.
    """

    rows: Array
    numbers: Array
    categories: dict[int, tuple[Array, Array]]
    y: Array
    weight: Array | None


def survey(run: Run, categorical: Array, seed: int) -> Survey:
    """Perform the first pass."""
    source = run.source
    n = source.n_rows
    drawn = np.arange(min(n, SAMPLE_ROWS))
    if n > SAMPLE_ROWS:
        drawn = np.sort(np.random.default_rng([seed, 1]).choice(n, SAMPLE_ROWS, replace=False, shuffle=False))
    coded = tuple(int(j) for j in np.flatnonzero(categorical))
    rows, at = [], 0
    categories: dict[int, tuple[Array, Array]] = {}
    kind = np.float32 if n > MANY_ROWS else np.float64
    shape = (source.n_targets, n) if source.n_targets > 1 else (n,)
    y, weight = np.empty(shape, kind), np.empty(n) if source.weighted else None
    for found in run.each(functools.partial(_surveyed, drawn, coded, kind), "bin edges"):
        rows.append(found.rows)
        here = slice(at, at + found.y.shape[-1])
        y[..., here], at = found.y, here.stop
        if weight is not None:
            weight[here] = found.weight
        for j, (values, counts) in found.categories.items():
            before = categories.get(j, (values[:0], counts[:0]))
            joined = (np.concatenate([before[0], values]), np.concatenate([before[1], counts]))
            categories[j] = counted(*joined)
    if weight is not None and not weight.any():
        raise DataError("All sample weights are zero: at least one row needs a positive weight.")
    if weight is not None and (weight == 1.0).all():
        weight = None
    _raise_if_not_finite(run, y)
    release_memory()
    return Survey(np.concatenate(rows), drawn, categories, y, weight)


def _surveyed(drawn: Array, coded: tuple[int, ...], kind: Any, part: Part) -> Survey:
    rows, ys, weights, categories = [], [], [], {}
    values: dict[int, list[Array]] = {j: [] for j in coded}
    for chunk in part.chunks():
        X = chunk.dense(chunk.dtype)
        a, b = np.searchsorted(drawn, [chunk.start, chunk.stop])
        rows.append(X[drawn[a:b] - chunk.start] if b - a < len(chunk) else np.array(X))
        for j in coded:
            values[j].append(X[:, j])
        ys.append((chunk.target if chunk.y is None or chunk.y.shape[1] == 1 else chunk.y.T).astype(kind))
        if chunk.weight is not None:
            weights.append(np.asarray(chunk.weight, np.float64))
    categories = {j: counted(np.concatenate(values[j])) for j in coded}
    return Survey(
        np.concatenate(rows),
        drawn[:0],
        categories,
        np.concatenate(ys, axis=-1),
        np.concatenate(weights) if weights else None,
    )


def _raise_if_not_finite(run: Run, y: Array) -> None:
    wrong = ~np.isfinite(y.reshape(-1, y.shape[-1]))
    if not wrong.any():
        return
    t = int(wrong.any(axis=1).argmax())
    target, bad = y.reshape(wrong.shape)[t], np.flatnonzero(wrong[t])
    names, row = run.source.target_names, int(bad[0])
    label = f"Column {t} of the target y" if y.ndim == 2 else "The target y"
    label = label if names is None else f"The target {names[t]!r}"
    missing = np.isnan(target[row])
    raise DataError(
        f"{label} has {len(bad)} {'missing' if missing else 'infinite'} value{'s' if len(bad) > 1 else ''} "
        f"({'NaN' if missing else 'inf'}; first at row {row}); {type(run.estimator).__name__} needs complete targets: "
        "impute or drop them."
    )


def check_weights(y: Array, weight: Array | None, *, labelled: bool) -> None:
    """Raise if gradients, weight times error, would overflow single precision."""
    if weight is None:
        return
    heaviest, error = float(weight.max()), 1.0 if labelled else 2 * float(np.abs(y).max())
    if heaviest > _LARGEST_GRADIENT / max(error, 1.0):
        raise DataError(
            f"sample_weight has values as large as {heaviest:.2g}, whose gradients overflow single precision; divide "
            "the weights by their mean."
        )


def check_squares(y: Array, weight: Array | None) -> None:
    """Raise if squares of targets, times weights, would overflow or underflow."""
    for what, values in (("The target y", y), ("sample_weight", weight)):
        largest = 0.0 if values is None else float(np.abs(values).max())
        if largest > _LARGEST_SQUARED or 0.0 < largest < 1 / _LARGEST_SQUARED:
            large = largest > 1.0
            raise DataError(
                f"{what} has {'values as large as' if large else 'no value above'} {largest:.2g}, and squares "
                f"{'over' if large else 'under'}flow; rescale {'y' if values is y else 'the weights'} first."
            )


def learned_bins(found: Survey, weight: Array | None, out: Array | None, max_bins: int) -> BinMap:
    """Return the bins learned from the rows that are not held out."""
    weight = None if weight is None else weight[found.numbers]
    rows = found.rows
    if out is not None:
        kept = ~out[found.numbers]
        rows, weight = rows[kept], None if weight is None else weight[kept]
    return learn_bins(rows, weight, found.categories, max_bins)


def binned(run: Run, bins: BinMap, held_out: Array | None = None) -> tuple[Array, Array]:
    """Perform the second pass: return the bins of the training rows, and of those held out."""
    n, d = run.source.n_rows, run.source.n_features
    held = 0 if held_out is None else int(held_out.sum())
    kept, other = np.empty((n - held, d), np.uint8), np.empty((held, d), np.uint8)
    at = row = 0
    for block in run.each(functools.partial(binned_part, bins), "bins"):
        if held_out is None:
            kept[row : row + len(block)] = block
        else:
            out = held_out[row : row + len(block)]
            count = int(out.sum())
            kept[row - at : row - at + len(block) - count] = block[~out]
            other[at : at + count] = block[out]
            at += count
        row += len(block)
    release_memory()
    return kept, other


def binned_part(bins: BinMap, part: Part) -> Array:
    """Return the bins of the rows of a part."""
    out: Array | None = None
    for chunk in part.chunks():
        X = chunk.dense(chunk.dtype)
        if out is None:
            out = np.empty((len(part), X.shape[1]), np.uint8)
        bins.write(X, out[chunk.start - part.start : chunk.stop - part.start])
    assert out is not None
    return out


def divided_rows(run: Run, bins: BinMap, y: Array, weight: Array | None, out: Array | None) -> tuple[Any, Any]:
    """Return bins, targets and weights of the training rows, and of those held out."""
    kept, other = binned(run, bins, out)
    if out is None:
        return (kept, y, weight), None
    w = (None, None) if weight is None else (weight[~out], weight[out])
    return (kept, y[~out], w[0]), (other, y[out], w[1])
