"""Ensembles: weights from out-of-fold predictions, and their part in a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import summula
from summula.core.errors import ParameterError
from summula.linear_model import LinearRegression, LogisticRegression
from summula.naive_bayes import GaussianNB
from summula.training.comparison.candidates import Candidate
from summula.training.comparison.ensembles import add_ensemble, greedy_weights
from summula.training.comparison.leaderboard import Entry, Leaderboard
from summula.training.comparison.metrics import METRICS, Evaluator, LeftOut
from summula.training.models import AveragedClassifier, AveragedRegressor

SQUARED = METRICS["squared"]


def folds_of(errors: np.ndarray, n_folds: int = 3) -> list[list[LeftOut]]:
    """Predictions whose errors are the rows of an array, in folds."""
    y = np.linspace(0, 1, errors.shape[1])
    return [[LeftOut(y[k::n_folds], (y + own)[k::n_folds]) for k in range(n_folds)] for own in errors]


def test_opposite_errors_cancel() -> None:
    error = np.random.default_rng(0).normal(size=300)
    assert SQUARED.loss is not None
    np.testing.assert_allclose(greedy_weights(SQUARED.loss, folds_of(np.array([error, -error]))), [0.5, 0.5])


def test_weights_are_those_of_least_squares() -> None:
    """For independent errors with variances 1 and 4 the optimal weights are 0.8 and 0.2."""
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(2, 12_000)) * [[1.0], [2.0]]
    assert SQUARED.loss is not None
    np.testing.assert_allclose(greedy_weights(SQUARED.loss, folds_of(errors)), [0.8, 0.2], atol=0.06)


def test_a_perfect_candidate_stays_alone() -> None:
    error = np.random.default_rng(0).normal(size=300)
    assert SQUARED.loss is not None
    assert greedy_weights(SQUARED.loss, folds_of(np.array([0 * error, error]))).tolist() == [1.0, 0.0]


def board_of(errors: np.ndarray, seconds: float = 0.1, interrupted: bool = False) -> Leaderboard:
    evaluator, entries = Evaluator(SQUARED, None), []
    for number, folds in enumerate(folds_of(errors)):
        entry = Entry(Candidate(f"model {number}", "", "numbers"), model=number)
        entry.evaluations = [evaluator.evaluate_predictions(fold) for fold in folds]
        entry.seconds, entry.spent = [seconds] * len(folds), [seconds] * len(folds)
        entries.append(entry)
    return Leaderboard(SQUARED, sorted(entries, key=lambda one: one.mean(3)), 3, interrupted)


def added(errors: np.ndarray, left: float = 100.0, **options: Any) -> list[str]:
    board = board_of(errors, **options)
    add_ensemble(board, Evaluator(SQUARED, None), lambda entry, models: tuple(models), left)
    return [one.name for one in board.entries]


def test_it_comes_first_where_it_is_clearly_better() -> None:
    errors = np.random.default_rng(0).normal(size=(2, 900)) * [[1.0], [1.1]]
    assert added(errors) == ["ensemble", "model 0", "model 1"]


def test_it_does_not_come_first_where_it_is_not() -> None:
    errors = np.random.default_rng(0).normal(size=(2, 900)) * [[1.0], [30.0]]
    assert added(errors)[0] == "model 0"


def test_without_time_or_folds_there_is_none() -> None:
    errors = np.random.default_rng(0).normal(size=(2, 900))
    assert "ensemble" in added(errors)
    assert "ensemble" not in added(errors, left=0.2)
    assert "ensemble" not in added(errors, interrupted=True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_winning_ensemble_is_saved_and_reported(stream: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, 600))
    data = pa.table({"x": x, "z": z, "y": x + np.where(z > 0, 1.0, -1.0)})
    result = summula.train(
        data, "y", models=["lasso", "tree", "ensemble"], metric="squared", time=3_600, progress=False, stream=stream
    )
    best = result._board.best
    assert best.name == "ensemble"
    assert {one.name for one, _ in best.members} == {"lasso", "tree"}
    others = [float(value) for value in result.leaderboard["squared"][1:]]
    assert float(result.leaderboard["squared"][0]) < min(others)
    parts = [m.predict(result.model.encoder.transform(data)[:, a:b]) for m, a, b in _members(result.model.model)]
    expected = sum(w * part for w, part in zip(result.model.model.weights, parts, strict=True))
    np.testing.assert_allclose(result.model.predict(data), np.clip(expected, result.model.low, result.model.high))
    result.save(tmp_path)
    again = summula.load(tmp_path / "model.summula")
    np.testing.assert_array_equal(again.predict(data), result.model.predict(data))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "weight of tree" in page
    assert "Permutation importance" in page
    assert "Coefficients of lasso" in page


def _members(model: Any) -> Any:
    return zip(model.models, model.starts, model.stops, strict=True)


def test_probabilities_of_an_ensemble_are_averages() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + y[:, None]
    model = AveragedClassifier([LogisticRegression(), GaussianNB()], [0.25, 0.75], [0, 1], [2, 3]).fit(X, y)
    first, second = LogisticRegression().fit(X[:, :2], y), GaussianNB().fit(X[:, 1:], y)
    expected = 0.25 * first.predict_proba(X[:, :2]) + 0.75 * second.predict_proba(X[:, 1:])
    np.testing.assert_allclose(model.predict_proba(X), expected)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))


@pytest.mark.parametrize(
    ("weights", "starts", "stops"),
    [([0.5, 0.6], [0, 0], [1, 1]), ([1.0], [0, 0], [1, 1]), ([0.5, 0.5], [0, 1], [1, 1])],
)
def test_averages_that_do_not_add_up_are_refused(weights: list[float], starts: list[int], stops: list[int]) -> None:
    models = [LinearRegression(), LinearRegression()]
    with pytest.raises(ParameterError, match="cannot be fitted"):
        AveragedRegressor(models, weights, starts, stops).fit(np.eye(3), np.arange(3.0))
