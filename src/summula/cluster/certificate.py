"""Certificate of a clustering: a lower bound on the inertia of any k centres.

k centres lie in an affine subspace of dimension k - 1 (or d), so the inertia is at least the squared distance of the
rows to the best such subspace. With the eigenvalues l_1 >= ... >= l_d of the scatter, sum of w (x - m)(x - m)' about
the mean m,

    J >= l_k + l_{k+1} + ... + l_d                                                                                  (1)

(Zha et al. 2001; Ding and He 2004). The bound is 0 for k > d, and far below J if clusters fill all dimensions; a large
gap then does not imply that a better solution exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.cluster.passes import Centres, ClusterSums, LloydPass
from summula.core.data.chunks import Chunk
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram

__all__ = ["KMeansCertificate", "Scatter", "spectral_bound"]

Array = NDArray[Any]

_ROUNDING = 1e-12  # rounding of the eigenvalues, relative to the total scatter


@dataclass(frozen=True)
class Scatter(Gram):
    """Products of the columns of X about an origin, in double precision for any storage."""

    @classmethod
    def map(cls, chunk: Chunk, params: Array) -> Self:
        """Return the products of one chunk."""
        return super().map(replace(chunk, dtype=np.dtype(np.float64)), params)


def spectral_bound(scatter: Gram, n_clusters: int) -> float:
    """Return the right-hand side of (1), minus a bound on its rounding error."""
    S = scatter.centred()
    if n_clusters > len(S) or not np.isfinite(S).all():
        return 0.0
    values = np.linalg.eigvalsh(S)  # ascending
    bound = float(values[: len(S) - n_clusters + 1].sum()) - _ROUNDING * float(np.trace(S))
    return max(bound, 0.0)


@schema.saved(
    schema.nonempty("n_clusters"),
    centres=schema.Array("float64", "n_clusters", "n_features"),
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class KMeansCertificate(SummedCertificate):
    """The inertia of some centres, and a bound on its suboptimality.

    `centres` define the point; `unit` is the rounding error relative to the inertia.
    """

    _supervised: ClassVar[bool | None] = False

    centres: Array
    unit: float

    @classmethod
    def of(cls, centres: Array, inertia: float, bound: float, dtype: Any) -> Self:
        """Return the certificate of a fit with known inertia and lower bound (1)."""
        unit = 1e-4 if np.dtype(dtype) == np.float32 else 1e-9
        return cls("global", inertia, max(inertia - bound, 0.0), centres, unit)

    def objective(self, run: Run) -> tuple[float, float]:
        """Return the inertia on the rows of a run, and its distance from the bound (1)."""
        origin = run.origin()
        inertia = run.sum(ClusterSums, LloydPass(Centres.of(self.centres, origin))).inertia
        bound = spectral_bound(run.sum(Scatter, origin), len(self.centres))
        return inertia, max(inertia - bound, 0.0)
