"""LinearRegression.loo: explicit refits without each row, textbook values, every storage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.exceptions import NotFittedError

import summula
from summula import DataError, ParameterError, datasets
from summula.linear_model import LinearRegression, RidgeCV
from tests.reference import exact


def data(n=40, d=4, targets=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.3, 3, d) + 1
    y = X @ rng.normal(size=(d, max(targets, 1))) + rng.normal(size=(n, max(targets, 1))) + 2
    return X, y if targets else y[:, 0], rng.uniform(0.1, 3.0, n)


pytestmark = pytest.mark.filterwarnings("ignore::summula.CollinearityWarning")  # collinear columns are intended here


def refitted(X, y, w=None, intercept=True):
    """Return the prediction of each row by the model fitted to all other rows."""
    predictions = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        model = LinearRegression(fit_intercept=intercept).fit(X[rest], y[rest], None if w is None else w[rest])
        predictions.append(model.predict(X[[i]])[0])
    return np.array(predictions)


def check(left_out, X, y, w=None, intercept=True, rtol=1e-9):
    expected = refitted(X, y, w, intercept)
    size = np.abs(expected).max() + np.abs(y).max()
    np.testing.assert_allclose(left_out.predictions, expected, rtol=0, atol=rtol * size)
    np.testing.assert_allclose(left_out.residuals, y - expected, rtol=0, atol=rtol * size)
    mse = np.average((y - expected) ** 2, axis=0, weights=w)
    np.testing.assert_allclose(left_out.mean_squared_error, mse, rtol=rtol, atol=(rtol * size) ** 2)


@pytest.mark.usefixtures("way")
class TestRefits:
    @pytest.mark.parametrize("targets", [0, 1, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_every_row_left_out_in_earnest(self, targets, weighted, intercept):
        X, y, w = data(targets=targets)
        w = w if weighted else None
        left_out = LinearRegression(fit_intercept=intercept).loo(X, y, w)
        check(left_out, X, y, w, intercept, rtol=1e-11)
        assert left_out.residuals.shape == y.shape
        assert np.ndim(left_out.mean_squared_error) == (1 if targets else 0)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_leverages_are_the_diagonal_of_the_hat_matrix(self, intercept):
        X, y, w = data()
        A = np.sqrt(w)[:, None] * (np.column_stack([np.ones(len(X)), X]) if intercept else X)
        left_out = LinearRegression(fit_intercept=intercept).loo(X, y, w)
        np.testing.assert_allclose(left_out.leverages, np.diag(A @ np.linalg.pinv(A)), rtol=1e-10)
        assert left_out.leverages.sum() == pytest.approx(X.shape[1] + intercept)

    def test_dependent_columns(self):
        X, y, _ = data()
        X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 3.0)])
        check(LinearRegression().loo(X, y), X, y)

    def test_a_row_that_alone_determines_a_coefficient(self):
        X, y, w = data()
        for column, row in ((4, 7), (5, 30)):
            flag = np.zeros(len(X))
            flag[row] = 2.0
            X = np.insert(X, column, flag, axis=1)
        for weight in (None, w):
            left_out = LinearRegression().loo(X, y, weight)
            assert left_out.leverages[[7, 30]] == pytest.approx([1, 1])
            check(left_out, X, y, weight)

    def test_fewer_rows_than_columns(self):
        for shape in ((12, 20), (20, 20), (20, 19), (20, 18)):
            X, y, w = data(*shape)
            check(LinearRegression().loo(X, y), X, y, rtol=1e-8)
            check(LinearRegression(fit_intercept=False).loo(X, y, w), X, y, w, intercept=False, rtol=1e-8)

    def test_fewer_rows_than_columns_and_two_alike(self):
        X, y, _ = data(12, 20)
        X[5] = X[3]
        check(LinearRegression().loo(X, y), X, y, rtol=1e-8)

    def test_rows_of_weight_zero_are_predicted_by_the_others(self):
        for shape in ((40, 4), (12, 20)):
            X, y, w = data(*shape)
            w[::3] = 0.0
            left_out, kept = LinearRegression().loo(X, y, w), w > 0
            fewer = LinearRegression().loo(X[kept], y[kept], w[kept])
            np.testing.assert_allclose(left_out.predictions[kept], fewer.predictions, rtol=1e-8)
            assert left_out.mean_squared_error == pytest.approx(fewer.mean_squared_error, rel=1e-9)
            model = LinearRegression().fit(X, y, w)
            np.testing.assert_allclose(left_out.predictions[~kept], model.predict(X[~kept]), rtol=1e-8)

    def test_it_is_ridge_with_next_to_no_penalty(self):
        X, y, _ = data()
        model = RidgeCV([1e-12]).fit(X, y)
        assert LinearRegression().loo(X, y).mean_squared_error == pytest.approx(-model.best_score_, rel=1e-9)


def test_rational_arithmetic_agrees():
    X, y, _ = data(12, 3)
    left_out = LinearRegression().loo(X, y)
    for i in range(12):
        rest = np.arange(12) != i
        v, b, _ = exact.least_squares(X[rest], y[rest])
        assert left_out.predictions[i] == pytest.approx(float(X[i] @ np.asarray(v, float) + float(b)), rel=1e-12)


def test_longley():
    """Longley's economic data, whose columns have a condition number of some thousands once they are scaled."""
    frame, y = datasets.longley()
    table = np.column_stack([column.to_numpy().astype(float) for column in frame.columns])
    check(LinearRegression().loo(frame, y), table, y, rtol=1e-8)


