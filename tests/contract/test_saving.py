"""Promises 10 and 11: saved, pickled or copied, a model is the same to the bit; the same seed gives the same bits."""

from __future__ import annotations

import copy
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
from tests.contract.registry import SIZES, Case, over


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


@ways
@pytest.mark.parametrize("size", SIZES)
@over()
def test_a_model_comes_back_to_the_bit(case: Case, size: str, again: Any, tmp_path: Path) -> None:
    X, y, weight = case.data(size)
    model = case.fit(X, y, weight if case.weighted else None)
    assert_same_model(case, model, again(model, tmp_path), X)


@ways
@over()
def test_a_model_of_a_frame_comes_back_with_its_names(case: Case, again: Any, tmp_path: Path) -> None:
    data = case.data()
    frame = storage.FRAMES["polars"](data.X)
    model = case.fit(frame, data.y)
    assert_same_model(case, model, again(model, tmp_path), frame)


@ways
@over("wide_sparse")
def test_a_model_of_an_iteration_comes_back(case: Case, again: Any, tmp_path: Path) -> None:
    X, y = case.wide_data()
    model = case.fit(X, y)
    assert_same_model(case, model, again(model, tmp_path), X)


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
    model = again(case.fit(X, y), tmp_path)
    other = case.data("large", seed=2)
    assert_same_bits(fitted_attributes(case.fit(other.X, other.y)), fitted_attributes(model.fit(other.X, other.y)))


@over("certified")
def test_the_certificate_comes_back_and_still_verifies(case: Case, tmp_path: Path) -> None:
    X, y, weight = case.data()
    model = saved_and_loaded(case.fit(X, y, weight), tmp_path)
    assert model.certificate_.verify(X, y, weight)


@over()
def test_a_pickle_holds_no_training_data(case: Case) -> None:
    X, y, _ = case.data("large")
    # A model keeps sums of pairs of its terms (a few times p^2 numbers), however many rows there were.
    model = case.fit(X, y)
    terms = np.size(getattr(model, "coef_", X[0])) + 1
    if case.parametric:
        assert len(pickle.dumps(model)) < 8192 + 4 * 8 * terms**2
    assert len(pickle.dumps(model)) < X.nbytes


@over("random")
@pytest.mark.parametrize("seed", [0, np.int64(7), None, np.random.default_rng(1), np.random.RandomState(2)],
                         ids=lambda seed: type(seed).__name__)  # fmt: skip
def test_random_state_takes_a_number_a_generator_or_nothing(case: Case, seed: Any) -> None:
    X, y, _ = case.data()
    assert clone(case.estimator).set_params(random_state=seed).fit(X, y).predict(X).shape == y.shape


@over("random")
def test_the_same_seed_gives_the_same_bits(case: Case) -> None:
    X, y, _ = case.data()
    first, second = (clone(case.estimator).set_params(random_state=3).fit(X, y) for _ in range(2))
    assert_same_bits(fitted_attributes(first), fitted_attributes(second))
