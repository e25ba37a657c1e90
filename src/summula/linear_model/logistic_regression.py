"""Logistic and softmax regression: P(class k | x) is proportional to exp(b_k + v_k'x).

    min  C sum_i w_i log(1 / P(y_i | x_i)) + rho |V|_1 + (1 - rho)/2 ||V||^2                                    (1)

rho is `l1_ratio`. For two classes there is one score, b + v'x, the log-odds of the second; for more there is one score
per class (softmax). Solved, divided by C, in `glm/solver.py`; with an L1 penalty, in `l1/likelihood.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError, warn
from summula.core.estimator.classifier import weights_of_labels
from summula.core.estimator.linear.factor_columns import FactorTerms
from summula.core.estimator.linear.formula import TEXT, FormulaModel
from summula.core.estimator.linear.linear_classifier import ProbabilityClassifier
from summula.core.estimator.linear.linear_predictor import SparseCoefficients
from summula.core.estimator.parameters import Allowed, boolean, integer, mapping, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import ClassWeights
from summula.linear_model.glm.model import GlmModel, relative_gap
from summula.linear_model.glm.objective import GlmProblem
from summula.linear_model.glm.statistics.inference import SummaryOptions
from summula.linear_model.glm.statistics.quality import quality_of_classes
from summula.losses import Logistic, Multinomial
from summula.penalties import Penalty
from summula.stats.families import Bernoulli
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link, Logit
from summula.stats.summary import SUMMARY_DOCS, Summary

__all__ = ["LogisticRegression"]

Array = NDArray[Any]

_SOLVERS = ("auto", "lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


@inherit_docs()
@schema.saved(n_iter_=schema.Array("int32", "n_fits", low=0))
class LogisticRegression(FormulaModel, FactorTerms, SparseCoefficients, ProbabilityClassifier, GlmModel):
    """Logistic regression classifier, fitted by penalised maximum likelihood.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, default="deprecated"
        For compatibility with scikit-learn: "l1" means l1_ratio=1, "l2" l1_ratio=0, and None C=inf.
    C : float, default=1.0
        Inverse strength of the penalty; inf means no penalty. The intercept is not penalised.
    l1_ratio : float, default=0.0
        Weight of the L1 penalty, which gives sparse coefficients: 1 is the L1 penalty, 0 the L2 penalty.
    dual : bool, default=False
        Ignored.
    intercept_scaling : float, default=1
        Ignored; the intercept is never penalised.
    class_weight : dict of label to weight, "balanced" or None, default=None
        Weights of the classes; "balanced" gives every class the same total weight.
    random_state : optional
        Ignored; the fit is deterministic.
    solver : {"auto", "lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}, default="auto"
        For compatibility with scikit-learn; every value is accepted and none affects the result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    factor_levels_ : dict of str to tuple
        Levels of text columns; the first level is the reference, and the others have one coefficient each.
    coef_names_ : tuple of str
        Names of the coefficients: numeric columns first, then factors level by level.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_iter_ : ndarray of shape (1,)
        Number of steps over all rows.
    certificate_ : GlmCertificate
        The objective (1), divided by C, and a bound on its suboptimality; with an L1 penalty also `zeros`:
        coefficients that are zero in every minimiser.

    References
    ----------
    Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = LogisticRegression().fit(X, ["no", "no", "yes", "no", "yes", "yes"])
    >>> model.predict([[0.5], [4.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.predict_proba([[2.5]]).round(3)
    array([[0.5, 0.5]])
    """

    coef_: Any
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "penalty": (none, one_of("l1", "l2", "elasticnet", "deprecated")),
        "C": (real(0.0, open_low=True),),
        "l1_ratio": (none, real(0.0, 1.0)),
        "dual": (boolean,),
        "tol": (real(0.0),),
        "fit_intercept": (boolean,),
        "intercept_scaling": (real(0.0, open_low=True),),
        "class_weight": (none, one_of("balanced"), mapping),
        "random_state": (random_state,),
        "solver": (one_of(*_SOLVERS),),
        "max_iter": (integer(0),),
        "verbose": (boolean, integer(0)),
        "warm_start": (boolean,),
        "n_jobs": (none, integer()),
        "max_time": (none, real(0.0)),
        "formula": (none, TEXT),
    }

    def __init__(
        self,
        penalty: Any = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        formula: str | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.formula = formula

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any type; may be omitted if the formula names the target.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        """
        design, X, y, sample_weight = self._learn_formula(X, y, sample_weight)
        with self._fitting(X, y, sample_weight) as run:
            self._keep_formula(design)
            self._name_terms(run)
            problem = self._problem(run)
            self._solved(run, problem, (X, y, sample_weight), self.classes_)
            if not problem.penalised:
                self._quality = quality_of_classes(run, self._fit, problem)
        return self

    def _problem(self, run: Run) -> GlmProblem:
        return self._problem_at(*self._strength(), self._class_weights(run))

    def _problem_at(self, strength: float, l1_ratio: float, class_weight: Array | None) -> GlmProblem:
        """Return the problem (1) with strength = 1/C."""
        K = len(self.classes_)
        return GlmProblem(
            Logistic() if K == 2 else Multinomial(K),
            Penalty.of_ratio(strength, l1_ratio),
            self.fit_intercept,
            outputs=1 if K == 2 else K,
            class_weight=class_weight,
            tolerance=relative_gap(self.tol),
            max_steps=self.max_iter,
            # With max_iter=0 all parameters are 0, as in scikit-learn.
            link=Logit() if self.max_iter else None,
        )

    def _strength(self) -> tuple[float, float]:
        """Return 1/C and the L1 ratio from scikit-learn's current and deprecated parameters, with its warnings."""
        if self.penalty != "deprecated":
            warn(
                "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave "
                "'penalty' set to its default value and use 'l1_ratio' or 'C' instead. Use l1_ratio=0 instead of "
                "penalty='l2', l1_ratio=1 instead of penalty='l1', l1_ratio set to a float between 0 and 1 instead of "
                "penalty='elasticnet', and C=np.inf instead of penalty=None.",
                FutureWarning,
            )
        elif self.l1_ratio is None:
            warn(
                "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use 0<=l1_ratio<=1 "
                "instead.",
                FutureWarning,
            )
        if self.penalty in ("l1", "l2", None) and self.l1_ratio is not None and 0 < self.l1_ratio < 1:
            warn(
                f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={self.penalty})",
                UserWarning,
            )
        if (self.penalty == "l2" and self.l1_ratio != 0) or (self.penalty == "l1" and self.l1_ratio != 1):
            warn(
                f"Inconsistent values: penalty={self.penalty} with l1_ratio={self.l1_ratio}. penalty is deprecated. "
                "Please use l1_ratio only.",
                UserWarning,
            )
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ParameterError("l1_ratio must be specified when penalty is elasticnet.")
        if self.penalty is None and self.C != 1.0:
            warn("Setting penalty=None will ignore the C and l1_ratio parameters", UserWarning)
        if self.penalty is None or np.isinf(self.C):
            return 0.0, 0.0
        ratio = {"l1": 1.0, "l2": 0.0}.get(self.penalty, self.l1_ratio or 0.0)
        return 1.0 / float(self.C), float(ratio)

    def _class_weights(self, run: Run) -> Array | None:
        """Return the weight of each class, in the order of the classes."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str):
            totals = run.sum(ClassWeights, len(self.classes_), "class weights").totals
            present = totals > 0
            return np.asarray(np.where(present, totals.sum() / (present.sum() * np.where(present, totals, 1.0)), 0.0))
        return weights_of_labels(self.class_weight, self.classes_)

    # ----------------------------------------------------------------------------------------------------- summarising

    @inherit_docs(SUMMARY_DOCS)
    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cov: str = "classical",
        groups: Any = None,
        weights: str = "frequency",
        level: float = 0.95,
        odds_ratios: bool = False,
    ) -> Summary:
        """Compute standard errors, tests and confidence intervals of the coefficients of an unpenalised fit.

        Parameters
        ----------
        cov : {"classical", "HC0", "HC1", "cluster"}
            Covariance estimator: from the expected information, or a sandwich estimator that is robust to
            heteroscedasticity, or to dependence within groups.
        odds_ratios : bool
            Whether to report odds ratios, exp(coefficient).

        Returns
        -------
        Summary
            Prints as a table; `to_frame()` converts it to a data frame. With several classes, each is compared with
            the first.
        """
        options = SummaryOptions(cov, weights, level, odds_ratios)
        return self._summarised((X, y, sample_weight), options, groups)

    def _distribution(self) -> tuple[Family, Link]:
        return Bernoulli(), Logit()
