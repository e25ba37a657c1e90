"""Naive Bayes and discriminant analysis as candidates of a training run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import summula
from summula.training.comparison.candidates import candidates_for


def table() -> pa.Table:
    """Two normal columns, a town and gaps; classes differ in all of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    X = rng.normal(size=(240, 2)) * (1 + y)[:, None] + 1.5 * y[:, None]
    town = np.where(rng.random(240) < 0.2 + 0.5 * y, "Bonn", "Ulm")
    gaps = pa.array(X[:, 1], mask=rng.random(240) < 0.1)
    return pa.table({"a": X[:, 0], "b": gaps, "town": town, "y": np.array(["no", "yes"])[y]})


@pytest.mark.parametrize("stream", [False, True])
def test_they_are_compared_and_beat_the_baseline(stream: bool) -> None:
    names = ["naive_bayes", "lda", "qda"]
    result = summula.train(table(), "y", models=names, time=3_600, progress=False, stream=stream)
    board = result.leaderboard
    assert sorted(board["model"]) == ["baseline", "lda", "naive_bayes", "qda"]
    assert list(board["model"])[-1] == "baseline"
    assert not any(board["note"])
    assert result.certificate.upper < result.baseline
    assert set(result.model.predict(table())) == {"no", "yes"}


def test_costs_decide() -> None:
    """A missed "yes" is so expensive that "no" is predicted only if it is almost certain."""
    dear = {"no": {"no": 0, "yes": 50}, "yes": {"no": 1, "yes": 0}}
    cheap, careful = (
        summula.train(table(), "y", models=["naive_bayes"], time=3_600, progress=False, costs=costs)
        for costs in (None, dear)
    )
    output = [np.mean(np.asarray(one.model.predict(table())) == "yes") for one in (cheap, careful)]
    assert output[1] > output[0] + 0.1


def test_many_pairs_of_columns_leave_discriminants_out() -> None:
    assert {"lda", "qda"} <= {one.name for one in candidates_for("classes", False, pairs=1_000)}
    assert not {"lda", "qda"} & {one.name for one in candidates_for("classes", False, pairs=2 * 4_000**2)}
    assert "qda" in {one.name for one in candidates_for("classes", False, ["qda"], pairs=2 * 4_000**2)}
