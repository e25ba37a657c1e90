"""Certificate of principal axes: the residual of their span, and the gap to the next eigenvalue.

Let V, r rows, be orthonormal, T = V S V', R = S V' - V'T, and let mu bound the eigenvalues of S outside of the span of
V. Any other r-dimensional space is rotated from that of V by angles f_1, ..., f_r in planes spanned by unit vectors p_j
outside and q_j inside. It captures beyond tr T at most

    sum_j [2 sin f_j cos f_j |p_j'R q_j| - sin^2 f_j (t - mu)],         t the smallest eigenvalue of T           (1)

whose maximum over the angles is, with delta = t - mu (which may be negative) and |R| the Frobenius norm,

    gap = r [sqrt(rho^2 + delta^2 / 4) - delta / 2],         rho = |R| / sqrt(r)                                (2)

since the terms of (1) are concave in the squares of |p_j'R q_j|, which sum to at most |R|^2. The distortion of V
exceeds the minimum by at most (2), about |R|^2 / delta if that is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.engine.threads import solving
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Gram, Moments
from summula.decomposition.principal.axes import Axes, frobenius_norm
from summula.decomposition.principal.krylov import Units, scatter_product, widen_chunks

__all__ = ["SubspaceCertificate", "subspace_gap"]

Array = NDArray[np.float64]

MOST_COLUMNS = 2_048  # number of columns above which the matrix S is not formed
_UNIT = {"float64": 1e-11, "float32": 1e-4}  # rounding error of the trace of S, by the precision of products


def subspace_gap(residual: float, least: float, following: float, r: int) -> float:
    """Return the gap (2)."""
    if r == 0:
        return 0.0
    delta, rho = least - following, residual / np.sqrt(r)
    root = float(np.hypot(rho, delta / 2))
    return r * (rho * (rho / (root + delta / 2)) if delta > 0 else root - delta / 2)  # (squares may overflow)


@schema.saved(
    mean=schema.Array("float64", "n_features"),
    divisor=schema.Array("float64", "n_features", low=0.0),
    vectors=schema.Array("float64", "n_axes", "n_features"),
    following=schema.Real(0.0),
    center=schema.Flag(),
    unit=schema.Real(0.0),
    scale=schema.Real(0.0),
)
@dataclass(frozen=True)
class SubspaceCertificate(SummedCertificate):
    """The distortion of principal axes, and a bound on its suboptimality.

    Attributes
    ----------
    kind : {"exact", "local"}
        "exact": all eigenvalues are known, and (2) bounds the distance to the minimum distortion of any subspace.
        "local": the next eigenvalue is the estimate of a Krylov method, and (2) holds if no larger one was missed.
    primal, gap : float
        The distortion, and (2).
    mean, divisor : ndarray of shape (n_features,)
        Shift and divisor of the rows.
    vectors : ndarray of shape (n_components, n_features)
        The axes V.
    following : float
        The next eigenvalue mu of S, known or estimated.
    center : bool
        Whether the mean was estimated, or is 0.
    unit : float
        Rounding error of the distortion, relative to the total variation.
    scale : float
        The total variation, tr S.
    """

    _supervised: ClassVar[bool | None] = False

    mean: Array
    divisor: Array
    vectors: Array
    following: float
    center: bool
    unit: float
    scale: float

    @classmethod
    def of(cls, axes: Axes, center: bool, dtype: str) -> Self:
        """Return the certificate of computed axes."""
        r = len(axes.vectors)
        off = axes.of_rounding()
        primal = axes.distortion(r) + off
        least = float(axes.values[r - 1]) if r else 0.0
        gap = subspace_gap(axes.residual, least, axes.following, r)
        rounding = 64 * float(np.finfo(np.float64 if axes.solver != "covariance" else dtype).eps) * axes.total
        kind = "local" if axes.solver == "krylov" else "exact"
        V, gap = axes.vectors, gap + off + rounding
        return cls(kind, primal, gap, axes.mean, axes.scale, V, axes.following, center, _UNIT[dtype], axes.total)

    def objective(self, run: Run) -> tuple[float, float]:
        """Return distortion and gap on the rows of a run: from S, or from one product with it if S is too large."""
        formed = self.kind == "exact" and run.source.n_features <= MOST_COLUMNS
        return self._from_sums(run) if formed else self._from_products(run)

    def confirms(self, value: float, gap: float) -> bool:
        """Return whether these are the stated values, up to rounding relative to the total variation."""
        rounding = self.unit * self.scale
        return bool(abs(value - self.primal) <= rounding and gap <= self.gap + rounding)

    def _sentence(self) -> str:
        if self.kind != "local":
            return super()._sentence()
        return (
            "at most {:.3g} above the best ({:.1e} of it) if the eigenvalues outside the axes are at most about "
            f"{self.following:.3g}, as the Krylov method estimates; it does not exclude larger ones"
        )

    def _from_sums(self, run: Run) -> tuple[float, float]:
        """Return distortion and gap from S, with the eigenvalues outside of the span of V."""
        V, D = self.vectors, self.divisor
        gram = run.sum(Gram, self.mean, "products")
        S = gram.products / D / D[:, None]
        about = gram.centred() / D / D[:, None] if self.center else S
        with solving(len(S)):
            T, image = V @ about @ V.T, V @ about
            R = image - T @ V
            outside = about - V.T @ R - R.T @ V - V.T @ T @ V
            top = float(np.linalg.eigvalsh(outside)[-1]) if len(V) < len(S) else 0.0
            least = float(np.linalg.eigvalsh(T)[0]) if len(V) else 0.0
        value = float(np.trace(S) - np.trace(V @ S @ V.T))
        best = float(np.trace(about) - np.trace(T))
        gap = value - best + subspace_gap(frobenius_norm(R), least, top, len(V))
        return max(value, 0.0), gap

    def _from_products(self, run: Run) -> tuple[float, float]:
        """Return the same from one product S V', with the stated next eigenvalue."""
        V = self.vectors
        moments = run.sum(Moments, self.mean, "means")
        total = float((moments.square / self.divisor**2).sum())
        widen_chunks(run)
        units = Units(self.mean, self.divisor, self.mean if not run.source.is_sparse else np.zeros(len(self.mean)))
        image = scatter_product(run, units, np.ascontiguousarray(V.T))[0].T
        T = image @ V.T
        residual = frobenius_norm(image - T @ V)
        least = float(np.linalg.eigvalsh((T + T.T) / 2)[0]) if len(V) else 0.0
        value = max(total - float(np.trace(T)), 0.0)
        return value, subspace_gap(residual, least, self.following, len(V))
