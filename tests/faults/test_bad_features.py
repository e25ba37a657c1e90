"""Missing, infinite and text values are reported with their column and first row, for every container."""

from __future__ import annotations

import contextlib
import datetime
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import summula
from summula.ensemble import AdaBoostClassifier
from summula.linear_model import LinearRegression, PolynomialRegression, Ridge
from summula.preprocessing import StandardScaler
from summula.tree import ID3Classifier
from tests.contract.registry import CASES, Case, over, over_frames
from tests.faults.sentences import one_sentence, refused

Constructor = Callable[[dict[str, Any]], Any]

NAMES = ("age", "height", "weight", "income")


def table(X: Any) -> dict[str, Any]:
    return {name: np.ascontiguousarray(column) for name, column in zip(NAMES, np.asarray(X).T, strict=True)}


def with_value(X: Any, value: Any, row: int = 17, column: int = 1) -> Any:
    X = np.array(X, dtype=object if isinstance(value, str) else None)
    X[row, column] = value
    return X


# ----------------------------------------------------------------------------------------- missing and infinite values


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@over("finite")
def test_an_infinity_is_named(case: Case, value: float) -> None:
    X, y, _ = case.data()
    for bad in (with_value(X, value), np.asfortranarray(with_value(X, value)), with_value(X, value).tolist()):
        message = refused("Column 1 has 1 infinite value", "inf", "row 17", type(case.estimator).__name__,
                       by=clone(case.estimator), X=bad, y=y)  # fmt: skip
        assert "impute or drop" in message


