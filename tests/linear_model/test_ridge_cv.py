"""RidgeCV: every score against explicit refits, every selection against scikit-learn's, every storage and splitter."""

from __future__ import annotations

import functools
import pickle
import warnings
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import linalg, sparse
from sklearn import config_context
from sklearn.datasets import load_diabetes
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import RidgeCV as Theirs
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from threadpoolctl import threadpool_limits

import summula
from summula import DataError, ParameterError
from summula.linear_model import LinearRegression, Ridge, RidgeCV
from summula.linear_model.cross_validation import folds, leave_one_out, row_space
from summula.linear_model.cross_validation import ridge_errors as cross_validation
from summula.linear_model.cross_validation.folds import batches_of

ALPHAS = np.logspace(-3, 5, 9)
SPLITTERS = {
    "KFold": KFold(5),
    "KFold, shuffled": KFold(4, shuffle=True, random_state=0),
    "RepeatedKFold": RepeatedKFold(n_splits=3, n_repeats=2, random_state=1),
    "ShuffleSplit": ShuffleSplit(4, random_state=2),
    "ShuffleSplit, some rows in neither": ShuffleSplit(3, test_size=0.2, train_size=0.3, random_state=3),
    "TimeSeriesSplit": TimeSeriesSplit(4),
    "PredefinedSplit": PredefinedSplit(np.arange(90) % 7 - 1),
    "LeaveOneOut": LeaveOneOut(),
}
splitters = pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS.keys())


def data(n=90, d=6, targets=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.3, 3, d) + np.arange(d)
    y = X @ rng.normal(size=(d, max(targets, 1))) + 4 * rng.normal(size=(n, max(targets, 1))) + 3
    return X, y if targets else y[:, 0], rng.uniform(0.1, 3.0, n)


def ridge(X, y, w, alpha, intercept):
    """Return coefficients and intercept by a QR factorisation of the rows, robust to units and collinearity."""
    w = np.ones(len(X)) if w is None else w
    xbar, ybar = (np.average(a, axis=0, weights=w) if intercept else np.zeros(a.shape[1:]) for a in (X, y))
    root = np.sqrt(w).reshape(-1, *[1] * (y.ndim - 1))
    A = np.vstack([np.sqrt(w)[:, None] * (X - xbar), np.sqrt(alpha) * np.eye(X.shape[1])])
    b = np.concatenate([root * (y - ybar), np.zeros((X.shape[1], *y.shape[1:]))])
    Q, R = linalg.qr(A, mode="economic")
    v = linalg.solve_triangular(R, Q.T @ b)
    return v, ybar - xbar @ v


def remembered(refits):
    """The same refits are the reference for every solver; being small, they are faster on one BLAS thread."""
    known = {}

    @functools.wraps(refits)
    def once(*given, **options):
        given = [list(value) if isinstance(value, Iterator) else value for value in given]
        key = pickle.dumps((given, options))
        if key not in known:
            with threadpool_limits(1, "blas"):
                known[key] = refits(*given, **options)
        return known[key]

    return once


@remembered
def refitted_scores(X, y, w, alphas, splits, intercept=True, score=r2_score):
    """Shape (n_splits, n_alphas), one refit for each."""
    scores = []
    for train, test in splits:
        row = []
        for alpha in alphas:
            v, b = ridge(X[train], y[train], None if w is None else w[train], alpha, intercept)
            row.append(score(y[test], X[test] @ v + b, sample_weight=None if w is None else w[test]))
        scores.append(row)
    return np.array(scores)


@remembered
def refitted_errors(X, y, w, alphas, intercept=True):
    """Leave-one-out errors, shape (n, n_alphas) or (n, n_targets, n_alphas)."""
    errors = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        fits = (ridge(X[rest], y[rest], None if w is None else w[rest], alpha, intercept) for alpha in alphas)
        errors.append([y[i] - X[i] @ v - b for v, b in fits])
    return np.moveaxis(np.array(errors), 1, -1)


def minus_mse(y, predicted, sample_weight=None):
    return -mean_squared_error(y, predicted, sample_weight=sample_weight)


