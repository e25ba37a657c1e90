"""Encoder and fitted model combined into a table model; the same for the baseline and ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.preprocessing import TableEncoder, TableModel
from summula.preprocessing.paired_encoder import PairedEncoder
from summula.training.comparison.leaderboard import Entry, Leaderboard
from summula.training.comparison.metrics import Evaluator
from summula.training.models import AveragedClassifier, AveragedRegressor

__all__ = ["Clipped", "Encoders", "average_of", "baseline_of", "encoders_of", "table_model"]

Array = NDArray[Any]
Encoders = dict[bool | None, Any]  # keys are values of `Entry.codes`

_TREE_LEVELS = 250
_MARGIN = 0.1  # widening of the range of predictions, relative to it


def encoders_of(sums: Any, names: list[str]) -> Encoders:
    """Return encoders for trees (True), for linear models (False), and for both (None)."""
    # (A tree has at most 255 bins, and a category is one column for any number of levels.)
    linear, trees = TableEncoder(standardize=True), TableEncoder(categories="codes", max_levels=_TREE_LEVELS)
    linear, trees = linear.use_sums(sums, names), trees.use_sums(sums, names)
    return {False: linear, True: trees, None: PairedEncoder(trees, linear)}


def average_of(encoders: Encoders, entry: Entry, models: Sequence[Any]) -> Any:
    """Return the model of an ensemble: each member uses its columns of the encoded rows of the ensemble."""
    kind = AveragedClassifier if entry.candidate.kind == "classes" else AveragedRegressor
    starts, stops = [], []
    for member, _ in entry.members:
        width = encoders[member.codes].n_columns_out
        start = encoders[True].n_columns_out if entry.codes is None and not member.codes else 0
        starts.append(start)
        stops.append(start + width)
    return kind(list(models), [weight for _, weight in entry.members], starts, stops)


def table_model(
    encoder: Any, fitted: Any, target: str, evaluator: Evaluator, y: Array, predicted: Sequence[Array] = ()
) -> TableModel:
    """Combine encoder and fitted model; predicted numbers are clipped to the range of the training target.

    With out-of-fold predictions `predicted`, numbers are also clipped to the range of these, widened by a tenth on both
    sides. Rows of the same population rarely exceed it, and the narrower it is, the fewer held-out rows suffice to show
    that the model is better than a constant.
    """
    numbers = evaluator.classes is None
    clip_low, clip_high = None, None
    if numbers and len(predicted):
        least, most = min(float(one.min()) for one in predicted), max(float(one.max()) for one in predicted)
        margin = _MARGIN * (most - least)
        clip_low, clip_high = max(least - margin, float(y.min())), min(most + margin, float(y.max()))
    return TableModel(
        encoder,
        fitted,
        target,
        low=float(y.min()) if numbers else None,
        high=float(y.max()) if numbers else None,
        costs=None if evaluator.costs is None else evaluator.costs.tolist(),
        metric=evaluator.metric.name,
        clip_low=clip_low,
        clip_high=clip_high,
    )


class _Constant:
    """The baseline for raw rows: the same prediction for all."""

    def __init__(self, table: TableModel) -> None:
        self.model = table.model
        if hasattr(table.model, "classes_"):
            self.classes_ = table.model.classes_
        width = table.encoder.n_columns_out
        self._predicted = table._predicted(np.zeros((1, width)))

    @property
    def value(self) -> Any:
        """The prediction."""
        return self._predicted[0]

    def predict(self, X: Any) -> Array:
        return np.repeat(self._predicted, len(X))


def baseline_of(board: Leaderboard, model: TableModel, encoder: TableEncoder) -> _Constant | None:
    """Return the baseline in the form of `model`, or None if the model is the baseline."""
    fitted = next((one.model for one in board.entries if one.name == "baseline"), None)
    if fitted is None or board.best.name == "baseline":
        return None
    options = {name: getattr(model, name) for name in ("low", "high", "costs", "metric")}
    return _Constant(TableModel(encoder, fitted, model.target, **options))


class Clipped:
    """A fitted model whose predictions are clipped like those of the table model."""

    def __init__(self, model: Any, table: TableModel) -> None:
        self.model, self._table = model, table
        if hasattr(model, "classes_"):
            self.classes_, self.predict_proba = model.classes_, getattr(model, "predict_proba", None)

    def predict(self, X: Array) -> Array:
        return self._table.clipped(np.asarray(self.model.predict(X)))
