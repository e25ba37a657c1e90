"""Bootstrap estimates of the prediction error of a learner.

Let f be fitted to all n rows, f_b to the b-th bootstrap sample, and I_ib = 1 if row i is not in sample b. For a loss L

    training error        err  = (1/n) sum_i L(y_i, f(x_i))                                                     (1)
    out-of-bag error      Err1 = (1/n) sum_i E_i,    E_i = sum_b I_ib L(y_i, f_b(x_i)) / sum_b I_ib             (2)
    .632 estimate         0.368 err + 0.632 Err1                                                                (3)
    no-information error  gamma = (1/n^2) sum_ij L(y_i, f(x_j))                                                 (4)
    relative overfitting  R = (Err1' - err) / (gamma - err) in [0, 1],     Err1' = min(Err1, gamma)             (5)
    .632+ estimate        (3) + (w - 0.632) (Err1' - err),     w = 0.632 / (1 - 0.368 R)                        (6)

with R = 0 unless both Err1 and gamma exceed err. Where Err1 <= gamma, (6) is (1 - w) err + w Err1. (2) is pessimistic,
since a sample has about 0.632 n distinct rows, (3) optimistic for learners that memorise their rows (err = 0); (6)
moves from (3) to (2) as R grows. The standard error of (2) is the delta method after the bootstrap, with N_ib the
number of copies of row i in sample b, and q_b = (1/n) sum_i I_ib L(y_i, f_b(x_i)):

    se^2 = sum_i D_i^2,   D_i = (2 + 1/(n-1)) (E_i - Err1) / n + (1 - 1/n)^-n (1/B) sum_b (N_ib - mean N_i) q_b   (7)

For (3) and (6) it is scaled by the ratio of the estimate to Err1.

Reference: Efron and Tibshirani (1997), "Improvements on cross-validation: the .632+ bootstrap method", JASA 92.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, ParameterError
from summula.model_selection.row_selection import count_rows, indexable, take_rows

__all__ = ["BootstrapError", "bootstrap_error"]

Array = NDArray[Any]
Loss = Callable[[Any, Any], Any]

_KINDS = ("632", "632+", "out_of_bag")
_FEW = 1e-12


@dataclass(frozen=True)
class BootstrapError:
    """An estimate of prediction error by the bootstrap.

    Attributes
    ----------
    estimate : float
        The estimate of the requested `kind`.
    standard_error : float
        Equation (7), which accounts for the sampling of the n rows, and includes the noise of finitely many resamples.
    kind : {"632", "632+", "out_of_bag"}
    out_of_bag, training_error, no_information : float
        Err1, err and gamma.
    relative_overfitting : float
        R in [0, 1]: 0 without overfitting, 1 if the learner does no better than without information.
    weight : float
        Weight w of the out-of-bag error in the estimate.
    n_resamples : int
    """

    estimate: float
    standard_error: float
    kind: str
    out_of_bag: float
    training_error: float
    no_information: float
    relative_overfitting: float
    weight: float
    n_resamples: int

    def __str__(self) -> str:
        name = {"632": ".632", "632+": ".632+", "out_of_bag": "out-of-bag"}[self.kind]
        return (
            f"{name} bootstrap error {self.estimate:.4g} (standard error {self.standard_error:.2g})\n"
            f"training error {self.training_error:.4g}, out-of-bag error {self.out_of_bag:.4g}, "
            f"relative overfitting {self.relative_overfitting:.2f}; {self.n_resamples} resamples"
        )


def bootstrap_error(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_resamples: int = 100,
    kind: str = "632+",
    loss: str | Loss | None = None,
    random_state: Any = None,
) -> BootstrapError:
    """Estimate the prediction error of a learner by the bootstrap.

    Parameters
    ----------
    estimator : classifier or regressor
        Fitted to all rows and to each resample; not modified itself.
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    n_resamples : int, default=100
        Number of bootstrap samples.
    kind : {"632+", "632", "out_of_bag"}, default="632+"
        Estimate (6), (3) or (2); ".632+" and ".632" are the same as the first two.
    loss : {"zero_one", "squared_error", "absolute_error"} or callable, optional
        Loss of a row; by default "zero_one" for classifiers and "squared_error" for regressors ("squared" and
        "absolute" are accepted, too); the mean over several targets. A callable takes arrays of true and predicted
        values and returns one loss per row.
    random_state : int, Generator or None
        Seed of the resamples.

    Returns
    -------
    BootstrapError

    References
    ----------
    Efron and Tibshirani (1997), "Improvements on cross-validation: the .632+ bootstrap method", JASA 92.

    Examples
    --------
    Labels that are independent of x: the true error of every classifier is 1/2. A nearest neighbour classifier has
    training error 0, and its overfitting is detected.

    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from summula.model_selection import bootstrap_error
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    >>> found = bootstrap_error(KNeighborsClassifier(1), X, y, random_state=0)
    >>> found.training_error, round(found.relative_overfitting, 2), abs(found.estimate - 0.5) < 0.1
    (0.0, 1.0, True)
    """
    kind = kind.removeprefix(".") if isinstance(kind, str) else kind
    if kind not in _KINDS:
        raise ParameterError(f"kind must be one of {', '.join(map(repr, _KINDS))}; got {kind!r}.")
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 2:
        raise ParameterError(f"n_resamples must be an int >= 2; got {n_resamples!r}.")
    X, y = indexable(X), indexable(y, "y")
    n = count_rows(X)
    if n < 3 or count_rows(y) != n:
        raise DataError(f"The bootstrap needs at least 3 rows and one target per row; got {n} and {count_rows(y)}.")
    named = ("zero_one" if is_classifier(estimator) else "squared") if loss is None else loss
    named = named.removesuffix("_error") if isinstance(named, str) else named
    of_rows = _loss_named(named)
    truth = _as_numbers(y) if named in ("squared", "absolute") else np.asarray(y)
    predicted = _shaped(clone(estimator).fit(X, y).predict(X), truth)
    err = float(np.mean(of_rows(truth, predicted)))
    gamma = _no_information(named, of_rows, truth, predicted)
    losses, copies = _resampled(
        estimator, X, y, truth, of_rows, np.random.default_rng(draw_seed(random_state)), n_resamples
    )
    return _estimate(kind, losses, copies, err, gamma)


def _loss_named(loss: Any) -> Loss:
    if callable(loss):
        return lambda y, p: _checked(loss(y, p), len(y))
    losses: dict[str, Loss] = {
        "zero_one": lambda y, p: _of_targets((y != p).astype(np.float64)),
        "squared": lambda y, p: _of_targets(np.square(y - p)),
        "absolute": lambda y, p: _of_targets(np.abs(y - p)),
    }
    if not isinstance(loss, str) or loss not in losses:
        raise ParameterError(f"loss must be one of {', '.join(map(repr, losses))}, or a callable; got {loss!r}.")
    return losses[loss]


def _of_targets(losses: Array) -> Array:
    """Return the mean loss of each row over the targets."""
    return losses if losses.ndim == 1 else np.asarray(losses.reshape(len(losses), -1).mean(axis=1))


def _as_numbers(y: Any) -> Array:
    try:
        return np.asarray(y).astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("y contains labels, whose differences are not defined: use loss='zero_one'.") from None


def _shaped(predicted: Any, truth: Array) -> Array:
    """Return predictions in the shape of the true values, so that y of shape (n, 1) is one target."""
    found = np.asarray(predicted)
    return found.reshape(truth.shape) if found.size == truth.size else found


def _checked(values: Any, n: int) -> Array:
    found = np.asarray(values, np.float64)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise DataError(f"The loss must return {n} finite numbers, one per row; it returned shape {found.shape}.")
    return found


def _resampled(
    estimator: Any, X: Any, y: Any, truth: Array, loss: Loss, rng: np.random.Generator, n_resamples: int
) -> tuple[Array, Array]:
    """Return the losses of the out-of-bag rows (NaN for others) and the numbers of copies, one row per resample."""
    n = count_rows(X)
    losses, copies = np.full((n_resamples, n), np.nan), np.zeros((n_resamples, n), np.int64)
    has_classes = is_classifier(estimator) and truth.ndim == 1 and len(np.unique(truth)) > 1
    for b in range(n_resamples):
        rows = _drawn(rng, n, truth if has_classes else None)
        copies[b] = np.bincount(rows, minlength=n)
        left_out = np.flatnonzero(copies[b] == 0)
        model = clone(estimator).fit(take_rows(X, rows), take_rows(y, rows))
        losses[b, left_out] = loss(truth[left_out], _shaped(model.predict(take_rows(X, left_out)), truth[left_out]))
    return losses, copies


def _drawn(rng: np.random.Generator, n: int, labels: Array | None) -> Array:
    """Draw a sample that omits some rows, with at least two classes for classifiers."""
    while True:
        rows = rng.integers(0, n, n)
        if len(np.unique(rows)) < n and (labels is None or (labels[rows] != labels[rows[0]]).any()):
            return rows


def _no_information(name: Any, loss: Loss, y: Array, predicted: Array) -> float:
    """Equation (4): the error if y were independent of x."""
    if isinstance(name, str):
        of_target = {"zero_one": _mismatch, "squared": _mean_square, "absolute": _mean_distance}[name]
        targets = zip(y.reshape(len(y), -1).T, predicted.reshape(len(y), -1).T, strict=True)
        return float(np.mean([of_target(*one) for one in targets]))
    values, counts = np.unique(predicted, axis=0, return_counts=True)
    losses = [np.mean(loss(y, np.broadcast_to(one, y.shape).copy())) for one in values]
    return float(np.average(losses, weights=counts))


def _mismatch(y: Array, p: Array) -> float:
    """Return the fraction of all pairs (i, j) with y_i != p_j."""
    values, counts = np.unique(p, return_counts=True)
    return 1.0 - sum(float(np.mean(y == one)) * int(count) for one, count in zip(values, counts, strict=True)) / len(p)


def _mean_square(y: Array, p: Array) -> float:
    """Return the mean of (y_i - p_j)^2 over all pairs."""
    return float(y.var() + p.var() + (y.mean() - p.mean()) ** 2)


def _mean_distance(y: Array, p: Array) -> float:
    """Mean of |y_i - p_j| over all pairs, from sums of the sorted y: for each p_j those below it and those above."""
    y = np.sort(y)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    below = np.searchsorted(y, p)
    distances = p * below - sums[below] + (sums[-1] - sums[below]) - p * (len(y) - below)
    return float(distances.mean() / len(y))


def _estimate(kind: str, losses: Array, copies: Array, err: float, gamma: float) -> BootstrapError:
    """Equations (2) to (7)."""
    resamples, n = losses.shape
    evaluated = ~np.isnan(losses)
    times = evaluated.sum(axis=0)
    if not times.any():
        raise DataError("No row was ever left out of a resample: use more resamples.")
    filled = np.where(evaluated, losses, 0.0)
    by_row = filled.sum(axis=0)[times > 0] / times[times > 0]
    out_of_bag = float(by_row.mean())
    capped = min(out_of_bag, gamma)
    overfits = capped > err and gamma > err
    ratio = min((capped - err) / (gamma - err), 1.0) if overfits else 0.0
    weight = {"out_of_bag": 1.0, "632": 0.632, "632+": 0.632 / (1 - 0.368 * ratio)}[kind]
    estimate = (1 - weight) * err + weight * out_of_bag
    if kind == "632+":
        estimate = 0.368 * err + 0.632 * out_of_bag + (weight - 0.632) * (capped - err)
    # (7); rows that were never left out are assigned the mean error
    row_error = np.full(n, out_of_bag)
    row_error[times > 0] = by_row
    q = filled.mean(axis=1)
    slopes = (copies - copies.mean(axis=0)).T @ q / resamples
    D = (2 + 1 / (n - 1)) * (row_error - out_of_bag) / n + (1 - 1 / n) ** -n * slopes
    scale = estimate / out_of_bag if out_of_bag > _FEW else 1.0
    error = math.sqrt(float(D @ D)) * scale
    return BootstrapError(estimate, error, kind, out_of_bag, err, gamma, ratio, weight, resamples)
