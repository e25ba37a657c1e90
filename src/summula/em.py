"""Expectation-maximisation: one loop for every model with hidden variables.

For observed rows x, hidden variables z and parameters theta, any distribution q of z bounds the log-likelihood,

    L(q, theta) = E_q[log p(x, z | theta)] + H(q)  <=  log p(x | theta)                         (the ELBO)      (1)

with equality for q(z) = p(z | x, theta). The loop alternates

    E-step    q = p(z | x, theta):  sums over the rows of the statistics of the M-step, and of the bound (1)     (2)
    M-step    theta = argmax over theta of L(q, theta), from these sums                                          (3)

so the log-likelihood never decreases. The E-step is a `Statistic`: the engine sums it over arrays, files and clusters.
A model derives from `Model`: it defines its statistic, one or several starting points, and the M-step. Several starts
advance together, in the same passes over the rows; the worse half of them is dropped after 10, 20, 40, ... steps.
"""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from summula.core.data.chunks import Chunk
from summula.core.engine.engine import watched
from summula.core.errors import DataError, ParameterError, TimeLimitError
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import OutOfTime, Run, Unnamed, check_clock
from summula.core.numerics.solution import Solution
from summula.core.numerics.sums import Groups

__all__ = ["Collapse", "Expectation", "Model", "fit", "opened"]

Theta = TypeVar("Theta")
S = TypeVar("S", bound="Expectation")

_FIRST_CUT = 10  # number of steps after which the worse half of several starts is dropped; doubled each time


class Collapse(DataError):
    """Raised by `Model.maximize` if the M-step has no solution, such as for a component with zero variance.

    The start is dropped; the error is raised to the user if it was the last one.
    """


class Expectation(Protocol):
    """The E-step (2) as a statistic; implementations derive from `core.numerics.sums.Sum` and define `map`."""

    @property
    def elbo(self) -> float:
        """Return the bound (1), summed over weighted rows, at the parameters of the E-step."""

    @property
    def weight(self) -> float:
        """Return the sum of the weights."""

    @classmethod
    def map(cls, chunk: Chunk, params: Any) -> Self:
        """Return the sums over one chunk at the parameters `params`."""

    def merge(self, other: Self) -> Self:
        """Return the sums over the union of two sets of rows."""


class Model(ABC, Generic[Theta, S]):
    """A model with hidden variables. `Theta` is the type of its parameters, which must be picklable and immutable.

    Attributes
    ----------
    statistic : type
        The E-step, an `Expectation` whose `params` are a Theta.
    """

    statistic: ClassVar[type[Any]]

    @abstractmethod
    def starts(self, run: Run) -> Sequence[Theta]:
        """Return the initial parameters, one Theta per start; `run` computes sums over rows if needed."""

    @abstractmethod
    def maximize(self, sums: S, theta: Theta) -> Theta:
        """Perform the M-step (3), from the sums of the E-step at `theta`."""

    def expect(self, run: Run, thetas: Sequence[Theta]) -> Sequence[S]:
        """Perform the E-step for each of several parameters in one pass over the rows.

        Models whose E-step is a function of constant sums, such as a covariance matrix, override this.
        """
        sums = run.sum(_Together, (self.statistic, tuple(thetas)), "E-step")
        return list(sums.groups)

    def is_degenerate(self, theta: Theta) -> bool:
        """Return whether the likelihood is spuriously large, in which case any other start is preferred."""
        return False


@dataclass(frozen=True)
class _Together(Groups):
    """The E-steps of several starts in one pass."""

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[type[Any], tuple[Any, ...]]) -> Self:
        """Return the sums over one chunk; `params` are the statistic and the parameters of each start."""
        statistic, thetas = params
        return cls(tuple(statistic.map(chunk, theta) for theta in thetas))


@dataclass
class _State(Generic[Theta]):
    """State of one start."""

    theta: Theta
    previous: float
    trace: list[float] = field(default_factory=list)
    converged: bool = False
    degenerate: bool = False

    @property
    def rank(self) -> tuple[bool, float]:
        """Return the criterion that the best start maximises."""
        return not self.degenerate, self.trace[-1] if self.trace else self.previous

    def advance(self, model: Model[Theta, S], sums: S, tol: float, *, compare: bool) -> None:
        """Perform one M-step, and set whether the bound has converged; `compare` if there are other starts."""
        before = self.trace[-1] if self.trace else self.previous
        self.trace.append(sums.elbo / sums.weight)
        self.converged = bool(abs(self.trace[-1] - before) < tol)
        self.theta = model.maximize(sums, self.theta)
        self.degenerate = compare and model.is_degenerate(self.theta)

    def solution(self, status: str) -> Solution:
        """Return the result."""
        trace = tuple(self.trace)
        return Solution(self.theta, self.rank[1], np.nan, status, self.converged, len(trace), trace)


