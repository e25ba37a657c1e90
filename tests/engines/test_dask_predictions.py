"""Dask: lazy predictions, and messages for bad collections."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.exceptions import NotFittedError

import summula
from summula import DataError
from summula.features import PolynomialLift
from summula.linear_model import LinearRegression, Ridge
from summula.preprocessing import StandardScaler
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes
from tests.engines.clusters import NAMES, D, N, frame_of, unknown, with_empty_partitions

# ----------------------------------------------------------------------------------------------------- lazy predictions


def test_predictions_are_put_off(data: Any) -> None:
    X, y, _ = data
    computed: list[int] = []

    def noted(block: Any) -> Any:
        computed.append(len(block))
        return block

    model = LinearRegression().fit(X, y)
    lazy = da.from_array(X, chunks=(700, 3)).map_blocks(noted, meta=X[:0])
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (lazy.chunks[0],)
    assert predicted.dtype == np.float64
    assert not computed
    expected = model.predict(X)
    model.fit(X, -y)  # earlier lazy predictions use the model at that time
    assert_close(expected, predicted.compute())
    assert computed


def test_several_targets_and_transformed_rows_have_their_width(data: Any) -> None:
    X, y, _ = data
    lazy = da.from_array(X, chunks=(700, D))
    assert_close(
        Ridge().fit(X, np.column_stack([y, -y])).predict(X),
        (predicted := Ridge().fit(X, np.column_stack([y, -y])).predict(lazy)).compute(),
    )
    assert predicted.shape == (N, 2)
    for transformer in (StandardScaler().fit(X), PolynomialLift().fit(X)):
        made = transformer.transform(lazy)
        assert made.shape == transformer.transform(X).shape
        assert made.chunks[0] == lazy.chunks[0]
        assert_same_bits(transformer.transform(X), made.compute())
    scaler = StandardScaler().fit(X)
    assert_same_bits(scaler.inverse_transform(X), scaler.inverse_transform(lazy).compute())
    assert StandardScaler().fit(X.astype(np.float32)).transform(lazy.astype(np.float32)).dtype == np.float32


def test_frames_are_predicted_by_the_names_of_their_columns(data: Any) -> None:
    whole = frame_of(*data)
    model = LinearRegression().fit(with_empty_partitions(whole, 0, 100, 100), "y", sample_weight="w")
    expected = model.predict(whole[NAMES])
    for frame in (whole, whole[NAMES]):  # target and weight are ignored
        predicted = model.predict(with_empty_partitions(frame, 700, 700, 2_000))
        assert isinstance(predicted, da.Array)
        assert_close(expected, predicted.compute())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(dd.from_pandas(whole[NAMES].rename(columns={NAMES[0]: "other"}), npartitions=2))
    with pytest.raises(ValueError, match="features"):
        LinearRegression().fit(data[0], data[1]).predict(da.ones((10, D + 1)))
    with pytest.raises(NotFittedError):
        LinearRegression().predict(da.ones((10, D)))


def test_a_missing_value_raises_when_a_prediction_is_computed(data: Any) -> None:
    X = data[0].copy()
    model = LinearRegression().fit(X, data[1])
    X[1_500, 1] = np.nan
    predicted = model.predict(da.from_array(X, chunks=(700, D)))
    with pytest.raises(DataError, match=r"Column 1 has 1 missing value .*row 100.*block 2"):
        predicted.compute()


def test_predictions_are_written_block_by_block(place: str, data: Any, tmp_path: Any) -> None:
    X, y, _ = data
    model, path = LinearRegression().fit(X, y), tmp_path / "predicted.parquet"
    assert model.predict_to(unknown(da.from_array(X, chunks=(700, D))), path) == N
    assert_close(model.predict(X), pd.read_parquet(path)["prediction"].to_numpy())


# ------------------------------------------------------------------------------------------------------- bad collections


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: (da.from_array(X[:, 0], chunks=700), y), "X is a Dask Array; .* two-dimensional"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y[:-1]), f"X has {N} rows and y has {N - 1}"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), da.from_array(y[1:], chunks=70)), f"y has {N - 1}"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), None), "requires y to be passed"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), "y"), "is a column name"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, "w"), "is a column name"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, da.ones(7, chunks=2)), "one weight per row"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, da.ones((N, 2), chunks=700)), "must be 1D"),
        (lambda X, y: (da.from_array(X, chunks=(700, D)), y, da.from_array(np.arange(N) - 4.0, chunks=700)), "-4 at row 0"),
        (lambda X, y: (da.from_array(X + 0j, chunks=(700, D)), y), "Complex"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame(X).iloc[:0], npartitions=1), y[:0]), "no rows"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=2), "colum 1"), "did you mean 'column 1'"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame({"a": ["x"] * N, "b": y}), npartitions=2), "b"), "'a' is constant"),
        (lambda X, y: (dd.from_pandas(pd.DataFrame({"a": pd.date_range("2000", periods=N)}), npartitions=2), y), "dates"),
        (lambda X, y: (dask.delayed(X), y), "X is a Dask DelayedLeaf; .* two-dimensional"),
    ],
)  # fmt: skip
def test_bad_collections_get_one_clear_sentence(make: Any, message: str, data: Any) -> None:
    model = LinearRegression()
    with pytest.raises(DataError, match=message):
        model.fit(*make(*data[:2]))
    assert not fitted_attributes(model)


def test_names_of_features_are_checked_like_those_of_frames(data: Any) -> None:
    frame = pd.DataFrame(data[0], columns=NAMES)
    model = StandardScaler().partial_fit(dd.from_pandas(frame, npartitions=2))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(dd.from_pandas(frame.rename(columns=str.upper), npartitions=2))
    model.partial_fit(dd.from_pandas(frame, npartitions=3))
    assert model.n_samples_seen_ == 2 * N


def test_text_in_a_block_is_named_with_its_row(client: Client, data: Any) -> None:
    cells = np.array(data[0], dtype=object)
    cells[1_234, 1] = "many"
    with (
        summula.engine(client, chunk_rows=300),
        pytest.raises(DataError, match="rows 900 to .*Column 1 contains 'many' at row 334.*from row 900"),
    ):
        LinearRegression().fit(da.from_array(cells, chunks=(700, D)), data[1])
