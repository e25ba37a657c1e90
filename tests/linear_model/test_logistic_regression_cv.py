"""LogisticRegressionCV: scikit-learn's attributes and selections, the one-standard-error rule, files, weights, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as theirs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, get_scorer, make_scorer, recall_score
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold

import summula
from summula import DataError, ParameterError
from summula.linear_model import LogisticRegression, LogisticRegressionCV
from summula.linear_model.l1 import likelihood as l1_likelihood

Array = NDArray[Any]
PLAIN: dict[str, Any] = {"scoring": "neg_log_loss", "use_legacy_attributes": False, "Cs": [0.05, 0.5, 5.0], "cv": 4}


def data(K: int = 2, n: int = 150, d: int = 6) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng([K, n, d])
    X = rng.standard_normal((n, d))
    slopes = np.zeros((d, K))
    slopes[:3] = 1.5 * rng.standard_normal((3, K))
    codes = (X @ slopes + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, np.array(["no", "yes", "maybe"])[codes], rng.integers(1, 4, n).astype(float)


def arrays(value: Any) -> list[Array]:
    """Return the arrays of an attribute, which may be a dict by label."""
    return list(value.values()) if isinstance(value, dict) else [np.asarray(value)]


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("l1_ratios", [(0.0,), (1.0,), (0.2, 0.8)])
@pytest.mark.parametrize("K", [2, 3])
def test_scikit_learn_agrees(K: int, l1_ratios: tuple[float, ...], legacy: bool) -> None:
    X, y, w = data(K)
    options = PLAIN | {"l1_ratios": l1_ratios, "use_legacy_attributes": legacy}
    ours = LogisticRegressionCV(**options, tol=1e-7).fit(X, y, w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = theirs.LogisticRegressionCV(**options, solver="saga", tol=1e-7, max_iter=5_000).fit(X, y, w)
    for name in ("C_", "l1_ratio_", "Cs_", "l1_ratios_"):
        np.testing.assert_allclose(np.asarray(getattr(ours, name), float), np.asarray(getattr(other, name), float))
    for name, tolerance in (("scores_", 1e-4), ("coefs_paths_", 1e-2)):  # (saga stops early where C is large)
        mine, yours = getattr(ours, name), getattr(other, name)
        assert type(mine) is type(yours)
        if legacy:
            assert list(mine) == list(yours)
        for a, b in zip(arrays(mine), arrays(yours), strict=True):
            np.testing.assert_allclose(a, b, atol=tolerance)
    assert ours.n_iter_.shape == other.n_iter_.shape
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.score(X, y), other.score(X, y), atol=1e-4)
    assert ours.certificate_.verify(X, y, w)


@pytest.mark.parametrize("K", [2, 3])
def test_paths_are_the_fits_of_the_splits(K: int) -> None:
    X, y, w = data(K)
    splits = list(StratifiedKFold(4).split(X, y))
    model = LogisticRegressionCV(**PLAIN | {"cv": splits}, l1_ratios=(0.5, 1.0), tol=1e-8).fit(X, y, w)
    for k, (train, test) in enumerate(splits):
        alone = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-8).fit(X[train], y[train], w[train])
        np.testing.assert_allclose(model.coefs_paths_[k, 1, 1, :, :-1], alone.coef_, atol=1e-7)
        P = alone.predict_proba(X[test])[np.arange(len(test)), np.searchsorted(alone.classes_, y[test])]
        np.testing.assert_allclose(model.scores_[k, 1, 1], np.average(np.log(P), weights=w[test]), rtol=1e-7)
    whole = LogisticRegression(C=model.C_, l1_ratio=model.l1_ratio_, tol=1e-8).fit(X, y, w)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-7)


def test_many_columns() -> None:
    X, y, _ = data(2, 60, 400)
    model = LogisticRegressionCV(**PLAIN, l1_ratios=(1.0,), tol=1e-7).fit(X, y)
    by_entries = LogisticRegressionCV(**PLAIN, l1_ratios=(1.0,), tol=1e-7).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(by_entries.scores_, model.scores_, atol=1e-7)
    np.testing.assert_allclose(by_entries.coef_, model.coef_, atol=1e-6)


def test_one_standard_error() -> None:
    X, y, _ = data()
    least, simple = (
        LogisticRegressionCV(**PLAIN | {"Cs": np.geomspace(0.02, 20.0, 15)}, l1_ratios=(1.0,), select=select).fit(X, y)
        for select in ("min", "1se")
    )
    scores = least.scores_[:, 0]
    best = scores.mean(axis=0).argmax()
    error = scores[:, best].std(ddof=1) / np.sqrt(len(scores))
    near = scores.mean(axis=0) >= scores.mean(axis=0)[best] - error
    assert simple.C_ == least.Cs_[near].min() < least.C_ == least.Cs_[best]


@pytest.mark.parametrize("K", [2, 3])
def test_averages_of_the_splits(K: int) -> None:
    X, y, _ = data(K)
    model = LogisticRegressionCV(**PLAIN, l1_ratios=(0.0, 1.0), refit=False).fit(X, y)
    best = [np.unravel_index(s.T.argmax(), s.T.shape) for s in model.scores_]
    picked = [model.coefs_paths_[k, ratio, C] for k, (C, ratio) in enumerate(best)]
    np.testing.assert_allclose(model.coef_, np.mean(picked, axis=0)[:, :-1])
    np.testing.assert_allclose(model.C_, np.mean([model.Cs_[C] for C, _ in best]))
    assert not hasattr(model, "certificate_")
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("scoring", [None, "roc_auc_ovr", "f1_macro", make_scorer(recall_score, average="macro")])
def test_scorers_are_scikit_learns(scoring: Any) -> None:
    X, y, _ = data(3)
    options = PLAIN | {"scoring": scoring, "l1_ratios": (0.0,)}
    ours = LogisticRegressionCV(**options, tol=1e-8).fit(X, y)
    other = theirs.LogisticRegressionCV(**options, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.scores_, other.scores_, atol=1e-9)


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "f1", "f1_macro", "neg_brier_score"])
def test_scorers_of_two_classes(scoring: str) -> None:
    X, y, _ = data()
    y = y == "yes"
    splits = list(StratifiedKFold(3).split(X, y))
    model = LogisticRegressionCV(**PLAIN | {"scoring": scoring, "cv": splits}, l1_ratios=(0.0,), tol=1e-8).fit(X, y)
    train, test = splits[1]
    alone = LogisticRegression(C=0.05, tol=1e-8).fit(X[train], y[train])
    np.testing.assert_allclose(model.scores_[1, 0, 0], get_scorer(scoring)(alone, X[test], y[test]), rtol=1e-7)


@pytest.mark.parametrize("K", [2, 3])
def test_the_accuracy_is_that_of_the_scorer(K: int) -> None:
    X, y, weight = data(K)
    options = PLAIN | {"l1_ratios": (0.0,)}
    direct = LogisticRegressionCV(**options | {"scoring": "accuracy"}).fit(X, y, sample_weight=weight)
    asked = LogisticRegressionCV(**options | {"scoring": make_scorer(accuracy_score)}).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(direct.scores_, asked.scores_, rtol=1e-12)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0), GroupKFold(3)])
@pytest.mark.parametrize("K", [2, 3])
def test_files_give_the_same(K: int, cv: Any, tmp_path: Any) -> None:
    X, y, w = data(K, 300)
    groups = np.arange(300) // 20
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)]).assign(y=y, w=w)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
    model = LogisticRegressionCV(**PLAIN | {"cv": cv}, l1_ratios=(0.0, 1.0), tol=1e-8)
    more = {"groups": groups} if isinstance(cv, GroupKFold) else {}
    expected = model.fit(X, y, w, **more)
    scores, coef = expected.scores_, expected.coef_
    streamed = model.fit(summula.scan(tmp_path / "rows.parquet"), "y", sample_weight="w", **more)
    np.testing.assert_allclose(streamed.scores_, scores, atol=1e-9)
    np.testing.assert_allclose(streamed.coef_, coef, atol=1e-9)


def test_files_of_many_columns(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, w = data(2, 200, 12)
    pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(y=y, w=w).to_parquet(tmp_path / "rows.parquet")
    model = LogisticRegressionCV(**PLAIN, l1_ratios=(1.0,), tol=1e-8)
    expected = model.fit(X, y, w).coefs_paths_
    monkeypatch.setattr(l1_likelihood, "_WHOLE_STREAM", 0)
    monkeypatch.setattr(l1_likelihood, "_WHOLE", 0)
    monkeypatch.setattr(l1_likelihood, "_FIRST", 2)
    np.testing.assert_allclose(model.fit(X, y, w).coefs_paths_, expected, atol=1e-7)
    streamed = model.fit(summula.scan(tmp_path / "rows.parquet"), "y", sample_weight="w")
    np.testing.assert_allclose(streamed.coefs_paths_, expected, atol=1e-7)


def test_a_class_that_a_split_has_no_row_of() -> None:
    X, y, _ = data(3, 90)
    rows = np.flatnonzero(y != "maybe")
    splits = [(rows, np.arange(90)), (np.arange(90), rows)]
    model = LogisticRegressionCV(**PLAIN | {"cv": splits}, l1_ratios=(0.0,), tol=1e-8).fit(X, y)
    coef, intercept = model.coefs_paths_[0, 0, 1, :, :-1], model.coefs_paths_[0, 0, 1, :, -1]
    scores = X @ coef.T + intercept
    assert (scores[:, 0] < scores[:, 1:].min(axis=1) - 20).all()
    # Two scores that share a penalty, v and -v, are one score 2 v with half of it.
    alone = LogisticRegression(C=2 * 0.5, tol=1e-8).fit(X[rows], y[rows])
    np.testing.assert_allclose(scores[:, 2] - scores[:, 1], alone.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 3.0}])
def test_class_weights(class_weight: Any) -> None:
    X, y, _ = data()
    options = PLAIN | {"class_weight": class_weight, "l1_ratios": (0.0,)}
    ours = LogisticRegressionCV(**options, tol=1e-8).fit(X, y)
    other = theirs.LogisticRegressionCV(**options, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coefs_paths_, other.coefs_paths_, atol=1e-4)


def test_defaults_warn_as_scikit_learns_do() -> None:
    X, y, _ = data()
    with pytest.warns(FutureWarning) as ours:
        model = LogisticRegressionCV().fit(X, y)
    with pytest.warns(FutureWarning) as others:
        theirs.LogisticRegressionCV().fit(X, y)
    assert {str(one.message)[:40] for one in others} == {str(one.message)[:40] for one in ours}
    assert model.l1_ratios_.tolist() == [None]
    assert model.Cs_.shape == (10,)
    with pytest.warns(FutureWarning, match="penalty"):
        old = LogisticRegressionCV(penalty="l1", l1_ratios=None, **PLAIN).fit(X, y)
    np.testing.assert_array_equal(old.coef_, LogisticRegressionCV(l1_ratios=(1.0,), **PLAIN).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"l1_ratios": (0.5, 1.5)}, "l1_ratios must be an array-like of numbers between 0 and 1"),
        ({"l1_ratios": ()}, "l1_ratios must be"),
        ({"Cs": [0.0, 1.0]}, r"Cs\[0\] is 0.0"),
        ({"Cs": []}, "Cs must be an int or a non-empty list of positive numbers"),
        ({"Cs": 0}, "'Cs' parameter"),
        ({"scoring": "loveliness"}, "'scoring' parameter"),
        ({"select": "1se", "refit": False}, "needs refit=True"),
        ({"class_weight": {"perhaps": 1.0}}, "class_weight dict must have the class labels"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], words: str) -> None:
    X, y, _ = data()
    with pytest.raises(ParameterError, match=words):
        LogisticRegressionCV(**PLAIN | {"l1_ratios": (0.0,)} | parameters).fit(X, y)


def test_bad_splits() -> None:
    X, y, _ = data()
    order = np.argsort(y)
    half = [(np.flatnonzero(y[order] == "no"), np.flatnonzero(y[order] == "yes"))]
    with pytest.raises(DataError, match="Split 0 has training rows of one class only"):
        LogisticRegressionCV(**PLAIN | {"cv": half}, l1_ratios=(0.0,)).fit(X[order], y[order])
    with pytest.raises(DataError, match="no splits"):
        LogisticRegressionCV(**PLAIN | {"cv": []}, l1_ratios=(0.0,)).fit(X, y)
    with pytest.raises(ParameterError, match="enable_metadata_routing"):
        LogisticRegressionCV(**PLAIN, l1_ratios=(0.0,)).fit(X, y, colour=1)


def test_saving(tmp_path: Any) -> None:
    X, y, _ = data()
    model = LogisticRegressionCV(**PLAIN, l1_ratios=(1.0,)).fit(X, y)
    summula.save(model, tmp_path / "model")
    np.testing.assert_array_equal(summula.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


def test_scores_other_than_the_accuracy(tmp_path: Any) -> None:
    import pandas as pd

    X, y, _ = data()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = summula.scan(tmp_path / "rows.parquet")
    model = LogisticRegressionCV(**PLAIN | {"scoring": "neg_log_loss"}, l1_ratios=(0.0,)).fit(frame, "y")
    assert model.score(frame, "y") == model.score(frame.drop(columns="y"), y)
    with pytest.raises(DataError, match="'neg_log_loss' needs all rows in memory.*scoring=None"):
        model.score(scan, "y")
    model.set_params(scoring=None)
    assert model.score(scan, "y") == model.score(frame, "y")
