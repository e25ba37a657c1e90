"""Trees, forests and support vector machines as candidates of a training run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.metrics import log_loss

import summula
from summula.core.errors import ParameterError, TimeLimitError
from summula.linear_model import LogisticRegression
from summula.training.models import AveragedClassifier, CalibratedSVC, ScaledSVR

NAMES = ["tree", "forest", "svm"]


def table(kind: str, n: int = 240) -> pa.Table:
    """A ring in two columns, a town and gaps, which linear models cannot separate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    town = np.where(rng.random(n) < 0.5, "Bonn", "Ulm")
    radius = (X**2).sum(axis=1) + (town == "Ulm")
    gaps = pa.array(X[:, 1], mask=rng.random(n) < 0.05)
    y: Any = np.where(radius > 2, "out", "in") if kind == "classes" else radius
    return pa.table({"a": X[:, 0], "b": gaps, "town": town, "y": y})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_they_are_compared_saved_and_reported(kind: str, stream: bool, tmp_path: Path) -> None:
    data = table(kind)
    result = summula.train(data, "y", models=NAMES, time=3_600, progress=False, stream=stream)
    board = result.leaderboard
    assert sorted(board["model"]) == ["baseline", "forest", "svm", "tree"]
    assert list(board["model"])[-1] == "baseline"
    assert not any(board["note"])
    assert result.certificate.estimate < 0.6 * result.baseline
    result.save(tmp_path)
    again = summula.load(tmp_path / "model.summula")
    np.testing.assert_array_equal(again.predict(data), result.model.predict(data))
    assert "Permutation importance" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_costs_and_class_weights_move_their_decisions(name: str) -> None:
    data = table("classes")

    def share(**options: Any) -> float:
        result = summula.train(data, "y", models=[name], time=3_600, progress=False, **options)
        return float(np.mean(np.asarray(result.model.predict(data)) == "in"))

    assert share(class_weight={"in": 20.0, "out": 1.0}) > share()


@pytest.mark.parametrize("name", NAMES)
def test_a_threshold_is_chosen_for_f1(name: str) -> None:
    result = summula.train(table("classes"), "y", models=[name], metric="f1", time=3_600, progress=False)
    assert result.model.threshold is not None
    p = result.model.predict_proba(table("classes"))[:, 1]
    expected = np.where(p >= result.model.threshold, "out", "in")
    np.testing.assert_array_equal(result.model.predict(table("classes")), expected)


# ------------------------------------------------------------------------------------------------------------ machines


def blobs(n_classes: int, n: int = 300, apart: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + apart * np.eye(n_classes, 3)[y], y


@pytest.mark.parametrize("max_exact", [4_000, 50])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_machines_are_calibrated(n_classes: int, max_exact: int) -> None:
    """Of normal classes with equal covariances the true probabilities are known: softmax of the log-densities."""
    X, y = blobs(n_classes)
    more, labels = blobs(n_classes, 20_000)
    model = CalibratedSVC(max_exact=max_exact, n_components=40).fit(X, np.array(["a", "b", "c"])[y])
    p = model.predict_proba(more)
    assert (model.map_ is None) == (max_exact > len(y))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    centres = np.eye(n_classes, 3)
    scores = more @ centres.T - 0.5 * (centres**2).sum(axis=1)
    true = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    # (300 rows cost some of it; the frequencies of the classes alone have log(n_classes).)
    assert log_loss(labels, p) < log_loss(labels, true) + 0.1 < np.log(n_classes) - 0.05
    np.testing.assert_array_equal(model.predict(more), model.classes_[p.argmax(axis=1)])


def test_weights_of_classes_move_the_probabilities_of_machines() -> None:
    """Weight w of the second class multiplies its odds by w where the model is right."""
    X, y = blobs(2, 2_000)
    plain, heavy = (CalibratedSVC(class_weight=weight).fit(X, y) for weight in (None, {0: 1.0, 1: 9.0}))
    odds = [np.log(p[:, 1] / p[:, 0]) for p in (plain.predict_proba(X), heavy.predict_proba(X))]
    assert abs(float(np.median(odds[1] - odds[0])) - np.log(9.0)) < 0.5


def test_a_class_of_one_row_does_not_stop_a_machine() -> None:
    X, y = blobs(2)
    y = np.append(y, 2)
    model = CalibratedSVC().fit(np.vstack([X, [[9.0, 9.0, 9.0]]]), y)
    assert model.predict_proba(X).shape == (300, 3)


@pytest.mark.parametrize("max_exact", [4_000, 50])
def test_machines_of_numbers_do_not_depend_on_units(max_exact: int) -> None:
    X, _ = blobs(2)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    one, other = (ScaledSVR(max_exact=max_exact, n_components=60).fit(X, target) for target in (y, 1e6 * y - 3e5))
    np.testing.assert_allclose(other.predict(X), 1e6 * one.predict(X) - 3e5, rtol=1e-6, atol=1e2)
    assert np.abs(one.predict(X) - y).mean() < 0.5 * np.abs(y - y.mean()).mean()


def test_machines_out_of_time_warn() -> None:
    X, y = blobs(2)
    for model in (CalibratedSVC(max_time=0.0), ScaledSVR(max_time=0.0)):
        with pytest.raises(TimeLimitError, match="max_time"):
            model.fit(X, y)
        assert not hasattr(model, "machine_")


@pytest.mark.parametrize("values", [(), (0.0,), "1", (1.0, np.inf)])
def test_machines_refuse_values_of_c(values: Any) -> None:
    X, y = blobs(2)
    with pytest.raises(ParameterError, match="tuple of positive numbers"):
        CalibratedSVC(Cs=values).fit(X, y)


def test_sparse_rows_are_refused() -> None:
    """They became an array of one object."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    machine = CalibratedSVC(Cs=(1.0,)).fit(X, y)
    average = AveragedClassifier([LogisticRegression()], [1.0], [0], [2]).fit(X, y)
    for model in (machine, average):
        with pytest.raises(TypeError, match="Sparse data was passed for X"):
            model.predict_proba(sparse.csr_array(X))
