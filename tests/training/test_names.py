"""Metrics and tasks are understood by the names that other libraries give them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import summula
from summula.core.errors import DataError, ParameterError
from summula.training.comparison.metrics import METRICS
from summula.training.names import METRIC_NAMES, metric_name, task_name

RNG = np.random.default_rng(0)
X = RNG.normal(size=200)
TABLE = pa.table({"x": X, "y": 2 * X + RNG.normal(size=200), "word": np.where(X > 0, "yes", "no")})


def test_the_list_of_names_is_that_of_the_metrics() -> None:
    assert set(METRIC_NAMES) == set(METRICS)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("rmse", "squared"),
        ("R²", "squared"),
        ("neg_mean_absolute_error", "absolute"),
        ("MAE", "absolute"),
        ("roc_auc", "auc"),
        ("ROC AUC", "auc"),
        ("logloss", "log_loss"),
        ("pr-auc", "average_precision"),
        ("f1_score", "f1"),
        ("accuracy", "accuracy"),
    ],
)
def test_names_of_metrics(given: str, name: str) -> None:
    assert metric_name(given) == name


@pytest.mark.parametrize(("given", "name"), [("regression", "numbers"), ("Classification", "classes")])
def test_names_of_tasks(given: str, name: str) -> None:
    assert task_name(given) == name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rmsee", "did you mean 'rmse'"),
        ("acuracy", "did you mean 'accuracy'"),
        ("accurcy", "did you mean 'accuracy'"),
        ("zzz", "choose from"),
    ],
)
def test_unknown_names_get_the_nearest(given: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        metric_name(given)


def test_a_regression_by_rmse() -> None:
    result = summula.train(TABLE, "y", models=["linear"], task="regression", metric="rmse", drop=["word"])
    assert result.metric == "squared"
    assert "Candidates are compared by squared errors, which rank them as rmse does." in result.remarks


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "word", "metric": "rmse"}, ParameterError, "The metric 'rmse' is not for a target of classes"),
        ({"target": "y", "metric": "roc_auc"}, ParameterError, r"with task='classes' \(--task classes\)"),
        ({"target": "y", "task": "poetry"}, ParameterError, "There is no task 'poetry'; choose from classes, numbers"),
        ({"target": "word", "task": "numbers"}, DataError, "contains text such as 'no', and no numbers"),
        ({"target": "word", "models": ["random_forest"]}, ParameterError, "did you mean 'forest'"),
    ],
)
def test_words_that_do_not_fit(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        summula.train(TABLE, **options)  # type: ignore[arg-type]