@pytest.fixture
def large(monkeypatch, by_gram):
    """Use the solvers of large data on small data."""
    for module in (cross_validation, leave_one_out):
        monkeypatch.setattr(module, "TINY_FACTOR", 0)


@pytest.fixture(params=["small", "large"])
def way(request):
    """Both solvers in turn: triangular factors, the default for small data, and sums of products."""
    if request.param == "large":
        request.getfixturevalue("large")
    return request.param


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


@pytest.mark.usefixtures("way")
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


# -------------------------------------------------------------------------------------------------------- leave one out


@pytest.mark.usefixtures("way")
class TestLeaveOneOut:
    @pytest.mark.parametrize("shape", [(40, 6), (30, 29), (20, 20), (15, 40)], ids=str)
    @pytest.mark.parametrize("targets", [0, 2])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_errors_are_those_of_explicit_refits(self, shape, targets, weighted, intercept):
        X, y, w = data(*shape, targets=targets)
        w = w if weighted else None
        alphas = np.logspace(-3, 5, 5)
        model = RidgeCV(alphas, fit_intercept=intercept, store_cv_results=True).fit(X, y, w)
        errors = refitted_errors(X, y, w, alphas, intercept)
        weight = (np.ones(len(X)) if w is None else w).reshape(-1, *[1] * (errors.ndim - 1))
        np.testing.assert_allclose(
            model.cv_results_, weight * errors**2, rtol=1e-7, atol=1e-9 * np.square(errors).max()
        )
        each = (weight * errors**2).reshape(len(X), -1, len(alphas)).mean(axis=1)
        np.testing.assert_allclose(model.scores_, -each.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(model.standard_errors_, each.std(axis=0, ddof=1) / np.sqrt(len(X)), rtol=1e-8)

    @pytest.mark.parametrize("shape", [(60, 6), (15, 40)], ids=str)
    @pytest.mark.parametrize(("targets", "weighted"), [(0, False), (0, True), (1, False), (3, True)])
    @pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error"])
    def test_everything_is_scikit_learns(self, shape, targets, weighted, scoring):
        X, y, w = data(*shape, targets=targets)
        w = w if weighted else None
        options = {"scoring": scoring, "store_cv_results": True}
        model, theirs = (kind(ALPHAS, **options).fit(X, y, w) for kind in (RidgeCV, Theirs))
        assert model.alpha_ == theirs.alpha_
        assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)
        np.testing.assert_allclose(model.cv_results_, theirs.cv_results_, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-7)
        np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-7)
        assert type(model.alpha_) is type(model.best_score_) is float

    @pytest.mark.parametrize("scoring", [None, "r2", make_scorer(mean_absolute_error, greater_is_better=False)])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_each_target_may_have_its_own_alpha(self, scoring, weighted):
        X, y, w = data(60, 6, targets=3, seed=1)
        w = w if weighted else None
        y[:, 0] = np.random.default_rng(0).normal(size=60)
        options = {"scoring": scoring, "alpha_per_target": True}
        model, theirs = (kind(ALPHAS, **options).fit(X, y, w) for kind in (RidgeCV, Theirs))
        np.testing.assert_array_equal(model.alpha_, theirs.alpha_)
        np.testing.assert_allclose(model.best_score_, theirs.best_score_, rtol=1e-9)
        np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-7)
        assert len(set(model.alpha_)) > 1
        for j in range(3):
            alone = RidgeCV(ALPHAS, scoring=scoring).fit(X, y[:, j], w)
            assert alone.alpha_ == model.alpha_[j]
            np.testing.assert_allclose(alone.scores_, model.scores_[:, j], rtol=1e-10)
            np.testing.assert_allclose(alone.standard_errors_, model.standard_errors_[:, j], rtol=1e-8)
        assert model.certificate_.verify(X, y, w)

    @pytest.mark.parametrize("scoring", [None, "r2"])
    def test_one_target_of_two_dimensions_has_scikit_learns_shapes(self, scoring):
        X, y, _ = data(40, 3)
        options = {"scoring": scoring, "alpha_per_target": True}
        model, theirs = (kind(ALPHAS, **options).fit(X, y.reshape(-1, 1)) for kind in (RidgeCV, Theirs))
        assert model.best_score_.shape == theirs.best_score_.shape == (1,)
        for name in ("alpha_", "coef_", "intercept_"):
            assert np.shape(getattr(model, name)) == np.shape(getattr(theirs, name))
        assert type(RidgeCV(ALPHAS, **options).fit(X, y).best_score_) is float

    def test_rows_of_weight_zero_are_not_there_but_are_predicted(self):
        for shape in ((60, 6), (30, 40), (50, 40)):  # the last: fewer rows than columns once those are gone
            X, y, w = data(*shape)
            w[::3] = 0.0
            X[::3] *= 100
            kept = w > 0
            options = {"alphas": ALPHAS, "scoring": "neg_mean_squared_error", "store_cv_results": True}
            model, fewer = RidgeCV(**options).fit(X, y, w), RidgeCV(**options).fit(X[kept], y[kept], w[kept])
            assert model.alpha_ == fewer.alpha_
            np.testing.assert_allclose(model.scores_, fewer.scores_, rtol=1e-9)
            np.testing.assert_allclose(model.standard_errors_, fewer.standard_errors_, rtol=1e-8)
            np.testing.assert_allclose(model.cv_results_[kept], fewer.cv_results_, rtol=1e-7, atol=1e-7)
            at = np.flatnonzero(model.alpha_ == ALPHAS)[0]
            np.testing.assert_allclose(model.cv_results_[~kept, at], model.predict(X[~kept]), rtol=1e-8)

    @pytest.mark.parametrize("scoring", ["r2", "neg_root_mean_squared_error"])
    def test_standard_errors_of_other_scores_are_those_of_a_jackknife(self, scoring):
        X, y, _ = data(400, 3, targets=2)
        model = RidgeCV([1.0], scoring=scoring, store_cv_results=True).fit(X, y)
        predicted, scorer = model.cv_results_[:, :, 0], get_scorer(scoring)._score_func
        sign = -1 if scoring.startswith("neg") else 1
        rest = [np.arange(400) != i for i in range(400)]
        scores = np.array([sign * scorer(y[keep], predicted[keep]) for keep in rest])
        jackknife = np.sqrt(399 / 400 * ((scores - scores.mean()) ** 2).sum())
        # The jackknife of R2 also includes the variation of the spread of y, which is treated as fixed.
        assert model.standard_errors_[0] == pytest.approx(jackknife, rel=0.2 if scoring == "r2" else 0.02)

    def test_columns_in_any_units(self):
        X, y, _ = data()
        X = X * np.logspace(-6, 6, 6)
        alphas = np.logspace(-4, 8, 13)
        model = RidgeCV(alphas).fit(X, y)
        expected = -np.square(refitted_errors(X, y, None, alphas)).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-10)

    def test_columns_that_nearly_depend_on_each_other(self):
        X, y, _ = data()
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
        alphas = np.logspace(-16, 2, 10)
        model = RidgeCV(alphas).fit(X, y)
        expected = -np.square(refitted_errors(X, y, None, alphas)).mean(axis=0)
        np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)

    @pytest.mark.parametrize("mode", ["auto", "svd", "eigen", None])
    def test_the_mode_is_a_hint(self, mode):
        X, y, _ = data()
        expected = RidgeCV(ALPHAS).fit(X, y)
        for kept in (X, sparse.csr_array(X)):
            # scikit-learn's message, since it will raise an error
            warned = mode == "svd" and sparse.issparse(kept)
            with pytest.warns(FutureWarning, match="'svd' mode is not supported") if warned else nullcontext():
                model = RidgeCV(ALPHAS, gcv_mode=mode).fit(kept, y)
            assert model.alpha_ == expected.alpha_
            np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-11)

    @pytest.mark.parametrize("chunk_rows", [1, 7, 64])
    def test_chunks_change_results_only_by_rounding(self, chunk_rows, monkeypatch):
        X, y, w = data(targets=2)
        expected = RidgeCV(ALPHAS).fit(X, y, w).scores_
        monkeypatch.setattr(leave_one_out, "_BLOCK_ELEMENTS", 100)
        with summula.engine("threads", chunk_rows=chunk_rows):
            np.testing.assert_allclose(RidgeCV(ALPHAS).fit(X, y, w).scores_, expected, rtol=1e-11)

    def test_it_is_leave_one_out_by_a_splitter(self):
        X, y, _ = data()
        folds = RidgeCV(ALPHAS, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y)
        rows = RidgeCV(ALPHAS).fit(X, y)
        np.testing.assert_allclose(folds.scores_, rows.scores_, rtol=1e-10)
        np.testing.assert_allclose(folds.standard_errors_, rows.standard_errors_, rtol=1e-9)


