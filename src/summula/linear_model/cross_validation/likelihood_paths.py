"""The models of a cross-validated likelihood along its grid, and scikit-learn's attributes for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.linear_model.cross_validation.likelihood_grid import Grid

__all__ = ["Path", "path_attributes"]

Array = NDArray[Any]


class Path(NamedTuple):
    """The models of one split and one L1 ratio, in the order of the Cs, and their scores."""

    coef: Array  # (Cs, K, d)
    intercept: Array  # (Cs, K)
    steps: Array
    scores: Array


def path_attributes(
    model: Any, grid: Grid, scores: Array, paths: list[list[Path]], chosen: tuple[float, float], legacy: bool
) -> dict[str, Any]:
    """Return scikit-learn's attributes, in its older or newer shapes; `scores` has shape (ratios, splits, Cs)."""
    found: dict[str, Any] = {"Cs_": grid.Cs}
    found["l1_ratios_"] = np.asarray([None] if grid.given is None else grid.given)
    coefs = np.array([[path.coef for path in of_ratio] for of_ratio in paths])  # (ratios, splits, Cs, K, d)
    if model.fit_intercept:
        last = np.array([[path.intercept for path in of_ratio] for of_ratio in paths])
        coefs = np.concatenate([coefs, last[..., None]], axis=-1)
    steps = np.array([[path.steps for path in of_ratio] for of_ratio in paths])
    coefs, scores, steps = (np.swapaxes(values, 0, 1) for values in (coefs, scores, steps))
    if not legacy:
        C, ratio = chosen
        return found | {"C_": C, "l1_ratio_": ratio, "coefs_paths_": coefs, "scores_": scores, "n_iter_": steps}
    K = coefs.shape[3]
    labels = model.classes_[1:] if K == 1 else model.classes_
    C, ratio = chosen
    shown = None if grid.given is None and model.refit else ratio
    found |= {"C_": np.full(K, C), "l1_ratio_": np.array([shown] * K)}
    by_C = np.swapaxes(scores, 1, 2)  # (splits, Cs, ratios)
    of_class = np.moveaxis(coefs, (3, 1), (0, 3))  # (K, splits, Cs, ratios, d)
    each = np.swapaxes(steps, 1, 2)[None]
    if grid.given is None:
        by_C, of_class, each = by_C[..., 0], of_class[:, :, :, 0], each[..., 0]
    found["scores_"] = {label: by_C.copy() for label in labels}
    found["coefs_paths_"] = dict(zip(labels, of_class, strict=True))
    return found | {"n_iter_": each}
