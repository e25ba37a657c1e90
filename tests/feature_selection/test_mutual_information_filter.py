"""The filter by mutual information: tables of counts, bins, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score
from sklearn.utils.estimator_checks import check_estimator

import summula
from summula.core.errors import DataError, ParameterError
from summula.feature_selection import MutualInformationFilter

rng = np.random.default_rng(0)
N = 400
LABELS = rng.integers(0, 3, N)
X = np.column_stack(
    [
        LABELS == 1,  # informative, two values
        rng.integers(0, 5, N),  # noise, five values
        rng.normal(size=N) + 3.0 * LABELS,  # informative, many values
        rng.normal(size=N),  # noise
    ]
).astype(float)


def test_discrete_features_have_the_information_of_their_table():
    found = MutualInformationFilter(k=2).fit(X, LABELS)
    for j in (0, 1):
        assert found.mutual_information_[j] == pytest.approx(mutual_info_score(X[:, j], LABELS), abs=1e-12)
    edges = np.unique(np.quantile(X[:, 2], np.arange(1, 10) / 10, method="inverted_cdf"))
    binned = np.searchsorted(edges, X[:, 2], side="right")
    assert found.mutual_information_[2] == pytest.approx(mutual_info_score(binned, LABELS), abs=1e-12)
    assert np.bincount(binned).max() <= 50  # ten bins of about 40 rows
    assert found.get_support(indices=True).tolist() == [0, 2]
    np.testing.assert_array_equal(found.transform(X), X[:, [0, 2]])


def test_a_copy_of_the_target_has_its_entropy():
    y = np.repeat([0.0, 1.0], 50)
    found = MutualInformationFilter(k=1).fit(np.column_stack([y, np.ones(100)]), y)
    np.testing.assert_allclose(found.mutual_information_, [np.log(2), 0.0], atol=1e-12)


def test_targets_of_numbers_and_words():
    numbers = X[:, 2] + 0.1 * rng.normal(size=N)
    assert MutualInformationFilter(k=1).fit(X, numbers).get_support(indices=True).tolist() == [2]
    words = np.array(["a", "b", "c"])[LABELS]
    np.testing.assert_allclose(
        MutualInformationFilter().fit(X, words).mutual_information_,
        MutualInformationFilter().fit(X, LABELS).mutual_information_,
        rtol=1e-12,
    )


def test_weights_are_repetitions():
    weight = rng.integers(0, 3, N)
    rows = np.repeat(np.arange(N), weight)
    discrete = X[:, :2]
    np.testing.assert_allclose(
        MutualInformationFilter().fit(discrete, LABELS, weight).mutual_information_,
        MutualInformationFilter().fit(discrete[rows], LABELS[rows]).mutual_information_,
        rtol=1e-12,
    )


def test_frames_files_and_saved_models(tmp_path):
    frame = pd.DataFrame(X, columns=["is b", "die", "height", "noise"])
    model = MutualInformationFilter(k=2).fit(frame, LABELS)
    assert model.get_feature_names_out().tolist() == ["is b", "height"]
    frame.assign(y=LABELS).to_parquet(tmp_path / "t.parquet")
    streamed = MutualInformationFilter(k=2).fit(summula.scan(tmp_path / "t.parquet"), "y")
    np.testing.assert_array_equal(streamed.mutual_information_, model.mutual_information_)
    summula.save(model, tmp_path / "model")
    np.testing.assert_array_equal(summula.load(tmp_path / "model").transform(frame), model.transform(frame))


def test_scikit_learn_checks():
    check_estimator(MutualInformationFilter(k=2))


def test_bad_input():
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(DataError, match="row 7"):
        MutualInformationFilter().fit(bad, LABELS)
    with pytest.raises(ParameterError, match="'k' parameter"):
        MutualInformationFilter(k=0).fit(X, LABELS)
    with pytest.raises(DataError, match="cannot be ordered"):
        MutualInformationFilter().fit(X[:2], np.array(["a", 1], object))
