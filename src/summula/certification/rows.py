"""Losses of models on each row of held-out data: arrays, frames, sparse matrices, files and Dask collections.

Data are processed in blocks; the losses of all models and the hashes of the rows are stored, 8 bytes each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from summula.certification.fingerprints import betting_order, row_hashes
from summula.core.data.frames import is_frame, no_such_column, pop_columns
from summula.core.data.scan import Scan
from summula.core.engine.engine import current_engine
from summula.core.errors import DataError, ParameterError, RowError
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.input.validation import collection_reader
from summula.stats.bounds import clopper_pearson_bounds
from summula.stats.bounds_betting import betting_bounds

__all__ = [
    "LOSSES",
    "Loss",
    "Measured",
    "Risk",
    "check_fitted",
    "cost_array",
    "loss_named",
    "measure",
    "of_blocks",
    "risk_bounds",
]

Array = NDArray[Any]

LOSSES = ("zero_one", "squared", "absolute", "log")
_BLOCK = 1 << 16  # rows per block of a file


class Measured(NamedTuple):
    """Losses (one column per model) and hashes of the rows."""

    losses: NDArray[np.float64]
    hashes: NDArray[np.uint64]

    def only(self, chosen: NDArray[np.bool_]) -> Measured:
        """Return a subset of the rows."""
        return self if chosen.all() else Measured(self.losses[chosen], self.hashes[chosen])


class Risk(NamedTuple):
    """The mean loss of a model on the rows, and bounds on its expected loss."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Loss:
    """A loss with its range.

    Attributes
    ----------
    name : str
    low, high : float
        Smallest and largest possible loss.
    binary : bool
        Whether `low` and `high` are the only values, so that losses can be counted.
    """

    name: str
    low: float
    high: float
    binary: bool
    call: Callable[..., Any] | None = None
    costs: Array | None = None

    def of(self, model: Any, X: Any, y: Array) -> NDArray[np.float64]:
        """Compute the loss of each row; NaN if a label is missing."""
        if self.name == "log":
            return _log_loss(model, X, y)
        predicted = np.asarray(model.predict(X))
        if predicted.shape[:1] != y.shape[:1]:
            raise DataError(f"X has {len(predicted)} rows but y has {len(y)}; pass one target per row.")
        if self.call is not None:
            return np.asarray(self.call(y, predicted), np.float64)
        if self.name == "zero_one":
            codes = _codes(model, y)
            wrong = (
                (predicted != y).astype(np.float64)
                if self.costs is None
                else _cost(self.costs, model, codes, predicted)
            )
            return np.where(codes == _MISSING, np.nan, wrong)
        try:
            difference = np.asarray(predicted, np.float64) - np.asarray(y, np.float64).reshape(predicted.shape)
        except (TypeError, ValueError):
            raise DataError(
                f"loss={self.name!r} needs numeric targets and predictions, one per row: use loss='zero_one' for "
                "classes."
            ) from None
        return difference**2 if self.name == "squared" else np.abs(difference)

    def scaled(self, values: Array) -> NDArray[np.float64]:
        """Scale losses to [0, 1]."""
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)

    def unscaled(self, value: float) -> float:
        """Convert a mean of scaled losses to the units of the loss."""
        return self.low + float(value) * (self.high - self.low)

    def check(self, losses: Array) -> None:
        """Raise RowError for the first loss outside the range."""
        slack = 1e-12 * (self.high - self.low)
        outside = ~((losses >= self.low - slack) & (losses <= self.high + slack))
        if not outside.any():
            return
        row = int(np.argmax(outside.reshape(len(losses), -1).any(axis=1)))
        value = float(losses[row][outside[row]][0] if losses.ndim == 2 else losses[row])
        if np.isnan(value):
            raise RowError("The loss is missing", row, " (missing label or prediction); drop such rows.")
        raise RowError(
            f"The loss is {value:g}",
            row,
            f", outside the range from {self.low:g} to {self.high:g}: pass a range that contains all possible losses, "
            "or clip the predictions.",
        )


_UNKNOWN, _MISSING = -1, -2


