"""Bias, variance and noise of a learner, estimated by fitting it to many samples.

Let y = t(x) + e with E[e | x] = 0, and f_S the function that a learner fits to a random sample S. With
f(x) = E_S[f_S(x)], the squared error on a new row is on average

    E[(y - f_S(x))^2] = E[(f(x) - t(x))^2] + E[(f_S(x) - f(x))^2] + E[e^2]                                      (1)
                               bias^2              variance           noise

From R fits, with means f and sample variances s^2 (divisor R - 1) of their predictions at m fixed rows,

    variance = mean of s^2,        bias^2 = mean of (f - t)^2 - s^2 / R                                         (2)

The last term corrects for the variance of the mean of R fits: both estimates are unbiased, so a bias of 0 may come out
slightly negative. Their sum is exactly the mean of (f_S - t)^2 over all fits and rows. Standard errors are those of the
jackknife over fits (for the noise: over rows).
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
from summula.core.estimator.input.argument_values import takes_arguments

__all__ = ["BiasVariance", "bias_variance"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BiasVariance:
    """Components of the mean squared error of a learner (1), each with its standard error.

    Attributes
    ----------
    bias_squared, variance, noise : float
        Without `truth` the noise cannot be distinguished from the bias: `noise` is 0, and `bias_squared` contains it.
    error : float
        Mean squared error of all fits on the test rows, computed directly.
    bias_squared_se, variance_se, noise_se, error_se : float
        Standard errors.
    X : array or frame of m rows
        The test rows.
    mean_prediction, prediction_variance : ndarray of shape (m,)
        Mean and variance over the fits, for each test row.
    n_fits : int
    """

    bias_squared: float
    variance: float
    noise: float
    error: float
    bias_squared_se: float
    variance_se: float
    noise_se: float
    error_se: float
    X: Any
    mean_prediction: Array
    prediction_variance: Array
    n_fits: int

    def __str__(self) -> str:
        parts = [("bias^2", self.bias_squared, self.bias_squared_se), ("variance", self.variance, self.variance_se)]
        parts += [("noise", self.noise, self.noise_se), ("squared error", self.error, self.error_se)]
        lines = [f"{name:<14}{value:>12.5g}   (standard error {se:.2g})" for name, value, se in parts]
        return "\n".join([*lines, f"{self.n_fits} fits, {len(self.mean_prediction)} test rows"])


def bias_variance(
    estimator: Any,
    sampler: Callable[[np.random.Generator], tuple[Any, Any]],
    truth: Callable[[Any], Any] | None = None,
    *,
    test: tuple[Any, Any] | None = None,
    n_fits: int = 100,
    random_state: Any = None,
) -> BiasVariance:
    """Estimate the bias-variance decomposition (1) of a regressor from user-supplied samples.

    Parameters
    ----------
    estimator : regressor
        A clone is fitted to each sample. With an integer `random_state` of its own, all fits share its random numbers,
        and their variance is that of the samples alone.
    sampler : callable
        `sampler(rng)` draws a training sample (X, y) with a `numpy.random.Generator`.
    truth : callable, optional
        `truth(X)` is the mean of y given x, for each row. Without it bias and noise are estimated jointly.
    test : tuple of X and y, optional
        Rows to predict; by default another sample.
    n_fits : int, default=100
        Number of samples, at least 3.
    random_state : int, Generator or None
        Seed of the samples.

    Returns
    -------
    BiasVariance

    References
    ----------
    Geman, Bienenstock and Doursat (1992), "Neural networks and the bias/variance dilemma", Neural Computation 4.

    Examples
    --------
    A line has bias where the truth is a curve, a polynomial of degree 7 has variance:

    >>> import numpy as np
    >>> from summula.linear_model import PolynomialRegression
    >>> def sampler(rng):
    ...     X = rng.uniform(-1.0, 1.0, (40, 1))
    ...     return X, np.sin(3.0 * X[:, 0]) + rng.normal(0.0, 0.3, 40)
    >>> def truth(X):
    ...     return np.sin(3.0 * X[:, 0])
    >>> for degree in (1, 3, 7):
    ...     found = bias_variance(PolynomialRegression(degree), sampler, truth, random_state=0)
    ...     print(degree, f"{abs(found.bias_squared):.2f} {found.variance:.2f} {found.noise:.2f}")
    1 0.17 0.02 0.07
    3 0.00 0.01 0.07
    7 0.00 0.07 0.07
    """
    if not hasattr(estimator, "fit") or not takes_arguments(sampler, 1):
        raise ParameterError(
            "bias_variance needs an estimator and a function sampler(rng) that draws a sample (X, y); got "
            f"{estimator!r} and {sampler!r}."
        )
    if is_classifier(estimator):
        raise ParameterError(
            f"{type(estimator).__name__} predicts classes, and (1) is about squared error: pass a regressor, fitted to "
            "0 and 1 for two classes."
        )
    if isinstance(n_fits, bool) or not isinstance(n_fits, int | np.integer) or n_fits < 3:
        raise ParameterError(f"n_fits must be an int >= 3; got {n_fits!r}.")
    seed = draw_seed(random_state)
    X, y = _drawn(sampler, seed, 0) if test is None else test
    y = _numbers(y, "y of the test rows", None)
    F = np.array([_prediction(estimator, _drawn(sampler, seed, r), X, len(y)) for r in range(1, n_fits + 1)])
    t = y if truth is None else _numbers(truth(X), "truth(X)", len(y))
    by_fit, mean, spread = F.sum(axis=0), F.mean(axis=0), F.var(axis=0, ddof=1)
    variance = float(spread.mean())
    error = ((F - y) ** 2).mean(axis=1)
    bias_squared = float(((F - t) ** 2).mean()) - variance
    noise = (y - t) ** 2
    # The jackknife: the same estimates without each of the fits.
    without = n_fits - 1
    means = (by_fit - F) / without
    squares = ((F - mean) ** 2).sum(axis=0)
    # sum of squares about the mean without fit r: that about the mean of all, less n / (n - 1) (f_r - mean)^2
    variances = ((squares - (n_fits / without) * (F - mean) ** 2) / (without - 1)).mean(axis=1)
    biases = ((means - t) ** 2).mean(axis=1) - variances / without
    return BiasVariance(
        bias_squared, variance, float(noise.mean()), float(error.mean()),
        _jackknife_error(biases), _jackknife_error(variances), _mean_error(noise), _mean_error(error),
        X, mean, spread, int(n_fits),
    )  # fmt: skip


def _drawn(sampler: Callable[[np.random.Generator], Any], seed: int, r: int) -> tuple[Any, Any]:
    drawn = sampler(np.random.default_rng([seed, r]))
    if not isinstance(drawn, tuple) or len(drawn) != 2:
        raise DataError(f"sampler(rng) must return a tuple of X and y; got {type(drawn).__name__}.")
    return drawn


def _prediction(estimator: Any, sample: tuple[Any, Any], X: Any, rows: int) -> Array:
    return _numbers(clone(estimator).fit(*sample).predict(X), f"predict of {type(estimator).__name__}", rows)


def _numbers(values: Any, what: str, rows: int | None) -> Array:
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} must contain numbers.") from None
    if found.ndim != 1 or not len(found) or (rows is not None and len(found) != rows):
        raise DataError(f"{what} must contain {'one number' if rows is None else f'{rows} numbers, one'} per row; got "
                        f"an array of shape {found.shape}.")  # fmt: skip
    if not np.isfinite(found).all():
        raise DataError(f"{what} is {found[~np.isfinite(found)][0]} at row {int(np.argmin(np.isfinite(found)))}.")
    return found


def _jackknife_error(values: Array) -> float:
    n = len(values)
    return math.sqrt((n - 1) / n * float(((values - values.mean()) ** 2).sum()))


def _mean_error(values: Array) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
