"""The multivariate normal distribution: density, marginals, conditionals, maximum likelihood, axes of its ellipsoids.

    log p(x) = -1/2 [d log 2 pi + log |S| + (x - m)' S^-1 (x - m)],   by the Cholesky factor S = L L'           (1)
    marginal of x_a          N(m_a, S_aa)                                                                       (2)
    x_a given x_b            N(m_a + S_ab S_bb^-1 (x_b - m_b),   S_aa - S_ab S_bb^-1 S_ba)                      (3)
    maximum likelihood       m = mean of x,   S = mean of (x - m)(x - m)'                                       (4)
    {(x - m)' S^-1 (x - m) = r^2} is an ellipsoid with semi-axes r sqrt(l_i) u_i, where S u_i = l_i u_i         (5)

It contains the probability P(chi^2_d <= r^2).

References: Bishop, Pattern Recognition and Machine Learning, section 2.3; Anderson, An Introduction to Multivariate
Statistical Analysis, chapter 2.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import chdtri

from summula.core.engine.random import normal, stream_key
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_choice, is_integer, number_or_nan, numbers_in
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.core.numerics.function_sums import FunctionSum
from summula.core.numerics.statistics import Gram
from summula.stats.covariance import (
    COVARIANCE_NAMES,
    constrained,
    covariance_form,
    fourth_powers,
    ledoit_wolf_share,
    shrunk,
)

__all__ = ["EllipseAxes", "MultivariateNormal"]

Array = NDArray[np.float64]

_EPS = np.finfo(np.float64).eps


class EllipseAxes(NamedTuple):
    """Semi-axes (5) of an ellipsoid of constant density, longest first.

    Attributes
    ----------
    lengths : ndarray of shape (d,)
    directions : ndarray of shape (d, d)
        Unit vectors, one per column.
    """

    lengths: Array
    directions: Array


class MultivariateNormal:
    """The multivariate normal distribution.

    Parameters
    ----------
    mean : array-like of shape (d,), or float
    cov : array-like of shape (d, d) or (d,), or float
        Covariance matrix, symmetric and positive semi-definite. A vector means a diagonal matrix, a number a multiple
        of the identity.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)

    Examples
    --------
    >>> from summula.stats import MultivariateNormal
    >>> height_and_weight = MultivariateNormal([170.0, 70.0], [[80.0, 60.0], [60.0, 125.0]])
    >>> weight_of_tall = height_and_weight.conditional([0], [190.0])
    >>> weight_of_tall.mean, weight_of_tall.cov
    (array([85.]), array([[80.]]))
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        self.mean = np.atleast_1d(numbers_in("mean", mean))
        self.cov = _square(numbers_in("cov", cov), len(self.mean) if self.mean.ndim == 1 else 0)
        self._factor: Array | None = None
        self._check()

    def _check(self) -> None:
        d = len(self.cov)
        if self.mean.shape != (d,):
            raise ParameterError(
                f"mean has shape {self.mean.shape} and cov {self.cov.shape}; expected (d,) and (d, d)."
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.cov).all()):
            raise ParameterError("mean and cov must be finite; some entries are NaN or infinite.")
        scale = np.abs(self.cov).max(initial=0.0)
        if np.abs(self.cov - self.cov.T).max(initial=0.0) > 1e-8 * scale:
            raise ParameterError("cov must be symmetric; average it with its transpose: (cov + cov.T) / 2.")
        if linalg.eigvalsh(self.cov).min() < -1e-8 * scale:
            raise ParameterError(
                "cov must be positive semi-definite, but has a negative eigenvalue; check its entries."
            )

    def __repr__(self) -> str:
        return f"MultivariateNormal(mean={self.mean.tolist()}, cov={self.cov.tolist()})"

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return len(self.mean)

    # ---- density

    def logpdf(self, x: ArrayLike) -> Any:
        """Compute the log-density (1).

        Parameters
        ----------
        x : array-like of shape (d,) or (n, d)
            One point, or one per row. (For a single variable, a vector contains n points.)

        Returns
        -------
        float or ndarray of shape (n,)
        """
        distance = np.asarray(self.mahalanobis(x)) ** 2
        log_det = 2 * np.log(np.diag(self._cholesky())).sum()
        return (-0.5 * (self.dimension * np.log(2 * np.pi) + log_det + distance))[()]

    def pdf(self, x: ArrayLike) -> Any:
        """Compute the density; see `logpdf`."""
        return np.exp(self.logpdf(x))

    def mahalanobis(self, x: ArrayLike) -> Any:
        """Compute the Mahalanobis distance sqrt((x - m)' S^-1 (x - m)) of points from the mean; see `logpdf`."""
        points = np.asarray(x, np.float64)
        d, one = self.dimension, points.ndim == 0 or (points.ndim == 1 and self.dimension > 1)
        rows = points.reshape(-1, d) if d == 1 or (one and points.size == d) else points
        if rows.ndim != 2 or rows.shape[1] != d:
            raise DataError(f"Points must have {d} coordinates; got an array of shape {points.shape}.")
        z = linalg.solve_triangular(self._cholesky(), (rows - self.mean).T, lower=True, check_finite=False)
        distance = np.sqrt((z * z).sum(axis=0))
        return distance[0] if one else distance

    def _cholesky(self) -> Array:
        if self._factor is None:
            self._factor = _cholesky(self.cov, "the covariance")
        return self._factor

    # ---- parts

    def marginal(self, indices: Any) -> MultivariateNormal:
        """Return the marginal distribution (2) of some of the variables.

        Parameters
        ----------
        indices : int or sequence of int
            Indices of the variables, in the order of the result.
        """
        a = self._places(indices)
        return MultivariateNormal(self.mean[a], self.cov[np.ix_(a, a)])

    def conditional(self, indices: Any, values: ArrayLike) -> MultivariateNormal:
        """Return the conditional distribution (3) of the other variables, given some of them.

        Parameters
        ----------
        indices : int or sequence of int
            Indices of the given variables.
        values : array-like of shape (len(indices),)
            Values of the given variables.
        """
        b = self._places(indices)
        x = np.atleast_1d(np.asarray(values, np.float64))
        if x.shape != b.shape or not np.isfinite(x).all():
            raise ParameterError(f"values must be {len(b)} finite numbers, one per index; got {values!r}.")
        a = np.setdiff1d(np.arange(self.dimension), b)
        if not len(a):
            raise ParameterError("indices includes all variables, so no variables remain; omit at least one.")
        L = _cholesky(self.cov[np.ix_(b, b)], f"the covariance of the variables {b.tolist()}")
        half = linalg.solve_triangular(L, self.cov[np.ix_(b, a)], lower=True)  # L^-1 S_ba
        away = linalg.solve_triangular(L, x - self.mean[b], lower=True)
        return MultivariateNormal(self.mean[a] + half.T @ away, self.cov[np.ix_(a, a)] - half.T @ half)

    def _places(self, indices: Any) -> NDArray[np.intp]:
        given = np.atleast_1d(np.asarray(indices))
        d = self.dimension
        if given.dtype.kind not in "iu" or given.ndim != 1 or not ((given >= -d) & (given < d)).all():
            raise ParameterError(f"indices must be integers from 0 to {d - 1}; got {indices!r}.")
        places = np.asarray(given % d, np.intp)
        if len(np.unique(places)) < len(places):
            raise ParameterError(f"indices must not contain duplicates; got {indices!r}.")
        return places

    # ---- samples, axes, entropy

    def sample(self, n: int, random_state: int = 0) -> Array:
        """Draw random points.

        Parameters
        ----------
        n : int
        random_state : int, default=0
            Seed. Row i does not depend on n.

        Returns
        -------
        ndarray of shape (n, d)
        """
        if not (is_integer(n) and n >= 0):
            raise ParameterError(f"n must be a non-negative integer; got {n!r}.")
        draws = normal(stream_key(int(random_state)), n * self.dimension).reshape(n, self.dimension)
        values, U = linalg.eigh(self.cov)  # works for singular covariances
        return np.asarray(self.mean + draws @ (U * np.sqrt(np.maximum(values, 0.0))).T)

    def axes(self, probability: float | None = None) -> EllipseAxes:
        """Return the semi-axes (5) of the density ellipsoid that contains a given probability; r = 1 if it is None."""
        values, U = linalg.eigh(self.cov)
        r = 1.0 if probability is None else np.sqrt(chdtri(self.dimension, 1 - _share(probability)))
        return EllipseAxes(r * np.sqrt(np.maximum(values[::-1], 0.0)), np.ascontiguousarray(U[:, ::-1]))

    def entropy(self) -> float:
        """Differential entropy, in nats: d / 2 (1 + log 2 pi) + 1/2 log |S|."""
        log_det = 2 * np.log(np.diag(self._cholesky())).sum()
        return float(0.5 * (self.dimension * (1 + np.log(2 * np.pi)) + log_det))

    # ---- estimation

    @classmethod
    def fit(cls, X: Any, covariance: str = "full", *, shrinkage: Any = None, sample_weight: Any = None) -> Self:
        """Fit by maximum likelihood (4), optionally with shrinkage.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, d)
        covariance : {"full", "diag", "spherical"}, default="full"
            Whether to estimate all covariances, only variances ("diagonal"), or one common variance ("isotropic").
        shrinkage : float in [0, 1] or "auto", optional
            Shrinkage of the covariance towards the common variance; "auto" uses the Ledoit-Wolf estimate.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        MultivariateNormal

        Examples
        --------
        >>> import numpy as np
        >>> from summula.stats import MultivariateNormal
        >>> X = MultivariateNormal([1.0, -1.0], [[2.0, 1.0], [1.0, 3.0]]).sample(10_000)
        >>> MultivariateNormal.fit(X).cov.round(1)
        array([[2., 1.],
               [1., 3.]])
        """
        if not is_choice(covariance, COVARIANCE_NAMES):
            raise ParameterError(f"covariance must be one of {', '.join(COVARIANCE_NAMES)}; got {covariance!r}.")
        if not (shrinkage is None or (isinstance(shrinkage, str) and shrinkage == "auto")):
            shrinkage = _share(shrinkage, "shrinkage")
        source = as_source(Unnamed(), X, None, sample_weight, needs_y=False)
        try:
            run = Run(Unnamed("MultivariateNormal"), source)
            sums = run.sum(Gram, run.origin())
            S, m = sums.centred() / sums.weight, sums.mean
            if shrinkage == "auto":
                fourth = run.sum(FunctionSum, functools.partial(fourth_powers, m))
                shrinkage = ledoit_wolf_share(S, float(fourth.value), sums.weight)
        finally:
            source.release()
        S = S if shrinkage is None else shrunk(S, shrinkage)
        return cls(m, constrained((S + S.T) / 2, covariance_form(covariance)))

    def plot(self, *, probabilities: Any = (0.5, 0.9, 0.99), axes: bool = True, ax: Any = None) -> Any:
        """Plot density ellipses of two variables, and their axes.

        Parameters
        ----------
        probabilities : sequence of float, default=(0.5, 0.9, 0.99)
            Probability contained in each ellipse.
        axes : bool, default=True
            Whether to draw the axes of the largest ellipse.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from summula.plotting.structure.ellipses import draw_ellipses

        return draw_ellipses(self, [_share(p) for p in probabilities], axes=axes, ax=ax)


def _square(cov: Array, d: int) -> Array:
    """Return the covariance matrix specified by a matrix, a diagonal or a number."""
    if cov.ndim == 0:
        return np.eye(max(d, 1)) * cov
    if cov.ndim == 1:
        return np.diag(cov)
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1]:
        raise ParameterError(f"cov must be a square matrix, a vector of variances or a number; got shape {cov.shape}.")
    return cov


def _cholesky(S: Array, what: str) -> Array:
    """Return the factor L of S = L L'; raise if S is singular."""
    variances = np.diag(S)
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(variances)
            L = linalg.cholesky(S / np.outer(scale, scale), lower=True)
        if np.diag(L).min() ** 2 <= len(S) * _EPS:
            raise linalg.LinAlgError
    except (linalg.LinAlgError, ValueError):
        constant = np.flatnonzero(variances <= 0).tolist()
        cause = (
            f"variables {constant} have variance 0" if constant else "some variables are linear combinations of others"
        )
        raise DataError(
            f"Singular: {what} has no inverse, so there is no density: {cause}; exclude these variables (marginal), "
            "or fit with shrinkage='auto' or covariance='diag'."
        ) from None
    return np.asarray(L * scale[:, None])


def _share(value: Any, name: str = "probability") -> float:
    share = number_or_nan(value)
    if not 0.0 <= share <= 1.0:
        raise ParameterError(f"{name} must be a number from 0 to 1; got {value!r}.")
    return share
