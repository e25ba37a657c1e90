"""The expectation-maximisation loop: results, stopping rules, and passes shared by several starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytest

import summula
from summula import em
from summula.core.data.chunks import Chunk
from summula.core.errors import TimeLimitError
from summula.core.estimator import run as runs
from summula.core.numerics.sums import Sum
from summula.mixture import GaussianMixture

LIMIT = 2.0


@dataclass(frozen=True)
class Lifetimes(Sum):
    """Exponential lifetimes, censored at LIMIT."""

    elbo: float
    weight: float
    total: float

    @classmethod
    def map(cls, chunk: Chunk, params: float) -> Self:
        x = chunk.block()[:, 0]
        w = np.ones(len(x)) if chunk.weight is None else chunk.weight
        is_censored = x >= LIMIT
        log_likelihood = w @ np.where(is_censored, -params * x, np.log(params) - params * x)
        return cls(float(log_likelihood), float(w.sum()), float(w @ (x + is_censored / params)))


class Censored(em.Model[float, Lifetimes]):
    statistic = Lifetimes

    def __init__(self, *starts: float, degenerate: float = np.inf) -> None:
        self.given, self.passes, self.degenerate = starts, [], degenerate

    def starts(self, run: Any) -> Any:
        return self.given

    def maximize(self, sums: Lifetimes, theta: float) -> float:
        return sums.weight / sums.total

    def expect(self, run: Any, thetas: Any) -> Any:
        self.passes.append(len(thetas))
        return super().expect(run, thetas)

    def is_degenerate(self, theta: float) -> bool:
        return theta > self.degenerate


@pytest.fixture(scope="module")
def x() -> Any:
    return np.minimum(np.random.default_rng(0).exponential(2.0, 300), LIMIT)[:, None]


def closed_form(x: Any, w: Any = None) -> float:
    w = np.ones(len(x)) if w is None else w
    return float(w @ (x[:, 0] < LIMIT)) / float(w @ x[:, 0])


def test_reaches_the_closed_form_and_the_bound_never_falls(x: Any) -> None:
    solution = em.fit(Censored(5.0), x, tol=1e-14, max_iter=500)
    assert solution.converged
    assert solution.status == "converged"
    assert solution.x == pytest.approx(closed_form(x), rel=1e-6)
    assert (np.diff(solution.trace) >= -1e-15).all()
    assert solution.n_steps == len(solution.trace)
    assert solution.value == solution.trace[-1]


def test_weights_are_repetitions(x: Any) -> None:
    w = np.random.default_rng(1).integers(0, 4, len(x))
    weighted = em.fit(Censored(5.0), x, tol=1e-10, sample_weight=w.astype(float))
    repeated = em.fit(Censored(5.0), np.repeat(x, w, axis=0), tol=1e-10)
    assert weighted.x == pytest.approx(repeated.x, rel=1e-12)
    assert weighted.n_steps == repeated.n_steps


def test_the_tolerance_is_per_row(x: Any) -> None:
    once = em.fit(Censored(5.0), x, tol=1e-4)
    many = em.fit(Censored(5.0), np.tile(x, (7, 1)), tol=1e-4)
    assert once.n_steps == many.n_steps
    assert once.value == pytest.approx(many.value, rel=1e-12)


def test_several_starts_share_the_passes_and_the_worse_half_is_dropped(x: Any) -> None:
    model = Censored(1e-4, 1e-3, 0.01, 0.4, 5.0)
    solution = em.fit(model, x, tol=0.0, max_iter=45)
    alone = em.fit(Censored(0.4), x, tol=0.0, max_iter=45)
    assert model.passes == [5] * 10 + [3] * 10 + [2] * 20 + [1] * 5
    assert solution.value >= alone.value - 1e-12


def test_a_start_without_degeneracy_is_preferred(x: Any) -> None:
    best = closed_form(x)
    solution = em.fit(Censored(best, 0.1, degenerate=0.9 * best), x, tol=1e-14, max_iter=2)
    assert solution.x < 0.9 * best


def test_stops_on_request(x: Any) -> None:
    seen: list[float] = []

    def third(solution: Any) -> bool:
        seen.append(solution.value)
        return len(seen) == 3

    solution = em.fit(Censored(5.0), x, tol=0.0, on_step=third)
    assert solution.status == "stopped"
    assert list(solution.trace) == seen
    limited = em.fit(Censored(5.0), x, tol=0.0, max_iter=4)
    assert (limited.status, limited.n_steps, limited.converged) == ("max_iter", 4, False)


def test_keeps_the_best_when_the_time_is_over(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Censored(5.0)
    # The clock is read before each pass, after each part of it and after each step.
    monkeypatch.setattr(runs.time, "monotonic", lambda: float(len(model.passes) > 3))
    solution = em.fit(model, x, tol=0.0, max_time=0.5)
    assert (solution.status, solution.n_steps) == ("max_time", 3)
    with pytest.raises(TimeLimitError, match="before the first step"):
        em.fit(model, x, max_time=-1.0)


def test_an_interruption_assigns_the_best_so_far(x: Any) -> None:
    class Estimator(runs.Unnamed):
        _skl_callbacks = None

    kept: list[Any] = []
    source = runs.MemorySource(x, None, None, x.dtype)
    run = runs.Run(Estimator(), source, quiet=True)

    def interrupt(solution: Any) -> None:
        if solution.n_steps == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        em.fit(Censored(5.0), run, on_step=interrupt, assign=kept.append)
    assert not kept
    assert run.keep_offered(raised.value)
    assert kept[0].n_steps == 2


def test_a_missing_value_is_named(x: Any) -> None:
    broken = x.copy()
    broken[7, 0] = np.nan
    with pytest.raises(summula.DataError, match="Column 0 has 1 missing value .NaN; first at row 7"):
        em.fit(Censored(5.0), broken)


def test_an_impossible_start_is_refused(x: Any) -> None:
    with (
        np.errstate(divide="ignore", invalid="ignore"),
        pytest.raises(summula.DataError, match="start from parameters"),
    ):
        em.fit(Censored(0.0), x)


def test_estimators_are_refused_with_the_cure(x: Any) -> None:
    with pytest.raises(summula.ParameterError, match=r"em.fit needs an em.Model, not GaussianMixture: .*\.fit\(X\)"):
        em.fit(GaussianMixture(), x)
