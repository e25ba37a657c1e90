"""Gaussian mixtures of two columns: ellipses of their components, and the log-likelihood of EM steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.plotting.planes import Plane, principal_plane
from summula.plotting.slices import Slices
from summula.plotting.style import AXES, GREY, INK, axes, check_installed, colour, dress, key_text, keyed, marker

__all__ = ["likelihood_trace", "mixture_density", "mixture_ellipses"]

Array = NDArray[Any]

_POINTS = 120


@inherit_docs(AXES)
def mixture_ellipses(
    *models: Any, X: Any = None, probability: float = 0.9, columns: Sequence[Any] | None = None, ax: Any = None
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
    columns : two ints or names, optional
        Columns on the axes, if the models have more than two. By default the plane of the two largest principal
        components of X; ellipses are those of the marginal distributions in it.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.mixture import GaussianMixture
    >>> from summula.plotting import mixture_ellipses
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    >>> steps = [GaussianMixture(2, max_iter=m, random_state=0).fit(X) for m in (0, 50)]
    >>> ax = mixture_ellipses(*steps, X=X)
    >>> len(ax.lines)
    8
    """
    check_installed()
    if not models:
        raise ParameterError("mixture_ellipses needs at least one fitted GaussianMixture.")
    if not 0.0 < probability < 1.0:
        raise ParameterError(f"The 'probability' of mixture_ellipses must be between 0 and 1, not {probability!r}.")
    rows, native = _rows(models, X)
    plane = _plane(models, columns, rows)
    ax = axes(ax)
    if rows is not None:
        places, labels = plane(rows), np.asarray(models[-1].predict(native))
        for k in range(len(models[-1].means_)):
            here = places[labels == k]
            ax.plot(here[:, 0], here[:, 1], marker(k), color=colour(k), ms=3, alpha=0.35, mew=0)
    circle = np.stack([np.cos(angle := np.linspace(0.0, 2 * np.pi, _POINTS)), np.sin(angle)])
    radius = np.sqrt(-2.0 * np.log(1.0 - probability))  # of a standard normal distribution in the plane
    for step, model in enumerate(models, 1):
        for k, (mean, factor) in enumerate(zip(plane(model.means_), _factors(model, plane.directions), strict=True)):
            x, y = mean[:, None] + radius * factor @ circle
            ax.plot(x, y, color=colour(k), lw=1.4 if step == len(models) else 0.9, alpha=step / len(models))
    for k in range(len(models[-1].means_)):
        path = np.vstack([plane(model.means_[k : k + 1]) for model in models])
        ax.plot(path[:, 0], path[:, 1], "+-", color=GREY, ms=5, lw=0.8)
    dress(ax, *plane.names, plane.title)
    return ax


def _rows(models: Sequence[Any], X: Any) -> tuple[Array | None, Any]:
    """Return the rows as an array, and in the form that the models accept."""
    if X is None:
        return None, None
    slices = Slices(X, "mixture_ellipses", models[-1])
    rows = np.column_stack([slices.values(j) for j in range(len(slices.names))])
    return rows, X if slices.frame is None else slices.frame.to_native()


def _plane(models: Sequence[Any], columns: Any, rows: Array | None) -> Plane:
    """Return the plane of two columns, or of two principal components of the rows."""
    widths = {np.shape(getattr(model, "means_", ()))[1:] for model in models}
    if len(widths) != 1 or len(width := widths.pop()) != 1:
        raise ParameterError("mixture_ellipses needs fitted Gaussian mixtures of the same columns.")
    d = width[0]
    if d < 2:
        raise ParameterError("mixture_ellipses needs mixtures of at least two columns; draw one with mixture_density.")
    if columns is None and d > 2:
        if rows is None:
            raise ParameterError(f"The mixtures have {d} columns: choose two with columns=(0, 1), or pass rows X.")
        return principal_plane(rows)
    names = [str(name) for name in getattr(models[-1], "feature_names_in_", [f"x{j}" for j in range(d)])]
    pair = [names.index(j) if j in names else j for j in ((0, 1) if columns is None else columns)]
    ints = all(isinstance(j, int | np.integer) and 0 <= j < d for j in pair)
    if not ints or len(pair) != 2 or pair[0] == pair[1]:
        raise ParameterError(f"The 'columns' must be two different names or ints from 0 to {d - 1}, not {columns!r}.")
    return Plane(np.zeros(d), np.eye(d)[:, pair], (names[pair[0]], names[pair[1]]), "")


def _covariances(model: Any) -> Array:
    """Return the covariance matrices, of shape (n_components, d, d)."""
    (k, d), covariances = np.shape(model.means_), np.asarray(model.covariances_)
    if model.covariance_type == "full":
        return covariances
    if model.covariance_type == "tied":
        return np.broadcast_to(covariances, (k, d, d))
    return np.asarray(np.eye(d) * covariances.reshape(k, -1, 1))


def _factors(model: Any, directions: Array) -> Array:
    """Return a square root of the covariance in the plane for each component."""
    values, vectors = np.linalg.eigh(directions.T @ _covariances(model) @ directions)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


@inherit_docs(AXES)
def mixture_density(model: Any, X: Any = None, *, ax: Any = None) -> Any:
    """Plot the density of a Gaussian mixture of one column, that of its components, and a histogram of rows.

    Parameters
    ----------
    model : GaussianMixture fitted on one column
    X : array-like or frame of shape (n_samples, 1), optional
        Rows of the histogram.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.mixture import GaussianMixture
    >>> from summula.plotting import mixture_density
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    >>> ax = mixture_density(GaussianMixture(2, random_state=0).fit(X), X)
    >>> ax.get_ylabel(), len(ax.lines)
    ('density', 3)
    """
    check_installed()
    means = np.asarray(getattr(model, "means_", np.empty((0, 0))), np.float64)
    if means.ndim != 2 or means.shape[1] != 1:
        raise ParameterError(
            "mixture_density needs a Gaussian mixture fitted on one column; for more use mixture_ellipses."
        )
    mean, spread = means[:, 0], np.sqrt(_covariances(model)[:, 0, 0])
    rows = _rows([model], X)[0]
    ends = [mean - 4.0 * spread, mean + 4.0 * spread] + ([] if rows is None else [rows[:, 0]])
    u = np.linspace(np.concatenate(ends).min(), np.concatenate(ends).max(), 4 * _POINTS)
    parts = np.asarray(model.weights_)[:, None] * np.exp(-(((u - mean[:, None]) / spread[:, None]) ** 2) / 2)
    parts /= np.sqrt(2.0 * np.pi) * spread[:, None]
    ax = axes(ax)
    if rows is not None:
        ax.hist(rows[:, 0], bins="sqrt", density=True, color=GREY, alpha=0.35, label="rows")
    for k, part in enumerate(parts):
        ax.plot(u, part, color=colour(k), lw=1.2, ls="--", label=f"component {k}")
    ax.plot(u, parts.sum(axis=0), color=INK, lw=1.6, label="mixture")
    dress(ax, str(getattr(model, "feature_names_in_", ["x0"])[0]), "density")
    keyed(ax)
    return ax


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
        name = None if labels is None else key_text(labels[k])
        ax.plot(np.arange(len(bounds)), bounds, color=colour(k), marker=marker(k), ms=3, lw=1.2, label=name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "EM step", "log-likelihood per row")
    if labels is not None:
        keyed(ax, corner="lower right")
    return ax
