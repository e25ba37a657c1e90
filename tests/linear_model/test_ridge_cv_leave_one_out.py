"""RidgeCV: leave-one-out errors, and the rule of one standard error, against explicit refits."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeCV as Theirs
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import (
    LeaveOneOut,
    ShuffleSplit,
)

import summula
from summula import DataError, ParameterError
from summula.linear_model import Ridge, RidgeCV
from summula.linear_model.cross_validation import leave_one_out
from tests.linear_model.ridge_refits import (
    ALPHAS,
    SPLITTERS,
    data,
    refitted_errors,
)

# -------------------------------------------------------------------------------------------------------- leave one out


@pytest.mark.usefixtures("ridge_cv_way")
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


@pytest.mark.usefixtures("ridge_cv_way")
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
