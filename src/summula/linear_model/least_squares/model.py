"""Base class of LinearRegression, Ridge and PolynomialRegression: fitted attributes, updates and summaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.callback import with_callbacks

from summula.core.data.frames import frame_library, is_frame, pop_columns
from summula.core.data.numbers import array_of
from summula.core.data.sources import Source
from summula.core.data.training_data import keep_training, recalled
from summula.core.docstrings import inherit_docs
from summula.core.engine.threads import solving
from summula.core.errors import AccuracyWarning, CollinearityWarning, DataError, ParameterError, warn
from summula.core.estimator.additive import AdditiveEstimator
from summula.core.estimator.input.argument_values import is_choice, is_fraction
from summula.core.estimator.linear.linear_predictor import LinearPredictor, one_row_one_target
from summula.core.estimator.parameters import integer
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import rounded_up
from summula.core.numerics.statistics import Gram
from summula.linear_model.least_squares.certificate import LeastSquaresCertificate
from summula.linear_model.least_squares.groups import with_groups
from summula.linear_model.least_squares.inference import COVARIANCES, WEIGHTS, Names, SummaryOptions, summarise
from summula.linear_model.least_squares.normal_equations import from_sums
from summula.linear_model.least_squares.problem import Fit, Problem, penalty
from summula.linear_model.least_squares.solver import solve
from summula.stats.summary import SUMMARY_DOCS, Summary

__all__ = ["LeastSquaresModel"]

Array = NDArray[Any]

# Rounding error of the products, and the relative error of coefficients above which updates from sums warn.
_ACCURACY = {"float64": (1e-16, 1e-6), "float32": (6e-8, 1e-3)}


@schema.saved(
    dtype=schema.Text("float64", "float32"),
    one_target=schema.Flag(),
    weighted=schema.Flag(),
    target_names=schema.Items(schema.Text(), "n_targets") | None,
)
class Given(NamedTuple):
    """Properties of the training data."""

    dtype: str
    one_target: bool
    weighted: bool
    target_names: tuple[str, ...] | None


def _counts_terms(model: Any, sizes: schema.Sizes) -> str | None:
    expected = model._term_count(sizes["n_features"])
    if sizes["n_terms"] != expected:
        return f"coef_ has {sizes['n_terms']} terms, but {sizes['n_features']} features give {expected}"
    return None


@schema.state(
    _counts_terms,
    one_row_one_target,
    coef_=schema.Array("float", "n_terms") | schema.Array("float", "n_targets", "n_terms"),
    intercept_=schema.Real() | schema.Array("float", "n_targets"),
    certificate_=schema.Object(LeastSquaresCertificate, n_features="n_terms", n_targets="n_targets"),
    _fit=schema.Object(Fit, n_features="n_terms", n_targets="n_targets"),
    _given=schema.Object(Given, n_targets="n_targets"),
    _frame_library=schema.Maybe(schema.Text() | None),
    _squares=schema.Maybe(schema.Array("float64", "n_terms")),
)
class LeastSquaresModel(MultiOutputMixin, LinearPredictor, AdditiveEstimator):
    """Base class of linear models fitted by least squares.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    copy_X : bool, default=True
        Ignored; X is never overwritten.
    positive : bool, default=False
        Whether to constrain coefficients to be non-negative.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_targets,)
    """

    _fit: Fit

    def _named_targets(self) -> tuple[str, ...] | None:
        return self._given.target_names

    def _term_count(self, n_features: int) -> int:
        """Return the number of coefficients per target."""
        return n_features

    # ------------------------------------------------------------------------------------------------------- naming

    def _problem(self, n_targets: int) -> Problem:
        """Return the least-squares problem defined by the parameters."""
        return Problem(self.fit_intercept, np.zeros(n_targets), getattr(self, "positive", False))

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of the frame X
            Target values.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of the frame X, optional
            Sample weights; a weight of 3 is equivalent to repeating the row three times.
        """
        with self._fitting(X, y, sample_weight) as run:
            self._solved(run, X, y, sample_weight)
        return self

    def _solved(self, run: Run, X: Any, y: Any, sample_weight: Any) -> None:
        """Solve the problem on the rows of a run and set the fitted attributes."""
        source = run.source
        given = Given(source.dtype.name, source.one_target, source.weighted, source.target_names)
        problem = self._problem(source.n_targets)._replace(dtype=self._returned_in(source.dtype))
        self._keep_training(run, X, y, sample_weight)
        self.__dict__.pop("_squares", None)
        fit = solve(run, problem, lambda fit: run.offer(lambda: self._name_results(given, problem, fit)))
        self._check_finite(run, fit)
        self._name_results(given, problem, fit)
        if not problem.alpha.any():
            self._warn_of_collinear(run, fit)

    def _returned_in(self, dtype: Any) -> Any:
        """Return the dtype of the coefficients used for prediction."""
        return dtype

    def _check_finite(self, run: Run, fit: Fit) -> None:
        """Raise if the target is so large, or a column so small, that a coefficient overflows."""
        if not (finite := np.isfinite(fit.coef)).all():
            if not np.isfinite(fit.tss).all():
                raise DataError("y has values so large that their squares overflow; rescale the target first.")
            bad = int(np.flatnonzero(~finite.all(axis=1))[0])
            raise DataError(
                f"{run.source.column(bad)} has values so small, relative to the target, that its coefficient "
                f"overflows {run.source.dtype.name}; rescale the column first."
            )

    def _name_results(self, given: Given, problem: Problem, fit: Fit) -> None:
        """Set the fitted attributes; shapes and dtype follow y and X."""
        known = fit.intercept_in(given.dtype)
        coef, intercept = fit.coef.T.astype(given.dtype), known.astype(given.dtype)
        self.coef_ = coef[0] if given.one_target else coef
        self.intercept_ = (intercept[0] if given.one_target else intercept) if problem.fit_intercept else 0.0
        levels = getattr(self, "factor_levels_", None) or None
        is_known = problem.dtype == given.dtype
        self.certificate_ = _certificate(fit, problem, given.dtype, known if is_known else None, levels)
        self._fit, self._given = fit, given

    # ------------------------------------------------------------------------------------------ adding and forgetting

    @property
    def _weighted(self) -> bool:  # type: ignore[override]
        return self._given.weighted

    def _kept_sums(self) -> Gram | None:
        sums = self._fit.sums
        return sums if sums is not None and sums.is_finite() else None

    def _keep_sums(self, sums: Gram, weighted: bool) -> None:
        self._fit = replace(self._fit, sums=sums)
        self._given = self._given._replace(weighted=self._given.weighted or weighted)

    def _sums_of(self, run: Run) -> Gram:
        kept = self._fit.sums
        assert kept is not None
        _check_targets(self._given.target_names, len(self._fit.rss), run.source.target_names, run.source.n_targets)
        sums = run.sum(Gram, kept.origin)
        if not sums.is_finite():
            raise DataError("Some values are so large that their squares overflow; rescale the columns first.")
        return sums

    def _sums_not_kept(self) -> str:
        return (
            f"the sums of products of columns, which {type(self).__name__} does not store for {self.n_features_in_} "
            "columns of such values"
        )

    def _paired(self, other: Any) -> tuple[Gram, Gram]:
        _check_targets(self._given.target_names, len(self._fit.rss), other._given.target_names, len(other._fit.rss))
        return super()._paired(other)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_") and hasattr(self, "coef_")

    def _use_sums(self, sums: Gram, weighted: bool) -> None:
        problem = self._problem(len(self._fit.rss))._replace(dtype=self._returned_in(np.dtype(self._given.dtype)))
        d, before = len(self._fit.coef), self._fit.sums
        # Subtracted rows leave rounding errors, in proportion to the largest sums of squares so far.
        assert before is not None
        squares = np.maximum(self.__dict__.get("_squares", 0.0), np.diag(before.products)[:d])
        with solving(d):
            fit, kappa = from_sums(sums, problem, d, squares)
        unit, bar = _ACCURACY[self._given.dtype]
        if kappa**2 * unit > bar:
            warn(
                f"The updated coefficients of {type(self).__name__} have only about "
                f"{max(0, int(-np.log10(min(kappa**2 * unit, 1.0))))} accurate digits (condition {kappa:.0e}); "
                "fit on all rows at once for more.",
                AccuracyWarning,
            )
        self._squares = squares
        self._name_results(self._given._replace(weighted=self._given.weighted or weighted), problem, fit)
        self.__dict__.pop("_training", None)

    # ------------------------------------------------------------------------------------------------------- training

    def _warn_of_collinear(self, run: Run, fit: Fit) -> None:
        if not len(fit.dependent) or run.source.n_rows <= run.source.n_features:
            return
        names = [self._column_label(run, int(j)) for j in fit.dependent]
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        one = len(names) == 1
        warn(
            f"{'Column' if one else 'Columns'} {listed} {'is' if one else 'are'} constant or a linear combination of "
            f"other columns, so the data do not determine all coefficients; {type(self).__name__} returned the "
            "solution of minimum norm: drop columns or use Ridge.",
            CollinearityWarning,
        )

    def _column_label(self, run: Run, j: int) -> str:
        return run.source.column(j).removeprefix("Column ")

    def _keep_training(self, run: Run, X: Any, y: Any, sample_weight: Any) -> None:
        """Store small training data, and a weak reference to large ones."""
        self._frame_library = frame_library(X) if is_frame(X) else None
        self._training = keep_training(run, X, y, sample_weight)

    # -------------------------------------------------------------------------------------------------- summarising

    @inherit_docs(SUMMARY_DOCS)
    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cov: str = "classical",
        groups: Any = None,
        lags: int | None = None,
        weights: str = "frequency",
        level: float = 0.95,
    ) -> Summary:
        """Compute standard errors, tests and confidence intervals of the coefficients.

        Parameters
        ----------
        cov : {"classical", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC"}
            Covariance estimator: classical, with one variance for all rows; White's heteroscedasticity-robust
            estimator, without (HC0) or with a small-sample correction; "cluster", robust to dependence within groups;
            "HAC" (Newey and West), robust to dependence between rows that follow each other in time.
        lags : int, optional
            Number of lags for cov="HAC"; floor(4 (n / 100)^(2/9)) by default.

        Returns
        -------
        Summary
            Prints as a table; `to_frame()` converts it to a data frame.
        """
        _check_choice("cov", cov, tuple(COVARIANCES))
        _check_choice("weights", weights, WEIGHTS)
        if not is_fraction(level):
            raise ParameterError(f"The 'level' of summary must be between 0 and 1, not {level!r}.")
        if (cov == "cluster") != (groups is not None):
            raise ParameterError('Grouped standard errors need both: summary(cov="cluster", groups=...).')
        if lags is not None and (cov != "HAC" or not integer(0).accepts(lags)):
            raise ParameterError(f'lags={lags!r} is invalid: pass a non-negative int (or None), with cov="HAC".')
        self._check_summary_applies()
        if cov == "HAC" and self._given.weighted and weights == "frequency":
            raise ParameterError('cov="HAC" uses the order of the rows: pass weights="precision".')
        run = None if cov == "classical" else self._training_run(X, y, sample_weight, cov, groups)
        return summarise(
            self._fit,
            self._names(),
            intercept=self.fit_intercept,
            weighted=self._given.weighted,
            options=SummaryOptions(cov, weights, level, lags),
            run=run,
            basis=self._basis(),
        )

    def _check_summary_applies(self) -> None:
        """Raise if the classical standard errors do not apply to this fit."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if getattr(self, "positive", False):
            raise ParameterError(
                "summary() needs an unconstrained fit: with positive=True estimates are not normally distributed; "
                "fit with positive=False, or bootstrap."
            )
        if np.any(np.asarray(getattr(self, "alpha", 0.0)) != 0):
            raise ParameterError(
                f"summary() needs an unpenalised fit: alpha={self.alpha} biases the coefficients towards 0, so the "
                "usual standard errors are not valid; use LinearRegression (or alpha=0), or bootstrap."
            )
        if self._fit.half_inverse is None:
            raise ParameterError(
                f"summary() needs the inverse of a {self.n_features_in_} x {self.n_features_in_} matrix, which is not "
                "computed for wide sparse data; select fewer columns first."
            )

    def _basis(self) -> NDArray[np.float64] | None:
        """Return the matrix from fitted to reported coefficients, or None if they are the same."""
        return None

    def _names(self) -> Names:
        names = getattr(self, "coef_names_", getattr(self, "feature_names_in_", None))
        terms = tuple(f"x{j}" for j in range(self.n_features_in_)) if names is None else tuple(str(n) for n in names)
        t = len(self._fit.rss)
        targets = self._given.target_names or tuple(f"y{j}" for j in range(t))
        return Names(type(self).__name__, terms, targets, self._frame_library)

    def _training_run(self, X: Any, y: Any, sample_weight: Any, cov: str, groups: Any = None) -> Run:
        if X is None:
            kept = recalled(getattr(self, "_training", None))
            if kept is None:
                raise DataError(f'cov="{cov}" needs the training rows: summary(X, y, cov="{cov}").')
            X, y, sample_weight = kept
        return self._second_run(X, y, sample_weight, groups)

    def _second_run(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Run:
        if isinstance(groups, str) and is_frame(X):
            others, (column,) = pop_columns(X, [groups])
            X = X if groups in getattr(self, "feature_names_in_", ()) else others
            groups = array_of(column.to_native())
        source = self._source(X, y, sample_weight)
        source = source if groups is None else with_groups(source, groups)
        return Run(self, self._fitted_columns(source), quiet=True)

    def _fitted_columns(self, source: Source) -> Source:
        """Return the source with the columns of the coefficients, from a source of the original columns."""
        return source


def _check_targets(names: tuple[str, ...] | None, n: int, others: tuple[str, ...] | None, m: int) -> None:
    """Raise if rows to be added have other targets."""
    if n != m:
        raise DataError(f"The model has {n} target{'s' if n > 1 else ''} but the new rows have {m}.")
    if names is not None and others is not None and names != others:
        raise DataError(f"The model has the targets {', '.join(names)} but the new rows have {', '.join(others)}.")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not is_choice(value, choices):
        raise ParameterError(f"The {name!r} of summary must be one of {', '.join(map(repr, choices))}; got {value!r}.")


@np.errstate(over="ignore", invalid="ignore")
def _certificate(fit: Fit, problem: Problem, dtype: str, known: Any, levels: Any) -> LeastSquaresCertificate:
    """Return the certificate of the returned point, whose intercept (`known`, if computed) may have lost digits."""
    intercept = np.zeros(len(fit.rss))
    if problem.fit_intercept:
        intercept = fit.intercept_in(problem.dtype) if known is None else known
    shift = fit.shift_of(intercept) if problem.fit_intercept else np.zeros(1)
    by_intercept = fit.weight * float((shift**2).sum())
    wrong = fit.lead_error if problem.fit_intercept else np.zeros(1)
    noise = fit.noise + fit.weight * float((wrong * (2 * np.abs(shift) + wrong)).sum())
    primal = float(fit.rss.sum()) + penalty(problem, fit.coef) + by_intercept
    return LeastSquaresCertificate(
        kind="exact" if fit.n_iter is None else "global",
        primal=primal,
        gap=rounded_up(float(max(fit.gap.sum(), 0.0)) + by_intercept + noise, primal),
        coef=fit.coef,
        intercept=intercept,
        alpha=problem.alpha,
        fit_intercept=problem.fit_intercept,
        positive=problem.positive,
        scale=float(fit.tss.sum()),
        unit=1e-11 if dtype == "float64" else 1e-4,
        levels=levels,
    )
