"""Held-out rows are encoded once per encoding, for all results computed from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import summula
from summula.preprocessing import TableEncoder
from summula.preprocessing.table_encoder_blocks import BLOCK_ROWS
from summula.training.data.encoded_holdout import EncodedHoldout, OnEncodedRows


def table(classes: bool) -> pa.Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    y = X[:, 0] - X[:, 1]
    named = {f"x{j}": X[:, j] for j in range(60)}
    return pa.table(
        {**named, "word": rng.choice(["a", "b", "c"], 40), "y": np.where(y > 0, "yes", "no") if classes else y}
    )


@pytest.mark.parametrize("classes", [True, False])
def test_each_encoding_of_the_held_out_rows_is_computed_once(classes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: Counter[tuple[str, int]] = Counter()
    then = TableEncoder.then

    def counted(encoder: TableEncoder, X: Any, work: Any) -> Any:
        encoded[encoder.categories, X.num_rows] += 1
        return then(encoder, X, work)

    monkeypatch.setattr(TableEncoder, "then", counted)
    models = ["logistic", "tree"] if classes else ["ridge", "tree"]
    result = summula.train(table(classes), "y", models=models, time=600)
    result._page()
    n = result.certificate.n
    assert {count for (_, rows), count in encoded.items() if rows == n} == {1}


@pytest.mark.parametrize("classes", [True, False])
def test_the_certificate_is_that_of_the_model_on_the_table(classes: bool) -> None:
    result = summula.train(table(classes), "y", models=["logistic" if classes else "ridge"], time=600)
    X, y = result._holdout.X, result._holdout.y
    predicted = OnEncodedRows(result.model, result.model.encoder.transform(X)).predict(X)
    np.testing.assert_array_equal(predicted, result.model.predict(X))
    losses = predicted != y if classes else np.abs(predicted - y)
    assert result.certificate.estimate == pytest.approx(float(np.mean(losses)), rel=1e-12)


def test_rows_of_several_blocks_are_left_to_the_model() -> None:
    y = np.zeros(BLOCK_ROWS + 1)
    model: Any = object()
    assert EncodedHoldout({}, None, y, len(y)).predictor(model, True) is model
    assert EncodedHoldout({}, None, y[:10], 11).predictor(model, True) is model
