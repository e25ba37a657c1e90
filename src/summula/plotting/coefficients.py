"""Regularisation paths: how coefficients leave zero as the penalty falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from summula.core.errors import DataError
from summula.plotting.style import GREY, axes, check_installed, colour, dress, keyed

__all__ = ["coefficient_paths"]

_NAMED = 8  # lines that get a colour and a name: those that end largest


def coefficient_paths(
    alphas: Any, coefs: Any, *, names: Sequence[str] | None = None, chosen: float | None = None, ax: Any = None
) -> Any:
    """Draw coefficients against the penalty, which falls to the right, on a logarithmic scale.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
    coefs : array-like of shape (n_features, n_alphas)
        As `lasso_path` and `enet_path` give them.
    names : sequence of str, optional
        Names of the columns; x0, x1, ... by default. The eight that end largest are named.
    chosen : float, optional
        An alpha to mark, such as `LassoCV.alpha_`.
    ax : matplotlib Axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib import pyplot
    >>> from summula.linear_model import lasso_path
    >>> from summula.plotting import coefficient_paths
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> alphas, coefs, _ = lasso_path(X, X[:, 0] - X[:, 2], alphas=20)
    >>> ax = coefficient_paths(alphas, coefs, names=["a", "b", "c", "d"])
    >>> len(ax.lines), ax.get_xscale()
    (4, 'log')
    >>> pyplot.close(ax.figure)
    """
    check_installed()
    alphas, coefs = np.asarray(alphas, np.float64), np.asarray(coefs, np.float64)
    if coefs.ndim != 2 or alphas.ndim != 1 or coefs.shape[1] != len(alphas):
        raise DataError(
            f"coefs has shape {coefs.shape} and alphas {alphas.shape}; give one row a column of X, one column an alpha."
        )
    if not (alphas > 0).all():
        raise DataError(f"Every alpha must be above 0 on a logarithmic scale; the least is {alphas.min():g}.")
    labels = [f"x{j}" for j in range(len(coefs))] if names is None else [str(name) for name in names]
    if len(labels) != len(coefs):
        raise DataError(f"There are {len(coefs)} coefficients and {len(labels)} names; give a name for each.")
    ax = axes(ax)
    end = np.abs(coefs[:, int(alphas.argmin())])
    largest = [int(j) for j in np.argsort(-end, kind="stable")[:_NAMED] if end[j] > 0]
    for j, row in enumerate(coefs):
        if j not in largest:
            ax.plot(alphas, row, color=GREY, linewidth=0.6, alpha=0.6)
    for k, j in enumerate(largest):
        ax.plot(alphas, coefs[j], color=colour(k), linewidth=1.5, label=labels[j])
    ax.set_xscale("log")
    ax.set_xlim(alphas.max(), alphas.min())
    if chosen is not None:
        ax.axvline(chosen, color=GREY, linewidth=1.0, linestyle="--", label=f"alpha = {chosen:.3g}")
    dress(ax, "alpha", "coefficient")
    if largest or chosen is not None:
        keyed(ax, corner="upper left")
    return ax
