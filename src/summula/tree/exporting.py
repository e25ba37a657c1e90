"""scikit-learn's text and plots of decision trees, for the trees of this library.

scikit-learn's functions accept its own classes only, but use their public attributes alone: they receive a tree of its
class with the attributes of ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from summula.core.errors import DataError, ParameterError
from summula.tree.decision_tree import DecisionTree

__all__ = ["export_graphviz", "export_text", "plot_tree"]

_ATTRIBUTES = ("tree_", "classes_", "n_classes_", "n_outputs_", "n_features_in_", "feature_names_in_")


def export_text(decision_tree: Any, **options: Any) -> str:
    """Return the rules of a tree as text, by scikit-learn's function.

    Parameters
    ----------
    decision_tree : fitted DecisionTreeClassifier or DecisionTreeRegressor
        Also one of the `estimators_` of a forest or of gradient boosting.
    **options
        Options of `sklearn.tree.export_text`: `feature_names`, `class_names`, `max_depth`, `spacing`, `decimals`,
        `show_weights`.

    Returns
    -------
    str

    Examples
    --------
    >>> from summula.tree import DecisionTreeRegressor, export_text
    >>> model = DecisionTreeRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 1.0, 7.0])
    >>> print(export_text(model, feature_names=["age"]), end="")
    |--- age <= 2.50
    |   |--- value: [1.00]
    |--- age >  2.50
    |   |--- value: [7.00]
    """
    from sklearn import tree

    return str(tree.export_text(_as_scikit_learn(decision_tree), **options))


def plot_tree(decision_tree: Any, **options: Any) -> list[Any]:
    """Plot a tree with Matplotlib, by scikit-learn's function; `DecisionTreeClassifier.plot` is an alternative.

    Parameters
    ----------
    decision_tree : fitted DecisionTreeClassifier or DecisionTreeRegressor
        Also one of the `estimators_` of a forest or of gradient boosting.
    **options
        Options of `sklearn.tree.plot_tree`, such as `max_depth`, `feature_names`, `class_names`, `filled` and `ax`.

    Returns
    -------
    list of matplotlib Annotation
    """
    from sklearn import tree

    return list(tree.plot_tree(_as_scikit_learn(decision_tree), **options))


def export_graphviz(decision_tree: Any, out_file: Any = None, **options: Any) -> str | None:
    """Write a tree in the DOT language of Graphviz, by scikit-learn's function.

    Parameters
    ----------
    decision_tree : fitted DecisionTreeClassifier or DecisionTreeRegressor
        Also one of the `estimators_` of a forest or of gradient boosting.
    out_file : file or str, optional
        File to write to; by default the text is returned.
    **options
        Options of `sklearn.tree.export_graphviz`, such as `max_depth`, `feature_names`, `class_names` and `filled`.

    Returns
    -------
    str, or None if `out_file` is given
    """
    from sklearn import tree

    text: str | None = tree.export_graphviz(_as_scikit_learn(decision_tree), out_file, **options)
    return text


def _as_scikit_learn(model: Any) -> Any:
    """Return a tree of scikit-learn's class with the public attributes of a fitted tree."""
    from sklearn import tree
    from sklearn.base import is_classifier

    if not isinstance(model, DecisionTree):
        raise ParameterError(
            f"decision_tree must be a DecisionTreeClassifier or a DecisionTreeRegressor, not {type(model).__name__}; "
            "for an ensemble, pass one of its estimators_."
        )
    check_is_fitted(model)
    split_by_category = np.isnan(model.tree_.threshold)
    if split_by_category.any():
        column = int(model.tree_.feature[split_by_category][0])
        raise DataError(
            f"The tree splits the categorical column {column} into sets of categories, which scikit-learn's functions "
            "cannot show; use the methods rules() and plot() of the tree."
        )
    kind = tree.DecisionTreeClassifier if is_classifier(model) else tree.DecisionTreeRegressor
    shown = kind(criterion=model.criterion)
    for name in _ATTRIBUTES:
        if hasattr(model, name):
            setattr(shown, name, getattr(model, name))
    return shown
