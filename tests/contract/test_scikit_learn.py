"""Promises 1 and 2: every estimator is scikit-learn compatible, with its names and defaults."""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import estimator_checks_generator

import summula.linear_model
import summula.preprocessing
from summula.cluster import KMeans
from summula.discriminant_analysis import QuadraticDiscriminantAnalysis
from summula.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from summula.mixture import BernoulliMixture, BinomialMixture
from summula.naive_bayes import CategoricalNB
from summula.svm import OneClassSVM, PegasosSVC
from summula.tree import ID3Classifier
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes
from tests.contract.registry import CASES, Case, over

# scikit-learn fits every estimator to random tables of a few rows, on which columns can be collinear, or classes far
# apart.
pytestmark = [
    pytest.mark.filterwarnings("ignore::summula.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::summula.CollinearityWarning"),
    pytest.mark.filterwarnings("ignore::summula.core.errors.SeparationWarning"),
    # Factors explain all of some column of random tables.
    pytest.mark.filterwarnings("ignore:The noise variance of column:summula.AccuracyWarning"),
    # Stochastic descent does not scale columns, and those tables have means of 100.
    pytest.mark.filterwarnings("ignore:SGDRegressor diverged:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Maximum number of iteration:sklearn.exceptions.ConvergenceWarning"),
]


# The checks whose outcome depends on the fit, and so on the parameters; the others depend on the class only.
OF_RESULTS = (
    "check_class_weight",
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_estimator_sparse",
    "check_estimators_dtypes",
    "check_fit2d_1",
    "check_fit_idempotent",
    "check_methods",
    "check_non_transformer_estimators_n_iter",
    "check_positive_only_tag",
    "check_regressors_int",
    "check_regressors_train",
    "check_sample_weight_equivalence",
    "check_transformer",
)
# Those that fit nothing.
OF_PARAMETERS = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)


def scikit_learn_checks() -> Iterator[Any]:
    """All checks for the first case of a class, and those of results for its other parameters; those of a case together.

    (There are thousands, most of which take less time than a test of its own.)
    """
    seen: set[type] = set()
    for case in CASES:
        # Ridge(alpha=[0.5, 30.0]) needs two targets; the checks have one, none from 0 to 1, and any number of classes.
        if case.targets > 1 or case.target == "shares" or case.fixed_classes:
            continue
        checks: dict[str, Any] = {}
        for estimator, check in estimator_checks_generator(case.estimator, legacy=True):
            name = getattr(check, "func", check).__name__
            if type(estimator) in seen and not name.startswith(OF_RESULTS):
                continue
            asked = (
                *(_asks_for_no_maximum, _asks_for_no_order, _asks_for_no_draws, _asks_for_other_rows),
                *(_asks_for_an_intercept, _asks_for_signs_of_zero),
            )
            if not any(one(estimator, name) for one in asked):
                checks[f"{name} {len(checks)}"] = functools.partial(check, estimator)
        yield pytest.param(checks, id=str(case))
        seen.add(type(case.estimator))


def _asks_for_other_rows(estimator: Any, name: str) -> bool:
    """Checks of weights have fractions for categories, classes whose rows have no density, equally good splits.

    None has zeros and ones.

    (Of the latter rounding chooses one, and later stages depend on it.)
    """
    if isinstance(estimator, BernoulliMixture):  # zeros and ones alone; the checks that pass fit nothing
        return name not in OF_PARAMETERS
    if isinstance(estimator, BinomialMixture):
        return name.startswith(("check_sample_weight_equivalence", "check_estimators_nan_inf"))
    staged = AdaBoostClassifier | GradientBoostingClassifier | GradientBoostingRegressor
    if isinstance(estimator, QuadraticDiscriminantAnalysis | staged):
        return name.startswith("check_sample_weight")
    fractions = ("check_sample_weight_equivalence", "check_classifiers_one_label_sample_weights")
    if isinstance(estimator, ID3Classifier):
        fractions = (*fractions, "check_positive_only_tag_during_fit")
    return isinstance(estimator, CategoricalNB | ID3Classifier) and name.startswith(fractions)


def _asks_for_no_maximum(estimator: Any, check: str) -> bool:
    """Fifteen rows in three classes are separable: without a penalty the likelihood has no maximum to compare."""
    return bool(getattr(estimator, "C", 1.0) == np.inf) and check.startswith("check_sample_weight_equivalence")


def _asks_for_no_order(estimator: Any, check: str) -> bool:
    """A row of weight 2 makes one step of double length, not two: where rows come one by one that is not the same."""
    in_turn = hasattr(estimator, "shuffle") or hasattr(estimator, "batch_size")
    return in_turn and check.startswith("check_sample_weight_equivalence")


def _asks_for_an_intercept(estimator: Any, check: str) -> bool:
    """Scores without a constant term cannot prefer one class everywhere, for any weight."""
    return isinstance(estimator, PegasosSVC) and check == "check_class_weight_classifiers"


