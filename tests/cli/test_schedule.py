"""The schedule of fits, on a fake clock that only fits advance, for many budgets and costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from summula.core.errors import TimeLimitError
from summula.training.comparison import schedule
from summula.training.comparison.candidates import Candidate, candidates_for
from summula.training.comparison.metrics import METRICS, Evaluation
from summula.training.comparison.schedule import Budget, compare_candidates, last_fit

ROWS, WHOLE = 160_000, 240_000


class Clock:
    """Fake time, advanced by fits."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclasses.dataclass
class FakeFold:
    """A fold on which a candidate takes `costs[name]` seconds for all rows, in proportion to a power of them."""

    clock: Clock
    costs: dict[str, float]
    risks: dict[str, float]
    n_rows: int = ROWS
    power: float = 1.0
    fitted: list[tuple[str, int]] = dataclasses.field(default_factory=list)

    def most_rows(self, candidate: Candidate) -> int:
        return self.n_rows

    def prepare(self, candidate: Candidate) -> None:
        pass

    def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
        needed = self.costs[candidate.name] * (rows / self.n_rows) ** self.power
        self.clock.now += min(needed, max_time)
        if needed > max_time and not candidate.stops_early:
            raise TimeLimitError
        self.fitted.append((candidate.name, rows))
        return f"{candidate.name} on {rows}"

    def evaluate(self, candidate: Candidate, model: Any) -> Evaluation:
        return Evaluation(self.risks[candidate.name], 0.001)


RISKS = {"baseline": 0.5, "logistic": 0.3, "logistic_l1": 0.31, "boosting": 0.26}


def compared(monkeypatch: pytest.MonkeyPatch, seconds: float, costs: dict[str, float], **more: Any) -> Any:
    clock = Clock()
    monkeypatch.setattr(schedule, "time", clock)
    folds = [FakeFold(clock, costs, more.pop("risks", RISKS), **more) for _ in range(3)]
    budget = Budget(seconds, WHOLE)
    board = compare_candidates(candidates_for("classes", False, list(costs)), folds, METRICS["accuracy"], budget)
    model = last_fit(board, ROWS, budget, lambda one, left, rows: folds[0].fit(one, left, rows))
    return board, model, clock.now, [fit for fold in folds for fit in fold.fitted]


def test_with_time_for_all_of_it_everybody_is_in_every_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"baseline": 0.1, "logistic": 2.0, "logistic_l1": 5.0, "boosting": 3.0}
    board, model, _, _ = compared(monkeypatch, 500.0, costs)
    assert [entry.name for entry in board.entries] == ["boosting", "logistic", "logistic_l1", "baseline"]
    assert {len(entry.evaluations) for entry in board.entries} == {3}
    assert not any(entry.note for entry in board.entries)
    assert model == f"boosting on {WHOLE}"


def test_the_likeliest_winner_goes_first_after_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"baseline": 0.1, "logistic": 1e4, "logistic_l1": 1e5, "boosting": 4.0}
    board, model, seconds, fits = compared(monkeypatch, 100.0, costs)
    large = [name for name, rows in fits if rows == ROWS]
    assert large[:2] == ["baseline", "boosting"]
    assert board.best.name == "boosting"
    assert model == f"boosting on {WHOLE}"
    assert seconds <= 101.0


def test_when_time_is_over_before_the_comparison_the_cheap_ones_go_first_and_the_others_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = {"baseline": 0.01, "logistic": 0.3, "logistic_l1": 5.0, "boosting": 4.0}
    board, model, seconds, fits = compared(monkeypatch, -1.0, costs)
    assert list(dict.fromkeys(name for name, _ in fits)) == ["baseline", "logistic"]
    assert board.best.name == "logistic"
    assert model == "logistic on 500"  # the minimum number of informative rows
    notes = {entry.name: entry.note for entry in board.entries}
    assert notes["boosting"] == notes["logistic_l1"] == "no model in time"
    assert seconds < 1.0


def test_a_slow_candidate_is_fitted_to_fewer_rows_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"baseline": 0.1, "logistic": 10.0, "logistic_l1": 900.0, "boosting": 5.0}
    board, _, _, _ = compared(monkeypatch, 108.0, costs)
    slow = next(entry for entry in board.entries if entry.name == "logistic_l1")
    assert slow.rows is not None
    assert 500 <= slow.rows < ROWS
    assert slow.note == f"fitted on {slow.rows:,} of 160,000 rows, because of limited time or memory"


