"""Base class of LogisticRegression and the GLM regressors: solving, warnings, fitted attributes and summaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.frames import frame_library, is_frame, pop_columns
from summula.core.data.numbers import array_of
from summula.core.data.training_data import Kept, keep_training, recalled
from summula.core.errors import CollinearityWarning, DataError, ParameterError, SeparationWarning, warn
from summula.core.estimator.input.argument_values import is_choice, is_fraction
from summula.core.estimator.linear.linear_predictor import LinearScores
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import rounded_up
from summula.linear_model.glm.bounds.certificate import GlmCertificate
from summula.linear_model.glm.minimise import minimise
from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.glm.offsets import rows_and_offset
from summula.linear_model.glm.separation import Found, separation_of_fit
from summula.linear_model.glm.statistics.inference import (
    COVARIANCES,
    SummaryInputs,
    SummaryOptions,
    expected_information,
    informed,
    summarise,
)
from summula.linear_model.glm.statistics.quality import Quality
from summula.linear_model.least_squares.groups import with_groups
from summula.linear_model.least_squares.inference import WEIGHTS, Names
from summula.losses import Multinomial
from summula.penalties import Penalty
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link
from summula.stats.summary import Summary

__all__ = ["GlmModel", "relative_gap"]

Array = NDArray[Any]

_UNIT = {"float64": 1e-12, "float32": 1e-5}

# Beginning of scikit-learn's warning for each solver, so that users' warning filters still apply.
_NOT_CONVERGED = {
    "lbfgs": "lbfgs failed to converge",
    "newton-cg": "newton-cg failed to converge",
    "newton-cholesky": "Newton solver did not converge after {steps} iterations",
    "liblinear": "Liblinear failed to converge, increase the number of iterations.",
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
}


_LARGEST_TOL = 1e150  # whose square does not overflow


def relative_gap(tol: float) -> float:
    """Return the decrement to stop at, relative to the objective, for scikit-learn's `tol` on the gradient.

    The decrement is quadratic in the error: 1e-26 corresponds to 13 digits of the coefficients, the limit of rounding.
    """
    return max(1e-2 * min(tol, _LARGEST_TOL) ** 2, 1e-26)


def _information_agrees(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: the information matrix is of the coefficients and intercepts of the fit."""
    certificate, fit = getattr(model, "certificate_", None), getattr(model, "_fit", None)
    if certificate is None or fit is None or fit.half_inverse is None:
        return None
    n = len(fit.coef) * (fit.coef.shape[1] + int(certificate.fit_intercept))
    return (
        None if len(fit.half_inverse) == n else f"_fit has {n} parameters, and information of {len(fit.half_inverse)}"
    )