def test_one_row_cannot_be_left_out():
    with pytest.raises(DataError, match="needs at least 2 rows with positive weight; got 1 sample"):
        RidgeCV().fit([[1.0, 2.0]], [1.0])
    with pytest.raises(DataError, match="needs at least 2 rows with positive weight; got 1 sample"):
        RidgeCV().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], [0.0, 1.0, 0.0])


def test_one_row_is_left_out_of_a_model_without_intercept():
    """No rows are left for the fit, so the prediction is 0."""
    model = RidgeCV(fit_intercept=False, store_cv_results=True).fit([[1.0, 2.0]], [3.0])
    np.testing.assert_allclose(model.cv_results_, np.full((1, 3), 9.0))


# -------------------------------------------------------------------------------------------- one standard error


@pytest.mark.usefixtures("way")
class TestOneStandardError:
    def rule(self, alphas, scores, errors):
        best = scores.argmax()
        return alphas[scores >= scores[best] - errors[best]].max()

    @pytest.mark.parametrize("cv", [None, 5, SPLITTERS["ShuffleSplit"]])
    @pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "r2"])
    def test_it_is_the_largest_alpha_within_one(self, cv, scoring):
        X, y, w = data(seed=2)
        alphas = np.logspace(-3, 5, 17)
        best = RidgeCV(alphas, cv=cv, scoring=scoring).fit(X, y, w)
        model = RidgeCV(alphas, cv=cv, scoring=scoring, select="1se").fit(X, y, w)
        np.testing.assert_array_equal(model.scores_, best.scores_)
        assert model.alpha_ == self.rule(alphas, best.scores_, best.standard_errors_) > best.alpha_
        assert model.best_score_ == model.scores_[model.alpha_ == alphas]
        np.testing.assert_allclose(model.coef_, Ridge(model.alpha_).fit(X, y, w).coef_, rtol=1e-11)

    def test_alphas_may_come_in_any_order(self):
        X, y, _ = data(seed=2)
        shuffled = np.random.default_rng(0).permutation(ALPHAS)
        for select in ("min", "1se"):
            for cv in (None, 5):
                expected = RidgeCV(ALPHAS, cv=cv, select=select).fit(X, y)
                model = RidgeCV(shuffled, cv=cv, select=select).fit(X, y)
                assert model.alpha_ == expected.alpha_
                np.testing.assert_allclose(
                    model.scores_, expected.scores_[np.searchsorted(ALPHAS, shuffled)], rtol=1e-11
                )

    def test_each_target_by_its_own_errors(self):
        X, y, _ = data(targets=3, seed=2)
        model = RidgeCV(ALPHAS, alpha_per_target=True, select="1se").fit(X, y)
        for j in range(3):
            assert model.alpha_[j] == RidgeCV(ALPHAS, select="1se").fit(X, y[:, j]).alpha_

    def test_any_scorer_will_do_with_folds(self):
        X, y, _ = data(seed=2)
        model = RidgeCV(ALPHAS, cv=5, scoring="neg_mean_absolute_error", select="1se").fit(X, y)
        assert model.alpha_ == self.rule(ALPHAS, model.scores_, model.standard_errors_)

    def test_without_folds_or_rows_to_compare_it_is_refused(self):
        X, y, _ = data()
        with pytest.raises(
            ParameterError, match="needs scores of rows or folds, but scoring='neg_max_error' scores all"
        ):
            RidgeCV(ALPHAS, scoring="neg_max_error", select="1se").fit(X, y)
        with pytest.raises(ParameterError, match="needs at least two splits"):
            RidgeCV(ALPHAS, cv=ShuffleSplit(1, random_state=0), select="1se").fit(X, y)


