"""Principal components and factors: explained variance, distortion and loadings."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, colour_bar, dress, keyed

__all__ = ["loadings", "scree"]

_MOST_NAMES = 40  # maximum number of columns that are labelled


@inherit_docs(AXES)
def scree(pca: Any, *, ax: Any = None) -> Any:
    """Plot the explained variance of each component as bars, and the remaining distortion as a line (scree plot).

    Parameters
    ----------
    pca : fitted PCA

    Returns
    -------
    matplotlib Axes
        Axes of the bars; the line has its own axis on the right.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.decomposition import PCA
    >>> from summula.plotting import scree
    >>> X = np.random.default_rng(0).normal(size=(50, 4)) * [4.0, 2.0, 1.0, 0.5]
    >>> ax = scree(PCA().fit(X))
    >>> len(ax.patches), ax.get_xlabel()
    (4, 'component')
    """
    check_installed()
    if not len(getattr(pca, "explained_variance_", ())):
        raise ParameterError("scree needs a fitted PCA with at least one component; fit one first.")
    ax = axes(ax)
    variance = np.asarray(pca.explained_variance_, np.float64)
    squares = np.asarray(pca.singular_values_, np.float64) ** 2
    left = pca.distortion_ + squares.sum() - np.concatenate([[0.0], np.cumsum(squares)])
    ax.bar(np.arange(1, len(variance) + 1), variance, color=colour(0), width=0.7, label="explained variance")
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "component", "explained variance")
    lost = ax.twinx()
    lost.plot(np.arange(len(left)), left, "o-", color=colour(1), ms=4, lw=1.2, label="distortion")
    dress(lost, "component", "distortion")
    lost.spines["right"].set_visible(True)
    lost.spines["right"].set_color(GREY)
    lost.set_ylim(bottom=0.0)
    keyed(ax, handles=[*ax.containers[:1], *lost.lines], corner="lower center", columns=2)
    ax.get_legend().set_bbox_to_anchor((0.5, 1.0))  # above the axes: the line begins in one corner
    return ax


@inherit_docs(AXES)
def loadings(model: Any, *, ax: Any = None) -> Any:
    """Plot the loadings of the columns on the components as a heat map.

    Parameters
    ----------
    model : fitted PCA or FactorAnalysis

    Examples
    --------
    >>> import numpy as np
    >>> from summula.decomposition import PCA
    >>> from summula.plotting import loadings
    >>> ax = loadings(PCA(n_components=2).fit(np.random.default_rng(0).normal(size=(50, 5))))
    >>> ax.get_xlabel(), len(ax.get_yticks())
    ('component', 5)
    """
    check_installed()
    components = np.asarray(getattr(model, "components_", np.empty((0, 0))), np.float64)
    if not components.size:
        raise ParameterError("loadings needs a fitted PCA or FactorAnalysis with at least one component.")
    ax = axes(ax)
    most = float(np.abs(components).max())
    image = ax.imshow(components.T, cmap="RdBu", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    k, d = components.shape
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])]
    if d <= _MOST_NAMES:
        ax.set_yticks(np.arange(d), names, parse_math=False)
    if k <= _MOST_NAMES:
        ax.set_xticks(np.arange(k), [str(j + 1) for j in range(k)])
    dress(ax, "component", "column")
    ax.tick_params(axis="y", labelsize=min(8.0, 160.0 / d))  # 20 names fit at full size
    colour_bar(ax, image, "loading")
    return ax