def test_who_is_clearly_behind_stays_out_of_later_folds_when_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"baseline": 0.1, "logistic": 20.0, "logistic_l1": 20.0, "boosting": 8.0}
    board, _, seconds, _ = compared(monkeypatch, 100.0, costs)
    folds = {entry.name: len(entry.evaluations) for entry in board.entries}
    assert folds["boosting"] == folds["baseline"] == 3
    assert min(folds["logistic"], folds["logistic_l1"]) < 3
    assert [row["rank"] for row in board.rows()][:2] == [1, 2]
    assert seconds <= 100.0


def test_a_subsample_that_wins_is_fitted_to_as_many_rows_as_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"baseline": 0.1, "logistic": 300.0, "logistic_l1": 1e6, "boosting": 1.0}
    board, model, seconds, _ = compared(monkeypatch, 120.0, costs, risks=RISKS | {"logistic": 0.1})
    assert board.best.name == "logistic"
    assert board.best.rows is not None
    assert int(model.split()[-1]) >= board.best.rows
    assert seconds <= 121.0


def slow_comparison(monkeypatch: pytest.MonkeyPatch, seconds: float) -> tuple[Clock, Budget, Any]:
    """A comparison in which one candidate takes 50 seconds."""
    clock = Clock()
    monkeypatch.setattr(schedule, "time", clock)
    fold = FakeFold(clock, {"baseline": 0.1, "logistic": 50.0}, RISKS, n_rows=1_500)
    budget = Budget(seconds, 2_000)
    board = compare_candidates(candidates_for("classes", False, ["logistic"]), [fold], METRICS["accuracy"], budget)
    return clock, budget, board


def test_without_time_for_a_last_fit_the_model_of_a_fold_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, budget, board = slow_comparison(monkeypatch, 100.0)
    clock.now = 99.0
    model = last_fit(board, 1_500, budget, lambda *_: pytest.fail("there is no time for this"))
    assert model == "logistic on 1500"
    assert board.best.note == "model of the first fold, because of the time limit"


def test_a_fold_that_time_cuts_short_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(schedule, "time", clock)
    usual = {"baseline": 0.1, "logistic": 5.0}
    folds = [FakeFold(clock, usual, RISKS), FakeFold(clock, usual | {"logistic": 1e4}, RISKS)]
    budget = Budget(200.0, WHOLE)
    board = compare_candidates(candidates_for("classes", False, ["logistic"]), folds, METRICS["accuracy"], budget)
    assert board.best.name == "logistic"
    assert board.rounds == 1
    assert [row["folds"] for row in board.rows()] == [1, 1]


def test_compiling_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = Clock(), iter([40.0])

    class Compiling(FakeFold):
        def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
            if candidate.name == "boosting":
                clock.now += next(calls, 0.0)  # a compiler cannot be interrupted
            return super().fit(candidate, max_time, rows)

    monkeypatch.setattr(schedule, "time", clock)
    costs = {"baseline": 0.1, "logistic": 2.0, "logistic_l1": 5.0, "boosting": 3.0}
    budget = Budget(60.0, WHOLE)
    board = compare_candidates(
        candidates_for("classes", False, list(costs)),
        [Compiling(clock, costs, RISKS) for _ in range(3)],
        METRICS["accuracy"],
        budget,
    )
    assert budget.compiling == pytest.approx(40.0, abs=0.5)
    assert {len(entry.evaluations) for entry in board.entries} == {3}
    assert not any(entry.note for entry in board.entries)


def test_after_ctrl_c_nobody_waits_for_a_long_last_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    _, budget, board = slow_comparison(monkeypatch, 1_000.0)
    board.interrupted = True
    assert last_fit(board, 1_500, budget, lambda *_: pytest.fail("it is too long")) == "logistic on 1500"
    board.entries[0].seconds = [0.2]
    assert last_fit(board, 1_500, budget, lambda one, left, rows: "fitted again") == "fitted again"


