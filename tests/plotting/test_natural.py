"""Default plots of models with one, two and many columns agree with the models' predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix

import summula
from summula import DataError, ParameterError, plotting
from summula.cluster import KMeans
from summula.feature_selection import MutualInformationFilter, SequentialFeatureSelector
from summula.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from summula.mdp import FittedValueIteration, Grid, TransitionCounts, discretize, learn
from summula.mixture import GaussianMixture
from summula.naive_bayes import CategoricalNB, GaussianNB
from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor
from summula.svm import SVC, OneClassSVM
from summula.tree import DecisionTreeRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
FRAME = pd.DataFrame(X, columns=["age", "_rent", "cost $", "b $x$"])
t = X[:, 0] + 0.5 * X[:, 1] ** 2
y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
three = np.digitize(X[:, 0], [-0.5, 0.5])


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_classifiers_of_many_columns_have_a_confusion_matrix():
    model = LogisticRegression().fit(FRAME, three)
    ax = summula.plot(model, FRAME, pd.Series(three, name="size"))
    guess = model.predict(FRAME)
    counts = [str(((three == a) & (guess == b)).sum()) for a in range(3) for b in range(3)]
    assert [text.get_text() for text in ax.texts] == counts
    right = int((guess == three).sum())
    assert ax.get_title() == f"{right} of 60 rows ({right / 60:.1%}) are predicted correctly"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted size", "actual size")
    recall = ax.images[0].get_array()[1, 1]
    assert recall == pytest.approx(((guess == 1) & (three == 1)).sum() / (three == 1).sum())


def test_sparse_rows_are_predicted():
    model = LogisticRegression().fit(csr_matrix(X), y)
    ax = summula.plot(model, csr_matrix(X), y)
    assert ax.get_title() == summula.plot(model, X, y).get_title()
    assert summula.plot(model, csr_matrix(X), y, kind="roc").lines[1].get_ydata()[-1] == 1.0


def test_regressions_of_many_columns_are_compared_with_the_targets():
    model = Ridge().fit(X, t)
    ax = summula.plot(model, X, t)
    assert_allclose(ax.collections[0].get_offsets(), np.column_stack([model.predict(X), t]))
    assert f"R2 = {model.score(X, t):.3f}" in ax.get_title()


def test_regressions_of_two_columns_are_surfaces():
    model = LinearRegression().fit(X[:, :2], t)
    ax = summula.plot(model, X[:, :2], t)
    left, right, bottom, top = ax.images[0].get_extent()
    image = ax.images[0].get_array()
    assert_allclose(image[[0, -1], [0, -1]], model.predict([[left, bottom], [right, top]]))
    assert_allclose(ax.collections[-1].get_array(), t)
    ax = summula.plot(Ridge().fit(FRAME, t), FRAME, t, columns=("age", "cost $"))
    assert (ax.get_xlabel(), ax.get_title()) == ("age", "other columns at their median")


@pytest.mark.parametrize(("model", "measure"), [(GaussianNB(), "probability"), (SVC(), "score")])
def test_classes_of_one_column_are_curves(model, measure):
    model.fit(X[:, :1], three)
    ax = summula.plot(model, X[:, :1], three)
    assert ax.get_ylabel() == measure
    line = ax.lines[1]
    of = model.predict_proba if measure == "probability" else model.decision_function
    assert_allclose(line.get_ydata(), of(line.get_xdata()[:, None])[:, 1])
    assert texts(ax) == ["0", "1", "2"]


def test_a_score_of_two_classes_is_one_curve():
    model = SVC().fit(X, y)
    ax = summula.plot(model, X, y, column=0)
    rows = np.tile(np.median(X, axis=0), (256, 1))
    rows[:, 0] = ax.lines[0].get_xdata()
    assert_allclose(ax.lines[0].get_ydata(), model.decision_function(rows))
    assert texts(ax) == ["no", "yes"]


def test_categories_are_no_plane():
    codes = (X[:, :2] > 0).astype(int)
    assert "predicted correctly" in summula.plot(CategoricalNB().fit(codes, y), codes, y).get_title()


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_outliers(columns):
    model = OneClassSVM(nu=0.2).fit(X[:, :columns])
    ax = summula.plot(model, X[:, :columns])
    outside = int((model.decision_function(X[:, :columns]) < 0).sum())
    assert ax.get_title() == f"{outside} of 60 rows are outliers"
    if columns == 2:
        assert len(ax.collections[-1].get_offsets()) == outside
    else:
        edges = np.array([bar.get_x() for bar in ax.patches])
        heights = np.array([bar.get_height() for bar in ax.patches])
        assert heights[edges < -1e-9].sum() == outside
        assert heights.sum() == 60


def test_mixtures_and_clusters_of_many_columns_are_drawn_in_their_principal_plane():
    wide = X * [5.0, 3.0, 1.0, 0.1]
    W = np.linalg.svd(wide - wide.mean(axis=0))[2][:2].T
    ax = summula.plot(KMeans(2, random_state=0).fit(wide), wide)
    drawn = np.vstack([c.get_offsets() for c in ax.collections])
    assert_allclose(np.sort(np.abs(drawn[:, 0])), np.sort(np.abs((wide - wide.mean(axis=0)) @ W[:, 0])))
    assert not ax.images, "no regions: they would be those of the plane"
    assert ax.get_title().startswith("two principal components, 9")
    model = GaussianMixture(1).fit(wide)
    ax = summula.plot(model, wide)
    ellipse = np.column_stack(ax.lines[1].get_data())
    assert_allclose((ellipse**2 @ (1 / np.linalg.eigvalsh(model.covariances_[0])[::-1][:2])), -2 * np.log(0.1))
    names = summula.plot(GaussianMixture(1).fit(FRAME), FRAME, columns=("age", "cost $"))
    assert (names.get_xlabel(), names.get_ylabel()) == ("age", "cost $")


def test_mixtures_and_clusters_of_one_column():
    model = GaussianMixture(2, random_state=0).fit(X[:, :1])
    ax = summula.plot(model, X[:, :1])
    line = ax.lines[-1]
    assert_allclose(np.log(line.get_ydata()), model.score_samples(line.get_xdata()[:, None]), rtol=1e-6)
    means = KMeans(2, random_state=0).fit(X[:, :1])
    ax = summula.plot(means, X[:, :1])
    assert_allclose([line.get_xdata()[0] for line in ax.lines], means.cluster_centers_[:, 0])
    assert sum(bar.get_height() for bar in ax.patches) >= 60


def test_selections():
    chosen = SequentialFeatureSelector(LinearRegression(), n_features_to_select="best", cv=3).fit(FRAME, t)
    ax = summula.plot(chosen)
    assert_allclose(ax.lines[0].get_ydata(), chosen.scores_)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [f"+ {FRAME.columns[j]}" for j in chosen.order_]
    assert ax.lines[1].get_xdata()[0] == chosen.n_features_to_select_ - 1
    back = SequentialFeatureSelector(LinearRegression(), n_features_to_select=3, direction="backward", cv=3).fit(X, t)
    assert summula.plot(back).get_xticklabels()[0].get_text() == f"- x{back.order_[0]}"
    assert summula.plot(MutualInformationFilter().fit(FRAME, y)).get_xlabel() == "mutual information"


def test_a_large_tree_is_cut_and_its_boxes_do_not_overlap():
    tree = DecisionTreeRegressor(random_state=0).fit(FRAME, t)
    for ax, levels in ((summula.plot(tree, ax=pyplot.subplots()[1]), 2), (summula.plot(tree), 3)):
        assert ax.get_title().startswith(f"the first {levels} of ")
        ax.figure.canvas.draw()
        boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert len(summula.plot(tree, max_depth=4).texts) > len(ax.texts)


def test_the_penalty_of_the_fit_is_visible():
    ax = summula.plot(Lasso(alpha=50.0).fit(FRAME, t), FRAME, t, alphas=10)
    right, left = sorted(ax.get_xlim())[::-1]
    assert left < 50.0 < right, "also if it is larger than all of the path"


def test_a_step_function_has_one_contour():
    model = KNeighborsClassifier(3).fit(X[:, :2], y)
    contours = [c for c in summula.plot(model, X[:, :2], y).collections if hasattr(c, "levels")]
    assert [list(c.levels) for c in contours] == [[0.5]]
    ax = summula.plot(model, X[:, :2], y, levels=(0.25, 0.75))
    assert_allclose(next(c.levels for c in ax.collections if hasattr(c, "levels")), [0.25, 0.75])


def test_names_are_not_parsed_as_formulas_and_all_are_in_the_legend():
    labels = np.where(X[:, 0] > 0, "_a", r"$\frac$")
    frame = FRAME[["_rent", "b $x$"]].rename(columns={"b $x$": r"$\bad$"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ax in (
            summula.plot(LogisticRegression().fit(frame, labels), frame, labels),
            summula.plot(SVC().fit(frame, labels), frame, labels),
            summula.plot(LogisticRegression().fit(FRAME, labels), FRAME, labels),
            summula.plot(Lasso(alpha=0.1).fit(frame, t), frame, t),
        ):
            ax.figure.canvas.draw()
    assert [text.strip() for text in texts(ax)[:2]] in (["_rent", r"$\bad$"], [r"$\bad$", "_rent"])


def test_a_dark_style_leaves_the_text_readable():
    with pyplot.style.context("dark_background"):
        ax = summula.plot(LogisticRegression().fit(X[:, :2], y), X[:, :2], y)
        assert ax.figure.get_facecolor()[:3] == (1.0, 1.0, 1.0)
        assert to_hex(ax.get_legend().get_texts()[0].get_color()) == "#222222"


def walk(x, a, rng):
    return x + a[:, None] * np.ones(x.shape[1]), -(x**2).sum(axis=1), np.zeros(len(x), bool)


@pytest.mark.parametrize("d", [1, 2])
def test_values_of_continuous_states(d):
    found = discretize(walk, Grid.uniform([-1.0] * d, [1.0] * d, [9] * d), [-0.25, 0.0, 0.25], 0.9)
    with pytest.raises(DataError, match="discretization.mdp.solve()"):
        summula.plot(found)
    solution = found.mdp.solve()
    for ax in (summula.plot(found), summula.plot(found, solution, names=["left", "up"][:d])):
        assert texts(ax) == ["-0.25", "0.0", "0.25"]
        drawn = ax.lines[0].get_ydata() if d == 1 else np.asarray(ax.collections[0].get_array()).T
        assert_allclose(np.ravel(drawn), solution.values)
    assert ax.get_xlabel() == "left"
    model = FittedValueIteration(KNeighborsRegressor(2), [-0.25, 0.25], discount=0.5).fit(walk, found.grid.points)
    assert texts(summula.plot(model, resolution=9)) == ["-0.25", "0.25"]


class Coin:
    def reset(self, seed=None):
        return 0, {}

    def step(self, action):
        return 0, float(action), True, False, {}


def test_what_was_learned_is_a_curve_of_returns():
    learned = learn(Coin(), 0.9, counts=TransitionCounts(1, 2), n_episodes=20, random_state=0)
    ax = summula.plot(learned, window=20)
    assert_allclose(ax.lines[0].get_ydata(), [learned.returns.mean()])
    with pytest.raises(ParameterError, match="from 1 to 20, not 21"):
        learned.plot(window=21)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plotting.confusion(["a"], []), "1 actual and 0 predicted"),
        (lambda: plotting.predicted_actual(["a"], ["b"]), "draw classes with confusion"),
        (lambda: plotting.value_function([[0, 1]], [1.0]), r"shape \(1,\) for a grid of \(2,\)"),
        (lambda: plotting.state_values([[1.0]]), "one per state"),
        (lambda: plotting.horizon_values([[1.0]], [[0]]), r"expected \(H \+ 1, S\)"),
        (lambda: plotting.selection_curve([1.0], []), "1 scores and 0 steps"),
        (lambda: plotting.cluster_histogram([[1.0]], [0]), "one of each per row"),
    ],
)
def test_bad_arrays_get_one_sentence(draw, message):
    with pytest.raises(DataError, match=message):
        draw()
