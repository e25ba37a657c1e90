"""Regularisation paths: coefficients as functions of the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError
from summula.plotting.style import AXES, GREY, axes, check_installed, colour, dress, key_text, keyed, legend_outside

__all__ = ["coefficient_paths"]

_NAMED = 8  # number of coefficients drawn with a colour and a label: the largest at the end of the path


@inherit_docs(AXES)
def coefficient_paths(
    alphas: Any, coefs: Any, *, names: Sequence[str] | None = None, chosen: float | None = None, ax: Any = None
) -> Any:
    """Plot coefficients against the penalty, which decreases to the right, on a logarithmic scale.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        Penalties.
    coefs : array-like of shape (n_features, n_alphas)
        Coefficients, as returned by `lasso_path` and `enet_path`.
    names : sequence of str, optional
        Names of the columns; by default x0, x1, ... The eight largest at the smallest penalty are labelled.
    chosen : float, optional
        Penalty to mark, such as `LassoCV.alpha_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.linear_model import lasso_path
    >>> from summula.plotting import coefficient_paths
    >>> alphas, coefs, _ = lasso_path(*load_diabetes(return_X_y=True), alphas=20)
    >>> ax = coefficient_paths(alphas, coefs, names=["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"])
    >>> len(ax.lines), ax.get_xscale()
    (10, 'log')
    """
    check_installed()
    alphas, coefs = np.asarray(alphas, np.float64), np.asarray(coefs, np.float64)
    if coefs.ndim != 2 or alphas.ndim != 1 or coefs.shape[1] != len(alphas):
        raise DataError(
            f"coefs has shape {coefs.shape} and alphas {alphas.shape}; expected (n_features, n_alphas) and (n_alphas,)."
        )
    if not (alphas > 0).all():
        raise DataError(f"All alphas must be positive on a logarithmic scale; the smallest is {alphas.min():g}.")
    labels = [f"x{j}" for j in range(len(coefs))] if names is None else [str(name) for name in names]
    if len(labels) != len(coefs):
        raise DataError(f"There are {len(coefs)} coefficients but {len(labels)} names; pass one name for each.")
    ax = axes(ax)
    end = np.abs(coefs[:, int(alphas.argmin())])
    largest = [int(j) for j in np.argsort(-end, kind="stable")[:_NAMED] if end[j] > 0]
    for j, row in enumerate(coefs):
        if j not in largest:
            ax.plot(alphas, row, color=GREY, linewidth=0.6, alpha=0.6)
    for k, j in enumerate(largest):
        ax.plot(alphas, coefs[j], color=colour(k), linewidth=1.5, label=key_text(labels[j]))
    ax.set_xscale("log")
    ends = [float(alphas.max()), float(alphas.min())]
    if chosen is not None and chosen > 0:  # with a margin, if it is outside of the path
        ends = [max(ends[0], 1.2 * chosen) if chosen > ends[0] else ends[0], min(ends[1], chosen)]
    ax.set_xlim(*ends)
    if chosen is not None:
        ax.axvline(chosen, color=GREY, linewidth=1.0, linestyle="--", label=f"alpha = {chosen:.3g}")
    dress(ax, "alpha", "coefficient")
    if largest or chosen is not None:
        keyed(ax)
        legend_outside(ax)  # lines fill the axes
    return ax
