"""One function that draws the natural picture of a fitted model, or of a result.

A class that knows its picture has a method `_plot(X, y, *, ax, **options)`, or a public `plot`; these come first. For
the others the picture follows from what they have: classes, centres, components, probabilities, a trace. Nothing is
imported from the models, so models of other libraries with the same attributes work too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from summula.core.errors import DataError, ParameterError
from summula.plotting.slices import Slices
from summula.plotting.style import check_installed

__all__ = ["plot"]

_MARGINS = ("LinearSVC", "PegasosSVC", "SVC")
_CATEGORICAL = ("CategoricalNB", "ID3Classifier")  # categories are not the points of a plane


def plot(model: Any, X: Any = None, y: Any = None, *, kind: str | None = None, ax: Any = None, **options: Any) -> Any:
    """Draw the natural picture of a fitted model or a result.

    | model | picture |
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
        Another picture than the natural one: "clusters", "confusion", "convergence", "curves", "ellipses",
        "importances", "loadings", "margin", "mean", "outliers", "path", "predictions", "regions", "roc", "scree",
        "selection", "surface" or "trace".
    ax : matplotlib Axes, optional
        Axes to plot on; by default new ones.
    **options : dict
        Options of the picture, such as `columns=(0, 1)` for the two columns of regions, with the others at their
        medians, or `column=0` for that of a fitted mean.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from matplotlib import pyplot
    >>> from summula.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = X[:, 0] > X[:, 1] ** 2
    >>> model = LogisticRegression().fit(X, y)
    >>> ax = summula.plot(model, X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['False', 'True']
    >>> summula.plot(model, X, y, kind="roc").get_xlabel()
    'false positive rate'
    >>> pyplot.close("all")
    """
    check_installed()
    if kind is not None and kind not in _PICTURES:
        raise ParameterError(f"kind must be one of {', '.join(map(repr, sorted(_PICTURES)))}; got {kind!r}.")
    if kind is None and not isinstance(model, type):
        if hasattr(model, "_plot"):
            return model._plot(X, y, ax=ax, **options)
        if callable(getattr(model, "plot", None)):
            return _own_picture(model, X, ax, options)
    kind = _natural(model, X, y, options) if kind is None else kind
    return _PICTURES[kind](model, X, y, ax=ax, **options)


def _own_picture(model: Any, X: Any, ax: Any, options: dict[str, Any]) -> Any:
    """Call the method `plot` of a model or a result, with X for its first argument, unless that is given by name."""
    parameters = [p for p in inspect.signature(model.plot).parameters.values() if p.kind < 2 and p.name != "ax"]
    if X is None:
        needed = [p.name for p in parameters if p.default is p.empty and p.name not in options]
        if needed:
            kind, name = type(model).__name__, needed[0]
            raise DataError(f"The picture of {kind} needs {name}: pass it, summula.plot(model, {name}=...).")
        return model.plot(ax=ax, **options)
    first = [p.name for p in parameters if p.name not in options][:1]
    return model.plot(ax=ax, **dict.fromkeys(first, X), **options)


# ------------------------------------------------------------------------------------------------------------- choosing


def _natural(model: Any, X: Any, y: Any, options: dict[str, Any]) -> str:
    """Return the kind of picture that a model calls for."""
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
        if hasattr(first, attribute) and not hasattr(first, "component_indices_"):  # Nystroem's components are rows
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
    """Return the kind of picture of a classifier or regressor, which depends on the number of columns."""
    name, has_importances = type(model).__name__, hasattr(model, "feature_importances_")
    if X is None:
        if has_importances:
            return "importances"
        raise DataError(
            f"The picture of {name} shows its predictions among rows: pass them, summula.plot(model, X, y)."
        )
    width = X.shape[1] if issparse(X) else len(Slices(X, "plot", model, y if isinstance(y, str) else None).names)
    classes = getattr(model, "classes_", None)
    if "columns" in options:
        return "regions" if classes is not None else "surface"
    if "column" in options:
        return "curves" if _needs_curves(model, classes) else "mean"
    if classes is None:
        return (
            "mean" if width == 1 else "importances" if has_importances else "surface" if width == 2 else "predictions"
        )
    if name in _CATEGORICAL:
        return "confusion"
    if width == 1:
        return "curves" if _needs_curves(model, classes) else "mean"
    if width == 2:
        margin = name in _MARGINS and np.size(classes) == 2 and y is not None
        return "margin" if margin and not options else "regions"
    return "importances" if has_importances else "confusion"


def _needs_curves(model: Any, classes: Any) -> bool:
    """Whether a classifier of one column has not one curve, of a probability, but several, or one of a score."""
    return classes is not None and (np.size(classes) != 2 or not hasattr(model, "predict_proba"))


# -------------------------------------------------------------------------------------------------------------- drawing


def _several(model: Any) -> list[Any]:
    return list(model) if isinstance(model, list | tuple) else [model]


def _needed(name: str, value: Any, kind: str) -> Any:
    if value is None:
        raise DataError(f"A picture of the kind {kind!r} needs {name}: pass it, summula.plot(model, X, y).")
    return value


def _regions(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.regions import decision_regions

    return decision_regions(model, _needed("X", X, "regions"), y, **options)


def _margin(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.margin_slabs import margin_slab

    return margin_slab(model, _needed("X", X, "margin"), _needed("y", y, "margin"), **options)


def _curves(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.scores import class_curves

    return class_curves(model, _needed("X", X, "curves"), y, **options)


def _surface(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.scores import fitted_surface

    return fitted_surface(model, _needed("X", X, "surface"), y, **options)


def _outliers(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.scores import outlier_scores

    return outlier_scores(model, _needed("X", X, "outliers"), **options)


def _predicted(model: Any, X: Any, y: Any, kind: str) -> tuple[Any, Any, str | None]:
    """Return targets, predictions, and the name of the target."""
    from summula.plotting.slices import target_values

    X, y = _needed("X", X, kind), _needed("y", y, kind)
    rows = None if issparse(X) else Slices(X, "plot", model, y if isinstance(y, str) else None)
    values, name = target_values(X, y, X.shape[0] if rows is None else rows.n_rows, "plot")
    return values, model.predict(X if rows is None or rows.frame is None else rows.frame.to_native()), name


def _confusion(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions import confusion

    values, predicted, name = _predicted(model, X, y, "confusion")
    return confusion(values, predicted, name=name or "", **options)


def _predictions(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions import predicted_actual

    values, predicted, name = _predicted(model, X, y, "predictions")
    return predicted_actual(values, predicted, name=name or "y", **options)


def _mean(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.means import fitted_mean

    return fitted_mean(model, _needed("X", X, "mean"), _needed("y", y, "mean"), **options)


def _roc(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.rankings import roc
    from summula.plotting.slices import target_values

    X, y, scores = _needed("X", X, "roc"), _needed("y", y, "roc"), []
    rows = None if issparse(X) else Slices(X, "plot", _several(model)[0], y if isinstance(y, str) else None)
    features = X if rows is None or rows.frame is None else rows.frame.to_native()
    for one in _several(model):
        if hasattr(one, "predict_proba"):
            scores.append(np.asarray(one.predict_proba(features))[:, -1])
        elif hasattr(one, "decision_function"):
            scores.append(np.asarray(one.decision_function(features)))
        else:
            raise ParameterError(
                f"{type(one).__name__} has neither probabilities nor scores, which an ROC curve needs."
            )
    n_rows = X.shape[0] if rows is None else rows.n_rows
    return roc(target_values(X, y, n_rows, "plot")[0], *scores, **options)


def _ellipses(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.mixtures import mixture_density, mixture_ellipses

    if np.shape(_several(model)[-1].means_)[1:] == (1,):
        return mixture_density(_several(model)[-1], X, **options)
    return mixture_ellipses(*_several(model), X=X, **options)


def _trace(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.mixtures import likelihood_trace

    return likelihood_trace(*_several(model), **options)


def _scree(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.components import scree

    return scree(model, **options)


def _loadings(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.components import loadings

    return loadings(model, **options)


def _clusters(model: Any, X: Any, y: Any, *, columns: Any = None, **options: Any) -> Any:
    from summula.plotting.clusters import cluster_histogram, cluster_regions
    from summula.plotting.planes import principal_plane

    slices = Slices(_needed("X", X, "clusters"), "plot", model)
    labels = np.asarray(model.predict(X if slices.frame is None else slices.frame.to_native()))
    rows = np.column_stack([slices.values(j) for j in range(len(slices.names))])
    centers = np.asarray(model.cluster_centers_)
    if len(slices.names) == 1:
        return cluster_histogram(rows[:, 0], labels, centers[:, 0], name=slices.names[0], **options)
    if columns is None and len(slices.names) > 2:
        plane = principal_plane(rows)
        look = {"names": plane.names, "title": plane.title, "regions": False, **options}
        return cluster_regions(plane(rows), labels, plane(centers), **look)
    pair = [slices.place(column) for column in ((0, 1) if columns is None else columns)]
    # Regions in two of several columns are not those of the clusters.
    look = {"names": [slices.names[j] for j in pair], "regions": len(slices.names) == 2, **options}
    return cluster_regions(rows[:, pair], labels, centers[:, pair], **look)


def _importances(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.importances import importance_bars

    values = getattr(model, "feature_importances_", getattr(model, "mutual_information_", None))
    if values is None:
        raise ParameterError(f"{type(model).__name__} has no feature_importances_.")
    if not hasattr(model, "feature_importances_"):
        options = {"measure": "mutual information", **options}
    return importance_bars(values, getattr(model, "feature_names_in_", None), **options)


def _selection(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.importances import selection_curve

    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    backward = model.direction == "backward"
    steps = [f"{'-' if backward else '+'} {names[j]}" for j in model.order_]
    begins = len(model.scores_) > len(steps)  # with the score of all columns
    chosen = model.n_features_in_ - model.n_features_to_select_ if backward else model.n_features_to_select_
    return selection_curve(
        model.scores_, ["all", *steps] if begins else steps, chosen=int(chosen) - (not begins), **options
    )


def _convergence(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.traces import convergence

    return convergence(*_several(model), **options)


def _path(model: Any, X: Any, y: Any, *, f: Callable[[Any], Any] | None = None, **options: Any) -> Any:
    from summula.plotting.paths import descent_path

    if f is None:
        raise ParameterError("A path is drawn over the contours of the objective: pass it as f=.")
    return descent_path(f, *_several(model), **options)


_PICTURES: dict[str, Callable[..., Any]] = {
    "clusters": _clusters,
    "confusion": _confusion,
    "convergence": _convergence,
    "curves": _curves,
    "ellipses": _ellipses,
    "importances": _importances,
    "loadings": _loadings,
    "margin": _margin,
    "mean": _mean,
    "outliers": _outliers,
    "path": _path,
    "predictions": _predictions,
    "regions": _regions,
    "roc": _roc,
    "scree": _scree,
    "selection": _selection,
    "surface": _surface,
    "trace": _trace,
}
