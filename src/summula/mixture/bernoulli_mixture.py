"""Mixture of Bernoulli distributions (latent classes), fitted by expectation-maximisation: see `binomials.py`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.estimator.parameters import Allowed, array_like, boolean, none
from summula.core.model_files import schema
from summula.mixture.base import SHARED_PARAMETERS, STARTS
from summula.mixture.binomial_mixture import CountMixture

__all__ = ["BernoulliMixture"]

Array = NDArray[Any]


@schema.saved(
    probabilities_=schema.Array("float64", "n_components", "n_features", low=0.0, high=1.0),
)
class BernoulliMixture(CountMixture):
    """Mixture of Bernoulli distributions: columns of zeros and ones, independent given the component.

    Parameters
    ----------
    n_components : int, default=2
    probabilities_init : array-like of shape (n_components, n_features), optional
        Probabilities of a one to start from.
    weights_init : array-like of shape (n_components,), optional
        Weights to start from; equal ones by default.
    fit_weights : bool, default=True
        Whether weights are estimated; otherwise they stay at `weights_init`, or equal.
    tol : float, default=1e-6
        The fit stops when a step raises the log-likelihood per row by less than this.
    max_iter : int, default=1000
        Maximum number of EM steps.
    n_init : int, default=1
        Number of starts, where `probabilities_init` is not given.
    init_params : {"kmeans", "k-means++", "random_from_data", "random"}, default="kmeans"
        How starts are found.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts, and of `sample`.
    warm_start : bool, default=False
        Whether a fit goes on from the one before.
    n_jobs : int, optional
        Maximum number of threads; None uses all.
    max_time : float, optional
        Seconds after which a fit stops with the best model so far.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    probabilities_ : ndarray of shape (n_components, n_features)
    converged_ : bool
    n_iter_ : int
        EM steps.
    lower_bound_, lower_bounds_ : float, list of float
        The log-likelihood per row before the last M-step, and before each.
    certificate_ : MixtureCertificate
        The log-likelihood of the fitted parameters, and how far one more EM step would move them.
    selection_ : dict
        Of a model from `select`: the criterion for each number of components.
    n_features_in_, feature_names_in_ : as in scikit-learn

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

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **SHARED_PARAMETERS,
        "probabilities_init": (none, array_like),
        "fit_weights": (boolean,),
        "init_params": (STARTS,),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        probabilities_init: Any = None,
        weights_init: Any = None,
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

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BernoulliMixture:
        """Fit the mixture.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
            Zeros and ones.
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Weights; a weight of 3 counts as the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            self._fit(run)
        return self

    def _trials(self, d: int) -> Array:
        return np.ones(d)
