"""Empirical risk, and empirical risk minimisation (ERM) over a finite class of hypotheses.

    R_S(h) = (1 / n) sum_i loss(y_i, h(x_i)),     h_S = argmin over h in H of R_S(h)                           (1)

See `sample_sizes.py` for the relation between empirical and true risk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.certification.rows import of_blocks
from summula.core.errors import DataError, ParameterError

__all__ = ["ERM", "empirical_risk", "erm"]

_LOSSES = ("zero_one", "squared", "absolute")


class ERM(NamedTuple):
    """Result of empirical risk minimisation.

    Attributes
    ----------
    hypothesis : callable or estimator
        The (first) hypothesis with the smallest risk.
    chosen : int or str
        Its index, or its key if the class is a dict.
    risk : float
        Its empirical risk.
    risks : ndarray
        Empirical risks of all hypotheses, in order.
    """

    hypothesis: Any
    chosen: Any
    risk: float
    risks: NDArray[np.float64]


def empirical_risk(hypothesis: Any, X: Any, y: Any, loss: Any = "zero_one") -> float:
    """Compute the mean loss of a hypothesis on a sample (1).

    Parameters
    ----------
    hypothesis : callable or estimator
        A function that returns a prediction for each row of X, or an object with `predict`.
    X : {array-like, frame, sparse matrix, scan, Dask collection}
    y : array-like, or name of a column of X
    loss : {"zero_one", "squared_error", "absolute_error"} or callable
        "squared" and "absolute" are accepted, too. A function is called with the true and the predicted values.

    Returns
    -------
    float

    Examples
    --------
    >>> empirical_risk(lambda X: X[:, 0] > 0, [[-1.0], [1.0], [2.0], [3.0]], [False, True, True, False])
    0.25
    """
    return erm([hypothesis], X, y, loss).risk


def erm(hypotheses: Sequence[Any] | Mapping[Any, Any], X: Any, y: Any, loss: Any = "zero_one") -> ERM:
    """Minimise the empirical risk (1) over a finite class of hypotheses.

    Parameters
    ----------
    hypotheses : list or dict of callables or estimators
        The class of hypotheses.
    X, y, loss
        As in `empirical_risk`.

    Returns
    -------
    ERM

    Examples
    --------
    >>> stumps = {t: lambda X, t=t: X[:, 0] > t for t in (0.0, 1.5, 2.5)}
    >>> found = erm(stumps, [[-1.0], [1.0], [2.0], [3.0]], [False, False, True, True])
    >>> found.chosen, found.risk
    (1.5, 0.0)
    """
    listed = list(hypotheses.values()) if isinstance(hypotheses, Mapping) else list(hypotheses)
    names = list(hypotheses) if isinstance(hypotheses, Mapping) else list(range(len(listed)))
    if not listed:
        raise ParameterError("The class of hypotheses is empty; pass at least one.")
    loss = loss.removesuffix("_error") if isinstance(loss, str) else loss
    if not callable(loss) and loss not in _LOSSES:
        raise ParameterError(f"loss must be one of {', '.join(map(repr, _LOSSES))} or a function; got {loss!r}.")

    def of_block(block: Any, target: Any) -> NDArray[np.float64]:
        target = np.asarray(target)
        return np.column_stack([_losses(loss, target, _predicted(h, block, len(target))) for h in listed])

    losses = np.concatenate(of_blocks(of_block, X, y, listed[0]))
    if not len(losses):
        raise DataError("X has no rows; the empirical risk needs at least one.")
    if not np.isfinite(losses).all():
        row, place = np.argwhere(~np.isfinite(losses))[0]
        raise DataError(
            f"The loss of hypothesis {names[place]!r} is {losses[row, place]} at row {row}; losses must be finite: "
            "check y and the predictions there."
        )
    risks = np.array([math.fsum(column) / len(column) for column in losses.T])
    best = int(np.argmin(risks))
    return ERM(listed[best], names[best], float(risks[best]), risks)


def _predicted(hypothesis: Any, X: Any, rows: int) -> NDArray[Any]:
    if not hasattr(hypothesis, "predict") and not callable(hypothesis):
        raise ParameterError(f"A hypothesis must be a function or have a predict method; got {hypothesis!r}.")
    values = np.asarray(hypothesis.predict(X) if hasattr(hypothesis, "predict") else hypothesis(X))
    if values.shape[:1] != (rows,):
        raise DataError(f"A hypothesis returned predictions of shape {values.shape} for {rows} rows; need one per row.")
    return values


def _losses(loss: Any, y: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    if callable(loss):
        found = np.asarray(loss(y, predicted), np.float64)
        if found.shape != (len(y),):
            raise DataError(f"The loss must return one number for each of {len(y)} rows; it returned {found.shape}.")
        return found
    if loss == "zero_one":
        return np.asarray(predicted != y, np.float64)
    try:
        difference = predicted.astype(np.float64) - y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"loss={loss!r} needs numbers, and y or the predictions are not: use 'zero_one'.") from None
    return np.asarray(difference**2 if loss == "squared" else np.abs(difference))
