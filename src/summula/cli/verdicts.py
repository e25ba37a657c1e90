"""A certificate in one sentence that a person can use."""

from __future__ import annotations

import math
from typing import Any

from summula.certification.records import confidence

__all__ = ["certified_sentence", "verdict"]


def verdict(trained: Any) -> str:
    """What `summula train` found, in one sentence."""
    best, certificate = trained.leaderboard.best.name, trained.certificate
    name = f"The {best} model"
    if best == "baseline":
        board = trained.leaderboard
        alone = len(board.entries) > 1 and not any(one.finished(board.rounds) for one in board.entries[1:])
        name = "Nothing but the baseline was finished, which" if alone else "No candidate beat the baseline, which"
    sentence = certified_sentence(name, trained.request.target, trained.model, certificate)
    if trained.model.costs is not None or best == "baseline":
        return sentence
    constant = _amount(trained.metric, trained.baseline)
    kind = "the most frequent class" if trained.task.kind == "classes" else "the mean"
    return f"{sentence[:-1]} (always saying {kind}: {constant})."


def certified_sentence(name: str, target: str, model: Any, certificate: Any) -> str:
    """What a certificate says of a table model."""
    metric = "cost" if model.costs is not None else model.metric
    sure, n = confidence(certificate.delta), f"{certificate.n:,} held-out row{'' if certificate.n == 1 else 's'}"
    does = {
        "error": f"predicts {target!r} wrongly for",
        "log_loss": f"predicts {target!r} wrongly for",
        "cost": f"predicts {target!r} at a cost of",
        "absolute": f"misses {target!r} on average by",
        "squared": f"misses {target!r} with a root mean square of",
    }[metric]
    after = {"error": " of new rows like these", "log_loss": " of new rows like these", "cost": " a row"}.get(
        metric, ""
    )
    observed = _amount(metric, certificate.estimate)
    if certificate.upper >= certificate.range[1]:
        return f"{name} {does} {observed}{after} in {n}, too few to promise anything for new rows."
    upper = _amount(metric, certificate.upper, up=True)
    return f"{name} {does} at most {upper}{after} (confidence {sure}), and {observed} in {n}."


def _amount(metric: str, value: float, *, up: bool = False) -> str:
    """A risk in words; bounds are rounded up."""
    if metric in ("error", "log_loss"):
        return f"{_digits(100 * value, 3, up)} %"
    return _digits(math.sqrt(value) if metric == "squared" else value, 4, up)


def _digits(value: float, digits: int, up: bool) -> str:
    text = f"{value:.{digits}g}"
    if up and float(text) < value:
        unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
        text = f"{(math.floor(value / unit) + 1) * unit:.{digits}g}"
    return f"{float(text):,.0f}" if 1e4 <= abs(float(text)) < 1e15 else text