def loss_named(loss: Any, range: Any, costs: Any) -> Loss:
    """Return the loss specified by the arguments, with its range."""
    if costs is not None:
        return _costly(loss, costs, range)
    if loss == "zero_one":
        if range is not None and tuple(range) != (0, 1):
            raise ParameterError(f"The range of the zero-one loss is (0, 1), not {range!r}: omit range.")
        return Loss("zero_one", 0.0, 1.0, True)
    if not callable(loss) and loss not in LOSSES:
        raise ParameterError(f"loss must be one of {', '.join(map(repr, LOSSES))} or a function; got {loss!r}.")
    name = loss if isinstance(loss, str) else getattr(loss, "__qualname__", type(loss).__qualname__)
    if range is None:
        raise ParameterError(
            f"The loss {name!r} is unbounded, and the mean of an unbounded loss cannot be bounded: "
            "pass range=(low, high) that contains all possible losses."
        )
    low, high = _interval(range)
    return Loss(name, low, high, False, None if isinstance(loss, str) else loss)


def _interval(range: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in range)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"range must be two finite numbers, the smaller first; got {range!r}.")
    return low, high


def _costly(loss: Any, costs: Any, range: Any) -> Loss:
    table = numbers_in("costs", costs)
    if loss != "zero_one" or range is not None:
        raise ParameterError("costs defines the cost of each confusion, so it requires loss='zero_one' and no range.")
    if table.ndim != 2 or table.size < 2 or not np.isfinite(table).all() or np.ptp(table) == 0:
        raise ParameterError(
            f"costs must be a 2d array costs[prediction, true class] of finite numbers that are not all equal; got "
            f"shape {table.shape}."
        )
    return Loss("zero_one", float(table.min()), float(table.max()), len(np.unique(table)) == 2, costs=table)


def cost_array(costs: Any, model: Any) -> Any:
    """Return costs as costs[prediction, true class]; a dict prediction -> {true class: cost} by the model's names."""
    if not isinstance(costs, Mapping):
        return costs
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    actions = np.asarray(getattr(model, "actions_", classes)).tolist()
    rows = [costs.get(action) for action in actions]
    if len(costs) != len(actions) or any(not isinstance(row, Mapping) or set(row) != set(classes) for row in rows):
        raise ParameterError(
            f"costs must be a dict with an entry for each prediction {actions!r}, which is a dict with a cost for each "
            f"true class {classes!r}: {{prediction: {{true class: cost}}}}."
        )
    return [[float(row[label]) for label in classes] for row in rows]  # type: ignore[index]


# ------------------------------------------------------------------------------------------------------------ labels


def _codes(model: Any, y: Array) -> NDArray[np.intp]:
    """Return the indices of labels among the classes of a model: -1 for unknown labels, -2 for missing ones."""
    if hasattr(model, "__sklearn_tags__") and is_regressor(model):
        raise ParameterError(
            f"The zero-one loss is for classifiers, but {type(model).__name__} predicts numbers: use loss='squared' or "
            "'absolute' with a range."
        )
    missing = (
        np.array([v is None or v != v for v in y.tolist()], bool) if y.dtype.kind in "fOc" else np.zeros(len(y), bool)
    )
    classes = getattr(model, "classes_", None)
    if classes is None:
        return np.where(missing, _MISSING, 0)
    places = {label: place for place, label in enumerate(np.asarray(classes).tolist())}
    codes = np.array([places.get(label, _UNKNOWN) for label in y.tolist()], np.intp)
    if len(y) and not (codes[~missing] >= 0).any() and not missing.all():
        raise DataError(
            f"None of the labels is among the classes {type(model).__name__} was fitted on (the first label is "
            f"{y.tolist()[0]!r}, the classes are {np.asarray(classes).tolist()[:5]!r}): pass labels of the same kind."
        )
    return np.where(missing, _MISSING, codes)


def _cost(costs: Array, model: Any, codes: Array, predicted: Array) -> Array:
    classes = getattr(model, "classes_", None)
    classes = [] if classes is None else classes
    actions = getattr(model, "actions_", classes)  # cost-sensitive models may have other decisions than classes
    expected = (len(actions), len(classes))
    if costs.shape != expected:
        raise ParameterError(
            f"costs has shape {costs.shape}, but {type(model).__name__} needs {expected}: costs[prediction, true "
            "class], one row per prediction and one column per class."
        )
    if (codes == _UNKNOWN).any():
        row = int(np.argmax(codes == _UNKNOWN))
        raise RowError("The label", row, " is not among the classes of the model, so its cost is unknown.")
    places = {label: place for place, label in enumerate(np.asarray(actions).tolist())}
    return costs[[places[label] for label in predicted.tolist()], np.maximum(codes, 0)]


