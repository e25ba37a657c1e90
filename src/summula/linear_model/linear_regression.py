"""Ordinary least squares: min sum_i w_i (y_i - x_i'v - b)^2. Derived and solved in `least_squares/solver.py`."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone
from sklearn.callback import with_callbacks

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import is_fraction
from summula.core.estimator.linear.factor_columns import FactorTerms, term_count
from summula.core.estimator.linear.formula import TEXT, FormulaModel
from summula.core.estimator.parameters import Allowed, boolean, integer, none, real
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.linear_model.cross_validation.leave_one_out import LeftOut, leave_one_out
from summula.linear_model.least_squares.inference import with_interval
from summula.linear_model.least_squares.model import Given, LeastSquaresModel
from summula.linear_model.least_squares.problem import Fit, Problem

__all__ = ["LinearRegression"]


@inherit_docs()
@schema.saved(
    rank_=schema.Integer(0),
    n_iter_=schema.Maybe(schema.Integer(0) | None),
    trace_=schema.Maybe(schema.Items(schema.Real(finite=False))),
)
class LinearRegression(FormulaModel, FactorTerms, LeastSquaresModel):
    """Ordinary least squares, with standard errors.

    If the minimiser of the (weighted) sum of squared residuals is not unique, the one of minimum norm is returned.

    Parameters
    ----------
    tol : float, default=1e-6
        Tolerance of conjugate gradients, used for wide sparse data (relative size of the squared gradient); other
        solvers are exact up to rounding.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    rank_ : int
        Rank of the centred X.
    singular_ : ndarray
        Singular values of the centred X (computed on access).
    certificate_ : LeastSquaresCertificate
        Residual sum of squares and a bound on its suboptimality.
    n_iter_ : int or None
        Number of conjugate gradient steps, if they were used.
    factor_levels_ : dict of str to tuple
        Levels of text columns; the first level is the reference, and the others have one coefficient each.
    coef_names_ : tuple of str
        Names of the coefficients: numeric columns first, then factors level by level.

    References
    ----------
    Bjorck, Numerical Methods for Least Squares Problems, 2nd ed., chapters 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import LinearRegression
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> model = LinearRegression().fit(X, [1.1, 1.9, 3.2, 3.8])
    >>> model.coef_.round(3)
    array([0.94])
    >>> model.summary().std_error.round(4)
    array([0.248 , 0.0906])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "fit_intercept": (boolean,),
        "copy_X": (boolean,),
        "tol": (real(0.0),),
        "n_jobs": (none, integer()),
        "positive": (boolean,),
        "max_time": (none, real(0.0)),
        "formula": (none, TEXT),
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
        max_time: float | None = None,
        formula: str | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.max_time = max_time
        self.formula = formula

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearRegression:
        """Fit the model.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of the frame X
            Target values; may be omitted if the formula names the target.
        """
        design, X, y, sample_weight = self._learn_formula(X, y, sample_weight)
        with self._fitting(X, y, sample_weight) as run:
            self._keep_formula(design)
            self._name_terms(run)
            self._solved(run, X, y, sample_weight)
        return self

    def _term_count(self, n_features: int) -> int:
        return term_count(self, n_features)

    def _paired(self, other: Any) -> tuple[Any, Any]:
        self._check_levels(other)
        return super()._paired(other)

    def _name_results(self, given: Given, problem: Problem, fit: Fit) -> None:
        super()._name_results(given, problem, fit)
        self.rank_, self.n_iter_, self.trace_ = fit.rank, fit.n_iter, fit.trace

    def loo(self, X: Any, y: Any = None, sample_weight: Any = None) -> LeftOut:
        """Compute leave-one-out errors from leverages, without refitting.

        The estimator itself is not modified, and need not be fitted.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A row is left out entirely, regardless of its weight.

        Returns
        -------
        LeftOut
            Has `mean_squared_error`, and for data in memory `residuals`, `predictions` and `leverages`, one per row.

        Examples
        --------
        >>> import numpy as np
        >>> from summula.linear_model import LinearRegression
        >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
        >>> left_out = LinearRegression().loo(X, [1.1, 1.9, 3.2, 3.8])
        >>> left_out.leverages.round(3)
        array([0.7, 0.3, 0.3, 0.7])
        >>> left_out.residuals.round(3)
        array([ 0.033, -0.186,  0.329, -0.367])
        >>> round(left_out.mean_squared_error, 4)
        0.0695
        """
        if self.positive:
            raise ParameterError(
                "loo() needs an unconstrained fit: with positive=True errors cannot be computed from leverages; "
                "use sklearn.model_selection.cross_val_predict with cv=LeaveOneOut()."
            )
        model: LinearRegression = clone(self).fit(X, y, sample_weight)
        if model._fit.half_inverse is None:
            raise ParameterError(
                f"loo() needs the inverse of a {model.n_features_in_} x {model.n_features_in_} matrix, which is not "
                "computed for wide sparse data; select fewer columns first."
            )
        return leave_one_out(model._second_run(X, y, sample_weight), model._fit, self.fit_intercept)

    def predict(self, X: Any, interval: float | None = None) -> Any:
        """Predict the target, optionally with prediction intervals.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        interval : float, optional
            Coverage probability of the interval for the target of a new row of weight 1, if errors are normal with
            one variance: prediction +- t sqrt(s^2 (1 + h)), h the leverage of the row. Weights of the fit are taken as
            frequencies.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); batches for a scan, a Dask array for a Dask collection
            With an interval, of shape (n_samples, 3): prediction, lower and upper end.

        Examples
        --------
        >>> import numpy as np
        >>> from summula.linear_model import LinearRegression
        >>> model = LinearRegression().fit(np.array([[1.0], [2.0], [3.0], [4.0]]), [1.1, 1.9, 3.2, 3.8])
        >>> model.predict([[2.5]], interval=0.95).round(3)
        array([[2.5  , 1.526, 3.474]])
        """
        if interval is None:
            return super().predict(X)
        return self._by_row(X, self._interval_function(interval))

    def _interval_function(self, level: float) -> RowFunction:
        if not is_fraction(level):
            raise ParameterError(f"interval={level!r} is not a probability between 0 and 1; pass one such as 0.95.")
        self._check_summary_applies()
        fit = self._fit
        if not self._given.one_target:
            raise ParameterError("Prediction intervals support one target only; fit one model per target.")
        df = fit.weight - fit.rank - int(self.fit_intercept)
        if df <= 0:
            raise ParameterError("There are no residual degrees of freedom, so there are no intervals; fit more rows.")
        half = -float(special.stdtrit(df, (1 - level) / 2)) * float(np.sqrt(fit.rss[0] / df))
        return functools.partial(with_interval, self._row_function(), fit, self.fit_intercept, half)

    @property
    def singular_(self) -> NDArray[np.float64]:
        """Singular values of the centred (and weighted) X, in decreasing order."""
        fit = getattr(self, "_fit", None)
        if fit is None or fit.half_inverse is None:
            raise AttributeError("singular_ is available only for unconstrained fits to dense or narrow sparse data.")
        if not np.isfinite(fit.half_inverse).all():
            raise AttributeError("singular_ is not available: the scales of the columns are too far apart.")
        inverse = np.linalg.svd(fit.half_inverse, compute_uv=False)
        values = np.zeros(min(fit.count, self.n_features_in_))
        values[: fit.rank] = np.sort(1.0 / inverse)[::-1][: len(values)]
        return values
