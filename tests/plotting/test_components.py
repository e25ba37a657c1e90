"""Plots of components: bars are variances, the line is the distortion, colours are loadings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose

from summula import ParameterError
from summula.decomposition import PCA, FactorAnalysis
from summula.plotting import loadings, scree

X = np.random.default_rng(0).normal(size=(60, 4)) @ np.random.default_rng(1).normal(size=(4, 4))


def test_bars_are_variances_and_the_line_is_the_distortion() -> None:
    pca = PCA(n_components=3).fit(X)
    ax = scree(pca)
    assert_allclose([bar.get_height() for bar in ax.patches], pca.explained_variance_)
    (line,) = ax.figure.axes[1].lines
    assert_allclose(line.get_ydata(), [PCA(n_components=k).fit(X).distortion_ for k in range(4)])
    pyplot.close(ax.figure)


def test_colours_are_loadings_of_named_columns() -> None:
    common = np.random.default_rng(2).normal(size=(60, 1)) + np.random.default_rng(3).normal(size=(60, 4))
    fa = FactorAnalysis(n_components=1).fit(pd.DataFrame(common, columns=list("abcd")))
    ax = loadings(fa)
    assert_allclose(ax.images[0].get_array(), fa.components_.T)
    assert [label.get_text() for label in ax.get_yticklabels()] == list("abcd")
    pyplot.close(ax.figure)


@pytest.mark.parametrize("draw", [scree, loadings])
def test_what_is_not_fitted_is_refused(draw: object) -> None:
    with pytest.raises(ParameterError, match="at least one component"):
        draw(PCA())  # type: ignore[operator]
