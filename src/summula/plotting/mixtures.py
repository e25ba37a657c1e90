"""Gaussian mixtures of two columns: ellipses of their components, and the log-likelihood of EM steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, dress, keyed, marker

__all__ = ["likelihood_trace", "mixture_ellipses"]

Array = NDArray[Any]

_POINTS = 120


@inherit_docs(AXES)
def mixture_ellipses(
    *models: Any, X: Any = None, probability: float = 0.9, columns: Sequence[int] | None = None, ax: Any = None
) -> Any:
    """Plot the components of Gaussian mixtures of two columns as ellipses, later models darker.

    Parameters
    ----------
    *models : fitted GaussianMixture
        Such as fits with 0, 1, 2, 5, ... EM steps from the same start; their means are connected by lines.
    X : array-like of shape (n_samples, n_features), optional
        Rows to plot, coloured by their most probable component under the last model.
    probability : float, default=0.9
        Probability of the component contained in each ellipse.
    columns : two ints, optional
        Columns on the axes, needed if the models have more than two: ellipses are those of the marginal distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib import pyplot
    >>> from summula.mixture import GaussianMixture
    >>> from summula.plotting import mixture_ellipses
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    >>> steps = [GaussianMixture(2, max_iter=m, random_state=0).fit(X) for m in (0, 50)]
    >>> ax = mixture_ellipses(*steps, X=X)
    >>> len(ax.lines)
    8
    >>> pyplot.close(ax.figure)
    """
    check_installed()
    if not models:
        raise ParameterError("mixture_ellipses needs at least one fitted GaussianMixture.")
    pair = _pair(models, columns)
    ax = axes(ax)
    if X is not None:
        rows, labels = np.asarray(X, np.float64)[:, pair], models[-1].predict(X)
        for k in range(len(models[-1].means_)):
            here = rows[labels == k]
            ax.plot(here[:, 0], here[:, 1], marker(k), color=colour(k), ms=3, alpha=0.35, mew=0)
    circle = np.stack([np.cos(angle := np.linspace(0.0, 2 * np.pi, _POINTS)), np.sin(angle)])
    radius = np.sqrt(-2.0 * np.log(1.0 - probability))  # of a standard normal distribution in the plane
    for step, model in enumerate(models, 1):
        for k, (mean, factor) in enumerate(zip(model.means_[:, pair], _factors(model, pair), strict=True)):
            x, y = mean[:, None] + radius * factor @ circle
            ax.plot(x, y, color=colour(k), lw=1.4 if step == len(models) else 0.9, alpha=step / len(models))
    for k in range(len(models[-1].means_)):
        path = np.stack([model.means_[k, pair] for model in models])
        ax.plot(path[:, 0], path[:, 1], "+-", color=GREY, ms=5, lw=0.8)
    names = [str(name) for name in getattr(models[-1], "feature_names_in_", ())]
    dress(ax, *([names[j] for j in pair] if names else [f"x{j}" for j in pair]))
    return ax


def _pair(models: Sequence[Any], columns: Any) -> list[int]:
    """Return the indices of the two columns on the axes."""
    widths = {np.shape(getattr(model, "means_", ()))[1:] for model in models}
    if len(widths) != 1 or len(width := widths.pop()) != 1:
        raise ParameterError("mixture_ellipses needs fitted Gaussian mixtures of the same columns.")
    if columns is None:
        if width != (2,):
            raise ParameterError(
                f"mixture_ellipses needs Gaussian mixtures fitted on 2 columns, but these have {width[0]}: choose two "
                "with columns=(0, 1)."
            )
        return [0, 1]
    pair = [int(j) for j in columns if isinstance(j, int | np.integer) and 0 <= j < width[0]]
    if len(pair) != 2 or pair[0] == pair[1] or len(columns) != 2:
        raise ParameterError(f"The 'columns' must be two different ints from 0 to {width[0] - 1}, not {columns!r}.")
    return pair


def _factors(model: Any, pair: list[int]) -> Array:
    """Return the Cholesky factor of the covariance of two columns for each component."""
    (k, d), covariances = np.shape(model.means_), np.asarray(model.covariances_)
    if model.covariance_type == "full":
        whole = covariances
    elif model.covariance_type == "tied":
        whole = np.broadcast_to(covariances, (k, d, d))
    else:
        whole = np.eye(d) * covariances.reshape(k, -1, 1)
    return np.linalg.cholesky(whole[:, pair][:, :, pair])


@inherit_docs(AXES)
def likelihood_trace(*models: Any, labels: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Plot the log-likelihood per row before each EM step.

    Parameters
    ----------
    *models : fitted mixtures
    labels : sequence of str, optional
        Names for the legend; by default there is no legend.
    """
    check_installed()
    if not models:
        raise ParameterError("likelihood_trace needs at least one fitted mixture.")
    if labels is not None and len(labels) != len(models):
        raise ParameterError(f"The 'labels' of likelihood_trace must be {len(models)} names, not {labels!r}.")
    ax = axes(ax)
    for k, model in enumerate(models):
        bounds = model.lower_bounds_
        name = None if labels is None else str(labels[k])
        ax.plot(np.arange(len(bounds)), bounds, color=colour(k), marker=marker(k), ms=3, lw=1.2, label=name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "EM step", "log-likelihood per row")
    if labels is not None:
        keyed(ax, corner="lower right")
    return ax
