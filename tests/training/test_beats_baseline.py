"""Whether held-out rows show that a model is better than the baseline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import summula
from summula.core.errors import HoldoutWarning
from summula.preprocessing import TableModel
from summula.training.comparison.certified import CappedLoss, evaluate_on_holdout, known_differences
from summula.training.comparison.metrics import LeftOut


def _model(metric: str = "absolute", low: float = -1.0, high: float = 3.0) -> Any:
    return TableModel(None, None, "y", low=low, high=high, metric=metric)


_unit = st.floats(0, 1)


@pytest.mark.parametrize("metric", ["absolute", "squared"])
@given(_unit, _unit, st.floats(-1e3, 1e3))
def test_differences_of_losses_are_within_the_limits(metric: str, f: float, c: float, y: float) -> None:
    model = _model(metric)
    predicted, constant = (np.array([model.low + share * (model.high - model.low)]) for share in (f, c))
    known = known_differences(model, constant[0], ())
    loss = CappedLoss(metric, 4.0 if metric == "absolute" else 16.0)
    difference = loss([y], predicted) - loss([y], constant)
    assert known is not None
    assert known.low - 1e-9 <= difference[0] <= known.high + 1e-9


def test_limits_are_reached() -> None:
    absolute, squared = (known_differences(_model(metric), 0.0, ()) for metric in ("absolute", "squared"))
    assert absolute is not None
    assert squared is not None
    assert absolute.high == 3.0  # y = 0: nothing is lost by the constant, 3 by predicting 3
    assert squared.high == 4.0**2 - 1.0**2  # y = -1: 1 is lost by the constant, 16 by predicting 3


def test_differences_of_costs_are_looked_up() -> None:
    model = SimpleNamespace(low=None, costs=[[0.0, 10.0], [1.0, 0.0]], classes_=np.array(["no", "yes"]))
    a = LeftOut(np.array([0, 1]), np.array([[0.1, 0.9], [0.1, 0.9]]))
    b = LeftOut(np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    known = known_differences(model, "no", [(a, b)])
    assert known is not None
    assert (known.low, known.high) == (-10.0, 1.0)
    assert known.earlier is not None
    assert known.earlier.tolist() == [1.0, -10.0]


def test_a_few_hundred_rows_suffice_to_beat_the_mean() -> None:
    """A skewed target, of which a third of the variance is explained: 60 held-out rows show it, as a t-test would."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    wage = np.exp(1.5 + 0.6 * X[:, 0] + 0.3 * X[:, 1] + 0.4 * rng.normal(size=300))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "wage": wage})
    result = summula.train(frame, "wage", models=["linear", "forest"], time=600, progress=False)
    assert result.beats_baseline
    assert "not shown" not in result.verdict


def test_a_target_of_noise_is_not_shown_to_be_predicted() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "y": rng.exponential(size=300)})
    shown = [
        summula.train(frame, "y", models=["tree"], time=600, random_state=seed, progress=False) for seed in range(8)
    ]
    assert not any(result.beats_baseline for result in shown)


class _Of:
    """Predicts a column."""

    def __init__(self, name: str) -> None:
        self.name, self.low, self.high, self.metric, self.costs = name, 0.0, 1.0, "absolute", None
        self.model, self.value, self.prediction_range = self, 0.5, (0.0, 1.0)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return {"name": self.name}

    def predict(self, X: Any) -> Any:
        return np.asarray(X[self.name], float)


def test_rows_of_a_group_do_not_count_as_independent() -> None:
    """Three groups of which one has nearly all rows show nothing; as many independent rows do."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"good": np.full(500, 0.1), "constant": np.full(500, 0.5)})
    y, groups = rng.uniform(0.0, 0.2, 500), np.repeat([0, 1, 2], [498, 1, 1])
    apart = evaluate_on_holdout(_Of("good"), _Of("constant"), frame, y, 0.05)
    with pytest.warns(HoldoutWarning):
        together = evaluate_on_holdout(_Of("good"), _Of("constant"), frame, y, 0.05, groups)
    assert apart.comparison.upper < 0.0
    assert together.comparison.n == 3
    assert together.comparison.upper > 0.0
