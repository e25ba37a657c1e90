"""Training, validation and test rows; choosing without the test rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.tree import DecisionTreeClassifier

import summula
from summula.core.errors import DataError, HoldoutWarning, ParameterError
from summula.linear_model import LinearRegression, Ridge
from summula.model_selection import KFold, Split, select
from summula.naive_bayes import GaussianNB

X, Y = load_breast_cancer(return_X_y=True)
A, B = load_diabetes(return_X_y=True)


def parts(split):
    return split.train_indices, split.validation_indices, split.test_indices


def test_every_row_is_in_one_part_and_classes_keep_their_shares():
    split = Split(X, Y, test=0.25, validation=0.25, random_state=0)
    assert sorted(np.concatenate(parts(split))) == list(range(len(Y)))
    assert [len(part) for part in parts(split)] == [285, 142, 142]
    for part in parts(split):
        assert Y[part].sum() == pytest.approx(Y.mean() * len(part), abs=2)  # each class within a row of its share
    assert len(split.development().y) == 427


def test_groups_stay_together_and_time_goes_forward():
    groups = np.repeat(np.arange(50), 10)
    split = Split(np.arange(500.0)[:, None], np.arange(500.0), groups=groups, validation=0.2, random_state=1)
    owners = [set(groups[part]) for part in parts(split)]
    assert [len(one) for one in owners] == [30, 10, 10]
    assert set.union(*owners) == set(range(50))
    split = Split(np.arange(100.0)[:, None], np.arange(100.0), ordered=True, validation=0.1)
    assert [part[[0, -1]].tolist() for part in parts(split)] == [[0, 69], [70, 79], [80, 99]]


def test_the_test_rows_are_for_one_use():
    split = Split(pd.DataFrame(X), pd.Series(Y), random_state=0)
    split.test()
    with pytest.warns(HoldoutWarning, match="used for the second time"):
        split.test()
    assert split.n_test_uses == 2
    assert "test used 2 times" in repr(split)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"test": 0.0}, "test must be a fraction"), ({"test": 0.6, "validation": 0.4}, "leave no rows"),
     ({"groups": [1, 2]}, "one group for each"), ({"groups": [1] * 569, "ordered": True}, "not both")],
)  # fmt: skip
def test_bad_options(options, words):
    with pytest.raises((ParameterError, DataError), match=words):
        Split(X, Y, **options)
    with pytest.raises(DataError, match="one target per row"):
        Split(X, Y[1:])
    with pytest.raises(ParameterError, match="no validation rows"):
        Split(X, Y).validation()


def test_targets_that_cannot_be_classes():
    assert len(Split(X, np.where(np.arange(569) % 50, X[:, 0], np.nan)).train_indices) == 455
    with pytest.raises(DataError, match="y has missing labels"):
        Split(X[:4], np.array(["a", None, "b", "a"], object))
    for stratify in (Y, "yes", 1):
        with pytest.raises(ParameterError, match="stratify must be True, False or 'auto'"):
            Split(X, Y, stratify=stratify)
    with pytest.raises(ParameterError, match="one label per row"):
        Split(X, np.column_stack([Y, Y]), stratify=True)


def test_a_second_choice_warns_that_the_test_rows_were_used_before():
    split = Split(X, Y, random_state=0)
    assert "used once." in select(GaussianNB(), split).verdict
    with pytest.warns(HoldoutWarning, match="second time"):
        again = select(GaussianNB(var_smoothing=1e-3), split)
    assert again.n_test_uses == 2
    assert "used 2 times: if the candidates depend" in again.verdict


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_candidates_that_fail_are_not_chosen(validation):
    split = Split(A, B, validation=validation, random_state=0)
    with pytest.warns(
        FitFailedWarning, match="Candidate Ridge cannot be chosen, since it failed: The 'alpha' parameter"
    ):
        found = select([Ridge(-1.0), LinearRegression()], split)
    assert found.best_name == "LinearRegression"
    assert np.isnan(found.table[0].score)
    with pytest.raises(ParameterError, match="alpha"):
        select(Ridge(-1.0), A, B)


def test_several_targets():
    found = select([LinearRegression(), Ridge()], A, np.column_stack([B, 2 * B]), random_state=0)
    one = select([LinearRegression(), Ridge()], A, B, random_state=0)
    assert found.test.estimate == pytest.approx(np.sqrt(2.5) * one.test.estimate)  # (1 + 4) / 2
    assert found.test.n == one.test.n


def test_choice_never_sees_the_test_rows():
    split = Split(A, B, random_state=3)
    changed = B.copy()
    changed[split.test_indices] += 1e6  # a selection or a refit that used them would differ
    grid = (Ridge(), {"alpha": [1e-3, 1e-1, 10.0]})
    one, two = (select([LinearRegression(), grid], A, y, random_state=3) for y in (B, changed))
    np.testing.assert_array_equal(one.split.test_indices, split.test_indices)
    assert [c.score for c in one.table] == [c.score for c in two.table]
    np.testing.assert_array_equal(one.best_estimator.coef_, two.best_estimator.coef_)
    assert one.split.n_test_uses == 1
    assert two.test.estimate > 1e5 > one.test.estimate
    assert [c.name for c in one.table][1:] == ["Ridge(alpha=0.001)", "Ridge(alpha=0.1)", "Ridge(alpha=10.0)"]


def test_classifiers_are_certified():
    found = select({"bayes": GaussianNB(), "tree": DecisionTreeClassifier(random_state=0)}, X, Y, random_state=0)
    rows = found.split._rows(found.split.test_indices)
    errors = int((found.best_estimator.predict(rows.X) != rows.y).sum())
    assert found.test.estimate == errors / len(rows.y)
    assert found.test.upper == summula.stats.clopper_pearson_bounds(errors, len(rows.y)).upper
    assert found.verdict in str(found)
    assert "chosen from 2 candidates" in found.verdict
    best = max(found.table, key=lambda one: one.score)
    assert found.best_name == best.name


def test_groups_are_the_units_of_folds_and_bounds():
    groups = np.arange(len(B)) // 4
    found = select([LinearRegression(), Ridge(1.0)], A, B, groups=groups, random_state=0)
    assert found.test.n == len(set(groups[found.split.test_indices]))
    rows = found.split._rows(found.split.test_indices)
    error = np.sqrt(np.mean((found.best_estimator.predict(rows.X) - rows.y) ** 2))
    assert found.test.lower < found.test.estimate < found.test.upper
    assert found.test.estimate == pytest.approx(error)
    certified = select(GaussianNB(), X, Y, groups=np.arange(len(Y)) // 3, random_state=0)
    assert certified.test.sampling == "groups"
    whole = select(Ridge(), A, B, ordered=True)
    assert whole.split.test_indices[0] > whole.split.train_indices[-1]


def test_one_standard_error_takes_the_first_candidate_near_the_best():
    options = {"cv": KFold(5), "random_state": 0}
    grid = (Ridge(), {"alpha": [100.0, 1.0, 0.1, 1e-3]})
    best, simple = select(grid, A, B, **options), select(grid, A, B, one_standard_error=True, **options)
    top = max(best.table, key=lambda one: one.score)
    near = [one.name for one in best.table if one.score >= top.score - top.standard_error]
    assert simple.best_name == near[0] != best.best_name


def test_splits_with_validation_rows_and_bad_candidates():
    split = Split(A, B, validation=0.2, random_state=0)
    found = select([LinearRegression(), Ridge(100.0)], split)
    assert found.best_name == "LinearRegression"
    assert np.isnan(found.table[0].standard_error)
    train = split.train()
    score = LinearRegression().fit(train.X, train.y).score(*split.validation())
    assert found.table[0].score == pytest.approx(score)
    with pytest.raises(ParameterError, match="needs several splits"):
        select(Ridge(), Split(A, B, validation=0.2), one_standard_error=True)
    with pytest.raises(ParameterError, match="must be an estimator"):
        select([3], A, B)
    with pytest.raises(ParameterError, match="candidates must be"):
        select([], A, B)
    with pytest.raises(DataError, match="needs the targets"):
        select(Ridge(), A)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_targets_by_name(convert: Any) -> None:
    frame = load_diabetes(as_frame=True).frame
    X, y = frame.drop(columns="target"), frame["target"]
    by_name = select([Ridge()], convert(frame), "target", random_state=0)
    expected = select([Ridge()], X, y, random_state=0)
    assert str(by_name) == str(expected)
    rows = Split(convert(frame), ["target", "bmi"], random_state=0).train()
    assert (rows.X.shape[1], rows.y.shape[1]) == (9, 2)
    with pytest.raises(DataError, match="no column 'taget'; did you mean 'target'"):
        Split(convert(frame), "taget")
    labels = np.where(y > 100, "high", "low").tolist()
    assert len(Split(X, labels, random_state=0).train().y) == 354  # a list of text may be labels


def test_the_score_of_the_selection_is_reported_for_the_test_rows() -> None:
    X, y = A, B
    found = select([Ridge()], X, y, scoring="neg_mean_absolute_error", random_state=0)
    test = found.split.test_indices
    error = np.abs(found.best_estimator.predict(X[test]) - y[test]).mean()
    assert found.test_score == pytest.approx(-error, rel=1e-12)
    assert found.verdict.endswith(f"used once; the neg_mean_absolute_error on them is {-error:.4g}.")
    plain = select([Ridge()], X, y, random_state=0)
    assert plain.test_score == pytest.approx(plain.best_estimator.score(X[test], y[test]), rel=1e-12)
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    assert select([Ridge()], X, y, scoring=scorer, random_state=0).test_score == found.test_score


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        ("neg_mean_absolute_eror", "not the name of a scorer of scikit-learn; did you mean 'neg_mean_absolute_error'?"),
        ("xyz", "get_scorer_names() lists them"),
        (3, "must be the name of a scorer, such as 'accuracy' or 'r2', or a function of (estimator, X, y); got 3"),
        (mean_absolute_error, "is passed as sklearn.metrics.make_scorer(mean_absolute_error), with"),
        (lambda a, b: 0.0, "a function f of (y_true, y_pred) is passed as sklearn.metrics.make_scorer(f)"),
    ],
)
def test_bad_scores_of_a_selection(scoring: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(words)):
        select([Ridge()], A, B, scoring=scoring)
