"""Baselines of numbers: weighted quantiles, and targets that are not finite."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from summula.core.errors import DataError
from summula.dummy import DummyClassifier, DummyRegressor


def test_weighted_quantiles_are_those_of_repeated_rows() -> None:
    y, weight = np.array([5.0, 1.0, 4.0, 2.0, 9.0]), np.array([1, 2, 0, 3, 1])
    X = np.zeros((5, 1))
    for q in (0.0, 0.3, 0.5, 1.0):
        model = DummyRegressor(strategy="quantile", quantile=q).fit(X, y, weight)
        expected = np.quantile(np.repeat(y, weight), q, method="averaged_inverted_cdf")
        assert model.constant_[0, 0] == expected


def test_numbers_of_classes_and_targets_are_known_after_the_fit() -> None:
    X = np.zeros((3, 1))
    model = DummyClassifier().fit(X, ["a", "b", "b"])
    assert (model.n_classes_, model.n_outputs_, DummyRegressor().fit(X, [1.0, 2.0, 3.0]).n_outputs_) == (2, 1, 1)
    with pytest.raises(NotFittedError):
        _ = DummyClassifier().n_classes_


@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_targets_that_are_not_finite_are_located(strategy: str) -> None:
    with pytest.raises(DataError, match=r"The target y has 1 missing value \(NaN; first at row 1\)"):
        DummyRegressor(strategy=strategy).fit(np.zeros((3, 1)), [0.0, np.nan, 2.0])
