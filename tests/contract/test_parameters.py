"""Promise 2: every parameter has an effect, and speed hints do not change the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import summula
from tests.contract.case import With
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes
from tests.contract.registry import CASES, Case

# Many of these values cause warnings: one iteration, deprecated names.
pytestmark = pytest.mark.filterwarnings("ignore")

# Hints affect how a result is computed, not the result; each with another value.
HINTS: dict[str, Any] = {
    "copy": False,
    "copy_X": False,
    "gcv_mode": "svd",
    "max_time": 1_000.0,
    "n_jobs": 1,
    "precompute": True,
    "selection": "random",
    "warm_start": True,
}
# Parameters of scikit-learn that do not change results here: other solvers, deprecated names, verbosity.
IDLE = {
    *("algorithm", "cache_size", "dual", "intercept_scaling", "random_state", "shrinking", "solver"),
    *("verbose", "verbose_interval"),
    "formula",  # needs a frame: tests/linear_model/test_formula.py
}

# Values that change fits, tried one after the other; a case adds its own in `Case.changes`.
CHANGES: dict[str, tuple[Any, ...]] = {
    "alpha": (10.0, With(0.1, penalty="l2")),
    "alpha_per_target": (With(True, cv=None),),
    "alphas": ([30.0, 100.0],),
    "average": (True,),
    "batch": (True,),
    "batch_size": (7,),
    "C": (0.01,),
    "categorical_features": ([1],),
    "ccp_alpha": (0.1, 1.0),
    "class_weight": ("balanced", None),
    "coef0": (With(2.0, kernel="poly"),),
    "covariance_type": ("diag",),
    "criterion": ("entropy", "absolute_error"),
    "Cs": ([0.001, 0.01],),
    "cv": (5,),
    "degree": (3, With(2, kernel="poly")),
    "early_stopping": (True,),
    "eps": (0.1,),
    "epsilon": (With(0.01, loss="huber"), 0.5),
    "eta0": (0.001,),
    "family": ("poisson",),
    "fit_intercept": (False,),
    "gamma": (0.01,),
    "init": ("random",),
    "init_params": ("random",),
    "init_size": (10,),
    "interaction_cst": ("no_interactions",),
    "interaction_only": (True,),
    "kernel": ("linear", "rbf"),
    "l1_ratio": (0.3, With(0.9, penalty="elasticnet")),
    "l1_ratios": ((0.1,),),
    "l2_regularization": (5.0,),
    "learning_rate": (0.3, "constant"),
    "link": ("log", "identity"),
    "loss": ("huber", "absolute_error", "hinge"),
    "lower": ([0.0, 0.0, 0.0, 0.0],),
    "max_bins": (4,),
    "max_depth": (1,),
    "max_features": (0.4,),
    "max_iter": (1,),
    "max_leaf_nodes": (2,),
    "max_no_improvement": (1,),
    "min_impurity_decrease": (0.2,),
    "min_samples_leaf": (50,),
    "min_samples_split": (60,),
    "min_weight_fraction_leaf": (0.3,),
    "monotonic_cst": ([1, 1, 1, 1], [-1, -1, -1, -1]),
    "n_clusters": (2,),
    "n_components": (1, 3),
    "n_init": (3,),
    "n_iter_no_change": (With(1, early_stopping=True, tol=0.1, max_iter=50),),
    "n_samples": (With(10, predictive="sampling", random_state=0),),
    "nu": (0.2,),
    "penalty": ("l1",),
    "positive": (True,),
    "power": (1.9,),
    "power_t": (0.1,),
    "predictive": ("map",),
    "prior_scale": (0.1,),
    "priors": ([0.2, 0.3, 0.5],),
    "quantile": (With(0.9, loss="quantile", quantile=0.5),),
    "reassignment_ratio": (0.5,),
    "refit": (False,),
    "reg_covar": (0.5,),
    "require_separation": (True,),
    "scoring": ("neg_mean_absolute_error", "neg_log_loss", With("accuracy", early_stopping=True)),
    "select": ("1se",),
    "shuffle": (False,),
    "splitter": ("random",),
    "store_cv_results": (True,),
    "tol": (0.5, With(0.5, early_stopping=True, max_iter=50)),
    "upper": ([0.01, 0.01, 0.01, 0.01],),
    "use_legacy_attributes": (True,),
    "validation_fraction": (With(0.4, early_stopping=True),),
    "var_smoothing": (1.0,),
    "with_mean": (False,),
    "with_std": (False,),
}

BY_CLASS: dict[str, list[Case]] = {}
for one in CASES:
    BY_CLASS.setdefault(type(one.estimator).__name__, []).append(one)


def shown(case: Case, **parameters: Any) -> Any:
    """Return all observable results of a fit with these parameters except its certificate, or its error."""
    X, y, _ = case.data()
    try:
        model = clone(case.estimator).set_params(**parameters).fit(X, y)
    except summula.ParameterError:
        raise
    except ValueError as error:
        return type(error).__name__
    kept = {name: value for name, value in fitted_attributes(model).items() if name != "certificate_"}
    try:
        output = case.output(model, X)
    except AttributeError:  # without probabilities for another loss
        output = model.predict(X)
    return {**kept, "output": output}


def changed(case: Case, name: str) -> bool:
    """Whether some value of a parameter changes the fit."""
    for value in (*case.changes.get(name, ()), *CHANGES.get(name, ())):
        others = value.others if isinstance(value, With) else {}
        new = value.value if isinstance(value, With) else value
        try:
            assert_same_bits(shown(case, **others), shown(case, **{**others, name: new}))
        except AssertionError:
            return True
        except summula.ParameterError:
            continue
    return False


def parameters_of(name: str) -> Iterator[str]:
    idle = IDLE.union(HINTS, *(case.idle for case in BY_CLASS[name]))
    yield from (parameter for parameter in BY_CLASS[name][0].estimator.get_params() if parameter not in idle)


@pytest.mark.parametrize("name", BY_CLASS)
def test_every_parameter_changes_something(name: str) -> None:
    without = [p for p in parameters_of(name) if not any(changed(case, p) for case in BY_CLASS[name])]
    assert not without, f"give values that change the fit in Case.changes, or find out why these do nothing: {without}"


@pytest.mark.parametrize("name", BY_CLASS)
def test_hints_change_nothing(name: str) -> None:
    case = BY_CLASS[name][0]
    X, _, _ = case.data()
    expected = case.output(case.model(), X)
    for hint in HINTS.keys() & case.estimator.get_params().keys():
        assert_close(expected, shown(case, **{hint: HINTS[hint]})["output"], rounding=1e-9, where=hint)


@pytest.mark.parametrize("name", [name for name, cases in BY_CLASS.items() if cases[0].stochastic and cases[0].random])
def test_another_seed_gives_another_model(name: str) -> None:
    seeds = (3, 4)
    for case in BY_CLASS[name]:
        X, y, _ = case.data("large")
        model = clone(case.estimator)
        if "max_features" in model.get_params():  # otherwise boosting draws very little
            model.set_params(max_features=0.5)
        first, second = (case.output(model.set_params(random_state=s).fit(X, y), X) for s in seeds)
        if not np.array_equal(first, second):
            return
    pytest.fail(f"{name} gives the same model for the seeds {seeds} in every case")
