"""Entropy, information, impurity and divergence, in nats unless a base is given.

    H(X) = - sum_x p(x) log p(x),        H(Y | X) = - sum_xy p(x, y) log p(y | x)                               (1)
    I(X; Y) = H(Y) - H(Y | X) = KL(p(x, y) || p(x) p(y)),        Gini(X) = 1 - sum_x p(x)^2                     (2)
    KL(p || q) = E_p[log p(x) / q(x)] >= 0                                                                      (3)
    of normals: 1/2 [tr(S_q^-1 S_p) + (m_q - m_p)' S_q^-1 (m_q - m_p) - d + log |S_q| / |S_p|]                  (4)
    Jensen: E[f(X)] - f(E[X]) >= 0 for convex f                                                                 (5)

(3) is Jensen's inequality for f = -log. If a divergence has no closed form, it is estimated by the mean of
log p(x) / q(x) over a sample of p, with a confidence interval by the central limit theorem. Reference: Cover and
Thomas, Elements of Information Theory, chapters 2 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import entr, ndtri, rel_entr

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.stats.bounds import check_delta
from summula.stats.multivariate_normal import MultivariateNormal

__all__ = [
    "SampledDivergence",
    "conditional_entropy",
    "entropy",
    "gini_impurity",
    "has_pmf",
    "jensen_gap",
    "kl_divergence",
    "mutual_information",
]

Array = NDArray[np.float64]

_ROUNDING = 1e-9  # tolerance for the sum of probabilities, per entry


class SampledDivergence(NamedTuple):
    """A divergence estimated from a sample.

    Attributes
    ----------
    value : float
        Mean of log p(x) / q(x).
    lower, upper : float
        One-sided confidence bounds, each with error probability about delta (central limit theorem).
    n : int
        Sample size.
    """

    value: float
    lower: float
    upper: float
    n: int


def entropy(p: ArrayLike, *, base: float | None = None, axis: int | None = -1) -> Any:
    """Compute the entropy (1) of a discrete distribution.

    Parameters
    ----------
    p : array-like
        Probabilities that sum to 1, or counts (integers).
    base : float, optional
        Base of the logarithm; 2 gives bits. By default the natural logarithm.
    axis : int or None, default=-1
        Axis of the outcomes; None treats the whole array as one distribution.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> entropy([0.5, 0.5], base=2)
    1.0
    >>> entropy([[9, 1], [5, 5]], base=2).round(3)
    array([0.469, 1.   ])
    """
    return _float(entr(_distribution(p, "p", axis)).sum(axis=axis) / _log_base(base))


@inherit_docs(entropy)
def gini_impurity(p: ArrayLike, *, axis: int | None = -1) -> Any:
    """Compute the Gini impurity (2): the probability that two independent draws differ.

    Parameters
    ----------
    p : array-like
        Probabilities that sum to 1, or counts.

    Examples
    --------
    >>> gini_impurity([3, 1])
    0.375
    """
    return _float(1.0 - (_distribution(p, "p", axis) ** 2).sum(axis=axis))


def conditional_entropy(joint: ArrayLike, *, base: float | None = None) -> float:
    """Compute the conditional entropy H(Y | X) (1).

    Parameters
    ----------
    joint : array-like of shape (n_x, n_y)
        Joint probabilities, or counts, of X (rows) and Y (columns).
    base : float, optional
        Base of the logarithm. By default the natural logarithm.

    Returns
    -------
    float

    Examples
    --------
    >>> conditional_entropy([[1, 0], [0, 1]])  # X determines Y
    0.0
    """
    table = _table(joint)
    return float(_entropy(table) - _entropy(table.sum(axis=1))) / _log_base(base)


@inherit_docs(conditional_entropy)
def mutual_information(joint: ArrayLike, *, base: float | None = None) -> float:
    """Compute the mutual information I(X; Y) (2): the information gain of a split.

    Examples
    --------
    >>> mutual_information([[5, 0], [0, 5]], base=2), mutual_information([[2, 2], [3, 3]])
    (1.0, 0.0)
    """
    table = _table(joint)
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return max(float(rel_entr(table, independent).sum()), 0.0) / _log_base(base)


def kl_divergence(
    p: Any,
    q: Any,
    *,
    base: float | None = None,
    samples: Any = None,
    n_samples: int | None = None,
    delta: float = 0.05,
    random_state: int = 0,
) -> Any:
    """Compute the Kullback-Leibler divergence KL(p || q) (3).

    Parameters
    ----------
    p, q : array-like, MultivariateNormal, distribution or callable
        For two arrays of probabilities (or counts) the sum is computed, for two normal distributions the closed form
        (4). Otherwise the divergence is estimated from a sample of p, and both must be distributions with `logpdf` or
        `logpmf` (such as frozen `scipy.stats` distributions) or functions that return log-densities.
    base : float, optional
        Base of the logarithm. By default the natural logarithm.
    samples : array-like, optional
        Independent draws from p for the estimate.
    n_samples : int, optional
        Number of draws by `p.sample` or `p.rvs`. By default 100,000 if an estimate is needed.
    delta : float, default=0.05
        Approximate error probability of each end of the confidence interval of an estimate.
    random_state : int, default=0

    Returns
    -------
    float, or SampledDivergence if a sample was used

    Examples
    --------
    >>> from summula.stats import MultivariateNormal, kl_divergence
    >>> round(kl_divergence([0.5, 0.5], [0.9, 0.1]), 4)
    0.5108
    >>> kl_divergence(MultivariateNormal([0.0], 1.0), MultivariateNormal([1.0], 1.0))
    0.5
    """
    sampled = samples is not None or n_samples is not None
    if isinstance(p, MultivariateNormal) and isinstance(q, MultivariateNormal) and not sampled:
        return _of_normals(p, q) / _log_base(base)
    if not _has_density(p) and not _has_density(q):
        a, b = _distribution(p, "p", None), _distribution(q, "q", None)
        if a.shape != b.shape:
            raise DataError(f"p has shape {a.shape} and q has shape {b.shape}; they must be equal.")
        return float(rel_entr(a, b).sum()) / _log_base(base)
    for name, one in (("p", p), ("q", q)):
        if not _has_density(one):
            raise ParameterError(f"{name} is {type(one).__name__} but the other is a density; pass two of one kind.")
    x = _drawn(p, n_samples or 100_000, random_state) if samples is None else np.asarray(samples)
    ratio = (np.asarray(_log_density(p)(x)) - np.asarray(_log_density(q)(x))) / _log_base(base)
    if ratio.ndim != 1 or len(ratio) < 2:
        raise DataError(f"Densities must return one number per draw, for at least two draws; got shape {ratio.shape}.")
    value, error = float(ratio.mean()), float(ratio.std(ddof=1)) / math.sqrt(len(ratio))
    wide = -float(ndtri(check_delta(delta))) * error
    return SampledDivergence(value, value - wide, value + wide, len(ratio))


def jensen_gap(f: Callable[[Any], Any], x: ArrayLike, p: ArrayLike | None = None) -> float:
    """Compute E[f(X)] - f(E[X]) (5), which is non-negative for convex f, and 0 if f is linear on the values of X.

    Parameters
    ----------
    f : callable
        A function of arrays, or of numbers, called with the values of X and with their mean.
    x : array-like of shape (n,)
        Values of X.
    p : array-like of shape (n,), optional
        Probabilities of the values, or counts. By default all equal.

    Returns
    -------
    float

    Examples
    --------
    >>> from summula.stats import jensen_gap
    >>> jensen_gap(lambda x: x**2, [1.0, 3.0])  # the variance
    1.0
    """
    values = np.asarray(x, np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(f"x must be a non-empty 1d array of numbers; got shape {values.shape}.")
    weights = np.full(len(values), 1 / len(values)) if p is None else _distribution(p, "p", None)
    if weights.shape != values.shape:
        raise DataError(f"x has {len(values)} values but p has {len(weights)}; pass one probability per value.")
    possible = weights > 0
    try:
        of_values = np.asarray(f(values[possible]), np.float64)
    except (TypeError, ValueError):  # as `math.exp` does
        of_values = np.array([f(float(value)) for value in values[possible]], np.float64)
    mean_of_f = float(of_values @ weights[possible])
    return mean_of_f - float(np.asarray(f(values[possible] @ weights[possible])))


# ------------------------------------------------------------------------------------------------------------- checks


def _distribution(p: Any, name: str, axis: int | None) -> Array:
    """Return probabilities from probabilities or counts."""
    try:
        values = np.asarray(p, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must contain probabilities or counts; got {p!r}.") from None
    if not values.size or not np.isfinite(values).all() or (values < 0).any():
        raise DataError(
            f"{name} must contain probabilities or counts; it is empty, or has negative, missing or infinite values."
        )
    total = values.sum(axis=axis, keepdims=True)
    whole = bool((values == np.floor(values)).all())
    if not whole and (np.abs(total - 1) > _ROUNDING * values.size).any():
        worst = float(total.ravel()[np.argmax(np.abs(total - 1))])
        raise DataError(f"{name} must sum to 1, or contain counts; it sums to {worst:.6g}: divide it by its sum.")
    if (total <= 0).any():
        raise DataError(f"The counts in {name} are all 0, which is not a distribution; drop empty groups.")
    return np.asarray(values / total)


def _table(joint: Any) -> Array:
    if np.ndim(joint) != 2:
        raise DataError(
            f"joint must be 2d, with a row per value of X and a column per value of Y; got {np.ndim(joint)} axes."
        )
    return _distribution(joint, "joint", None)


def _entropy(p: Array) -> float:
    return float(entr(p).sum())


def _log_base(base: float | None) -> float:
    if base is None:
        return 1.0
    if not base > 0 or base == 1:
        raise ParameterError(f"base must be positive and not 1; got {base!r}.")
    return math.log(base)


def _float(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _has_density(p: Any) -> bool:
    return callable(p) or hasattr(p, "logpdf") or hasattr(p, "logpmf")


def has_pmf(distribution: Any) -> bool:
    """Return whether a distribution is discrete.

    All of SciPy's have `logpmf`: of frozen ones only the `dist` has not, and of random variables (`icdf`) it is -inf.
    """
    if not hasattr(distribution, "logpmf"):
        return False
    if hasattr(distribution, "icdf"):
        return bool(np.isfinite(distribution.logpmf(distribution.icdf(0.5))))
    return hasattr(getattr(distribution, "dist", distribution), "pmf")


def _log_density(p: Any) -> Callable[[Any], Any]:
    if has_pmf(p) or (hasattr(p, "logpmf") and not hasattr(p, "logpdf")):
        return p.logpmf  # type: ignore[no-any-return]
    return p.logpdf if hasattr(p, "logpdf") else p  # type: ignore[no-any-return]


def _drawn(p: Any, n: int, random_state: int) -> NDArray[Any]:
    if hasattr(p, "icdf"):  # a random variable of SciPy
        return np.asarray(p.sample(n, rng=np.random.default_rng(random_state)))
    if hasattr(p, "sample"):
        return np.asarray(p.sample(n, random_state))
    if hasattr(p, "rvs"):
        return np.asarray(p.rvs(size=n, random_state=np.random.default_rng(random_state)))
    raise ParameterError("p has neither `sample` nor `rvs`; pass draws from it as samples=.")


def _of_normals(p: MultivariateNormal, q: MultivariateNormal) -> float:
    """Equation (4), from the Cholesky factors of both covariances."""
    if p.dimension != q.dimension:
        raise DataError(f"p has {p.dimension} variables and q has {q.dimension}; they must be equal.")
    P, Q = p._cholesky(), q._cholesky()
    spread = linalg.solve_triangular(Q, P, lower=True)
    away = linalg.solve_triangular(Q, q.mean - p.mean, lower=True)
    log_ratio = 2 * (np.log(np.diag(Q)) - np.log(np.diag(P))).sum()
    return max(float(0.5 * ((spread**2).sum() + away @ away - p.dimension + log_ratio)), 0.0)
