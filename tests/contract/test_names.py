"""Promises 1 and 6: columns have names. Target and weight may be given by name; at predict the names are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import Case, Data, over_frames

Constructor = Callable[[dict[str, Any]], Any]


def table(data: Data, *, target: bool = True, weight: bool = False) -> dict[str, Any]:
    """Features, with the target in front of them and the weight behind."""
    columns: dict[str, Any] = {}
    if target and data.y is not None:
        columns |= {"target": data.y} if data.y.ndim == 1 else {"target 0": data.y[:, 0], "target 1": data.y[:, 1]}
    columns |= storage.columns(data.X)
    return columns | ({"weight": data.weight} if weight else {})


def target_names(data: Data) -> Any:
    return "target" if data.y.ndim == 1 else ["target 0", "target 1"]


@over_frames("supervised")
def test_several_targets_may_be_named_in_a_tuple(case: Case, constructor: Constructor) -> None:
    data = case.data()
    frame = constructor(table(data))
    names = target_names(data)
    names = (names,) if isinstance(names, str) else tuple(names)
    model = case.fit(frame, names)
    assert model.feature_names_in_.tolist() == storage.names(data.X.shape[1])
    expected = case.output(case.model(), data.X)
    assert_close(expected.ravel(), case.output(model, frame).ravel())


@over_frames("supervised")
def test_the_target_may_be_named(case: Case, constructor: Constructor) -> None:
    data = case.data()
    model = case.fit(constructor(table(data)), target_names(data))
    assert model.feature_names_in_.tolist() == storage.names(data.X.shape[1])
    assert_same_bits(
        fitted_attributes(case.fit(constructor(storage.columns(data.X)), data.y)), fitted_attributes(model)
    )


@over_frames("weighted")
def test_the_weight_may_be_named(case: Case, constructor: Constructor) -> None:
    data = case.data()
    frame = constructor(table(data, target=False, weight=True))
    model = case.fit(frame, data.y, "weight")
    assert model.feature_names_in_.tolist() == storage.names(data.X.shape[1])
    expected = case.model(weighted=True)
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))


@over_frames("supervised", "weighted")
def test_target_and_weight_may_both_be_named(case: Case, constructor: Constructor) -> None:
    data = case.data()
    model = case.fit(constructor(table(data, weight=True)), target_names(data), "weight")
    expected = case.model(weighted=True)
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))


@over_frames("supervised", "weighted")
def test_predict_passes_over_target_and_weight(case: Case, constructor: Constructor) -> None:
    data = case.data()
    whole = constructor(table(data, weight=True))
    model = case.fit(whole, target_names(data), "weight")
    expected = model.predict(constructor(storage.columns(data.X)))
    assert_same_bits(expected, model.predict(whole))
    assert_same_bits(expected, model.predict(constructor(table(data))))


@over_frames("weighted", "transformer")
def test_transform_passes_over_the_weight(case: Case, constructor: Constructor) -> None:
    data = case.data()
    whole = constructor(table(data, weight=True))
    model = case.fit(whole, None, "weight")
    assert_same_bits(model.transform(constructor(storage.columns(data.X))), model.transform(whole))


@over_frames("supervised")
def test_a_column_named_like_the_old_target_is_a_feature_again_after_a_refit(
    case: Case, constructor: Constructor
) -> None:
    data = case.data()
    model = case.fit(constructor(table(data)), target_names(data))
    features = storage.columns(data.X)
    features = {"target" if name == "column 3" else name: column for name, column in features.items()}
    model.fit(constructor(features), data.y)
    assert "target" in model.feature_names_in_
    assert model.predict(constructor(features)).shape == data.y.shape


@over_frames()
def test_columns_in_another_order_are_refused(case: Case, constructor: Constructor) -> None:
    data = case.data()
    columns = storage.columns(data.X)
    model = case.fit(constructor(columns), data.y)
    other = constructor(dict(reversed(columns.items())))
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        case.output(model, other)


@over_frames()
def test_an_unseen_column_is_named(case: Case, constructor: Constructor) -> None:
    data = case.data()
    columns = storage.columns(data.X)
    model = case.fit(constructor(columns), data.y)
    with pytest.raises(ValueError, match="unseen at fit time:\n- surplus"):
        case.output(model, constructor(columns | {"surplus": data.X[:, 0]}))


@over_frames()
def test_a_missing_column_is_named(case: Case, constructor: Constructor) -> None:
    data = case.data()
    columns = storage.columns(data.X)
    model = case.fit(constructor(columns), data.y)
    del columns["column 1"]
    with pytest.raises(ValueError, match="seen at fit time, yet now missing:\n- column 1"):
        case.output(model, constructor(columns))


@over_frames()
def test_a_frame_for_a_model_of_an_array_is_read_with_a_warning(case: Case, constructor: Constructor) -> None:
    data = case.data()
    model = case.model()
    with pytest.warns(UserWarning, match="X has feature names, but"):
        out = case.output(model, constructor(storage.columns(data.X)))
    assert_close(case.output(model, data.X), np.asarray(out))


@over_frames()
def test_a_frame_of_another_library_is_read_alike(case: Case, constructor: Constructor) -> None:
    data = case.data()
    model = case.fit(constructor(storage.columns(data.X)), data.y)
    for keep in ("pandas", "polars", "pyarrow"):
        assert_close(case.output(case.model(), data.X), np.asarray(case.output(model, storage.FRAMES[keep](data.X))))
