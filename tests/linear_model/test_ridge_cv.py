"""RidgeCV: every score against explicit refits, every selection against scikit-learn's, every splitter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV as Theirs
from sklearn.metrics import get_scorer, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
)

import summula
from summula import DataError, ParameterError
from summula.linear_model import LinearRegression, Ridge, RidgeCV
from summula.linear_model.cross_validation import folds
from summula.linear_model.cross_validation.folds import batches_of
from tests.linear_model.ridge_refits import (
    ALPHAS,
    SPLITTERS,
    data,
    minus_mse,
    refitted_scores,
    splitters,
)

# --------------------------------------------------------------------------------------------------------------- groups


class TestGroups:
    """Equation (1) of folds.py: groups and their counts determine the rows of each split exactly."""

    def check(self, splits, n, most=1_000):
        batches = batches_of(splits, n, most)
        found = [(batch.trained(k), batch.tested(k)) for batch in batches for k in range(len(batch.train))]
        for (train, test), (ours, ours_tested) in zip(splits, found, strict=True):
            np.testing.assert_array_equal(ours, np.sort(np.arange(n)[train]))
            np.testing.assert_array_equal(ours_tested, np.sort(np.arange(n)[test]))
        return batches

    @splitters
    @pytest.mark.parametrize("most", [1_000, 3])
    def test_every_split_has_its_rows(self, cv, most):
        self.check(list(cv.split(np.zeros((90, 1)))), 90, most)

    def test_k_folds_make_k_groups(self):
        for cv in (KFold(5), KFold(5, shuffle=True, random_state=0)):
            (batch,) = self.check(list(cv.split(np.zeros((90, 1)))), 90)
            assert batch.n_groups == 5

    def test_repeated_and_random_splits_do_not_make_a_group_a_row(self):
        for cv in (RepeatedKFold(n_splits=5, n_repeats=10, random_state=0), ShuffleSplit(40, random_state=0)):
            batches = self.check(list(cv.split(np.zeros((2_000, 1)))), 2_000)
            assert sum(batch.n_groups for batch in batches) <= 2 * cv.get_n_splits() + len(batches)

    def test_rows_may_be_repeated_or_on_both_sides(self):
        rng = np.random.default_rng(0)
        self.check([(rng.integers(0, 30, 40), rng.integers(0, 30, 20)) for _ in range(5)], 30)

    def test_rows_may_be_given_by_masks_or_from_the_end(self):
        mask = np.arange(10) < 7
        self.check([(mask, ~mask), ([0, 1, 2], [-1, -2])], 10)

    def test_consecutive_rows_are_kept_as_runs(self):
        (batch,) = self.check(list(KFold(5).split(np.zeros((1_000, 1)))), 1_000)
        assert len(batch.labels) == 5
        for start, stop in [(0, 1_000), (0, 1), (199, 201), (150, 650), (999, 1_000), (200, 400)]:
            np.testing.assert_array_equal(batch.of(start, stop), np.arange(start, stop) // 200)

    def test_bad_splits_are_named(self):
        with pytest.raises(DataError, match="Split 1 of cv does not fit 10 rows: index 12 is out of bounds"):
            batches_of([([0], [1]), ([12], [0])], 10, 9)
        with pytest.raises(DataError, match="Split 0 has no rows to test on"):
            batches_of([([0], np.array([], int))], 10, 9)
        with pytest.raises(DataError, match="Split 0 has no rows to train on"):
            batches_of([(np.array([], int), [1])], 10, 9)
        with pytest.raises(DataError, match="has no splits"):
            batches_of([], 10, 9)


# ---------------------------------------------------------------------------------------------------------------- folds


@pytest.mark.usefixtures("ridge_cv_way")
class TestFolds:
    @splitters
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_scores_are_those_of_explicit_refits(self, cv, weighted, intercept):
        X, y, w = data()
        w = w if weighted else None
        splits = list(cv.split(X))
        model = RidgeCV(ALPHAS, cv=cv, fit_intercept=intercept, scoring="neg_mean_squared_error").fit(X, y, w)
        expected = refitted_scores(X, y, w, ALPHAS, splits, intercept, minus_mse)
        np.testing.assert_allclose(model.scores_, expected.mean(axis=0), rtol=1e-11)
        error = expected.std(axis=0, ddof=1) / np.sqrt(len(splits))
        np.testing.assert_allclose(model.standard_errors_, error, rtol=1e-9)
        assert model.alpha_ == ALPHAS[expected.mean(axis=0).argmax()]

    @splitters
    @pytest.mark.parametrize(("targets", "weighted"), [(0, False), (0, True), (1, False), (3, True)])
    def test_the_choice_is_scikit_learns(self, cv, targets, weighted):
        if isinstance(cv, LeaveOneOut):
            pytest.skip("R2 is not defined on one row")
        X, y, w = data(targets=targets)
        w = w if weighted else None
        model, theirs = (kind(ALPHAS, cv=cv).fit(X, y, sample_weight=w) for kind in (RidgeCV, Theirs))
        assert model.alpha_ == theirs.alpha_
        assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-11)
        np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-9)
        np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-9)
        assert np.shape(model.coef_) == np.shape(theirs.coef_)
        assert np.shape(model.intercept_) == np.shape(theirs.intercept_)

    @pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"])
    @pytest.mark.parametrize("targets", [0, 2])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_scores_from_sums_are_those_of_the_scorer(self, scoring, targets, weighted):
        X, y, w = data(targets=targets)
        w = w if weighted else None
        summed = RidgeCV(ALPHAS, cv=4, scoring=scoring).fit(X, y, w)
        scored = RidgeCV(ALPHAS, cv=4, scoring=get_scorer(scoring)).fit(X, y, w)
        np.testing.assert_allclose(summed.scores_, scored.scores_, rtol=1e-11)
        np.testing.assert_allclose(summed.standard_errors_, scored.standard_errors_, rtol=1e-9)

    def test_the_model_is_the_ridge_of_the_alpha_chosen(self):
        X, y, w = data(targets=2)
        model = RidgeCV(ALPHAS, cv=5).fit(X, y, w)
        same = Ridge(model.alpha_).fit(X, y, w)
        np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-12)
        np.testing.assert_allclose(model.intercept_, same.intercept_, rtol=1e-12)
        assert model.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-12)
        assert model.certificate_.verify(X, y, w)

    def test_groups_stay_together(self):
        X, y, _ = data()
        groups = np.arange(90) % 11
        model = RidgeCV(ALPHAS, cv=GroupKFold(5)).fit(X, y, groups=groups)
        search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=GroupKFold(5)).fit(X, y, groups=groups)
        assert model.alpha_ == search.best_params_["alpha"]
        np.testing.assert_allclose(model.scores_, search.cv_results_["mean_test_score"], rtol=1e-10)

    def test_a_list_of_splits_is_taken_as_it_is(self):
        X, y, _ = data()
        rng = np.random.default_rng(0)
        splits = [(rng.integers(0, 90, 60), rng.integers(0, 90, 25)) for _ in range(3)]  # rows repeat
        model = RidgeCV(ALPHAS, cv=iter(splits), scoring="neg_mean_squared_error").fit(X, y)
        np.testing.assert_allclose(
            model.scores_, refitted_scores(X, y, None, ALPHAS, splits, score=minus_mse).mean(axis=0), rtol=1e-11
        )

    def test_alpha_may_be_zero(self):
        X, y, _ = data()
        alphas = [1.0, 0.0, 1e6]
        model = RidgeCV(alphas, cv=5, scoring="neg_mean_squared_error").fit(X, y)
        expected = []
        for train, test in KFold(5).split(X):
            plain = LinearRegression().fit(X[train], y[train])
            expected.append(-mean_squared_error(y[test], plain.predict(X[test])))
        assert model.scores_[1] == pytest.approx(np.mean(expected), rel=1e-11)

    def test_zero_alpha_on_dependent_columns_takes_the_shortest_answer(self):
        X, y, _ = data(60, 4)
        X = np.column_stack([X, X[:, 0] - X[:, 1]])
        model = RidgeCV([0.0, 1e-3], cv=3, scoring="neg_mean_squared_error").fit(X, y)
        errors = []
        for train, test in KFold(3).split(X):
            Z, x, b = X[train] - X[train].mean(axis=0), X[test] - X[train].mean(axis=0), y[train].mean()
            errors.append(np.mean((y[test] - b - x @ np.linalg.pinv(Z) @ (y[train] - b)) ** 2))
        assert model.scores_[0] == pytest.approx(-np.mean(errors), rel=1e-9)

    def test_columns_in_any_units(self):
        """The penalty is in the user's units; the arithmetic is not."""
        X, y, _ = data()
        X = X * np.logspace(-6, 6, 6)
        alphas = np.logspace(-4, 8, 13)
        model = RidgeCV(alphas, cv=5, scoring="neg_mean_squared_error").fit(X, y)
        expected = refitted_scores(X, y, None, alphas, KFold(5).split(X), score=minus_mse).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-10)

    def test_columns_that_nearly_depend_on_each_other(self):
        X, y, _ = data()
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
        alphas = np.logspace(-18, 2, 21)  # from next to nothing: 20 orders of magnitude
        model = RidgeCV(alphas, cv=5, scoring="neg_mean_squared_error").fit(X, y)
        expected = refitted_scores(X, y, None, alphas, KFold(5).split(X), score=minus_mse).mean(axis=0)
        # An error of eps times the condition number, 1e8.
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)

    def test_targets_that_lie_on_a_plane(self):
        X, _, _ = data()
        y = X @ np.arange(1.0, 7.0) + 1e-7 * np.random.default_rng(0).normal(size=90)
        alphas = [1e-12, 1e-9, 1e-6]
        model = RidgeCV(alphas, cv=5, scoring="neg_mean_squared_error").fit(X, y)
        expected = refitted_scores(X, y, None, alphas, KFold(5).split(X), score=minus_mse).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-5)

    def test_columns_far_from_zero(self):
        X, y, _ = data()
        near = RidgeCV(ALPHAS, cv=5).fit(X, y)
        far = RidgeCV(ALPHAS, cv=5).fit(X + 2.0**20, y + 2.0**20)
        np.testing.assert_allclose(near.scores_, far.scores_, rtol=1e-8)

    def test_leading_rows_unlike_the_rest(self):
        X, y, _ = data()
        X[:30] += 1e5
        with summula.engine("serial", chunk_rows=30):
            model = RidgeCV(ALPHAS, cv=5, scoring="neg_mean_squared_error").fit(X, y)
        expected = refitted_scores(X, y, None, ALPHAS, KFold(5).split(X), score=minus_mse).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-8)

    def test_a_column_that_is_constant_in_some_folds(self):
        X, y, _ = data()
        X[:, 2] = np.where(np.arange(90) < 18, 5.0 + np.arange(90), 5.0)  # varies in the first fold only
        model = RidgeCV(ALPHAS, cv=5, scoring="neg_mean_squared_error").fit(X, y)
        expected = refitted_scores(X, y, None, ALPHAS, KFold(5).split(X), score=minus_mse).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-9)

    def test_a_target_that_is_constant_in_a_fold_scores_as_in_scikit_learn(self):
        X, y, _ = data()
        y = np.where(np.arange(90) < 18, 2.5, y)
        model, theirs = (kind(ALPHAS, cv=5).fit(X, y) for kind in (RidgeCV, Theirs))
        assert model.alpha_ == theirs.alpha_
        assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-10)

    def test_fewer_rows_than_columns(self):
        X, y, w = data(20, 50, targets=2)
        model = RidgeCV(ALPHAS, cv=4, scoring="neg_mean_squared_error").fit(X, y, w)
        expected = refitted_scores(X, y, w, ALPHAS, KFold(4).split(X), score=minus_mse).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-10)

    @pytest.mark.parametrize("chunk_rows", [1, 7, 64])
    def test_chunks_change_results_only_by_rounding(self, chunk_rows):
        X, y, w = data()
        expected = RidgeCV(ALPHAS, cv=SPLITTERS["RepeatedKFold"]).fit(X, y, w).scores_
        with summula.engine("threads", chunk_rows=chunk_rows):
            found = RidgeCV(ALPHAS, cv=SPLITTERS["RepeatedKFold"]).fit(X, y, w).scores_
        np.testing.assert_allclose(found, expected, rtol=1e-11)

    def test_many_groups_take_several_passes(self, monkeypatch):
        X, y, w = data()
        expected = RidgeCV(ALPHAS, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y, w).scores_
        monkeypatch.setattr(folds, "_GROUP_BYTES", 0)
        monkeypatch.setattr(folds, "_FEWEST", 7)
        found = RidgeCV(ALPHAS, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y, w).scores_
        np.testing.assert_allclose(found, expected, rtol=1e-11)