def fit(
    model: Model[Theta, S],
    data: Any,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    sample_weight: Any = None,
    max_time: float | None = None,
    previous: float = -np.inf,
    on_step: Callable[[Solution], Any] | None = None,
    assign: Callable[[Solution], None] | None = None,
) -> Solution:
    """Maximise the likelihood of a model with hidden variables by expectation-maximisation.

    Parameters
    ----------
    model : Model
    data : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features), or Run
        The rows, or, inside the `fit` of an estimator, its run.
    tol : float, default=1e-3
        Stop when a step changes the bound (1), divided by the sum of the weights, by less than this.
    max_iter : int, default=100
        Maximum number of steps; 0 returns the first start.
    sample_weight : array-like of shape (n_samples,), or name of a column, optional
        Sample weights (a run has its own).
    max_time : float, optional
        Time limit in seconds, after which the best parameters so far are returned (a run has its own limit).
    previous : float, default=-inf
        The bound before the first step, to continue another fit.
    on_step : callable, optional
        Called after each step with the best `Solution` so far; True stops the loop.
    assign : callable, optional
        Called with the best `Solution` so far if Ctrl-C, the time limit of the run or the loss of a cluster ends the
        fit.

    Returns
    -------
    Solution
        `x` are the parameters after the last M-step, `trace` the bound per row before each M-step, `value` the last of
        these, `status` one of "converged", "max_iter", "max_time" and "stopped".

    References
    ----------
    Dempster, Laird, Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.

    Examples
    --------
    Lifetimes are exponential with rate theta, censored at 2. The hidden variable is the true lifetime, with mean
    2 + 1/theta; the solution in closed form is the number of deaths divided by the total time.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from summula import em
    >>> from summula.core.numerics.sums import Sum
    >>> @dataclass(frozen=True)
    ... class Lifetimes(Sum):
    ...     elbo: float
    ...     weight: float
    ...     total: float
    ...
    ...     @classmethod
    ...     def map(cls, chunk, rate):
    ...         x = chunk.block()[:, 0]
    ...         is_censored = x >= 2.0
    ...         log_likelihood = (~is_censored).sum() * np.log(rate) - rate * x.sum()
    ...         return cls(log_likelihood, float(len(x)), (x + is_censored / rate).sum())
    >>> class Censored(em.Model):
    ...     statistic = Lifetimes
    ...
    ...     def starts(self, run):
    ...         return [1.0]
    ...
    ...     def maximize(self, sums, rate):
    ...         return sums.weight / sums.total
    >>> x = [[0.5], [1.0], [2.0], [1.5], [2.0]]
    >>> solution = em.fit(Censored(), x, tol=1e-12)
    >>> print(solution.status, round(solution.x, 4), round(3 / 7, 4))
    converged 0.4286 0.4286
    """
    given: Any = model
    if not isinstance(given, Model):
        name = type(given).__name__
        raise ParameterError(
            f"em.fit needs an em.Model, not {name}: fit an estimator by {name}(...).fit(X), which has the same loop."
        )
    if isinstance(data, Run):
        return _iterate(model, data, (tol, max_iter, previous), on_step, assign)
    kept: list[Solution] = []
    with opened(data, sample_weight, max_time) as run:
        try:
            return _iterate(model, run, (tol, max_iter, previous), on_step, kept.append)
        except OutOfTime:
            run.keep_offered(OutOfTime())
            if not kept:
                raise TimeLimitError(
                    f"max_time={max_time} s elapsed before the first step; increase max_time or pass fewer rows."
                ) from None
            return kept[-1]


class _Incomplete(Unnamed):
    """Placeholder for an estimator that supports missing values."""

    _allows_nan = True


@contextmanager
def opened(
    data: Any, sample_weight: Any = None, max_time: float | None = None, *, allow_nan: bool = False
) -> Iterator[Run]:
    """Open a run over rows that were passed to a function instead of an estimator."""
    deadline = None if max_time is None else time.monotonic() + max_time
    with watched(functools.partial(check_clock, deadline)):
        source = as_source(Unnamed(), data, None, sample_weight, needs_y=False, accept_sparse=False)
        try:
            yield Run(_Incomplete() if allow_nan else Unnamed(), source, quiet=True, deadline=deadline)
        finally:
            source.release()


def _iterate(
    model: Model[Theta, S],
    run: Run,
    limits: tuple[float, int, float],
    on_step: Callable[[Solution], Any] | None,
    assign: Callable[[Solution], None] | None,
) -> Solution:
    """Iterate; `limits` are tol, max_iter and the bound before the first step."""
    tol, max_iter, previous = limits
    states: list[_State[Theta]] = [_State(theta, previous) for theta in model.starts(run)]
    cut, status = _FIRST_CUT, "max_iter"
    for step in range(1, max_iter + 1):
        active = [state for state in states if not state.converged]
        for state, sums in zip(active, model.expect(run, [state.theta for state in active]), strict=True):
            _check_finite(sums.elbo, run)
            try:
                state.advance(model, sums, tol, compare=len(states) > 1)
            except Collapse:
                states = [other for other in states if other is not state]
                if not states:
                    raise
        best = max(states, key=lambda state: state.rank)
        if assign is not None:
            run.offer(functools.partial(assign, best.solution("max_time")))
        if run.step("EM step") or (on_step is not None and on_step(best.solution("stopped"))):
            status = "stopped"
            break
        if step == cut and len(states) > 1:
            states = sorted(states, key=lambda state: state.rank, reverse=True)[: (len(states) + 1) // 2]
            cut *= 2
        if all(state.converged for state in states):
            break
    best = max(states, key=lambda state: state.rank)
    return best.solution("converged" if best.converged else status)


def _check_finite(elbo: float, run: Run) -> None:
    """Raise if the bound is NaN, naming a missing or infinite value if there is one."""
    if np.isfinite(elbo):
        return
    run.raise_if_not_finite()
    raise DataError(
        f"The log-likelihood is {elbo} in the E-step: under the given starting parameters some row has likelihood "
        "0, or is "
        "too far from every component; start from parameters with a positive likelihood of every row."
    )
