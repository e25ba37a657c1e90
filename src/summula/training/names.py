"""Names of metrics and types of targets, and their names in other libraries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from summula.core.errors import ParameterError

__all__ = ["METRIC_NAMES", "TASK_NAMES", "metric_name", "nearest", "ranks_alike", "task_name"]

TASK_NAMES = ("classes", "numbers")
METRIC_NAMES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "auc",
    "average_precision",
    "log_loss",
    "expected_cost",
    "absolute",
    "squared",
    "poisson",
)

_TASKS = {
    "classes": ("class", "classification", "classifier", "binary", "multiclass"),
    "numbers": ("number", "numeric", "regression", "regressor"),
}
_METRICS = {
    "accuracy": ("acc", "accuracy_score", "error", "error_rate"),
    "balanced_accuracy": ("balanced_accuracy_score", "bacc"),
    "f1": ("f1_score",),
    "auc": ("roc_auc", "roc_auc_score", "auroc", "rocauc", "roc"),
    "average_precision": ("average_precision_score", "ap", "pr_auc", "prauc", "auprc", "aucpr"),
    "log_loss": ("logloss", "neg_log_loss", "cross_entropy", "crossentropy", "binary_logloss", "multi_logloss"),
    "expected_cost": ("cost", "costs"),
    "absolute": ("mae", "l1", "mean_absolute_error", "neg_mean_absolute_error", "absolute_error"),
    "squared": ("mse", "l2", "mean_squared_error", "neg_mean_squared_error", "squared_error"),
    "poisson": ("poisson_deviance", "mean_poisson_deviance", "neg_mean_poisson_deviance"),
}
_SAME_RANKING = {
    "squared": ("rmse", "root_mean_squared_error", "neg_root_mean_squared_error", "r2", "r2_score", "r_squared"),
}


def task_name(name: str) -> str:
    """Return the task, "classes" or "numbers", for any of its names."""
    return _found(name, "task", TASK_NAMES, _TASKS)


def metric_name(name: str) -> str:
    """Return the name of a metric, given any of its names; RMSE and R2 map to squared error, which ranks alike."""
    others = {here: (*more, *_SAME_RANKING.get(here, ())) for here, more in _METRICS.items()}
    return _found(name, "metric", METRIC_NAMES, others)


def ranks_alike(name: str) -> bool:
    """Return whether a metric is replaced by another one that ranks models in the same order."""
    return any(_plain(name) in more for more in _SAME_RANKING.values())


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to a word: one that contains it, or has a similar spelling."""
    plain = _plain(name)
    names = {_plain(one): one for one in known}
    parts = [one for one in names if (one in plain and len(one) > 2) or plain in one] if plain else []
    near = [plain] if plain in names else [*parts, *difflib.get_close_matches(plain, names, n=1)]
    return names[max(near, key=lambda one: difflib.SequenceMatcher(None, one, plain).ratio())] if near else None


def _found(name: str, what: str, known: tuple[str, ...], others: Mapping[str, tuple[str, ...]]) -> str:
    plain = _plain(name)
    for here in known:
        if plain == here or plain in others[here]:
            return here
    near = nearest(name, [*known, *(one for more in others.values() for one in more)])
    hint = f"did you mean {near!r}?" if near else f"choose from {', '.join(known)}."
    raise ParameterError(f"There is no {what} {name!r}; {hint}")


def _plain(name: str) -> str:
    return "_".join(str(name).strip().casefold().replace("-", " ").replace("²", "2").split())