def _asks_for_signs_of_zero(estimator: Any, check: str) -> bool:
    """Support vectors on the edge of a region have scores of 0, whose sign is rounding."""
    return isinstance(estimator, OneClassSVM) and check.startswith("check_sample_weight_equivalence")


def _asks_for_no_draws(estimator: Any, check: str) -> bool:
    """Other rows are drawn, as first centres or for trees, where a row is repeated; scikit-learn's classes fail, too."""
    draws = KMeans | RandomForestClassifier | RandomForestRegressor
    return isinstance(estimator, draws) and check.startswith("check_sample_weight_equivalence")


@pytest.mark.parametrize("checks", list(scikit_learn_checks()))
def test_check_estimator(checks: dict[str, Any]) -> None:
    failures = []
    for name, check in checks.items():
        try:
            with warnings.catch_warnings():
                check()
        except (SkipTest, pytest.skip.Exception):
            continue
        except Exception:
            failures.append(f"{name}:\n{traceback.format_exc()}")
    assert not failures, "\n".join(failures)


@over()
def test_clone_copies_parameters_and_no_fit(case: Case) -> None:
    model = case.model()
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not fitted_attributes(copy)


@over("takes_any_numbers")
def test_a_pipeline_gives_what_its_steps_give(case: Case) -> None:
    X, y, _ = case.data()
    scaler = summula.preprocessing.StandardScaler().fit(X)
    direct = case.fit(scaler.transform(X), y)
    chain = make_pipeline(summula.preprocessing.StandardScaler(), clone(case.estimator)).fit(X, y)
    assert_same_bits(fitted_attributes(direct), fitted_attributes(chain[-1]))
    assert_same_bits(case.output(direct, scaler.transform(X)), case.output(chain, X))


@over("transformer")
def test_a_transformer_stands_before_scikit_learns_own(case: Case) -> None:
    X = case.data().X
    y = X[:, 0] - X[:, 1]
    chain = make_pipeline(
        clone(case.estimator), SelectKBest(f_regression, k=1), sklearn.linear_model.LinearRegression()
    )
    assert chain.fit(X, y).predict(X).shape == y.shape


@over("supervised")
def test_grid_search_over_a_parameter(case: Case) -> None:
    X, y, _ = case.data()
    search = GridSearchCV(clone(case.estimator), dict(case.grid), cv=3, n_jobs=1).fit(X, y)
    ((name, values),) = case.grid.items()
    assert search.best_params_[name] in values
    best = clone(case.estimator).set_params(**search.best_params_).fit(X, y)
    assert_same_bits(fitted_attributes(best), fitted_attributes(search.best_estimator_))


@over("regressor")
def test_score_is_the_share_explained(case: Case) -> None:
    """Of the squares (the coefficient of determination), or of the deviance of the mean."""
    X, y, weight = case.data()
    model = case.model()
    if case.likelihood:
        residual, spread = case.loss(y, model.predict(X)), case.loss(y, case.constant(y))
    else:
        residual, spread = ((y - model.predict(X)) ** 2).sum(axis=0), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        assert model.score(X, y, weight) == pytest.approx(r2_score(y, model.predict(X), sample_weight=weight))
    assert model.score(X, y) == pytest.approx(np.mean(1 - residual / spread))
    assert cross_val_score(case.estimator, X, y, cv=3).shape == (3,)


@over("classifier")
def test_score_is_the_accuracy(case: Case) -> None:
    X, y, weight = case.data()
    model = case.model()
    right = model.predict(X) == y
    assert model.score(X, y) == pytest.approx(right.mean())
    assert model.score(X, y, weight) == pytest.approx(np.average(right, weights=weight))
    assert cross_val_score(case.estimator, X, y, cv=3).shape == (3,)


@over("probable")
def test_the_predicted_class_is_the_most_probable(case: Case) -> None:
    X, y, _ = case.data("large")
    model = case.model("large")
    P = model.predict_proba(X)
    assert_same_bits(model.predict(X), model.classes_[P.argmax(axis=1)])
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-15)
    with np.errstate(divide="ignore"):  # a class that a leaf has no rows of
        np.testing.assert_allclose(np.log(P), model.predict_log_proba(X), rtol=1e-13, atol=1e-14)
    assert model.classes_.dtype == y.dtype == model.predict(X).dtype
    if hasattr(model, "decision_function"):
        assert model.decision_function(X).shape == ((len(X), 3) if len(model.classes_) == 3 else (len(X),))