def test_ctrl_c_in_the_last_fit_keeps_the_model_of_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(schedule, "time", clock)
    fold = FakeFold(clock, {"baseline": 0.1, "logistic": 5.0}, RISKS)
    budget = Budget(1_000.0, WHOLE)
    board = compare_candidates(candidates_for("classes", False, ["logistic"]), [fold], METRICS["accuracy"], budget)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    assert last_fit(board, ROWS, budget, interrupted) == f"logistic on {ROWS}"
    assert board.interrupted


seconds_of = st.floats(0.01, 1e5)


@settings(max_examples=300, deadline=None)
@given(
    st.floats(5.0, 600.0),
    st.fixed_dictionaries({"logistic": seconds_of, "logistic_l1": seconds_of, "boosting": seconds_of}),
    st.floats(0.8, 1.6),
    st.permutations([0.26, 0.3, 0.31]),
)
def test_it_ends_in_time_and_boosting_is_always_fitted(
    seconds: float, costs: dict[str, float], power: float, risks: list[float]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        given_risks = {"baseline": 0.5, **dict(zip(("logistic", "logistic_l1", "boosting"), risks, strict=True))}
        board, model, ended, fits = compared(patch, seconds, costs | {"baseline": 0.05}, risks=given_risks, power=power)
    assert ("boosting", ROWS) in fits
    assert model is not None
    # A running fit may use another half second after the time limit.
    assert ended <= seconds + 3.0
    assert board.best.name != "baseline"


def compared_while_compiling(
    patch: pytest.MonkeyPatch, fold: type[FakeFold], compiled: SimpleNamespace
) -> tuple[Any, Budget]:
    """Compare three candidates on three folds that set `compiled.seconds`; all are evaluated on every fold."""
    clock, costs = Clock(), {"baseline": 0.1, "logistic": 0.2, "boosting": 0.3}

    @contextmanager
    def times() -> Iterator[Any]:
        compiled.seconds = 0.0
        yield compiled

    patch.setattr(schedule, "time", clock)
    patch.setattr(schedule, "compile_times", times)
    folds, budget = [fold(clock, costs, RISKS) for _ in range(3)], Budget(20.0, WHOLE)
    board = compare_candidates(candidates_for("classes", False, list(costs)), folds, METRICS["accuracy"], budget)
    assert {entry.name: len(entry.evaluations) for entry in board.entries} == dict.fromkeys(costs, 3)
    return board, budget


def test_compiling_is_repeated_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that time out because their kernels are being compiled are retried, without loss of other fits."""
    compiled, left = SimpleNamespace(seconds=0.0), {"boosting": [30.0, 20.0], "logistic": [40.0]}

    class CompilingFold(FakeFold):
        def fit(self, candidate: Candidate, max_time: float, rows: int) -> Any:
            if left.get(candidate.name):
                compiled.seconds = left[candidate.name].pop(0)
                self.clock.now += compiled.seconds
                raise TimeLimitError
            return super().fit(candidate, max_time, rows)

    _, budget = compared_while_compiling(monkeypatch, CompilingFold, compiled)
    assert budget.compiling == pytest.approx(90.0, abs=1.0)


def test_compiling_of_predictions_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of predictions are compiled when the first fold is evaluated."""
    compiled, left = SimpleNamespace(seconds=0.0), {"boosting": 50.0}

    class CompilingFold(FakeFold):
        def evaluate(self, candidate: Candidate, model: Any) -> Evaluation:
            seconds = left.pop(candidate.name, 0.0)
            compiled.seconds += seconds
            self.clock.now += seconds
            return super().evaluate(candidate, model)

    board, budget = compared_while_compiling(monkeypatch, CompilingFold, compiled)
    assert budget.compiling == pytest.approx(50.0)
    assert max(max(entry.spent) for entry in board.entries) < 1.0


def test_a_slow_start_leaves_time_for_one_candidate_besides_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"baseline": 0.01, "logistic": 1.8, "logistic_l1": 1.8, "boosting": 9.0}
    for seconds in (-0.05, 0.4):
        board, model, took, _ = compared(monkeypatch, seconds, costs, n_rows=400)
        assert board.best.name == "logistic"
        assert model == "logistic on 400"
        notes = {entry.name: entry.note for entry in board.entries}
        assert notes["boosting"] == notes["logistic_l1"] == "no model in time"
        assert took < 4.0
