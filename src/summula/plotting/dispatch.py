"""`plot`, which draws the default plot of a fitted model or a result.

A class may define a method `_plot(X, y, *, ax, **options)`, or a public `plot`; these take precedence. For
other models the plot follows from their attributes: classes, centres, components, probabilities, a trace. Nothing is
imported from the models, so models of other libraries with the same attributes work too.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from scipy.sparse import issparse

from summula.core.errors import DataError, ParameterError
from summula.plotting.kinds import PICTURES, several
from summula.plotting.slices import Slices
from summula.plotting.style import check_installed

__all__ = ["plot"]

_MARGINS = ("LinearSVC", "PegasosSVC", "SVC")
_REQUIRED = {  # attributes of a model required by each kind of plot
    **{"clusters": "cluster_centers_", "ellipses": "covariances_", "selection": "order_", "trace": "lower_bounds_"},
    **dict.fromkeys(("confusion", "curves"), "classes_"),
    **dict.fromkeys(("margin", "outliers"), "decision_function"),
}
_CATEGORICAL = ("CategoricalNB",)  # categories are not points of a plane


def plot(model: Any, X: Any = None, y: Any = None, *, kind: str | None = None, ax: Any = None, **options: Any) -> Any:
    """Draw the default plot of a fitted model or a result.

    | model | plot |
    |---|---|
    | classifiers, of two columns | regions of the classes, with levels of probability |
    | of one column; of more | probability of each class; the confusion matrix |
    | support vector machines of two classes and columns | margin and support vectors |
    | regressions of one column | the fitted mean |
    | of two columns; of more | the fitted mean as colours; predicted against actual values |
    | lasso and elastic net | coefficients as functions of the penalty |
    | decision trees | the tree |
    | forests, boosting, filters, of more than two columns | importances of the columns |
    | sequential feature selection | the score after each step |
    | outlier detectors | the accepted region, or a histogram of scores |
    | Gaussian mixtures, or a list of them | ellipses of the components, step by step; densities of one column |
    | k-means | clusters, centres and their regions |
    | PCA; factor analysis | explained variance and distortion; loadings |
    | solutions of `summula.optimize` | the path over contours of `f=`, or the convergence |
    | solutions of `summula.mdp` | values and policy |
    | learning and validation curves | the curves |
    | `theory.Halfspaces(2)` | all labellings of the points X |
    | `features.HOG` | the histograms of an image, `row=` |

    Mixtures and clusters of more than two columns are drawn in the plane of the two largest principal components of X.

    Parameters
    ----------
    model : fitted estimator, Solution, or list of either
    X : array-like or frame of shape (n_samples, n_features), optional
        Rows with the columns the model was fitted on.
    y : array-like of shape (n_samples,), or name of a column of X, optional
        Targets.
    kind : str, optional
        A plot other than the default: "clusters", "confusion", "convergence", "curves", "ellipses",
        "importances", "loadings", "margin", "mean", "outliers", "path", "predictions", "regions", "roc", "scree",
        "selection", "surface" or "trace".
    ax : matplotlib Axes, optional
        Axes to plot on; by default new ones.
    **options : dict
        Options of the plot, such as `columns=(0, 1)` for the two columns of regions, with the others fixed at their
        medians, or `column=0` for the column of a fitted mean.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = X[:, 0] > X[:, 1] ** 2
    >>> model = LogisticRegression().fit(X, y)
    >>> ax = summula.plot(model, X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['False', 'True']
    >>> summula.plot(model, X, y, kind="roc").get_xlabel()
    'false positive rate'
    """
    check_installed()
    if kind is not None and kind not in PICTURES:
        raise ParameterError(f"kind must be one of {', '.join(map(repr, sorted(PICTURES)))}; got {kind!r}.")
    if kind is not None:
        _check_kind(model, kind)
    elif not isinstance(model, type):
        if hasattr(model, "_plot"):
            return model._plot(X, y, ax=ax, **options)
        if callable(getattr(model, "plot", None)):
            return _own_picture(model, X, ax, options)
    kind = _natural(model, X, y, options) if kind is None else kind
    return PICTURES[kind](model, X, y, ax=ax, **options)


def _check_kind(model: Any, kind: str) -> None:
    """Raise if the requested plot needs attributes that the model lacks."""
    attribute = _REQUIRED.get(kind)
    for one in several(model):
        _check_fitted(one)
        name = type(one).__name__
        if attribute is not None and not hasattr(one, attribute):
            raise ParameterError(f"A plot of kind {kind!r} needs {attribute}, which {name} does not have.")
        if kind == "outliers" and hasattr(one, "classes_"):
            raise ParameterError(
                f"A plot of kind 'outliers' is for outlier detectors, but {name} has classes: outliers have small "
                "values of score_samples(X), where a classifier has it."
            )
        if kind in ("predictions", "surface") and hasattr(one, "classes_"):
            raise ParameterError(f"A plot of kind {kind!r} is for regression, but {name} has classes.")


def _own_picture(model: Any, X: Any, ax: Any, options: dict[str, Any]) -> Any:
    """Call the method `plot` of a model or a result, with X as its first argument, unless it is given by name."""
    parameters = [p for p in inspect.signature(model.plot).parameters.values() if p.kind < 2 and p.name != "ax"]
    if X is None:
        needed = [p.name for p in parameters if p.default is p.empty and p.name not in options]
        if needed:
            kind, name = type(model).__name__, needed[0]
            raise DataError(f"The plot of {kind} needs {name}: pass it, summula.plot(model, {name}=...).")
        return model.plot(ax=ax, **options)
    first = [p.name for p in parameters if p.name not in options][:1]
    return model.plot(ax=ax, **dict.fromkeys(first, X), **options)


# ------------------------------------------------------------------------------------------------------------- choosing


def _natural(model: Any, X: Any, y: Any, options: dict[str, Any]) -> str:
    """Return the default kind of plot of a model."""
    first = model[0] if isinstance(model, list | tuple) and len(model) else model
    if hasattr(first, "trace") and hasattr(first, "path"):
        return "path" if "f" in options else "convergence"
    _check_fitted(first)
    if hasattr(first, "means_") and hasattr(first, "covariances_"):
        return "ellipses"
    if hasattr(first, "offset_") and hasattr(first, "decision_function") and not hasattr(first, "classes_"):
        return "outliers"
    for attribute, kind in (
        ("explained_variance_", "scree"),
        ("components_", "loadings"),
        ("cluster_centers_", "clusters"),
        ("lower_bounds_", "trace"),
    ):
        if hasattr(first, attribute) and not hasattr(first, "component_indices_"):  # components of Nystroem are rows
            return kind
    if hasattr(model, "predict"):
        return _of_predictions(model, X, y, options)
    if hasattr(first, "mutual_information_"):
        return "importances"
    if hasattr(first, "order_") and hasattr(first, "scores_"):
        return "selection"
    if hasattr(first, "trace_"):
        return "convergence"
    raise ParameterError(
        f"{type(model).__name__} has no picture; summula.plot draws fitted classifiers, regressors, mixtures, "
        "clusters, components, and solutions of summula.optimize and summula.mdp."
    )


def _check_fitted(model: Any) -> None:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, BaseEstimator) and not isinstance(model, type):
        check_is_fitted(model)


def _of_predictions(model: Any, X: Any, y: Any, options: dict[str, Any]) -> str:
    """Return the kind of plot of a classifier or regressor, which depends on the number of columns."""
    name, has_importances = type(model).__name__, hasattr(model, "feature_importances_")
    if X is None:
        if has_importances:
            return "importances"
        raise DataError(f"The plot of {name} shows predictions for rows: pass them, summula.plot(model, X, y).")
    width = X.shape[1] if issparse(X) else len(Slices(X, "plot", model, y if isinstance(y, str) else None).names)
    classes = getattr(model, "classes_", None)
    if "columns" in options:
        return "regions" if classes is not None else "surface"
    if "column" in options:
        return "curves" if _needs_curves(model, classes) else "mean"
    if name in _CATEGORICAL:
        return "confusion"
    if width == 1:
        return "curves" if _needs_curves(model, classes) else "mean"
    if width == 2 and classes is not None:
        margin = name in _MARGINS and np.size(classes) == 2 and y is not None
        return "margin" if margin and not options else "regions"
    if has_importances:
        return "importances"
    return "confusion" if classes is not None else "surface" if width == 2 else "predictions"


def _needs_curves(model: Any, classes: Any) -> bool:
    """Return whether a classifier of one column needs several curves, or one of a score instead of a probability."""
    return classes is not None and (np.size(classes) != 2 or not hasattr(model, "predict_proba"))
