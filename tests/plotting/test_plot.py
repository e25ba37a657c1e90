"""`summula.plot` chooses the plot for a model, and errors name an alternative if there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

import summula
from summula import DataError, ParameterError
from summula.cluster import KMeans
from summula.decomposition import PCA, FactorAnalysis
from summula.ensemble import RandomForestClassifier
from summula.features import HOG, ParabolicLift
from summula.kernel_approximation import Nystroem
from summula.linear_model import Lasso, LassoCV, LinearRegression, LogisticRegression, lasso_path
from summula.mixture import BernoulliMixture, GaussianMixture
from summula.optimize import bfgs, gradient_descent
from summula.preprocessing import StandardScaler
from summula.stats import MultivariateNormal
from summula.svm import SVC, LinearSVC
from summula.tree import DecisionTreeClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
WIDE = rng.normal(size=(80, 4))
y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=80) > 0).astype(int)


def bowl(x):
    return x[0] ** 2 + 3 * x[1] ** 2


def test_two_columns_are_regions_with_levels_of_probability():
    ax = summula.plot(LogisticRegression().fit(X, y), X, y)
    contours = next(c for c in ax.collections if hasattr(c, "levels"))
    assert_allclose(contours.levels, [0.1, 0.25, 0.5, 0.75, 0.9])
    assert sum(len(c.get_offsets()) for c in ax.collections if c.get_label() in ("0", "1")) == 80


@pytest.mark.parametrize("model", [SVC(kernel="linear"), LinearSVC()])
def test_machines_have_margins_and_support_vectors(model):
    frame = pd.DataFrame(X, columns=["a", "b"])
    fitted = model.fit(frame, y)
    ax = summula.plot(fitted, frame, y)
    circled = next(line for line in ax.lines if line.get_label() == "support vectors")
    margins = np.where(y == 1, 1, -1) * fitted.decision_function(frame)
    expected = fitted.support_ if hasattr(fitted, "support_") else np.flatnonzero(margins <= 1)
    assert_allclose(np.column_stack(circled.get_data()), X[expected])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert summula.plot(fitted, frame, y, columns=("a", "b")).get_title() == "", "asked for columns: regions"


def test_one_column_is_the_fitted_mean():
    model = LinearRegression().fit(X[:, :1], X[:, 1])
    line = summula.plot(model, X[:, :1], X[:, 1]).lines[0]
    assert_allclose(line.get_ydata(), model.predict(line.get_xdata()[:, None]))
    assert summula.plot(LinearRegression().fit(WIDE, y), WIDE, y, column=2).get_xlabel() == "x2"


@pytest.mark.parametrize("model", [Lasso(alpha=0.1), LassoCV(cv=3)])
def test_the_lasso_is_its_path(model):
    frame = pd.DataFrame(WIDE + 5.0, columns=list("abcd"))
    target = 3 * WIDE[:, 1] - WIDE[:, 2] + 7.0
    fitted = model.fit(frame, target)
    ax = summula.plot(fitted, frame, target, alphas=20)
    alphas, coefs, _ = lasso_path(WIDE - WIDE.mean(axis=0), target - target.mean(), alphas=20)
    line = next(line for line in ax.lines if line.get_label() == "b")
    assert_allclose(line.get_xdata(), alphas)
    assert_allclose(line.get_ydata(), coefs[1], atol=1e-3)
    mark = ax.lines[-1].get_xdata()[0]
    assert mark == pytest.approx(getattr(fitted, "alpha_", 0.1))
    # the path passes through the coefficients of the fit
    assert np.interp(-np.log(mark), -np.log(alphas), coefs[1]) == pytest.approx(fitted.coef_[1], abs=0.05)


def test_trees_and_forests():
    tree = DecisionTreeClassifier(max_depth=2).fit(WIDE, y)
    assert "x" in "".join(text.get_text() for text in summula.plot(tree).texts)
    assert summula.plot(tree, X=WIDE, y=y, kind="regions", columns=(0, 1)).get_title().startswith("other columns")
    forest = RandomForestClassifier(5, random_state=0).fit(WIDE, y)
    for ax in (summula.plot(forest), summula.plot(forest, WIDE, y)):
        assert_allclose([bar.get_width() for bar in ax.patches], np.sort(forest.feature_importances_)[::-1])


def test_models_without_targets():
    means = KMeans(2, random_state=0).fit(X)
    assert [len(c.get_offsets()) for c in summula.plot(means, X).collections] == np.bincount(means.labels_).tolist()
    assert not summula.plot(KMeans(2, random_state=0).fit(WIDE), WIDE).images, "no regions in two of four columns"
    steps = [GaussianMixture(2, max_iter=m, random_state=0).fit(X) for m in (0, 50)]
    assert len(summula.plot(steps, X).lines) == 2 + 2 * 2 + 2
    assert len(summula.plot(PCA().fit(WIDE)).patches) == 4
    assert summula.plot(FactorAnalysis(1).fit(WIDE + 2.0 * X[:, :1])).get_ylabel() == "column"
    counts = (WIDE > 0).astype(float)
    assert summula.plot(BernoulliMixture(2, random_state=0).fit(counts)).get_xlabel() == "EM step"


def test_solutions():
    found = [gradient_descent(bowl, [3.0, 1.0]), bfgs(bowl, [3.0, 1.0])]
    ax = summula.plot(found, f=bowl)
    assert_allclose(np.column_stack(ax.lines[0].get_data()), np.array(found[0].path))
    assert summula.plot(found[0]).get_yscale() == "log"


def test_classes_that_know_their_picture():
    assert len(summula.plot(MultivariateNormal([0.0, 0.0], np.eye(2)), axes=False).lines) == 4
    images = np.tile(np.arange(16.0), (2, 16))
    ax = summula.plot(HOG((16, 16)).fit(images), images, row=1)
    assert ax.images[0].get_array().shape == (16, 16)


def test_curves_of_several_models():
    models = [LogisticRegression().fit(X, y), LinearSVC().fit(X, y)]
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    assert len(summula.plot(models, X, y, kind="roc").lines) == 3
    assert summula.plot(LogisticRegression().fit(frame, "y"), frame, "y", kind="roc").lines[1].get_ydata()[-1] == 1.0


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: summula.plot(LogisticRegression().fit(WIDE, y), WIDE), DataError, "'confusion' needs y"),
        (lambda: summula.plot(LinearRegression().fit(WIDE, y), WIDE), DataError, "'predictions' needs y"),
        (lambda: summula.plot(Nystroem(n_components=5).fit(X)), ParameterError, "Nystroem has no picture"),
        (lambda: summula.plot(LogisticRegression().fit(X, y)), DataError, r"summula.plot\(model, X, y\)"),
        (lambda: summula.plot(Lasso().fit(X, y)), DataError, "regularisation path: pass the rows"),
        (lambda: summula.plot(KMeans(2).fit(X)), DataError, "'clusters' needs X"),
        (lambda: summula.plot(StandardScaler().fit(X)), ParameterError, "StandardScaler has no picture"),
        (lambda: summula.plot(ParabolicLift().fit(X)), ParameterError, "ParabolicLift has no picture"),
        (lambda: summula.plot(LogisticRegression()), NotFittedError, "not fitted"),
        (lambda: summula.plot(Lasso(), X, y), NotFittedError, "not fitted"),
        (lambda: summula.plot(LogisticRegression().fit(X, y), X, y, kind="pie"), ParameterError, "got 'pie'"),
        (lambda: summula.plot(bfgs(bowl, [1.0, 1.0]), kind="path"), ParameterError, "pass it as f="),
        (lambda: summula.plot(summula.theory.Halfspaces(2)), DataError, r"summula.plot\(model, points\)"),
        (lambda: summula.plot(summula.theory.Halfspaces(3), np.eye(3)), DataError, "2 coordinates"),
        (lambda: summula.plot(HOG().fit(X)), DataError, r"summula.plot\(model, X, row=0\)"),
        *(
            (lambda kind=kind: summula.plot(LinearRegression().fit(X, y), X, y, kind=kind), ParameterError, message)
            for kind, message in (
                ("clusters", "'clusters' needs cluster_centers_, which LinearRegression does not have"),
                ("confusion", "needs classes_"),
                ("ellipses", "needs covariances_"),
                ("outliers", "needs decision_function"),
                ("selection", "needs order_"),
                ("trace", "needs lower_bounds_"),
            )
        ),
        (
            lambda: summula.plot(LogisticRegression().fit(X, y), X, y, kind="surface"),
            ParameterError,
            "for regression, but LogisticRegression has classes",
        ),
        (lambda: summula.plot(42), ParameterError, "int has no picture"),
    ],
)
def test_what_has_no_picture_gets_one_sentence(draw, error, message):
    with pytest.raises(error, match=message):
        draw()