# -------------------------------------------------------------------------------------------------------------- scorers


def size_of_model(estimator, X, y):
    return -np.abs(estimator.coef_).sum() - mean_absolute_error(y, estimator.predict(X))


class TestScorers:
    @pytest.mark.parametrize("targets", [0, 2])
    @pytest.mark.parametrize("keep", [np.asarray, sparse.csr_array])
    def test_a_scorer_is_given_what_grid_search_gives_it(self, targets, keep):
        X, y, _ = data(targets=targets)
        for scoring in ("neg_median_absolute_error", size_of_model):
            model = RidgeCV(ALPHAS, cv=4, scoring=scoring).fit(keep(X), y)
            search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=KFold(4), scoring=scoring).fit(X, y)
            np.testing.assert_allclose(model.scores_, search.cv_results_["mean_test_score"], rtol=1e-10)
            assert model.alpha_ == search.best_params_["alpha"]

    def test_weights_reach_a_scorer_that_takes_them(self):
        X, y, w = data()
        model, theirs = (
            kind(ALPHAS, cv=4, scoring="neg_mean_absolute_error").fit(X, y, w) for kind in (RidgeCV, Theirs)
        )
        assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-10)

    def test_an_estimator_without_weights_raises(self):
        X, y, w = data()
        with pytest.warns(UserWarning, match="does not support sample_weight, so test rows are not weighted"):
            model = RidgeCV(ALPHAS, cv=4, scoring=size_of_model).fit(X, y, w)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=KFold(4), scoring=size_of_model)
            search.fit(X, y, sample_weight=w)
        np.testing.assert_allclose(model.scores_, search.cv_results_["mean_test_score"], rtol=1e-10)

    def test_r2_of_single_rows_raises(self):
        X, y, _ = data()
        with pytest.warns(UndefinedMetricWarning, match="All mean scores are NaN.*neg_mean_squared_error") as caught:
            model = RidgeCV([3.0, 1.0], cv=LeaveOneOut()).fit(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert model.alpha_ == 3.0
        assert np.isnan(model.best_score_)


class TestRouting:
    def test_groups_and_weights_are_routed(self):
        X, y, w = data()
        groups = np.arange(90) % 11
        for kind in (RidgeCV, Theirs):
            with config_context(enable_metadata_routing=True):
                scorer = get_scorer("neg_mean_absolute_error").set_score_request(sample_weight=True)
                routed = kind(ALPHAS, cv=GroupKFold(5), scoring=scorer).set_fit_request(sample_weight=True)
                routed.fit(X, y, sample_weight=w, groups=groups)
            plain = RidgeCV(ALPHAS, cv=GroupKFold(5), scoring="neg_mean_absolute_error").fit(X, y, w, groups=groups)
            assert routed.alpha_ == plain.alpha_
            assert routed.best_score_ == pytest.approx(plain.best_score_, rel=1e-10)

    def test_weights_can_be_kept_from_the_scorer(self):
        X, y, w = data()
        for cv in (None, 5):
            with config_context(enable_metadata_routing=True):
                scorer = get_scorer("neg_mean_squared_error").set_score_request(sample_weight=False)
                model, theirs = (
                    kind(ALPHAS, cv=cv, scoring=scorer).fit(X, y, sample_weight=w) for kind in (RidgeCV, Theirs)
                )
            assert model.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)

    def test_without_routing_other_parameters_are_refused(self):
        X, y, _ = data()
        with pytest.raises(ParameterError, match="supports colour= only if scikit-learn's metadata routing is enabled"):
            RidgeCV().fit(X, y, colour="red")


