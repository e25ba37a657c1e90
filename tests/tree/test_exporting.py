"""scikit-learn's text and plots of trees."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn import tree as theirs
from sklearn.datasets import load_iris

from summula.core.errors import DataError, ParameterError
from summula.ensemble import GradientBoostingRegressor, RandomForestClassifier
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_graphviz, export_text, plot_tree

X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[CODES]


@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("DecisionTreeClassifier", LABELS),
        ("DecisionTreeClassifier", np.column_stack([CODES, CODES == 2])),
        ("DecisionTreeRegressor", X[:, 3]),
        ("DecisionTreeRegressor", X[:, 2:]),
    ],
    ids=["labels", "several labels", "numbers", "several numbers"],
)
def test_the_text_is_that_of_the_same_tree_of_scikit_learn(name, y):
    ours = {"DecisionTreeClassifier": DecisionTreeClassifier, "DecisionTreeRegressor": DecisionTreeRegressor}[name]
    model, peer = (kind(max_depth=1, random_state=0).fit(X[:, :1], y) for kind in (ours, getattr(theirs, name)))
    assert export_text(model) == theirs.export_text(peer)
    labelled = y is LABELS
    options = {"feature_names": ["length"], "class_names": ["s", "e", "a"] if labelled else None}
    assert export_text(model, **options, decimals=3) == theirs.export_text(peer, **options, decimals=3)


def test_plots_and_graphviz(tmp_path):
    model = DecisionTreeClassifier(max_depth=2).fit(X, LABELS)
    drawn = plot_tree(model, filled=True, class_names=True, ax=plt.figure().subplots())
    assert len(drawn) >= model.tree_.node_count
    plt.close("all")
    text = export_graphviz(model, feature_names=list("abcd"))
    assert text.count("samples = ") == model.tree_.node_count
    assert export_graphviz(model, str(tmp_path / "tree.dot"), feature_names=list("abcd")) is None
    assert (tmp_path / "tree.dot").read_text() == text


def test_trees_of_ensembles():
    forest = RandomForestClassifier(2, max_depth=1, random_state=0).fit(X, LABELS)
    assert "class: " in export_text(forest.estimators_[0])
    boosted = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, CODES)
    assert "value: " in export_text(boosted.estimators_[0, 0])


def test_what_cannot_be_shown_is_named():
    frame = pd.DataFrame({"kind": LABELS})
    with pytest.raises(DataError, match="categorical column 0"):
        export_text(DecisionTreeRegressor().fit(frame, CODES))
    with pytest.raises(ParameterError, match="pass one of its estimators_"):
        plot_tree(RandomForestClassifier(2).fit(X, LABELS))
    with pytest.raises(ValueError, match="not fitted"):
        export_graphviz(DecisionTreeClassifier())


def test_attributes_of_other_models_change_no_rules():
    tree = DecisionTreeRegressor(max_depth=1).fit(X, CODES)
    rules = tree.rules()
    tree.classes_ = np.array(["a", "b"])
    assert tree.rules() == rules
