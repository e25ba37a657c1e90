"""Promises 10 and 11: a saved, pickled or copied model has the same bits; the same seed gives the same bits."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import summula
from tests.contract import storage
from tests.contract.compare import assert_same_bits, fitted_attributes
from tests.contract.registry import Case, over, over_ways


def saved_and_loaded(model: Any, folder: Path) -> Any:
    summula.save(model, folder / "model.safetensors")
    return summula.load(folder / "model.safetensors")


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "save": saved_and_loaded,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "pickle, protocol 2": lambda model, _: pickle.loads(pickle.dumps(model, protocol=2)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "copy": lambda model, _: copy.copy(model),
}
ways = pytest.mark.parametrize("again", WAYS.values(), ids=WAYS.keys())


def assert_same_model(case: Case, model: Any, again: Any, X: Any) -> None:
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert_same_bits(fitted_attributes(model), fitted_attributes(again))
    assert_same_bits(case.output(model, X), case.output(again, X))


@over_ways("again", WAYS)
def test_a_model_comes_back_to_the_bit(case: Case, size: str, again: Any, tmp_path: Path) -> None:
    model = case.model(size, weighted=case.weighted)
    assert_same_model(case, model, again(model, tmp_path), case.data(size).X)


@functools.cache
def model_of_a_frame(case: Case) -> Any:
    data = case.data()
    return case.fit(storage.FRAMES["polars"](data.X), data.y)


@ways
@over()
def test_a_model_of_a_frame_comes_back_with_its_names(case: Case, again: Any, tmp_path: Path) -> None:
    model = model_of_a_frame(case)
    assert_same_model(case, model, again(model, tmp_path), storage.FRAMES["polars"](case.data().X))


@ways
@over("wide_sparse")
def test_a_model_of_an_iteration_comes_back(case: Case, again: Any, tmp_path: Path) -> None:
    model = case.wide_model()
    assert_same_model(case, model, again(model, tmp_path), case.wide_data()[0])


@ways
@over()
def test_an_unfitted_estimator_comes_back(case: Case, again: Any, tmp_path: Path) -> None:
    model = again(case.estimator, tmp_path)
    assert type(model) is type(case.estimator)
    assert repr(model) == repr(case.estimator)
    assert not fitted_attributes(model)


@ways
@over()
def test_what_comes_back_can_be_fitted_again(case: Case, again: Any, tmp_path: Path) -> None:
    X, y, _ = case.data()
    model = again(case.model("large"), tmp_path)
    assert_same_bits(fitted_attributes(case.model()), fitted_attributes(model.fit(X, y)))


@over("certified")
def test_the_certificate_comes_back_and_still_verifies(case: Case, tmp_path: Path) -> None:
    X, y, weight = case.data()
    model = saved_and_loaded(case.model(weighted=True), tmp_path)
    assert model.certificate_.verify(X, y, weight)


@over()
def test_a_pickle_holds_no_training_data_but_support_vectors(case: Case) -> None:
    X = case.data("large").X
    # A model stores sums of pairs of its terms (a few times p^2 numbers), for any number of rows.
    model = case.model("large")
    terms = max((np.size(getattr(model, name)) for name in case.numbers), default=X.shape[1]) + 1
    if not case.trees and not case.keeps_rows:
        assert len(pickle.dumps(model)) < 8192 + 4 * 8 * terms**2
    assert len(pickle.dumps(model)) < X.nbytes * (2 if case.keeps_rows else 1)


@over("random")
@pytest.mark.parametrize("seed", [0, np.int64(7), None, np.random.default_rng(1), np.random.RandomState(2)],
                         ids=lambda seed: type(seed).__name__)  # fmt: skip
def test_random_state_takes_a_number_a_generator_or_nothing(case: Case, seed: Any) -> None:
    X, y, _ = case.data()
    model = clone(case.estimator).set_params(random_state=seed).fit(X, y)
    assert len(case.output(model, X)) == len(X)


@over("random")
def test_the_same_seed_gives_the_same_bits(case: Case) -> None:
    X, y, _ = case.data()
    first, second = (clone(case.estimator).set_params(random_state=3).fit(X, y) for _ in range(2))
    assert_same_bits(fitted_attributes(first), fitted_attributes(second))