def test_the_estimator_is_left_as_it_was():
    X, y, _ = data()
    model = LinearRegression()
    model.loo(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    coef = model.fit(X, y).coef_
    model.loo(X[:20], y[:20])
    assert model.coef_ is coef


def test_it_prints_its_error():
    X, y, _ = data()
    left_out = LinearRegression().loo(X, y)
    assert repr(left_out) == f"LeftOut(mean_squared_error={left_out.mean_squared_error!r})"


# ------------------------------------------------------------------------------------------------------------- storage


def test_sparse():
    X, y, w = data()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0.0)
    left_out, expected = LinearRegression().loo(sparse.csr_array(X), y, w), LinearRegression().loo(X, y, w)
    np.testing.assert_allclose(left_out.residuals, expected.residuals, rtol=1e-10)
    np.testing.assert_allclose(left_out.leverages, expected.leverages, rtol=1e-10)


def test_frames_with_target_and_weight_by_name(constructor):
    X, y, w = data()
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    left_out = LinearRegression().loo(constructor({"y": y, **columns, "w": w}), "y", "w")
    np.testing.assert_array_equal(left_out.residuals, LinearRegression().loo(X, y, w).residuals)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_parquet_gives_the_mean_error(alone, targets, tmp_path):
    X, y, w = data(targets=targets)
    X[:, 3] = np.where(np.arange(40) == 25, 5.0, 1.0 if alone else X[:, 3])
    names = [f"y{j}" for j in range(targets)]
    columns = {f"x{j}": column for j, column in enumerate(X.T)} | dict(zip(names, y.T, strict=True)) | {"w": w}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=7)
    y, named = (y[:, 0], "y0") if targets == 1 else (y, names)
    with summula.engine("threads", chunk_rows=10):
        left_out = LinearRegression().loo(summula.scan(tmp_path / "rows.parquet"), named, "w")
    expected = np.average((y - refitted(X, y, w)) ** 2, axis=0, weights=w)
    np.testing.assert_allclose(left_out.mean_squared_error, expected, rtol=1e-9)
    assert left_out.residuals is left_out.predictions is left_out.leverages is None


@pytest.mark.parametrize("chunk_rows", [1, 7, 1_000])
def test_chunks_change_results_only_by_rounding(chunk_rows):
    X, y, w = data(200, 5)
    expected = LinearRegression().loo(X, y, w).residuals
    with summula.engine("threads", chunk_rows=chunk_rows):
        np.testing.assert_allclose(LinearRegression().loo(X, y, w).residuals, expected, rtol=1e-10)


# ----------------------------------------------------------------------------------------------------------- bad input


def test_a_constrained_fit_has_no_leverages():
    X, y, _ = data()
    with pytest.raises(ParameterError, match="loo\\(\\) needs an unconstrained fit"):
        LinearRegression(positive=True).loo(X, y)


@pytest.mark.usefixtures("by_conjugate_gradients")
def test_wide_sparse_data_have_no_inverse():
    X, y, _ = data(60, 20)
    with pytest.raises(ParameterError, match="needs the inverse of a 20 x 20 matrix"):
        LinearRegression().loo(sparse.csr_array(X), y)


def test_one_row_cannot_be_left_out():
    with pytest.raises(DataError, match="LinearRegression needs at least 2 rows with positive weight; got 1 sample"):
        LinearRegression().loo([[1.0]], [2.0])


def test_missing_values_are_named():
    X, y, _ = data()
    X[3, 1] = np.nan
    with pytest.raises(DataError, match="Column 1 has 1 missing value"):
        LinearRegression().loo(X, y)
