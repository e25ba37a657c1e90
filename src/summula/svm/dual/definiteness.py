"""Test on some rows of a fit whether a kernel is positive semidefinite."""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.errors import DataError, warn
from summula.kernels.kernel import Kernel, centre_of
from summula.kernels.mercer import is_mercer
from summula.kernels.rows import rows_of
from summula.kernels.standard import Gaussian, Laplacian, Linear, Polynomial

__all__ = ["negative_eigenvalue", "warn_if_indefinite"]

_SYMMETRIC = 1e-5  # relative to the largest value: kernels may be computed in single precision
_TRIED = 256  # number of rows on which kernels are tested


def warn_if_indefinite(kernel: Kernel | None, X: Any, *, hard: bool) -> bool:
    """Test on some rows whether a kernel is positive semidefinite; if not, warn and return True.

    Raises for kernels that are not symmetric, and for a hard margin with an indefinite kernel.
    """
    if isinstance(kernel, Gaussian | Laplacian | Linear | Polynomial):
        return False
    some = slice(0, min(_TRIED, X.shape[0]))
    if kernel is None:
        K = np.asarray(X[some, some], np.float64)
    else:
        mine = rows_of(X[some], centre_of(kernel, X))
        K = kernel.evaluate(mine, mine).astype(np.float64)
    if not np.isfinite(K).all():
        raise DataError("The kernel has values that are not finite on these rows; scale the columns.")
    eigenvalue = negative_eigenvalue(
        K, "pass (K + K.T) / 2" if kernel is None else "average both in the kernel function"
    )
    if eigenvalue is None:
        return False
    if hard:
        raise DataError(
            "C=inf requires a hard margin, and the kernel is not positive semidefinite on these rows (eigenvalue "
            f"{eigenvalue:.3g}), so there is none; pass a finite C."
        )
    warn(
        f"The kernel is not positive semidefinite on these rows (eigenvalue {eigenvalue:.3g}): the fit stops "
        "at a stationary point, which need not be optimal; see summula.kernels.is_mercer.",
        UserWarning,
    )
    return True


def negative_eigenvalue(K: Any, cure: str) -> float | None:
    """Return the smallest eigenvalue of a kernel matrix if it is negative beyond rounding, else None.

    Raises for a matrix that is not symmetric, with a cure.
    """
    tried = is_mercer(K)
    if tried.asymmetry > _SYMMETRIC * float(np.abs(K).max(initial=0.0)):
        raise DataError(f"The kernel is not symmetric: k(x, z) and k(z, x) differ by {tried.asymmetry:.3g}; {cure}.")
    if tried or tried.eigenvalue >= -1e-8 * float(np.abs(np.diag(K)).max(initial=1.0)):
        return None
    return tried.eigenvalue
