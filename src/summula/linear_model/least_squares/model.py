"""What LinearRegression, Ridge and PolynomialRegression share: naming the answer, predicting, summarising."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin

from summula.core.data.frames import frame_library, is_frame
from summula.core.data.training_data import keep_training, recalled
from summula.core.errors import AccuracyWarning, CollinearityWarning, DataError, ParameterError, warn
from summula.core.estimator.additive import AdditiveEstimator
from summula.core.estimator.run import Run
from summula.core.estimator.validation import as_source
from summula.core.model_files import schema
from summula.core.numerics.certificate import rounded_up
from summula.core.numerics.statistics import Gram
from summula.linear_model.least_squares.certificate import LeastSquaresCertificate
from summula.linear_model.least_squares.inference import COVARIANCES, WEIGHTS, Names, summarise
from summula.linear_model.least_squares.normal_equations import from_sums
from summula.linear_model.least_squares.problem import Fit, Problem, penalty, solving
from summula.linear_model.least_squares.solver import solve
from summula.linear_model.linear_predictor import LinearPredictor, one_row_one_target
from summula.stats.summary import Summary

__all__ = ["LeastSquaresModel"]

Array = NDArray[Any]

# Rounding of the products, and the relative error of coefficients from which a fit by sums alone is warned of.
_ACCURACY = {"float64": (1e-16, 1e-6), "float32": (6e-8, 1e-3)}


@schema.saved(
    dtype=schema.Text("float64", "float32"),
    one_target=schema.Flag(),
    weighted=schema.Flag(),
    target_names=schema.Items(schema.Text(), "n_targets") | None,
)
class Given(NamedTuple):
    """What the training data were like."""

    dtype: str
    one_target: bool
    weighted: bool
    target_names: tuple[str, ...] | None


def _counts_terms(model: Any, sizes: schema.Sizes) -> str | None:
    expected = model._term_count(sizes["n_features"])
    if sizes["n_terms"] != expected:
        return f"coef_ has {sizes['n_terms']} terms, and {sizes['n_features']} features make {expected}"
    return None


@schema.state(
    _counts_terms,
    one_row_one_target,
    n_features_in_=schema.Integer(1, size="n_features"),
    coef_=schema.Array("float", "n_terms") | schema.Array("float", "n_targets", "n_terms"),
    intercept_=schema.Real() | schema.Array("float", "n_targets"),
    certificate_=schema.Object(LeastSquaresCertificate, n_features="n_terms", n_targets="n_targets"),
    _fit=schema.Object(Fit, n_features="n_terms", n_targets="n_targets"),
    _given=schema.Object(Given, n_targets="n_targets"),
    _frame_library=schema.Maybe(schema.Text() | None),
    _squares=schema.Maybe(schema.Array("float64", "n_terms")),
)
class LeastSquaresModel(MultiOutputMixin, LinearPredictor, AdditiveEstimator):
    """A linear prediction fitted by least squares."""

    _fit: Fit

    def _named_targets(self) -> tuple[str, ...] | None:
        return self._given.target_names

    def _term_count(self, n_features: int) -> int:
        """How many coefficients a target has."""
        return n_features

    # ------------------------------------------------------------------------------------------------------- naming

    def _problem(self, n_targets: int) -> Problem:
        """Which least-squares problem the parameters mean."""
        return Problem(self.fit_intercept, np.zeros(n_targets), getattr(self, "positive", False))

    def _solved(self, run: Run, X: Any, y: Any, sample_weight: Any) -> None:
        """Solve the problem on the rows of a run and name the answer."""
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
        """The dtype of the coefficients that predict."""
        return dtype

    def _check_finite(self, run: Run, fit: Fit) -> None:
        """Raise where a column is so small that its coefficient overflows."""
        bad = np.flatnonzero(~np.isfinite(fit.coef).all(axis=1))
        if len(bad):
            raise DataError(
                f"{run.source.column(int(bad[0]))} holds values so small, beside the target, that its coefficient "
                f"exceeds the largest {run.source.dtype.name}; multiply the column by a constant first."
            )

    def _name_results(self, given: Given, problem: Problem, fit: Fit) -> None:
        """Give the answer scikit-learn's names; shapes and dtype follow y and X."""
        coef, intercept = fit.coef.T.astype(given.dtype), fit.intercept_in(given.dtype).astype(given.dtype)
        self.coef_ = coef[0] if given.one_target else coef
        self.intercept_ = (intercept[0] if given.one_target else intercept) if problem.fit_intercept else 0.0
        self.certificate_ = _certificate(fit, problem, given.dtype)
        self._fit, self._given = fit, given

    # ------------------------------------------------------------------------------------------ adding and forgetting

    @property
    def _weighted(self) -> bool:  # type: ignore[override]
        return self._given.weighted

    def _kept_sums(self) -> Gram | None:
        sums = self._fit.sums
        return sums if sums is not None and sums.is_finite() else None

    def _sums_of(self, run: Run) -> Gram:
        kept = self._fit.sums
        assert kept is not None
        _check_targets(self._given.target_names, len(self._fit.rss), run.source.target_names, run.source.n_targets)
        sums = run.sum(Gram, kept.origin)
        if not sums.is_finite():
            raise DataError("Some values are so large that their squares overflow; divide columns by a constant first.")
        return sums

    def _sums_not_kept(self) -> str:
        return (
            f"the sums of all pairs of columns, which {type(self).__name__} does not keep for {self.n_features_in_} "
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
        # What was ever subtracted has left its rounding behind, in proportion to the largest squares there were.
        assert before is not None
        squares = np.maximum(self.__dict__.get("_squares", 0.0), np.diag(before.products)[:d])
        with solving(d):
            fit, kappa = from_sums(sums, problem, d, squares)
        unit, bar = _ACCURACY[self._given.dtype]
        if kappa**2 * unit > bar:
            warn(
                f"From sums alone the coefficients of {type(self).__name__} have about "
                f"{max(0, int(-np.log10(min(kappa**2 * unit, 1.0))))} digits (condition {kappa:.0e}); "
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
            f"{'Column' if one else 'Columns'} {listed} {'is' if one else 'are'} constant or a combination of the "
            f"other columns, so the data leave some coefficients free; {type(self).__name__} took the shortest "
            "answer: drop columns or use Ridge to choose otherwise.",
            CollinearityWarning,
        )

    def _column_label(self, run: Run, j: int) -> str:
        return run.source.column(j).removeprefix("Column ")

    def _keep_training(self, run: Run, X: Any, y: Any, sample_weight: Any) -> None:
        """Remember small training data, and large ones for as long as the caller keeps them."""
        self._frame_library = frame_library(X) if is_frame(X) else None
        self._training = keep_training(run, X, y, sample_weight)

    # -------------------------------------------------------------------------------------------------- summarising

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cov: str = "classical",
        weights: str = "frequency",
        level: float = 0.95,
    ) -> Summary:
        """Standard errors, tests and intervals of the coefficients.

        Parameters
        ----------
        X, y, sample_weight : optional
            The training data; needed for HC0 to HC3 when the model no longer has them (it keeps small data, and
            large data as long as the caller does; a loaded or unpickled model has none).
        cov : {"classical", "HC0", "HC1", "HC2", "HC3"}
            How the variance of the coefficients is estimated: one variance for all rows, or White's estimator that
            allows each row its own, plain (HC0) or with a small-sample correction.
        weights : {"frequency", "precision"}
            What a `sample_weight` means: so many rows, or the inverse variance of one.
        level : float
            Confidence of the intervals.

        Returns
        -------
        Summary
            Prints as a table; `to_frame()` gives it as data.
        """
        _check_choice("cov", cov, tuple(COVARIANCES))
        _check_choice("weights", weights, WEIGHTS)
        if not 0 < level < 1:
            raise ParameterError(f"The 'level' of summary must be between 0 and 1, not {level!r}.")
        self._refuse_summary()
        run = None if cov == "classical" else self._training_run(X, y, sample_weight, cov)
        return summarise(
            self._fit,
            self._names(),
            intercept=self.fit_intercept,
            weighted=self._given.weighted,
            cov=cov,
            weights=weights,
            level=level,
            run=run,
            basis=self._basis(),
        )

    def _refuse_summary(self) -> None:
        """Raise when the textbook standard errors do not apply to this fit."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if getattr(self, "positive", False):
            raise ParameterError(
                "summary() needs an unconstrained fit: with positive=True estimates pile up at 0 and have no "
                "normal distribution; fit with positive=False, or bootstrap."
            )
        if np.any(np.asarray(getattr(self, "alpha", 0.0)) != 0):
            raise ParameterError(
                f"summary() needs an unpenalised fit: alpha={self.alpha} pulls the coefficients towards 0, so the "
                "usual standard errors do not cover the truth; use LinearRegression (or alpha=0), or bootstrap."
            )
        if self._fit.half_inverse is None:
            raise ParameterError(
                f"summary() needs the inverse of a {self.n_features_in_} x {self.n_features_in_} matrix, which a fit "
                "to such wide sparse data never forms; select fewer columns first."
            )

    def _basis(self) -> NDArray[np.float64] | None:
        """How the reported coefficients follow from the fitted ones; None when they are the same."""
        return None

    def _names(self) -> Names:
        names = getattr(self, "feature_names_in_", None)
        terms = tuple(f"x{j}" for j in range(self.n_features_in_)) if names is None else tuple(str(n) for n in names)
        t = len(self._fit.rss)
        targets = self._given.target_names or tuple(f"y{j}" for j in range(t))
        return Names(type(self).__name__, terms, targets, self._frame_library)

    def _training_run(self, X: Any, y: Any, sample_weight: Any, cov: str) -> Run:
        if X is None:
            kept = recalled(getattr(self, "_training", None))
            if kept is None:
                raise DataError(f'cov="{cov}" needs the training rows again: summary(X, y, cov="{cov}").')
            X, y, sample_weight = kept
        return self._second_run(X, y, sample_weight)

    def _second_run(self, X: Any, y: Any, sample_weight: Any) -> Run:
        source = as_source(self, X, y, sample_weight, needs_y=True, reset=False, accept_sparse=self._accepts_sparse)
        return Run(self, source, quiet=True)


def _check_targets(names: tuple[str, ...] | None, n: int, others: tuple[str, ...] | None, m: int) -> None:
    """Raise a sentence when rows to be added are about other targets."""
    if n != m:
        raise DataError(f"The model has {n} target{'s' if n > 1 else ''} and the other rows have {m}.")
    if names is not None and others is not None and names != others:
        raise DataError(f"The model is about {', '.join(names)} and the other rows are about {', '.join(others)}.")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(f"The {name!r} of summary must be one of {', '.join(map(repr, choices))}; got {value!r}.")


@np.errstate(over="ignore", invalid="ignore")
def _certificate(fit: Fit, problem: Problem, dtype: str) -> LeastSquaresCertificate:
    """Judge the point that is returned: its intercept may have lost digits of the optimal one."""
    shift = fit.shift_in(problem.dtype) if problem.fit_intercept else np.zeros(1)
    by_intercept = fit.weight * float((shift**2).sum())
    primal = float(fit.rss.sum()) + penalty(problem, fit.coef) + by_intercept
    return LeastSquaresCertificate(
        kind="exact" if fit.n_iter is None else "global",
        primal=primal,
        gap=rounded_up(float(max(fit.gap.sum(), 0.0)) + by_intercept + fit.noise, primal),
        coef=fit.coef,
        intercept=fit.intercept_in(problem.dtype) if problem.fit_intercept else np.zeros(len(fit.rss)),
        alpha=problem.alpha,
        fit_intercept=problem.fit_intercept,
        positive=problem.positive,
        scale=float(fit.tss.sum()),
        unit=1e-11 if dtype == "float64" else 1e-4,
    )
