"""Plots of lasso and elastic net: coefficients as functions of the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from summula.core.data.frames import is_frame, opened
from summula.core.errors import DataError
from summula.plotting.fitting.coefficients import coefficient_paths
from summula.plotting.style import check_installed

__all__ = ["draw_path"]


def draw_path(model: Any, X: Any, y: Any, alphas: int, ax: Any) -> Any:
    """Plot the path of the coefficients on some rows, and mark the penalty of a fitted model."""
    from summula.linear_model.l1.paths import enet_path

    check_installed()
    check_is_fitted(model)
    name = type(model).__name__
    if X is None or y is None:
        raise DataError(f"The plot of {name} is its regularisation path: pass the rows, summula.plot(model, X, y).")
    names = getattr(model, "feature_names_in_", None)
    if is_frame(X):
        frame = opened(X)
        y = frame.get_column(y).to_numpy() if isinstance(y, str) else y
        X = frame.select(list(names)).to_numpy() if names is not None else frame.to_numpy()
    rows, targets = np.asarray(X, np.float64), np.asarray(y, np.float64)
    if rows.ndim != 2 or targets.shape != rows.shape[:1]:
        raise DataError(f"X has shape {rows.shape} and y {targets.shape}; the path is plotted for one target only.")
    if model.fit_intercept:  # paths have none
        rows, targets = rows - rows.mean(axis=0), targets - targets.mean()
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    chosen = float(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    found, coefs, _ = enet_path(rows, targets, l1_ratio=float(ratio), alphas=alphas, positive=model.positive)
    return coefficient_paths(found, coefs, names=names, chosen=chosen if chosen > 0 else None, ax=ax)