# ------------------------------------------------------------------------------------------------------------ bad input


class TestParameters:
    @pytest.mark.parametrize(
        ("alphas", "words"),
        [
            ((1, -1, -100), r"alphas\[1\] == -1, must be > 0\.0"),
            ((0.0, 1.0), r"alphas\[0\] == 0\.0, must be > 0\.0"),
            ([0.0], r"alphas == 0\.0, must be > 0\.0"),
            ((1, 1.0, "1"), r"alphas\[2\] must be an instance of float, not str"),
            ((1.0, np.nan), r"alphas\[1\] == nan, must be > 0\.0"),
            ((1.0, np.inf), r"alphas\[1\] == inf, must be >= 0\.0 and finite"),
            ([], "alphas must be a non-empty list of numbers"),
            ([[1.0, 2.0]], "alphas must be a non-empty list of numbers"),
            (-1.0, r"The 'alphas' parameter of RidgeCV must be an array-like or a float in the range \(0\.0, inf\)"),
        ],
    )
    def test_bad_alphas(self, alphas, words):
        X, y, _ = data()
        with pytest.raises(ParameterError, match=words):
            RidgeCV(alphas).fit(X, y)

    def test_negative_alphas_with_folds(self):
        X, y, _ = data()
        with pytest.raises(ParameterError, match=r"alphas\[0\] == -0\.5, must be >= 0\.0\."):
            RidgeCV([-0.5, 1.0], cv=3).fit(X, y)

    @pytest.mark.parametrize("alphas", [2, np.float64(2.0), [2], (2.0,), np.array([2]), np.array(2.0)])
    def test_one_alpha(self, alphas):
        X, y, _ = data()
        for cv in (None, 3):
            assert RidgeCV(alphas, cv=cv).fit(X, y).alpha_ == 2.0

    @pytest.mark.parametrize("option", ["store_cv_results", "alpha_per_target"])
    def test_what_needs_single_rows(self, option):
        X, y, _ = data()
        with pytest.raises(ParameterError, match=f"cv!=None and {option}=True are incompatible"):
            RidgeCV(cv=5, **{option: True}).fit(X, y)

    def test_more_folds_than_rows(self):
        X, y, _ = data(4)
        with pytest.raises(ValueError, match="Cannot have number of splits n_splits=5 greater"):
            RidgeCV(cv=5).fit(X, y)

    def test_a_split_without_weight(self):
        X, y, _ = data()
        weight = np.repeat([0.0, 1.0], 45)
        for way in ([(np.arange(45), np.arange(45, 90))], [(np.arange(45, 90), np.arange(45))]):
            with pytest.raises(DataError, match=r"In split 0 every (training|test) row has weight 0"):
                RidgeCV(cv=way).fit(X, y, weight)

    def test_an_unknown_scorer(self):
        X, y, _ = data()
        with pytest.raises(
            ParameterError, match="The 'scoring' parameter of RidgeCV must be None, a callable or the name"
        ):
            RidgeCV(scoring="r3").fit(X, y)


