"""Bayesian logistic regression: a posterior over the weights, and predictions averaged over it.

Prior v ~ N(0, s^2 I), flat for the intercept; theta = (b, v), z = (1, x - o). The posterior is

    p(theta | data) proportional to exp(-J(theta)),   J = sum_i w_i log(1 + exp(-y_i z_i'theta)) + |v|^2 / (2 s^2)   (1)

1. **Mode.** The minimum of J: L2 logistic regression (`glm/solver.py`).
2. **Laplace approximation.** A normal about the mode with the inverse Hessian as covariance, S = H^-1.         (2)
   A score z'theta is then normal with mean m and variance u = z'S z, and with kappa = (1 + pi u / 8)^(-1/2)

       P(y = 1 | x) = integral of sigmoid(t) N(t; m, u) dt, nearly sigmoid(kappa m)                              (3)

3. **Importance sampling.** Draws from a multivariate t about the mode, weighted by posterior over proposal; one pass
   over the rows computes the likelihood of all draws. The weighted average of sigmoid over the draws is (3) up to
   sampling error; `effective_samples_` is the effective sample size.
4. **Evidence.** The marginal likelihood of the data given s, by (2):

       log E(s) = -J - d log s - 1/2 log |H| + const,     s^2 = |v|^2 / gamma,   gamma = d - tr(S_vv) / s^2      (4)

   maximised by a fixed-point iteration for `prior_scale="evidence"` (MacKay 1992).
References: MacKay (1992), The evidence framework applied to classification networks; Bishop (2006), section 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_fraction
from summula.core.estimator.linear.linear_classifier import ProbabilityClassifier
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum
from summula.linear_model.glm.model import GlmModel, relative_gap
from summula.linear_model.glm.objective import GlmFit, GlmProblem, Objective
from summula.linear_model.glm.solver import solve
from summula.linear_model.glm.sums import At, linear_predictor, row_weights
from summula.losses import Logistic, score_losses
from summula.penalties import Penalty
from summula.stats.families import Bernoulli
from summula.stats.links import Logit

__all__ = ["BayesianLogisticRegression"]

Array = NDArray[Any]

_DEGREES = 5.0  # degrees of freedom of the proposal, whose tails are heavier than the posterior's
_MOST_DIMENSIONS = 50  # above this importance weights degenerate


_SCALES = 1e-150, 1e150  # range of prior scales, whose squares neither overflow nor underflow


@dataclass(frozen=True)
class _Likelihoods(Sum):
    """The loss of (1) summed over rows, for several parameters at once."""

    values: Array

    @classmethod
    def map(cls, chunk: Chunk, params: At) -> Self:
        """Return the sums over one chunk, one per column of theta."""
        eta = linear_predictor(chunk, params)
        w, sign = row_weights(chunk, None), np.where(chunk.target[:, None] > 0, 1.0, -1.0)
        loss = score_losses("log_loss", 1.0, sign, eta).value
        return cls(loss.sum(axis=0) if w is None else w @ loss)


def _counts_parameters(model: Any, sizes: schema.Sizes) -> str | None:
    parameters = sizes["n_features"] + int(model.fit_intercept)
    if sizes["n_scores"] != 1 or sizes["n_parameters"] != parameters:
        return f"the posterior has {sizes['n_parameters']} parameters, but the model has {parameters} for one score"
    if model.predictive == "sampling" and not (hasattr(model, "_draws") and hasattr(model, "_weights")):
        return "predictive is 'sampling', but there are no weighted draws"
    return None


@schema.saved(
    _counts_parameters,
    schema.nonempty("n_draws"),
    n_iter_=schema.Array("int32", "n_fits", low=0),
    prior_scale_=schema.Real(*_SCALES),
    log_evidence_=schema.Real(finite=False),
    effective_samples_=schema.Maybe(schema.Real(finite=False)),
    _half=schema.Array("float64", "n_parameters", "n_determined"),
    _draws=schema.Maybe(schema.Array("float64", "n_parameters", "n_draws")),
    _weights=schema.Maybe(schema.Array("float64", "n_draws", low=0.0)),
)
class BayesianLogisticRegression(ProbabilityClassifier, GlmModel):
    """Bayesian logistic regression for two classes.

    Parameters
    ----------
    prior_scale : float or "evidence", default=1.0
        Standard deviation s of the prior of each weight (scale columns first), or "evidence" to maximise the marginal
        likelihood.
    predictive : {"probit", "sampling", "map"}, default="probit"
        How predictions are averaged over the posterior: by the probit approximation (3), over weighted draws (up to 50
        columns), or not at all (the posterior mode).
    n_samples : int, default=4000
        Number of draws for predictive="sampling".
    fit_intercept : bool, default=True
        Whether to fit an intercept; its prior is flat.
    tol : float, default=1e-6
        Tolerance for the mode, as in `LogisticRegression`.
    max_iter : int, default=100
        Maximum number of steps of the solver.
    random_state : int, Generator or None, default=None
        Seed for the draws.
    max_time : float, optional
        Time limit in seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
        Posterior mode.
    intercept_ : ndarray of shape (1,)
    prior_scale_ : float
        Prior scale s, given or estimated.
    log_evidence_ : float
        Log marginal likelihood (4), up to a constant that does not depend on s.
    effective_samples_ : float
        Effective sample size of the weighted draws, with predictive="sampling".
    n_iter_ : ndarray of shape (1,)
    certificate_ : GlmCertificate
        J at the mode, and a bound on its suboptimality.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import BayesianLogisticRegression
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = BayesianLogisticRegression(prior_scale=3.0).fit(X, [0, 0, 1, 1])
    >>> model.predict_proba([[8.0]]).round(2)  # the mode alone gives 1.00
    array([[0.11, 0.89]])
    """

    coef_: Any
    solver = "auto"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "prior_scale": (real(*_SCALES), one_of("evidence")),
        "predictive": (one_of("probit", "sampling", "map"),),
        "n_samples": (integer(1),),
        "fit_intercept": (boolean,),
        "tol": (real(0.0, open_low=True),),
        "max_iter": (integer(1),),
        "random_state": (random_state,),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        prior_scale: Any = 1.0,
        *,
        predictive: str = "probit",
        n_samples: int = 4_000,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
        max_time: float | None = None,
    ) -> None:
        self.prior_scale = prior_scale
        self.predictive = predictive
        self.n_samples = n_samples
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLogisticRegression:
        """Compute the posterior.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.

        Returns
        -------
        self
        """
        with self._fitting(X, y, sample_weight) as run:
            if len(self.classes_) != 2:
                raise DataError(
                    "Only binary classification is supported. The type of the target is multiclass: "
                    f"BayesianLogisticRegression needs two classes, but y has {len(self.classes_)}; "
                    "use LogisticRegression for more."
                )
            d = run.source.n_features
            if self.predictive == "sampling" and d > _MOST_DIMENSIONS:
                raise ParameterError(
                    f'predictive="sampling" supports at most {_MOST_DIMENSIONS} columns, but X has {d} (importance '
                    'weights degenerate in higher dimensions); use predictive="probit".'
                )
            run.keep_rows()
            run.ignore_offers()  # a model without a posterior is incomplete
            scale = self._scale(run) if isinstance(self.prior_scale, str) else float(self.prior_scale)
            problem = self._problem(scale)
            self._solved(run, problem, (X, y, sample_weight), self.classes_)
            self.prior_scale_ = scale
            self._half = self._posterior(run, problem, self._fit)
            self.log_evidence_ = self._evidence(scale)
            if self.predictive == "sampling":
                self._draw(run, problem)
        return self

    def _problem(self, scale: float) -> GlmProblem:
        return GlmProblem(
            Logistic(),
            Penalty(0.0, 1.0 / scale**2),
            self.fit_intercept,
            tolerance=relative_gap(self.tol),
            max_steps=self.max_iter,
            link=Logit(),
        )

    def _posterior(self, run: Run, problem: GlmProblem, fit: GlmFit) -> Array:
        """Return F with F F' = S of (2), about the origin of the fit."""
        objective = Objective(run, problem, fit.origin)
        if not objective.affordable():
            raise DataError(
                f"The posterior of {run.source.n_features} weights needs their Hessian, which is too large; "
                "select fewer columns first."
            )
        objective(fit.at(problem).theta[:, 0], 2)
        assert objective.state.curved is not None
        return objective.state.curved.factor.half_inverse()

    def _scale(self, run: Run) -> float:
        """Return the fixed point of (4), with warm-started fits."""
        scale, start, first = 1.0, None, int(self.fit_intercept)
        d = run.source.n_features
        for _ in range(50):
            problem = self._problem(scale)
            fit = solve(run, problem, start=start)
            start = (fit.intercept, fit.coef)
            F = self._posterior(run, problem, fit)[first:]
            gamma = max(d - float((F**2).sum()) / scale**2, 1e-8)
            size = float((fit.coef**2).sum())
            new = float(np.clip(np.sqrt(size / gamma), 1e-4, 1e4))
            done = abs(np.log(new / scale)) < 1e-4
            scale = new
            run.step()
            if done:
                break
        return scale

    def _evidence(self, scale: float) -> float:
        """Equation (4)."""
        log_volume = float(np.linalg.slogdet(self._half.T @ self._half)[1]) / 2  # of S^(1/2)
        return float(-self._fit.value - self.n_features_in_ * np.log(scale) + log_volume)

    def _draw(self, run: Run, problem: GlmProblem) -> None:
        """Draw from the posterior by importance sampling."""
        rng = np.random.default_rng(self.random_state)
        mode = self._fit.at(problem).theta[:, 0]
        q = len(mode)
        normal = rng.standard_normal((q, self.n_samples))
        stretch = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, self.n_samples))
        away = normal * stretch
        draws = mode[:, None] + self._half @ away
        at = self._fit.at(problem)._replace(theta=draws)
        loss = run.sum(_Likelihoods, at, "likelihood of the draws").values
        slopes = draws[int(self.fit_intercept) :]
        target = -loss - problem.penalty / 2 * (slopes**2).sum(axis=0)
        proposal = -(_DEGREES + q) / 2 * np.log1p((away**2).sum(axis=0) / _DEGREES)
        log_weight = target - proposal
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        self._draws, self._weights = draws, weight
        self.effective_samples_ = float(1.0 / (weight @ weight))

    def _distribution(self) -> Any:
        return Bernoulli(), Logit()

    # ------------------------------------------------------------------------------------------------------- posterior

    def posterior_covariance(self) -> Array:
        """Return the posterior covariance (2) of (intercept, weights), or of the weights without an intercept.

        Returns
        -------
        ndarray of shape (1 + n_features, 1 + n_features) or (n_features, n_features)
        """
        check_is_fitted(self)
        T = self._half.copy()
        if self.fit_intercept:
            T[0] -= self._fit.origin @ T[1:]
        return np.asarray(T @ T.T)

    def credible_intervals(self, level: float = 0.95) -> Array:
        """Return credible intervals of the parameters, starting with the intercept.

        Parameters
        ----------
        level : float, default=0.95
            Probability of the intervals.

        Returns
        -------
        ndarray of shape (n_parameters, 2)
            Computed from (2), or from the draws with predictive="sampling".
        """
        check_is_fitted(self)
        if not is_fraction(level):
            raise ParameterError(f"The 'level' of credible_intervals must be between 0 and 1, not {level!r}.")
        first = int(self.fit_intercept)
        if self.predictive == "sampling":
            draws = self._draws.copy()
            if first:
                draws[0] -= self._fit.origin @ draws[1:]
            return np.array([_quantiles(row, self._weights, level) for row in draws])
        mode = np.concatenate([self._fit.intercept[:first], self._fit.coef[0]])
        half = -special.ndtri((1 - level) / 2) * np.sqrt(np.diag(self.posterior_covariance()))
        return np.column_stack([mode - half, mode + half])

    # ------------------------------------------------------------------------------------------------------ predicting

    def _score_function(self) -> RowFunction:
        """Return the function that computes averaged probabilities, from which classes are predicted."""
        return self._averaged

    @staticmethod
    def _decided(P: Array) -> Array:
        return np.asarray(special.logit(P[:, 1]))

    @staticmethod
    def _probabilities(P: Array) -> Array:
        return P

    @staticmethod
    def _log_probabilities(P: Array) -> Array:
        return np.asarray(np.log(P))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _averaged(self, chunk: Chunk) -> Array:
        """Compute (3) for each row of a chunk."""
        problem = self._problem(self.prior_scale_)
        at = self._fit.at(problem)
        mean = linear_predictor(chunk, at)[:, 0]
        if self.predictive == "sampling":
            p = special.expit(linear_predictor(chunk, at._replace(theta=self._draws))) @ self._weights
        elif self.predictive == "probit":
            spread = linear_predictor(chunk, at._replace(theta=self._half))
            p = special.expit(mean / np.sqrt(1 + np.pi / 8 * (spread**2).sum(axis=1)))
        else:
            p = special.expit(mean)
        return np.column_stack([1 - p, p]).astype(chunk.dtype, copy=False)


def _quantiles(values: Array, weights: Array, level: float) -> Array:
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    ends = np.searchsorted(share, [(1 - level) / 2, (1 + level) / 2])
    return np.asarray(values[order][np.minimum(ends, len(values) - 1)])
