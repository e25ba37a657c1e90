"""Metrics that training computes for hundreds of resamples: the values of scikit-learn's functions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve, roc_auc_score, roc_curve

from summula.training.comparison.metrics import METRICS, roc_points, threshold_counts


@pytest.fixture(params=range(20))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def test_f1_of_two_classes(rng: np.random.Generator) -> None:
    y, output = rng.integers(0, 2, (2, 7))
    assert METRICS["f1"].risk(y, output) == pytest.approx(1.0 - f1_score(y, output, zero_division=0.0), abs=1e-15)


def test_f1_of_several_classes_some_of_which_do_not_occur(rng: np.random.Generator) -> None:
    y, output = 2 * rng.integers(0, 3, (2, 12))
    y[0], output[1] = -1, 5  # a label that training did not have, a class that the rows do not have
    expected = 1.0 - f1_score(y, output, average="macro", zero_division=0.0)
    assert METRICS["f1"].risk(y, output) == pytest.approx(expected, abs=1e-15)


def test_without_the_second_class_f1_is_zero() -> None:
    assert METRICS["f1"].risk(np.zeros(3, int), np.zeros(3, int)) == 1.0


@pytest.mark.parametrize(("name", "known"), [("auc", roc_auc_score), ("average_precision", average_precision_score)])
def test_ranks_with_ties(rng: np.random.Generator, name: str, known: object) -> None:
    y, p = rng.integers(0, 2, 40), rng.integers(0, 9, 40) / 10
    y[:2] = 0, 1
    assert callable(known)
    found = METRICS[name].risk(y, np.column_stack([1 - p, p]))
    assert found == pytest.approx(1.0 - known(y, p), abs=1e-13)


@pytest.mark.parametrize(("name", "known"), [("auc", roc_auc_score), ("average_precision", average_precision_score)])
def test_ranks_of_several_classes_are_means_over_those_that_occur(
    rng: np.random.Generator, name: str, known: object
) -> None:
    y, p = rng.choice([0, 1, 3], 30), rng.dirichlet(np.ones(4), 30)
    y[:3] = 0, 1, 3
    assert callable(known)
    expected = np.mean([known(y == k, p[:, k]) for k in (0, 1, 3)])
    assert METRICS[name].risk(y, p) == pytest.approx(1.0 - expected, abs=1e-13)


def test_points_of_curves(rng: np.random.Generator) -> None:
    y, p = rng.integers(0, 2, 40) == 1, rng.integers(0, 9, 40) / 10
    y[:2] = False, True
    counts = threshold_counts(y, p)
    x, expected, _ = roc_curve(y, p, drop_intermediate=False)
    np.testing.assert_allclose(roc_points(counts), (x, expected), rtol=1e-15)
    precision, recall, _ = precision_recall_curve(y, p)
    np.testing.assert_allclose(counts.true_positives / counts.positives, precision[-2::-1], rtol=1e-15)
    np.testing.assert_allclose(counts.true_positives / y.sum(), recall[-2::-1], rtol=1e-15)
