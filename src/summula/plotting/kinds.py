"""Kinds of plots of `summula.plot`: each takes a model, rows and targets, and calls the plotting function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from summula.core.errors import DataError, ParameterError
from summula.plotting.slices import Slices

__all__ = ["PICTURES", "several"]


def several(model: Any) -> list[Any]:
    """Return a list of models, or a list of the single model."""
    return list(model) if isinstance(model, list | tuple) else [model]


def _needed(name: str, value: Any, kind: str) -> Any:
    if value is None:
        raise DataError(f"A plot of kind {kind!r} needs {name}: pass it, summula.plot(model, X, y).")
    return value


def _regions(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.regions import decision_regions

    return decision_regions(model, _needed("X", X, "regions"), y, **options)


def _margin(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.margin_slabs import margin_slab

    return margin_slab(model, _needed("X", X, "margin"), _needed("y", y, "margin"), **options)


def _curves(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.scores import class_curves

    return class_curves(model, _needed("X", X, "curves"), y, **options)


def _surface(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.scores import fitted_surface

    return fitted_surface(model, _needed("X", X, "surface"), y, **options)


def _outliers(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.scores import outlier_scores

    return outlier_scores(model, _needed("X", X, "outliers"), **options)


def _predicted(model: Any, X: Any, y: Any, kind: str) -> tuple[Any, Any, str | None]:
    """Return targets, predictions, and the name of the target."""
    from summula.plotting.slices import target_values

    X, y = _needed("X", X, kind), _needed("y", y, kind)
    rows = None if issparse(X) else Slices(X, "plot", model, y if isinstance(y, str) else None)
    values, name = target_values(X, y, X.shape[0] if rows is None else rows.n_rows, "plot")
    return values, model.predict(X if rows is None or rows.frame is None else rows.frame.to_native()), name


def _confusion(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.comparisons import confusion

    values, predicted, name = _predicted(model, X, y, "confusion")
    return confusion(values, predicted, name=name or "", **options)


def _predictions(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.comparisons import predicted_actual

    values, predicted, name = _predicted(model, X, y, "predictions")
    return predicted_actual(values, predicted, name=name or "y", **options)


def _mean(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.means import fitted_mean

    return fitted_mean(model, _needed("X", X, "mean"), _needed("y", y, "mean"), **options)


def _roc(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.predictions.rankings import roc
    from summula.plotting.slices import target_values

    X, y = _needed("X", X, "roc"), _needed("y", y, "roc")
    rows = None if issparse(X) else Slices(X, "plot", several(model)[0], y if isinstance(y, str) else None)
    features = X if rows is None or rows.frame is None else rows.frame.to_native()
    truth = target_values(X, y, X.shape[0] if rows is None else rows.n_rows, "plot")[0]
    return roc(truth, *(_class_scores(one, features, np.unique(truth)) for one in several(model)), **options)


def _class_scores(model: Any, X: Any, present: Any) -> Any:
    """Return the scores of the larger of two classes, or of each of several that are present."""
    name = type(model).__name__
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        raise ParameterError(f"{name} has neither probabilities nor scores, which an ROC curve needs.")
    found = np.asarray(model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X))
    known = np.asarray(getattr(model, "classes_", present)).tolist()
    if found.ndim == 1 or len(known) < 3:
        return found if found.ndim == 1 else found[:, -1]
    unknown = [one for one in present.tolist() if one not in known]
    if unknown:
        raise DataError(f"y contains {unknown[0]!r}, which is not one of the classes of {name}: {known}.")
    places = [known.index(one) for one in present.tolist()]
    return found[:, places] if len(places) > 2 else found[:, places[-1]]


def _ellipses(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.structure.mixtures import mixture_density, mixture_ellipses

    if np.shape(several(model)[-1].means_)[1:] == (1,):
        return mixture_density(several(model)[-1], X, **options)
    return mixture_ellipses(*several(model), X=X, **options)


def _trace(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.structure.mixtures import likelihood_trace

    return likelihood_trace(*several(model), **options)


def _scree(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.structure.components import scree

    return scree(model, **options)


def _loadings(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.structure.components import loadings

    return loadings(model, **options)


def _clusters(model: Any, X: Any, y: Any, *, columns: Any = None, **options: Any) -> Any:
    from summula.plotting.planes import principal_plane
    from summula.plotting.structure.clusters import cluster_histogram, cluster_regions

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
    # In two of several columns, nearest-centre regions differ from those of the clusters.
    look = {"names": [slices.names[j] for j in pair], "regions": len(slices.names) == 2, **options}
    return cluster_regions(rows[:, pair], labels, centers[:, pair], **look)


def _importances(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.fitting.importances import importance_bars

    values = getattr(model, "feature_importances_", getattr(model, "mutual_information_", None))
    if values is None:
        raise ParameterError(f"{type(model).__name__} has no feature_importances_.")
    if not hasattr(model, "feature_importances_"):
        options = {"measure": "mutual information", **options}
    return importance_bars(values, getattr(model, "feature_names_in_", None), **options)


def _selection(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.fitting.importances import selection_curve

    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    backward = model.direction == "backward"
    steps = [f"{'-' if backward else '+'} {names[j]}" for j in model.order_]
    begins = len(model.scores_) > len(steps)  # the first score is that of all columns
    chosen = model.n_features_in_ - model.n_features_to_select_ if backward else model.n_features_to_select_
    return selection_curve(
        model.scores_, ["all", *steps] if begins else steps, chosen=int(chosen) - (not begins), **options
    )


def _convergence(model: Any, X: Any, y: Any, **options: Any) -> Any:
    from summula.plotting.fitting.traces import convergence

    return convergence(*several(model), **options)


def _path(model: Any, X: Any, y: Any, *, f: Callable[[Any], Any] | None = None, **options: Any) -> Any:
    from summula.plotting.fitting.paths import descent_path

    if f is None:
        raise ParameterError("A path is plotted over the contours of the objective: pass it as f=.")
    return descent_path(f, *several(model), **options)


PICTURES: dict[str, Callable[..., Any]] = {
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
