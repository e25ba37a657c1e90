"""The alarm and the threshold: error rates, and rejected input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.linear_model import Perceptron

import summula
from summula.certification import RiskMonitor, np_threshold
from summula.core.errors import DataError, ParameterError
from summula.linear_model import LinearRegression, LogisticRegression
from tests.reference import betting
from tests.stats.loss_laws import too_often


def test_false_alarms_are_rare() -> None:
    """Losses exactly at the limit, ten thousand of them, watched at every row."""
    rng = np.random.default_rng(0)
    times, alarms = 1_000, 0
    for _ in range(times):
        alarms += RiskMonitor(0.1, delta=0.2).update(rng.random(10_000) < 0.1)
    assert not too_often(alarms, times, 0.2)
    assert alarms / times < 0.2


def test_false_alarms_are_rare_for_losses_that_depend_on_the_past() -> None:
    """The worse the past, the wilder the next loss; its mean stays at the limit."""
    rng = np.random.default_rng(1)
    times, alarms = 200, 0
    for _ in range(times):
        u, x, wild = rng.random(2_000), np.empty(2_000), False
        for t in range(2_000):
            x[t] = (u[t] < 0.2) if wild else 0.2
            wild = x[t] == 0.2 or x[t] > 0.5
        alarms += RiskMonitor(0.2, delta=0.1).update(x)
    assert not too_often(alarms, times, 0.1)


def test_a_risk_above_the_limit_raises_an_alarm_soon() -> None:
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(50):
        monitor = RiskMonitor(0.05, delta=0.01)
        assert monitor.update(rng.random(5_000) < 0.10)
        rows.append(monitor.alarm_row)
    assert np.median(rows) < 800


def test_a_late_rise_is_detected() -> None:
    """After a long period without drift, the alarm takes a few hundred rows longer, not as long again."""
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(20):
        monitor = RiskMonitor(0.12)
        if not monitor.update(rng.random(50_000) < 0.10):
            assert monitor.update(rng.random(3_000) < 0.20)
            rows.append(monitor.alarm_row - 50_000)
    assert len(rows) >= 18
    assert np.median(rows) < 1_000


def test_evidence_follows_the_equations() -> None:
    x = np.random.default_rng(8).random(60)
    monitor, expected = RiskMonitor(0.45, delta=1e-6), betting.watched(x, 0.45, 0.5 ** np.arange(1, 17) / 0.45)
    for value, evidence in zip(x, expected, strict=True):
        monitor.update(value)
        assert monitor.evidence == pytest.approx(evidence, rel=1e-10)


def test_portions_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).random(9_000) ** 2 * 10 - 5
    whole, parts, single = (RiskMonitor(-1.9, range=(-5, 5)) for _ in range(3))
    monkeypatch.setattr("summula.certification.monitor._BLOCK", 1_000)
    whole.update(x)
    for start in range(0, len(x), 700):
        parts.update(x[start : start + 700])
    for value in x:
        single.update(value)
    assert whole.alarm
    for other in (parts, single):
        assert other.alarm_row == whole.alarm_row
        assert other.n == 9_000
        assert other.mean == pytest.approx(whole.mean) == pytest.approx(x.mean())
        assert other.evidence == pytest.approx(whole.evidence, rel=1e-6)
        assert other.evidence >= 20


def test_an_alarm_stays() -> None:
    monitor = RiskMonitor(0.2)
    assert np.isnan(monitor.mean)
    assert not monitor.alarm
    assert repr(monitor) == "RiskMonitor(limit=0.2, delta=0.05): no alarm after 0 rows"
    monitor.update(np.ones(20))
    row = monitor.alarm_row
    assert row < 10
    assert monitor.update(np.zeros(10_000))
    assert monitor.alarm_row == row
    assert monitor.evidence >= 20
    assert f"alarm at row {row}" in repr(monitor)
    assert monitor.update([])


def test_what_a_monitor_refuses() -> None:
    for limit in (0.0, 1.0, 1.5, np.nan, "a tenth", LinearRegression()):
        with pytest.raises(ParameterError, match="limit must be between the smallest and the largest loss, 0 and 1"):
            RiskMonitor(limit)
    with pytest.raises(ParameterError, match="delta must be"):
        RiskMonitor(0.5, delta=2)
    with pytest.raises(ParameterError, match="delta=1e-310 is too small for a monitor"):
        RiskMonitor(0.5, delta=1e-310)
    with pytest.raises(ParameterError, match="range must be two finite numbers"):
        RiskMonitor(0.5, range=(0, np.inf))
    monitor = RiskMonitor(0.5)
    monitor.update([0.1, 0.2])
    with pytest.raises(DataError, match=r"The loss is 3 at row 3, outside the range from 0 to 1"):
        monitor.update([0.3, 3.0])
    with pytest.raises(DataError, match="The loss is nan at row 2"):
        monitor.update([np.nan])
    with pytest.raises(DataError, match=r"The losses have shape \(1, 2\)"):
        monitor.update([[0.1, 0.2]])
    assert monitor.n == 2


# --------------------------------------------------------------------------------------------------------- thresholds


class Score:
    """A score that is the first column."""

    classes_ = np.array(["healthy", "ill"])

    def predict(self, X: Any) -> Any:
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(int)]

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]


def test_the_error_exceeds_alpha_with_the_stated_probability() -> None:
    rng = np.random.default_rng(4)
    for n in (59, 200, 1_000):
        found = [np_threshold(Score(), rng.normal(size=(n, 1)), alpha=0.05, delta=0.1).value for _ in range(400)]
        errors = 1 - ndtr(found)
        assert not too_often(np.sum(errors > 0.05), 400, 0.1)
    assert np.sum(errors > 0.05) > 0.04 * 400  # and not much less often


def test_predicting_by_the_threshold() -> None:
    X = np.arange(100.0)[:, None]
    t = np_threshold(Score(), X, alpha=0.1, delta=0.1)
    assert (t.rank, t.n, t.score) == (int(t.value) + 1, 100, "decision_function")
    assert t.predict([[t.value], [t.value + 0.5]]).tolist() == ["healthy", "ill"]


def test_probabilities_files_and_new_fits(tmp_path: Any) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(400, 2)), np.repeat([0, 1], 200)
    X[y == 1] += 1
    model = LogisticRegression().fit(X, y)
    X0 = rng.normal(size=(300, 2))
    t = np_threshold(model, X0)
    np.save(tmp_path / "rows.npy", X0)
    scanned = LogisticRegression().fit(X, y)
    with np.errstate(all="ignore"):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fitted without names
            assert np_threshold(scanned, summula.scan(tmp_path / "rows.npy")).value == pytest.approx(t.value)
    model.fit(X[::2], y[::2])
    with pytest.raises(DataError, match="The model was refitted or changed after the threshold was computed"):
        t.predict(X0)

    class OnlyProbabilities:
        classes_ = np.array([0, 1])
        predict = None

        def predict_proba(self, X: Any) -> Any:
            p = np.asarray(X)[:, 0]
            return np.column_stack([1 - p, p])

    by_probability = np_threshold(OnlyProbabilities(), rng.random((100, 1)))
    assert by_probability.score == "predict_proba"
    assert 0.9 < by_probability.value < 1


def test_what_a_threshold_refuses() -> None:
    with pytest.raises(DataError, match="58 rows of the first class are too few: .* need at least 59"):
        np_threshold(Score(), np.zeros((58, 1)))
    with pytest.raises(DataError, match="There are no rows of the first class; 59 are needed"):
        np_threshold(Score(), np.zeros((0, 1)))
    with pytest.raises(DataError, match="Some scores are NaN"):
        np_threshold(Score(), np.full((100, 1), np.nan))
    with pytest.raises(ParameterError, match="alpha must be a number between 0 and 1"):
        np_threshold(Score(), np.zeros((100, 1)), alpha=0)
    X = np.random.default_rng(6).normal(size=(60, 2))
    with pytest.raises(ParameterError, match="A threshold needs two classes, but LogisticRegression has 3"):
        np_threshold(LogisticRegression().fit(X, np.arange(60) % 3), X)
    with pytest.raises(ParameterError, match="A threshold needs two classes, but LinearRegression has 0"):
        np_threshold(LinearRegression().fit(X, X[:, 0]), X)
    assert np_threshold(Perceptron().fit(X, X[:, 0] > 0), X).score == "decision_function"

    class Silent:
        classes_ = np.array([0, 1])

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X))

    with pytest.raises(ParameterError, match="Silent has neither decision_function nor predict_proba"):
        np_threshold(Silent(), X)


def test_a_threshold_takes_rows_with_their_classes() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(400, 2)), np.array(["a", "b"])[np.arange(400) % 2]
    X[y == "b"] += 1
    model = LogisticRegression().fit(X[:100], y[:100])
    expected = np_threshold(model, X[100:][y[100:] == "a"])
    assert np_threshold(model, X[100:], y[100:]).value == expected.value
    named = pd.DataFrame(X, columns=["p", "q"]).assign(y=y)
    by_name = LogisticRegression().fit(named[:100], "y")
    assert np_threshold(by_name, named[100:], "y").value == expected.value
    with pytest.raises(DataError, match="give the class of each row"):
        np_threshold(model, X[100:], y[101:])
    with pytest.raises(DataError, match="no rows of the first class"):
        np_threshold(model, X[:10], np.repeat("b", 10))
