"""Plots of mixtures: positions of the components, and values of the log-likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose

from summula import ParameterError
from summula.mixture import GaussianMixture
from summula.plotting import likelihood_trace, mixture_ellipses

X = np.random.default_rng(0).normal(size=(90, 2)) @ [[1.0, 0.5], [0.0, 0.4]] + np.repeat([[0.0], [6.0]], 45, axis=0)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_every_point_of_an_ellipse_has_its_distance(kind: str) -> None:
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    ax = mixture_ellipses(model, X=X, probability=0.5)
    rows, ellipses, paths = ax.lines[:2], ax.lines[2:4], ax.lines[4:]
    assert sum(len(line.get_xdata()) for line in rows) == len(X)
    for k, line in enumerate(ellipses):
        S: Any = model.covariances_ if kind == "tied" else model.covariances_[k]
        S = S if np.ndim(S) == 2 else np.eye(2) * S
        away = np.column_stack([line.get_xdata(), line.get_ydata()]) - model.means_[k]
        assert_allclose((away @ np.linalg.inv(S) * away).sum(axis=1), -2 * np.log(0.5), rtol=1e-9)
        assert_allclose(np.column_stack(paths[k].get_data())[-1], model.means_[k])
    pyplot.close(ax.figure)


def test_the_trace_is_the_lower_bounds() -> None:
    models = [GaussianMixture(k, random_state=0).fit(X) for k in (1, 2)]
    ax = likelihood_trace(*models, labels=["one", "two"])
    for model, line in zip(models, ax.lines, strict=True):
        assert_allclose(line.get_ydata(), model.lower_bounds_)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    pyplot.close(ax.figure)


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ParameterError, match="needs at least one"):
        mixture_ellipses()
    wide = GaussianMixture(1).fit(np.column_stack([X, X[:, 0] ** 2]))
    with pytest.raises(ParameterError, match=r"3 columns: choose two with columns=\(0, 1\), or pass rows X"):
        mixture_ellipses(wide)
    assert len(mixture_ellipses(wide, columns=(0, 1)).lines) == 2, "the advice works"
    with pytest.raises(ParameterError, match=r"two different names or ints from 0 to 2, not \(0, 3\)"):
        mixture_ellipses(wide, columns=(0, 3))
    with pytest.raises(ParameterError, match="must be between 0 and 1, not 1.5"):
        mixture_ellipses(wide, columns=(0, 1), probability=1.5)
    with pytest.raises(ParameterError, match="draw one with mixture_density"):
        mixture_ellipses(GaussianMixture(1).fit(X[:, :1]))
    with pytest.raises(ParameterError, match="needs at least one"):
        likelihood_trace()
    with pytest.raises(ParameterError, match="2 names"):
        likelihood_trace(*[GaussianMixture(1).fit(X)] * 2, labels=["one"])
