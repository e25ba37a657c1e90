"""Random features of polynomial kernels by sketches.

The count sketch of x adds every s(j) x_j to entry h(j) of a vector of length m, with random indices h and signs s;
the product of two sketches has the expectation x'z. The sketch of the p-fold tensor product of x is the convolution of
p independent sketches, a product of their Fourier transforms,

    phi(x) = F^-1( F(C_1 x) F(C_2 x) ... F(C_p x) ),      E phi(x)'phi(z) = (gamma x'z + coef0)^p                (1)

with x replaced by (sqrt(gamma) x, sqrt(coef0)). Pham and Pagh (2013), Fast and scalable polynomial kernels via explicit
feature maps.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import integers, seed_from, stream_key
from summula.core.estimator.parameters import Allowed, integer, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.kernel_approximation.random_features import RandomFeatures

__all__ = ["PolynomialCountSketch"]

Array = NDArray[Any]


_MOST_COMPONENTS = 2**20  # maximum number of values per row


def _places_fit(sketch: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: every index is that of a component, and there is one for each term."""
    places = getattr(sketch, "indexHash_", None)
    if places is not None and places.shape[1] != sizes["n_features"] + (sketch.coef0 != 0):
        return f"indexHash_ has {places.shape[1]} terms for {sizes['n_features']} columns"
    if places is not None and places.size and int(places.max()) >= sketch.n_components:
        return f"indexHash_ has indices beyond the {sketch.n_components} components"
    return None


@inherit_docs()
@schema.saved(
    _places_fit,
    schema.nonempty("n_factors"),
    indexHash_=schema.Array("int64", "n_factors", "n_terms", low=0),
    bitHash_=schema.Array("int64", "n_factors", "n_terms", low=-1, high=1),
)
class PolynomialCountSketch(RandomFeatures):
    """Features of the polynomial kernel by tensor sketches.

    Parameters
    ----------
    gamma : float, default=1.0
    degree : int, default=2
    coef0 : float, default=0.0
        Non-negative.
    n_components : int, default=100

    Attributes
    ----------
    indexHash_ : ndarray of shape (degree, n_features), or n_features + 1 where coef0 is not 0
        Index of the entry to which each column is added, in each of the sketches.
    bitHash_ : ndarray of the same shape
        Sign of each column.

    Examples
    --------
    >>> from summula.kernel_approximation import PolynomialCountSketch
    >>> Z = PolynomialCountSketch(degree=2, n_components=4_096, random_state=0).fit_transform([[1.0, 2.0], [3.0, 1.0]])
    >>> (Z @ Z.T).round()
    array([[ 25.,  25.],
           [ 25., 100.]])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "gamma": (real(0.0),),
        "degree": (integer(1),),
        "coef0": (real(0.0),),
        "n_components": (integer(1, _MOST_COMPONENTS),),
        "random_state": (random_state,),
    }

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        degree: int = 2,
        coef0: float = 0.0,
        n_components: int = 100,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, run: Run) -> None:
        """Draw indices and signs, which depend on the number of columns only."""
        terms = run.source.n_features + (self.coef0 != 0)
        seed, shape = seed_from(self.random_state), (int(self.degree), terms)
        size = shape[0] * shape[1]
        self.indexHash_ = integers(stream_key(seed, 0), size, int(self.n_components)).reshape(shape)
        self.bitHash_ = (2 * integers(stream_key(seed, 1), size, 2) - 1).reshape(shape)

    def _features(self, chunk: Chunk) -> Array:
        """Return the features (1)."""
        d = self.indexHash_.shape[1] - (self.coef0 != 0)
        total: Any = None
        for place, sign in zip(self.indexHash_, self.bitHash_, strict=True):
            C = sparse.csr_array(
                (np.sqrt(float(self.gamma)) * sign[:d], (np.arange(d), place[:d])), shape=(d, int(self.n_components))
            )
            sketch = (chunk.X @ C).toarray() if chunk.is_sparse else (C.T @ chunk.block(np.float64).T).T
            sketch = np.ascontiguousarray(sketch)
            if self.coef0 != 0:
                sketch[:, place[-1]] += sign[-1] * np.sqrt(float(self.coef0))
            transformed = fft.rfft(sketch, axis=1)
            total = transformed if total is None else total * transformed
        return np.asarray(fft.irfft(total, n=int(self.n_components), axis=1))
