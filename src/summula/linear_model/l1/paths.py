"""Lasso and elastic net along a path of penalties: `enet_path`, `lasso_path`, and the grid of alphas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import one_blas_thread
from summula.core.errors import ParameterError, warn
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.linear_model.l1.problem import Centred, quadratics_of
from summula.optimize.solvers.l1_path import l1_path
from summula.penalties import Penalty

__all__ = ["alpha_grid", "enet_path", "largest_alpha", "lasso_path", "relative_gap"]

Array = NDArray[Any]


def relative_gap(tol: float) -> float:
    """Return the duality gap to stop at, relative to ||y||^2, for scikit-learn's `tol`."""
    return max(min(1e-6 * tol, 1e-8), 1e-15)


def alpha_grid(largest: float, eps: float, count: int) -> Array:
    """Return decreasing alphas, logarithmically spaced, starting where all coefficients are zero."""
    if not largest > np.finfo(float).resolution:
        return np.full(count, np.finfo(float).resolution)
    return np.geomspace(largest, largest * eps, num=count)


def largest_alpha(found: Sequence[Centred], l1_ratio: float, positive: bool) -> float:
    """Return the smallest alpha at which all coefficients are zero."""
    if l1_ratio == 0:
        raise ParameterError(
            "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by providing your "
            "estimator with the appropriate `alphas=` argument."
        )
    sizes = [float((one.quadratic.q if positive else np.abs(one.quadratic.q)).max(initial=0.0)) for one in found]
    return max(sizes) / l1_ratio


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: Any = "deprecated",
    alphas: Any = 100,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    tol: float = 1e-4,
    max_iter: int = 100_000,
    sample_weight: Any = None,
    **hints: Any,
) -> Any:
    """Compute the elastic net path for a sequence of alphas, without an intercept (centre the data instead).

    Parameters
    ----------
    X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of X
    l1_ratio : float, default=0.5
        Weight of the L1 penalty.
    eps : float, default=1e-3
        Ratio of the smallest to the largest alpha.
    alphas : int or array-like, default=100
        Number of alphas, or the alphas.
    coef_init : ndarray, optional
        Initial coefficients.
    return_n_iter : bool, default=False
        Whether to return the numbers of sweeps.
    positive : bool, default=False
        Whether to constrain coefficients to be non-negative.
    tol, max_iter
        As in `ElasticNet`, for each alpha.
    sample_weight : array-like, optional
    n_alphas, precompute, Xy, copy_X, verbose, check_input, **hints
        Ignored; for compatibility with scikit-learn.

    Returns
    -------
    alphas : ndarray of shape (n_alphas,), decreasing
    coefs : ndarray of shape (n_features, n_alphas) or (n_targets, n_features, n_alphas)
    dual_gaps : ndarray of shape (n_alphas,)
    n_iters : list of int, with `return_n_iter`
    """
    for name in hints.keys() - {"selection", "random_state"}:
        raise ParameterError(f"Unexpected parameters in params: enet_path has no option {name!r}.")
    _warn_deprecated(alphas, n_alphas)
    source = as_source(Unnamed(), X, y, sample_weight, needs_y=True)
    run = Run(Unnamed(), source)
    with one_blas_thread():
        found = quadratics_of(run, fit_intercept=False)
    if np.ndim(alphas) == 0:
        grid = alpha_grid(largest_alpha(found, l1_ratio, positive), eps, _number_of_alphas(alphas, n_alphas))
    else:
        grid = np.sort(np.asarray(alphas, np.float64))[::-1]
    penalties = [Penalty.of_ratio(alpha, l1_ratio, positive) for alpha in grid]
    with one_blas_thread():
        paths = [
            l1_path(
                one.quadratic,
                penalties,
                start=None if coef_init is None else np.asarray(np.atleast_2d(coef_init)[j], np.float64),
                tolerance=relative_gap(tol),
                max_sweeps=max_iter,
            )
            for j, one in enumerate(found)
        ]
    coefs = np.stack([np.stack([s.v for s in path], axis=1) for path in paths]).astype(source.dtype)
    gaps = np.sum([[s.gap for s in path] for path in paths], axis=0)
    result = (grid, coefs[0] if source.one_target else coefs, gaps)
    return (*result, [max(path[k].sweeps for path in paths) for k in range(len(grid))]) if return_n_iter else result


def _warn_deprecated(alphas: Any, n_alphas: Any) -> None:
    """Warn about parameters that scikit-learn will remove."""
    if not isinstance(n_alphas, str):
        warn("'n_alphas' was deprecated in 1.9 and will be removed in 1.11; use 'alphas' instead.", FutureWarning)
    elif alphas is None:
        warn("'alphas=None' is deprecated and will be removed in 1.11; pass a number, or alphas.", FutureWarning)


def _number_of_alphas(alphas: Any, n_alphas: Any) -> int:
    """Return the length of the path: `n_alphas` if it is given, else the number `alphas`, else 100."""
    count = n_alphas if isinstance(alphas, str) or alphas is None or not isinstance(n_alphas, str) else alphas
    return 100 if isinstance(count, str) else int(count)


def lasso_path(X: Any, y: Any, **options: Any) -> Any:
    """Compute the lasso path for a sequence of alphas, without an intercept: `enet_path` with l1_ratio=1.

    Parameters
    ----------
    X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of X
    **options
        As in `enet_path`.

    Returns
    -------
    alphas, coefs, dual_gaps
        As in `enet_path`.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import lasso_path
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> alphas, coefs, gaps = lasso_path(X, np.array([2.0, 0.5, -2.0, -0.5]), alphas=[1.0, 0.5, 0.1])
    >>> coefs.round(6)
    array([[0. , 1. , 1.8],
           [0. , 0. , 0.3]])
    """
    return enet_path(X, y, **{**options, "l1_ratio": 1.0})
