"""A fitted model of every class that can be saved, in several variants, and rows to use it on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from summula import ensemble, linear_model
from summula.decomposition import PCA, FactorAnalysis
from summula.dummy import BaselineClassifier, BaselineRegressor, DummyClassifier, DummyRegressor
from summula.feature_selection import MutualInformationFilter
from summula.features import PolynomialLift
from summula.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from summula.kernel_ridge import KernelLMS, KernelRidge
from summula.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from summula.mixture import BernoulliMixture, BinomialMixture, GaussianMixture
from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor
from summula.preprocessing import StandardScaler, TableEncoder, TableModel
from summula.preprocessing.paired_encoder import PairedEncoder
from summula.stats import families, links
from summula.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, PegasosSVC
from summula.training.models import AveragedClassifier, AveragedRegressor, CalibratedSVC, ScaledSVR
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from tests.contract.registry import CASES, Case

Array = Any


class Saved(NamedTuple):
    """A model, rows for its methods, and their targets."""

    model: Any
    X: Any
    y: Any = None


class Data(NamedTuple):
    X: Array
    y: Array
    counts: Array
    two: Array
    three: Array
    words: Array


@functools.cache
def _data() -> Data:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(90, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, -1.0]
    score = X @ [1.0, -0.5, 0.7]
    y = score + rng.normal(size=90)
    three = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    counts = rng.poisson(np.exp(0.3 * score)).astype(float) + 0.5
    words = np.array(["no", "yes"], dtype=object)[(y > 0).astype(int)]
    return Data(X, y, counts, (y > 0).astype(int), three, words)


@functools.cache
def _frame() -> Any:
    rng = np.random.default_rng(12)
    X = _data().X
    return pd.DataFrame(
        {
            "size": X[:, 0],
            "town": np.array(["Bonn", "Köln", "Ulm"], dtype=object)[rng.integers(0, 3, 90)],
            "age": np.where(rng.random(90) < 0.1, np.nan, X[:, 1]),
            "when": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, 90), "h"),
            "member": rng.integers(0, 2, 90),
        }
    )


def _arrays(model: Any, target: str = "y") -> Saved:
    y = getattr(_data(), target)
    return Saved(model.fit(_data().X, y), _data().X, y)


def _with_names(model: Any, target: str = "y") -> Saved:
    X = pd.DataFrame(_data().X, columns=["a", "größe", "c" * 70])
    y = getattr(_data(), target)
    return Saved(model.fit(X, y), X, y)


def _two_targets(model: Any) -> Saved:
    Y = np.column_stack([_data().y, -_data().y])
    return Saved(model.fit(_data().X, Y), _data().X, Y)


def _in_parts(model: Any, target: str = "y", **options: Any) -> Saved:
    X, y = _data().X, getattr(_data(), target)
    return Saved(model.partial_fit(X[:50], y[:50], **options).partial_fit(X[50:], y[50:]), X, y)


def _missing(model: Any) -> Saved:
    X = _data().X.copy()
    X[::7, 1] = np.nan
    return Saved(model.fit(X), X)


def _with_factors(model: Any) -> Saved:
    X = _frame()[["size", "town"]]
    return Saved(model.fit(X, _data().counts), X, _data().counts)


def _with_formula(model: Any) -> Saved:
    X = _frame()[["size", "town"]].assign(counts=_data().counts)
    return Saved(model.fit(X), X, None)


def _discrete(model: Any) -> Saved:
    X = _frame()[["town", "member"]]
    return Saved(model.fit(X, _data().three), X, _data().three)


def _boosted(model: Any, classes: int = 0) -> Saved:
    """A target that depends on the town, so that some node has a categorical split."""
    X = _frame()[["size", "town", "age"]].astype({"town": "category"})
    y = _data().y + 4.0 * (X["town"] == "Köln").to_numpy()
    y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y
    return Saved(model.fit(X, y), X, y)


def _successes(columns: int) -> Array:
    return np.clip(np.round(_data().X[:, :columns] + 4), 0, 9)


def _binary(model: Any) -> Saved:
    X = (_data().X > 0).astype(float)
    return Saved(model.fit(X), X)


def _encoded(encoder: Any) -> Saved:
    return Saved(encoder.fit(_frame()), _frame())


def _pair() -> PairedEncoder:
    return PairedEncoder(TableEncoder(categories="codes"), TableEncoder(standardize=True))


def _averaged_table() -> AveragedClassifier:
    """An average of a model on codes and one on indicators, for the columns of `_frame`."""
    first, second = _pair().fit(_frame()).widths
    boosted = ensemble.HistGradientBoostingClassifier(**_BOOST)
    return AveragedClassifier(
        [boosted, linear_model.LogisticRegression()], [0.5, 0.5], [0, first], [first, first + second]
    )


def _table(model: Any, target: str, encoder: Any = None, **options: Any) -> Saved:
    X, y = _frame().assign(target=getattr(_data(), target)), getattr(_data(), target)
    encoder = TableEncoder(standardize=True) if encoder is None else encoder
    return Saved(TableModel(encoder, model, "target", **options).fit(X), _frame(), y)


_BOOST: dict[str, Any] = {"max_iter": 3, "min_samples_leaf": 4, "random_state": 0}
_COSTS = [[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]

# Variants by class: each a function, so that only what is needed is fitted.
KINDS: dict[str, list[Callable[[], Saved]]] = {
    "LinearRegression": [
        lambda: _with_names(linear_model.LinearRegression()),
        lambda: _two_targets(linear_model.LinearRegression(positive=True)),
        lambda: _in_parts(linear_model.LinearRegression()),
        lambda: _with_factors(linear_model.LinearRegression()),
        lambda: _with_formula(linear_model.LinearRegression(formula="counts ~ size * C(town)")),
    ],
    "Ridge": [
        lambda: _arrays(linear_model.Ridge()),
        lambda: _two_targets(linear_model.Ridge(alpha=np.array([0.1, 3.0]))),
    ],
    "RidgeCV": [
        lambda: _arrays(linear_model.RidgeCV(cv=3)),
        lambda: _two_targets(linear_model.RidgeCV(alpha_per_target=True, store_cv_results=True)),
    ],
    "PolynomialRegression": [
        lambda: _arrays(linear_model.PolynomialRegression()),
        lambda: _two_targets(linear_model.PolynomialRegression(3, interaction_only=True)),
    ],
    "Lasso": [lambda: _arrays(linear_model.Lasso(0.05))],
    "ElasticNet": [
        lambda: _two_targets(linear_model.ElasticNet(0.05)),
        lambda: _with_names(linear_model.ElasticNet(0.1)),
    ],
    "LassoCV": [lambda: _arrays(linear_model.LassoCV(cv=3, alphas=5))],
    "ElasticNetCV": [lambda: _arrays(linear_model.ElasticNetCV(l1_ratio=[0.3, 0.9], cv=3, alphas=4))],
    "LogisticRegression": [
        lambda: _with_names(linear_model.LogisticRegression(C=np.inf), "words"),
        lambda: _arrays(linear_model.LogisticRegression(class_weight="balanced"), "three"),
        lambda: _discrete(linear_model.LogisticRegression()),
        lambda: _arrays(linear_model.LogisticRegression(l1_ratio=1.0, C=0.3), "two"),
        lambda: Saved(
            _arrays(linear_model.LogisticRegression(l1_ratio=1.0, C=0.1), "three").model.sparsify(),
            _data().X,
            _data().three,
        ),
    ],
    "LogisticRegressionCV": [
        lambda: _arrays(
            linear_model.LogisticRegressionCV(l1_ratios=(0.0,), Cs=2, cv=2, scoring=None, use_legacy_attributes=False),
            "three",
        ),
        lambda: _arrays(
            linear_model.LogisticRegressionCV(
                l1_ratios=(0.0,), Cs=2, cv=2, scoring="accuracy", use_legacy_attributes=True, refit=False
            ),
            "words",
        ),
    ],
    "GeneralizedLinearRegressor": [
        lambda: _with_factors(linear_model.GeneralizedLinearRegressor("gamma", "log", alpha=0.01)),
        lambda: _arrays(
            linear_model.GeneralizedLinearRegressor(families.Tweedie(1.5), links.Log(), lower=0.0), "counts"
        ),
        lambda: _arrays(linear_model.GeneralizedLinearRegressor("gamma", "inverse_squared", alpha=0.3), "counts"),
    ],
    "PoissonRegressor": [lambda: _arrays(linear_model.PoissonRegressor(), "counts")],
    "GammaRegressor": [lambda: _with_names(linear_model.GammaRegressor(), "counts")],
    "TweedieRegressor": [lambda: _arrays(linear_model.TweedieRegressor(power=1.5), "counts")],
    "BayesianLogisticRegression": [
        lambda: _arrays(linear_model.BayesianLogisticRegression(), "words"),
        lambda: _arrays(
            linear_model.BayesianLogisticRegression(predictive="sampling", n_samples=50, random_state=0), "two"
        ),
    ],
    "SGDClassifier": [
        lambda: _arrays(linear_model.SGDClassifier("log_loss", average=True, random_state=0), "words"),
        lambda: Saved(
            _arrays(linear_model.SGDClassifier(random_state=0), "three").model.sparsify(), _data().X, _data().three
        ),
        lambda: _in_parts(linear_model.SGDClassifier("modified_huber", random_state=0), "three", classes=[0, 1, 2]),
    ],
    "SGDRegressor": [
        lambda: _arrays(linear_model.SGDRegressor(average=True, random_state=0)),
        lambda: Saved(_arrays(linear_model.SGDRegressor(random_state=0)).model.sparsify(), _data().X, _data().y),
    ],
    "Perceptron": [
        lambda: _arrays(linear_model.Perceptron(), "three"),
        lambda: _arrays(linear_model.Perceptron(batch=True), "words"),
    ],
    "HistGradientBoostingRegressor": [
        lambda: _arrays(ensemble.HistGradientBoostingRegressor(**_BOOST)),
        lambda: _boosted(ensemble.HistGradientBoostingRegressor(early_stopping=True, **_BOOST)),
    ],
    "HistGradientBoostingClassifier": [
        lambda: _boosted(ensemble.HistGradientBoostingClassifier(**_BOOST), 2),
        lambda: _boosted(ensemble.HistGradientBoostingClassifier(**_BOOST), 3),
    ],
    "RandomForestRegressor": [
        lambda: _with_names(ensemble.RandomForestRegressor(2, max_depth=3, random_state=0)),
        lambda: _boosted(ensemble.RandomForestRegressor(2, max_depth=3, splits="exact", random_state=0)),
    ],
    "RandomForestClassifier": [
        lambda: _arrays(ensemble.RandomForestClassifier(30, max_depth=2, oob_score=True, random_state=0), "words"),
        lambda: _boosted(ensemble.RandomForestClassifier(2, max_depth=3, max_features=None, random_state=0), 3),
    ],
    "ExtraTreesRegressor": [lambda: _arrays(ensemble.ExtraTreesRegressor(2, max_depth=3, random_state=0))],
    "ExtraTreesClassifier": [lambda: _boosted(ensemble.ExtraTreesClassifier(2, max_depth=3, random_state=0), 3)],
    "AdaBoostClassifier": [
        lambda: _arrays(ensemble.AdaBoostClassifier(n_estimators=4), "three"),
        lambda: _with_names(ensemble.AdaBoostClassifier(linear_model.LogisticRegression(), n_estimators=2), "words"),
    ],
    "GradientBoostingRegressor": [
        lambda: _with_names(ensemble.GradientBoostingRegressor(n_estimators=4, subsample=0.6, random_state=0)),
        lambda: _arrays(
            ensemble.GradientBoostingRegressor(
                estimator=linear_model.Ridge(), init=linear_model.LinearRegression(), n_estimators=2
            )
        ),
    ],
    "GradientBoostingClassifier": [
        lambda: _arrays(ensemble.GradientBoostingClassifier(n_estimators=3, init="zero"), "three"),
        lambda: _arrays(ensemble.GradientBoostingClassifier(n_estimators=3), "words"),
    ],
    "DecisionTreeRegressor": [
        lambda: _with_names(DecisionTreeRegressor(max_depth=3)),
        lambda: _boosted(DecisionTreeRegressor(max_depth=3)),
    ],
    "DecisionTreeClassifier": [
        lambda: _arrays(DecisionTreeClassifier(max_depth=3), "words"),
        lambda: _boosted(DecisionTreeClassifier(max_depth=3), 3),
    ],
    "ID3Classifier": [
        lambda: _discrete(ID3Classifier()),
    ],
    "MutualInformationFilter": [
        lambda: _with_names(MutualInformationFilter(2), "three"),
        lambda: _arrays(MutualInformationFilter(1, n_bins=4)),
    ],
    "StandardScaler": [
        lambda: _with_names(StandardScaler()),
        lambda: _in_parts(StandardScaler(with_mean=False)),
    ],
    "PolynomialLift": [
        lambda: _with_names(PolynomialLift()),
        lambda: _arrays(PolynomialLift(3, interaction_only=True)),
    ],
    "PCA": [
        lambda: _with_names(PCA(n_components=2, scale=True)),
        lambda: _in_parts(PCA(whiten=True)),
        lambda: _missing(PCA(n_components=1)),
    ],
    "FactorAnalysis": [
        lambda: _with_names(FactorAnalysis(n_components=1)),
        lambda: _in_parts(FactorAnalysis(n_components=1, method="em", rotation="varimax")),
    ],
    "TableEncoder": [
        lambda: _encoded(TableEncoder(standardize=True)),
        lambda: _encoded(TableEncoder(categories="codes", max_levels=2)),
    ],
    "TableModel": [
        lambda: _table(linear_model.LogisticRegression(), "three", costs=_COSTS, metric="cost"),
        lambda: _table(linear_model.Ridge(), "y", low=-1.0, high=2.0, clip_low=-0.5, clip_high=1.5),
        lambda: _table(ensemble.HistGradientBoostingClassifier(**_BOOST), "words", TableEncoder(categories="codes")),
        lambda: _table(_averaged_table(), "words", _pair()),
    ],
    "PairedEncoder": [lambda: _encoded(_pair())],
    "AveragedClassifier": [
        lambda: _arrays(
            AveragedClassifier([linear_model.LogisticRegression(), DummyClassifier()], [0.25, 0.75], [0, 1], [2, 3]),
            "three",
        )
    ],
    "AveragedRegressor": [
        lambda: _arrays(
            AveragedRegressor([linear_model.Ridge(), linear_model.LinearRegression()], [0.5, 0.5], [0, 0], [3, 1])
        )
    ],
    "CalibratedSVC": [
        lambda: _arrays(CalibratedSVC(Cs=(1.0,)), "words"),
        lambda: _arrays(CalibratedSVC(Cs=(1.0, 3.0), max_exact=50, n_components=5), "three"),
    ],
    "ScaledSVR": [
        lambda: _arrays(ScaledSVR(Cs=(1.0,))),
        lambda: _arrays(ScaledSVR(Cs=(1.0,), max_exact=50, n_components=5)),
    ],
    "GaussianMixture": [
        lambda: _with_names(GaussianMixture(2, random_state=0)),
        *(
            functools.partial(_arrays, GaussianMixture(2, covariance_type=kind, random_state=0))
            for kind in ("tied", "diag", "spherical")
        ),
        lambda: Saved(GaussianMixture(random_state=0).select(_data().X, (1, 2)), _data().X),
    ],
    "BinomialMixture": [
        lambda: Saved(BinomialMixture(2, 9, random_state=0).fit(_successes(1)), _successes(1)),
        lambda: Saved(BinomialMixture(2, [9, 10, 11], random_state=0).fit(_successes(3)), _successes(3)),
    ],
    "BernoulliMixture": [lambda: _binary(BernoulliMixture(2, random_state=0))],
    "SVC": [
        lambda: _arrays(SVC(), "words"),
        lambda: _with_names(SVC(kernel=Gaussian(2.0) + 0.5 * Polynomial(2)), "three"),
        lambda: _arrays(SVC(kernel=Laplacian(0.5) * Linear()), "two"),
    ],
    "SVR": [lambda: _arrays(SVR()), lambda: _arrays(SVR(kernel=Linear() * Gaussian(1.5)))],
    "OneClassSVM": [lambda: _arrays(OneClassSVM(kernel=0.1 * Sigmoid(1e-6) + Linear()))],
    "LinearSVC": [lambda: _arrays(LinearSVC(), "three"), lambda: _arrays(LinearSVC(loss="hinge", tol=0.1), "two")],
    "LinearSVR": [lambda: _arrays(LinearSVR(tol=0.1))],
    "PegasosSVC": [lambda: _arrays(PegasosSVC(0.1, random_state=0), "words")],
    "KNeighborsClassifier": [
        lambda: _arrays(KNeighborsClassifier(), "words"),
        lambda: Saved(KNeighborsClassifier(p=1).fit(csr_matrix(_data().X), _data().three), _data().X, _data().three),
    ],
    "KNeighborsRegressor": [
        lambda: _two_targets(KNeighborsRegressor(3, weights="distance")),
        lambda: _arrays(KNeighborsRegressor(metric="cosine", algorithm="brute")),
    ],
    "KernelRidge": [
        lambda: _arrays(KernelRidge(kernel="rbf")),
        lambda: _two_targets(KernelRidge(kernel=Gaussian(1.0))),
    ],
    "KernelLMS": [lambda: _arrays(KernelLMS(budget=20))],
    "Nystroem": [lambda: _with_names(Nystroem(n_components=5, random_state=0))],
    "RBFSampler": [lambda: _arrays(RBFSampler(n_components=5, random_state=0))],
    "PolynomialCountSketch": [lambda: _arrays(PolynomialCountSketch(n_components=5, random_state=0))],
    "DummyRegressor": [lambda: _arrays(DummyRegressor())],
    "DummyClassifier": [lambda: _arrays(DummyClassifier(), "words")],
    "BaselineRegressor": [lambda: _arrays(BaselineRegressor())],
    "BaselineClassifier": [lambda: _arrays(BaselineClassifier(), "words")],
}


def _of_case(case: Case) -> Saved:
    X, y, _ = case.data()
    return Saved(case.fit(X, y), X, y)


# Every other class as the contract suite fits it.
_LISTED = set(KINDS)
for _case in CASES:
    if type(_case.estimator).__name__ not in _LISTED:
        KINDS.setdefault(type(_case.estimator).__name__, []).append(functools.partial(_of_case, _case))
