"""Regularisation paths: a line for each coefficient, the largest named, the chosen penalty marked."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot

from summula import DataError
from summula.linear_model import LassoCV, lasso_path
from summula.plotting import coefficient_paths


@pytest.fixture
def path():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    y = X[:, :3] @ np.array([3.0, -2.0, 1.0]) + rng.standard_normal(80)
    return X, y, *lasso_path(X - X.mean(axis=0), y - y.mean(), alphas=30)[:2]


def test_lines_are_the_coefficients(path):
    X, y, alphas, coefs = path
    chosen = LassoCV(cv=4).fit(X, y).alpha_
    ax = coefficient_paths(alphas, coefs, chosen=chosen)
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["x0"].get_ydata(), coefs[0])
    assert len(ax.lines) == 12 + 1
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[:3] == ["x0", "x1", "x2"]
    assert labels[-1] == f"alpha = {chosen:.3g}"
    left, right = ax.get_xlim()
    assert left > right
    pyplot.close(ax.figure)


def test_names_and_given_axes(path):
    *_, alphas, coefs = path
    figure, given = pyplot.subplots()
    ax = coefficient_paths(alphas, coefs[:2], names=["age", "dose"], ax=given)
    assert ax is given
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["age", "dose"]
    pyplot.close(figure)


def test_bad_input(path):
    *_, alphas, coefs = path
    with pytest.raises(DataError, match="expected .n_features, n_alphas"):
        coefficient_paths(alphas, coefs.T)
    with pytest.raises(DataError, match="must be positive"):
        coefficient_paths(alphas - alphas.min(), coefs)
    with pytest.raises(DataError, match="12 coefficients but 1 names"):
        coefficient_paths(alphas, coefs, names=["a"])