def _log_loss(model: Any, X: Any, y: Array) -> NDArray[np.float64]:
    if not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"loss='log' needs probabilities, but {type(model).__name__} has no predict_proba: use loss='zero_one', "
            "or a model with probabilities (such as CalibratedClassifierCV)."
        )
    codes = _codes(model, y)
    p = np.asarray(model.predict_proba(X), np.float64)
    if len(p) != len(y):
        raise DataError(f"X has {len(p)} rows but y has {len(y)}; pass one target per row.")
    with np.errstate(divide="ignore"):
        loss = -np.log(p[np.arange(len(p)), np.maximum(codes, 0)])
    # An unknown class has probability 0.
    return np.where(codes == _MISSING, np.nan, np.where(codes == _UNKNOWN, np.inf, loss))


def check_fitted(model: Any) -> None:
    """Raise if a model is not fitted, or is a class."""
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise ParameterError(f"A fitted estimator with a predict method is needed; got {model!r}.")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise DataError(f"This {type(model).__name__} is not fitted: fit it first on other rows.") from None
    except TypeError:  # not a scikit-learn estimator, but it has predict
        return


# ------------------------------------------------------------------------------------------------------------ blocks


def measure(models: Sequence[Any], X: Any, y: Any, loss: Loss) -> Measured:
    """Compute the losses of all models on all rows, and the hashes of the rows."""

    def of_block(block: Any, target: Any) -> Measured:
        target = np.asarray(target)
        target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
        if _length(block) != len(target):
            raise DataError(f"X has {_length(block)} rows but y has {len(target)}; pass one target per row.")
        if not len(target):  # an empty partition
            return Measured(np.empty((0, len(models))), np.empty(0, np.uint64))
        columns = [_check_one_per_row(loss.of(model, block, target), len(target)) for model in models]
        return Measured(np.column_stack(columns), row_hashes(block, target))

    if y is None:
        raise DataError("The target y is None; losses need true values: pass y.")
    if _is_empty(X):
        raise DataError("X has no rows; pass held-out rows (59 rows without an error certify an error rate below 5 %).")
    found = of_blocks(of_block, X, y, models[0])
    result = Measured(np.concatenate([m.losses for m in found]), np.concatenate([m.hashes for m in found]))
    loss.check(result.losses)
    return result


def mean_by_group(rows: Measured, groups: Any) -> Measured:
    """Return the mean losses of groups of rows, and a hash of each group."""
    groups = np.asarray(groups)
    if groups.shape != (len(rows.losses),):
        raise DataError(
            f"groups has shape {groups.shape}, but there are {len(rows.losses)} rows; pass one group per row."
        )
    codes = np.unique(groups.astype(str) if groups.dtype.kind == "O" else groups, return_inverse=True)[1]
    counts = np.bincount(codes)
    columns = [np.bincount(codes, column) / counts for column in rows.losses.T]
    hashes = np.zeros(len(counts), np.uint64)
    np.add.at(hashes, codes, rows.hashes)  # modulo 2^64, independent of the order of rows
    return Measured(np.column_stack(columns), hashes)


def risk_bounds(rows: Measured, loss: Loss, delta: float, *bound_to: str) -> Risk:
    """Compute the bounds for a single measured model; the betting order is derived from all hashes."""
    losses = rows.losses[:, 0]
    x = loss.scaled(losses)
    if loss.binary:
        found = clopper_pearson_bounds(np.sum(x > 0.5), len(x), delta)
    else:
        found = betting_bounds(x[betting_order(rows.hashes, *bound_to)], delta)
    # Summed exactly, so that the result does not depend on the order of rows.
    estimate = min(max(math.fsum(losses) / len(losses), loss.low), loss.high)
    # A bound on the wrong side of the observed mean is moved to the mean.
    lower = min(max(loss.unscaled(found.lower), loss.low), estimate)
    return Risk(estimate, lower, max(min(loss.unscaled(found.upper), loss.high), estimate))