@over("transformer")
def test_set_output_gives_frames_with_names(case: Case) -> None:
    X, y, _ = case.data()
    frame = storage.FRAMES["pandas"](X)
    plain = case.fit(frame, y)
    for library, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        model = clone(case.estimator).set_output(transform=library)
        out = model.fit(frame, y).transform(frame)
        assert isinstance(out, kind)
        assert list(out.columns) == list(model.get_feature_names_out())
        assert_close(out.to_numpy(), plain.transform(frame))
        assert_close(model.fit_transform(frame).to_numpy(), plain.transform(frame))


@over("transformer")
def test_feature_names_out_are_text_one_a_column_and_checked(case: Case) -> None:
    X, y, _ = case.data()
    named, bare = case.fit(storage.FRAMES["polars"](X), y), case.fit(X, y)
    given = storage.names(X.shape[1])
    names = named.get_feature_names_out()
    assert names.dtype == object
    assert len(names) == named.transform(storage.FRAMES["polars"](X)).shape[1] == len(set(names))
    assert names.tolist() == named.get_feature_names_out(given).tolist() == bare.get_feature_names_out(given).tolist()
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        named.get_feature_names_out(given[::-1])
    with pytest.raises(ValueError, match="length equal to number of features"):
        bare.get_feature_names_out(given[1:])


@over("weighted", "takes_any_numbers")
def test_sample_weight_is_routed_through_a_pipeline(case: Case) -> None:
    X, y, weight = case.data()
    with sklearn.config_context(enable_metadata_routing=True):
        step = clone(case.estimator).set_fit_request(sample_weight=True)
        scaler = summula.preprocessing.StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, step).fit(X, y, sample_weight=weight)[-1]
    direct = case.fit(summula.preprocessing.StandardScaler().fit_transform(X), y, weight)
    assert_same_bits(fitted_attributes(direct), fitted_attributes(routed))


@over()
def test_html_shows_the_estimator(case: Case) -> None:
    for model in (case.estimator, case.model()):
        assert type(model).__name__ in estimator_html_repr(model)
        assert model._repr_mimebundle_()["text/plain"] == repr(model)


@over()
def test_parameters_and_defaults_are_scikit_learns_where_it_has_the_class(case: Case) -> None:
    ours = type(case.estimator)
    theirs = getattr(importlib.import_module(ours.__module__.replace("summula", "sklearn").rpartition(".")[0]),
                     ours.__name__, None) if _folder_exists(ours) else None  # fmt: skip
    if theirs is None:
        return  # a class that exists only in Summula
    mine, model = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    assert list(mine)[: len(model)] == list(model), "our own parameters come after scikit-learn's"
    for name, parameter in model.items():
        assert mine[name].kind == parameter.kind, name
        # A solver is a hint, with another default here; the probabilities of SVC are deprecated in scikit-learn.
        assert mine[name].default == {"solver": "auto", "probability": False}.get(name, parameter.default), name
    extra = [parameter for name, parameter in mine.items() if name not in model]
    # (scikit-learn always centres, and fits by maximum likelihood; it rejects text, and its forests
    # have no bins.)
    neutral = {
        **{"center": True, "covariance": "full", "method": "ml", "categorical_features": "from_dtype"},
        **{"fit_intercept": True, "penalize_intercept": True, "splits": "bins", "max_bins": 255},
    }
    for parameter in extra:
        default = parameter.default
        assert default in (None, "min", False) or default == neutral.get(parameter.name), "ours are off by default"


def _folder_exists(ours: type) -> bool:
    folder = ours.__module__.split(".")[1]
    return importlib.util.find_spec(f"sklearn.{folder}") is not None


@over()
def test_every_parameter_refuses_what_it_cannot_take(case: Case) -> None:
    X, y, _ = case.data()
    nonsense = object()
    for name in case.estimator.get_params():
        with pytest.raises(ValueError, match=f"The {name!r} parameter of {type(case.estimator).__name__} must be"):
            clone(case.estimator).set_params(**{name: nonsense}).fit(X, y)


SEEDED = [case for case in CASES if "random_state" in case.estimator.get_params()]


@over(cases=SEEDED)
@pytest.mark.parametrize("seed", [2**32, -1, "0", 0.5, True], ids=repr)
def test_a_seed_outside_the_range_is_refused_in_one_sentence(case: Case, seed: Any) -> None:
    X, y, _ = case.data()
    with pytest.raises(summula.ParameterError) as caught:
        clone(case.estimator).set_params(random_state=seed).fit(X, y)
    assert str(caught.value) == (
        f"The 'random_state' parameter of {type(case.estimator).__name__} must be an int in the range [0, 4294967295], "
        f"a numpy Generator, a numpy RandomState or None. Got {seed!r} instead."
    )


@over(cases=SEEDED)
def test_the_largest_seed_a_generator_and_a_random_state_are_accepted(case: Case) -> None:
    X, y, _ = case.data()
    for seed in (2**32 - 1, np.uint32(7), np.random.default_rng(0), np.random.RandomState(0)):
        clone(case.estimator).set_params(random_state=seed).fit(X, y)
