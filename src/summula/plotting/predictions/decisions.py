"""Posterior probabilities and conditional risks as functions of one observation, and the optimal decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.plotting.style import AXES, axes, check_installed, colour, dress, keyed

__all__ = ["draw_decisions"]

Array = NDArray[np.float64]


@inherit_docs(AXES)
def draw_decisions(
    x: Array, posterior: Array, risks: Array, states: Sequence[Any], actions: Sequence[Any], *, ax: Any = None
) -> Any:
    """Plot posteriors (dashed), risks (solid), and the range of each decision as a background colour.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Observations, ascending.
    posterior : ndarray of shape (n, n_states)
    risks : ndarray of shape (n, n_actions)
    states, actions : sequence
        Names of the states and actions.
    """
    check_installed()
    ax = axes(ax)
    for k, state in enumerate(states):
        ax.plot(x, posterior[:, k], color=colour(k), lw=1.0, ls="--", label=f"P({state} | x)")
    for k, action in enumerate(actions):
        ax.plot(x, risks[:, k], color=colour(k), lw=1.8, label=f"risk of {action}")
    best = risks.argmin(axis=1)
    for k in range(len(actions)):
        ax.fill_between(x, 0, 1, where=best == k, color=colour(k), alpha=0.08, lw=0, transform=ax.get_xaxis_transform())
    dress(ax, "observation x", "probability, expected cost")
    keyed(ax)
    return ax
