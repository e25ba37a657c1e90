"""Certificates as sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from summula.certification.records import confidence

if TYPE_CHECKING:
    from summula.training.result import TrainingResult

__all__ = ["certified_sentence", "verdict"]


def verdict(result: TrainingResult) -> str:
    """Summarise the result of a training run."""
    best = result._board.best.name
    found = certified_sentence(best, result._request.target, result.model, result.certificate, _constant(result))
    if best != "baseline":
        if not result.beats_baseline:
            found += " The model is not shown to beat the baseline."
        return found
    board = result._board
    alone = len(board.entries) > 1 and not any(one.finished(board.rounds) for one in board.entries[1:])
    return f"{'Only the baseline was finished' if alone else 'No candidate beat the baseline'}. {found}"


def _constant(result: TrainingResult) -> str:
    """Describe the error of the baseline on the same rows."""
    if result._board.best.name == "baseline":
        return ""
    kind = "majority class" if result._task.kind == "classes" else "predicting the mean"
    if result.model.costs is not None:
        kind = "always the cheapest class"
    return f" ({kind}: {_amount(_loss_of(result.model), result.baseline)})"


def certified_sentence(name: str, target: str, model: Any, certificate: Any, compared: str = "") -> str:
    """Describe the certificate of a table model; `compared` is inserted after the observed risk."""
    loss = _loss_of(model)
    rows = f"{certificate.n:,} held-out row{'' if certificate.n == 1 else 's'}"
    if certificate.n_groups is not None:
        rows += f" in {certificate.n_groups:,} groups"
    what = {
        "error": f"errors in predicting {target!r}",
        "cost": f"mean cost of predicting {target!r}",
        "absolute": f"mean absolute error of {target!r}",
        "squared": f"root mean squared error of {target!r}",
    }[loss]
    observed = _amount(loss, certificate.estimate)
    begin = (
        f"{name}: {observed} {what} on {rows}{compared}"
        if loss == "error"
        else (f"{name}: {what} {observed} on {rows}{compared}")
    )
    if certificate.upper >= certificate.range[1]:
        return f"{begin}; too few to bound the true value."
    true = {"error": "true error", "cost": "true mean cost", "absolute": "true value", "squared": "true value"}[loss]
    upper = _amount(loss, certificate.upper, up=True)
    sure = confidence(certificate.delta)
    level = f"{sure} confidence" if sure.endswith("%") else f"confidence {sure}"
    return f"{begin}; {true} below {upper} with {level}."


def _loss_of(model: Any) -> str:
    if model.costs is not None:
        return "cost"
    if model.low is None:
        return "error"
    return "squared" if model.metric == "squared" else "absolute"


def _amount(loss: str, value: float, *, up: bool = False) -> str:
    """Format a risk; bounds are rounded up."""
    if loss == "error":
        return f"{_digits(100 * value, 3, up)} %"
    return _digits(math.sqrt(value) if loss == "squared" else value, 4, up)


def _digits(value: float, digits: int, up: bool) -> str:
    text = f"{value:.{digits}g}"
    if up and float(text) < value:
        unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
        text = f"{(math.floor(value / unit) + 1) * unit:.{digits}g}"
    return f"{float(text):,.0f}" if 1e4 <= abs(float(text)) < 1e15 else text
