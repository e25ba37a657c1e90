"""The kernel of estimators with scikit-learn's parameters `kernel, gamma, coef0, degree, kernel_params`."""

from __future__ import annotations

import functools
from typing import Any

from summula.core.errors import ParameterError
from summula.core.estimator.parameters import Allowed, mapping, none, one_of, real
from summula.kernels.kernel import Custom, Kernel
from summula.kernels.standard import as_kernel

__all__ = ["KERNEL_SETTINGS", "chosen_kernel"]

_NAMES = (
    "additive_chi2",
    "chi2",
    "cosine",
    "laplacian",
    "linear",
    "poly",
    "polynomial",
    "precomputed",
    "rbf",
    "sigmoid",
)

KERNEL_SETTINGS: dict[str, tuple[Allowed, ...]] = {
    "kernel": (one_of(*_NAMES), Allowed(callable, "a callable")),
    "gamma": (none, real(0.0)),
    "coef0": (none, real()),
    "degree": (none, real(0.0)),
    "kernel_params": (none, mapping),
}


def chosen_kernel(model: Any, n_features: int) -> Kernel | None:
    """Return the kernel of an estimator, with scikit-learn's defaults; None for a precomputed matrix.

    A function of two matrices is called with blocks of rows; a function of two vectors, as in scikit-learn, with pairs
    of rows.
    """
    kernel = model.kernel
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Custom(_Pairwise(functools.partial(kernel, **(model.kernel_params or {}))))
    if kernel == "precomputed":
        return None
    gamma = (1.0 if kernel == "chi2" else 1.0 / n_features) if model.gamma is None else float(model.gamma)
    coef0 = 1.0 if model.coef0 is None else float(model.coef0)
    degree = 3 if model.degree is None else model.degree
    if kernel == "chi2":
        from sklearn.metrics.pairwise import chi2_kernel

        return Custom(functools.partial(chi2_kernel, gamma=gamma))
    if degree != degree or gamma < 0:
        raise ParameterError(f"gamma={model.gamma!r} and degree={model.degree!r} are invalid for a kernel.")
    return as_kernel(kernel, gamma=gamma, coef0=coef0, degree=degree)


class _Pairwise:
    """A kernel function as scikit-learn's pairwise_kernels calls it: with pairs of rows."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, X: Any, Z: Any) -> Any:
        from sklearn.metrics.pairwise import pairwise_kernels

        return pairwise_kernels(X, Z, metric=self.function)
