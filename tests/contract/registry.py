"""The registry of estimators. A line in `CASES` applies every contract test with matching traits to an estimator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.covariance import ShrunkCovariance

from summula.cluster import KMeans, MiniBatchKMeans
from summula.decomposition import PCA, FactorAnalysis
from summula.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from summula.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from summula.features import HOG, ParabolicLift, PolynomialLift, QuadricLift
from summula.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from summula.kernel_ridge import KernelLMS, KernelRidge
from summula.linear_model import (
    BayesianLogisticRegression,
    ElasticNet,
    GammaRegressor,
    GeneralizedLinearRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    PoissonRegressor,
    PolynomialRegression,
    Ridge,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from summula.mixture import BernoulliMixture, BinomialMixture, GaussianMixture
from summula.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MixedNB, MultinomialNB
from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from summula.preprocessing import KBinsDiscretizer, StandardScaler
from summula.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, PegasosSVC
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from tests.contract.case import SIZES, Case, Data, With, wide_sparse
from tests.contract.objectives import (
    half_deviance,
    half_mean_square,
    joint_likelihood,
    machine_objective,
    mixed_likelihood,
    smoothed_likelihood,
    squares,
    squares_within,
    widened_likelihood,
)

__all__ = ["CASES", "SIZES", "Case", "Data", "chosen", "in_turn", "over", "over_frames", "over_ways", "wide_sparse"]

# Traits that several cases share; `case.Case` describes them.
CLOSED: dict[str, Any] = {"objective": squares, "exact": True}
ADDITIVE: dict[str, Any] = {**CLOSED, "additive": True}
L1_SQUARES: dict[str, Any] = {"objective": half_mean_square, "l1": True}
LIKELIHOOD: dict[str, Any] = {"objective": half_deviance, "likelihood": True, "centres": True}
L1_LIKELIHOOD: dict[str, Any] = {**LIKELIHOOD, "l1": True}
# Rows are held out for validation, in folds by position.
FOLDS: dict[str, Any] = {"repeats": False, "unordered": False}

# (Long first steps would enlarge rounding.)
STEPS: dict[str, Any] = {"learning_rate": "invscaling", "eta0": 0.02, "random_state": 0}
# Rows come in a random order, and descent stops near the optimum.
STOCHASTIC: dict[str, Any] = {"repeats": False, "unordered": False, "stochastic": True}

# Leaves have a minimum number of rows, regardless of weights; rounding is drawn by row number.
TREES: dict[str, Any] = {
    "numbers": (),
    "trees": True,
    "repeats": False,
    "scale_free": True,
    "finite": False,
    "single": False,
    "grid": {"max_depth": [1, 3]},
}
BOOSTED: dict[str, Any] = {**TREES, "unordered": False, "stochastic": True}
# Ties between splits go to the first column.
EXACT_TREE: dict[str, Any] = {**TREES, "streams": False}
# Rows and columns are drawn by their numbers.
FOREST: dict[str, Any] = {
    **BOOSTED,
    "changes": {
        "bootstrap": (False, True),
        "class_weight": ("balanced_subsample",),
        "max_samples": (With(20, bootstrap=True),),
        "n_estimators": (2,),
        "oob_score": (With(True, bootstrap=True, n_estimators=30),),
        "splits": ("exact",),
    },
    "idle": ("verbose",),
}
GRADIENT: dict[str, tuple[Any, ...]] = {
    "alpha": (With(0.5, loss="huber", alpha=0.9),),
    "estimator": (Ridge(),),
    "init": ("zero",),
    "n_iter_no_change": (With(1, n_estimators=50, learning_rate=1.0),),
    "subsample": (0.5,),
    "tol": (With(10.0, n_iter_no_change=2),),
    "validation_fraction": (With(0.4, n_iter_no_change=50),),
}
STAGES: dict[str, Any] = {**EXACT_TREE, "changes": {"n_estimators": (3,), "learning_rate": (0.5,)}}
SCALER: dict[str, Any] = {"numbers": (), "scale_free": True, "additive": True}
NAIVE_BAYES: dict[str, Any] = {
    "objective": widened_likelihood,
    "exact": True,
    "point": ("fit.columns.theta", "fit.columns.var"),
    "numbers": ("theta_", "var_"),
    "grid": {"var_smoothing": [1e-9, 1.0]},
    "centres": True,
    "additive": True,
    "single": False,
}
DISCRETE: dict[str, Any] = {
    "objective": smoothed_likelihood,
    "exact": True,
    "point": ("fit.log_p",),
    "numbers": ("feature_log_prob_",),
    "grid": {"alpha": [0.1, 10.0]},
    "additive": True,
    "single": False,
    "one_class": True,
    "changes": {
        "force_alpha": (With(False, alpha=0.0),),
        "fit_prior": (False,),
        "class_prior": ([0.2, 0.8], [0.2, 0.3, 0.5]),
        "binarize": (0.0,),
        "norm": (False,),
        "min_categories": (20,),
    },
}
DISCRIMINANT: dict[str, Any] = {
    "objective": joint_likelihood,
    "exact": True,
    "point": ("fit.A", "fit.means"),
    "needs_spread": True,
    "scale_free": True,
    "centres": True,
    "additive": True,
    "single": False,
    "one_class": True,
    "changes": {
        "shrinkage": (0.5,),
        "priors": ([0.2, 0.8],),
        "n_components": (1,),
        "store_covariance": (True,),
        "tol": (2.0,),
        "covariance": ("diag",),
        "reg_param": (0.3,),
        "covariance_estimator": (ShrunkCovariance(shrinkage=0.5),),
    },
}
CENTROIDS: dict[str, Any] = {
    **DISCRIMINANT,
    "objective": squares_within,
    "point": ("fit.centroids",),
    "scale_free": False,
    "one_class": False,
    "numbers": ("centroids_",),
    "changes": {
        "metric": ("manhattan",),
        "shrink_threshold": (0.5,),
        "priors": ("uniform",),
        "adjust": (False,),
    },
}
BINS: dict[str, Any] = {
    "numbers": (),
    "scale_free": True,
    "repeats": False,
    "grid": {"n_bins": [2, 4]},
    "changes": {
        "n_bins": (4,),
        "encode": ("onehot-dense", "ordinal"),
        "strategy": ("quantile",),
        "quantile_method": (With("linear", strategy="quantile"),),
        "dtype": (np.float32,),
        "subsample": (With(50, strategy="quantile"),),
    },
}

LATENT: dict[str, Any] = {"numbers": ("components_",), "additive": True, "centres": True, "needs_spread": True}
AXES: dict[str, Any] = {
    "center": (False,),
    "max_distortion": (With(1_000.0, n_components=None),),
    "n_components": (1,),
    "scale": (True,),
    "whiten": (True,),
}
HISTOGRAMS: dict[str, Any] = {
    "image_shape": ((1, 4),),
    "n_bins": (5,),
    "cell": ((2, 2),),
    "block": ((1, 1),),
    "norm": ("l1",),
    "signed": (True,),
    "filter": ("gaussian",),
    "sigma": (With(0.5, filter="gaussian"),),
}
# Parameters of iterative solvers have no effect: so few columns are decomposed exactly.
ITERATIONS = ("iterated_power", "max_iter", "n_oversamples", "power_iteration_normalizer", "svd_solver", "tol")
FACTORS: dict[str, Any] = {
    "method": ("em",),
    "min_noise": (0.9,),
    "n_components": (2,),
    "noise_variance_init": (With([0.5] * 4, max_iter=2),),
    "rotation": (With("varimax", n_components=2),),
}
# Starts are computed from all rows, in any order; EM then stops at a tolerance.
MIXTURE: dict[str, Any] = {
    "most_rows": 1_200,
    "needs_spread": True,
    "numbers": ("means_", "weights_"),
    "grid": {"n_components": [1, 2]},
    "single": False,
    "idle": ("verbose_interval",),
    "changes": {
        "covariance_type": ("tied", "spherical"),
        "init_params": ("random",),
        "means_init": ([[0.0] * 4, [2.0] * 4],),
        "n_components": (3,),
        "n_init": (With(6, init_params="random_from_data", n_components=3),),
        "precisions_init": ([np.eye(4)] * 2,),
        "reg_covar": (0.5,),
        "weights_init": ([0.1, 0.9],),
    },
}
# Counts from 0 to 9, or zeros and ones: columns are independent given the component.
COUNT_MIXTURE: dict[str, Any] = {
    "most_rows": 1_200,
    "counts": True,
    "needs_spread": True,
    "numbers": ("probabilities_", "weights_"),
    "grid": {"n_components": [1, 2]},
    "single": False,
    "changes": {
        "fit_weights": (False,),
        "init_params": ("random",),
        "n_components": (3,),
        "n_init": (With(6, init_params="random_from_data", n_components=3),),
        "n_trials": (20,),
        "probabilities_init": ([[0.1] * 4, [0.6] * 4],),
        "tol": (1.0,),
        "weights_init": (With([0.1, 0.9], fit_weights=False),),
    },
}
K_MEANS: dict[str, Any] = {
    "numbers": ("cluster_centers_",),
    "repeats": False,
    "unordered": False,
    "stochastic": True,
    "grid": {"n_clusters": [2, 5]},
    "method": "transform",
}


def scaled_product(x: Any, z: Any, factor: float = 1.0) -> float:
    """A kernel function with a parameter."""
    return factor * float(x @ z)


# Ties in distance are broken by row number.
NEIGHBORS: dict[str, Any] = {
    "numbers": (),
    "most_rows": 500,
    "keeps_rows": True,
    "passes": False,
    "single": False,
    "one_class": True,
    "repeats": False,
    "free_intercept": False,
    "of_rows": ("_fit_X", "_y"),
    "grid": {"n_neighbors": [1, 7]},
    "changes": {
        "metric": ("chebyshev",),
        "metric_params": ({"w": [1.0, 0.0, 0.0, 0.0]},),
        "n_neighbors": (2,),
        "p": (1.0,),
        "weights": ("uniform", "distance"),
    },
    "idle": ("leaf_size",),
}
# The dual has one variable per row. A fit stops when the optimality conditions hold up to a tolerance.
KERNEL_MACHINE: dict[str, Any] = {
    "numbers": (),
    "most_rows": 500,
    "keeps_rows": True,
    "passes": False,
    "streams": False,
    "single": False,
    "apart": 1e-6,
    "of_rows": ("certificate_", "dual_coef_", "n_iter_", "n_support_", "shape_fit_", "support_", "support_vectors_"),
    "grid": {"C": [0.1, 10.0]},
    "changes": {
        "break_ties": (True,),
        "coef0": (With(2.0, kernel="poly"),),
        "decision_function_shape": ("ovo",),
        "degree": (With(2, kernel="poly"),),
        "gamma": (0.05,),
        "kernel": ("laplacian",),
        "max_iter": (3,),
        "tol": (1.0,),
    },
}
LINEAR_MACHINE: dict[str, Any] = {
    "objective": machine_objective,
    "point": ("v",),
    "free_intercept": False,
    "grid": {"C": [0.1, 10.0]},
    "changes": {
        "intercept_scaling": (10.0,),
        "loss": ("hinge", "epsilon_insensitive"),
        "max_iter": (1,),
        "penalize_intercept": (False,),
        "tol": (0.5,),
    },
}
# Losses with a kink, and L1 penalties, need the rows in memory.
KINKED: dict[str, Any] = {
    **LINEAR_MACHINE,
    "streams": False,
    "streams_results": True,
    "passes": False,
    "apart": 1e-9,
    "unscaled": 1e-6,
    "of_rows": ("certificate_", "n_iter_"),
}
RANDOM_FEATURES: dict[str, Any] = {
    "numbers": (),
    "passes": False,
    "repeats": False,
    "unordered": False,
    "stochastic": True,
    "changes": {
        "gamma": (0.05,),
        "coef0": (2.0,),
        "degree": (3,),
        "kernel_params": (With({"factor": 2.0}, kernel=scaled_product),),
        "n_components": (5,),
    },
}

CASES = [
    Case(LinearRegression(), "regressor", **ADDITIVE, scale_free=True, wide_sparse=True, centres=True, idle=("tol",)),
    Case(LinearRegression(positive=True), "regressor", **ADDITIVE, scale_free=True, centres=True),
    Case(LinearRegression(fit_intercept=False), "regressor", **ADDITIVE, scale_free=True),
    Case(Ridge(), "regressor", **ADDITIVE, wide_sparse=True, centres=True, idle=("max_iter", "tol")),
    Case(Ridge(alpha=[0.5, 30.0]), "regressor", **ADDITIVE, targets=2, centres=True),
    Case(Ridge(positive=True), "regressor", **ADDITIVE, centres=True),
    Case(RidgeCV(), "regressor", **CLOSED, repeats=False, centres=True),
    Case(RidgeCV(alphas=[0.3, 30.0, 3.0], cv=4), "regressor", **CLOSED, **FOLDS, targets=2, centres=True),
    Case(PolynomialRegression(degree=2), "regressor", **ADDITIVE, scale_free=True, centres=True),
    # Iterations stop at a tolerance; a small one makes results comparable up to rounding.
    Case(Lasso(alpha=0.002, tol=1e-10), "regressor", **L1_SQUARES, wide_sparse=True, centres=True, idle=("tol",)),
    Case(Lasso(alpha=0.05, tol=1e-10, positive=True, fit_intercept=False), "regressor", **L1_SQUARES),
    Case(ElasticNet(alpha=0.1, tol=1e-10), "regressor", **L1_SQUARES, targets=2, centres=True),
    Case(LassoCV(cv=3, alphas=10, tol=1e-10), "regressor", **L1_SQUARES, **FOLDS, centres=True),
    Case(
        LogisticRegression(tol=1e-10, max_iter=1_000),
        "classifier",
        **LIKELIHOOD,
        target="two classes",
        wide_sparse=True,
        idle=("penalty",),
    ),
    Case(LogisticRegression(C=np.inf, tol=1e-10), "classifier", **LIKELIHOOD, target="two classes", scale_free=True),
    Case(LogisticRegression(C=0.5, tol=1e-10), "classifier", **LIKELIHOOD, target="three classes"),
    Case(LogisticRegression(class_weight="balanced", tol=1e-10), "classifier", **LIKELIHOOD, target="words"),
    Case(
        LogisticRegression(l1_ratio=1.0, C=0.5, tol=1e-10),
        "classifier",
        **L1_LIKELIHOOD,
        target="two classes",
        wide_sparse=True,
    ),
    Case(LogisticRegression(l1_ratio=0.5, C=0.5, tol=1e-10), "classifier", **L1_LIKELIHOOD, target="three classes"),
    Case(
        LogisticRegressionCV(
            l1_ratios=(0.9,), Cs=[0.05, 0.5], cv=2, scoring=None, use_legacy_attributes=False, tol=1e-10
        ),
        "classifier",
        **L1_LIKELIHOOD,
        **FOLDS,
        target="two classes",
        most_rows=1_200,
        idle=("penalty",),
    ),
    Case(
        GeneralizedLinearRegressor("poisson", alpha=0.03, l1_ratio=0.7, tol=1e-10),
        "regressor",
        **L1_LIKELIHOOD,
        target="counts",
    ),
    Case(PoissonRegressor(tol=1e-10, max_iter=1_000), "regressor", **LIKELIHOOD, target="counts", wide_sparse=True),
    Case(GammaRegressor(tol=1e-10), "regressor", **LIKELIHOOD, target="positive"),
    Case(TweedieRegressor(power=1.5, tol=1e-10), "regressor", **LIKELIHOOD, target="amounts"),
    Case(
        GeneralizedLinearRegressor("gamma", "log", tol=1e-10),
        "regressor",
        **LIKELIHOOD,
        target="positive",
        scale_free=True,
    ),
    Case(
        GeneralizedLinearRegressor("binomial", tol=1e-10), "regressor", **LIKELIHOOD, target="shares", scale_free=True
    ),
    Case(BayesianLogisticRegression(tol=1e-10), "classifier", **LIKELIHOOD, target="two classes"),
    Case(SGDClassifier("log_loss", **STEPS), "classifier", target="two classes", **STOCHASTIC),
    Case(SGDClassifier("log_loss", batch_size=5, **STEPS), "classifier", target="three classes", **STOCHASTIC),
    Case(SGDClassifier("log_loss", penalty="l1", **STEPS), "classifier", target="words", **STOCHASTIC),
    Case(SGDRegressor(random_state=0), "regressor", **STOCHASTIC),
    Case(SGDRegressor(average=True, random_state=0), "regressor", **STOCHASTIC),
    Case(Perceptron(max_iter=20, tol=None), "classifier", target="three classes", **STOCHASTIC),
    Case(Perceptron(max_iter=20, tol=None, batch=True), "classifier", target="two classes", **STOCHASTIC),
    Case(HistGradientBoostingRegressor(max_iter=8, random_state=0), "regressor", **BOOSTED),
    Case(
        HistGradientBoostingRegressor(
            "absolute_error", max_iter=5, learning_rate=0.5, max_features=0.8, random_state=0
        ),
        "regressor",
        **BOOSTED,
    ),
    Case(
        HistGradientBoostingClassifier(max_iter=8, random_state=0),
        "classifier",
        target="words",
        one_class=True,
        **BOOSTED,
        idle=("loss",),
    ),
    Case(
        HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=6, random_state=0),
        "classifier",
        target="three classes",
        one_class=True,
        **BOOSTED,
    ),
    Case(RandomForestRegressor(4, min_samples_leaf=3, random_state=0), "regressor", **FOREST),
    Case(RandomForestClassifier(4, random_state=0), "classifier", target="words", one_class=True, **FOREST),
    Case(
        RandomForestClassifier(5, max_samples=25, max_leaf_nodes=6, max_features=None, random_state=0),
        "classifier",
        target="three classes",
        one_class=True,
        **FOREST,
    ),
    Case(ExtraTreesRegressor(3, max_depth=4, random_state=0), "regressor", **FOREST),
    Case(
        ExtraTreesClassifier(3, max_depth=4, random_state=0),
        "classifier",
        target="words",
        one_class=True,
        **FOREST,
    ),
    Case(
        AdaBoostClassifier(n_estimators=8),
        "classifier",
        target="words",
        one_class=True,
        **{**STAGES, "grid": {"n_estimators": [2, 5]}},
        idle=("random_state",),
    ),
    Case(
        AdaBoostClassifier(n_estimators=5, learning_rate=0.5),
        "classifier",
        target="three classes",
        one_class=True,
        **{**EXACT_TREE, "grid": {"n_estimators": [2, 5]}},
        changes={"estimator": (DecisionTreeClassifier(max_depth=2),)},
    ),
    Case(
        GradientBoostingRegressor(n_estimators=8, random_state=0),
        "regressor",
        **{**STAGES, "changes": {**STAGES["changes"], **GRADIENT}},
        idle=("criterion", "verbose"),
    ),
    Case(
        GradientBoostingRegressor(loss="huber", learning_rate=0.5, n_estimators=6, random_state=0),
        "regressor",
        **EXACT_TREE,
    ),
    Case(
        GradientBoostingClassifier(n_estimators=8, random_state=0),
        "classifier",
        target="words",
        **{**STAGES, "changes": {**STAGES["changes"], **GRADIENT, "loss": ("exponential",)}},
        idle=("criterion", "verbose"),
    ),
    Case(
        GradientBoostingClassifier(n_estimators=3, subsample=0.7, random_state=0),
        "classifier",
        target="three classes",
        **{
            **EXACT_TREE,
            "stochastic": True,
            "unordered": False,
            "scale_free": False,
        },  # rows not drawn may be on a threshold
    ),
    Case(StandardScaler(), "transformer", **SCALER, centres=True),
    Case(StandardScaler(with_mean=False), "transformer", **SCALER),
    Case(GaussianMixture(2, random_state=0), "density", **MIXTURE),
    Case(GaussianMixture(2, covariance_type="diag", n_init=2, random_state=0), "density", **MIXTURE),
    Case(BinomialMixture(2, n_trials=50, tol=1e-4, random_state=0), "density", **COUNT_MIXTURE),
    Case(BernoulliMixture(2, tol=1e-4, random_state=0), "density", most_count=1.0, **COUNT_MIXTURE),
    Case(PolynomialLift(), "transformer", passes=False, numbers=()),
    Case(ParabolicLift(), "transformer", passes=False, numbers=()),
    Case(QuadricLift(axis_aligned=True), "transformer", passes=False, numbers=(), changes={"axis_aligned": (False,)}),
    Case(HOG(cell=(1, 1)), "transformer", passes=False, numbers=(), flat=False, changes=HISTOGRAMS),
    Case(PCA(n_components=2), "transformer", **LATENT, changes=AXES, idle=ITERATIONS),
    Case(PCA(n_components=2, scale=True, whiten=True), "transformer", **LATENT, scale_free=True),
    Case(
        FactorAnalysis(n_components=1, tol=0.0),
        "transformer",
        **LATENT,
        target="factors",
        scale_free=True,
        changes=FACTORS,
        idle=("iterated_power", "svd_method"),
    ),
    Case(
        KMeans(4, random_state=0, tol=0.0, max_iter=1_000),
        "clusterer",
        **K_MEANS,
        changes={
            "init": ("random",),
            "max_iter": (1,),
            "n_clusters": (3,),
            "n_init": (20,),
            "tol": (0.5,),
        },
        idle=("algorithm", "copy_x", "verbose"),
    ),
    Case(KMeans(3, init="k-means||", random_state=1), "clusterer", **K_MEANS),
    Case(
        MiniBatchKMeans(3, batch_size=50, max_iter=2, max_no_improvement=None, random_state=0),
        "clusterer",
        **K_MEANS,
        most_rows=1_000,
        changes={
            "batch_size": (20,),
            "compute_labels": (False,),
            "init": ("random",),
            "init_size": (10,),
            "max_iter": (1,),
            "max_no_improvement": (1,),
            "n_clusters": (2,),
            "n_init": (20,),
            "reassignment_ratio": (0.9,),
            "tol": (100.0,),
        },
        idle=("verbose",),
        late=("inertia_", "labels_"),
    ),
    Case(DecisionTreeRegressor(max_leaf_nodes=12, random_state=0), "regressor", **EXACT_TREE),
    Case(
        DecisionTreeClassifier(max_depth=4, random_state=0), "classifier", target="words", one_class=True, **EXACT_TREE
    ),
    Case(
        ID3Classifier(max_depth=2),
        "classifier",
        target="words",
        one_class=True,
        counts=True,
        **{**EXACT_TREE, "finite": True, "scale_free": False},
        changes={"min_gain": (0.2,), "min_samples_split": (60,)},
    ),
    Case(GaussianNB(), "classifier", **NAIVE_BAYES, target="three classes", one_class=True),
    Case(GaussianNB(priors=[0.7, 0.3], var_smoothing=1e-6), "classifier", **NAIVE_BAYES, target="words"),
    Case(BernoulliNB(binarize=1.0), "classifier", **{**DISCRETE, "point": ("fit.log_odds",)}, target="three classes"),
    Case(MultinomialNB(), "classifier", **DISCRETE, target="words", counts=True),
    Case(ComplementNB(norm=True), "classifier", **{**DISCRETE, "objective": None}, target="three classes", counts=True),
    Case(
        CategoricalNB(min_categories=12),
        "classifier",
        **{**DISCRETE, "numbers": (), "point": ("fit.tables",)},
        target="two classes",
        counts=True,
    ),
    Case(
        MixedNB({0: "bernoulli"}),
        "classifier",
        **{**NAIVE_BAYES, "objective": mixed_likelihood, "centres": False, "changes": {"families": ("gaussian",)}},
        target="three classes",
        one_class=True,
    ),
    Case(
        LinearDiscriminantAnalysis(),
        "classifier",
        **DISCRIMINANT,
        grid={"solver": ["svd", "lsqr"]},
        target="three classes",
    ),
    Case(
        LinearDiscriminantAnalysis(shrinkage="auto"),
        "classifier",
        **{**DISCRIMINANT, "objective": None, "additive": False},
        grid={"solver": ["svd", "eigen"]},
        target="words",
    ),
    Case(
        QuadraticDiscriminantAnalysis(),
        "classifier",
        **DISCRIMINANT,
        numbers=("means_",),
        grid={"reg_param": [0.0, 0.5]},
        target="two classes",
    ),
    Case(
        NearestCentroid(priors="empirical"),
        "classifier",
        **CENTROIDS,
        grid={"shrink_threshold": [None, 0.5]},
        target="three classes",
    ),
    Case(
        NearestCentroid(adjust=True),
        "classifier",
        **{**CENTROIDS, "additive": False},
        grid={"adjust": [False, True]},
        target="words",
    ),
    Case(KNeighborsClassifier(), "classifier", **NEIGHBORS, target="words"),
    Case(KNeighborsClassifier(4, weights="distance", p=1), "classifier", **NEIGHBORS, target="three classes"),
    Case(KNeighborsRegressor(), "regressor", **NEIGHBORS),
    Case(KNeighborsRegressor(3, weights="distance", algorithm="brute"), "regressor", **NEIGHBORS, targets=2),
    Case(KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), "transformer", **BINS),
    Case(KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), "transformer", **BINS),
    Case(SVC(tol=1e-8), "classifier", **KERNEL_MACHINE, target="two classes", idle=("break_ties", "probability")),
    Case(
        SVC(kernel="poly", C=0.5, degree=2, coef0=1.0, class_weight="balanced", break_ties=True, tol=1e-8),
        "classifier",
        **KERNEL_MACHINE,
        target="three classes",
    ),
    Case(SVR(C=2.0, tol=1e-8), "regressor", **KERNEL_MACHINE),
    Case(LinearSVC(tol=1e-13), "classifier", **LINEAR_MACHINE, target="two classes", idle=("multi_class", "verbose")),
    Case(LinearSVC(C=0.3, tol=1e-13), "classifier", **LINEAR_MACHINE, target="three classes"),
    Case(LinearSVC(loss="hinge", tol=1e-12), "classifier", **KINKED, target="words"),
    Case(LinearSVC("l1", C=0.02, tol=1e-13), "classifier", **LINEAR_MACHINE, l1=True, target="two classes"),
    Case(LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, tol=1e-13), "regressor", **LINEAR_MACHINE),
    Case(LinearSVR(tol=1e-12), "regressor", **KINKED),
    Case(
        PegasosSVC(0.1, max_iter=5, random_state=0),
        "classifier",
        **STOCHASTIC,
        target="three classes",
        changes={"average": (False,), "fit_intercept": (True,), "lambda_": (1.0,)},
    ),
    Case(OneClassSVM(nu=0.3, tol=1e-11), "outlier detector", **KERNEL_MACHINE),
    Case(
        KernelRidge(alpha=0.5, kernel="rbf", gamma=0.1),
        "regressor",
        **{
            **KERNEL_MACHINE,
            "apart": 0.0,
            "free_intercept": False,
            "of_rows": ("X_fit_", "certificate_", "dual_coef_"),
            "grid": {"alpha": [0.1, 10.0]},
            "changes": {
                **KERNEL_MACHINE["changes"],
                "kernel_params": (With({"factor": 2.0}, kernel=scaled_product, gamma=None),),
            },
        },
    ),
    Case(
        KernelLMS(gamma=0.1, budget=50),
        "regressor",
        most_rows=1_200,
        numbers=(),
        repeats=False,
        unordered=False,
        passes=False,
        single=False,
        grid={"eta": [0.1, 0.5]},
        changes={
            "budget": (None,),
            "eta": (0.1,),
            "kernel_params": (With({"factor": 2.0}, kernel=scaled_product, gamma=None, eta=1e-3),),
            "max_iter": (2,),
        },
    ),
    Case(Nystroem(n_components=10, random_state=0), "transformer", **RANDOM_FEATURES),
    Case(RBFSampler(gamma=0.1, n_components=10, random_state=0), "transformer", **RANDOM_FEATURES),
    Case(PolynomialCountSketch(coef0=1.0, n_components=10, random_state=0), "transformer", **RANDOM_FEATURES),
]


def chosen(*properties: str, cases: Iterable[Case] = CASES) -> list[Case]:
    """Return the cases that have these properties."""
    return [case for case in cases if all(getattr(case, name) for name in properties)]


def over(*properties: str, cases: Iterable[Case] = CASES) -> pytest.MarkDecorator:
    """Run a test for every case that has these properties: `@over("regressor", "weighted")`."""
    return pytest.mark.parametrize("case", chosen(*properties, cases=cases), ids=str)


# Where every case is tested with every container and both sizes, not every triple takes another path through the library:
# the third factor alternates, so that each class is tested with each container.
_in_turn: dict[str, list[str]] = {}
SELDOM_LARGE = ("small", "small", "large")


def over_frames(*properties: str) -> Callable[[Any], Any]:
    """The same with a frame of one library each (`constructor`): in three tests of a file a case is tested with all of them."""

    def decorate(test: Any) -> Any:
        before = _in_turn.setdefault(test.__module__, [])
        if test.__name__ not in before:
            before.append(test.__name__)
        turn, libraries = before.index(test.__name__), ("pandas", "polars", "pyarrow")
        pairs = [(case, libraries[(CASES.index(case) + turn) % 3]) for case in chosen(*properties)]
        mark = pytest.mark.parametrize(("case", "constructor"), pairs, ids=_joined(pairs), indirect=["constructor"])
        return mark(test)

    return decorate


def over_ways(
    name: str, ways: Mapping[str, Any], *properties: str, third: str = "size", values: Iterable[Any] = SELDOM_LARGE
) -> pytest.MarkDecorator:
    """The same for every one of some `ways`, called `name`, with the values of a third argument in turn.

    The first case of a class is tested with all, the same class with other parameters with every third, in turn.
    """
    turns, first = tuple(values), {type(case.estimator): case for case in reversed(CASES)}
    triples = []
    for case, (place, way) in itertools.product(chosen(*properties), enumerate(ways)):
        turn = CASES.index(case) + place
        if case is not first[type(case.estimator)]:
            turn, left = divmod(turn, 3)
            if left:
                continue
        triples.append((case, way, turns[turn % len(turns)]))
    given = [(case, ways[way], value) for case, way, value in triples]
    return pytest.mark.parametrize(("case", name, third), given, ids=_joined(triples))


def in_turn(name: str, values: Iterable[Any], *properties: str) -> pytest.MarkDecorator:
    """The same with one of some values for each case, in turn."""
    turns = tuple(values)
    pairs = [(case, turns[CASES.index(case) % len(turns)]) for case in chosen(*properties)]
    return pytest.mark.parametrize(("case", name), pairs, ids=_joined(pairs))


def _joined(tuples: Iterable[tuple[Any, ...]]) -> list[str]:
    return ["-".join(map(str, values)) for values in tuples]