def test_missing_values_are_named():
    X, y, _ = data()
    X[17, 2] = np.nan
    for cv in (None, 5):
        for rows in (90, 5):
            part = np.roll(X, -15, axis=0)[:rows]
            with pytest.raises(DataError, match=r"Column 2 has 1 missing value \(NaN; first at row 2\)"):
                RidgeCV(cv=cv).fit(part, y[:rows])


def test_huge_values_whose_squares_overflow():
    X, y, _ = data(2_000, 30)
    X[:, 0] *= 1e200
    for cv in (None, 5):
        model = RidgeCV([0.1, 1.0], cv=cv).fit(X, y)
        assert np.isfinite(model.scores_).all()
        scaled = X.copy()
        scaled[:, 0] /= 1e195
        expected = RidgeCV([0.1, 1.0], cv=cv).fit(scaled, y)  # so large that the penalty is negligible
        np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-8)


def test_it_does_not_add_up_and_has_no_summary():
    X, y, _ = data()
    model = RidgeCV().fit(X, y)
    for name in ("partial_fit", "merge", "forget"):
        assert not hasattr(model, name)
    with pytest.raises(ParameterError, match="does not support merging"):
        summula.combine([model, model])
    with pytest.raises(ParameterError, match="summary\\(\\) needs an unpenalised fit: RidgeCV selected alpha="):
        model.summary()


def test_diabetes():
    """scikit-learn's example, on which its documentation reports the score 0.5166."""
    X, y = load_diabetes(return_X_y=True)
    model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    assert model.score(X, y) == pytest.approx(0.5166, abs=5e-5)


def test_cv_results_are_forgotten_by_a_fit_without_them():
    X, y, _ = data()
    model = RidgeCV(store_cv_results=True).fit(X, y)
    assert model.cv_results_.shape == (90, 3)
    assert not hasattr(model.set_params(store_cv_results=False).fit(X, y), "cv_results_")
