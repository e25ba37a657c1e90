"""Losses of a score: compiled as in arrays, derivatives against differences, textbook values."""

from __future__ import annotations

import numpy as np
import pytest

from summula.losses import TAGS, Logistic, score_curvature, score_losses
from summula.losses.kernels import loss_of_score, slope_of_score

losses = pytest.mark.parametrize("loss", TAGS)
P = np.linspace(-2.97, 2.97, 38)


def bend_of(loss: str) -> float:
    return {"hinge": 1.0, "perceptron": 0.0}.get(loss, 0.1)


@losses
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_compiled_as_in_arrays(loss: str, y: float) -> None:
    p, bend, targets = np.concatenate([P, [-30.0, 40.0]]), bend_of(loss), np.full(len(P) + 2, y)
    value, slope = score_losses(loss, bend, targets, p)
    for compiled, expected in ((loss_of_score, value), (slope_of_score, slope)):
        one_by_one = [compiled(TAGS[loss], bend, y, one) for one in p]
        np.testing.assert_allclose(one_by_one, expected, rtol=1e-13, atol=1e-15)


@losses
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_against_differences(loss: str, y: float) -> None:
    h, bend, targets = 1e-6, bend_of(loss), np.full(len(P), y)
    up, down = (score_losses(loss, bend, targets, P + step) for step in (h, -h))
    np.testing.assert_allclose((up.value - down.value) / (2 * h), score_losses(loss, bend, targets, P).slope, atol=1e-8)
    curvature = score_curvature(loss, bend, targets, P)
    np.testing.assert_allclose((up.slope - down.slope) / (2 * h), curvature, rtol=1e-7, atol=1e-8)
    assert (curvature >= 0).all()


def test_values_of_the_textbook() -> None:
    y, p = np.array([1.0, 1.0, -1.0]), np.array([0.25, 2.0, 0.5])
    np.testing.assert_array_equal(score_losses("hinge", 1.0, y, p).value, [0.75, 0.0, 1.5])
    np.testing.assert_array_equal(score_losses("squared_hinge", 1.0, y, p).value, [0.5625, 0.0, 2.25])
    np.testing.assert_allclose(score_losses("exponential", 1.0, y, p).value, np.exp([-0.25, -2.0, 0.5]), rtol=1e-15)


def test_the_log_loss_is_that_of_the_likelihood() -> None:
    p = np.linspace(-40, 40, 81)
    for label in (0.0, 1.0):
        there = Logistic().derivatives(np.full(81, label), p)
        value, slope = score_losses("log_loss", 1.0, np.full(81, 2 * label - 1), p)
        np.testing.assert_allclose(value, there.value, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(slope, there.slope, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(score_curvature("log_loss", 1.0, np.full(81, 1.0), p), there.fisher, rtol=1e-13)
