"""`forget` rejects rows that were not part of the fit, if rows are tracked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import summula
from summula.core.errors import DataError, ParameterError
from summula.decomposition import PCA
from summula.linear_model import LinearRegression, Ridge
from summula.naive_bayes import GaussianNB, MultinomialNB
from summula.preprocessing import StandardScaler

RNG = np.random.default_rng(0)
X = RNG.exponential(size=(60, 3)) * (RNG.random((60, 3)) < [1.0, 0.7, 0.7])
Y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=60)
WORDS = np.where(np.median(Y) < Y, "high", "low")
MODELS = [
    (LinearRegression, Y),
    (Ridge, Y),
    (GaussianNB, WORDS),
    (MultinomialNB, WORDS),
    (StandardScaler, None),
    (PCA, None),
]


def state(model: Any) -> Any:
    names = ("coef_", "mean_", "theta_", "feature_log_prob_")
    return next(getattr(model, name) for name in names if hasattr(model, name))


@pytest.mark.parametrize(("cls", "y"), MODELS, ids=lambda one: getattr(one, "__name__", ""))
def test_unseen_rows_are_refused_and_nothing_changes(cls: Any, y: Any) -> None:
    model = cls().track_rows().fit(X[:50], None if y is None else y[:50])
    before = state(model)
    with pytest.raises(DataError, match=rf"{cls.__name__} was not fitted to 1 of these rows \(the first is row 2\)"):
        model.forget(np.vstack([X[:2], [[99.0, 1.0, 1.0]]]), None if y is None else y[:3])
    np.testing.assert_array_equal(state(model), before)


@pytest.mark.parametrize(("cls", "y"), MODELS, ids=lambda one: getattr(one, "__name__", ""))
def test_rows_can_be_forgotten_once(cls: Any, y: Any) -> None:
    first, rest, both = (
        (X[rows],) if y is None else (X[rows], y[rows]) for rows in (slice(10), slice(10, 50), slice(50))
    )
    model = cls().track_rows().fit(*both).forget(*first)
    model.partial_fit(*first).forget(*first)
    np.testing.assert_allclose(state(model), state(cls().fit(*rest)), atol=1e-10)
    with pytest.raises(DataError, match="was not fitted to 10 of these rows"):
        model.forget(*first)


def test_targets_and_weights_belong_to_rows() -> None:
    model = LinearRegression().track_rows().fit(X, Y, np.r_[2.0, np.ones(59)])
    for wrong in ((X[:1], Y[:1] + 1.0, [2.0]), (X[:1], Y[:1], [1.0]), (X[:1], Y[:1])):
        with pytest.raises(DataError, match="was not fitted to 1 of these rows"):
            model.forget(*wrong)
    model.forget(X[:1], Y[:1], [2.0])
    model.forget(X[1:2], Y[1:2])  # a weight of 1 is none
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X[2:], Y[2:]).coef_)


def test_a_repeated_row_can_be_forgotten_as_often_as_it_was_fitted() -> None:
    model = StandardScaler().track_rows().fit(np.vstack([X, X[:1]]))
    model.forget(X[:1]).forget(X[:1])
    with pytest.raises(DataError, match="was not fitted to 1 of these rows"):
        model.forget(X[:1])


def test_storage_and_chunks_do_not_matter() -> None:
    model = Ridge().track_rows().fit(sparse.csr_array(X), Y)
    with summula.engine(chunk_rows=7):
        model.forget(np.asfortranarray(X[:20]), Y[:20])
    np.testing.assert_allclose(model.coef_, Ridge().fit(X[20:], Y[20:]).coef_)


def test_merged_and_saved_models_know_their_rows(tmp_path: Path) -> None:
    a, b = (GaussianNB().track_rows().fit(X[rows], WORDS[rows]) for rows in (slice(0, 30), slice(30, 60)))
    whole = summula.combine([a, b])
    summula.save(whole, tmp_path / "m")
    again = summula.load(tmp_path / "m").forget(X[40:50], WORDS[40:50])
    assert len(again._row_hashes) == 50
    with pytest.raises(ParameterError, match="Only one of the two models tracks its rows"):
        a.merge(GaussianNB().fit(X, WORDS))


def test_a_fitted_model_cannot_begin_to_track() -> None:
    with pytest.raises(ParameterError, match="call track_rows before fit"):
        LinearRegression().fit(X, Y).track_rows()
