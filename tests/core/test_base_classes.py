"""Base classes derive all kinds of predictions from one method of a chunk, for arrays, files and Dask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet
from scipy import special
from sklearn.base import is_classifier, is_clusterer, is_regressor
from sklearn.utils import get_tags

import summula
from summula.core.data import chunks
from summula.core.errors import DataError
from summula.core.estimator.classifier import GenerativeClassifier, ScoreClassifier
from summula.core.estimator.clusterer import Clusterer, Density
from summula.core.estimator.regressor import Regressor
from summula.core.estimator.transformer import Transformer
from summula.core.numerics.statistics import Gram
from summula.linear_model import Ridge

pytestmark = pytest.mark.filterwarnings("ignore:X has feature names", "ignore:X does not have valid feature names")

rng = np.random.default_rng(1)
X = rng.normal(size=(1200, 3)) + np.repeat([[0.0], [3.0]], 600, axis=0)
LABELS = np.repeat(["low", "high"], 600)
WEIGHT = rng.integers(0, 3, 1200).astype(float)


class Centres(GenerativeClassifier):
    """Classes about given centres with given priors; only the labels are learned."""

    def __init__(self, priors=(0.5, 0.5)):
        self.priors = priors

    def fit(self, X, y, sample_weight=None):
        with self._fitting(X, y, sample_weight):
            self.centres_ = np.array([[3.0] * 3, [0.0] * 3])
        return self

    def _log_joint(self, chunk):
        far = ((chunk.X[:, None, :] - self.centres_) ** 2).sum(axis=2) / 2
        with np.errstate(divide="ignore"):
            return np.log(self.priors) - far


class Sign(ScoreClassifier):
    """The second class where the sum of the columns is positive."""

    def fit(self, X, y):
        with self._fitting(X, y):
            self.fitted_ = True
        return self

    def _scores(self, chunk):
        return np.asarray(chunk.X.sum(axis=1, keepdims=True))


class Sums(Regressor):
    """The sum, and the difference, of the columns."""

    def fit(self, X, y=None, sample_weight=None):
        with self._fitting(X, y, sample_weight):
            self.fitted_ = True
        return self

    def _predicted(self, chunk):
        return np.column_stack([chunk.X.sum(axis=1), chunk.X[:, 0] - chunk.X[:, 1]])

    def _n_outputs(self):
        return 2


class Doubled(Transformer):
    """Every column and its double."""

    def fit(self, X, y=None):
        with self._fitting(X, needs_y=False):
            self.fitted_ = True
        return self

    def _n_outputs(self):
        return 2 * self.n_features_in_

    def _write_rows(self, chunk, out):
        out[:, : self.n_features_in_] = chunk.X
        out[:, self.n_features_in_ :] = 2 * chunk.X


class Means(Clusterer):
    """Clusters about 0 and 3."""

    def fit(self, X, y=None, sample_weight=None):
        with self._fitting(X, None, sample_weight, needs_y=False):
            self.fitted_ = True
        return self

    def _distances(self, chunk):
        return np.stack([(chunk.X**2).sum(axis=1), ((chunk.X - 3) ** 2).sum(axis=1)], axis=1)


class Normal(Density):
    """A normal distribution about the mean, with variance 1."""

    def fit(self, X, y=None, sample_weight=None):
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            self.mean_ = run.sum(Gram, run.origin()).mean
        return self

    def _log_density(self, chunk):
        return -((chunk.X - self.mean_) ** 2).sum(axis=1) / 2 - 1.5 * np.log(2 * np.pi)


class Hungry(Means):
    """A model that needs its rows in memory."""

    _streaming_alternative = "MiniBatchMeans"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)
    with summula.engine("threads", chunk_rows=64):
        yield


FITTED = {
    "Centres": Centres().fit(X, LABELS),
    "Sign": Sign().fit(X, LABELS),
    "Sums": Sums().fit(X, np.column_stack([X[:, 0], X[:, 1]])),
    "Doubled": Doubled().fit(X),
    "Means": Means().fit(X),
    "Normal": Normal().fit(X),
}
METHODS = [
    ("Centres", "predict"),
    ("Centres", "predict_proba"),
    ("Centres", "predict_log_proba"),
    ("Centres", "predict_joint_log_proba"),
    ("Centres", "score_samples"),
    ("Sign", "predict"),
    ("Sign", "decision_function"),
    ("Sums", "predict"),
    ("Doubled", "transform"),
    ("Means", "predict"),
    ("Normal", "score_samples"),
]
methods = pytest.mark.parametrize(("name", "method"), METHODS, ids=lambda word: word)


def scanned(folder: Path, **more: Any) -> Any:
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], **more})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=90)
    return summula.scan(folder / "rows.parquet")


@methods
def test_files_give_batches_of_what_the_array_gives(name, method, tmp_path):
    asked = getattr(FITTED[name], method)
    batches = asked(scanned(tmp_path))
    assert not isinstance(batches, np.ndarray)
    batches = list(batches)
    assert len(batches) > 1
    assert_array_equal(np.concatenate(batches), asked(X))


@methods
def test_dask_is_lazy_and_gives_what_the_array_gives(name, method):
    da = pytest.importorskip("dask.array")
    asked = getattr(FITTED[name], method)
    lazy = asked(da.from_array(X, chunks=(170, 3)))
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == asked(X).dtype
    assert_array_equal(lazy.compute(), asked(X))


@methods
def test_a_missing_value_is_located(name, method):
    if method == "transform":
        name = "Doubled"
    bad = X.copy()
    bad[321, 1] = np.nan
    with pytest.raises(DataError, match=r"Column 1 has 1 missing value \(NaN; first at row 321\)"):
        getattr(FITTED[name], method)(bad)
    bad[321, 1] = np.inf
    with pytest.raises(DataError, match=r"Column 1 has 1 infinite value \(inf; first at row 321\)"):
        getattr(FITTED[name], method)(bad)


def test_an_infinite_score_of_finite_rows_is_a_score():
    model = Centres(priors=(0.0, 1.0)).fit(X, LABELS)
    joint = model.predict_joint_log_proba(X)
    assert (joint[:, 0] == -np.inf).all()
    assert (model.predict(X) == "low").all()
    assert_array_equal(model.predict_proba(X), np.tile([0.0, 1.0], (1200, 1)))
    assert_array_equal(model.predict_log_proba(X), np.tile([-np.inf, 0.0], (1200, 1)))
    assert_allclose(model.score_samples(X), joint[:, 1], rtol=1e-14)


def test_probabilities_are_bayes_theorem():
    model = FITTED["Centres"]
    joint = model.predict_joint_log_proba(X)
    assert_allclose(model.predict_proba(X), np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True), rtol=1e-12)
    assert_allclose(model.score_samples(X), special.logsumexp(joint, axis=1), rtol=1e-14)
    assert_array_equal(model.predict(X), model.classes_[joint.argmax(axis=1)])


def test_a_single_score_is_that_of_the_second_class():
    model = FITTED["Sign"]
    assert_array_equal(model.decision_function(X), X.sum(axis=1))
    assert_array_equal(model.predict(X), np.where(X.sum(axis=1) > 0, "low", "high"))
    assert model.predict(np.zeros((1, 3)))[0] == "high"  # a score of 0 is the first class


@pytest.mark.parametrize("weight", [None, "w"])
def test_scores_of_files_are_those_of_arrays(weight, tmp_path):
    values = None if weight is None else WEIGHT
    files = scanned(tmp_path, label=LABELS, w=WEIGHT)
    model = Centres().fit(files, "label", "w")
    assert model.score(files, "label", weight) == pytest.approx(model.score(X, LABELS, values), rel=1e-14)
    columns = ["a", "b", "c", *(["w"] if weight else [])]
    density = Normal().fit(files.select(["a", "b", "c", "w"]), sample_weight="w")
    expected = np.average(density.score_samples(pd.DataFrame(X, columns=["a", "b", "c"])), weights=values)
    assert density.score(files.select(columns), sample_weight=weight) == pytest.approx(expected, rel=1e-13)


def test_predictions_are_written(tmp_path):
    files = scanned(tmp_path)
    for name, columns in (
        ("Centres", ["prediction"]),
        ("Sums", ["prediction0", "prediction1"]),
        ("Means", ["prediction"]),
    ):
        path = tmp_path / f"{name}.parquet"
        assert FITTED[name].predict_to(files, path) == 1200
        written = parquet.read_table(path)
        assert written.column_names == columns
        stacked = np.column_stack([column.to_numpy() for column in written.columns])
        assert_array_equal(stacked.reshape(FITTED[name].predict(X).shape), FITTED[name].predict(X))
    FITTED["Centres"].predict_to(files, tmp_path / "p.parquet", proba=True)
    assert parquet.read_table(tmp_path / "p.parquet").column_names == ["high", "low"]


def test_fit_predict_of_a_clustering_needs_no_labels_kept(tmp_path):
    assert_array_equal(Means().fit_predict(X), FITTED["Means"].predict(X))
    assert_array_equal(np.concatenate(list(Means().fit_predict(scanned(tmp_path)))), FITTED["Means"].predict(X))


def test_scikit_learn_knows_what_they_are():
    assert is_classifier(Centres())
    assert is_classifier(Sign())
    assert is_regressor(Sums())
    assert is_clusterer(Means())
    assert get_tags(Normal()).estimator_type == "density_estimator"
    assert get_tags(Doubled()).transformer_tags is not None
    assert not hasattr(Sign(), "predict_proba")
    assert not hasattr(Centres(), "decision_function")


def test_a_model_that_needs_its_rows_in_memory_names_the_alternative(tmp_path):
    words = "Hungry needs its rows in memory, but X is in files or a Dask collection: use MiniBatchMeans"
    with pytest.raises(DataError, match=words):
        Hungry().fit(scanned(tmp_path))
    model = Hungry().fit(X)
    with pytest.raises(DataError, match=words):
        model.predict(scanned(tmp_path))
    assert len(model.predict(X)) == 1200


def test_names_of_parameters_follow_the_constructor() -> None:
    class Narrow(Ridge):
        def __init__(self, alpha: float = 1.0) -> None:
            super().__init__(alpha)

    assert Narrow._get_param_names() == ["alpha"]
    assert "alpha" in Ridge._get_param_names() != ["alpha"]
    Narrow._get_param_names().append("other")  # a copy
    assert Narrow._get_param_names() == ["alpha"]
    Narrow.__init__ = lambda self, alpha=1.0, beta=2.0: None  # type: ignore[method-assign,assignment,misc]
    assert Narrow._get_param_names() == ["alpha", "beta"]