@over_frames("finite")
def test_an_infinity_in_a_frame_is_named_by_its_column(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    bad = constructor(table(with_value(X, np.inf)))
    refused("Column 'height' has 1 infinite value", "row 17", by=clone(case.estimator), X=bad, y=y)


@over("infinite")
def test_an_infinity_is_the_outermost_value_to_trees(case: Case) -> None:
    X, y, _ = case.data()
    outermost, infinite = X.copy(), X.copy()
    outermost[::7, 1], outermost[3::7, 1] = 1e300, -1e300
    infinite[::7, 1], infinite[3::7, 1] = np.inf, -np.inf
    expected, model = case.fit(outermost, y), case.fit(infinite, y)
    if "ExtraTrees" in str(case):  # whose thresholds are drawn between the outermost values
        assert np.isfinite(case.output(model, infinite)).all()
        return
    np.testing.assert_array_equal(case.output(expected, outermost), case.output(model, infinite))


@over("complete")
def test_a_missing_value_is_named(case: Case) -> None:
    X, y, _ = case.data()
    for bad in (with_value(X, np.nan), with_value(X, np.nan).tolist(), with_value(X, np.nan).astype(np.float32)):
        refused("Column 1 has 1 missing value", "NaN", "row 17", "impute or drop", by=clone(case.estimator), X=bad, y=y)


@over_frames("complete")
def test_a_missing_value_in_a_frame_is_named_by_its_column(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    columns = table(X)
    columns["height"] = [None if row >= 17 and row % 2 else float(v) for row, v in enumerate(columns["height"])]
    refused("Column 'height' has 52 missing values", "row 17", by=clone(case.estimator), X=constructor(columns), y=y)


@over_frames("complete")
def test_a_missing_whole_number_is_named(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    columns = table(X)
    columns["age"] = [None if row == 3 else int(v) for row, v in enumerate(columns["age"])]
    refused("Column 'age' has 1 missing value", "row 3", by=clone(case.estimator), X=constructor(columns), y=y)


@over("complete")
def test_pandas_own_missing_value_is_named(case: Case) -> None:
    X, y, _ = case.data()
    frame = pd.DataFrame(table(X)).convert_dtypes()
    frame.loc[17, "income"] = pd.NA
    refused("Column 'income' has 1 missing value", "row 17", by=clone(case.estimator), X=frame, y=y)


@over("complete", "sparse")
def test_a_missing_value_in_a_sparse_matrix_is_named(case: Case) -> None:
    X, y, _ = case.data()
    for kind in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        bad = kind(with_value(np.where(X > 1, X, 0.0), np.nan))
        refused("Column 1 has 1 missing value", "row 17", by=clone(case.estimator), X=bad, y=y)


@over("complete")
def test_several_bad_columns_are_counted(case: Case) -> None:
    X, y, _ = case.data()
    bad = with_value(with_value(X, np.nan, row=17), np.nan, row=90)
    refused("Column 1 has 2 missing values", "row 17", "as does 1 other column",
            by=clone(case.estimator), X=with_value(bad, np.nan, row=2, column=3), y=y)  # fmt: skip


@over("complete")
def test_a_missing_value_deep_in_the_data_is_found(case: Case) -> None:
    """In a later chunk and a later part, under the number of its row in the whole."""
    X, y, _ = case.data("large")
    with summula.engine("threads", chunk_rows=100):
        row = len(X) - 100
        refused("Column 1 ", f"row {row}", by=clone(case.estimator), X=with_value(X, np.nan, row=row), y=y)


@over_frames("complete")
def test_at_predict_too(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    model = case.model()
    named = case.fit(constructor(table(X)), y)
    with pytest.raises(summula.DataError) as caught:
        case.output(model, with_value(X, np.nan))
    one_sentence(caught.value, "Column 1 has 1 missing value", "row 17")
    with pytest.raises(summula.DataError) as caught:
        case.output(named, constructor(table(with_value(with_value(X, -np.inf), np.inf, column=2))))
    one_sentence(caught.value, "Column 'height' has 1 infinite value", "row 17")


def test_the_scaler_passes_over_missing_values_and_refuses_infinities() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    holes = with_value(X, np.nan)
    scaler = StandardScaler().fit(holes)
    np.testing.assert_allclose(scaler.mean_, np.nanmean(holes, axis=0))
    assert np.isnan(scaler.transform(holes)[17, 1])
    with pytest.raises(summula.DataError) as caught:
        scaler.transform(with_value(X, np.inf))
    one_sentence(caught.value, "Column 1 has 1 infinite value", "row 17", "StandardScaler needs finite data")


def test_a_missing_value_in_a_wide_sparse_matrix_is_found_without_making_it_dense() -> None:
    X = sparse.random_array((20_000, 30_000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    y = np.zeros(20_000)
    Ridge().fit(X, y)  # compiles what it needs
    X.data[-1] = np.nan
    row, column = 20_000 - 1, int(X.indices[-1])
    while X.indptr[row] == X.nnz:
        row -= 1
    tracemalloc.start()
    try:
        refused(f"Column {column} has 1 missing value", f"row {row}", by=Ridge(), X=X, y=y)
        assert tracemalloc.get_traced_memory()[1] < 100e6  # dense it is 4.8 GB, one chunk of it more than 1 GB
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------------------------------------------------- text


@over()
def test_text_is_named(case: Case) -> None:
    X, y, _ = case.data()
    words = ("Column 1 contains 'tall' at row 17", "not convert it to a number", "encode the column")
    if isinstance(case.estimator, ID3Classifier):  # takes columns of text in arrays, too
        words = ("Column 'x1' contains values of several types", "categories of one type")
    for bad in (with_value(X, "tall"), with_value(X, "tall").tolist()):
        refused(*words, by=clone(case.estimator), X=bad, y=y)


@over_frames("numeric")
def test_a_text_column_of_a_frame_is_named(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    columns = table(X)
    columns["height"] = ["tall"] * len(X)
    refused("Column 'height' contains 'tall' at row 0", "encode the column",
            by=clone(case.estimator), X=constructor(columns), y=y)  # fmt: skip


@over_frames("numeric")
def test_text_that_spells_numbers_is_text(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    columns = table(X)
    columns["height"] = [str(value) for value in columns["height"]]
    refused("Column 'height' contains '", "at row 0", by=clone(case.estimator), X=constructor(columns), y=y)


@over_frames("numeric")
def test_text_at_predict_is_named(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    columns = table(X)
    model = case.fit(constructor(columns), y)
    columns["weight"] = ["heavy"] * len(X)
    with pytest.raises(summula.DataError) as caught:
        case.output(model, constructor(columns))
    one_sentence(caught.value, "Column 'weight' contains 'heavy' at row 0")


@over_frames()
def test_a_column_of_dates_is_named(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    columns = table(X)
    columns["income"] = [datetime.datetime(2020, 1, 1)] * len(X)
    refused("Column 'income' contains dates", "to days with (X['income']",
            by=clone(case.estimator), X=constructor(columns), y=y)  # fmt: skip


@over("numeric")
def test_a_column_of_categories_is_named(case: Case) -> None:
    X, y, _ = case.data()
    columns = table(X)
    frame = pd.DataFrame(columns).assign(height=pd.Categorical(["tall", "short"] * (len(X) // 2)))
    refused("Column 'height' contains 'tall' at row 0", by=clone(case.estimator), X=frame, y=y)


@over()
def test_a_column_of_lists_is_named(case: Case) -> None:
    X, y, _ = case.data()
    frame = pl.DataFrame(table(X)).with_columns(height=pl.Series([[1.0, 2.0]] * len(X)))
    refused("Column 'height' contains", "at row 0", by=clone(case.estimator), X=frame, y=y)


def test_booleans_are_zeros_and_ones(constructor: Constructor) -> None:
    flags = np.arange(12) % 3 == 0
    frame = constructor({"flag": flags, "x": np.arange(12.0)})
    model = LinearRegression().fit(frame, 5.0 * flags + 1.0)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [1.0, 5.0, 0.0], atol=1e-12)


# ---------------------------------------------------------------------------------------------------- what is no table


@pytest.mark.parametrize("X", [None, "data.csv", {"a": [1.0, 2.0]}], ids=["None", "text", "dict"])
@over()
def test_what_is_no_table_is_refused(case: Case, X: Any) -> None:
    refused(f"X is of type {type(X).__name__}", "needs a table of numbers", by=clone(case.estimator), X=X, y=[1.0, 2.0])


@over()
def test_a_lazy_frame_is_to_be_collected(case: Case) -> None:
    X, y, _ = case.data()
    refused("lazy frame", "X.collect()", by=clone(case.estimator), X=pl.DataFrame(table(X)).lazy(), y=y)


@over()
def test_rows_of_unequal_length_are_named(case: Case) -> None:
    refused("Row 2 of X has 3 values but row 0 has 2",
            by=clone(case.estimator), X=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0, 7.0]], y=[1.0, 2.0, 3.0])  # fmt: skip


@over()
def test_complex_numbers_are_refused(case: Case) -> None:
    X, y, _ = case.data()
    refused("Complex data not supported", "X contains complex numbers", by=clone(case.estimator), X=X + 1j, y=y)


@over()
def test_two_columns_of_one_name_are_refused(case: Case) -> None:
    X, y, _ = case.data()
    frame = pd.DataFrame(X, columns=["a", "b", "a", "c"])
    refused("more than one column named 'a'", by=clone(case.estimator), X=frame, y=y)


# ---------------------------------------------------------------------------------------------------- values too large


def test_values_whose_squares_overflow_are_named() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 2] *= 1e200
    for model in (StandardScaler(), PolynomialRegression()):
        refused("Column 2 contains values so large", "rescale it", by=model, X=X, y=X[:, 0])
    np.testing.assert_allclose(StandardScaler(with_std=False).fit(X).mean_, X.mean(axis=0))


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_least_squares_needs_no_squares(size: float) -> None:
    """Sums of products overflow or underflow there; orthogonal transformations do not square."""
    rng = np.random.default_rng(0)
    for n, d in ((50, 3), (20_000, 10)):
        X = rng.normal(size=(n, d))
        y = X.sum(axis=1) + 1.0
        np.testing.assert_allclose(LinearRegression().fit(X * size, y).coef_ * size, np.ones(d))


def test_float32_values_whose_squares_overflow_are_no_trouble() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32) * np.float32(1e25)
    np.testing.assert_allclose(StandardScaler().fit(X).scale_, X.astype(float).std(axis=0), rtol=1e-6)
    target = X[:, 0] / np.float32(1e25)
    np.testing.assert_allclose(Ridge().fit(X, target).predict(X), target, atol=1e-5)


# --------------------------------------------------------------------------------------------------- empty and one row


@over_frames()
def test_no_rows(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    none = None if y is None else y[:0]
    for empty in (X[:0], constructor(table(X[:0]))):
        with pytest.raises(ValueError, match=r"no rows|0 sample") as caught:
            clone(case.estimator).fit(empty, none)
        one_sentence(caught.value, type(case.estimator).__name__)


@over()
def test_no_columns(case: Case) -> None:
    X, y, _ = case.data()
    for empty in (X[:, :0], pd.DataFrame(), pl.DataFrame()):
        with pytest.raises(ValueError, match=r"no columns|no feature columns|0 feature") as caught:
            clone(case.estimator).fit(empty, y)
        one_sentence(caught.value, type(case.estimator).__name__)


# Others exclude rows, or need rows of several classes.
@over(cases=[case for case in CASES if (case.repeats or case.trees) and not case.fixed_classes])
def test_one_row_is_fitted_in_silence(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    """Without a spread there are no slopes: the intercept is the target, a column's own value its mean."""
    X, y, _ = case.data()
    one, target = X[:1], None if y is None else y[:1]
    if case.classifier and not case.one_class:  # a single class
        refused("at least 2 classes", by=clone(case.estimator), X=one, y=target)
        return
    if case.needs_spread:
        refused("sample", by=clone(case.estimator), X=one, y=target)
        return
    model = case.fit(one, target)
    out = case.output(model, one)
    assert np.isfinite(out).all()
    if case.regressor and case.free_intercept and getattr(case.estimator, "fit_intercept", True):
        np.testing.assert_allclose(out, target)
        assert not any(np.any(getattr(model, name)) for name in case.numbers)
    assert capfd.readouterr() == ("", "")  # LAPACK prints for empty input


@over_frames()
def test_no_rows_to_predict(case: Case, constructor: Constructor) -> None:
    X, y, _ = case.data()
    model = case.fit(constructor(table(X)), y)
    with pytest.raises(ValueError, match=r"no rows|0 sample") as caught:
        case.output(model, constructor(table(X[:0])))
    one_sentence(caught.value, type(case.estimator).__name__)


# ---------------------------------------------------------------------------------------------------- constant columns


def said_of_collinear(case: Case) -> Any:
    """Plain least squares says that some coefficients are free; a ridge determines them all."""
    penalised = np.any(getattr(case.estimator, "alpha", 0.0)) or hasattr(case.estimator, "alphas")
    return contextlib.nullcontext() if penalised else pytest.warns(summula.CollinearityWarning)


@pytest.mark.parametrize("size", ["small", "large"])
@over("regressor", "centres")
def test_a_constant_column_changes_nothing(case: Case, size: str) -> None:
    X, y, _ = case.data(size)
    expected = case.fit(X[:, 1:], y)
    constant = X.copy()
    constant[:, 0] = 0.1
    with said_of_collinear(case):
        model = case.fit(constant, y)
    np.testing.assert_allclose(model.predict(constant), expected.predict(X[:, 1:]), atol=1e-9 * np.abs(y).max())
    assert model.certificate_.verify(constant, y)


@over("trees")
def test_a_constant_column_changes_no_tree(case: Case) -> None:
    X, y, _ = case.data("large")
    if case.estimator.get_params().get("max_features") not in (None, 1.0) or "ExtraTrees" in str(case):
        return  # the constant one may be drawn, and thresholds are drawn for each column
    constant = np.column_stack([np.full(len(X), 3.0 if case.counts else 0.1), X, np.full(len(X), np.nan)])
    np.testing.assert_array_equal(case.output(case.fit(constant, y), constant), case.output(case.fit(X, y), X))


@over("trees")
def test_only_constant_columns_leave_trees_without_splits(case: Case) -> None:
    X, y, _ = case.data()
    constant = np.full_like(X, 3.0 if case.counts else 2.5)
    out = case.output(case.fit(constant, y), constant)
    assert (out == out[0]).all()
    parameters = case.estimator.get_params()
    is_vote = isinstance(case.estimator, AdaBoostClassifier) or parameters.get("bootstrap")
    if is_vote or parameters.get("loss") == "huber" or parameters.get("subsample", 1.0) < 1.0:  # not the mean of all
        return
    expected = np.median(y) if parameters.get("loss") == "absolute_error" else case.constant(y)
    np.testing.assert_allclose(out, np.broadcast_to(expected, out.shape), rtol=1e-6)


@pytest.mark.parametrize(("X", "names"), [
    (np.array([[1.0, 7.0, 2.0], [2.0, 7.0, 1.0], [4.0, 7.0, 3.0], [3.0, 7.0, 9.0]]), "Column 1 is"),
    (np.full((5, 3), 2.5), "Columns 0, 1, 2 are"),
])  # fmt: skip
def test_constant_columns_are_named_once_at_the_users_line(X: Any, names: str) -> None:
    y = np.arange(len(X), dtype=float)
    with pytest.warns(summula.CollinearityWarning) as caught:
        model = LinearRegression().fit(X, y)
    assert len(caught) == 1
    one_sentence(str(caught[0].message), names, "constant or a linear combination", "drop columns or use Ridge")
    assert caught[0].filename == __file__
    assert np.isfinite(model.predict(X)).all()
    assert np.all(model.coef_[X.std(axis=0) == 0] == 0)


def test_constant_columns_of_a_frame_are_named(constructor: Constructor) -> None:
    rng = np.random.default_rng(0)
    frame = constructor({"a": rng.normal(size=30), "level": np.full(30, 3.0), "b": rng.normal(size=30)})
    y = rng.normal(size=30)
    with pytest.warns(summula.CollinearityWarning, match="^Column 'level' is constant"):
        LinearRegression().fit(frame, y)
    with pytest.warns(summula.CollinearityWarning, match="^Columns 'level', 'a level', 'level\\^2', 'level b' are"):
        PolynomialRegression().fit(frame, y)


@over("regressor", "certified", "free_intercept")
def test_only_constant_columns_give_the_mean(case: Case) -> None:
    X, y, _ = case.data()
    constant = np.full_like(X, 2.5)
    with said_of_collinear(case):
        model = case.fit(constant, y)
    if getattr(case.estimator, "fit_intercept", True):
        np.testing.assert_allclose(model.predict(constant), np.broadcast_to(y.mean(axis=0), y.shape))
        np.testing.assert_array_equal(model.coef_, np.zeros_like(model.coef_))


@pytest.mark.filterwarnings("ignore:Feature . is constant")
@over("transformer")
def test_a_constant_column_is_not_divided_by_its_rounding(case: Case) -> None:
    X, _, _ = case.data()
    constant = np.full_like(X, 0.1)
    assert np.isfinite(case.output(case.fit(constant), constant)).all()


def test_a_scaled_constant_column_is_zero() -> None:
    for value in (0.1, 1e-300, -3e15, 0.0):
        scaler = StandardScaler().fit(np.full((1_000, 1), value))
        assert scaler.scale_ == 1.0
        np.testing.assert_array_equal(scaler.transform(np.full((5, 1), value)), np.zeros((5, 1)))
