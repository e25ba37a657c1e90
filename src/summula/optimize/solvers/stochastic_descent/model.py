"""Base class of models fitted by stochastic gradient descent: starting points, epochs, warnings, fitted attributes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.chunks import Part
from summula.core.data.sources import MemorySource
from summula.core.data.sparse_format import as_dense
from summula.core.engine.engine import watched
from summula.core.engine.random import seed_from
from summula.core.errors import ClusterError, DataError, ParameterError, warn
from summula.core.estimator.early_stopping import validation_mask
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.linear.linear_predictor import SparseCoefficients, dense
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.optimize.solvers.stochastic_descent.certificate import DescentCertificate, DescentProblem, DualSums
from summula.optimize.solvers.stochastic_descent.rows import HeldOut, RowSizes, Visits
from summula.optimize.solvers.stochastic_descent.rule import LOSSES, SCHEDULES, Rule, State
from summula.optimize.solvers.stochastic_descent.solver import AfterEpoch, Column, Settings, descend_epochs, safe_step

__all__ = ["SHARED_PARAMETERS", "StochasticModel"]

Array = NDArray[Any]

_LISTED_ROWS = 2**20  # up to this number of rows, validation rows are drawn as in scikit-learn
# Descent has diverged if the final loss exceeds the initial loss by this factor. The first steps of "optimal" are long
# by design, and later steps correct them.
_GROWN = {"optimal": 1e6}
_LOSS_ROWS = 1_000  # rows used to compute the initial and the final loss


def _within(kind: Allowed, words: str, *, below: float = np.inf) -> Allowed:
    """Restrict numbers of a kind to finite values below a limit."""
    return Allowed(lambda value: kind.accepts(value) and -np.inf < value < below, words)


_share = _within(real(0.0, open_low=True), "a float in the range (0.0, 1.0)", below=1.0)
_finite = _within(real(), "a float in the range (-inf, inf)")
_not_negative = _within(real(0.0), "a float in the range [0.0, inf)")
_positive = _within(real(0.0, open_low=True), "a float in the range (0.0, inf)")

SHARED_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "penalty": (none, one_of("l2", "l1", "elasticnet")),
    "alpha": (_not_negative,),
    "l1_ratio": (real(0.0, 1.0), none),
    "fit_intercept": (boolean,),
    "max_iter": (integer(1),),
    "tol": (real(0.0), none),
    "shuffle": (boolean,),
    "verbose": (integer(0), boolean),
    "epsilon": (_not_negative,),
    "random_state": (random_state,),
    "learning_rate": (one_of("constant", "optimal", "invscaling", "adaptive", "pa1", "pa2"),),
    "eta0": (_positive,),
    "power_t": (_finite,),
    "early_stopping": (boolean,),
    "validation_fraction": (_share,),
    "n_iter_no_change": (integer(1),),
    "warm_start": (boolean,),
    "average": (boolean, integer(1)),
    "batch_size": (none, integer(1)),
    "max_time": (none, real(0.0)),
}


@schema.state(
    intercept_=schema.Array("float", "n_scores"),
    t_=schema.Real(0.0),
    n_iter_=schema.Integer(0),
    certificate_=schema.Maybe(
        schema.Object(DescentCertificate, n_scores="n_scores", n_features="n_features", n_classes="n_classes")
    ),
    _standard_coef=schema.Maybe(schema.Array("float64", "n_scores", "n_features")),
    _standard_intercept=schema.Maybe(schema.Array("float64", "n_scores")),
    _average_coef=schema.Maybe(schema.Array("float64", "n_scores", "n_features")),
    _average_intercept=schema.Maybe(schema.Array("float64", "n_scores")),
)
class StochasticModel(SparseCoefficients, Estimator):
    """Base class of linear models fitted by stochastic gradient descent, with one score or one per class.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        Penalty on the weights.
    alpha : float, default=0.0001
        Strength of the penalty; also used by learning_rate="optimal".
    l1_ratio : float, default=0.15
        Weight of |w|_1 in "elasticnet"; the rest is that of |w|^2 / 2.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    max_iter : int, default=1000
        Maximum number of epochs (passes over the rows).
    tol : float or None, default=1e-3
        Stop when the mean objective of an epoch has not improved on the best by this much for `n_iter_no_change`
        epochs; None performs `max_iter` epochs.
    shuffle : bool, default=True
        Whether to shuffle the rows before each epoch.
    epsilon : float, default=0.1
        Threshold of "huber", and width of the epsilon-insensitive losses.
    random_state : int, Generator, RandomState or None, default=None
        Seed for shuffling rows and for choosing held-out rows.
    eta0 : float, default=0.01
        Initial step size.
    validation_fraction : float, default=0.1
        Fraction of rows held out.
    n_iter_no_change : int, default=5
        Number of epochs without improvement after which to stop.
    average : bool or int, default=False
        Whether `coef_` is the average of the weights over all steps; an int averages from this step on.
    batch_size : int, optional
        Number of rows per step, whose gradients are averaged; by default one.
    max_time : float, optional
        Time limit in seconds, after which the current weights are kept.

    Attributes
    ----------
    t_ : float
        Number of the next step.
    """

    coef_: Any
    intercept_: Any
    t_: float
    # Parameters of some subclasses, constants of the others.
    loss: str
    average: Any = False
    batch_size: int | None = None
    learning_rate: str = "constant"
    power_t: float = 0.5
    epsilon: float = 0.1
    _averages: ClassVar[tuple[str, ...]] = (
        "_standard_coef",
        "_standard_intercept",
        "_average_coef",
        "_average_intercept",
    )

    # ------------------------------------------------------------------------------------------------- settings

    def _check_settings(self, *, by_parts: bool = False) -> None:
        """Raise ParameterError for inconsistent parameters."""
        if self.early_stopping and by_parts:
            raise ParameterError("early_stopping should be False with partial_fit, which has only part of the rows.")
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise ParameterError(
                "alpha must be > 0 since learning_rate is 'optimal', whose steps are 1 / (alpha (t0 + t)); "
                "use learning_rate='constant' or 'invscaling' without a penalty."
            )
        passive = "hinge" if self._labelled else "epsilon_insensitive"
        if self.learning_rate in ("pa1", "pa2") and self.loss != passive:
            raise ParameterError(f"Learning rate '{self.learning_rate}' only works with loss '{passive}'.")
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ParameterError("l1_ratio must be set when penalty is 'elasticnet'")

    @property
    def _penalties(self) -> tuple[float, float]:
        """Coefficients of |w|^2 / 2 and of |w|_1."""
        ratio = float(self.l1_ratio) if self.penalty == "elasticnet" else float(self.penalty == "l1")
        strength = 0.0 if self.penalty is None else float(self.alpha)
        return strength * (1.0 - ratio), strength * ratio

    @property
    def _bend(self) -> float:
        """Margin of the hinge loss, or epsilon."""
        return {"hinge": 1.0, "perceptron": 0.0}.get(self.loss, float(self.epsilon))

    def _problem(self, positive: Array, inside: Array, outside: Array) -> DescentProblem:
        l2, l1 = self._penalties
        return DescentProblem(self.loss, self._bend, l2, l1, bool(self.fit_intercept), positive, inside, outside)

    def _rules(self, problem: DescentProblem) -> list[Rule]:
        alpha = float(self.alpha)
        return [
            Rule(
                loss=LOSSES[self.loss],
                bend=self._bend,
                positive=float(positive),
                inside=float(inside),
                outside=float(outside),
                intercept=int(self.fit_intercept),
                l2=problem.l2,
                l1=problem.l1,
                schedule=SCHEDULES[self.learning_rate],
                eta0=float(self.eta0),
                power=float(self.power_t),
                alpha=alpha,
                early=alpha**-0.75 if alpha else 0.0,  # 1 / (alpha alpha^(-1/4))
                average=float(self.average),
                batch=int(self.batch_size or 1),
                judged=int(self.tol is not None and not self.early_stopping),
            )
            for positive, inside, outside in zip(problem.positive, problem.inside, problem.outside, strict=True)
        ]

    # ----------------------------------------------------------------------------------------------------- rows

    def _survey(self, run: Run, n_classes: int) -> RowSizes:
        """Run the first pass, which keeps the decoded rows of files."""
        run.keep_rows(scattered=True)
        return run.sum(RowSizes, n_classes)

    def _held_out(self, run: Run) -> HeldOut | None:
        """Return the validation rows of early stopping, drawn as in scikit-learn up to `_LISTED_ROWS` rows."""
        if not self.early_stopping:
            return None
        n = run.source.n_rows
        if n > _LISTED_ROWS:
            return HeldOut(None, float(self.validation_fraction), seed_from(self.random_state))
        state = self.random_state
        if isinstance(state, np.random.Generator):
            state = seed_from(state)
        y = _targets(run) if self._labelled else None
        listed = validation_mask(n, self.validation_fraction, state, y)
        return HeldOut(listed, float(self.validation_fraction), 0)

    # -------------------------------------------------------------------------------------------------- descent

    def _start(self, run: Run, K: int, coef_init: Any, intercept_init: Any) -> tuple[Array, Array]:
        """Return the starting point: as passed, from the previous fit, or 0."""
        d = run.source.n_features
        if self.warm_start and hasattr(self, "coef_"):
            coef_init = self.coef_ if coef_init is None else coef_init
            intercept_init = self.intercept_ if intercept_init is None else intercept_init
        coef, intercept = np.zeros((K, d)), np.zeros(K)
        if coef_init is not None:
            given = numbers_in("coef_init", as_dense(coef_init, "coef_init"))
            if given.size != K * d or (K > 1 and given.shape != (K, d)):
                raise DataError(
                    f"Provided coef_init does not match dataset: it has shape {given.shape}, expected {(K, d)}."
                )
            coef = given.reshape(K, d).copy()
        if intercept_init is not None:
            given = numbers_in("intercept_init", intercept_init)
            if given.size != K or (K > 1 and given.shape != (K,)):
                raise DataError(
                    f"Provided intercept_init does not match dataset: it has shape {given.shape}, expected {(K,)}."
                )
            intercept = given.reshape(K).copy()
        return coef, intercept

    def _present(self, run: Run, K: int) -> tuple[Array, Array]:
        """Return the weights after the previous part, without averaging."""
        d = run.source.n_features
        if not hasattr(self, "coef_"):
            return np.zeros((K, d)), np.zeros(K)
        coef = getattr(self, "_standard_coef", self.coef_)
        intercept = getattr(self, "_standard_intercept", self.intercept_)
        return dense(coef).astype(np.float64).reshape(K, d), np.array(intercept, np.float64).reshape(K)

    def _columns(self, problem: DescentProblem, coef: Array, intercept: Array) -> list[Column]:
        """Return one column per score, at these weights and the current step."""
        columns = []
        averages = getattr(self, "_average_coef", None)
        for k, rule in enumerate(self._rules(problem)):
            state = State.at(
                coef[k], float(intercept[k]), self.t_, rule.eta0, averages=rule.average > 0, l1=rule.l1 > 0
            )
            if rule.average and averages is not None and self.t_ > rule.average:
                count = self.t_ - rule.average
                state.a[:] = count * np.reshape(averages, coef.shape)[k]
                state.numbers[-2:] = count * np.reshape(self._average_intercept, len(coef))[k], count
            from_zero = self.t_ == 1.0 and not coef[k].any() and not intercept[k]
            columns.append(Column(rule, state, from_zero))
        return columns

    def _descend(
        self, run: Run, problem: DescentProblem, start: tuple[Array, Array], sizes: RowSizes, *, whole: bool
    ) -> None:
        """Descend from a starting point and set the fitted attributes; a whole fit also gets a certificate."""
        settings, before = self._settings(whole), self.t_
        columns = self._columns(problem, *start)

        def assign(over: Run) -> None:
            for column in columns:
                column.tidy()
            self._name(run, columns, before)
            self.__dict__.pop("certificate_", None)
            if whole:
                self.certificate_ = self._certified(over, problem, columns)

        def cut_short() -> None:
            # The time limit or a lost cluster ended the fit: the last pass has no time limit, and may fail.
            with watched(lambda: None), suppress(ClusterError):
                assign(Run(self, run.source, quiet=True))

        with np.errstate(over="ignore", invalid="ignore"):
            try:
                self._epochs(run, problem, columns, settings, lambda: run.offer(cut_short))
            except OverflowError as error:
                raise DataError(self._diverged(int(error.args[0]), sizes)) from None
            assign(run)
        if not np.isfinite(dense(self.coef_)).all() or (whole and not np.isfinite(self.certificate_.primal)):
            raise DataError(self._diverged(columns[0].n_epochs, sizes))
        self._check_result()
        self._warn_if_not_converged(run, columns, settings, problem, start, sizes)

    def _check_result(self) -> None:
        """Raise if the fit does not satisfy what the parameters require."""

    def _epochs(
        self, run: Run, problem: DescentProblem, columns: list[Column], settings: Settings, after_epoch: AfterEpoch
    ) -> None:
        held_out = self._held_out(run)
        visits = Visits(run, seed_from(self.random_state), shuffle=self.shuffle, held_out=held_out)
        descend_epochs(run, columns, visits, settings, int(self.t_) - 1, after_epoch)

    def _settings(self, whole: bool) -> Settings:
        tol = self.tol if whole else None
        adaptive = self.learning_rate == "adaptive"
        epochs = self.max_iter if whole else 1
        return Settings(
            epochs, tol, getattr(self, "n_iter_no_change", 5), adaptive, n_jobs=getattr(self, "n_jobs", None)
        )

    def _certified(self, run: Run, problem: DescentProblem, columns: list[Column]) -> Any:
        coef, intercept = np.atleast_2d(dense(self.coef_)), np.atleast_1d(self.intercept_)
        return DescentCertificate.of(run, problem, coef, intercept, getattr(self, "classes_", None))

    def _name(self, run: Run, columns: list[Column], before: float) -> None:
        dtype = run.source.dtype
        standard = np.array([column.coef for column in columns]), np.array([column.intercept for column in columns])
        coef, intercept = standard
        self.n_iter_ = max(column.n_epochs for column in columns)
        # As in scikit-learn, validation rows are counted.
        self.t_ = before + self.n_iter_ * run.source.n_rows
        if (self.batch_size or 1) > 1:
            self.t_ = max(column.steps for column in columns)
        if self.average:
            means = np.array([column.mean_coef for column in columns]), np.array([c.mean_intercept for c in columns])
            self._standard_coef, self._standard_intercept = standard
            self._average_coef, self._average_intercept = means
            if columns[0].averaged:
                coef, intercept = means
        with np.errstate(over="ignore"):
            self.coef_ = self._shaped(coef.astype(dtype))
            self.intercept_ = intercept.astype(dtype)

    def _shaped(self, coef: Array) -> Array:
        """Return the weights in the shape of `coef_`."""
        return coef

    def _forget_averages(self) -> None:
        for name in self._averages:
            self.__dict__.pop(name, None)

    # ------------------------------------------------------------------------------------------------- warnings

    def _warn_if_not_converged(
        self,
        run: Run,
        columns: list[Column],
        settings: Settings,
        problem: DescentProblem,
        start: tuple[Array, Array],
        sizes: RowSizes,
    ) -> None:
        """Warn if descent diverged or did not converge."""
        if self.power_t < 0:
            warn(
                "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in 1.10. "
                "Use values in the range [0.0, inf) instead.",
                FutureWarning,
            )
        safe = safe_step(self.loss, sizes.largest, bool(self.fit_intercept))
        longest = float(self.alpha) ** -0.25 if self.learning_rate == "optimal" else float(self.eta0)
        if safe is not None and longest > safe:
            few = run.source.chunk(0, min(_LOSS_ROWS, run.source.n_rows))
            here = np.array([column.coef for column in columns]), np.array([column.intercept for column in columns])
            origin = np.zeros(run.source.n_features)
            then, now = (DualSums.map(few, (problem, *point, origin)).loss / len(few) for point in (start, here))
            grown = now / np.maximum(then, 1e-300)
            worst = int(grown.argmax())
            if grown[worst] > _GROWN.get(self.learning_rate, 10.0):
                warn(
                    f"{type(self).__name__} diverged: the mean loss of the first {len(few)} rows was {then[worst]:.3g} "
                    f"at the start and is {now[worst]:.3g} at the end; {self._cure(safe)}.",
                    ConvergenceWarning,
                )
                return
        if settings.tol is not None and not all(column.done for column in columns) and self.n_iter_ >= self.max_iter:
            warn(
                "Maximum number of iteration reached before convergence. Consider increasing max_iter to improve the "
                f"fit: {type(self).__name__} still improved by tol={settings.tol:g} in the last {settings.patience} of "
                f"{self.n_iter_} epochs ({self.certificate_}).",
                ConvergenceWarning,
            )

    def _cure(self, safe: float | None) -> str:
        """Return advice that names a safe step."""
        if safe is None:
            return "scale the columns"
        if self.learning_rate == "optimal":
            return (
                f"the first steps of learning_rate='optimal' are {float(self.alpha) ** -0.25:.3g} long: scale the "
                f"columns, or use learning_rate='invscaling' with eta0 below {safe:.2g}, which is safe for these rows"
            )
        return f"eta0={self.eta0:g} is too large: scale the columns, or use eta0 below {safe:.2g}, which is safe"

    def _diverged(self, epoch: int, sizes: RowSizes) -> str:
        safe = safe_step(self.loss, sizes.largest, bool(self.fit_intercept))
        return (
            f"Floating-point under-/overflow occurred at epoch #{epoch}. Scaling input data with StandardScaler or "
            f"MinMaxScaler might help: {self._cure(safe)}."
        )


def _targets(run: Run) -> Array:
    """Return the targets of all rows."""
    if isinstance(run.source, MemorySource):
        return run.source.chunk(0, run.source.n_rows).target
    return np.concatenate(list(run.engine.map_ordered(_targets_of, run.parts)))


def _targets_of(part: Part) -> Array:
    return np.concatenate([chunk.target for chunk in part.chunks()])
