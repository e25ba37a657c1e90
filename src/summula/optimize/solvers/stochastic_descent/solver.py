"""Epochs of stochastic gradient descent for one or several linear scores over the same rows, and stopping rules.

With losses l, weights c and penalty R each score minimises

    F(w, b) = 1/n sum_i c_i l(y_i, w'x_i + b) + alpha R(w),   R(w) = (1 - r) |w|^2 / 2 + r |w|_1                   (1)

by steps along the gradient of one row (`stochastic_descent/kernels.py`), with step sizes

    constant    eta = eta0                                                                                         (2)
    optimal     eta = 1 / (alpha (t0 + t)),  t0 such that the first is alpha^(-1/4)                                (3)
    invscaling  eta = eta0 / t^power_t                                                                             (4)
    adaptive    eta = eta0, divided by 5 whenever epochs stop improving                                            (5)

An epoch is an improvement if its mean of loss and penalty, accumulated during the epoch, is at least `tol` below the
best so far; with early stopping, if the validation score is at least `tol` above the best so far. Descent stops after
`patience` epochs without improvement.

Several scores (one class against the rest) use the rows in the same order, each on its own thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, product
from summula.core.engine.engine import local_engine
from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.core.numerics.sums import Sum
from summula.optimize.solvers.stochastic_descent.rows import Buffer, HeldOut, Visits, rows_in_order
from summula.optimize.solvers.stochastic_descent.rule import (
    AVERAGED,
    ETA,
    INTERCEPT,
    INTERCEPTS,
    LOSS,
    PENALTY,
    SCALE,
    STEPS,
    UPDATES,
    Epochs,
    Rule,
    State,
)

__all__ = ["CURVATURE", "AfterEpoch", "Column", "Settings", "descend_epochs", "safe_step"]

Array = NDArray[Any]
AfterEpoch = Callable[[], None]

_SMALLEST_STEP = 1e-6  # of (5)

# Largest second derivative of the losses with bounded curvature.
CURVATURE = {
    "squared_error": 1.0,
    "huber": 1.0,
    "log_loss": 0.25,
    "squared_hinge": 2.0,
    "modified_huber": 2.0,
    "squared_epsilon_insensitive": 2.0,
}


@dataclass(frozen=True)
class Settings:
    """Stopping rules: `tol` None never stops early, `clean` stops after an epoch without updates."""

    max_epochs: int
    tol: float | None
    patience: int
    adaptive: bool = False
    clean: bool = False
    clean_only: bool = False  # an epoch without updates is the only reason to stop
    n_jobs: int | None = None


@dataclass
class Column:
    """State of the descent of one linear score.

    Attributes
    ----------
    n_epochs : int
        Number of epochs so far.
    trace : list of float
        Mean of loss and penalty in each epoch, if the stopping rule uses them.
    updates : list of int
        Number of rows in each epoch with a nonzero gradient.
    """

    rule: Rule
    state: State
    from_zero: bool  # whether the starting point is 0
    n_epochs: int = 0
    done: bool = False
    trace: list[float] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    _best: float = np.inf
    _waited: int = 0

    def see(self, buffer: Buffer) -> None:
        """Take the steps of one buffer."""
        from summula.optimize.solvers.stochastic_descent.kernels import descend

        descend(buffer, self.rule, self.state)

    def end_epoch(self, n_rows: int) -> None:
        """Record the loss and the updates of the epoch."""
        numbers = self.state.numbers
        self._record(float(numbers[LOSS] + numbers[PENALTY]), float(numbers[UPDATES]), n_rows)
        numbers[LOSS] = numbers[PENALTY] = numbers[UPDATES] = 0.0

    def _record(self, loss: float, updates: float, n_rows: int) -> None:
        self.n_epochs += 1
        self.trace.append(loss / n_rows)
        self.updates.append(int(updates))

    def take_epochs(self, visits: Visits, settings: Settings, first: int, most: int) -> None:
        """Take up to `most` epochs at once over rows in one buffer, fewer if a stopping rule may apply."""
        from summula.optimize.solvers.stochastic_descent.kernels import descend

        if settings.tol is not None and not settings.clean_only:
            most = min(most, settings.patience - self._waited)
        trace = np.empty((most, 2))
        epochs = Epochs(visits.seed, first, int(visits.shuffle), int(settings.clean), trace)
        done = descend(visits.whole, self.rule, self.state, epochs)
        if not self.state.finite:
            raise OverflowError(self.n_epochs + done)
        for loss, updates in trace[:done].tolist():
            self._record(loss, updates, visits.n_rows)
            self.judge(settings, self.trace[-1])

    def judge(self, settings: Settings, value: float) -> None:
        """Stop if `value`, which is minimised, has not improved for `patience` epochs."""
        if settings.clean and not self.updates[-1]:
            self.done = True
            return
        if settings.clean_only:
            return
        if settings.tol is not None and not value <= self._best - settings.tol:
            self._waited += 1
        else:
            self._waited = 0
        self._best = min(self._best, value)
        if self._waited >= settings.patience:
            if settings.adaptive and self.state.numbers[ETA] > _SMALLEST_STEP:
                self.state.numbers[ETA] /= 5.0
                self._waited = 0
            else:
                self.done = True

    # --------------------------------------------------------------------------------------------------------- results

    @property
    def coef(self) -> Array:
        """The weights w."""
        return self.state.coef

    @property
    def intercept(self) -> float:
        """The intercept b."""
        return float(self.state.numbers[INTERCEPT])

    @property
    def averaged(self) -> float:
        """Number of steps averaged."""
        return float(self.state.numbers[AVERAGED])

    @property
    def mean_coef(self) -> Array:
        """The average of w over these steps; 0 before the first."""
        return np.asarray(self.state.a / max(self.averaged, 1.0))

    @property
    def mean_intercept(self) -> float:
        """The average of b."""
        return float(self.state.numbers[INTERCEPTS]) / max(self.averaged, 1.0)

    @property
    def steps(self) -> float:
        """The number of the next step."""
        return float(self.state.numbers[STEPS])

    def tidy(self) -> None:
        """Apply pending L1 penalties, update the averages, and multiply the weights by their scale."""
        from summula.optimize.solvers.stochastic_descent.kernels import apply_pending_updates

        apply_pending_updates(self.state)
        self.state.v[:] *= self.state.numbers[SCALE]
        self.state.numbers[SCALE] = 1.0


def descend_epochs(
    run: Run,
    columns: list[Column],
    visits: Visits,
    settings: Settings,
    first_epoch: int = 0,
    after_epoch: AfterEpoch | None = None,
) -> None:
    """Run epochs until all columns are done, at most `settings.max_epochs`."""
    if len(columns) == 1 and not run.has_callbacks and visits.epochs_at_once > 1:
        _descend_at_once(run, columns[0], visits, settings, first_epoch, after_epoch)
        return
    learnt = visits.n_rows if visits.held_out is None else 0
    for epoch in range(columns[0].n_epochs, settings.max_epochs):
        active = [column for column in columns if not column.done]
        n_rows = 0
        for buffer in visits.buffers(first_epoch + epoch):
            n_rows += len(buffer.order)
            _on_threads(active, buffer, settings.n_jobs)
        learnt = learnt or n_rows
        for column in active:
            column.end_epoch(max(learnt, 1))
            column.tidy()
            if not column.state.finite:
                raise OverflowError(epoch + 1)
        _judge(run, active, visits, settings)
        if after_epoch is not None:
            after_epoch()
        if run.step("epoch") or all(column.done for column in columns):
            return


def _descend_at_once(
    run: Run, column: Column, visits: Visits, settings: Settings, first_epoch: int, after_epoch: AfterEpoch | None
) -> None:
    """Run the epochs of one column over few rows, several of them in each call of the kernel."""
    while column.n_epochs < settings.max_epochs:
        most = min(visits.epochs_at_once, settings.max_epochs - column.n_epochs)
        column.take_epochs(visits, settings, first_epoch + column.n_epochs, most)
        if after_epoch is not None:
            after_epoch()
        if run.step("epochs") or column.done:
            return


def _judge(run: Run, active: list[Column], visits: Visits, settings: Settings) -> None:
    """Apply the stopping rule to the columns, by the losses of the epoch or of the held-out rows."""
    values = [column.trace[-1] for column in active]
    if visits.held_out is not None:
        values = validated(run, active, visits.held_out, visits.piece)
    for column, value in zip(active, values, strict=True):
        column.judge(settings, value)


def _on_threads(columns: list[Column], buffer: Buffer, n_jobs: int | None) -> None:
    if len(columns) == 1:
        columns[0].see(buffer)
        return
    for _ in local_engine().map_ordered(lambda column: column.see(buffer), columns, n_jobs=n_jobs):
        pass


def safe_step(loss: str, largest: float, intercept: bool) -> float | None:
    """Return the step below which no row overshoots, 2 / (curvature times |x|^2); None if curvature is unbounded."""
    if loss not in CURVATURE or not 0 < largest < np.inf:
        return None
    return 2.0 / (CURVATURE[loss] * (largest + float(intercept)))


# --------------------------------------------------------------------------------------------------------- validation


@dataclass(frozen=True)
class Validation(Sum):
    """Sums over validation rows, per column: correct predictions of classes, or squared errors for R^2."""

    weight: float
    total: float
    square: float
    good: Array  # weight of the correctly classified rows, or minus the squared errors

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[Array, Array, Array, HeldOut, int]) -> Self:
        """Return the sums of one chunk."""
        coef, intercept, positive, held_out, piece = params
        out = held_out.among(chunk.start, chunk.stop, piece)
        if not out.any():
            return cls(0.0, 0.0, 0.0, np.zeros(len(coef)))
        rows = rows_in_order(chunk)[out]
        scores = np.asarray(product(rows if chunk.is_sparse else aligned(rows), coef.T) + intercept, np.float64)
        y = chunk.target[out].astype(np.float64)
        w = np.ones(len(y)) if chunk.weight is None else chunk.weight[out]
        if positive[0] >= 0:
            good = w @ ((scores > 0) == (y[:, None] == positive))
        else:
            good = -(w @ (y[:, None] - scores) ** 2)
        return cls(float(w.sum()), float(w @ y), float(w @ y**2), np.asarray(good))


def validated(run: Run, columns: list[Column], held_out: HeldOut, piece: int) -> list[float]:
    """Return minus the validation score of each column: accuracy, or R^2."""
    coef, intercept = np.array([c.coef for c in columns]), np.array([c.intercept for c in columns])
    positive = np.array([c.rule.positive for c in columns])
    sums = run.sum(Validation, (coef, intercept, positive, held_out, piece), "validation")
    if not sums.weight:
        raise DataError(
            "The sample weights for validation set are all zero, consider using a different random state, or a larger "
            "validation_fraction."
        )
    if positive[0] >= 0:
        return [-float(good) / sums.weight for good in sums.good]
    spread = sums.square - sums.total**2 / sums.weight
    return [-1.0 - float(good) / spread if spread > 0 else 0.0 for good in sums.good]
