"""Stochastic gradient descent: five epochs over dense and sparse rows, and several classes."""

from functools import partial
from typing import Any

import numpy as np
from scipy import special

from benchmarks.likelihood import NONZEROS_PER_ROW, Rows, _blocks, _of, classes, sparse_classes
from benchmarks.workload import FitWorkload, Quality

ALPHA = 1e-3  # with a smaller one the objective after five epochs is mostly noise
EPOCHS = 5
# The objective after five epochs depends on the order of the rows: the tolerance is its variation between seeds.
BETWEEN_SEEDS = 0.01


def objective(data: Rows, model: Any, loss: str) -> float:
    """The mean loss plus ALPHA |w|^2 / 2, summed over one score per class."""
    total = 0.0
    for scores, y in _blocks(data, model):
        K = scores.shape[1]
        signs = np.where((y[:, None] == (np.arange(K) if K > 1 else 1)), 1.0, -1.0)
        margins = signs * scores
        lost = -special.log_expit(margins) if loss == "log_loss" else np.maximum(1.0 - margins, 0.0)
        total += float(lost.sum())
    return total / len(data.y) + ALPHA / 2 * float(np.square(model.coef_).sum())


def _workload(
    name: str, title: str, loss: str, shape: tuple[int, int], quick: tuple[int, int], make: Any
) -> FitWorkload:
    settings = {"loss": loss, "alpha": ALPHA, "max_iter": EPOCHS, "tol": None, "random_state": 0}
    return FitWorkload(
        name=name,
        title=f"{title}, {EPOCHS} epochs",
        shape=shape,
        quick_shape=quick,
        make_data=make,
        contenders=(
            _of("summula", "summula.linear_model", "SGDClassifier", **settings),
            _of("scikit-learn", "sklearn.linear_model", "SGDClassifier", n_jobs=-1, **settings),
        ),
        quality=Quality(partial(objective, loss=loss), "objective", tolerance=BETWEEN_SEEDS),
        rounds=3,
    )


WORKLOADS = (
    _workload(
        "sgd-dense",
        "SGDClassifier, log loss, two classes",
        "log_loss",
        (1_000_000, 50),
        (20_000, 20),
        partial(classes, kinds=2),
    ),
    _workload(
        "sgd-hinge",
        "SGDClassifier, hinge, two classes",
        "hinge",
        (1_000_000, 50),
        (20_000, 20),
        partial(classes, kinds=2),
    ),
    _workload(
        "sgd-sparse",
        f"SGDClassifier, log loss, sparse, {NONZEROS_PER_ROW} entries per row",
        "log_loss",
        (100_000, 50_000),
        (5_000, 500),
        sparse_classes,
    ),
    _workload(
        "sgd-classes",
        "SGDClassifier, log loss, ten classes",
        "log_loss",
        (200_000, 50),
        (5_000, 20),
        partial(classes, kinds=10),
    ),
)
