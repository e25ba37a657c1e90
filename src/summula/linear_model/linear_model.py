"""What LinearRegression, Ridge and PolynomialRegression share: naming the answer, predicting, summarising."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from summula.core.chunks import Chunk
from summula.core.errors import CollinearityWarning, DataError, ParameterError
from summula.core.estimator import Estimator, Run
from summula.core.frames import frame_library, is_frame
from summula.core.validation import as_source
from summula.linear_model.certificate import LeastSquaresCertificate
from summula.linear_model.inference import COVARIANCES, WEIGHTS, Names, summarise
from summula.linear_model.problem import Fit, Problem
from summula.stats.summary import Summary

__all__ = ["LeastSquaresModel"]

Array = NDArray[Any]

_KEPT_BYTES = 2**26  # training data up to 64 MB are kept for summary(cov="HC3"); larger ones only while others do


class LeastSquaresModel(MultiOutputMixin, RegressorMixin, Estimator):
    """A linear prediction fitted by least squares."""

    _fit: Fit

    # ------------------------------------------------------------------------------------------------------- naming

    def _name_results(self, run: Run, problem: Problem, fit: Fit, *, one_target: bool) -> None:
        """Give the answer scikit-learn's names; shapes and dtype follow y and X."""
        dtype = run.source.dtype
        coef, intercept = fit.coef.T.astype(dtype), fit.intercept.astype(dtype)
        self.coef_ = coef[0] if one_target else coef
        self.intercept_ = (intercept[0] if one_target else intercept) if problem.fit_intercept else 0.0
        self.certificate_ = _certificate(fit, problem, dtype)
        self._fit = fit
        self._weighted = run.source.weighted
        self._target_names = run.source.target_names

    def _warn_of_collinear(self, run: Run, fit: Fit) -> None:
        if not len(fit.dependent) or run.source.n_rows <= run.source.n_features:
            return
        names = [run.source.column(int(j)).removeprefix("Column ") for j in fit.dependent]
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        one = len(names) == 1
        warnings.warn(
            f"{'Column' if one else 'Columns'} {listed} {'is' if one else 'are'} constant or a combination of the "
            f"other columns, so the data leave some coefficients free; {type(self).__name__} took the shortest "
            "answer: drop columns or use Ridge to choose otherwise.",
            CollinearityWarning,
            stacklevel=5,
        )

    def _keep_training(self, run: Run, X: Any, y: Any, sample_weight: Any) -> None:
        """Remember small training data, and large ones for as long as the caller keeps them."""
        self._frame_library = frame_library(X) if is_frame(X) else None
        small = run.source.width * run.source.n_rows * run.source.dtype.itemsize <= _KEPT_BYTES
        self._training = tuple(_Kept(part, small) for part in (X, y, sample_weight))

    # --------------------------------------------------------------------------------------------------- predicting

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Rows to predict for.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        source = self._reading(X)
        coef, intercept = np.asarray(self.coef_).T, self.intercept_

        def linear(chunk: Chunk) -> Array:
            return np.asarray(chunk.X @ coef + intercept)

        return self._map_rows(linear, source)

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
            weighted=self._weighted,
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
        targets = self._target_names or tuple(f"y{j}" for j in range(t))
        return Names(type(self).__name__, terms, targets, self._frame_library)

    def _training_run(self, X: Any, y: Any, sample_weight: Any, cov: str) -> Run:
        if X is None:
            kept = getattr(self, "_training", None)
            if kept is None or any(part.gone for part in kept):
                raise DataError(f'cov="{cov}" needs the training rows again: summary(X, y, cov="{cov}").')
            X, y, sample_weight = (part.value for part in kept)
        return self._second_run(X, y, sample_weight)

    def _second_run(self, X: Any, y: Any, sample_weight: Any) -> Run:
        source = as_source(self, X, y, sample_weight, needs_y=True, reset=False, accept_sparse=self._accepts_sparse)
        return Run(self, source, quiet=True)


class _Kept:
    """Something held firmly, or only as long as someone else holds it."""

    def __init__(self, value: Any, firmly: bool) -> None:
        self._value: Any = value
        self._weak: Any = None
        if not firmly and value is not None and not isinstance(value, str):
            self._value = None
            try:
                self._weak = weakref.ref(value)
            except TypeError:  # lists and the like cannot be watched
                self._weak = _nothing

    @property
    def value(self) -> Any:
        return self._value if self._weak is None else self._weak()

    @property
    def gone(self) -> bool:
        return self._weak is not None and self._weak() is None


def _nothing() -> None:
    return None


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(f"The {name!r} of summary must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def _certificate(fit: Fit, problem: Problem, dtype: Any) -> LeastSquaresCertificate:
    primal = float(fit.rss.sum() + (problem.alpha * (fit.coef**2).sum(axis=0)).sum())
    return LeastSquaresCertificate(
        kind="exact" if fit.n_iter is None else "global",
        primal=primal,
        gap=float(max(fit.gap.sum(), 0.0)),
        coef=fit.coef,
        intercept=fit.intercept if problem.fit_intercept else np.zeros(len(fit.rss)),
        alpha=problem.alpha,
        fit_intercept=problem.fit_intercept,
        positive=problem.positive,
        scale=float(fit.tss.sum()),
        unit=1e-11 if dtype == np.float64 else 1e-4,
    )
