"""Learning and validation curves, ROC curves, grids, bars, clusters, shattering: what is on the axes."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score, roc_curve

import summula
from summula import DataError, ParameterError
from summula.decomposition import FactorAnalysis
from summula.discriminant_analysis import LinearDiscriminantAnalysis
from summula.dummy import DummyClassifier
from summula.model_selection import select
from summula.naive_bayes import GaussianNB
from summula.plotting import (
    candidate_scores,
    cluster_regions,
    confusion,
    importance_bars,
    learning_curve,
    loadings,
    mixture_ellipses,
    oriented_histograms,
    roc,
    shattering,
    validation_curve,
    value_grid,
)
from summula.plotting.style import colour

rng = np.random.default_rng(0)


def test_learning_curves_are_means_with_bands_of_one_standard_deviation():
    training, validation = rng.random((3, 5)), rng.random((3, 5))
    ax = learning_curve([30, 10, 20], training, validation, measure="accuracy")
    order = [1, 2, 0]
    for line, band, scores in zip(ax.lines, ax.collections, (training, validation), strict=True):
        assert_array_equal(line.get_xdata(), [10, 20, 30])
        assert_allclose(line.get_ydata(), scores.mean(axis=1)[order])
        corners = band.get_paths()[0].vertices
        for x, mean, std in zip([10, 20, 30], scores.mean(axis=1)[order], scores.std(axis=1)[order], strict=True):
            heights = corners[corners[:, 0] == x, 1]
            assert_allclose([heights.min(), heights.max()], [mean - std, mean + std])
    assert ax.get_ylabel() == "accuracy"


def test_validation_curves_mark_the_choice():
    ax = validation_curve([1.0, 2.0, 3.0], [1, 2, 3], [3, 2, 1], parameter="depth", chosen=2.0)
    assert ax.get_xscale() == "linear"
    assert_array_equal(ax.lines[2].get_xdata(), [2.0, 2.0])
    assert not ax.collections, "there is no band without folds"
    assert validation_curve([0.01, 1.0], [1, 2], [3, 2]).get_xscale() == "log"


@pytest.mark.parametrize(
    ("x", "scores", "message"),
    [([1, 2], [1, 2, 3], r"training has shape \(3,\)"), (["a"], [1], "needs numbers"), ([], [], "finite numbers")],
)
def test_curves_that_are_refused(x, scores, message):
    with pytest.raises(ValueError, match=message):
        learning_curve(x, scores, scores)


def test_roc_curves_are_those_of_scikit_learn():
    y = rng.integers(0, 2, 200)
    scores = np.round(y + 1.5 * rng.normal(size=200), 1)  # with ties
    ax = roc(np.where(y, "yes", "no"), scores, -scores, labels=["up", "down"])
    false, true, _ = roc_curve(y, scores, drop_intermediate=False)
    assert_allclose(ax.lines[1].get_xdata(), false)
    assert_allclose(ax.lines[1].get_ydata(), true)
    area = roc_auc_score(y, scores)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [f"up: area {area:.3f}", f"down: area {1 - area:.3f}"]


def test_roc_curves_that_are_refused():
    with pytest.raises(DataError, match="y == name"):
        roc([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(DataError, match="row 1 is NaN"):
        roc([0, 1], [0.1, np.nan])
    with pytest.raises(ParameterError, match="at least one model"):
        roc([0, 1])


def test_grids_have_a_number_and_an_arrow_per_state():
    values = np.array([[0.5, 0.6, 1.0], [0.4, np.nan, -1.0]])
    ax = value_grid(values, [[1, 1, -1], [0, 0, -1]])
    written = {t.get_text() for t in ax.texts if t.get_text()}
    assert written == {"0.5", "0.6", "1", "0.4", "-1"}
    arrows = [t for t in ax.texts if not t.get_text()]
    ways = [np.sign(np.round(np.subtract(arrow.xy, arrow.xyann), 6)).tolist() for arrow in arrows]
    assert ways == [[1, 0], [1, 0], [0, -1]], "right, right, up; none in the wall and the final states"
    assert ax.images[0].get_array().mask[1, 1]
    assert_allclose(ax.images[0].get_array().compressed(), values[np.isfinite(values)])


def test_grids_that_are_refused():
    with pytest.raises(DataError, match="reshape the values"):
        value_grid([1.0, 2.0])
    with pytest.raises(ParameterError, match="one int per cell"):
        value_grid([[1.0, 2.0]], [[0.5, 1.0]])
    with pytest.raises(ParameterError, match="action 4, but there are 4 steps"):
        value_grid([[1.0, 2.0]], [[4, 0]])


def test_bars_are_in_order():
    ax = importance_bars([0.1, -0.5, 0.3, 0.0], list("abcd"), most=3)
    assert [bar.get_width() for bar in ax.patches] == [-0.5, 0.3, 0.1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "c", "a"]
    assert ax.get_title() == "the largest 3 of 4"


def test_regions_belong_to_the_nearest_centre():
    centers = np.array([[0.0, 0.0], [4.0, 0.0]])
    ax = cluster_regions([[0, 0], [1, 1], [4, 0], [9, 9]], [0, 0, 1, -1], centers)
    image, (low, high) = ax.images[0].get_array(), ax.get_xlim()
    first = [to_hex(image[0, j]) for j in range(image.shape[1])]
    turn = first.index(to_hex(colour(1)))
    assert set(first) == {to_hex(colour(0)), to_hex(colour(1))}
    assert low + (high - low) * turn / len(first) == pytest.approx(2.0, abs=0.1), "halfway at the bottom"
    assert [len(c.get_offsets()) for c in ax.collections] == [2, 1, 1]


def test_each_labelling_has_a_panel():
    from itertools import product

    from summula import plot
    from summula.theory import Halfspaces

    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    ax = plot(Halfspaces(2), points)
    kinds = [line.get_gid() for line in ax.lines]
    assert kinds.count("panel") == 16
    assert kinds.count("cross") == 2 * 2, "opposite corners alike, twice"
    assert kinds.count("line") == 16 - 2 - 2, "one class needs no line"
    assert ax.get_title() == "14 of 16 labellings of 4 points are realised"
    labels = list(product((0, 1), repeat=2))
    vertical = shattering(points[:2], labels, [True] * 4, [[np.nan] * 3, [2, 0, -1], [-2, 0, 1], [np.nan] * 3])
    line = next(line for line in vertical.lines if line.get_gid() == "line")
    assert_allclose(line.get_xdata(), [1.0, 1.0], atol=1e-12)  # the middle of the second panel


def test_strokes_are_along_the_edges():
    sums = np.zeros((1, 1, 4))
    sums[0, 0] = 2.0, 0.0, 1.0, 0.0
    segments = oriented_histograms(sums, cell=(10, 10)).collections[0].get_segments()
    ways = [np.subtract(*segment[::-1]) for segment in segments]
    assert_allclose(np.abs(ways), [[0.0, 9.0], [4.5, 0.0]], atol=1e-12)  # a vertical edge twice as long


def test_ellipses_have_the_axes_of_the_covariance():
    from summula.mixture import GaussianMixture

    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3))
    model = GaussianMixture(1).fit(X)
    ax = mixture_ellipses(model, X=X, columns=(2, 0), probability=0.5)
    ellipse = np.column_stack(ax.lines[1].get_data()) - model.means_[0, [2, 0]]
    lengths = np.sqrt((ellipse**2).sum(axis=1))
    values, vectors = np.linalg.eigh(model.covariances_[0][np.ix_([2, 0], [2, 0])])
    assert_allclose(lengths.max(), np.sqrt(2 * np.log(2) * values[1]), rtol=1e-3)
    assert_allclose(lengths.min(), np.sqrt(2 * np.log(2) * values[0]), rtol=2e-2)
    longest = ellipse[lengths.argmax()] / lengths.max()
    assert abs(longest @ vectors[:, 1]) == pytest.approx(1.0, abs=1e-2)
    with pytest.raises(ParameterError, match=r"choose two with columns=\(0, 1\)"):
        mixture_ellipses(model)


def test_roc_curves_of_several_classes_are_those_of_each_against_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]], 30, axis=0)
    y = np.repeat(["a", "b", "c"], 30)
    model = LinearDiscriminantAnalysis().fit(X, y)
    proba = model.predict_proba(X)
    areas = [roc_auc_score(y == name, proba[:, k]) for k, name in enumerate("abc")]
    expected = [f"{name} or not: area {area:.3f}" for name, area in zip("abc", areas, strict=True)]
    assert [text.get_text() for text in roc(y, proba).get_legend().get_texts()] == expected
    assert [text.get_text() for text in summula.plot(model, X, y, kind="roc").get_legend().get_texts()] == expected
    two = summula.plot(model, X[:60], y[:60], kind="roc")  # of the classes that occur, the larger is positive
    assert two.get_legend().get_texts()[0].get_text() == f"area {roc_auc_score(y[:60] == 'b', proba[:60, 1]):.3f}"
    with pytest.raises(DataError, match="y contains False, which is not one of the classes of LinearDiscriminant"):
        summula.plot(model, X, y == "a", kind="roc")


def test_outliers_are_not_drawn_for_classifiers():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    with pytest.raises(ParameterError, match=r"'outliers' is for outlier detectors.*score_samples\(X\)"):
        summula.plot(LinearDiscriminantAnalysis().fit(X, y), X, kind="outliers")


def test_scores_of_candidates_are_marked():
    found = select({"tree": DummyClassifier(), "bayes": GaussianNB()}, *load_iris(return_X_y=True), random_state=0)
    ax = summula.plot(found)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["tree", "bayes"]
    drawn = [line.get_xdata()[0] for line in ax.lines if line.get_marker() in ("o", "D")]
    np.testing.assert_allclose(drawn, [one.score for one in found.table])
    assert [line.get_marker() for line in ax.lines if line.get_marker() in ("o", "D")] == ["o", "D"]
    with pytest.raises(DataError, match="2 scores and 1 names"):
        candidate_scores(["a"], [1.0, 2.0])


def test_long_names_leave_room_for_the_plot():
    names = [f"a class with a rather long name, number {k}" for k in range(3)]
    ax = confusion(names, names)
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"a class with... number {k}" for k in range(3)]
    ax = loadings(FactorAnalysis(1).fit(np.random.default_rng(0).normal(size=(60, 30))))
    assert ax.get_yticklabels()[0].get_fontsize() < 6.0
