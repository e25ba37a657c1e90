"""Invalid targets and weights are rejected with one sentence that states which, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import summula
from summula.linear_model import LinearRegression, Ridge
from tests.contract.registry import Case, over
from tests.faults.sentences import one_sentence, refused

Constructor = Callable[[dict[str, Any]], Any]

X = np.random.default_rng(0).normal(size=(20, 3))
y = X @ [1.0, 2.0, 3.0] + 1.0


def house_prices(**more: Any) -> dict[str, Any]:
    return {"rooms": X[:, 0], "area": X[:, 1], "year": X[:, 2], "price": y, **more}


def with_value(values: Any, value: Any, row: int = 4) -> Any:
    values = np.array(values, dtype=object if isinstance(value, str) else None)
    values[row] = value
    return values


# -------------------------------------------------------------------------------------------------------------- targets


@over("supervised")
def test_no_target(case: Case) -> None:
    refused("requires y", "the target y is None", type(case.estimator).__name__, by=clone(case.estimator), X=X)


@over("supervised")
def test_a_target_of_another_length(case: Case) -> None:
    target = case.data().y[:21] if case.target != "numbers" else [*y, 0.0]
    refused("X has 20 rows and y has 19", "one value per row", by=clone(case.estimator), X=X, y=target[:19])
    refused("X has 20 rows and y has 21", by=clone(case.estimator), X=X, y=target)


@over("regressor")
def test_a_missing_or_infinite_target(case: Case) -> None:
    _, good, _ = case.data()
    features = case.data().X
    bad = np.array(good)
    bad[4] = np.nan
    label = "The target y" if good.ndim == 1 else "Column 0 of the target y"
    refused(f"{label} has 1 missing value", "row 4", "impute or drop", by=clone(case.estimator), X=features, y=bad)
    bad[4] = np.inf
    refused(f"{label} has 1 infinite value", "row 4", by=clone(case.estimator), X=features, y=bad)


@pytest.mark.parametrize(("target", "words"), [
    (["dear"] * 20, "The target y contains text such as 'dear'"),
    (np.array(["dear"] * 20), "The target y contains 'dear' at row 0"),
    (with_value(y, "dear"), "The target y contains 'dear' at row 4"),
    (pd.Series(["dear"] * 20), "The target y contains 'dear' at row 0"),
    (pl.Series(["dear"] * 20), "The target y contains 'dear' at row 0"),
    (np.array(["2020-01-01"] * 20, "M8[D]"), "The target y contains dates (datetime64[D])"),
    (y + 1j, "The target y contains complex numbers"),
    (sparse.csr_array(y[:, None]), "The target y is sparse"),
    (y[:, None, None], "got shape (20, 1, 1)"),
    (3.0, "got shape ()"),
    (np.empty((20, 0)), "has shape (20, 0)"),
], ids=["list of text", "text", "one text", "pandas", "polars", "dates", "complex", "sparse", "3-d", "number",
        "no column"])  # fmt: skip
def test_a_target_that_is_no_column_of_numbers(target: Any, words: str) -> None:
    refused(words, by=Ridge(), X=X, y=target)


def test_missing_targets_of_frame_libraries() -> None:
    values = [None, *y[1:].tolist()]
    for target in (pl.Series(values), pd.Series(values, dtype="Float64"), pd.Series(values, dtype=object)):
        refused("The target y has 1 missing value", "row 0", by=Ridge(), X=X, y=target)
    refused("The target 'price' has 1 missing value", by=Ridge(), X=X, y=pl.Series("price", values))


# ---------------------------------------------------------------------------------------------------------------- names


def test_an_unknown_name_gets_the_nearest(constructor: Constructor) -> None:
    frame = constructor(house_prices(count=np.ones(20)))
    refused("no column 'prise'", "did you mean 'price'?", by=LinearRegression(), X=frame, y="prise")
    refused("no column 'aera'", "did you mean 'area'?", by=LinearRegression(), X=frame, y=["price", "aera"])
    refused("no column 'counts'", "did you mean 'count'?",
            by=LinearRegression(), X=frame, y="price", sample_weight="counts")  # fmt: skip


def test_an_unknown_name_near_to_nothing_gets_the_names_there_are(constructor: Constructor) -> None:
    frame = constructor(house_prices())
    refused("no column 'zzz'", "'rooms', 'area', 'year', 'price'", by=LinearRegression(), X=frame, y="zzz")
    many = constructor({f"v{j}": X[:, 0] for j in range(100)})
    refused("no column 'target'", "and 92 more", by=LinearRegression(), X=many, y="target")


def test_a_name_needs_a_frame() -> None:
    refused("y='price' is a column name", "X is ndarray", "pass a frame", by=LinearRegression(), X=X, y="price")
    refused("sample_weight='w' is a column name", by=LinearRegression(), X=X, y=y, sample_weight="w")


def test_a_named_target_is_named_when_it_is_bad(constructor: Constructor) -> None:
    frame = constructor(house_prices() | {"price": with_value(y, np.nan)})
    refused("The target 'price' has 1 missing value", "row 4", by=LinearRegression(), X=frame, y="price")
    frame = constructor(house_prices() | {"price": ["dear"] * 20})
    refused("Column 'price' contains 'dear' at row 0", by=LinearRegression(), X=frame, y="price")


def test_a_frame_with_nothing_but_the_target(constructor: Constructor) -> None:
    refused("no feature columns", by=LinearRegression(), X=constructor({"price": y}), y="price")


# -------------------------------------------------------------------------------------------------------------- weights


BAD_WEIGHTS: list[tuple[Any, list[str]]] = [
    (with_value(np.ones(20), -1.0), ["Negative values", "sample_weight", "-1 at row 4", "non-negative"]),
    (-1.0, ["Negative values", "sample_weight"]),
    (np.zeros(20), ["All sample weights are zero", "positive weight"]),
    (0.0, ["All sample weights are zero"]),
    (with_value(np.ones(20), np.nan), ["sample_weight is nan at row 4", "finite"]),
    (with_value(np.ones(20), np.inf), ["sample_weight is inf at row 4", "finite"]),
    (np.ones(19), ["sample_weight.shape == (19,), expected (20,)", "one weight per row"]),
    (np.ones((20, 1)), ["must be 1D", "shape (20, 1)"]),
    (np.ones((20, 20)), ["must be 1D", "shape (20, 20)"]),
    (["heavy"] * 20, ["sample_weight contains 'heavy' at row 0", "needs numbers"]),
    (np.ones(20) * 1j, ["sample_weight contains complex numbers"]),
    (sparse.csr_array(np.ones((20, 1))), ["sample_weight is sparse", "toarray"]),
    (pl.Series([None] + [1.0] * 19), ["sample_weight is nan at row 0"]),
]


@over("weighted", "one_target")
def test_an_invalid_weight(case: Case) -> None:
    target = None if not case.supervised else y if case.target == "numbers" else case.data().y[:20]
    for weight, words in BAD_WEIGHTS:
        refused(*words, by=clone(case.estimator), X=X, y=target, sample_weight=weight)


def test_an_invalid_named_weight(constructor: Constructor) -> None:
    for column, words in (
        (with_value(np.ones(20), -2.0), "-2 at row 4"),
        (with_value(np.ones(20), np.nan), "nan at row 4"),
        (np.zeros(20), "All sample weights are zero"),
        (["heavy"] * 20, "Column 'w' contains 'heavy' at row 0"),
    ):
        frame = constructor(house_prices(w=column))
        refused(words, by=LinearRegression(), X=frame, y="price", sample_weight="w")


# ---------------------------------------------------------------------------------------------- other data at predict


@over()
def test_another_number_of_columns(case: Case) -> None:
    data = case.data()
    model = case.model()
    for other in (data.X[:, :2], np.hstack([data.X, data.X]), sparse.csr_array(data.X[:, :3])):
        if sparse.issparse(other) and not case.sparse:
            continue
        with pytest.raises(ValueError, match="features") as caught:
            case.output(model, other)
        one_sentence(caught.value, f"X has {other.shape[1]} features", "is expecting 4 features")


@over()
def test_an_unfitted_estimator_raises_not_fitted_error(case: Case) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match=f"{type(case.estimator).__name__} instance is not fitted yet"):
        case.output(clone(case.estimator), case.data().X)


@over("sparse")
def test_sparse_data_for_a_model_of_dense_data_are_read(case: Case) -> None:
    data = case.data()
    model = case.model()
    out = case.output(model, sparse.csr_array(data.X))
    np.testing.assert_allclose(out.toarray() if sparse.issparse(out) else out, case.output(model, data.X))


def test_sparse_data_where_they_are_not_taken() -> None:
    from summula.linear_model import PolynomialRegression
    from summula.preprocessing import StandardScaler

    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        PolynomialRegression().fit(sparse.csr_array(X), y)
    refused("Cannot center sparse matrices", "with_mean=False", by=StandardScaler(), X=sparse.csr_array(X))


# ---------------------------------------------------------------------------------------------------------- the engine


@pytest.mark.parametrize(("kind", "options", "words"), [
    ("thread", {}, ["Unknown engine 'thread'", "'threads' and 'serial'"]),
    ("serial", {"n_jobs": 2}, ["'serial'", "'n_jobs'"]),
    ("threads", {"chunk_rows": 0}, ["chunk_rows", "an int >= 1"]),
    (3, {}, ["engine() takes", "int"]),
])  # fmt: skip
def test_an_invalid_engine(kind: Any, options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(summula.ParameterError) as caught, summula.engine(kind, **options):
        pass
    one_sentence(caught.value, *words)
