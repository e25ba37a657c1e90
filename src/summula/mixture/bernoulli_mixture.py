"""Mixture of Bernoulli distributions (latent classes), fitted by expectation-maximisation: see `binomials.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.docstrings import inherit_docs
from summula.core.model_files import schema
from summula.mixture.binomial_mixture import CountMixture

__all__ = ["BernoulliMixture"]

Array = NDArray[Any]


@inherit_docs()
@schema.saved(
    probabilities_=schema.Array("float64", "n_components", "n_features", low=0.0, high=1.0),
)
class BernoulliMixture(CountMixture):
    """Mixture of Bernoulli distributions: columns of zeros and ones, independent given the component.

    Parameters
    ----------
    probabilities_init : array-like of shape (n_components, n_features), optional
        Initial probabilities of a one.
    tol : float, default=1e-6
        Stop when a step increases the log-likelihood per row by less than this.

    Attributes
    ----------
    probabilities_ : ndarray of shape (n_components, n_features)

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, section 9.3.3.

    Examples
    --------
    >>> from summula.mixture import BernoulliMixture
    >>> X = [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]
    >>> BernoulliMixture(2, random_state=0).fit_predict(X).tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        probabilities_init: ArrayLike | None = None,
        weights_init: ArrayLike | None = None,
        fit_weights: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.probabilities_init = probabilities_init
        self.weights_init = weights_init
        self.fit_weights = fit_weights
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time

    def _trials(self, d: int) -> Array:
        return np.ones(d)
