"""Base class of mixtures: probabilities of components, densities, information criteria, the number of components."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from summula import em
from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.clusterer import Density
from summula.core.estimator.input.argument_values import is_choice, numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.rows import DENSE_ROWS, ProbabilityWriter
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.solution import Solution
from summula.mixture.certificate import MixtureCertificate, certificate_of

__all__ = ["Mixture", "checked_weights"]

Array = NDArray[Any]

SHARED_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "n_components": (integer(1),),
    "tol": (real(0.0),),
    "max_iter": (integer(0),),
    "n_init": (integer(1, 10_000),),
    "weights_init": (none, array_like),
    "random_state": (random_state,),
    "warm_start": (boolean,),
    "n_jobs": (none, integer()),
    "max_time": (none, real(0.0)),
}
STARTS = one_of("kmeans", "k-means++", "random", "random_from_data")


@inherit_docs()
def _weights_are_shares(model: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: components have shares, from which `sample` draws."""
    return None if abs(model.weights_.sum() - 1.0) < 1e-9 else "weights_ do not add up to 1"


@schema.state(
    _weights_are_shares,
    schema.nonempty("n_components"),
    weights_=schema.Array("float64", "n_components", low=0.0),
    converged_=schema.Flag(),
    n_iter_=schema.Integer(0),
    lower_bound_=schema.Real(finite=False),
    lower_bounds_=schema.Items(schema.Real(finite=False)),
    certificate_=schema.Maybe(schema.Object(MixtureCertificate, n_components="n_components", n_features="n_features")),
    selection_=schema.Maybe(schema.Dict(schema.Integer(1), schema.Real(finite=False))),
)
class Mixture(ProbabilityWriter, Density):
    """Base class of mixtures. Subclasses implement `_log_joint`, `_model` and `_name_parameters`.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None, default=None
        Seed for the starts, and for `sample`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    converged_ : bool
    certificate_ : MixtureCertificate
        The log-likelihood at the fitted parameters, and their change by one more EM step.
    selection_ : dict
        The criterion for each number of components, for models returned by `select`.
    """

    _accepts_sparse: ClassVar[bool] = False
    n_components: int
    weights_: Array
    lower_bounds_: list[float]

    def _log_joint(self, chunk: Chunk) -> Array:
        """Return log pi_k + log p_k(x) of the rows of a chunk, shape (n, n_components)."""
        raise NotImplementedError

    def _model(self, run: Run) -> em.Model[Any, Any]:
        """Return the EM model of the rows, with its starts."""
        raise NotImplementedError

    def _name_parameters(self, theta: Any) -> None:
        """Set the fitted attributes from the parameters of the EM model."""
        raise NotImplementedError

    def _n_parameters(self) -> int:
        """Return the number of free parameters of the fitted density."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
            Training data: numbers or NaN for a missing value (`GaussianMixture`), zeros and ones (`BernoulliMixture`),
            or counts of successes (`BinomialMixture`, where a vector is one column).
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run, one_blas_thread():
            self._fit(run)  # the bits of its products do not depend on the number of threads
        return self

    def _fit(self, run: Run) -> None:
        """Run the EM loop and set the fitted attributes."""
        if run.source.n_rows < self.n_components:
            raise DataError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {run.source.n_rows}: use fewer components."
            )
        run.keep_rows(passes=self.max_iter)
        run.refine(self.n_components)
        previous = float(getattr(self, "lower_bound_", -np.inf)) if self._continues() else -np.inf
        model = self._model(run)
        solution = em.fit(
            model,
            run,
            tol=self.tol,
            max_iter=self.max_iter,
            previous=previous,
            assign=self._assign,
        )
        self._assign(solution)
        self.certificate_ = certificate_of(model, run, solution.x)
        if not solution.converged and solution.status == "max_iter" and self.max_iter:
            steps = [previous, *solution.trace][-2:]
            gain = f"raised the log-likelihood per row by {steps[1] - steps[0]:.2g}; tol={self.tol}"
            warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                "tol, or check for degenerate data."
                + (f" (Step {solution.n_steps} {gain}.)" if np.isfinite(steps[0]) else ""),
                ConvergenceWarning,
            )

    def _continues(self) -> bool:
        """Whether the fit starts from the previous one."""
        return bool(self.warm_start and hasattr(self, "converged_"))

    def _assign(self, solution: Solution) -> None:
        self._name_parameters(solution.x)
        self.converged_ = bool(solution.converged)
        self.n_iter_ = int(solution.n_steps)
        self.lower_bounds_ = list(solution.trace)
        self.lower_bound_ = float(solution.value)
        reg_covar, fit_weights = getattr(self, "reg_covar", 0.0), getattr(self, "fit_weights", True)
        # Until the last pass, or permanently if the fit is interrupted.
        self.certificate_ = MixtureCertificate(
            "stationary", -self.lower_bound_, np.inf, solution.x, np.inf, reg_covar, fit_weights
        )

    # ----------------------------------------------------------------------------------------------------- predicting

    def _log_density(self, chunk: Chunk) -> Array:
        return np.asarray(special.logsumexp(self._log_joint(chunk), axis=1))

    @inherit_docs(DENSE_ROWS, Density.score_samples)
    def predict(self, X: Any) -> Any:
        """Return the most probable component of each row; ties go to the first."""
        check_is_fitted(self)
        return self._by_row(X, self._log_joint, _most_probable)

    @inherit_docs(predict)
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each component, given the row (responsibilities).

        Returns
        -------
        ndarray of shape (n_samples, n_components); batches for a scan, a Dask array for a Dask collection
        """
        check_is_fitted(self)
        return self._by_row(X, self._log_joint, functools.partial(special.softmax, axis=1))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return the most probable component of each row.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        As `predict`.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _class_names(self) -> tuple[str, ...]:
        return tuple(f"component_{k}" for k in range(len(self.weights_)))

    # ------------------------------------------------------------------------------------------------------ criteria

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Compute the Bayesian information criterion, -2 log-likelihood + (free parameters) log n; smaller is better.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        float
        """
        sums = self._log_likelihood(X, sample_weight)
        return float(-2 * sums.total + self._n_parameters() * np.log(sums.weight))

    @inherit_docs(bic)
    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Compute Akaike's information criterion, -2 log-likelihood + 2 (free parameters); smaller is better."""
        return float(-2 * self._log_likelihood(X, sample_weight).total + 2 * self._n_parameters())

    def select(
        self, X: Any, n_components: Iterable[int] = range(1, 11), *, sample_weight: Any = None, criterion: str = "bic"
    ) -> Any:
        """Fit mixtures with different numbers of components and return the one with the smallest criterion.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
        n_components : iterable of int, default=range(1, 11)
            Numbers of components to try.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
        criterion : {"bic", "aic"}, default="bic"

        Returns
        -------
        estimator
            A new fitted model; its `selection_` has the criterion for each number of components.
        """
        if not is_choice(criterion, ("bic", "aic")):
            raise ParameterError(f"criterion must be 'bic' or 'aic'; got {criterion!r}.")
        values: dict[int, float] = {}
        best: Any = None
        for k in n_components:
            model = clone(self).set_params(n_components=int(k)).fit(X, sample_weight=sample_weight)
            values[int(k)] = getattr(model, criterion)(X, sample_weight)
            if best is None or values[int(k)] < min(v for other, v in values.items() if other != int(k)):
                best = model
        if best is None:
            raise ParameterError(
                "n_components is empty: pass the numbers of components to try, for example range(1, 11)."
            )
        best.selection_ = values
        return best

    # ------------------------------------------------------------------------------------------------------- sampling

    def _draw(self, rng: Any, component: int, size: int) -> Array:
        """Draw some rows of a component."""
        raise NotImplementedError

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the fitted density, component by component.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The component each row was drawn from.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ParameterError(
                f"Invalid value for 'n_samples': {n_samples}. The sampling requires at least one sample."
            )
        state = self.random_state
        rng = state if isinstance(state, np.random.Generator) else check_random_state(state)
        sizes = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        rows = [self._draw(rng, k, int(size)) for k, size in enumerate(sizes)]
        return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)


def _most_probable(joint: Array) -> Array:
    return np.asarray(joint.argmax(axis=1))


def checked_weights(weights: Any, k: int) -> Array:
    """Return the user's weights; errors have scikit-learn's wording."""
    values = numbers_in("weights_init", weights)
    if values.shape != (k,):
        raise ParameterError(f"The parameter 'weights' should have the shape of ({k},), but got {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        # (scikit-learn calls the smallest one max, and the largest one min.)
        raise ParameterError(
            f"The parameter 'weights' should be in the range [0, 1], but got max value {values.min():.5f}, "
            f"min value {values.max():.5f}"
        )
    if not np.isclose(values.sum(), 1.0):
        raise ParameterError(f"The parameter 'weights' should be normalized, but got sum(weights) = {values.sum():.5f}")
    return values
