"""The candidates that `summula train` compares: one table, simplest first. Classes are imported when they are used.

A line adds a candidate. One whose class is not there, or cannot be saved, is left out.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, field
from typing import Any

from summula.core.errors import ParameterError

__all__ = ["CANDIDATES", "Candidate", "candidates_for"]


@dataclass(frozen=True)
class Candidate:
    """A kind of model.

    Attributes
    ----------
    name : str
        What a user calls it.
    place : str
        "module:class".
    kind : {"classes", "numbers"}
        What it predicts.
    settings : dict
        Its parameters.
    codes : bool
        Whether it takes categories as codes and missing values as they are (trees), or indicators.
    counts : bool
        Whether it is for counts only.
    streams : bool
        Whether it is fitted on files larger than memory.
    """

    name: str
    place: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    codes: bool = False
    counts: bool = False
    streams: bool = True

    def load(self) -> Any:
        """Its class, or None where there is none that can be saved."""
        from summula.core.encoding import short_name
        from summula.core.persistence import CLASSES

        module, _, name = self.place.partition(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            return None
        return cls if short_name(CLASSES, cls) is not None else None

    def make(self, encoder: Any, seed: int, max_time: float | None = None) -> Any:
        """An estimator to fit on encoded rows."""
        cls = self.load()
        known = inspect.signature(cls).parameters
        more: dict[str, Any] = {"random_state": seed, "max_time": max_time}
        if self.codes:
            more["categorical_features"] = encoder.categorical_features_ or None
        return cls(**self.settings, **{name: value for name, value in more.items() if name in known})

    def fit(self, encoder: Any, seed: int, max_time: float, X: Any, y: Any) -> Any:
        """A fitted model; how long it was allowed to take is no part of it."""
        model = self.make(encoder, seed, max_time).fit(X, y)
        return model.set_params(max_time=None) if "max_time" in model.get_params() else model


_ALPHAS = tuple(10.0**power for power in range(-3, 5))
_PATH = {"l1_ratios": (1.0,), "Cs": 8, "cv": 3, "scoring": "neg_log_loss", "use_legacy_attributes": False}

CANDIDATES = (
    Candidate("baseline", "summula.cli.baseline:BaselineClassifier", "classes"),
    Candidate("logistic", "summula.linear_model:LogisticRegression", "classes"),
    Candidate("logistic_l1", "summula.linear_model:LogisticRegressionCV", "classes", _PATH, streams=False),
    Candidate("boosting", "summula.ensemble:HistGradientBoostingClassifier", "classes", codes=True),
    Candidate("baseline", "summula.cli.baseline:BaselineRegressor", "numbers"),
    Candidate("linear", "summula.linear_model:LinearRegression", "numbers"),
    Candidate("ridge", "summula.linear_model:RidgeCV", "numbers", {"alphas": _ALPHAS}, streams=False),
    Candidate("lasso", "summula.linear_model:LassoCV", "numbers", {"select": "1se"}),
    Candidate("poisson", "summula.linear_model:PoissonRegressor", "numbers", {"alpha": 1e-3}, counts=True),
    Candidate("boosting", "summula.ensemble:HistGradientBoostingRegressor", "numbers", codes=True),
)


def candidates_for(
    kind: str, counts: bool, names: list[str] | None = None, *, streams: bool = False
) -> list[Candidate]:
    """The candidates of a task; the baseline is always among them."""
    fitting = [one for one in CANDIDATES if one.kind == kind and (counts or not one.counts)]
    there = [one for one in fitting if one.load() is not None and (one.streams or not streams)]
    if names is None:
        return there
    known = [one.name for one in there]
    for name in names:
        if name not in known:
            raise ParameterError(f"There is no candidate {name!r} for this target; choose from {', '.join(known)}.")
    return [one for one in there if one.name in names or one.name == "baseline"]