def of_blocks(work: Callable[[Any, Any], Any], X: Any, y: Any, model: Any) -> list[Any]:
    """Apply a function to each block of rows and its targets, in order; on the cluster for Dask collections."""
    if collection_reader(X) is not None:
        return _of_collection(work, X, y)
    if isinstance(X, Scan):
        return list(_counting_rows(work, _scanned(X, y, model)))
    if isinstance(y, str):
        X, (column,) = pop_columns(_framed(X, y), [y])
        y = column.to_numpy()
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    return [work(X, y)]


def _counting_rows(work: Callable[[Any, Any], Any], blocks: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    """Apply a function to each block; row numbers in errors are counted from the first block."""
    offset = 0
    for block, target in blocks:
        try:
            yield work(block, target)
        except RowError as error:
            raise error.moved(offset + error.row) from None
        offset += len(block)


def _scanned(X: Scan, y: Any, model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of files as tables with the columns the model was fitted on."""
    import pyarrow as pa

    named = isinstance(y, str)
    if named and y not in X.columns:
        raise DataError(no_such_column(y, X.columns))
    others = {*getattr(model, "_not_features", ()), *([y] if named else [])}
    names = [name for name in getattr(model, "feature_names_in_", X.columns) if name not in others]
    for start in range(0, X.n_rows, _BLOCK):
        stop = min(start + _BLOCK, X.n_rows)
        batches = list(X.read(start, stop, [*names, *([y] if named else [])]))
        columns = [np.concatenate(pieces) for pieces in zip(*batches, strict=True)]
        target = columns.pop() if named else None if y is None else np.asarray(y)[start:stop]
        yield pa.table(dict(zip(names, columns, strict=True))), target


def _of_collection(work: Callable[[Any, Any], Any], X: Any, y: Any) -> list[Any]:
    import dask

    named = isinstance(y, str)
    blocks = _delayed(X)
    if named:
        if y not in getattr(X, "columns", ()):
            raise DataError(no_such_column(y, getattr(X, "columns", ())))
        tasks = [dask.delayed(_split)(work, block, y) for block in blocks]
    elif y is None:
        tasks = [dask.delayed(work)(block, None) for block in blocks]
    elif collection_reader(y) is not None and len(_delayed(y)) == len(blocks):
        tasks = [dask.delayed(work)(block, target) for block, target in zip(blocks, _delayed(y), strict=True)]
    else:
        (values,) = _computed([y]) if collection_reader(y) is not None else (y,)
        ends = np.cumsum(_computed([dask.delayed(_length)(block) for block in blocks]))
        if ends[-1] != len(values):
            raise DataError(f"X has {ends[-1]} rows but y has {len(values)}; pass one target per row.")
        targets = np.split(np.asarray(values), ends[:-1])
        tasks = [dask.delayed(work)(block, target) for block, target in zip(blocks, targets, strict=True)]
    return _computed(tasks)


def _computed(tasks: list[Any]) -> list[Any]:
    """Compute tasks on the cluster of the current engine, or with Dask's current scheduler."""
    import dask

    client = getattr(current_engine(), "client", None)
    return list(dask.compute(*tasks) if client is None else client.gather(client.compute(tasks)))


def _delayed(collection: Any) -> list[Any]:
    """Return the blocks of rows of a Dask array or frame as delayed objects."""
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.asarray(collection.to_delayed(), object)))


def _split(work: Callable[[Any, Any], Any], frame: Any, y: str) -> Any:
    return work(frame.drop(columns=[y]), frame[y].to_numpy())


def _framed(X: Any, y: str) -> Any:
    if not is_frame(X):
        raise DataError(f"y={y!r} is a column name, but X is not a frame, file or collection: pass y as an array.")
    return X


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _is_empty(X: Any) -> bool:
    return collection_reader(X) is None and _length(X) == 0


def _check_one_per_row(losses: Array, rows: int) -> Array:
    if losses.shape != (rows,):
        raise DataError(f"The loss returned shape {losses.shape}; it must return one number for each of {rows} rows.")
    return losses
