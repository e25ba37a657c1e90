"""Every use of a model that reads its fitted state, by the name of the public method.

A use may return or raise one of Summula's own errors, `CLEAN`, or one of the sentences of scikit-learn in
`_SENTENCES`. Any other exception, a signal, a hang or excess memory is a failure.
"""

from __future__ import annotations

import copy
import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from summula.core.errors import DataError, ModelFileError, ParameterError, TimeLimitError

CLEAN = (DataError, ParameterError, ModelFileError, NotFittedError, TimeLimitError)
# Beginnings of scikit-learn's sentences: rows that are not those of the fit, and scores of predictions that overflow or
# are of another number of targets.
_SENTENCES = (
    *("X has ", "The feature names should match", "input_features ", "Unable to generate feature names"),
    *("Input contains ", "y_true and y_pred have different"),
)

Use = Callable[[Any, Any], Any]  # of a model and its `Saved`


def _each(name: str) -> Use:
    def use(model: Any, saved: Any) -> None:
        for _ in getattr(model, name)(saved.X):
            pass

    return use


def _of_rows(name: str) -> Use:
    return lambda model, saved: getattr(model, name)(saved.X)


def _of_rows_and_targets(name: str) -> Use:
    return lambda model, saved: getattr(model, name)(saved.X, saved.y)


def _alone(name: str) -> Use:
    return lambda model, saved: getattr(model, name)()


def _coefficients(model: Any, saved: Any) -> Any:
    return np.linspace(-1.0, 1.0, np.shape(model.transform(saved.X))[1])


def _plot(model: Any, saved: Any) -> None:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    model.plot(max_depth=1)
    pyplot.close("all")


def _neighbors(model: Any, saved: Any) -> None:
    model.kneighbors(saved.X)
    model.kneighbors(n_neighbors=2, return_distance=False)


def _encoded_column(model: Any, saved: Any) -> None:
    for name in saved.X.columns:
        model.encode_column(name, saved.X[name].to_numpy())


def _predict_to(model: Any, saved: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model.predict_to(saved.X, os.path.join(folder, "predictions.csv"))


def _refit(model: Any, saved: Any) -> None:
    params = model.get_params(deep=False)
    if "warm_start" in params:
        few = {name: 5 for name in ("max_iter", "n_estimators") if name in params}
        model.set_params(warm_start=True, **few).fit(saved.X, saved.y)


# Uses that change nothing, of every forgery that loads.
READING: dict[str, Use] = {
    **{
        name: _of_rows(name)
        for name in (
            *("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function"),
            *("transform", "score_samples", "apply", "decision_path", "explain", "infinite_forest_interval"),
            *("histograms", "kneighbors_graph", "aic", "bic", "silhouette"),
        )
    },
    **{name: _of_rows_and_targets(name) for name in ("score", "residuals", "loo", "summary")},
    **{
        name: _each(name)
        for name in ("staged_predict", "staged_predict_proba", "staged_decision_function", "staged_score")
    },
    **{
        name: _alone(name)
        for name in (
            *("importances", "posterior_covariance", "credible_intervals", "generalization_bound", "get_covariance"),
            *("get_precision", "get_feature_names_out", "get_support", "get_depth", "get_n_leaves", "rules", "sample"),
            *("loo_curve", "block_encoder", "places", "test_terms"),
        )
    },
    "staged_score": lambda model, saved: list(model.staged_score(saved.X, saved.y)),
    "inverse_transform": lambda model, saved: model.inverse_transform(model.transform(saved.X)),
    "kneighbors": _neighbors,
    "partial_dependence": lambda model, saved: model.partial_dependence(saved.X, 0, points=3),
    "oob_importances": _of_rows_and_targets("oob_importances"),
    "matrix": lambda model, saved: model.matrix(_coefficients(model, saved)),
    "sphere": lambda model, saved: model.sphere(_coefficients(model, saved), 1.0),
    "clipped": lambda model, saved: model.clipped(np.zeros(3)),
    "encode_column": _encoded_column,
    "then": lambda model, saved: model.then(saved.X, np.isfinite),
    "predict_to": _predict_to,
}
# Uses that take longer, or change the model: of a few.
CHANGING: dict[str, Use] = {
    "plot": _plot,
    "merge": lambda model, saved: model.merge(copy.deepcopy(model)),
    "forget": lambda model, saved: model.forget(saved.X[:5], None if saved.y is None else saved.y[:5]),
    "partial_fit": lambda model, saved: model.partial_fit(saved.X, saved.y),
    "sparsify": _alone("sparsify"),
    "densify": _alone("densify"),
    "track_rows": _alone("track_rows"),
    "fit": _refit,
}
# They read no fitted state, or are used by the others.
NOT_READING = {
    *("fit_predict", "fit_transform", "select", "path", "cost_complexity_pruning_path", "use_sums", "encoded"),
    *("get_params", "set_params", "set_output", "set_callbacks", "get_metadata_routing"),
}


def public_methods(cls: type[Any]) -> set[str]:
    """The names of the methods a user may call on a model of a class."""
    names = {name for name in dir(cls) if not name.startswith("_") and not name.endswith("_request")}
    static = {name: inspect.getattr_static(cls, name) for name in names}
    return {name for name in names if not isinstance(static[name], property) and callable(getattr(cls, name, None))}


def _properties(model: Any, saved: Any) -> None:
    for name in dir(type(model)):
        if not name.startswith("_") and isinstance(inspect.getattr_static(type(model), name), property):
            getattr(model, name, None)


def _predict_single(model: Any, saved: Any) -> None:
    if isinstance(saved.X, np.ndarray):
        model.predict(saved.X.astype(np.float32))


def _others(model: Any) -> Iterator[tuple[str, Use]]:
    yield "repr", lambda model, saved: repr(model)
    yield "properties", _properties
    if hasattr(model, "predict"):
        yield "predict float32", _predict_single
    if getattr(model, "certificate_", None) is not None:
        yield "certificate", lambda model, saved: str(model.certificate_)
        yield "verify", lambda model, saved: model.certificate_.verify(saved.X, saved.y)
    if hasattr(model, "summary"):
        yield "summary without rows", lambda model, saved: model.summary()


def uses(model: Any) -> dict[str, Use]:
    """The uses that a model has and that leave it as it is, by name."""
    return {name: use for name, use in READING.items() if hasattr(model, name)} | dict(_others(model))


def changing(model: Any) -> dict[str, Use]:
    """The uses that change a model, or take longer, by name."""
    return {name: use for name, use in CHANGING.items() if hasattr(model, name)}


def works(name: str, use: Use, model: Any, saved: Any) -> bool:
    """Use a model; False where it was refused with a clear sentence. Any other exception passes, with a note."""
    try:
        use(model, saved)
    except CLEAN:
        return False
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith(_SENTENCES):
            return False
        error.add_note(f"in the use {name!r}")
        raise
    return True
