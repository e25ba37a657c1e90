"""Promise 8: progress bars and other callbacks of scikit-learn follow a fit, and `max_time` ends it."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import summula
from summula.core.data import chunks
from tests.contract import storage
from tests.contract.compare import assert_same_bits, fitted_attributes
from tests.contract.registry import Case, over, over_frames


class Recorder:
    """A callback that records its calls, and optionally raises or requests to stop."""

    def __init__(self, *, fail_at: str | None = None, stop: bool = False) -> None:
        self.told: list[tuple[str, str]] = []
        self.parts_announced = 0
        self.X: Any = None
        self.fail_at, self.stop = fail_at, stop

    def _note(self, hook: str, task: str) -> None:
        self.told.append((hook, task))
        if hook == self.fail_at:
            raise RuntimeError(f"the callback fails at {hook}")

    def setup(self, estimator: Any, context: Any) -> None:
        self._note("setup", context.task_name)

    def on_fit_task_begin(self, estimator: Any, context: Any, *, X: Any = None) -> None:
        self.X = X if X is not None else self.X
        if context.parent is not None:
            self.parts_announced += context.max_subtasks
        self._note("begin", context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self._note("end", context.task_name)
        return self.stop

    def teardown(self, estimator: Any, context: Any) -> None:
        self._note("teardown", context.task_name)

    def count(self, hook: str) -> Counter[str]:
        return Counter(task for what, task in self.told if what == hook)


@pytest.fixture
def many_parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)
    with summula.engine("threads", chunk_rows=300):
        yield


@over()
def test_every_task_begins_and_ends_between_setup_and_teardown(case: Case, many_parts: None) -> None:
    X, y, _ = case.data("large")
    recorder = Recorder()
    model = clone(case.estimator).set_callbacks(recorder).fit(X, y)
    assert recorder.told[0] == ("setup", "fit")
    assert recorder.told[1] == ("begin", "fit")
    assert recorder.told[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert recorder.count("begin") == recorder.count("end")
    assert recorder.X is X
    if case.passes:
        assert recorder.count("begin")["part"] == recorder.parts_announced > 10
    assert not [name for name in vars(model) if "callback_fit" in name or "teardown" in name]
    # Callbacks do not change any bits.
    assert_same_bits(fitted_attributes(case.model("large")), fitted_attributes(model))


@over()
def test_teardown_comes_after_an_error_too(case: Case) -> None:
    X, y, _ = case.data()
    bad = X.copy()
    bad[0, 0] = np.inf
    recorder = Recorder()
    model, words = clone(case.estimator).set_callbacks(recorder), "infinite"
    if case.infinite:  # what is seen once there is a source
        faults = {"monotonic_cst": [1], "max_features": 99, "estimator": KNeighborsClassifier()}
        words = next(name for name in faults if name in model.get_params())
        model.set_params(**{words: faults[words]})
        words = words.replace("estimator", "KNeighborsClassifier")
    with pytest.raises(ValueError, match=words):
        model.fit(bad, y)
    model.set_params(**clone(case.estimator).get_params(deep=False))
    assert recorder.told[-1] == ("teardown", "fit")
    assert not fitted_attributes(model)
    assert_same_bits(fitted_attributes(case.model()), fitted_attributes(model.fit(X, y)))


@pytest.mark.parametrize("hook", ["setup", "begin", "end"])
@over()
def test_a_failing_callback_leaves_nothing_half_done(case: Case, hook: str) -> None:
    X, y, _ = case.data()
    recorder = Recorder(fail_at=hook)
    model = clone(case.estimator).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match=f"fails at {hook}"):
        model.fit(X, y)
    assert recorder.told[-1][0] == "teardown"
    assert not fitted_attributes(model)
    model.set_callbacks()
    assert_same_bits(fitted_attributes(case.model()), fitted_attributes(model.fit(X, y)))


@over("wide_sparse")
def test_a_callback_can_stop_an_iteration(case: Case) -> None:
    X, y = case.wide_data()
    whole = case.wide_model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(case.estimator).set_callbacks(Recorder(stop=True)).fit(X, y)
    assert np.max(model.n_iter_) < np.max(whole.n_iter_)
    assert model.certificate_.primal > whole.certificate_.primal
    assert model.certificate_.verify(X, y)


@over()
def test_a_progress_bar_is_drawn(case: Case, many_parts: None, capsys: pytest.CaptureFixture[str]) -> None:
    X, y, _ = case.data()
    clone(case.estimator).set_callbacks(ProgressBar()).fit(X, y)
    assert type(case.estimator).__name__ in capsys.readouterr().out


@over()
def test_a_progress_bar_reaches_into_a_pipeline(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    X, y, _ = case.data()
    make_pipeline(clone(case.estimator)).set_callbacks(ProgressBar()).fit(X, y)
    assert type(case.estimator).__name__ in capsys.readouterr().out


@over_frames("supervised")
def test_a_scoring_monitor_sees_the_finished_model(case: Case, constructor: Any) -> None:
    X, y, _ = case.data()
    scoring = "accuracy" if case.classifier else "r2"
    score = get_scorer(scoring)
    monitor = ScoringMonitor(scoring=scoring)
    model = clone(case.estimator).set_callbacks(monitor).fit(X, y)
    assert monitor.get_logs().data[-1][scoring] == score(model, X, y)
    if not case.likelihood or case.classifier:
        assert score(model, X, y) == model.score(X, y)
    if case.one_target:  # also when the target is a column of the frame
        model.fit(constructor(storage.columns(X) | {"target": y}), "target")
        expected = score(model, constructor(storage.columns(X)), y)
        assert monitor.get_logs().data[-1][scoring] == pytest.approx(expected)


# -------------------------------------------------------------------------------------------------------- time limits


@over("timed", "passes")
def test_too_little_time_for_a_first_model_is_an_error(case: Case) -> None:
    X, y, _ = case.data()
    model = clone(case.estimator).set_params(max_time=0.0)
    with pytest.raises(summula.TimeLimitError) as caught:
        model.fit(X, y)
    assert str(caught.value) == (
        f"max_time=0.0 s was exceeded before {type(model).__name__} had a first model; increase max_time or fit fewer rows."
    )
    assert not fitted_attributes(model)
    assert_same_bits(fitted_attributes(case.model()), fitted_attributes(model.set_params(max_time=None).fit(X, y)))


@over("timed", "passes")
def test_too_little_time_for_a_refit_leaves_the_old_model(case: Case) -> None:
    X, y, _ = case.data()
    model = case.fit(X, y)
    attributes = fitted_attributes(model)
    with pytest.raises(summula.TimeLimitError):
        model.set_params(max_time=0.0).fit(X[::-1], None if y is None else y[::-1])
    assert_same_bits(attributes, fitted_attributes(model))


@over("timed")
def test_enough_time_changes_nothing(case: Case) -> None:
    X, y, _ = case.data()
    model = clone(case.estimator).set_params(max_time=1_000.0).fit(X, y)
    assert_same_bits(fitted_attributes(case.model()), fitted_attributes(model))


@over("timed", "wide_sparse")
def test_an_iteration_out_of_time_keeps_its_best_and_warns_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = case.wide_data()
    ticks = iter(range(10**9))
    monkeypatch.setattr("summula.core.estimator.run.time.monotonic", lambda: float(next(ticks)))
    model = clone(case.estimator).set_params(max_time=20)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert f"{type(model).__name__} stopped after max_time=20 s and kept the best model so far" in str(
        caught[0].message
    )
    assert "increase max_time" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert model.certificate_.verify(X, y)
    assert case.loss(y, case.output(model, X)) < case.loss(y, case.constant(y))
