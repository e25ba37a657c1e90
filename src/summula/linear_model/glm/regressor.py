"""Base class of the GLM regressors: fitting, prediction with offsets, and the fraction of deviance explained."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.linear.factor_columns import FactorTerms
from summula.core.estimator.linear.formula import TEXT, FormulaModel
from summula.core.estimator.parameters import Allowed, boolean, check_parameters, integer, none, one_of, real
from summula.core.estimator.regressor import Regressor, check_one_target
from summula.core.estimator.rows import RowFunction, composed
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.linear_model.glm.model import relative_gap
from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.glm.offsets import rows_and_offset
from summula.linear_model.glm.statistics.diagnostics import DiagnosedGlm
from summula.linear_model.glm.statistics.quality import Quality, d2_of, quality_of
from summula.linear_model.glm.sums import WeightTotal
from summula.losses import loss_of
from summula.penalties import Penalty
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link

__all__ = ["GlmRegressor"]

Array = NDArray[Any]

_SOLVERS = ("auto", "lbfgs", "newton-cholesky")


def _one_score(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_scores"] == 1 else f"coef_ belongs to one score, but there are {sizes['n_scores']}"


@schema.state(
    _one_score,
    coef_=schema.Array("float", "n_terms"),
    intercept_=schema.Real(),
    n_iter_=schema.Integer(0),
    _shifted=schema.Maybe(schema.Flag()),
)
class GlmRegressor(FormulaModel, FactorTerms, DiagnosedGlm, Regressor):
    """Base class of generalised linear regressors with a family and a link.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty alpha ||v||^2 / 2, relative to the mean of half the deviance; the intercept is not
        penalised.
    solver : {"auto", "lbfgs", "newton-cholesky"}, default="auto"
        For compatibility with scikit-learn; it does not affect the result.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Number of steps over all rows.
    deviance_, null_deviance_, pearson_chi2_, dispersion_, log_likelihood_ : float
        Statistics of the fit.
    certificate_ : GlmCertificate
        Half the deviance plus the penalty, summed over rows, and a bound on its suboptimality.
    factor_levels_ : dict of str to tuple
        Levels of each categorical column; the first is the reference.
    coef_names_ : tuple of str
        Names of the coefficients: numeric columns, then "column[level]" for the levels of factors.
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "alpha": (real(0.0),),
        "fit_intercept": (boolean,),
        "solver": (one_of(*_SOLVERS),),
        "max_iter": (integer(1),),
        "tol": (real(0.0, open_low=True),),
        "warm_start": (boolean,),
        "verbose": (boolean, integer(0)),
        "max_time": (none, real(0.0)),
        "formula": (none, TEXT),
    }

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), or name of a column of X
            Targets, in the support of the family; may be omitted if the formula names the target.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        offset : array-like of shape (n_samples,), float, or name of a column of X, optional
            Offset, added to the linear predictor.
        exposure : array-like of shape (n_samples,), float, or name of a column of X, optional
            Exposure (time, area, number of policies) to which the mean is proportional, for a log link; equivalent to
            the offset log(exposure).

        Returns
        -------
        self
        """
        check_parameters(self, self._parameters)
        family, link = self._family_and_link()
        if exposure is not None and link.name != "log":
            raise ParameterError(
                f"An exposure multiplies the mean, which needs the log link, not {link.name!r}; pass an offset instead."
            )
        named = (X, y, sample_weight, offset, exposure)
        design, X, y, sample_weight, offset, exposure = self._learn_formula(*named)
        rows, total = rows_and_offset(X, offset, exposure)
        with self._fitting(rows, y, sample_weight, offset=total) as run:
            self._keep_formula(design)
            check_one_target(run, y)
            self._note_shift(*named[3:])
            self._name_terms(run)
            problem = self._problem(run, family, link)
            self._solved(run, problem, (X, y, sample_weight, offset, exposure))
            self._quality = quality_of(run, self._fit, problem, family, link)
        return self

    def _problem(self, run: Run, family: Family, link: Link) -> GlmProblem:
        source = run.source
        weight = run.sum(WeightTotal, None, "weights").weight if source.weighted else float(source.n_rows)
        low, high = self._limits(source.n_features)
        ratio = float(getattr(self, "l1_ratio", 0.0))
        if low is not None and ratio > 0 and self.alpha > 0:
            raise ParameterError("Bounds cannot be combined with an L1 penalty; use l1_ratio=0, or no bounds.")
        return GlmProblem(
            loss_of(family, link),
            Penalty.of_ratio(self.alpha * weight, ratio),
            self.fit_intercept,
            low=low,
            high=high,
            tolerance=relative_gap(self.tol),
            max_steps=self.max_iter,
            link=link,
            family=family,
        )

    def _limits(self, d: int) -> tuple[Array | None, Array | None]:
        return None, None

    def _name(self, fit: GlmFit, dtype: str) -> None:
        self.coef_ = fit.coef[0].astype(dtype)
        self.intercept_ = fit.intercept.astype(dtype)[0] if self.fit_intercept else 0.0
        self.n_iter_ = fit.n_iter
        # Placeholder for an interrupted fit.
        unknown = float("nan")
        self._quality = Quality(2 * fit.loss, unknown, unknown, unknown, unknown, 0, fit.weight, unknown)

    # ------------------------------------------------------------------------------------------------------ predicting

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """Predict the mean.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Rows to predict for.
        offset, exposure : optional
            As in `fit`; arrays and frames only.

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_is_fitted(self)
        if offset is None and exposure is None:
            return self._by_row(X, *self._predictor_and_mean(None))
        rows, shift = rows_and_offset(X, offset, exposure)
        if not isinstance(shift, np.ndarray):
            raise DataError("Predictions with an offset need the rows in memory; apply the offset afterwards.")
        return self._by_row(rows, *self._predictor_and_mean(shift))

    def _predictor_and_mean(self, shift: Array | None) -> tuple[RowFunction, Callable[[Array], Array]]:
        """Return the functions that compute the linear predictors of a chunk, and the means from them."""
        predictor = functools.partial(_predictors, self._score_function(), shift)
        return predictor, functools.partial(_means, self._family_and_link()[1])

    def _row_function(self) -> RowFunction:
        predictor, mean = self._predictor_and_mean(None)
        return composed(mean, predictor)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> float:
        """Return D2, the fraction of the null deviance explained by the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
        sample_weight, offset, exposure : as in `fit`

        Returns
        -------
        float
        """
        check_is_fitted(self)
        family, link = self._family_and_link()
        X, total = rows_and_offset(X, offset, exposure)
        source = self._source(X, y, sample_weight, offset=total)
        run = Run(self, source, quiet=True)
        return d2_of(run, self._at(loss_of(family, link)), family, link)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = _support(self._family_or_none()) > 0
        return tags

    def _family_or_none(self) -> Family | None:
        try:
            return self._family_and_link()[0]
        except ValueError:
            return None


def _predictors(score: RowFunction, shift: Array | None, chunk: Chunk) -> Array:
    """Return the linear predictors of the rows of a chunk plus their entries of `shift`."""
    eta = score(chunk)[:, 0]
    return eta if shift is None else eta + shift[chunk.start : chunk.stop].astype(eta.dtype, copy=False)


def _means(link: Link, eta: Array) -> Array:
    """Return the means for linear predictors."""
    return np.asarray(link.inverse(eta)).astype(eta.dtype, copy=False)


def _support(family: Family | None) -> int:
    """Return 1 if targets must be positive (scikit-learn's checks then generate such targets)."""
    return int(family is not None and family.mean_range[0] >= 0 and family.mean_range[1] > 1)
