"""Gradient boosting: gradients and line searches by definition, scikit-learn's results, other base learners."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble
from scipy.optimize import minimize_scalar

import summula
from summula.core.errors import DataError, ParameterError
from summula.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from summula.ensemble.stagewise.losses import ClassScores, MarginLoss, ResidualLoss
from summula.linear_model import LinearRegression, Ridge

REGRESSION = ("squared_error", "absolute_error", "huber", "quantile")


def rows(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)


def labels(y, k):
    return np.searchsorted(np.quantile(y, np.arange(1, k) / k), y)


@pytest.mark.parametrize("loss", [*(ResidualLoss(name, 0.7, 0.9) for name in REGRESSION), MarginLoss("log_loss"),
                                  MarginLoss("exponential"), ClassScores(3)],
                         ids=[*REGRESSION, "log_loss", "exponential", "three classes"])  # fmt: skip
def test_gradients_against_differences(loss):
    rng = np.random.default_rng(0)
    f = rng.normal(size=(loss.n_scores, 30))
    y = rng.normal(size=30)
    if not isinstance(loss, ResidualLoss):
        y = np.sign(y) if loss.n_scores == 1 else rng.integers(0, 3, 30)
    gradient, h = loss.negative_gradient(y, f), 1e-6
    for k in range(loss.n_scores):
        step = np.zeros_like(f)
        step[k] = h
        slope = (loss.values(y, f + step) - loss.values(y, f - step)) / (2 * h)
        np.testing.assert_allclose(gradient[k], -slope, atol=1e-6)


@pytest.mark.parametrize("name", REGRESSION)
def test_leaves_have_the_value_of_least_loss(name):
    rng = np.random.default_rng(1)
    y, f, w = rng.standard_t(3, size=61), rng.normal(size=(1, 61)), rng.integers(1, 4, 61).astype(float)
    loss = ResidualLoss(name, 0.7).at(y, f, w)
    leaf = np.arange(61) % 2
    values = loss.leaf_values(y, f, 0, loss.negative_gradient(y, f)[0], w, leaf)
    for k in range(2):
        rows = leaf == k

        def total(gamma, rows=rows):
            return float((w[rows] * loss.values(y[rows], f[:, rows] + gamma)).sum())

        best = minimize_scalar(total, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10})
        # (Huber's is an approximation: one step from the median.)
        assert total(values[k]) <= best.fun * (1.01 if name == "huber" else 1 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learns_regression(weighted):
    X, y = rows()
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if weighted else None
    options = {"n_estimators": 15, "max_depth": 2, "min_samples_leaf": 5}
    ours = GradientBoostingRegressor(**options).fit(X, y, weight)
    theirs = sklearn.ensemble.GradientBoostingRegressor(**options, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-10)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-10)
    for a, b in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("k", "loss"), [(2, "log_loss"), (2, "exponential"), (3, "log_loss")])
def test_scikit_learns_classification(k, loss):
    X, y = rows()
    y = labels(y, k)
    options = {"loss": loss, "n_estimators": 10, "max_depth": 2, "min_samples_leaf": 5}
    ours = GradientBoostingClassifier(**options).fit(X, y)
    theirs = sklearn.ensemble.GradientBoostingClassifier(**options, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-10)
    assert ours.apply(X).shape == theirs.apply(X).shape
    for a, b in zip(ours.staged_predict_proba(X), theirs.staged_predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "quantile"])
def test_robust_losses_fall_as_in_scikit_learn(loss):
    X, y = rows()
    options = {"loss": loss, "n_estimators": 30, "alpha": 0.8}
    ours = GradientBoostingRegressor(**options).fit(X, y)
    theirs = sklearn.ensemble.GradientBoostingRegressor(**options, random_state=0).fit(X, y)
    assert ours.train_score_[-1] <= 1.03 * theirs.train_score_[-1]
    assert ours.train_score_[-1] < 0.7 * ours.train_score_[0]


def gain(g, w):
    """Return the decrease of the weighted squared error by one mean, up to a constant."""
    return (w @ g) ** 2 / w.sum()


def shortfalls(tree, X, g, w, node=0):
    """Yield how much less each split gains than the best one of its node, as a share of the squares of the node."""
    if tree.children_left[node] < 0:
        return
    best = 0.0
    for x in X.T:
        order = np.argsort(x)
        for cut in np.flatnonzero(np.diff(x[order])) + 1:
            left, right = order[:cut], order[cut:]
            best = max(best, gain(g[left], w[left]) + gain(g[right], w[right]))
    low = X[:, tree.feature[node]] <= tree.threshold[node]
    found = gain(g[low], w[low]) + gain(g[~low], w[~low])
    yield (best - found) / (w @ g**2)
    for rows, child in ((low, tree.children_left[node]), (~low, tree.children_right[node])):
        yield from shortfalls(tree, X[rows], g[rows], w[rows], child)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "level"), [("absolute_error", 0.5), ("quantile", 0.9)])
def test_no_split_gains_more_and_no_leaf_value_has_less_loss(loss, level, weighted):
    X, y = rows(n=60, d=3)
    w = np.random.default_rng(2).uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    options = {"loss": loss, "n_estimators": 3, "learning_rate": 1.0}
    model = GradientBoostingRegressor(**options).fit(X, y, w if weighted else None)
    f = np.ravel(model.init_.predict(X))
    for tree, after in zip(model.estimators_[:, 0], model.staged_predict(X), strict=True):
        residual, leaf = y - f, tree.apply(X)
        g = np.where(residual >= 0, level, level - 1)
        assert max(shortfalls(tree.tree_, X, g, w)) < 1e-12
        for one in np.unique(leaf):
            r, v = residual[leaf == one], w[leaf == one]
            losses = [v @ np.maximum(level * (r - c), (level - 1) * (r - c)) for c in [(after - f)[leaf == one][0], *r]]
            assert losses[0] <= min(losses[1:]) + 1e-12 * v.sum()
        f = after


def test_a_linear_base_learner_is_least_squares_after_one_stage(tmp_path):
    X, y = rows()
    model = GradientBoostingRegressor(estimator=LinearRegression(), n_estimators=1, learning_rate=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), rtol=1e-8)
    summula.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(summula.load(tmp_path / "model.safetensors").predict(X), model.predict(X))


@pytest.mark.parametrize("loss", REGRESSION)
def test_the_factor_of_a_base_learner_lowers_the_loss_most(loss):
    X, y = rows()
    model = GradientBoostingRegressor(loss=loss, estimator=Ridge(), n_estimators=1, learning_rate=1.0).fit(X, y)
    start, h = float(model.init_.predict(X[:1])[0]), model.estimators_[0, 0].predict(X)
    stage = ResidualLoss(loss, 0.9).at(y, np.full((1, len(y)), start), np.ones(len(y)))
    at = [stage.mean(y, (start + c * model._steps[0] * h)[None], None) for c in (0.98, 1.0, 1.02)]
    assert at[1] <= min(at)
    assert at[1] == pytest.approx(model.train_score_[0])


def test_base_learners_of_classifiers():
    X, y = rows()
    for k in (2, 3):
        model = GradientBoostingClassifier(estimator=Ridge(), n_estimators=10).fit(X, labels(y, k))
        assert (np.diff(model.train_score_) <= 1e-12).all()
        assert model.estimators_.shape == (10, 1 if k == 2 else 3)


def test_rows_not_drawn_measure_each_stage():
    X, y = rows()
    model = GradientBoostingRegressor(subsample=0.5, n_estimators=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.diff(model.oob_scores_), -model.oob_improvement_[1:])
    assert model.oob_score_ == model.oob_scores_[-1] < model.oob_scores_[0]
    assert not hasattr(GradientBoostingRegressor(n_estimators=1).fit(X, y), "oob_scores_")


def test_a_warm_start_goes_on():
    X, y = rows()
    options = {"subsample": 0.5, "max_features": 2, "random_state": 3}
    whole = GradientBoostingRegressor(n_estimators=12, **options).fit(X, y)
    model = GradientBoostingRegressor(n_estimators=5, warm_start=True, **options).fit(X, y)
    model.set_params(n_estimators=12).fit(X, y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-12)
    np.testing.assert_allclose(model.oob_improvement_, whole.oob_improvement_, rtol=1e-9)
    with pytest.raises(ParameterError, match="must be larger or equal"):
        model.set_params(n_estimators=3).fit(X, y)


def test_a_warm_start_may_begin_or_end_to_draw_rows(tmp_path):
    X, y = rows()
    model = GradientBoostingRegressor(n_estimators=3, warm_start=True, random_state=0).fit(X, y)
    model.set_params(n_estimators=6, subsample=0.5).fit(X, y)
    assert model.oob_improvement_.shape == (6,)
    assert not model.oob_improvement_[:3].any()
    assert (model.oob_improvement_[3:] != 0).all()
    assert abs(model.oob_improvement_[3]) < 0.5 * model.oob_scores_[3]
    model.set_params(n_estimators=8, subsample=1.0).fit(X, y)
    assert not model.oob_improvement_[6:].any()
    summula.save(model, tmp_path / "model.safetensors")


def test_the_median_is_a_quantile():
    X, y = rows()
    median = GradientBoostingRegressor(loss="quantile", alpha=0.5, n_estimators=10).fit(X, y)
    absolute = GradientBoostingRegressor(loss="absolute_error", n_estimators=10).fit(X, y)
    np.testing.assert_allclose(median.predict(X), absolute.predict(X), atol=1e-12)
    assert absolute.apply(X).shape == (len(X), 10)


def test_early_stopping_and_monitors():
    X, y = rows()
    early = GradientBoostingRegressor(n_estimators=500, n_iter_no_change=3, tol=1e-2, random_state=0).fit(X, y)
    assert 3 < early.n_estimators_ < 500
    seen = []

    def monitor(i, model, state):
        seen.append((i, model.n_estimators_))
        return i == 2

    assert GradientBoostingRegressor().fit(X, y, monitor=monitor).n_estimators_ == 3
    assert seen == [(0, 1), (1, 2), (2, 3)]


def test_starts():
    X, y = rows()
    zero = GradientBoostingRegressor(init="zero", n_estimators=1, learning_rate=0.0).fit(X, y)
    np.testing.assert_array_equal(zero.predict(X), np.zeros(len(y)))
    linear = GradientBoostingRegressor(init=LinearRegression(), n_estimators=1, learning_rate=0.0).fit(X, y)
    np.testing.assert_allclose(linear.predict(X), LinearRegression().fit(X, y).predict(X))


@pytest.mark.parametrize("model", [GradientBoostingClassifier, GradientBoostingRegressor])
def test_a_criterion_is_accepted_with_a_warning(model):
    X, y = rows(60)
    with pytest.warns(FutureWarning, match="criterion"):
        model(criterion="friedman_mse", n_estimators=1).fit(X, labels(y, 2))


def test_bad_input():
    X, y = rows(60)
    with pytest.raises(ParameterError, match="only suitable for a binary"):
        GradientBoostingClassifier(loss="exponential").fit(X, labels(y, 3))
    with pytest.raises(DataError, match="1 class after sample_weight"):
        GradientBoostingClassifier().fit(X, labels(y, 2), (y < np.median(y)).astype(float))
    with pytest.raises(ParameterError, match="implementing 'fit' and 'predict_proba'"):
        GradientBoostingClassifier(init=Ridge()).fit(X, labels(y, 2))
    with pytest.raises(ParameterError, match="max_features=9 is larger"):
        GradientBoostingRegressor(max_features=9).fit(X, y)
    constant = GradientBoostingRegressor(n_estimators=3).fit(X, np.full(60, 2.5))
    np.testing.assert_array_equal(constant.predict(X), np.full(60, 2.5))
