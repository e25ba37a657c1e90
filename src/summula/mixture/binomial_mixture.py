"""Mixture of binomial distributions, fitted by expectation-maximisation; the derivation is in `binomials.py`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import draw_seed, stream_key
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.mixture.base import SHARED_PARAMETERS, STARTS, Mixture, checked_weights
from summula.mixture.binomials import BinomialEM, Binomials, counted, log_joint

__all__ = ["BinomialMixture", "CountMixture"]

Array = NDArray[Any]

_MOST_TRIALS = 2**53  # counts beyond are not exact in double precision


class CountMixture(Mixture):
    """Base class of mixtures of binomial and of Bernoulli distributions.

    Parameters
    ----------
    n_components : int, default=2
    weights_init : array-like of shape (n_components,), optional
        Initial weights; equal by default.
    fit_weights : bool, default=True
        Whether to estimate the weights; otherwise they are fixed at `weights_init`, or equal.
    max_iter : int, default=1000
        Maximum number of EM steps.
    n_init : int, default=1
        Number of starts, if `probabilities_init` is not given.
    init_params : {"kmeans", "k-means++", "random_from_data", "random"}, default="kmeans"
        Initialisation method.

    Attributes
    ----------
    n_iter_ : int
        Number of EM steps.
    lower_bound_, lower_bounds_ : float, list of float
        The log-likelihood per row before the last M-step, and before each.
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **SHARED_PARAMETERS,
        "probabilities_init": (none, array_like),
        "fit_weights": (boolean,),
        "init_params": (STARTS,),
    }

    probabilities_: Array
    fit_weights: bool
    n_components: int

    def _trials(self, d: int) -> Array:
        """Return the number of trials of each column."""
        raise NotImplementedError

    def _table(self, d: int) -> Array:
        """Return the fitted probabilities, shape (n_components, d)."""
        return self.probabilities_.reshape(-1, d)

    def _model(self, run: Run) -> BinomialEM:
        d, k = run.source.n_features, self.n_components
        weights = None if self.weights_init is None else checked_weights(self.weights_init, k)
        p = None if self.probabilities_init is None else _checked_probabilities(self.probabilities_init, k, d)
        if self._continues():
            weights, p = self.weights_, self._table(d)
            if p.shape != (k, d):
                raise ParameterError(
                    f"warm_start continues a fit with probabilities of shape {p.shape}, but this one has {(k, d)}: "
                    "set warm_start=False."
                )
        seed = draw_seed(self.random_state)
        seeds = [seed, *(stream_key(seed, j) for j in range(1, self.n_init))]
        options = {"fit_weights": self.fit_weights, "method": self.init_params, "seeds": seeds}
        return BinomialEM(k, self._trials(d), weights, p, **options)

    def _name_parameters(self, theta: Binomials) -> None:
        self.weights_, self.probabilities_ = theta.weights, theta.probabilities

    def _log_joint(self, chunk: Chunk) -> Array:
        d = chunk.n_features
        theta = Binomials(self.weights_, self._table(d), self._trials(d))
        return log_joint(counted(chunk, theta.trials), theta)

    def _n_parameters(self) -> int:
        free_weights = len(self.weights_) - 1 if self.fit_weights else 0
        return int(self.probabilities_.size + free_weights)

    def _draw(self, rng: Any, component: int, size: int) -> Array:
        d = self.n_features_in_
        trials = self._trials(d).astype(np.int64)
        return np.asarray(rng.binomial(trials, self._table(d)[component], (size, d)), np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags


def _probabilities_are_of_all_columns(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: a vector is of one column."""
    if model.probabilities_.ndim == 1 and sizes["n_features"] != 1:
        return f"probabilities_ are of one column, not of {sizes['n_features']}"
    return None


@inherit_docs()
@schema.saved(
    _probabilities_are_of_all_columns,
    probabilities_=schema.Array("float64", "n_components", low=0.0, high=1.0)
    | schema.Array("float64", "n_components", "n_features", low=0.0, high=1.0),
)
class BinomialMixture(CountMixture):
    """Mixture of binomial distributions, such as tosses of one of several unknown coins.

    Parameters
    ----------
    n_trials : int or array-like of shape (n_features,), default=1
        Number of trials of each count of successes.
    probabilities_init : array-like of shape (n_components,) or (n_components, n_features), optional
        Initial probabilities of success.
    tol : float, default=1e-8
        Stop when a step increases the log-likelihood per row by less than this.

    Attributes
    ----------
    probabilities_ : ndarray of shape (n_components,), or (n_components, n_features) for several columns

    Notes
    -----
    X has one column per count. A vector is treated as one column.

    References
    ----------
    Do, Batzoglou (2008), What is the expectation maximization algorithm?, Nature Biotechnology 26.

    Examples
    --------
    Five times one of two coins was drawn and tossed ten times; heads came up 5, 9, 8, 4 and 7 times.

    >>> from summula.mixture import BinomialMixture
    >>> coins = BinomialMixture(2, n_trials=10, probabilities_init=[0.6, 0.5], fit_weights=False)
    >>> coins.fit([[5], [9], [8], [4], [7]]).probabilities_.round(3)
    array([0.797, 0.52 ])
    >>> coins.set_params(fit_weights=True).fit([[5], [9], [8], [4], [7]]).probabilities_.round(3)
    array([0.793, 0.514])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **CountMixture._parameters,
        "n_trials": (integer(1), array_like),
    }

    def __init__(
        self,
        n_components: int = 2,
        n_trials: int | ArrayLike = 1,
        *,
        probabilities_init: ArrayLike | None = None,
        weights_init: ArrayLike | None = None,
        fit_weights: bool = True,
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_trials = n_trials
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

    def _source(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Source:
        return super()._source(_column(X), y, sample_weight, **options)

    def _reading(self, X: Any) -> Source:
        return super()._reading(_column(X) if self.n_features_in_ == 1 else X)

    def _name_parameters(self, theta: Binomials) -> None:
        super()._name_parameters(theta)
        if self.probabilities_.shape[1] == 1:
            self.probabilities_ = self.probabilities_[:, 0].copy()

    def _trials(self, d: int) -> Array:
        try:
            trials = np.asarray(self.n_trials, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(
                f"n_trials must be integers from 1 to {_MOST_TRIALS:,}; got {self.n_trials!r}."
            ) from None
        if trials.ndim > 1 or (trials.ndim == 1 and len(trials) != d):
            raise ParameterError(
                f"n_trials has shape {trials.shape}; pass one number of trials, or one for each of the {d} columns."
            )
        if not ((trials >= 1) & (trials == np.floor(trials)) & (trials <= _MOST_TRIALS)).all():
            raise ParameterError(f"n_trials must be integers from 1 to {_MOST_TRIALS:,}; got {self.n_trials!r}.")
        return np.array(np.broadcast_to(trials, (d,)))


def _column(X: Any) -> Any:
    """Return a vector of counts as one column, and any other X unchanged."""
    if isinstance(X, list | tuple) and X and all(np.ndim(item) == 0 and not isinstance(item, str) for item in X):
        return np.asarray(X)[:, None]
    return X[:, None] if isinstance(X, np.ndarray) and X.ndim == 1 else X


def _checked_probabilities(given: Any, k: int, d: int) -> Array:
    values = numbers_in("probabilities_init", given)
    if values.shape == (k,) and d == 1:
        values = values[:, None]
    if values.shape != (k, d):
        raise ParameterError(f"probabilities_init should have the shape of ({k}, {d}), but got {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise ParameterError("probabilities_init should be in the range [0, 1]")
    return np.array(values, order="C")