@schema.state(
    _information_agrees,
    certificate_=schema.Object(GlmCertificate, n_scores="n_scores", n_terms="n_terms", n_classes="n_classes"),
    _fit=schema.Object(GlmFit, n_scores="n_scores", n_terms="n_terms"),
    _quality=schema.Maybe(schema.Object(Quality)),
    _weighted=schema.Flag(),
    _separated=schema.Maybe(schema.Items(schema.Text())),
    _frame_library=schema.Maybe(schema.Text() | None),
)
class GlmModel(LinearScores):
    """Base class of linear models fitted by penalised likelihood.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    max_iter : int, default=100
        Maximum number of steps of the solver.
    tol : float, default=1e-4
        Tolerance: the relative suboptimality of the objective is at most about tol^2 / 100.
    """

    n_iter_: Any
    _fit: GlmFit
    _quality: Quality
    _training: tuple[Kept, ...]
    _weighted: bool
    # Kind and columns of a separation, for which no finite optimum exists.
    _separated: tuple[str, ...]

    def _solved(
        self,
        run: Run,
        problem: GlmProblem,
        given: tuple[Any, ...],
        classes: Array | None = None,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        """Solve the problem on the rows of a run, set the fitted attributes, and issue warnings.

        `given` are X, y, sample_weight and offsets, kept for later use; `start` are initial intercepts and slopes.
        """
        self._frame_library = frame_library(given[0]) if is_frame(given[0]) else None
        self._training = keep_training(run, *given)
        self._weighted = run.source.weighted or problem.class_weight is not None
        self._separated = ()
        self.__dict__.pop("_quality", None)
        dtype = run.source.dtype.name

        def assign(fit: GlmFit) -> None:
            self._fit = fit
            self.certificate_ = _certificate(fit, problem, classes, getattr(self, "factor_levels_", None), dtype)
            self._name(fit, dtype)

        start = start or self._warm_start(run, problem)
        fit = minimise(run, problem, lambda fit: run.offer(lambda: assign(fit())), start)
        fit = expected_information(run, problem, fit)
        assign(fit)
        found = separation_of_fit(run, problem, fit)
        if found is None:
            self._warn_if_unreliable(run, problem, fit)
        else:
            self._separated = (found.kind, *found.columns)
            self._warn_of_separation(run, found)

    def _name(self, fit: GlmFit, dtype: str) -> None:
        """Set scikit-learn's attributes: here those of a classifier."""
        self.coef_, self.intercept_ = fit.coef.astype(dtype), fit.intercept.astype(dtype)
        self.n_iter_ = np.array([fit.n_iter], np.int32)

    def _warm_start(self, run: Run, problem: GlmProblem) -> tuple[Array, Array] | None:
        """Return intercepts and slopes of the previous fit for a warm start, if they fit the problem."""
        fit: GlmFit | None = getattr(self, "_fit", None) if getattr(self, "warm_start", False) else None
        if fit is None or fit.coef.shape != (problem.outputs, run.source.n_features):
            return None
        return fit.intercept, fit.coef

    def _warn_if_unreliable(self, run: Run, problem: GlmProblem, fit: GlmFit) -> None:
        """Warn if the fit did not converge, or if the data do not determine all coefficients."""
        name = type(self).__name__
        if not fit.settled:
            opening = _NOT_CONVERGED.get(self.solver, f"{name} failed to converge").format(steps=fit.n_iter)
            warn(
                f"{opening} ({name}, {fit.n_iter} steps, max_iter={self.max_iter}): the objective of {fit.value:.6g} "
                f"may be {fit.gap:.2g} above its minimum; tol={self.tol} requires "
                f"{problem.tolerance * abs(fit.value):.2g}. Increase the number of iterations (max_iter) or tol.",
                ConvergenceWarning,
            )
        parameters = problem.outputs * (run.source.n_features + int(problem.intercept))
        if not problem.penalised and problem.outputs == 1 and 0 < fit.rank < parameters < run.source.n_rows:
            free = parameters - fit.rank
            warn(
                f"{free} column{'s are' if free > 1 else ' is'} constant or a linear combination of others; the data "
                f"do not determine all coefficients of {name}; drop columns or use a penalty.",
                CollinearityWarning,
            )

    def _warn_of_separation(self, run: Run, found: Found) -> None:
        some = found.rows < run.source.n_rows
        where = f" (found on the leading {found.rows:,} rows, checked on all)" if some else ""
        warn(
            f"{_separated_by((found.kind, *found.columns))}{where}, so the likelihood of {type(self).__name__} has no "
            f"maximum and the coefficients are not meaningful; use a penalty ({self._cure()}), or drop these columns.",
            SeparationWarning,
        )

    def _cure(self) -> str:
        """Return how to penalise this model."""
        return "a finite C" if self._labelled else "alpha > 0"

    # ----------------------------------------------------------------------------------------------------- summarising

    def _distribution(self) -> tuple[Family, Link]:
        """Return the family and the link of the targets."""
        raise NotImplementedError

    def _summarised(self, given: tuple[Any, ...], options: SummaryOptions, groups: Any) -> Summary:
        """Return the summary of the fit; `given` are the training data, with X None to use the stored ones."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        _check_options(options, groups)
        self._check_summary_applies()
        certificate, (family, link) = self.certificate_, self._distribution()
        if options.ratios and link.name not in ("logit", "log"):
            raise ParameterError(f"odds_ratios=True needs the logit or the log link, but this model has {link.name!r}.")
        problem = GlmProblem(
            certificate.loss,
            Penalty(certificate.l1, certificate.penalty),
            certificate.fit_intercept,
            outputs=len(certificate.coef) if isinstance(certificate.loss, Multinomial) else 1,
            class_weight=certificate.class_weight,
        )
        names = getattr(self, "coef_names_", getattr(self, "feature_names_in_", None))
        terms = tuple(f"x{j}" for j in range(self.n_features_in_)) if names is None else tuple(map(str, names))
        rows = None
        precise = options.weights == "precision" and self._weighted and not family.fixed_dispersion
        if options.cov != "classical" or precise or self._fit.half_inverse is None:
            rows, groups = self._training_rows(given, options, groups)
        source = None if rows is None else self._source(*rows[:3], offset=rows[3])
        run = None if source is None else Run(self, source, quiet=True)
        inputs = SummaryInputs(
            informed(self._fit, problem, run),
            problem,
            self._quality,
            family,
            link,
            Names(type(self).__name__, terms, (), self._frame_library),
            self._weighted,
            certificate.classes,
        )
        if source is not None and groups is not None:
            run = Run(self, with_groups(source, groups), quiet=True)
        return summarise(inputs, options, run)

    def _check_summary_applies(self) -> None:
        """Raise if the usual standard errors do not apply to this fit."""
        certificate = getattr(self, "certificate_", None)
        if certificate is None:
            raise ParameterError(
                "summary() needs one fit, but with refit=False the coefficients are the mean of those of the splits; "
                "fit with refit=True."
            )
        if certificate.penalty > 0 or certificate.l1 > 0:
            raise ParameterError(
                f"summary() needs an unpenalised fit: the penalty biases the coefficients towards 0, so the usual "
                f"standard errors are not valid; fit with {'C=inf' if self._labelled else 'alpha=0'}, or bootstrap."
            )
        if certificate.low is not None:
            coef, low, high = certificate.coef[0], certificate.low, certificate.high
            near = 1e-9 * (1 + np.abs(coef))
            active = np.flatnonzero((coef <= low + near) | (coef >= high - near))
            if len(active):
                raise ParameterError(
                    f"summary() needs a fit inside its bounds: coefficient {int(active[0])} is at a bound, where "
                    "estimates are not normally distributed; fit without bounds, or bootstrap."
                )
        if self._separated:
            raise DataError(
                f"summary() needs a finite estimate: {_separated_by(self._separated, first=False)}, so the likelihood "
                f"has no maximum; use a penalty ({self._cure()}), or drop these columns."
            )
        if not hasattr(self, "_quality") or not self._quality.n_rows:
            raise DataError("summary() needs a completed fit, but this one was interrupted; fit again.")

    def _training_rows(
        self, given: tuple[Any, ...], options: SummaryOptions, groups: Any
    ) -> tuple[tuple[Any, ...] | None, Any]:
        """Return X, y, weights and offsets of the training data, if available, and the groups."""
        if given[0] is None:
            kept = recalled(getattr(self, "_training", None))
            if kept is None:
                if options.cov == "classical":
                    return None, None
                raise DataError(f'cov="{options.cov}" needs the training rows: summary(X, y, cov="{options.cov}").')
            given = kept
        X, y, sample_weight, *shift = given
        if isinstance(groups, str) and is_frame(X):
            others, (column,) = pop_columns(X, [groups])
            X = X if groups in getattr(self, "feature_names_in_", ()) else others
            groups = array_of(column.to_native())
        X, offset = rows_and_offset(X, *shift)
        return (X, y, sample_weight, offset), groups


def _separated_by(separated: tuple[str, ...], *, first: bool = True) -> str:
    """Describe a separation."""
    kind, *columns = separated
    listed = ", ".join(columns[:5]) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
    how = "completely" if kind == "complete" else "quasi-completely (all but ties)"
    many = "Columns" if len(columns) > 1 else "Column"
    return f"{many if first else many.lower()} {listed} separate{'' if len(columns) > 1 else 's'} the classes {how}"


def _check_options(options: SummaryOptions, groups: Any) -> None:
    for name, value, choices in (("cov", options.cov, COVARIANCES), ("weights", options.weights, WEIGHTS)):
        if not is_choice(value, choices):
            listed = ", ".join(map(repr, choices))
            raise ParameterError(f"The {name!r} of summary must be one of {listed}; got {value!r}.")
    if not is_fraction(options.level):
        raise ParameterError(f"The 'level' of summary must be between 0 and 1, not {options.level!r}.")
    if (options.cov == "cluster") != (groups is not None):
        raise ParameterError('Cluster-robust standard errors need both options: summary(cov="cluster", groups=...).')


def _certificate(
    fit: GlmFit, problem: GlmProblem, classes: Array | None, levels: dict[str, Any] | None, dtype: str
) -> GlmCertificate:
    return GlmCertificate(
        kind=fit.kind,
        primal=fit.value,
        gap=rounded_up(max(fit.gap, 0.0), fit.value, dtype),
        coef=fit.coef,
        intercept=fit.intercept,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.intercept,
        class_weight=problem.class_weight,
        classes=classes,
        low=problem.low,
        high=problem.high,
        unit=_UNIT[dtype],
        levels=levels or None,
        l1=problem.l1,
        zeros=fit.zeros,
        lost=fit.lost if problem.intercept else None,
    )
