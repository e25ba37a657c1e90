"""Dates, durations, complex numbers and other types: numbers are read as numbers, and errors for the rest give working advice."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import summula
from summula.ensemble import HistGradientBoostingRegressor
from summula.linear_model import GeneralizedLinearRegressor, LinearRegression, LogisticRegression, Ridge
from summula.preprocessing import StandardScaler, TableEncoder
from tests.faults.sentences import one_sentence, refused

Constructor = Callable[[dict[str, Any]], Any]

N = 20
x, y = np.random.default_rng(0).normal(size=(2, N))
DAYS = np.datetime64("2020-01-01") + np.arange(N)
MISSING_DAY = np.where(np.arange(N) == 3, np.datetime64("NaT"), DAYS)
HOURS = np.arange(1, N + 1).astype("m8[h]")
COMPLEX = x + 1j
SILENT = {
    "days": (DAYS, "date"),
    "nanoseconds": (DAYS.astype("M8[ns]"), "date"),
    "NaT": (MISSING_DAY, "date"),
    "durations": (HOURS, "duration"),
    "complex": (COMPLEX, "Complex data not supported"),
    "complex64": (COMPLEX.astype(np.complex64), "Complex data not supported"),
}
silent = pytest.mark.parametrize(("values", "words"), SILENT.values(), ids=SILENT.keys())


def objects(values: Any) -> Any:
    made = np.empty(len(values), object)
    made[:] = list(values)
    return made


# ----------------------------------------------------------------------- what NumPy converts without an error is refused


@silent
def test_in_arrays_and_lists(values: Any, words: str) -> None:
    for kind in (lambda v: v[:, None], lambda v: [[one] for one in v], lambda v: objects(v)[:, None]):
        refused(words, by=LinearRegression(), X=kind(values), y=y)
        refused(words, by=StandardScaler(), X=kind(values))
    for kind in (np.asarray, list, objects):
        refused("The target y", words, by=LinearRegression(), X=x[:, None], y=kind(values))
        refused("sample_weight", words, by=LinearRegression(), X=x[:, None], y=y, sample_weight=kind(values))
        refused("offset", words, by=GeneralizedLinearRegressor(), X=x[:, None], y=y, offset=kind(values))


@silent
def test_in_columns_of_pandas(values: Any, words: str) -> None:
    frame = pd.DataFrame({"when": values, "x": x})
    for estimator in (
        LinearRegression(),
        GeneralizedLinearRegressor(),
        HistGradientBoostingRegressor(),
        StandardScaler(),
    ):
        refused("Column 'when'", words, by=estimator, X=frame, y=y)
    refused("Column 'when'", words, by=LinearRegression(), X=frame, y="when")
    refused("Column 'when'", words, by=LinearRegression(), X=frame, y=y, sample_weight="when")
    refused("The target y", words, by=LinearRegression(), X=x[:, None], y=frame["when"])
    refused("sample_weight", words, by=LinearRegression(), X=x[:, None], y=y, sample_weight=frame["when"])


@silent
def test_at_predict(values: Any, words: str) -> None:
    model = LinearRegression().fit(x[:, None], y)
    with pytest.raises(summula.DataError) as caught:
        model.predict(values[:, None])
    one_sentence(caught.value, words)


@silent
def test_in_dask_arrays(values: Any, words: str) -> None:
    plain = da.from_array(x[:, None], chunks=(7, 1))
    refused(words, by=LinearRegression(), X=da.from_array(values[:, None], chunks=(7, 1)), y=y)
    refused(words, by=LinearRegression(), X=plain, y=da.from_array(values, chunks=7))
    refused(words, by=LinearRegression(), X=plain, y=y, sample_weight=da.from_array(values, chunks=7))


def test_complex_numbers_in_sparse_matrices_and_sparse_columns() -> None:
    refused("Complex data", by=LinearRegression(), X=sparse.csr_array(COMPLEX[:, None]), y=y)
    column, zeros = pd.arrays.SparseArray(COMPLEX), pd.arrays.SparseArray(COMPLEX, fill_value=0)
    refused("Complex data", by=LinearRegression(), X=pd.DataFrame({"a": column}), y=y)
    refused("Complex data", by=LinearRegression(), X=pd.DataFrame({"a": column, "x": x}), y=y)
    refused("Complex data", by=LinearRegression(), X=pd.DataFrame({"a": zeros}), y=y)


def test_sparse_columns_of_another_fill_value_are_read() -> None:
    column = pd.arrays.SparseArray([1.0] * 10 + list(range(10)), fill_value=1.0)
    model = LinearRegression().fit(pd.DataFrame({"a": column}), y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(np.asarray(column)[:, None], y).coef_)


def test_records_raise_with_advice() -> None:
    records = np.zeros(N, dtype=[("a", float), ("b", float)])
    message = refused("contains records", by=LinearRegression(), X=records[:, None], y=y)
    assert message.endswith("with numpy.lib.recfunctions.structured_to_unstructured(X).")
    refused("The target y contains records", by=LinearRegression(), X=x[:, None], y=records)


def test_objects_are_named_with_their_place() -> None:
    rows = objects(x)[:, None]
    for value, words in (
        (datetime.date(2020, 1, 1), "datetime.date(2020, 1, 1) at row 5, a date"),
        (np.datetime64("NaT", "D"), "np.datetime64('NaT','D') at row 5, a date"),
        (pd.NaT, "NaT at row 5, a date"),
        (np.timedelta64(3, "h"), "np.timedelta64(3,'h') at row 5, a duration"),
        (datetime.timedelta(1), "datetime.timedelta(days=1) at row 5, a duration"),
        (1j, "1j at row 5, a complex number"),
        (np.complex128(1j), "np.complex128(1j) at row 5, a complex number"),
        ([1, 2], "[1, 2] at row 5"),
    ):
        bad = rows.copy()
        bad[5, 0] = value
        refused(f"Column 0 contains {words}", by=LinearRegression(), X=bad, y=y)
        refused(f"The target y contains {words}", by=LinearRegression(), X=x[:, None], y=bad[:, 0])
        refused(f"sample_weight contains {words}", by=LinearRegression(), X=x[:, None], y=y, sample_weight=bad[:, 0])


# --------------------------------------------------------------------------------------------------- advice that works as typed


def cured(error: str, **names: Any) -> Any:
    """Return the values from the conversion suggested in an error message."""
    code = re.search(r" with (.*)\.$", error)
    assert code is not None, error
    return eval(code.group(1), {"np": np, "datetime": datetime, **names})


TIMES = {
    "dates": DAYS.astype("M8[us]"),
    "missing dates": MISSING_DAY.astype("M8[us]"),
    "durations": HOURS.astype("m8[us]"),
}


@pytest.mark.parametrize("values", TIMES.values(), ids=TIMES.keys())
def test_the_conversion_in_the_message_works_when_typed(values: Any, constructor: Constructor) -> None:
    expected = np.where(np.isnat(values), np.nan, (values - values[0]) / np.timedelta64(1, "h"))
    expected = expected / 24 if values.dtype.kind == "M" else expected
    given = values.tolist()  # None where one is missing
    frame = constructor({"when": given, "x": x.tolist()})
    series = frame["when"]
    messages = [
        (refused(by=LinearRegression(), X=frame, y=y), {"X": frame}),
        (refused(by=LinearRegression(), X=frame, y="when"), {"X": frame}),
        (refused(by=LinearRegression(), X=x[:, None], y=series), {"y": series}),
        (refused(by=LinearRegression(), X=x[:, None], y=values), {"y": values}),
        (refused(by=LinearRegression(), X=values[:, None], y=y), {"X": values[:, None]}),
        (refused(by=LinearRegression(), X=x[:, None], y=y, sample_weight=series), {"sample_weight": series}),
    ]
    for message, names in messages:
        numbers = np.ravel(np.asarray(cured(message, **names), float))
        np.testing.assert_allclose(numbers - numbers[0], expected)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Zurich"])
def test_dates_of_a_time_zone(zone: str) -> None:
    frame = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=N, tz=zone), "x": x})
    days = cured(refused(by=LinearRegression(), X=frame, y=y), X=frame)
    np.testing.assert_allclose(days - days[0], np.arange(N))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime.date(2020, 1, 2), 737426),
        (np.datetime64("2000-01-03"), 2),
        (datetime.timedelta(minutes=90), 1.5),
        (np.timedelta64(90, "m"), 1.5),
    ],
    ids=str,
)
def test_the_conversion_of_one_object_works_when_typed(value: Any, expected: float) -> None:
    message = refused(by=LinearRegression(), X=[[0.0], [value]], y=[0.0, 1.0])
    assert cured(message, value=value) == expected


def test_parts_of_complex_numbers_work_when_typed() -> None:
    frame = pd.DataFrame({"a": COMPLEX, "x": x})
    for X, code in ((COMPLEX[:, None], "X"), (frame, "X['a'].to_numpy()")):
        message = refused(by=LinearRegression(), X=X, y=y)
        assert message.endswith(f"pass the parts {code}.real and {code}.imag instead.")
        np.testing.assert_array_equal(np.ravel(eval(f"{code}.imag", {"X": X})), np.ones(N))


# ------------------------------------------------------------------------------------------------------- types of frames

INTEGERS = list(range(N))
NUMBERS: dict[str, Any] = {
    "Int128": pl.Series(INTEGERS, dtype=pl.Int128),
    "UInt128": pl.Series(INTEGERS, dtype=pl.UInt128),
    "Decimal": pl.Series([decimal.Decimal(i) for i in INTEGERS]),
    "Float16": pl.Series(INTEGERS, dtype=pl.Float16),
    "polars objects": pl.Series(INTEGERS, dtype=pl.Object),
    "decimal32": pa.array([decimal.Decimal(i) for i in INTEGERS], pa.decimal32(6, 2)),
    "decimal256": pa.array([decimal.Decimal(i) for i in INTEGERS], pa.decimal256(40, 2)),
    "half": pa.array(np.arange(N, dtype=np.float16)),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, N + 1), pa.int32()), pa.array(INTEGERS)),
    "long double": pd.Series(np.arange(N, dtype=np.longdouble)),
    "pandas decimals": pd.Series([decimal.Decimal(i) for i in INTEGERS]),
    "sparse": pd.Series(pd.arrays.SparseArray(np.arange(float(N)))),
    "arrow decimals": pd.Series(INTEGERS, dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
}


def in_frame(series: Any, name: str = "a") -> Any:
    if isinstance(series, pl.Series):
        return pl.DataFrame({name: series, "x": x})
    return pd.DataFrame({name: series, "x": x}) if isinstance(series, pd.Series) else pa.table({name: series, "x": x})


@pytest.mark.parametrize("series", NUMBERS.values(), ids=NUMBERS.keys())
def test_unusual_numbers_are_numbers(series: Any) -> None:
    numbers = np.arange(float(N))
    plain, frame = pd.DataFrame({"a": numbers, "x": x}), in_frame(series)
    expected, model = LinearRegression().fit(plain, y), LinearRegression().fit(frame, y)
    np.testing.assert_allclose(model.coef_, expected.coef_)
    np.testing.assert_allclose(model.predict(frame), expected.predict(plain))
    for target in (series, "a"):
        given = frame if isinstance(target, str) else x[:, None]
        np.testing.assert_allclose(LinearRegression().fit(given, target).predict(given),
                                   LinearRegression().fit(x[:, None], numbers).predict(x[:, None]))  # fmt: skip
    weighted = LinearRegression().fit(x[:, None], y, sample_weight=numbers)
    for weight in (series, "a"):
        given = frame if isinstance(weight, str) else x[:, None]
        np.testing.assert_allclose(LinearRegression().fit(given, y, sample_weight=weight).coef_, weighted.coef_)
    np.testing.assert_allclose(TableEncoder().fit_transform(frame), TableEncoder().fit_transform(plain))


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda X: X,
    "Fortran order": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    "Dask": lambda X: da.from_array(X, chunks=(7, 1)),
}


@pytest.mark.parametrize("keep", CONTAINERS.values(), ids=CONTAINERS.keys())
@pytest.mark.parametrize(("stored", "read"), [("f2", "f8"), (">f2", "f8"), (">f4", "f4"), (">f8", "f8"), (">i2", "f8")])
def test_precision_depends_on_the_numbers_and_not_on_their_container(
    stored: str, read: str, keep: Callable[[Any], Any], tmp_path: Path
) -> None:
    X = (8 * np.column_stack([x, y])).astype(stored)
    expected, model = Ridge().fit(X.astype(read), y), Ridge().fit(keep(X), y)
    assert model.coef_.dtype == read
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.save(tmp_path / "X.npy", np.column_stack([X, X[:, 0]]))
    scanned = Ridge().fit(summula.scan(tmp_path / "X.npy"), "x2")
    assert scanned.coef_.dtype == read
    np.testing.assert_array_equal(scanned.coef_, Ridge().fit(X.astype(read), X[:, 0].astype(read)).coef_)


def test_wide_integers_as_labels_and_several_targets() -> None:
    labels = pl.Series("a", [i % 3 for i in INTEGERS], dtype=pl.Int128)
    expected = LogisticRegression().fit(x[:, None], labels.cast(pl.Int64))
    for model in (
        LogisticRegression().fit(x[:, None], labels),
        LogisticRegression().fit(in_frame(labels), "a"),
    ):
        assert model.classes_.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(model.coef_, expected.coef_)
    targets = pl.DataFrame({"a": labels, "b": y})
    assert LinearRegression().fit(x[:, None], targets).coef_.shape == (2, 1)
    refused("The target y is None at row 0", "a label in every row",
            by=LogisticRegression(), X=x[:, None], y=pl.Series([None, *INTEGERS[1:]], dtype=pl.Int128))  # fmt: skip


def test_wide_integers_have_the_fingerprint_of_usual_ones() -> None:
    frame = in_frame(pl.Series("a", INTEGERS, dtype=pl.Int128))
    labels = np.where(x > 0, "yes", "no")
    model = LogisticRegression().fit(in_frame(pl.Series("a", INTEGERS)), labels)
    with pytest.raises(summula.DataError, match=r"20 of these 20 rows were in the training data"):
        summula.certify(model, frame, labels)


NO_NUMBERS: dict[str, Any] = {
    "Binary": pl.Series([b"u", b"v"] * 10),
    "List": pl.Series([[1, 2]] * N),
    "Array": pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)),
    "Struct": pl.Series([{"b": 1}] * N),
    "Object": pl.Series([object() for _ in INTEGERS], dtype=pl.Object),
    "Categorical": pl.Series(["u", "v"] * 10, dtype=pl.Categorical),
    "Enum": pl.Series(["u", "v"] * 10, dtype=pl.Enum(["u", "v"])),
    "Time": pl.Series([datetime.time(i) for i in INTEGERS]),
    "list": pa.array([[1.0]] * N),
    "struct": pa.array([{"b": 1}] * N),
    "binary": pa.array([b"u"] * N),
    "interval": pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval()),
    "period": pd.Series(pd.period_range("2020", periods=N, freq="M")),
    "pandas interval": pd.Series(pd.interval_range(0, N, periods=N)),
    "arrow list": pd.Series([[1.0]] * N, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "pandas lists": pd.Series([[1, 2]] * N),
}


@pytest.mark.parametrize("series", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
def test_what_is_no_number_gets_one_sentence(series: Any) -> None:
    frame = in_frame(series)
    refused("Column 'a'", by=Ridge(), X=frame, y=y)  # which has no factors
    refused("Column 'a'", by=LinearRegression(), X=frame, y="a")
    refused("Column 'a'", by=LinearRegression(), X=frame, y=y, sample_weight="a")
    refused(by=LinearRegression(), X=x[:, None], y=series)
    refused(by=LinearRegression(), X=x[:, None], y=y, sample_weight=series)


@pytest.mark.parametrize("name", ["List", "Array", "Struct", "Time", "list", "struct", "period", "pandas lists"])
def test_what_is_no_label_gets_one_sentence(name: str) -> None:
    refused(by=LogisticRegression(), X=x[:, None], y=NO_NUMBERS[name])
    refused(by=LogisticRegression(), X=in_frame(NO_NUMBERS[name]), y="a")


@silent
def test_dates_and_complex_numbers_are_no_labels(values: Any, words: str) -> None:
    for target in (values, objects(values), pd.Series(values)):
        refused("he target y contains", by=LogisticRegression(), X=x[:, None], y=target)


def test_labels_converted_as_the_message_advises() -> None:
    days = np.array(["2020-01-01", "2020-01-02"] * 10, "M8[D]")
    message = refused("np.asarray(y).astype(str)", by=LogisticRegression(), X=x[:, None], y=days)
    labels = eval(re.search(r"with (.*)\.$", message).group(1), {"np": np, "y": days})  # type: ignore[union-attr]
    assert LogisticRegression().fit(x[:, None], labels).classes_.tolist() == ["2020-01-01", "2020-01-02"]


# ---------------------------------------------------------------------------------------------------------- the encoder


def test_the_encoder_takes_objects_that_are_dates_for_dates() -> None:
    days = [*DAYS.tolist()[:-1], None]
    given = pd.DataFrame({"when": objects(days)})
    expected = TableEncoder().fit_transform(pd.DataFrame({"when": pd.to_datetime(pd.Series(days))}))
    np.testing.assert_array_equal(TableEncoder().fit_transform(given), expected)


@pytest.mark.parametrize("name", ["List", "Array", "Struct", "Binary", "Time", "list", "pandas lists"])
def test_the_encoder_refuses_what_is_neither_number_text_nor_date(name: str) -> None:
    refused("Column 'a' ", by=TableEncoder(), X=in_frame(NO_NUMBERS[name]))


def test_the_encoder_refuses_complex_numbers_and_durations() -> None:
    for values, words in ((COMPLEX, "Complex data"), (objects(COMPLEX), "Complex data"), (HOURS, "duration")):
        refused("Column 'a'", words, by=TableEncoder(), X=pd.DataFrame({"a": values, "x": x}))
        refused("Column 0", words, by=TableEncoder(), X=objects(values)[:, None])
