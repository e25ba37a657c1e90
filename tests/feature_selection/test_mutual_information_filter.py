"""The filter by mutual information: tables of counts, bins, files."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import summula
from summula.core.errors import DataError, ParameterError
from summula.feature_selection import MutualInformationFilter
from summula.naive_bayes import MixedNB

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


def test_whole_numbers_with_many_values_are_not_classes():
    """214 values of 442 rows as classes would give every feature, noise too, about (10 - 1) (214 - 1) / (2 * 442) nats."""
    data, target = load_diabetes(return_X_y=True)
    noisy = np.column_stack([data, rng.normal(size=len(target))])
    found = MutualInformationFilter(k=2).fit(noisy, target)
    np.testing.assert_array_equal(
        found.mutual_information_, MutualInformationFilter(discrete_target=False).fit(noisy, target).mutual_information_
    )
    assert found.get_support(indices=True).tolist() == [2, 8]  # bmi and s5
    words = np.array([f"t{value:g}" for value in target])  # text is never cut into bins
    assert MutualInformationFilter().fit(data, words).mutual_information_.max() > 1.0
    many = np.arange(2_000) % 26  # letters of an alphabet
    assert MutualInformationFilter().fit(many[:, None] % 2.0, many).mutual_information_[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_normal_pairs(rho):
    """-log(1 - rho^2) / 2 for continuous pairs (Cover and Thomas); bins lose a little, and chance adds a little."""
    z = np.random.default_rng(1).normal(size=(2, 50_000))
    found = MutualInformationFilter(n_bins=30).fit(z[0][:, None], rho * z[0] + np.sqrt(1 - rho**2) * z[1])
    assert found.mutual_information_[0] == pytest.approx(-0.5 * np.log(1 - rho**2), abs=0.03)


def test_symmetric_channel():
    """A bit that is flipped with probability 1/10: log 2 - H(1/10) nats, exactly, for a table in these proportions."""
    bit, y = np.repeat([0, 1], 100), np.concatenate([np.repeat([0, 1], [90, 10]), np.repeat([1, 0], [90, 10])])
    entropy = -(0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    assert MutualInformationFilter().fit(bit[:, None], y).mutual_information_[0] == pytest.approx(np.log(2) - entropy)


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


def _table():
    own = np.random.default_rng(5)
    towns = np.where(LABELS == 0, "Bonn", own.choice(["Ulm", "Trier", "Bonn"], N)).astype(object)
    towns[::40] = None
    return pd.DataFrame(
        {
            "town": towns,
            "noise": own.choice(list("xyz"), N),
            "flag": LABELS == 1,
            "height": X[:, 2],
            "die": pd.Categorical(X[:, 1].astype(int)),
        }
    )


def test_categories_have_the_information_of_their_table():
    frame = _table()
    model = MutualInformationFilter(k=3).fit(frame, LABELS)
    for j, column in enumerate([frame["town"].fillna("missing"), frame["noise"], frame["flag"], None, frame["die"]]):
        if column is not None:
            assert model.mutual_information_[j] == pytest.approx(mutual_info_score(column, LABELS), abs=1e-12)
    assert model.is_categorical_.tolist() == [True, True, False, False, True]
    assert model.category_levels_ == {"town": ("Bonn", "Trier", "Ulm"), "noise": ("x", "y", "z")}
    pd.testing.assert_frame_equal(model.transform(frame), frame[["town", "flag", "height"]])
    with pytest.raises(DataError, match="'town' contains numbers, but was text"):
        model.transform(frame.assign(town=1.0))
    with pytest.raises(DataError, match="Column 'height' has 1 missing value"):
        MutualInformationFilter().fit(frame.assign(height=np.where(np.arange(N) == 7, np.nan, X[:, 2])), LABELS)


def test_containers_of_categories_agree(tmp_path):
    frame = _table().assign(y=LABELS)
    model = MutualInformationFilter(k=3).fit(frame, "y")
    names = model.get_feature_names_out().tolist()
    frame.to_parquet(tmp_path / "t.parquet")
    others = [pl.from_pandas(frame), pa.Table.from_pandas(frame), dd.from_pandas(frame, npartitions=3),
              summula.scan(tmp_path / "t.parquet")]  # fmt: skip
    for other in others:
        same = MutualInformationFilter(k=3).fit(other, "y")
        np.testing.assert_array_equal(same.mutual_information_, model.mutual_information_)
        selected = same.transform(other)
        assert type(selected) is type(other)
        assert list(getattr(selected, "column_names", selected.columns)) == names
    assert list(MutualInformationFilter(k=3).fit(others[2], "y").transform(others[2]).compute().columns) == names
    summula.save(model, tmp_path / "model")
    pd.testing.assert_frame_equal(summula.load(tmp_path / "model").transform(frame), model.transform(frame))
    words = frame.assign(y=np.array(["a", "b", "c"])[LABELS])
    by_name = MutualInformationFilter(k=3).fit(words, "y")
    np.testing.assert_array_equal(by_name.mutual_information_, model.mutual_information_)
    assert list(by_name.transform(words).columns) == names
    assert make_pipeline(MutualInformationFilter(k=3), MixedNB()).fit(_table(), LABELS).score(_table(), LABELS) > 0.8


def test_scikit_learn_checks():
    check_estimator(MutualInformationFilter(k=2))


def test_bad_input():
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(DataError, match="row 7"):
        MutualInformationFilter().fit(bad, LABELS)
    with pytest.raises(ParameterError, match="'k' parameter"):
        MutualInformationFilter(k=0).fit(X, LABELS)
    with pytest.raises(DataError, match="takes one target; y has 2 columns"):
        MutualInformationFilter().fit(X, np.column_stack([LABELS, LABELS]))
    with pytest.raises(DataError, match="cannot be ordered"):
        MutualInformationFilter().fit(X[:2], np.array(["a", 1], object))
