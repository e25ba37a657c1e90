"""Promise 6: all fitted attributes are the same for every container of the same numbers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import sparse

from tests.contract import storage
from tests.contract.compare import (
    ROUNDING,
    assert_close,
    assert_equivalent,
    assert_same_bits,
    fitted_attributes,
    without_names,
)
from tests.contract.registry import Case, over, over_ways


def check_same_bits(case: Case, size: str, kept: Any) -> Any:
    """The model of another container has the same bits, and reads either container alike."""
    X, y, _ = case.data(size)
    expected, model = case.model(size), case.fit(kept, y)
    assert_same_bits(without_names(fitted_attributes(expected)), without_names(fitted_attributes(model)))
    assert_same_bits(case.output(expected, X), np.asarray(case.output(model, kept)))
    return model


@over_ways("keep", storage.ARRAYS)
def test_arrays_of_any_layout_give_the_same_bits(case: Case, keep: Any, size: str) -> None:
    check_same_bits(case, size, keep(case.data(size).X))


@over_ways("keep", storage.FRAMES)
def test_frames_give_the_same_bits_as_arrays_and_their_names(case: Case, keep: Any, size: str) -> None:
    X = case.data(size).X
    model = check_same_bits(case, size, keep(X))
    assert model.feature_names_in_.tolist() == storage.names(X.shape[1])
    assert model.n_features_in_ == X.shape[1]


def sparse_version(X: Any) -> Any:
    """Two thirds of the entries set to zero."""
    return np.where(np.random.default_rng(1).random(X.shape) < 1 / 3, X, 0.0)


@functools.cache
def dense_fit(case: Case, size: str) -> Any:
    X, y, weight = case.data(size)
    return case.fit(sparse_version(X), y, weight if case.weighted else None)


@functools.cache
def sparse_fit(case: Case, size: str, make: Any) -> Any:
    X, y, weight = case.data(size)
    return case.fit(make(sparse_version(X)), y, weight if case.weighted else None)


@over_ways("keep", storage.SPARSE, "sparse")
def test_sparse_data_give_the_dense_fit_up_to_rounding(case: Case, keep: Any, size: str) -> None:
    X, y, weight = case.data(size)
    X = sparse_version(X)
    weight = weight if case.weighted else None
    kept = keep(X)
    expected, model = dense_fit(case, size), case.fit(kept, y, weight)
    assert_equivalent(case, expected, model)
    make = sparse.csr_array if isinstance(kept, sparse.sparray) else sparse.csr_matrix
    in_order = sparse_fit(case, size, make)
    assert_same_bits(fitted_attributes(in_order), fitted_attributes(model))
    assert_same_bits(case.output(in_order, make(X)), case.output(model, kept))
    assert_close(case.output(expected, X), case.output(model, keep(X)), rounding=max(case.apart, ROUNDING))
    assert_close(case.output(expected, X), case.output(expected, keep(X)))


@over("sparse")
def test_a_sparse_matrix_is_left_as_it_was(case: Case) -> None:
    X, y, _ = case.data()
    kept = storage.SPARSE["csr_array, unsorted"](sparse_version(X))
    before = kept.copy()
    case.output(case.fit(kept, y), kept)
    assert_same_bits(before, kept)


@over("wide_sparse")
def test_wide_sparse_data_give_the_dense_fit(case: Case) -> None:
    X, y = case.wide_data()
    expected, model = case.fit(X.toarray(), y), case.wide_model()
    # Conjugate gradients stop at a relative gradient of 1e-10; the condition number here is below 100. L-BFGS compares
    # values, which have 16 digits: that leaves half as many of the coefficients.
    rounding = 1e-7 if case.likelihood else 1e-8
    assert_close(expected.coef_, model.coef_, rounding=rounding)
    assert_close(case.output(expected, X), case.output(model, X), rounding=rounding)
    assert model.certificate_.verify(X, y)


@over("wide_sparse")
def test_wide_sparse_data_give_the_same_bits_in_any_index_type(case: Case) -> None:
    X, y = case.wide_data()
    model = case.fit(storage._long_indices(X.copy()), y)
    assert_same_bits(fitted_attributes(case.wide_model()), fitted_attributes(model))
