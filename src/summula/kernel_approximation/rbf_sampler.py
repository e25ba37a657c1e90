"""Random features of the Gaussian kernel.

By Bochner's theorem exp(-gamma ||x - z||^2) = E cos(w'(x - z)) for w ~ N(0, 2 gamma I). With m draws of w, and
b uniform on [0, 2 pi],

    phi_j(x) = sqrt(2 / m) cos(w_j'x + b_j),       E phi(x)'phi(z) = k(x, z)                                     (1)

and the error of phi(x)'phi(z) is about 1 / sqrt(m). Rahimi and Recht (2007), Random features for large-scale kernel
machines.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import normal, seed_from, stream_key, uniform
from summula.core.estimator.parameters import Allowed, integer, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments
from summula.kernel_approximation.random_features import RandomFeatures

__all__ = ["RBFSampler"]

Array = NDArray[Any]


def _width_fits(sampler: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: there are as many weights as components."""
    weights = getattr(sampler, "random_weights_", None)
    if weights is not None and weights.shape[1] != sampler.n_components:
        return f"random_weights_ has {weights.shape[1]} columns, but n_components is {sampler.n_components}"
    return None


@inherit_docs()
@schema.saved(
    _width_fits,
    random_weights_=schema.Array("float", "n_features", "n_components"),
    random_offset_=schema.Array("float", "n_components"),
)
class RBFSampler(RandomFeatures):
    """Random Fourier features of the Gaussian kernel.

    Parameters
    ----------
    gamma : "scale" or float, default=1.0
        1 / (2 sigma^2); "scale" is 1 / (n_features X.var()), which needs a pass over the rows.
    n_components : int, default=100

    Attributes
    ----------
    random_weights_ : ndarray of shape (n_features, n_components)
    random_offset_ : ndarray of shape (n_components,)

    Examples
    --------
    >>> import numpy as np
    >>> from summula.kernel_approximation import RBFSampler
    >>> Z = RBFSampler(gamma=0.5, n_components=20_000, random_state=0).fit_transform([[0.0], [1.0]])
    >>> (Z @ Z.T).round(1)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "gamma": (one_of("scale"), real(0.0, open_low=True)),
        "n_components": (integer(1),),
        "random_state": (random_state,),
    }

    def __init__(self, *, gamma: Any = 1.0, n_components: int = 100, random_state: Any = None) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, run: Run) -> None:
        """Draw the weights, which depend on the number of columns only, unless gamma is "scale"."""
        d, m = run.source.n_features, int(self.n_components)
        seed, gamma = seed_from(self.random_state), self._rate(run)
        draws = normal(stream_key(seed, 0), d * m).reshape(d, m)
        dtype = run.source.dtype
        self.random_weights_ = (np.sqrt(2.0 * gamma) * draws).astype(dtype)
        self.random_offset_ = (2.0 * np.pi * uniform(stream_key(seed, 1), m)).astype(dtype)

    def _rate(self, run: Run) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        moments = run.sum(Moments, run.origin()[: run.source.n_features], "variance")
        d = run.source.n_features
        mean, variance = np.asarray(moments.mean), np.asarray(moments.variance)
        whole = float(variance.mean() + mean.var())
        return 1.0 / (d * whole) if whole > 0 else 1.0

    def _features(self, chunk: Chunk) -> Array:
        """Return the features (1)."""
        Z = chunk.times(self.random_weights_) + self.random_offset_
        np.cos(Z, out=Z)
        Z *= np.sqrt(2.0 / self.n_components)
        return np.asarray(Z)
