"""Nystroem approximation of a kernel by its values with a sample of the rows.

With m rows B (the basis) drawn from the data and K_BB = U diag(s) U'

    phi(x) = U diag(s)^(-1/2) U' k(B, x),      phi(x)'phi(z) = k(x, B) K_BB^+ k(B, z)                            (1)

which is exact for rows of the basis. Williams and Seeger (2001), Using the Nystroem method to speed up kernel machines.
The basis is drawn by row number, so it does not depend on the storage of the rows, and a stream is read once.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import random_bits, seed_from, stream_key
from summula.core.engine.threads import solving
from summula.core.errors import DataError, warn
from summula.core.estimator.parameters import Allowed, integer, none, random_state
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.kernel_approximation.random_features import RandomFeatures
from summula.kernels.kernel import centre_of, check_range, gram
from summula.kernels.rows import rows_of
from summula.kernels.settings import KERNEL_SETTINGS, chosen_kernel
from summula.kernels.values import bad_rows

__all__ = ["Nystroem"]

Array = NDArray[Any]

_RANK = 1e-12  # smaller eigenvalues, relative to the largest, are rounding


@inherit_docs()
@schema.saved(
    components_=schema.Array("float", "n_basis", "n_features") | schema.Sparse("n_basis", "n_features"),
    component_indices_=schema.Array("int64", "n_basis", low=0),
    normalization_=schema.Array("float", "n_basis", "n_basis"),
)
class Nystroem(RandomFeatures):
    """Approximate features of any kernel from a sample of the rows.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        As in `KernelRidge`.
    gamma, coef0, degree : float, optional
    kernel_params : dict, optional
    n_components : int, default=100
        Number of rows of the basis, and of features.
    n_jobs : int, optional

    Attributes
    ----------
    components_ : ndarray or CSR matrix of shape (n_components, n_features)
    component_indices_ : ndarray of shape (n_components,)
        Their row numbers, ascending.
    normalization_ : ndarray of shape (n_components, n_components)

    Examples
    --------
    >>> from summula.kernel_approximation import Nystroem
    >>> from summula.kernels import Gaussian
    >>> X = [[0.0], [1.0], [2.0]]
    >>> Z = Nystroem(Gaussian(1.0), n_components=3, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - Gaussian(1.0)(X)).max() < 1e-9)
    True
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **KERNEL_SETTINGS,
        "n_components": (integer(1),),
        "random_state": (random_state,),
        "n_jobs": (none, integer()),
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: Any = None,
        n_components: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_outputs(self) -> int:
        return len(self.component_indices_)

    def _draw(self, run: Run) -> None:
        """Draw the basis, and factor its kernel matrix."""
        if (callable(self.kernel) or self.kernel == "precomputed") and not _only_function_parameters(self):
            raise DataError("Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed kernel.")
        n = run.source.n_rows
        if self.n_components > n:
            warn(
                f"n_components={self.n_components} is more than the {n} rows: every row is in the basis, which is "
                "the whole kernel matrix (n_components > n_samples. This is not possible.)",
                UserWarning,
            )
        chosen = self._basis(run, min(int(self.n_components), n))
        self.component_indices_ = chosen
        basis = _gather(run, chosen)
        if run.source.streams and not np.isfinite(basis.sum()):
            run.raise_if_not_finite()
        kernel = chosen_kernel(self, run.source.n_features)
        if kernel is None:
            K = np.asarray(basis[:, chosen], np.float64)
        else:
            rows = rows_of(basis, centre_of(kernel, basis))
            check_range(kernel, rows)
            K = gram(kernel, rows)
        self.normalization_ = _root_of_inverse(K).astype(run.source.dtype)
        self.components_ = basis

    def _basis(self, run: Run, size: int) -> Array:
        """Return the row numbers with the smallest random bits."""
        bits = random_bits(stream_key(seed_from(self.random_state)), run.source.n_rows)
        return np.sort(np.argsort(bits, kind="stable")[:size]).astype(np.int64)

    def _features(self, chunk: Chunk) -> Array:
        """Return the features (1)."""
        kernel = chosen_kernel(self, self.components_.shape[1])
        if kernel is None:
            values = chunk.block(np.float64)
            if values.shape[1] != len(self.components_):
                values = values[:, self.component_indices_]
        else:
            origin = centre_of(kernel, self.components_)
            X = chunk.X if chunk.is_sparse else chunk.block()
            values = kernel.evaluate(rows_of(X, origin), rows_of(self.components_, origin))
            values[bad_rows(X)] = np.nan
        return product(aligned(values), aligned(np.ascontiguousarray(self.normalization_.T, dtype=np.float64)))

    def transform(self, X: Any) -> Any:
        """Return the features of rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components); an iterator of such blocks for a scan
        """
        check_is_fitted(self)
        return super().transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _root_of_inverse(K: Array) -> Array:
    """Return K^(-1/2) on the range of K; the symmetric root is unique."""
    with solving(len(K)):
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        size = np.abs(values)
        kept = size > _RANK * size.max(initial=0.0)
        V = vectors[:, kept]
        return product(aligned(V * (np.sign(values[kept]) / np.sqrt(size[kept]))), aligned(V.T))


def _only_function_parameters(model: Any) -> bool:
    return model.gamma is None and model.coef0 is None and model.degree is None


def _gather(run: Run, chosen: Array) -> Any:
    """Return some rows by their numbers, in one pass."""
    found = []
    for part in run.parts:
        for chunk in part.chunks():
            here = chosen[(chosen >= chunk.start) & (chosen < chunk.stop)] - chunk.start
            if len(here):
                some = chunk.take(here)
                found.append(some.X if some.is_sparse else some.block().copy())
    return sparse.vstack(found, format="csr") if sparse.issparse(found[0]) else np.vstack(found)
