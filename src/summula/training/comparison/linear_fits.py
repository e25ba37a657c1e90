"""The best linear candidate fitted to all training rows, and an unpenalised fit for standard errors.

The report shows coefficients whichever candidate wins. Standard errors are those of an unpenalised fit to the same
encoded rows; there are none if there are too few rows for the number of columns, or if the fit takes too long.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from summula.core.errors import TimeLimitError
from summula.preprocessing import TableEncoder
from summula.training.comparison.candidates import Candidate
from summula.training.comparison.leaderboard import Entry, Leaderboard

__all__ = ["LinearFit", "linear_fit"]

_SECONDS = 2.0  # for each of the two fits
_ROWS_PER_COLUMN = 5
_UNPENALISED = {
    "LogisticRegression": Candidate("", "summula.linear_model:LogisticRegression", "classes", {"C": math.inf}),
    "PoissonRegressor": Candidate("", "summula.linear_model:PoissonRegressor", "numbers", {"alpha": 0.0}),
    "LinearRegression": Candidate("", "summula.linear_model:LinearRegression", "numbers"),
}


class LinearFit(NamedTuple):
    """A linear model of encoded rows.

    Attributes
    ----------
    name : str
        The candidate.
    encoder : TableEncoder
    model : estimator
        Fitted to all training rows, or to those of the first fold if time was short.
    unpenalised : estimator or None
        Unpenalised fit to the same rows.
    """

    name: str
    encoder: TableEncoder
    model: Any
    unpenalised: Any

    @property
    def is_penalised(self) -> bool:
        """Whether the candidate has a penalty."""
        return self.unpenalised is not self.model and type(self.model).__name__ != "LinearRegression"


def linear_fit(
    board: Leaderboard, best: Any, encoder: TableEncoder, n_rows: int, fit: Callable[[Candidate, float], Any]
) -> LinearFit | None:
    """Return the best linear candidate of a leaderboard.

    Parameters
    ----------
    board : Leaderboard
    best : estimator
        The final model of the best candidate.
    encoder : TableEncoder
        Encoder of linear models.
    n_rows : int
        Number of training rows.
    fit : callable
        Fits a candidate to all training rows within a time limit in seconds.

    Returns
    -------
    LinearFit or None
        None if no linear candidate was fitted.
    """
    entry = next((one for one in board.entries if hasattr(one.model, "coef_")), None)
    if entry is None:
        return None
    final = entry is board.best
    model = best if final else _fitted(fit, entry.candidate, entry, board) or entry.model
    if type(model).__name__ == "LinearRegression":
        return LinearFit(entry.name, encoder, model, model)
    width = len(encoder.get_feature_names_out())
    kind = type(model).__name__.removesuffix("CV")
    plain = _UNPENALISED.get(kind, _UNPENALISED["LinearRegression"])
    enough = n_rows >= _ROWS_PER_COLUMN * width and len(getattr(model, "classes_", (0, 1))) == 2
    unpenalised = _fitted(fit, plain, entry, board) if enough else None
    return LinearFit(entry.name, encoder, model, unpenalised)


def _fitted(fit: Callable[[Candidate, float], Any], candidate: Candidate, entry: Entry, board: Leaderboard) -> Any:
    """Return a fit within the time limit, or None; skipped if fits to the folds took too long already."""
    if board.interrupted or entry.rows is not None or 1.5 * max(entry.seconds) > _SECONDS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # without convergence there are no standard errors
        try:
            return fit(candidate, _SECONDS)
        except (ValueError, ArithmeticError, RuntimeError, TimeLimitError, Warning):
            return None
