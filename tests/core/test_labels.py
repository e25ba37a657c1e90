"""Class labels of every type are encoded, and every error is one sentence that names the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression as Theirs

import summula
from summula.core.data.labels import Labels, distinct, merged
from summula.core.errors import DataError
from summula.linear_model import LogisticRegression
from tests.faults.sentences import one_sentence, refused

rng = np.random.default_rng(11)
N = 60
X = rng.normal(size=(N, 2))
CODES = (X[:, 0] + rng.normal(size=N) > 0).astype(int) + (X[:, 1] > 1.0)
TABLE = {"a": X[:, 0], "b": X[:, 1]}

KINDS = {
    "str": np.array(["ant", "bee", "cat"])[CODES],
    "object": np.array(["ant", "bee", "cat"], dtype=object)[CODES],
    "bool": CODES > 0,
    "int64": np.array([-3, 5, 70])[CODES],
    "uint8": CODES.astype(np.uint8),
    "whole floats": np.array([-1.0, 0.0, 2.0])[CODES],
    "float32": CODES.astype(np.float32),
    "list of text": np.array(["ant", "bee", "cat"])[CODES].tolist(),
    "tuple of ints": tuple((CODES * 2).tolist()),
    "pandas series": pd.Series(np.array(["ant", "bee", "cat"])[CODES], index=np.arange(N)[::-1]),
    "pandas categorical": pd.Series(np.array(["ant", "bee", "cat"])[CODES], dtype="category"),
    "polars series": pl.Series(np.array(["ant", "bee", "cat"])[CODES].tolist()),
    "polars booleans": pl.Series((CODES > 0).tolist()),
}


@pytest.mark.parametrize("y", KINDS.values(), ids=KINDS.keys())
def test_labels_of_every_kind_are_those_of_scikit_learn(y: Any) -> None:
    ours, theirs = LogisticRegression(tol=1e-8).fit(X, y), Theirs(tol=1e-10).fit(X, np.asarray(y))
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.predict(X).dtype == ours.classes_.dtype


@pytest.mark.parametrize("name", ["str", "object", "bool", "int64", "uint8", "whole floats", "float32"])
def test_the_type_of_arrays_is_kept(name: str) -> None:
    assert LogisticRegression().fit(X, KINDS[name]).classes_.dtype == KINDS[name].dtype


def test_objects_may_be_numbers() -> None:
    """scikit-learn rejects them."""
    y = np.array([3, 1, 2], dtype=object)[CODES]
    model = LogisticRegression().fit(X, y)
    assert model.classes_.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(model.coef_, LogisticRegression().fit(X, y.astype(int)).coef_)


def test_a_column_is_taken_with_scikit_learns_warning() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = LogisticRegression().fit(X, KINDS["str"][:, None])
    np.testing.assert_array_equal(model.coef_, LogisticRegression().fit(X, KINDS["str"]).coef_)


def with_value(values: Any, value: Any, row: int = 4) -> Any:
    values = np.array(values, dtype=object if isinstance(value, str) or value is None else None)
    values[row] = value
    return values


@pytest.mark.parametrize(("y", "words"), [
    (with_value(KINDS["object"], None), ["None at row 4", "none missing"]),
    (with_value(KINDS["object"], np.nan), ["nan at row 4", "one kind"]),
    (with_value(KINDS["object"], 3), ["3 at row 4", "one kind"]),
    (with_value(CODES.astype(float), np.nan), ["nan at row 4", "drop rows"]),
    (with_value(CODES.astype(float), np.inf), ["inf at row 4"]),
    (with_value(CODES.astype(float), 0.5), ["Unknown label type: continuous", "0.5 at row 4", "regressor"]),
    (np.full(N, "ant"), ["at least 2 classes", "'ant'"]),
    (np.full(N, 1), ["at least 2 classes", "1"]),
    (None, ["requires y", "None"]),
    (CODES.astype("datetime64[D]"), ["Unknown label type"]),
], ids=["None", "NaN in text", "number in text", "NaN", "infinite", "fraction", "one word", "one number", "nothing",
        "dates"])  # fmt: skip
def test_what_is_no_label_is_named(y: Any, words: list[str]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is checked below
        LogisticRegression().fit(X, y)
    for word in words:
        assert word in str(caught.value)


def test_several_columns_are_no_label() -> None:
    with pytest.raises(ValueError, match="y should be a 1d array"):
        LogisticRegression().fit(X, np.column_stack([CODES, CODES]))


def test_another_length() -> None:
    refused("X has 60 rows and y has 59", by=LogisticRegression(), X=X, y=CODES[:-1])


# --------------------------------------------------------------------------------------------------------------- codes


def test_codes_are_places_among_the_sorted_classes() -> None:
    labels = Labels("the model")
    np.testing.assert_array_equal(labels.codes(np.array(["b", "c", "a", "b"])), [1, 2, 0, 1])
    assert labels.classes is not None
    assert labels.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(labels.codes(["c", "a"]), [2, 0])
    np.testing.assert_array_equal(labels.codes(np.array(["c", "a"], dtype=object)), [2, 0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("classes", [[3, 4, 5], [1, 7, 100], [0, 50_000]])
def test_codes_of_integers_of_known_classes(classes: list[int], dtype: Any) -> None:
    """Close ones are looked up in a table, others are searched for."""
    if classes[-1] > np.iinfo(dtype).max:
        classes = [min(value, np.iinfo(dtype).max) for value in classes]
    codes = np.random.default_rng(0).integers(0, len(classes), 500)
    labels = Labels("the model", np.array(classes))
    np.testing.assert_array_equal(labels.codes(np.array(classes, dtype)[codes]), codes)
    np.testing.assert_array_equal(distinct(np.array(classes, dtype)[codes], 0, "the model"), classes)


@pytest.mark.parametrize(("classes", "value"), [
    (np.array([1, 3]), np.int64(2)), (np.array([1, 3]), np.int64(9)), (np.array([1, 3]), np.int64(-1)),
])  # fmt: skip
def test_an_unknown_integer_is_refused_or_has_a_code_of_its_own(classes: Any, value: Any) -> None:
    values = np.array([1, 3, value])
    with pytest.raises(summula.DataError, match=r"row 102.*2 classes"):
        Labels("the model", classes).codes(values, start=100)
    np.testing.assert_array_equal(Labels("the model", classes, unknown=-1).codes(values), [0, 1, -1])


@pytest.mark.parametrize(("classes", "value"), [
    (np.array(["a", "c"]), "b"), (np.array(["a", "c"], dtype=object), "z"), (np.array([1, 3]), 2), (np.array([1, 3]), 9),
    (np.array([False, True]), 7), (np.array([1.0, 2.0]), -5.0), (np.array([1, 2]), "a"),
    (np.array(["a", "b"], dtype=object), 3),
])  # fmt: skip
def test_an_unknown_class_is_refused_or_has_a_code_of_its_own(classes: Any, value: Any) -> None:
    values = np.array([classes[0], classes[1], value], dtype=object)
    with pytest.raises(summula.DataError) as caught:
        Labels("the model", classes).codes(values, start=100)
    one_sentence(caught.value, repr(value), "row 102", "2 classes")
    np.testing.assert_array_equal(Labels("the model", classes, unknown=-1.0).codes(values), [0, 1, -1])


def test_an_unknown_class_refutes_a_certificate() -> None:
    y = KINDS["str"]
    certificate = LogisticRegression().fit(X, y).certificate_
    assert certificate.verify(X, y)
    with pytest.raises(summula.DataError, match="'dog' at row 4, which is not one of the 3 classes"):
        certificate.verify(X, with_value(y, "dog"))


def test_classes_of_two_sets_of_rows_merge() -> None:
    np.testing.assert_array_equal(merged(np.array([1, 5]), np.array([5, 2])), [1, 2, 5])
    words = merged(np.array(["b"], dtype=object), np.array(["a", "b"], dtype=object))
    assert words.tolist() == ["a", "b"]
    assert words.dtype == object
    with pytest.raises(summula.DataError, match="too many for class labels"):
        merged(np.arange(6_000), np.arange(5_000, 12_000))


def test_rows_are_counted_from_the_start_of_the_data() -> None:
    with pytest.raises(summula.DataError, match="row 1002"):
        distinct(np.array([1.0, 2.0, np.nan]), 1_000, "the model")


# ----------------------------------------------------------------------------------------------- files and collections

STORED = {name: KINDS[name] for name in ("str", "bool", "int64", "whole floats")}
stored = pytest.mark.parametrize("name", STORED)


def check_same_model(expected: Any, model: Any, *, kind: bool = True) -> None:
    assert model.classes_.tolist() == expected.classes_.tolist()
    if kind:
        assert model.classes_.dtype.kind == expected.classes_.dtype.kind
    np.testing.assert_array_equal(model.coef_, expected.coef_)


@stored
def test_a_target_column_of_parquet(name: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table({**TABLE, "y": STORED[name]}), tmp_path / "rows.parquet", row_group_size=7)
    model = LogisticRegression().fit(summula.scan(tmp_path / "rows.parquet"), "y")
    expected = LogisticRegression().fit(X, STORED[name] if name != "str" else STORED[name].astype(object))
    check_same_model(expected, model, kind=name != "bool")


@pytest.mark.parametrize("name", ["str", "int64"])
def test_a_target_column_of_csv(name: str, tmp_path: Path) -> None:
    csv.write_csv(pa.table({**TABLE, "y": STORED[name]}), tmp_path / "rows.csv")
    model = LogisticRegression().fit(summula.scan(tmp_path / "rows.csv"), "y")
    check_same_model(LogisticRegression().fit(X, STORED[name] if name != "str" else STORED[name].astype(object)), model)


def test_a_dictionary_column_of_parquet(tmp_path: Path) -> None:
    table = pa.table({**TABLE, "y": pa.array(STORED["str"]).dictionary_encode()})
    parquet.write_table(table, tmp_path / "rows.parquet")
    model = LogisticRegression().fit(summula.scan(tmp_path / "rows.parquet"), "y")
    check_same_model(LogisticRegression().fit(X, STORED["str"].astype(object)), model)


@stored
def test_a_target_column_of_a_frame(name: str, constructor: Any) -> None:
    model = LogisticRegression().fit(constructor({**TABLE, "y": STORED[name]}), "y")
    check_same_model(LogisticRegression().fit(X, STORED[name]), model, kind=name != "str")


@stored
def test_labels_of_dask_collections(name: str) -> None:
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    expected = LogisticRegression().fit(X, STORED[name])
    frame = dd.from_pandas(pd.DataFrame({**TABLE, "y": STORED[name]}), npartitions=4)
    check_same_model(expected, LogisticRegression().fit(frame, "y"), kind=name != "str")
    lazy = da.from_array(X, chunks=(17, 2))
    check_same_model(expected, LogisticRegression().fit(lazy, da.from_array(STORED[name], chunks=23)))
    check_same_model(expected, LogisticRegression().fit(lazy, STORED[name]))


def test_a_missing_label_of_a_file_is_named(tmp_path: Path) -> None:
    bad = [None if row == 33 else label for row, label in enumerate(STORED["str"].tolist())]
    parquet.write_table(pa.table({**TABLE, "y": bad}), tmp_path / "rows.parquet", row_group_size=7)
    refused("None at row 33", by=LogisticRegression(), X=summula.scan(tmp_path / "rows.parquet"), y="y")
    parquet.write_table(pa.table({**TABLE, "y": X[:, 0]}), tmp_path / "numbers.parquet")
    refused("Unknown label type: continuous", "row 0", by=LogisticRegression(),
            X=summula.scan(tmp_path / "numbers.parquet"), y="y")  # fmt: skip


def test_a_class_that_occurs_only_in_the_last_rows_is_found(tmp_path: Path) -> None:
    late = np.sort(STORED["int64"])
    parquet.write_table(pa.table({**TABLE, "y": late}), tmp_path / "rows.parquet", row_group_size=7)
    model = LogisticRegression().fit(summula.scan(tmp_path / "rows.parquet"), "y")
    assert model.classes_.tolist() == [-3, 5, 70]
    check_same_model(LogisticRegression().fit(X, late), model)


@pytest.mark.parametrize("as_table", [False, True])
def test_missing_labels_of_a_dictionary_column_are_refused(as_table: bool) -> None:
    """pyarrow converts them to another label."""
    X = np.arange(6.0)[:, None]
    y = pa.chunked_array([pa.array(["x", "y", "x", None, "y", "x"]).dictionary_encode()])
    data = (pa.table({"a": X[:, 0], "y": y}), "y") if as_table else (X, y)
    with pytest.raises(DataError, match="contains None at row 3 among text"):
        LogisticRegression().fit(*data)
