"""Promises 3 and 5: weights are repetitions, row order and scales do not matter, float32 is preserved."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags

from summula.linear_model import Lasso
from tests.contract import storage
from tests.contract.compare import ROUNDING, assert_close, assert_equivalent, assert_same_bits, fitted_attributes
from tests.contract.registry import SIZES, Case, over, over_frames

sizes = pytest.mark.parametrize("size", SIZES)


# ----------------------------------------------------------------------------------------------------------- weights


@sizes
@over("weighted", "repeats")
def test_a_weight_equals_repetitions_and_zero_equals_absence(case: Case, size: str) -> None:
    X, y, weight = data = case.data(size)
    assert 0 in weight
    assert 3 in weight
    repeated = data.rows(np.repeat(np.arange(len(X)), weight.astype(int)))
    expected, model = case.fit(repeated.X, repeated.y), case.model(size, weighted=True)
    assert_equivalent(case, expected, model)
    assert_close(case.output(expected, X), case.output(model, X), rounding=max(case.apart, ROUNDING))


@over("weighted", "repeats")
def test_zero_weight_is_absence_even_of_a_wild_row(case: Case) -> None:
    X, y, weight = data = case.data()
    weight = np.ones(len(X))
    weight[::7] = 0.0
    X = X.copy()
    X[::7] = 1e6
    kept = data.rows(weight > 0)
    assert_equivalent(case, case.fit(kept.X, kept.y), case.fit(X, y, weight))


@over("weighted")
def test_equal_weights_are_no_weights(case: Case) -> None:
    X, y, _ = case.data("large")
    assert_close(fitted_attributes(case.model("large")), fitted_attributes(case.fit(X, y, np.ones(len(X)))))


@over("weighted", "class_weighted")
def test_weights_of_classes_multiply_those_of_rows(case: Case) -> None:
    """Of two classes: one class against the rest has its weight, and the rest has none, as in scikit-learn."""
    X, y, weight = case.data()
    classes, codes = np.unique(y, return_inverse=True)
    codes = np.minimum(codes, 1)
    y, factors = classes[codes], np.array([2.0, 3.0])
    fixed = {"gamma": 0.1} if hasattr(case.estimator, "gamma") else {}  # "scale" follows the weights of rows only
    by_class = clone(case.estimator).set_params(
        class_weight=dict(zip(classes.tolist(), factors, strict=False)), **fixed
    )
    by_row = clone(case.estimator).set_params(class_weight=None, **fixed)
    expected = case.output(by_row.fit(X, y, sample_weight=weight * factors[codes]), X)
    assert_close(expected, case.output(by_class.fit(X, y, sample_weight=weight), X), rounding=max(case.apart, ROUNDING))


@over_frames("weighted")
def test_weights_may_be_a_list_a_series_or_one_number(case: Case, constructor: Any) -> None:
    X, y, weight = case.data()
    expected = fitted_attributes(case.model(weighted=True))
    series = constructor({"w": weight})["w"]
    for given in (weight.tolist(), weight.astype(np.int64), weight.astype(np.float32), series):
        assert_same_bits(expected, fitted_attributes(case.fit(X, y, given)))
    assert_same_bits(fitted_attributes(case.fit(X, y, np.full(len(X), 2.0))), fitted_attributes(case.fit(X, y, 2.0)))


@over("weighted")
def test_weights_are_left_as_they_were(case: Case) -> None:
    X, y, weight = case.data()
    given = weight.copy()
    case.fit(X, y, given)
    assert_same_bits(weight, given)


# -------------------------------------------------------------------------------------------------------------- rows


@sizes
@over("unordered")
def test_the_order_of_rows_is_nothing(case: Case, size: str) -> None:
    data = case.data(size)
    shuffled = data.rows(np.random.default_rng(5).permutation(len(data.X)))
    model = case.fit(*shuffled[:2], shuffled.weight if case.weighted else None)
    assert_equivalent(case, case.model(size, weighted=case.weighted), model)


@over()
def test_data_are_left_as_they_were(case: Case) -> None:
    X, y, _ = case.data()
    mine, targets = X.copy(), None if y is None else y.copy()
    case.output(case.fit(mine, targets), mine)
    assert_same_bits((X, y), (mine, targets))


@over()
def test_a_second_fit_forgets_the_first(case: Case) -> None:
    X, y, _ = case.data()
    other = case.data("large", seed=1)
    model = case.fit(storage.FRAMES["pandas"](other.X), other.y)
    assert_same_bits(fitted_attributes(case.model()), fitted_attributes(model.fit(X, y)))


@over_frames("supervised")
def test_targets_of_any_layout_give_the_same_bits(case: Case, constructor: Any) -> None:
    X, y, _ = case.data()
    expected = fitted_attributes(case.model())
    if y.ndim == 1:
        wide = np.stack([y, y], axis=1)
        others = [wide[:, 0], constructor({"y": y})["y"]]
        if y.dtype != object:  # a list of texts has labels of NumPy's text type, as in scikit-learn
            others.append(y.tolist())
    else:
        others = [np.asfortranarray(y), y.tolist(), constructor({"a": y[:, 0], "b": y[:, 1]})]
    for other in others:
        assert_same_bits(expected, fitted_attributes(case.fit(X, other)))


@over("supervised", "one_target")
def test_one_target_as_a_matrix_gives_the_same_numbers(case: Case) -> None:
    X, y, _ = case.data()
    flat = case.model()
    # Estimators without multiple targets warn that a column has one dimension too many.
    several = get_tags(case.estimator).target_tags.multi_output
    with nullcontext() if several else pytest.warns(DataConversionWarning):
        matrix = case.fit(X, y[:, None])
    # As in scikit-learn, LinearRegression keeps the second dimension, and Ridge does not.
    for name in case.numbers:
        assert_same_bits(getattr(flat, name).ravel(), getattr(matrix, name).ravel())
    assert_close(flat.predict(X), matrix.predict(X).ravel())  # (labels have to be equal)
    if not several:
        assert_same_bits(fitted_attributes(flat), fitted_attributes(matrix))


# ---------------------------------------------------------------------------------------------------------- float32


@sizes
@over("single")
def test_float32_in_float32_out_and_close_to_float64(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    weight = weight if case.weighted else None
    single = X.astype(np.float32)
    expected, model = case.fit(single.astype(np.float64), y, weight), case.fit(single, y, weight)
    out = case.output(model, single)
    assert out.dtype == np.float32
    # Products in float32 have relative errors of 6e-8 each; they add like a random walk and the condition number
    # of the columns (polynomial terms: about 30) multiplies them.
    assert_close(case.output(expected, single.astype(np.float64)), out, rounding=2e-5)
    for name in case.numbers:
        assert getattr(model, name).dtype == np.float32
        assert_close(getattr(expected, name), getattr(model, name), rounding=2e-5)


@over("single")
def test_float32_in_float32_out_without_an_intercept(case: Case) -> None:
    X, y, _ = case.data("small")
    if "fit_intercept" in case.estimator.get_params():
        model = clone(case.estimator).set_params(fit_intercept=False).fit(X.astype(np.float32), y)
        assert case.output(model, X.astype(np.float32)).dtype == np.float32


@sizes
@over("in_double")
def test_float32_is_read_as_the_same_numbers_in_float64(case: Case, size: str) -> None:
    """As in scikit-learn for trees (sums of leaf values) and naive Bayes."""
    X, y, weight = case.data(size)
    weight = weight if case.weighted else None
    single = X.astype(np.float32)
    expected, model = case.fit(single.astype(np.float64), y, weight), case.fit(single, y, weight)
    assert_same_bits(fitted_attributes(expected), fitted_attributes(model))
    out = case.output(model, single)
    assert out.dtype == np.float64
    assert_same_bits(case.output(expected, single.astype(np.float64)), out)


@over()
def test_a_float32_column_among_others_is_read_as_it_is(case: Case) -> None:
    X, y, _ = case.data()
    frame = storage.FRAMES["polars, mixed types"](X)
    assert case.output(case.fit(frame, y), frame).dtype == np.float64


# ------------------------------------------------------------------------------------------------------------ scales


@sizes
@over("scale_free")
def test_unscaled_columns_change_no_prediction(case: Case, size: str) -> None:
    X, y, _ = case.data(size)
    unscaled = X * np.logspace(-6, 6, X.shape[1])
    expected, model = case.output(case.model(size), X), case.output(case.fit(unscaled, y), unscaled)
    assert_close(expected, model, rounding=1e-10)


@sizes
@over("certified", "takes_any_numbers")
def test_unscaled_columns_reach_the_exact_optimum(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    unscaled = X * np.logspace(-6, 6, X.shape[1])
    model = case.fit(unscaled, y, weight)
    certificate = model.certificate_
    # An L1 penalty's dual point is scaled by its worst slope, and slopes of the longest columns have errors of 1e-10.
    unit = max(case.unscaled, 1e-9) if case.l1 else case.unscaled
    assert certificate.gap <= (unit + _rounded_slopes(model, unscaled)) * certificate.primal
    assert certificate.verify(unscaled, y, weight)


def _rounded_slopes(model: Any, X: Any) -> float:
    """Return the effect of rounding of lasso coefficients on the largest slope x_j'(y - Xw) / n, relative to alpha."""
    if not isinstance(model, Lasso):
        return 0.0
    lengths = np.sqrt(np.mean(X**2, axis=0))
    return float(
        np.finfo(np.float64).eps * lengths.max() * (np.abs(np.atleast_2d(model.coef_)) @ lengths).max() / model.alpha
    )


@sizes
@over("centres")
def test_columns_far_from_zero_keep_their_digits(case: Case, size: str) -> None:
    """A shift of 1e6 standard deviations costs six of sixteen digits, in a sum about 0 it would cost twelve."""
    X, y, _ = case.data(size)
    shifted = X + 2.0**20
    X = shifted - 2.0**20  # the remaining digits
    assert_close(case.output(case.fit(X, y), X), case.output(case.fit(shifted, y), shifted), rounding=1e-8)
