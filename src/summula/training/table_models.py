"""Encoder and fitted model as one model of a table; the baseline and the members of an ensemble in the same form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.preprocessing import TableEncoder, TableModel
from summula.preprocessing.paired_encoder import PairedEncoder
from summula.training.comparison.leaderboard import Entry, Leaderboard
from summula.training.comparison.metrics import Judge
from summula.training.models import AveragedClassifier, AveragedRegressor

__all__ = ["Clipped", "Encoders", "average_of", "baseline_of", "encoders_of", "table_model"]

Array = NDArray[Any]
Encoders = dict[bool | None, Any]  # by `Entry.codes`

_TREE_LEVELS = 250


def encoders_of(sums: Any, names: list[str]) -> Encoders:
    """Encoders for trees (True), for linear models (False), and for both side by side (None)."""
    # (A tree has room for 255 bins, and takes a category for one column whatever its levels.)
    linear, trees = TableEncoder(standardize=True), TableEncoder(categories="codes", max_levels=_TREE_LEVELS)
    linear, trees = linear.use_sums(sums, names), trees.use_sums(sums, names)
    return {False: linear, True: trees, None: PairedEncoder(trees, linear)}


def average_of(encoders: Encoders, entry: Entry, models: Sequence[Any]) -> Any:
    """The model of an ensemble: each member takes its columns of the rows as they are encoded for the ensemble."""
    kind = AveragedClassifier if entry.candidate.kind == "classes" else AveragedRegressor
    starts, stops = [], []
    for member, _ in entry.members:
        width = len(encoders[member.codes].get_feature_names_out())
        start = len(encoders[True].get_feature_names_out()) if entry.codes is None and not member.codes else 0
        starts.append(start)
        stops.append(start + width)
    return kind(list(models), [weight for _, weight in entry.members], starts, stops)


def table_model(encoder: Any, fitted: Any, target: str, judge: Judge, y: Array) -> TableModel:
    """Encoder and fitted model in one; numbers are clipped to the range of the training target."""
    numbers = judge.classes is None
    return TableModel(
        encoder,
        fitted,
        target,
        low=float(y.min()) if numbers else None,
        high=float(y.max()) if numbers else None,
        costs=None if judge.costs is None else judge.costs.tolist(),
        metric=judge.metric.name,
    )


class _Constant:
    """The baseline on raw rows: one prediction for all of them."""

    def __init__(self, table: TableModel) -> None:
        self.model = table.model
        if hasattr(table.model, "classes_"):
            self.classes_ = table.model.classes_
        width = len(table.encoder.get_feature_names_out())
        self._value = table._predicted(np.zeros((1, width)))

    def predict(self, X: Any) -> Array:
        return np.repeat(self._value, len(X))


def baseline_of(board: Leaderboard, model: TableModel, encoder: TableEncoder) -> _Constant | None:
    """The baseline, to be judged as `model` is; None where it is the model itself."""
    fitted = next((one.model for one in board.entries if one.name == "baseline"), None)
    if fitted is None or board.best.name == "baseline":
        return None
    options = {name: getattr(model, name) for name in ("low", "high", "costs", "metric")}
    return _Constant(TableModel(encoder, fitted, model.target, **options))


class Clipped:
    """A fitted model whose numbers are clipped as those of the table model are."""

    def __init__(self, model: Any, table: TableModel) -> None:
        self.model, self.low, self.high = model, table.low, table.high
        if hasattr(model, "classes_"):
            self.classes_, self.predict_proba = model.classes_, getattr(model, "predict_proba", None)

    def predict(self, X: Array) -> Array:
        predicted = np.asarray(self.model.predict(X))
        return predicted if self.low is None else np.clip(predicted, self.low, self.high)
