"""Candidate models of `summula train`: one table, simplest first. Classes are imported on first use.

A line adds a candidate. Candidates whose class is missing, or cannot be saved, are skipped.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from summula.core.errors import ParameterError
from summula.training.names import nearest

__all__ = ["CANDIDATES", "ENSEMBLE", "Candidate", "candidates_for", "kernels_of"]

ENSEMBLE = "ensemble"  # a weighted average of other candidates, see `ensembles`


@dataclass(frozen=True)
class Candidate:
    """A candidate model.

    Attributes
    ----------
    name : str
        Name shown to users.
    place : str
        "module:class".
    kind : {"classes", "numbers"}
        Type of target it predicts.
    settings : dict
        Parameters of the estimator.
    codes : bool
        Whether it accepts categories as codes, and missing values (trees); otherwise categories are indicators.
    counts : bool
        Whether it applies only to counts.
    turn : int
        Position in the first round: the baseline, then the most likely winner, then by cost.
    stops_early : bool
        Whether a fit that is stopped early gives a model that is nearly as good.
    many_passes : bool
        Whether a fit makes so many passes that its rows must be in memory; for files as many as fit are used.
    by_pairs : bool
        Whether it stores products of all pairs of columns for each class; skipped if there are too many.
    """

    name: str
    place: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    codes: bool = False
    counts: bool = False
    turn: int = 0
    stops_early: bool = False
    many_passes: bool = False
    by_pairs: bool = False

    def load(self) -> Any:
        """Return the class, or None if it is missing or cannot be saved."""
        from summula.core.model_files.classes import name_of

        module, _, name = self.place.partition(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            return None
        return cls if name_of(cls) is not None else None

    def make(self, encoder: Any, seed: int, max_time: float | None = None) -> Any:
        """Return an unfitted estimator for encoded rows."""
        cls = self.load()
        known = inspect.signature(cls).parameters
        more: dict[str, Any] = {"random_state": seed, "max_time": max_time}
        if self.codes:
            more["categorical_features"] = encoder.categorical_features_ or None
            more["families"] = dict.fromkeys(encoder.categorical_features_, "categorical")
        return cls(**self.settings, **{name: value for name, value in more.items() if name in known})

    def fit(self, encoder: Any, seed: int, max_time: float, X: Any, y: Any) -> Any:
        """Return a fitted model, without its time limit."""
        model = self.make(encoder, seed, max_time).fit(X, y)
        return model.set_params(max_time=None) if "max_time" in model.get_params() else model


_ALPHAS = tuple(10.0**power for power in range(-3, 5))
_DISCRIMINANT, _ANALYSIS = "summula.discriminant_analysis", "DiscriminantAnalysis"
_SHRUNK = {"shrinkage": "auto"}  # indicators may be constant in a class
_MOST_PAIRS = 2**24  # products of pairs of columns, over all classes
_BOOSTING = "summula.ensemble:HistGradientBoosting"
# (For columns of standard deviation 1, weaker penalties have no effect.)
_CS = tuple(10.0**power for power in range(-4, 3))
_PATH = {"l1_ratios": (1.0,), "Cs": _CS, "cv": 3, "scoring": "neg_log_loss", "use_legacy_attributes": False}
_SMALL = {"learning_rate": 0.05, "max_iter": 300, "max_leaf_nodes": 8}  # for a few hundred rows

_FOREST, _TREE, _MACHINES = "summula.ensemble:RandomForest", "summula.tree:DecisionTree", "summula.training.models"
_TREES = {"n_estimators": 200, "min_samples_leaf": 2}
_THIRD = {"n_estimators": 200, "min_samples_leaf": 2, "max_features": 1 / 3}
_READABLE = {"max_depth": 6, "min_samples_leaf": 5}  # an interpretable tree

CANDIDATES = (
    Candidate("baseline", "summula.dummy:DummyClassifier", "classes"),
    Candidate("logistic", "summula.linear_model:LogisticRegression", "classes", turn=2),
    Candidate("naive_bayes", "summula.naive_bayes:MixedNB", "classes", codes=True, turn=4),
    Candidate("lda", f"{_DISCRIMINANT}:Linear{_ANALYSIS}", "classes", _SHRUNK, turn=5, by_pairs=True),
    Candidate("qda", f"{_DISCRIMINANT}:Quadratic{_ANALYSIS}", "classes", _SHRUNK, turn=6, by_pairs=True),
    Candidate("tree", f"{_TREE}Classifier", "classes", _READABLE, codes=True, turn=7, many_passes=True),
    Candidate("logistic_l1", "summula.linear_model:LogisticRegressionCV", "classes", _PATH, turn=9, many_passes=True),
    Candidate("svm", f"{_MACHINES}:CalibratedSVC", "classes", turn=8, many_passes=True),
    Candidate("forest", f"{_FOREST}Classifier", "classes", _TREES, codes=True, turn=3, stops_early=True),
    Candidate("boosting", f"{_BOOSTING}Classifier", "classes", codes=True, turn=1, stops_early=True),
    Candidate("boosting_small", f"{_BOOSTING}Classifier", "classes", _SMALL, codes=True, turn=10, stops_early=True),
    Candidate("baseline", "summula.dummy:DummyRegressor", "numbers"),
    Candidate("linear", "summula.linear_model:LinearRegression", "numbers", turn=2),
    Candidate("ridge", "summula.linear_model:RidgeCV", "numbers", {"alphas": _ALPHAS}, turn=4),
    Candidate("lasso", "summula.linear_model:LassoCV", "numbers", {"select": "1se"}, turn=7),
    Candidate("poisson", "summula.linear_model:PoissonRegressor", "numbers", {"alpha": 1e-3}, counts=True, turn=5),
    Candidate("tree", f"{_TREE}Regressor", "numbers", _READABLE, codes=True, turn=6, many_passes=True),
    Candidate("svm", f"{_MACHINES}:ScaledSVR", "numbers", turn=8, many_passes=True),
    Candidate("forest", f"{_FOREST}Regressor", "numbers", _THIRD, codes=True, turn=3, stops_early=True),
    Candidate("boosting", f"{_BOOSTING}Regressor", "numbers", codes=True, turn=1, stops_early=True),
    Candidate("boosting_small", f"{_BOOSTING}Regressor", "numbers", _SMALL, codes=True, turn=9, stops_early=True),
)

# Functions that compile kernels a candidate needs in addition to earlier ones (`expect_later`). `{criterion}` is the
# criterion of a tree, `{n_classes}` the number of classes (0 for numbers), `{splits}` the kernels for its columns.
_BINNED, _EXACT = "summula.tree.binned", "summula.tree.exact.grower:compile_"
_PATHS = ("summula.optimize.solvers.l1_kernels:compile_dense",)
_KERNELS = {
    "forest": (f"{_BINNED}.scan_kernels:compile_kernels:{{splits}}", f"{_BINNED}.walk_kernels:warmup"),
    "tree": (f"{_EXACT}search:{{criterion}}:1:{{n_classes}}", f"{_EXACT}grow"),
    "logistic_l1": _PATHS,
    "lasso": _PATHS,
    "svm": ("summula.svm.dual.smo_kernels:compile_steps",),
}


def candidates_for(
    kind: str, counts: bool, names: list[str] | None = None, class_weight: Any = None, pairs: int = 0
) -> list[Candidate]:
    """Return the candidates for a task, which always include the baseline.

    Parameters
    ----------
    kind : {"classes", "numbers"}
    counts : bool
        Whether the target consists of counts.
    names : list of str, optional
        Names of candidates; None for all that apply to the task.
    class_weight : dict or "balanced", optional
        Passed to candidates that support it.
    pairs : int
        Number of pairs of columns times the number of classes; candidates that store all these products are skipped if
        it is too large.
    """
    if class_weight is not None and kind == "numbers":
        raise ParameterError(
            "class_weight applies to classes, and the target is numeric: omit it, or declare the target as classes "
            "with task='classes' (--task classes)."
        )
    fitting = [one for one in CANDIDATES if one.kind == kind and (counts or not one.counts)]
    available = [one for one in fitting if one.load() is not None]
    _check_names(names or (), [*(one.name for one in available), ENSEMBLE])
    named = {*(names or ())} - {ENSEMBLE}
    if named:
        chosen = [one for one in available if one.name in named or one.name == "baseline"]
    else:
        chosen = [one for one in available if pairs <= _MOST_PAIRS or not one.by_pairs]
    return chosen if class_weight is None else [_weighted(one, class_weight) for one in chosen]


def _check_names(names: Iterable[str], known: list[str]) -> None:
    """Raise for names that are not those of candidates."""
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near!r}? There are" if near else "choose from"
            raise ParameterError(f"There is no candidate {name!r} for this target; {hint} {', '.join(known)}.")


def _weighted(candidate: Candidate, class_weight: Any) -> Candidate:
    if "class_weight" not in inspect.signature(candidate.load()).parameters:
        return candidate
    return replace(candidate, settings={**candidate.settings, "class_weight": class_weight})


def kernels_of(candidates: list[Candidate], n_classes: int, *, has_categories: bool) -> list[str]:
    """Return the functions that compile the kernels of these candidates: forests first, then from the last candidate.

    Another process compiles them in this order, while this one fits the candidates from the first.
    """
    splits = ["scan" if n_classes in (0, 2) else "find_split", *(["find_categories"] if has_categories else [])]
    task = {"splits": ",".join(splits), "n_classes": n_classes, "criterion": "gini" if n_classes else "squared_error"}
    order = sorted(candidates, key=lambda one: (one.name != "forest", -one.turn))
    return [target.format(**task) for one in order for target in _KERNELS.get(one.name, ())]
