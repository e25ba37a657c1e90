"""What LogisticRegression and the GLM regressors share: solving, warning, naming, and predicting the linear score."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from summula.core.chunks import Chunk
from summula.core.errors import CollinearityWarning, warn
from summula.core.estimator import Estimator, Run
from summula.core.frames import frame_library, is_frame
from summula.core.output import write_batches
from summula.core.training import Kept, keep_training
from summula.core.validation import collection_reader
from summula.linear_model.glm_certificate import GlmCertificate
from summula.linear_model.glm_solver import GlmFit, GlmProblem, solve

__all__ = ["GlmModel", "relative_gap"]

Array = NDArray[Any]

_UNIT = {"float64": 1e-12, "float32": 1e-5}


def relative_gap(tol: float) -> float:
    """The decrement a solver stops at, as a share of the objective, for scikit-learn's `tol` on the slope."""
    return max(1e-2 * tol**2, 1e-14)


class GlmModel(Estimator):
    """A linear score fitted by penalised likelihood."""

    _fit: GlmFit
    _training: tuple[Kept, ...]

    def _solved(self, run: Run, problem: GlmProblem, given: tuple[Any, ...], classes: Array | None = None) -> None:
        """Solve the problem on the rows of a run, name the answer, and say if it is not what was asked for.

        `given` are X, y, sample_weight and what else the rows came with, for another look at them.
        """
        self._frame_library = frame_library(given[0]) if is_frame(given[0]) else None
        self._training = keep_training(run, *given)
        dtype = run.source.dtype.name

        def assign(fit: GlmFit) -> None:
            self._fit = fit
            self.certificate_ = _certificate(fit, problem, classes, _UNIT[dtype])
            self._name(fit, dtype)

        start = self._warm_start(run, problem)
        fit = solve(run, problem, lambda fit: run.offer(lambda: assign(fit)), start)
        assign(fit)
        self._comment(run, problem, fit)

    def _name(self, fit: GlmFit, dtype: str) -> None:
        raise NotImplementedError

    def _warm_start(self, run: Run, problem: GlmProblem) -> tuple[Array, Array] | None:
        """Intercepts and slopes of an earlier fit, where they fit the problem and are asked for."""
        fit: GlmFit | None = getattr(self, "_fit", None) if getattr(self, "warm_start", False) else None
        if fit is None or fit.coef.shape != (problem.outputs, run.source.n_features):
            return None
        return fit.intercept, fit.coef

    def _comment(self, run: Run, problem: GlmProblem, fit: GlmFit) -> None:
        """Warn of a fit that did not converge, or of coefficients the data leave free."""
        name = type(self).__name__
        if not fit.converged and fit.gap > 1e-6 * abs(fit.value):
            warn(
                f"{name} failed to converge after {fit.n_iter} steps (max_iter={self.max_iter}): the objective may be "
                f"{fit.gap:.2g} above its least of {fit.value:.6g}, and tol={self.tol} asks for "
                f"{problem.tolerance * abs(fit.value):.2g}. Increase the number of iterations (max_iter) or tol.",
                ConvergenceWarning,
            )
        parameters = problem.outputs * (run.source.n_features + int(problem.intercept))
        if problem.penalty == 0 and problem.outputs == 1 and 0 < fit.rank < parameters < run.source.n_rows:
            free = parameters - fit.rank
            warn(
                f"{free} column{'s are' if free > 1 else ' is'} constant or a combination of the others, so the data "
                f"leave some coefficients of {name} free; drop columns or penalise to choose among the answers.",
                CollinearityWarning,
            )

    # ------------------------------------------------------------------------------------------------------ predicting

    def _scores(self, X: Any, finish: Callable[[Array], Array]) -> Any:
        """A function of the linear scores (n, K) of the rows, stacked or batch by batch."""
        source = self._reading(X)
        # In the numbers of the fit: float32 rows of a float64 model keep the digits of the model.
        coef, intercept = np.atleast_2d(self.coef_).T, np.atleast_1d(self.intercept_)

        def linear(chunk: Chunk) -> Array:
            return np.asarray(chunk.X @ coef + intercept)

        scores = self._map_rows(linear, source)
        return finish(scores) if isinstance(scores, np.ndarray) else (finish(batch) for batch in scores)

    def _write(self, results: Any, names: tuple[str, ...], path: str | os.PathLike[str]) -> int:
        if (reader := collection_reader(results)) is not None:
            results = reader.batches(results)
        return write_batches([results] if isinstance(results, np.ndarray) else results, names, path)


def _certificate(fit: GlmFit, problem: GlmProblem, classes: Array | None, unit: float) -> GlmCertificate:
    return GlmCertificate(
        kind=fit.kind,
        primal=fit.value,
        gap=max(fit.gap, 0.0),
        coef=fit.coef,
        intercept=fit.intercept,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.intercept,
        class_weight=problem.class_weight,
        classes=classes,
        low=problem.low,
        high=problem.high,
        unit=unit,
    )