# -------------------------------------------------------------------------------------------------------------- storage


CVS = {"rows": None, "folds": 5, "shuffled": SPLITTERS["KFold, shuffled"], "repeated": SPLITTERS["RepeatedKFold"]}
cvs = pytest.mark.parametrize("cv", CVS.values(), ids=CVS.keys())


def assert_same(model, expected, rtol=1e-10):
    assert np.array_equal(model.alpha_, expected.alpha_)
    for name in ("scores_", "standard_errors_", "coef_", "intercept_", "best_score_"):
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=rtol, err_msg=name)


@pytest.mark.usefixtures("way")
class TestStorage:
    @cvs
    @pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
    def test_sparse(self, cv, kind):
        X, y, w = data(targets=2)
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0)
        assert_same(RidgeCV(ALPHAS, cv=cv).fit(kind(X), y, w), RidgeCV(ALPHAS, cv=cv).fit(X, y, w))

    @cvs
    def test_frames_with_target_and_weight_by_name(self, cv, constructor):
        X, y, w = data()
        columns = {f"x{j}": column for j, column in enumerate(X.T)}
        model = RidgeCV(ALPHAS, cv=cv).fit(constructor({"y": y, **columns, "w": w}), "y", "w")
        assert model.feature_names_in_.tolist() == list(columns)
        assert_same(model, RidgeCV(ALPHAS, cv=cv).fit(X, y, w))

    @cvs
    @pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
    @pytest.mark.parametrize("targets", [1, 2])
    def test_parquet(self, cv, scoring, targets, tmp_path):
        X, y, w = data(targets=targets)
        names = [f"y{j}" for j in range(targets)]
        columns = {f"x{j}": column for j, column in enumerate(X.T)} | dict(zip(names, y.T, strict=True)) | {"w": w}
        parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=13)
        y, named = (y[:, 0], "y0") if targets == 1 else (y, names)
        with summula.engine("threads", chunk_rows=20):
            options = {"alphas": ALPHAS, "cv": cv, "scoring": scoring, "store_cv_results": cv is None}
            model = RidgeCV(**options).fit(summula.scan(tmp_path / "rows.parquet"), named, "w")
            expected = RidgeCV(**options).fit(X, y, w)
        assert_same(model, expected)
        if cv is None:
            np.testing.assert_allclose(model.cv_results_, expected.cv_results_, rtol=1e-11)

    def test_parquet_with_fewer_rows_than_columns(self, tmp_path):
        X, y, w = data(15, 30)
        columns = {f"x{j}": column for j, column in enumerate(X.T)} | {"y": y, "w": w}
        parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=4)
        with summula.engine("threads", chunk_rows=4):
            model = RidgeCV(ALPHAS).fit(summula.scan(tmp_path / "rows.parquet"), "y", "w")
        assert_same(model, RidgeCV(ALPHAS).fit(X, y, w))

    @cvs
    def test_float32_is_judged_in_double_precision(self, cv):
        X, y, _ = data()
        single = X.astype(np.float32)
        model, expected = RidgeCV(ALPHAS, cv=cv).fit(single, y), RidgeCV(ALPHAS, cv=cv).fit(single.astype(float), y)
        np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-11)
        assert model.coef_.dtype == np.float32
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)


@pytest.fixture
def narrow(monkeypatch, by_conjugate_gradients):
    for module in (cross_validation, leave_one_out, row_space):
        monkeypatch.setattr(module, "SPARSE_GRAM_COLUMNS", 10)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_mean_absolute_error"])
@pytest.mark.parametrize(("shape", "cv"), [((90, 20), None), ((90, 20), 5), ((15, 20), None), ((15, 20), 3)], ids=str)
def test_wide_sparse_data(shape, cv, scoring, weighted):
    X, y, w = data(*shape, targets=2)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0)
    w = w if weighted else None
    alphas = np.logspace(0, 4, 5)
    model = RidgeCV(alphas, cv=cv, scoring=scoring).fit(sparse.csr_array(X), y, w)
    expected = RidgeCV(alphas, cv=cv, scoring=scoring).fit(X, y, w)
    # Conjugate gradients stop at a relative gradient of 1e-10; with so few rows the condition number is about 1e3.
    assert_same(model, expected, rtol=1e-6)


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
